"""`fore-edge`: the commands of both programs under one name, and `init`, `run` and `deploy`.

It imports the edge by name, and only for a command of the edge.
"""

import os
import pwd
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from site_build import __main__ as build

_OWN = {
    "init": ("init", "make a journal in a folder, also from a Pelican site", "mysite --run"),
    "deploy": (
        "deploy",
        "serve a journal at a domain, with systemd and nginx",
        "journal.example --owner ann@journal.example",
    ),
    "run": ("run", "build the journal, serve it, and publish what changes", ""),
}
_RENAMED = {"serve": "preview"}
"""Commands of the site build whose names the edge has too."""
_KEEPS_ROOT = {"init", "deploy"}


def main() -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:]
    called = next((word for word in words if word[:1] != "-"), None)
    if os.geteuid() == 0 and called not in _KEEPS_ROOT:
        _leave_root()
    commands = _OWN | {_RENAMED.get(name, name): each for name, each in build.COMMANDS.items()}
    if called not in commands:
        edge: Any = import_module("edge_api.__main__")
        if called in edge.COMMANDS:
            return int(edge.main(words, "fore-edge"))
        commands |= {name: ("", *command) for name, command in edge.COMMANDS.items()}
    return build.main(words, "fore-edge", commands)


def _leave_root() -> None:
    """Run this command anew as the user who owns the `.env` here, if that is not root.

    The owner's services could not change the files that root would make.
    """
    try:
        owner = pwd.getpwuid(Path(".env").stat().st_uid)
    except (OSError, KeyError):  # no journal, or one that is mounted from another system
        return
    if owner.pw_uid:
        words = ["runuser", "-u", owner.pw_name, "--", sys.executable, *sys.argv]
        try:
            os.execvp(words[0], words)  # noqa: S606  our own words
        except FileNotFoundError:
            sys.exit(f"fore-edge: root must not write here; run this as the user {owner.pw_name}")


if __name__ == "__main__":
    sys.exit(main())
