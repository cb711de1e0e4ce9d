"""The command lines `python -m site_build COMMAND`, and `fore-edge COMMAND` for both programs.

Only the module of the given command is imported: importing the preview takes longer than building a
small site.
"""

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from edge_api.schema.commands import Program, Sections, run_program
from site_build.errors import BuildError
from site_build.options import apply_settings_option

COMMANDS: Sections = {
    "Write": {
        "new": (
            "site_build.cli.new",
            "start a post as a draft",
            '"A first post" --tags "paper, ink"',
        ),
        "check": (
            "site_build.cli.check",
            "list every defect of the content, and write nothing",
            "--strict",
        ),
        "serve": (
            "site_build.cli.serve",
            "preview the content, drafts and scheduled posts included",
            "--open",
        ),
        "card": (
            "site_build.cli.card",
            "draw a post's card, and show how search results and feeds present the post",
            "what-a-fore-edge-is",
        ),
        "share": (
            "site_build.cli.share",
            "share a draft at a secret address, for some days",
            "a-first-post --days 3",
        ),
        "list": (
            "site_build.cli.list_documents",
            "list drafts, scheduled posts, or documents that were not updated for long",
            "stale --older-than 180",
        ),
        "schema": (
            "site_build.cli.schema",
            "print the front matter's JSON Schema, or settings of an editor",
            "--settings",
        ),
    },
    "Publish": {
        "post": (
            "site_build.cli.post",
            "publish, schedule or withdraw a post: its head is changed, and nothing else",
            "publish a-first-post",
        ),
        "build": (
            "site_build.cli.build",
            "build the site and its index",
            "--site-url https://example.org",
        ),
        "watch": (
            "site_build.cli.watch",
            "keep running, and build when the content changes or a scheduled post is due",
            "--site-url https://example.org",
        ),
        "push": (
            "site_build.cli.push",
            "send the served build to a bucket that edges fetch it from, or a site to a web host",
            "s3://builds/journal",
        ),
    },
}
FORMER_COMMANDS = {"publish": "watch"}
"""Commands by their former names, which still work and are not listed."""
_FORE_EDGE_COMMANDS: Sections = {
    "Begin": {
        "try": (
            "site_build.cli.try_journal",
            "show a journal of another system as it would be here, and write nothing where it is",
            "../my-hugo-site",
        ),
        "init": (
            "site_build.cli.init",
            "make a journal in a folder, also of one of another system",
            "mysite --run",
        ),
        "run": ("site_build.cli.run", "build the journal, serve it, and publish what changes", ""),
        "deploy": (
            "site_build.cli.deploy",
            "serve a journal at a domain, with systemd and nginx",
            "journal.example --owner ann@journal.example",
        ),
        "completion": (
            "site_build.cli.completion",
            "print what lets your shell complete commands and options",
            "bash > ~/.local/share/bash-completion/completions/fore-edge",
        ),
    },
}
"""Commands that only `fore-edge` has."""


def main(
    words: Sequence[str] | None = None,
    commands: Sections = COMMANDS,
    prog: str = "python -m site_build",
) -> int:
    """Run one command; return 0, 1 if content or disk is at fault, or 2 for wrong arguments."""
    words = sys.argv[1:] if words is None else words
    words = [*(FORMER_COMMANDS.get(each, each) for each in words[:1]), *words[1:]]
    program = Program("Write, check, build, preview and publish a journal.", commands)
    try:
        if words[:1] != ["schema"]:  # that command has a different --settings
            apply_settings_option(words)
        return run_program(program, words, prog)
    except BuildError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return refusal.exitcode


def fore_edge() -> int:
    """Run a command of either program; the edge, which this may not import, is loaded by name."""
    called = next((word for word in sys.argv[1:] if word[:1] != "-"), None)
    if os.geteuid() == 0 and called not in {"init", "deploy"}:
        _drop_privileges()
    # The edge has its own `serve`, so here the one of this program is called `preview`.
    writing = {"preview" if e == "serve" else e: each for e, each in COMMANDS["Write"].items()}
    edge: Any = import_module("edge_api.__main__")
    return main(
        None, {**_FORE_EDGE_COMMANDS, **COMMANDS, "Write": writing, **edge.COMMANDS}, "fore-edge"
    )


def _drop_privileges() -> None:
    """Run this command as the owner of this folder, unless that is root, and exit with its status.

    As root, this would execute that user's settings, and make files that the user's services could
    not change. If root owns the folder, the owner of the settings counts.
    """
    names = (".", ".env", "pelicanconf.py")
    owners = (os.lstat(each).st_uid for each in names if os.path.lexists(each))
    if not (uid := next(filter(None, owners), 0)):
        return
    name, gid, groups = str(uid), os.lstat(".").st_gid, list[int]()
    with suppress(KeyError):  # this system may not know the owner of a mounted folder
        name, _, _, gid, *_ = pwd.getpwuid(uid)
        groups = os.getgrouplist(name, gid)
    passed_on, early = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP), list[int]()
    for number in passed_on:  # one that comes before `Popen` returns is sent below
        signal.signal(number, lambda number, _: early.append(number))
    try:
        # In its own session, the process cannot type commands into root's terminal.
        child = subprocess.Popen(  # noqa: S603  our own arguments
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
    for number in passed_on:
        signal.signal(number, lambda number, _: child.send_signal(number))
    for caught in early:
        child.send_signal(caught)
    sys.exit(child.wait())


if __name__ == "__main__":
    sys.exit(main())
