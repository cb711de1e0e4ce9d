"""The commands as their users run them: words in, lines and an exit status out."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from site_build.__main__ import main

ROOT = Path(__file__).parents[2]
GOOD = "---\ntitle: Of {0}\nslug: {0}\ndate: 2026-03-01\n---\nWords.\n"
BARE = {
    name: value
    for name, value in os.environ.items()
    if name not in {"CONTENT_DIR", "BUILD_DIR", "SITE_URL", "PORT", "NO_COLOR", "FORCE_COLOR"}
}


def run(
    *words: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python -m site_build` with these words."""
    return subprocess.run(
        [sys.executable, "-m", "site_build", *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env={**BARE, "PYTHONPATH": str(ROOT), **(env or {})},
    )


def run_on_terminal(*words: str | Path, env: dict[str, str]) -> str:
    """Run the command with a terminal for its output and return what it wrote there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "site_build", *map(str, words)]
    whole = {**BARE, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **env}
    try:
        process = subprocess.Popen(command, stdout=theirs, stderr=theirs, cwd=ROOT, env=whole)
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
        process.wait(timeout=120)
    finally:
        os.close(ours)
    return written.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    """Read from a terminal; Linux says that it was hung up by an error."""
    try:
        return os.read(descriptor, 65_536)
    except OSError:
        return b""


@pytest.fixture
def content(tmp_path: Path) -> Path:
    """Return a content folder with one good post."""
    folder = tmp_path / "content"
    (folder / "posts").mkdir(parents=True)
    (folder / "posts" / "a.md").write_text(GOOD.format("a"), encoding="utf-8")
    return folder


def spoil(content: Path, text: str) -> None:
    """Add a post with a defect."""
    (content / "posts" / "b.md").write_text(text, encoding="utf-8")


def test_check_of_good_content(content: Path) -> None:
    """Content without a defect gives one line and status 0, with --strict too."""
    for words in ((), ("--strict",)):
        told = run("check", "--content", content, *words)

        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout == "1 file: 0 errors, 0 warnings\n"


def test_check_of_doubtful_content(content: Path) -> None:
    """A warning is told, and counts as an error with --strict alone."""
    spoil(content, GOOD.format("b").replace("Words", "[a](/x/)\n\n![](y.png)"))
    told = run("check", "--content", content)

    assert told.stdout == (
        f"{content}/posts/b.md:6:5  warning  the link `/x/` leads nowhere; mend the address, or "
        "take it away\n"
        f"{content}/posts/b.md:8:1  warning  the image has no alt text; describe it between the "
        "brackets\n"
        f"{content}/posts/b.md:8:5  warning  the image or file `y.png` leads nowhere; mend the "
        "address, or take it away\n"
        "2 files: 0 errors, 3 warnings\n"
    )
    assert told.returncode == 0
    assert run("check", "--content", content, "--strict").returncode == 1


def test_check_of_bad_content(content: Path) -> None:
    """An error gives status 1 and no trace."""
    spoil(content, "---\ntitle: [\n---\n")
    told = run("check", "--content", content)

    assert told.returncode == 1
    assert told.stderr == ""
    assert told.stdout.splitlines()[0].startswith(f"{content}/posts/b.md:3:1  error  the front")
    assert told.stdout.splitlines()[-1] == "2 files: 1 error, 0 warnings"


def test_check_at_an_instant(content: Path) -> None:
    """A link to a post that appears later is a defect until it appears."""
    spoil(content, GOOD.format("b").replace("2026-03-01", "2026-03-05"))
    (content / "posts" / "c.md").write_text(
        GOOD.format("c").replace("Words", "[b](/journal/b/)"), encoding="utf-8"
    )
    command = ("check", "--strict", "--content", content, "--now")

    assert "appears on 2026-03-05 00:00 UTC" in run(*command, "2026-03-04T23:59:59Z").stdout
    assert run(*command, "2026-03-05").returncode == 0


def test_settings_from_the_environment_and_a_file(content: Path) -> None:
    """CONTENT_DIR says where the content is; the environment overrides .env, an option both."""
    folder = content.parent
    (folder / ".env").write_text("CONTENT_DIR=nowhere\n")
    found = {"CONTENT_DIR": "content"}

    assert "folder nowhere cannot be read" in run("check", cwd=folder).stderr
    assert run("check", cwd=folder, env=found).stdout == "1 file: 0 errors, 0 warnings\n"
    assert run("check", "--content", "elsewhere", cwd=folder, env=found).returncode == 2


def test_colours_on_a_terminal_alone(content: Path) -> None:
    """A terminal gets colours, unless NO_COLOR forbids them; a pipe gets plain lines."""
    spoil(content, GOOD.format("b").replace("title", "titel"))
    command = ("check", "--content", content)
    plain = run(*command).stdout
    coloured = run_on_terminal(*command, env={})

    assert "\x1b" not in plain
    assert "\x1b[31merror" in coloured
    assert "\x1b[33mwarning" in coloured
    assert run_on_terminal(*command, env={"NO_COLOR": "1"}) == plain


def test_words_that_no_terminal_should_obey(content: Path) -> None:
    """What a post says is printed as text, whatever the encoding of the terminal."""
    spoil(content, GOOD.format("b").replace("title", '"\\e[31m\\u202Ekey [red]é"'))
    told = run("check", "--content", content, env={"PYTHONIOENCODING": "ascii"}).stdout

    assert "\x1b" not in told
    assert r"`\ufffd[31m\ufffdkey [red]\xe9` is no key of the front matter" in told


def test_a_reader_that_goes_away(content: Path) -> None:
    """A pipe that is closed early ends the command without a trace."""
    spoil(content, GOOD.format("b") + "[a](/x/y)\n" * 20_000)
    command = f"{sys.executable} -m site_build check --content '{content}' | head -n 1"
    told = subprocess.run(
        ["/bin/sh", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env=BARE,
    )

    assert told.stderr == ""
    assert told.stdout.count("\n") == 1


def test_new(content: Path) -> None:
    """`new` starts a draft and names its file; a second time it refuses."""
    command = ("new", "Hello, World", "--content", content, "--date", "2026-03-01T10:00:00+01:00")
    told = run(*command, "--tags", "one, two words,")
    path = content / "posts" / "hello-world.md"

    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == f"{path} is started, as a draft\n"
    text = path.read_text(encoding="utf-8")
    assert "date: 2026-03-01T09:00:00Z\ntags: [one, two words]\n" in text
    again = run(*command)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == (
        f"python -m site_build: {path} has the slug hello-world already; choose another title\n"
    )
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["chek"], "argument COMMAND: invalid choice: 'chek'"),
        (["check", "--now", "soon"], "argument --now: the instant is 'soon'; write it as 2026-03"),
        (["check", "--now", "2026-02-30"], "argument --now: the instant is '2026-02-30', which is"),
        (["check", "--jobs", "0"], "argument --jobs: '0' is no number of processes from 1 to 64"),
        (["check", "--jobs", "-1"], "argument --jobs: '-1' is no number of processes from 1 to"),
        (["check", "--jobs", "\u0662"], "argument --jobs: '\u0662' is no number of processes from"),
        (["check", "--content", "/nowhere"], "the content folder /nowhere cannot be read: No such"),
        (["check", "--strikt"], "unrecognized arguments: --strikt"),
        (["new"], "the following arguments are required: TITLE"),
        (["new", " "], "argument TITLE: the title is empty; write one"),
        (["new", "a", "--content", "/nowhere"], "/nowhere cannot be written or read: No such"),
        (["build", "--site-url", "http://a/"], "argument --site-url: 'http://a/' says more than"),
        (["build", "--site-url", "a.example"], "argument --site-url: 'a.example' is no origin"),
        (["build", "--site-url", "ftp://a"], "argument --site-url: 'ftp://a' is no origin"),
        (["build", "--site-url", "http://a:b"], "argument --site-url: 'http://a:b' is no URL"),
        (["build", "--site-url", "http://["], "argument --site-url: 'http://[' is no URL"),
        (["build", "--site-url", "http://a@b"], "argument --site-url: 'http://a@b' is no origin"),
    ],
)
def test_words_that_are_wrong(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be done is said in one sentence on standard error, with status 2."""
    try:
        status = main(words)
    except SystemExit as end:
        status = int(end.code or 0)
    told = capsys.readouterr()

    assert (status, told.out) == (2, "")
    assert told.err.count("\n") == 1
    assert told.err.split(": ", 1)[1].startswith(sentence)
