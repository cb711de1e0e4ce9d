"""Both command lines: every subcommand explains itself, and imports only what it uses."""

import argparse
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from edge_api.__main__ import make_parser as make_edge_parser
from site_build.__main__ import make_parser as make_build_parser
from tests.patience import patience
from tests.sizes import in_ci

ROOT = Path(__file__).resolve().parent.parent
MakeParser = Callable[[Sequence[str]], argparse.ArgumentParser]
PROGRAMS: dict[str, MakeParser] = {
    "edge_api": make_edge_parser,
    "site_build": lambda words: make_build_parser(words, {}),
}
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
    ("edge_api", ["serve", "--help"], {"aiohttp", "jinja2", "joserfc", "limits"}),
    ("site_build", ["--help"], set[str]()),
    ("site_build", ["check", "--help"], set[str]()),
    ("site_build", ["list", "drafts"], {"jinja2", "pelican"}),  # it reads the settings
    ("site_build", ["serve", "--help"], {"aiohttp", "jinja2", "pelican"}),
]


def below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a parser's subcommands, by name.

    argparse has no public name for them: an upgrade that renames them fails here.
    """
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def descend(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and all parsers below it."""
    yield parser
    for each in below(parser).values():
        yield from descend(each)


SUBCOMMANDS = [
    pytest.param(program, parser, id=parser.prog.removeprefix("python -m "))
    for program, make_parser in PROGRAMS.items()
    for name in below(make_parser([]))
    for parser in descend(below(make_parser([name]))[name])
]


def test_all_subcommands_are_found() -> None:
    """The tests below see subcommands of both levels, of both programs."""
    found = {str(each.id) for each in SUBCOMMANDS}

    assert {"edge_api serve", "edge_api keys rotate", "site_build list"} <= found


@pytest.mark.parametrize(("program", "parser"), SUBCOMMANDS)
def test_a_subcommand_has_a_description_and_an_example_that_it_accepts(
    program: str, parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--help` says what happens, and the program's parser takes the example as it is printed."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(ROOT)
    usage, description, *sections, last = parser.format_help().strip().split("\n\n")
    example = last.removeprefix("example: ")
    words = shlex.split(example)[3:]
    parsed = PROGRAMS[program](words).parse_args(words)

    assert usage.startswith("usage: ")
    assert description[0].isupper()
    assert len(description.split()) >= 4
    assert description.endswith(".")
    assert sections
    assert last != example
    assert f"{example} ".startswith(f"{parser.prog} ")
    assert parsed.command == words[0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_option_before_the_command_is_the_one_that_is_named(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The options of the command are known although it does not come first."""
    words = ["--wrong", {"edge_api": "audit", "site_build": "schema"}[program]]
    words.append({"edge_api": "--json", "site_build": "--settings"}[program])
    with pytest.raises(SystemExit) as end:
        PROGRAMS[program](words).parse_args(words)
    said = capsys.readouterr().err

    assert end.value.code == 2
    assert "unrecognized arguments: --wrong" in said
    assert words[-1] not in said.splitlines()[-1]


@pytest.mark.size("test")
@pytest.mark.parametrize(("program", "words", "expected"), [*IMPORTED[:2], *in_ci(*IMPORTED[2:])])
def test_a_command_imports_what_it_uses(
    tmp_path: Path, program: str, words: list[str], expected: set[str]
) -> None:
    """The slow packages that no line of the command needs are left alone."""
    code = (
        f"import sys\nfrom {program}.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
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


FORE_EDGE = "import sys; from site_build.__main__ import fore_edge; sys.exit(fore_edge())"
NOBODY = 65534


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


def test_root_gives_way_to_the_owner_of_the_folder(tmp_path: Path) -> None:
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
    settings = f"open({str(tmp_path / 'ran')!r}, 'w').close()\nPATH = 'content'\n"
    (site / "pelicanconf.py").write_text(settings)
    os.chown(site / owned, NOBODY, NOBODY)
    ended = run_as_root(tmp_path, "init", "journal", "--from-pelican", "site")

    assert ended.returncode == 1
    assert "is a program of another user: run this as that user, not as root" in ended.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["site"]
