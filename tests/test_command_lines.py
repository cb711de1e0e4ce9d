"""Both command lines: every subcommand explains itself, and imports only what it uses."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from edge_api.__main__ import COMMANDS as EDGE_COMMANDS
from edge_api.__main__ import main as edge_main
from edge_api.schema.commands import Program
from site_build.__main__ import COMMANDS as BUILD_COMMANDS
from site_build.__main__ import main as build_main
from tests.patience import patience
from tests.sizes import in_ci

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {"edge_api": EDGE_COMMANDS, "site_build": BUILD_COMMANDS}
PROGRAMS = {"edge_api": edge_main, "site_build": build_main}
SLOW = {"aiohttp", "asyncpg", "jinja2", "joserfc", "limits", "mcp", "pelican"}
"""Packages that take long to import."""

# What a command line imports of them.
IMPORTED = [
    ("edge_api", ["keys", "list"], set[str]()),
    ("edge_api", ["audit"], set[str]()),
    ("edge_api", ["settings"], set[str]()),
    ("edge_api", ["--help"], set[str]()),
    ("edge_api", ["mail", "list"], {"jinja2"}),
    ("edge_api", ["clients", "list"], {"joserfc"}),
    ("edge_api", ["webhooks", "list"], {"joserfc"}),
    ("edge_api", ["requests", "list"], {"jinja2"}),
    ("edge_api", ["privacy", "export", "ann@example.org"], set[str]()),
    ("edge_api", ["privacy", "retain"], set[str]()),
    ("edge_api", ["backup"], set[str]()),
    ("edge_api", ["restore", "edge.db"], set[str]()),
    ("edge_api", ["copy", "--from=sqlite:///edge.db", "--to=sqlite:///copy.db"], set[str]()),
    ("edge_api", ["doctor"], {"aiohttp", "jinja2", "joserfc", "limits"}),
    ("edge_api", ["serve", "--help"], {"aiohttp", "jinja2", "joserfc"}),
    ("site_build", ["--help"], set[str]()),
    ("site_build", ["check", "--help"], set[str]()),
    ("site_build", ["list", "drafts"], {"jinja2", "pelican"}),  # it reads the settings
    ("site_build", ["serve", "--help"], {"aiohttp", "jinja2", "pelican"}),
]


def descend(program: str) -> Iterator[click.Context]:
    """Yield the contexts of the commands of a program, and of all commands below them."""
    top = Program("", COMMANDS[program])
    outer = click.Context(top, info_name=f"python -m {program}")
    for name in top.commands:
        _, command, _ = top.resolve_command(outer, [name])
        assert command
        yield click.Context(command, parent=outer, info_name=name)
        for inner, below in command.commands.items() if isinstance(command, click.Group) else ():
            parent = click.Context(command, parent=outer, info_name=name)
            yield click.Context(below, parent=parent, info_name=inner)


SUBCOMMANDS = [
    pytest.param(context, id=context.command_path.removeprefix("python -m "))
    for program in PROGRAMS
    for context in descend(program)
]


def test_all_subcommands_are_found() -> None:
    """The tests below see subcommands of both levels, of both programs."""
    found = {str(each.id) for each in SUBCOMMANDS}

    assert {"edge_api serve", "edge_api keys rotate", "site_build list"} <= found


@pytest.mark.parametrize("context", SUBCOMMANDS)
def test_a_subcommand_has_a_description_and_an_example_that_it_accepts(
    context: click.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--help` says what happens, and the command takes the example as it is printed."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(ROOT)
    usage, description, *sections, last = context.get_help().strip().split("\n\n")
    example = last.strip().removeprefix("Example: ")
    words = shlex.split(example)[len(context.command_path.split()) :]

    assert usage.startswith("Usage: ")
    assert description.strip()[0].isupper()
    assert len(description.split()) >= 4
    assert description.endswith(".")
    assert sections
    assert last != example
    assert f"{example} ".startswith(f"{context.command_path} ")
    if isinstance(context.command, click.Group):
        _, command, words = context.command.resolve_command(context, words)
        assert command
        command.make_context(None, words, parent=context)
    else:
        context.command.make_context(None, words, parent=context)


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_fits_a_terminal_of_80_columns(program: str) -> None:
    """But for examples, which stay in one piece so that they can be copied."""
    for context in descend(program):
        lines = context.get_help().splitlines()
        assert [each for each in lines if len(each) > 80 and "Example: " not in each] == []


SLIPS = {
    ("edge_api", "keyz"): "No such command 'keyz'. Did you mean 'keys'?",
    ("edge_api", "keys", "rotat"): "No such command 'rotat'. Did you mean 'rotate'?",
    ("edge_api", "copy", "--frm", "x"): "No such option '--frm'. Did you mean '--from'?",
    ("edge_api", "serve", "--por", "8000"): "No such option '--por'. Did you mean '--port'?",
    ("edge_api", "-x", "audit", "--json"): "No such option '-x'.",
    ("site_build", "chekc"): "No such command 'chekc'. Did you mean 'check'?",
    ("site_build", "schema", "--sett"): "No such option '--sett'. Did you mean '--settings'?",
    ("site_build", "-x", "schema", "--settings"): "No such option '-x'.",
    ("site_build", "check", "--yes"): "--yes belongs to --fix, which it lets write without asking.",
}


@pytest.mark.parametrize("words", SLIPS)
def test_a_misspelt_word_gets_a_suggestion(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Options are not abbreviated, and the options of a command come after it."""
    program, *given = words
    status = PROGRAMS[program](given)
    out, err = capsys.readouterr()
    said, see = err.splitlines()

    assert (status, out) == (2, "")
    assert said.split(": ", 1)[1] == SLIPS[words]
    assert see == f"See {said.split(': ', 1)[0]} --help."


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_is_a_command_as_well(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For the program and for a command; without a command the same is shown, as an error."""
    shown = []
    for words in (["help"], ["--help"], ["help", "serve"], ["serve", "-h"]):
        assert PROGRAMS[program](words) == 0
        shown.append(capsys.readouterr().out)
    assert PROGRAMS[program]([]) == 2

    assert shown[0] == shown[1] == capsys.readouterr().err
    assert shown[2] == shown[3]
    assert shown[2].startswith(f"Usage: python -m {program} serve ")


@pytest.mark.size("test")
@pytest.mark.parametrize(("program", "words", "expected"), [*IMPORTED[:2], *in_ci(*IMPORTED[2:])])
def test_a_command_imports_what_it_uses(
    tmp_path: Path, program: str, words: list[str], expected: set[str]
) -> None:
    """The slow packages that no line of the command needs are left alone."""
    code = (
        f"import sys\nfrom {program}.__main__ import main\n"
        "main(sys.argv[1:])\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    database = f"sqlite:///{tmp_path}/edge.db"
    (tmp_path / "content").mkdir()
    environment = {"DATABASE_URL": database, "PYTHONPATH": str(ROOT)}
    if program == "edge_api":
        migrate = [sys.executable, "-m", "edge_api", "migrate"]
        subprocess.run(migrate, cwd=tmp_path, env=environment, check=True, timeout=patience(120))
    ran = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=patience(120),
    )
    modules = ran.stderr.split()

    assert SLOW & set(modules) == expected
    if words == ["--help"]:
        commands = {"edge_api": "edge_api.cli.", "site_build": "site_build.cli."}[program]
        assert [name for name in modules if name.startswith(commands)] == []


@pytest.mark.parametrize(
    ("program", "words"),
    [("site_build", ["build"]), *in_ci(("site_build", ["check"]), ("edge_api", ["--help"]))],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, program: str, words: list[str], unbuffered: str
) -> None:
    """It blames the output, not the journal's own disk; a closed pipe is not reported."""
    (tmp_path / "content").mkdir()
    environment = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    read, write = os.pipe()
    os.close(read)
    with Path("/dev/full").open("wb") as full, open(write, "wb") as closed:  # noqa: PTH123
        ended = [
            subprocess.run(
                [sys.executable, "-m", program, *words],
                cwd=tmp_path,
                env=environment,
                check=False,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                timeout=patience(120),
            )
            for output in (full, closed)
        ]
    fault = "the standard output cannot be written (No space left on device)"
    assert [each.returncode for each in ended] == [1, 1]
    assert [each.stderr for each in ended] == [f"python -m {program}: {fault}\n", ""]


FORE_EDGE = "import sys; from site_build.__main__ import fore_edge; sys.exit(fore_edge())"
NOBODY = 65534
COMPLETED = {
    "fore-edge che": {"check"},
    "fore-edge leads list --status c": {"contacted"},
    "fore-edge mail r": {"receive", "retry", "run"},
    "fore-edge check --s": {"--settings", "--strict"},
    "fore-edge restore --fr": {"--from-replica"},
}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_what_is_typed(tmp_path: Path, shell: str) -> None:
    """`completion` prints the script, which asks the program for words that may follow."""

    def run(*words: str, **environment: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", FORE_EDGE, *words],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout

    assert f"_FORE_EDGE_COMPLETE={shell}_complete" in run("completion", shell)
    for typed, expected in COMPLETED.items():
        words = typed.split()
        at = words[-1] if shell == "fish" else str(len(words) - 1)
        said = run(_FORE_EDGE_COMPLETE=f"{shell}_complete", COMP_WORDS=typed, COMP_CWORD=at)
        found = re.findall(r"(?m)^(?:plain[,\n])?(--?[a-z-]+|[a-z-]{2,})(?=\t|$)", said)
        assert set(found) - {"plain"} == expected


def run_as_root(
    folder: Path, *words: str, python: str | Path = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run `fore-edge` as root in a folder."""
    return subprocess.run(
        [python, "-c", FORE_EDGE, *words],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(120),
    )


def test_root_drops_to_the_owner_of_the_folder(tmp_path: Path) -> None:
    """Even where `.env` is root's; it says when that user cannot run this Python."""
    closed, journal = tmp_path / "closed", tmp_path / "journal"
    closed.mkdir(mode=0o700)
    (closed / "python").symlink_to(sys.executable)
    journal.mkdir()
    (journal / ".env").touch()
    os.chown(journal, NOBODY, NOBODY)
    ended = run_as_root(journal, "backup", python=closed / "python")

    assert ended.returncode == 1
    assert "run this as the user nobody, in an environment that it can run: " in ended.stderr
    assert sorted(each.name for each in journal.iterdir()) == [".env"]


def test_root_reads_no_settings_of_another_user(tmp_path: Path) -> None:
    """`deploy` begins although `.env` of the folder is a pipe that nobody writes."""
    os.mkfifo(tmp_path / ".env")
    os.chown(tmp_path, NOBODY, NOBODY)
    ended = run_as_root(tmp_path, "deploy", "journal", "--owner", "ann@journal.example")

    assert ended.returncode == 2
    assert "'journal' is no domain, such as journal.example" in ended.stderr


@pytest.mark.parametrize("owned", ["", "pelicanconf.py"])
def test_root_runs_no_settings_of_another_user(tmp_path: Path, owned: str) -> None:
    """A Pelican site's settings are a program: root leaves them to the owner of site or file."""
    site = tmp_path / "site"
    (site / "content").mkdir(parents=True)
    settings = f"open({str(tmp_path / 'ran')!r}, 'w').close()\nSITENAME = PATH = 'content'\n"
    (site / "pelicanconf.py").write_text(settings)
    os.chown(site / owned, NOBODY, NOBODY)
    ended = run_as_root(tmp_path, "init", "journal", "--from", "site", "--trust")

    assert ended.returncode == 1
    assert "is a program of another user: run this as that user, not as root" in ended.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["site"]
