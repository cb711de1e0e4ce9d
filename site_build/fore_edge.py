"""`fore-edge`: the commands of both programs under one name, and `init` and `run`.

It imports the edge by name, and only for a command of the edge.
"""

import sys
from importlib import import_module
from typing import Any

from site_build.__main__ import COMMANDS, Program
from site_build.__main__ import main as run_build_command

_OWN = {
    "init": ("init", "make a journal in a folder, also from a Pelican site", "mysite --run"),
    "run": ("run", "build the journal, serve it, and publish what changes", ""),
}
_RENAMED = {"serve": "preview"}
"""Commands of the site build whose names the edge has too."""
_ABOUT = "Write a journal, build it, serve it, and manage its store."


def main() -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:]
    build = {_RENAMED.get(name, name): command for name, command in COMMANDS.items()}
    commands = {**_OWN, **build}
    if not words or words[0] not in commands:
        edge: Any = import_module("edge_api.__main__")
        if words and words[0] in edge.COMMANDS:
            return int(edge.main(words, "fore-edge"))
        commands |= {name: ("", *command) for name, command in edge.COMMANDS.items()}
    return run_build_command(words, Program("fore-edge", _ABOUT, commands))


if __name__ == "__main__":
    sys.exit(main())
