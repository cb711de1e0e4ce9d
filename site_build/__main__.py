"""The command line of the site build: `python -m site_build COMMAND`, and `fore-edge` of both.

Only the module of the command that is asked for is imported: to import the preview takes longer
than to build a small site.
"""

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

from site_build.errors import BuildError
from site_build.options import Parser, choose_settings, read_settings

_PROG = "python -m site_build"
Commands: TypeAlias = Mapping[str, tuple[str, str, str]]
COMMANDS: Commands = {
    "check": ("check", "list every defect of the content, and write nothing", "--strict"),
    "new": ("new", "start a post as a draft", '"A first post" --tags "paper, ink"'),
    "post": (
        "post",
        "publish, schedule or withdraw a post: its head is changed, and nothing else",
        "publish a-first-post",
    ),
    "build": ("build", "build the site and its index", "--site-url https://example.org"),
    "watch": (
        "watch",
        "keep running, and build when the content changes or a scheduled post is due",
        "--site-url https://example.org",
    ),
    "card": (
        "card",
        "draw a post's card, and show how search results and feeds present the post",
        "what-a-fore-edge-is",
    ),
    "serve": ("serve", "preview the content, drafts and scheduled posts included", "--open"),
    "share": ("share", "share a draft at a secret address, for some days", "a-first-post --days 3"),
    "list": (
        "list_documents",
        "list drafts, scheduled posts, or documents that were not updated for long",
        "stale --older-than 180",
    ),
    "schema": (
        "schema",
        "print the front matter's JSON Schema, or settings of an editor",
        "--settings",
    ),
}
"""Each command's module in `site_build.cli`, summary, and example of the words after its name."""
ALIASES = {"publish": "watch"}
"""Former names, which are understood and not listed."""
_OWN = {
    "init": ("init", "make a journal in a folder, also from a Pelican site", "mysite --run"),
    "deploy": (
        "deploy",
        "serve a journal at a domain, with systemd and nginx",
        "journal.example --owner ann@journal.example",
    ),
    "run": ("run", "build the journal, serve it, and publish what changes", ""),
}
"""Those that `fore-edge` has besides."""
_KEEPS_ROOT = {"init", "deploy"}


def main(
    words: Sequence[str] | None = None,
    prog: str = _PROG,
    commands: Commands = COMMANDS,
    read: Callable[[], Mapping[str, str]] = read_settings,
) -> int:
    """Run one command; return 0, 1 when content or disk is at fault, or 2 for what was asked."""
    words = sys.argv[1:] if words is None else words
    words = [*(ALIASES.get(each, each) for each in words[:1]), *words[1:]]
    try:
        arguments = make_parser(words, read(), prog, commands).parse_args(words)
        return int(_load(commands[arguments.command][0]).run(arguments))
    except BuildError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return refusal.exitcode
    except KeyboardInterrupt:
        return 130


def make_parser(
    words: Sequence[str],
    settings: Mapping[str, str],
    prog: str = _PROG,
    commands: Commands = COMMANDS,
) -> Parser:
    """Return the parser, with the options of the command that `words` name and of no other."""
    parser = Parser(prog=prog, description="Write, check, build, preview and publish a journal.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    named = next((word for word in words if word in commands), None)
    if named != "schema":  # its option of this name is another
        choose_settings(words)
    for name, (module, summary, example) in commands.items():
        command = subparsers.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example: %(prog)s {example}",
        )
        if name == named:
            _load(module).add_options(command, settings)
    return parser


def _load(module: str) -> ModuleType:
    """Return the module of a command.

    Its `add_options` declares options on a parser, whose defaults are the settings; its `run` takes
    the parsed arguments and returns the exit status.
    """
    return import_module(f"site_build.cli.{module}")


def fore_edge() -> int:
    """Run a command of either program; the edge is imported by name, and only for its commands."""
    words = sys.argv[1:]
    called = next((ALIASES.get(word, word) for word in words if word[:1] != "-"), None)
    if os.geteuid() == 0 and called not in _KEEPS_ROOT:
        _leave_root()
    # The edge has a `serve` of its own.
    commands = _OWN | {"preview" if e == "serve" else e: each for e, each in COMMANDS.items()}
    if called not in commands:
        edge: Any = import_module("edge_api.__main__")
        if called in edge.COMMANDS or words[:1] == ["--version"]:
            return int(edge.main(words, "fore-edge"))
        commands |= {name: ("", *command) for name, command in edge.COMMANDS.items()}
    # These work on other folders: the settings of this one, which may be another user's, are none.
    read = os.environ.copy if called in _KEEPS_ROOT else read_settings
    return main(words, "fore-edge", commands, read)


def _leave_root() -> None:
    """Run this command anew as the user of this folder, if that is not root, and end with it.

    Root would run settings of that user, and make files that its services could not change. In a
    folder of root's, the owner of its settings counts.
    """
    names = (".", ".env", "pelicanconf.py")
    owners = (os.lstat(each).st_uid for each in names if os.path.lexists(each))
    if not (uid := next(filter(None, owners), 0)):
        return
    name, gid, groups = str(uid), os.lstat(".").st_gid, list[int]()
    with suppress(KeyError):  # a folder may be mounted from another system
        name, _, _, gid, *_ = pwd.getpwuid(uid)
        groups = os.getgrouplist(name, gid)
    try:
        # In a session of its own: with root's terminal it could type commands there.
        child = subprocess.Popen(  # noqa: S603  our own words
            [sys.executable, *sys.argv],
            user=uid,
            group=gid,
            extra_groups=groups,
            start_new_session=True,
        )
    except OSError:
        sys.exit(
            f"fore-edge: root must not write here; run this as the user {name}, in an environment "
            f"that it can run: {sys.executable} is closed to it"
        )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: child.send_signal(number))
    sys.exit(child.wait())


if __name__ == "__main__":
    sys.exit(main())
