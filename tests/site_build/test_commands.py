"""The commands as their users run them: words in, lines and an exit status out."""

import gc
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from site_build.__main__ import main
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

ROOT = Path(__file__).parents[2]
GOOD = "---\ntitle: Of {0}\nslug: {0}\ndate: 2026-03-01\n---\nWords.\n"
SETTINGS = ("CONTENT_DIR", "BUILD_DIR", "SITE_URL", "PORT", "NO_COLOR", "FORCE_COLOR")
BARE = {name: value for name, value in os.environ.items() if name not in SETTINGS}


@dataclass(frozen=True)
class CommandResult:
    """The output and the exit status of a command."""

    status: int
    out: str
    err: str


class Run(Protocol):
    """Runs a command in this process, in a folder and with settings."""

    def __call__(
        self, *words: str | Path, cwd: Path = ROOT, settings: dict[str, str] | None = None
    ) -> CommandResult:
        """Return what came of it."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return what runs a command as `python -m site_build` does."""

    def _run(
        *words: str | Path, cwd: Path = ROOT, settings: dict[str, str] | None = None
    ) -> CommandResult:
        for name in SETTINGS:
            monkeypatch.delenv(name, raising=False)
        for name, value in (settings or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(cwd)
        try:
            status = main([str(word) for word in words])
        finally:
            gc.unfreeze()  # A build leaves the collector to the end of its process.
            gc.enable()
        printed = capfd.readouterr()
        return CommandResult(status, printed.out, printed.err)

    return _run


def start(*words: str | Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "site_build", *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        timeout=patience(120),
        cwd=ROOT,
        env={**BARE, **env},
    )


def start_on_terminal(*words: str | Path, env: dict[str, str]) -> str:
    """Run the command with a terminal for its output and return what it wrote there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "site_build", *map(str, words)]
    whole = {**BARE, "TERM": "xterm-256color", **env}
    try:
        process = subprocess.Popen(command, stdout=theirs, stderr=theirs, cwd=ROOT, env=whole)
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
        process.wait(timeout=patience(120))
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


def test_check_of_good_content(content: Path, run: Run) -> None:
    """Content without a defect gives one line and status 0, with --strict too."""
    for words in ((), ("--strict",)):
        result = run("check", "--content", content, *words)

        assert (result.status, result.err) == (0, "")
        assert result.out == "0 errors, 0 warnings in 1 file\n"


def test_check_of_doubtful_content(content: Path, run: Run) -> None:
    """A warning is printed, and counts as an error with --strict alone."""
    spoil(content, GOOD.format("b").replace("Words", "[a](/x/)\n\n![](y.png)"))
    result = run("check", "--content", content)

    assert result.out == (
        f"{content}/posts/b.md:6:5  warning  broken link: no page at `/x/`; fix the address, or "
        "remove it\n"
        f"{content}/posts/b.md:8:1  warning  the image has no alt text; describe it between the "
        "brackets\n"
        f"{content}/posts/b.md:8:5  warning  missing image or file: `y.png`; fix the "
        "address, or remove it\n"
        "0 errors, 3 warnings in 2 files\n"
    )
    assert result.status == 0
    assert run("check", "--content", content, "--strict").status == 1


def test_check_of_bad_content(content: Path, run: Run) -> None:
    """An error gives status 1 and no trace."""
    spoil(content, "---\ntitle: [\n---\n")
    result = run("check", "--content", content)

    assert result.status == 1
    assert result.err == ""
    assert result.out.splitlines()[0].startswith(f"{content}/posts/b.md:3:1  error  the front")
    assert result.out.splitlines()[-1] == "1 error, 0 warnings in 2 files"


def test_check_at_an_instant(content: Path, run: Run) -> None:
    """A link to a post that appears later is a defect until it appears."""
    spoil(content, GOOD.format("b").replace("2026-03-01", "2026-03-05"))
    (content / "posts" / "c.md").write_text(
        GOOD.format("c").replace("Words", "[b](/journal/b/)"), encoding="utf-8"
    )
    command = ("check", "--strict", "--content", content, "--now")

    assert "appears on 2026-03-05 00:00 UTC" in run(*command, "2026-03-04T23:59:59Z").out
    assert run(*command, "2026-03-05").status == 0


def test_settings_from_the_environment_and_a_file(content: Path, run: Run) -> None:
    """CONTENT_DIR says where the content is; the environment overrides .env, an option both."""
    folder = content.parent
    (folder / ".env").write_text("CONTENT_DIR=nowhere\n")
    found = {"CONTENT_DIR": "content"}

    assert "there is no folder 'nowhere'; make it, or name another" in run("check", cwd=folder).err
    assert run("check", cwd=folder, settings=found).out == "0 errors, 0 warnings in 1 file\n"
    assert run("check", "--content", "elsewhere", cwd=folder, settings=found).status == 2


def test_colours_on_a_terminal_alone(content: Path) -> None:
    """A terminal gets colours, unless NO_COLOR forbids them; a pipe gets plain lines."""
    spoil(content, GOOD.format("b").replace("title", "titel"))
    command = ("check", "--content", content)
    plain = start(*command, env={}).stdout
    coloured = start_on_terminal(*command, env={"COLUMNS": "1000"})

    assert "\x1b" not in plain
    assert "\x1b[31merror" in coloured
    assert "\x1b[33mwarning" in coloured
    assert start_on_terminal(*command, env={"NO_COLOR": "1", "COLUMNS": "1000"}) == plain


def test_terminal_escapes_are_neutralized(content: Path) -> None:
    """Text of a post is printed as text, whatever the encoding of the terminal."""
    spoil(content, GOOD.format("b").replace("title", '"\\e[31m\\u202Ekey [red]é"'))
    result = start("check", "--content", content, env={"PYTHONIOENCODING": "ascii"}).stdout

    assert "\x1b" not in result
    assert r"`\ufffd[31m\ufffdkey [red]\xe9` is not a front matter key" in result


def test_a_closed_pipe_ends_the_command_quietly(content: Path) -> None:
    """A pipe that is closed early ends the command without a trace."""
    spoil(content, GOOD.format("b") + "[a](/x/y)\n" * 2_000)
    command = f"{sys.executable} -m site_build check --content '{content}' | head -n 1"
    result = subprocess.run(
        ["/bin/sh", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        timeout=patience(120),
        cwd=ROOT,
        env=BARE,
    )

    assert result.stderr == ""
    assert result.stdout.count("\n") == 1


def test_new(content: Path, run: Run) -> None:
    """`new` starts a draft and names its file; a second time it refuses."""
    command = ("new", "Hello, World", "--content", content, "--date", "2026-03-01T10:00:00+01:00")
    result = run(*command, "--tags", "one, two words,")
    path = content / "posts" / "hello-world.md"

    assert (result.status, result.err) == (0, "")
    assert result.out == f"{path} is started, as a draft\n"
    text = path.read_text(encoding="utf-8")
    assert "date: 2026-03-01T09:00:00Z\ntags: [one, two words]\n" in text
    again = run(*command)
    assert (again.status, again.out) == (2, "")
    assert again.err == (f"{path} has the slug hello-world already; choose another title\n")
    assert path.read_text(encoding="utf-8") == text


def build(run: Run, content: Path, *words: str) -> CommandResult:
    """Build the content into the folder `build` beside it."""
    output = content.parent / "build"
    return run("build", "--content", content, "--output", output, *words)


def read_index(content: Path) -> dict[str, Any]:
    """Return the head of the index that the last build serves, with the slugs of its posts."""
    lines = (content.parent / "build" / "current" / "posts.json").read_text("utf-8")
    index = json.loads(lines)
    return {**index["head"], "slugs": [post["slug"] for post in index["posts"]]}


def test_build(content: Path, run: Run) -> None:
    """A build prints its stages and one line of figures; another one finds all in the cache."""
    result = build(
        run, content, "--site-url", "https://a.example", "--now", "2026-04-01", "--jobs", "2"
    )

    assert (result.status, result.err) == (0, "")
    figures = r"1 post, \d+ files, \d+\.\d MB in \d+\.\d s; 0 of 1 source from the cache"
    assert re.fullmatch(figures, result.out.splitlines()[-1])
    index = read_index(content)
    assert (index["site_url"], index["slugs"]) == ("https://a.example", ["a"])
    assert index["built_for"] == "2026-04-01T00:00:00Z"
    assert "1 of 1 source from the cache" in build(run, content).out


def test_build_for_an_instant(content: Path, run: Run) -> None:
    """Posts after the instant are left out."""
    assert build(run, content, "--now", "2026-02-28T23:59:59Z").status == 0
    assert read_index(content)["slugs"] == []


def test_build_takes_settings_from_the_environment(content: Path, run: Run) -> None:
    """Without options the settings of the environment say what to build, where to and for whom."""
    settings = {"CONTENT_DIR": str(content), "BUILD_DIR": str(content.parent / "build")}

    assert run("build", settings={**settings, "PORT": "8123"}).status == 0
    assert read_index(content)["site_url"] == "http://127.0.0.1:8123"
    assert run("build", settings={**settings, "SITE_URL": "http://b.example"}).status == 0
    assert read_index(content)["site_url"] == "http://b.example"


def test_build_of_bad_content(content: Path, run: Run) -> None:
    """An error holds its file back, and stops a build with --strict, as a warning does then."""
    assert build(run, content).status == 0
    spoil(content, GOOD.format("b").replace("title", "titel"))
    result = build(run, content)

    assert (result.status, result.err) == (3, "")
    assert f"{content}/posts/b.md:2:1  warning  `titel` is not a front matter key" in result.out
    assert result.out.splitlines()[-1] == (
        "1 file has errors: posts/b.md; 0 shown in the former version, 1 left out"
    )
    assert read_index(content)["slugs"] == ["a"]
    before = read_index(content)["build_id"]
    refused = build(run, content, "--strict")
    assert refused.status == 1
    assert refused.err == "nothing was built: 1 error and 1 warning in the content\n"
    spoil(content, GOOD.format("b").replace("Words.", "[a](/x/y)"))
    strict = build(run, content, "--strict")
    assert strict.status == 1
    assert "0 errors and 1 warning in the content" in strict.err
    assert read_index(content)["build_id"] == before
    assert build(run, content).status == 0
    assert read_index(content)["slugs"] == ["a", "b"]


def test_build_into_a_file(content: Path, run: Run) -> None:
    """An error of the disk is one sentence."""
    (output := content.parent / "file").touch()
    result = run("build", "--content", content, "--output", output)

    assert (result.status, result.out) == (1, "")
    assert result.err.count("\n") == 1


def test_build_on_a_terminal(content: Path) -> None:
    """A terminal sees a bar while the build is at work, and the figures last."""
    written = start_on_terminal(
        "build", "--content", content, "--output", content.parent / "build", env={}
    )

    assert "\x1b[?25l" in written
    assert "from the cache\n" in written


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["chekc"], "No such command 'chekc'. Did you mean 'check'?"),
        (
            ["check", "--now", "soon"],
            "Invalid value for '--now': the instant is 'soon'; write",
        ),
        (
            ["check", "--now", "2026-02-30"],
            "Invalid value for '--now': the instant is '2026-02-30'",
        ),
        (["check", "--jobs", "0"], "Invalid value for '--jobs': 0 is not in the range 1<=x<=64"),
        (["check", "--jobs", "-1"], "Invalid value for '--jobs': -1 is not in the range 1<=x<=64"),
        (["check", "--jobs", "two"], "Invalid value for '--jobs': 'two' is not a valid integer"),
        (
            ["check", "--content", "/nowhere"],
            "Invalid value for '--content': there is no folder '/nowhere'",
        ),
        (
            ["build", "--content", "/nowhere"],
            "Invalid value for '--content': there is no folder '/nowhere'",
        ),
        (["check", "--strikt"], "No such option '--strikt'. Did you mean '--strict'?"),
        (["new"], "Missing argument 'TITLE'"),
        (["new", " "], "Invalid value for 'TITLE': the title is empty; write one"),
        (
            ["new", "a", "--content", "/nowhere"],
            "Invalid value for '--content': there is no folder '/nowhere'",
        ),
    ],
)
def test_wrong_arguments_are_refused(run: Run, words: list[str], sentence: str) -> None:
    """The error is one sentence on standard error, with status 2."""
    result = run(*words)

    assert (result.status, result.out) == (2, "")
    assert result.err.count("\n") == 2
    assert result.err.split(": ", 1)[1].startswith(sentence)


@pytest.mark.parametrize(
    "text",
    ["http://a/", "a.example", "ftp://a", "http://a:b", "http://[", "http://a@b", "http://a..b"],
)
def test_an_invalid_site_url_is_refused(run: Run, text: str) -> None:
    """An origin is taken as browsers send it; anything else is refused."""
    result = run("build", "--site-url", text)

    assert (result.status, result.out) == (2, "")
    assert "Invalid value for '--site-url': must be an origin" in result.err


@pytest.mark.parametrize("port", ["99999", *in_ci("abc", "0")])
def test_an_invalid_port_is_refused(run: Run, tmp_path: Path, port: str) -> None:
    """By its own name, though it is a part of the address of the site."""
    (tmp_path / ".env").write_text(f"PORT={port}\n")
    (tmp_path / "content").mkdir()

    result = run("build", cwd=tmp_path)

    assert (result.status, result.out) == (2, "")
    assert result.err == "PORT: must be a port from 1 to 65535\n"


def test_a_missing_file_is_not_checked(run: Run) -> None:
    """It is named, and no findings about other files are counted."""
    result = run("check", "nosuch.md")

    assert (result.status, result.out) == (2, "")
    assert "Path 'nosuch.md' does not exist." in result.err


def test_a_settings_file_in_another_encoding(run: Run, tmp_path: Path) -> None:
    """A `.env` file that is not UTF-8 ends every command with one sentence."""
    (tmp_path / ".env").write_bytes(b"SITE_URL=caf\xe9")

    result = run("check", cwd=tmp_path)

    assert (result.status, result.out) == (1, "")
    assert result.err == ".env is not UTF-8; save it in that encoding\n"


def test_a_settings_file_with_a_broken_line(run: Run, tmp_path: Path) -> None:
    """A line of `.env` that sets nothing ends every command, with its number."""
    (tmp_path / ".env").write_text("CONTENT_DIR=content\nSITE_URL: https://example.org\n")

    result = run("check", cwd=tmp_path)

    assert (result.status, result.out) == (1, "")
    assert result.err == ".env, line 2: write it like NAME=value\n"
