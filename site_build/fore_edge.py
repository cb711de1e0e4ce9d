"""`fore-edge`: the commands of both programs under one name, and `init`, `run` and `deploy`.

It imports the edge by name, and only for a command of the edge.
"""

import sys
from importlib import import_module
from typing import Any

from site_build import __main__ as build

_OWN = {
    "init": ("init", "make a journal in a folder, also from a Pelican site", "mysite --run"),
    "deploy": ("deploy", "serve a journal at a domain, with systemd and nginx", "journal.example"),
    "run": ("run", "build the journal, serve it, and publish what changes", ""),
}
_RENAMED = {"serve": "preview"}
"""Commands of the site build whose names the edge has too."""


def main() -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:]
    called = next((word for word in words if word[:1] != "-"), None)
    commands = _OWN | {_RENAMED.get(name, name): each for name, each in build.COMMANDS.items()}
    if called not in commands:
        edge: Any = import_module("edge_api.__main__")
        if called in edge.COMMANDS:
            return int(edge.main(words, "fore-edge"))
        commands |= {name: ("", *command) for name, command in edge.COMMANDS.items()}
    return build.main(words, "fore-edge", commands)


if __name__ == "__main__":
    sys.exit(main())
