"""The commands of `python -m edge_api`: they wire the parts together and speak to a terminal."""

import argparse
from typing import TYPE_CHECKING, Final, TypeAlias

EXAMPLE_ID: Final = "0199a5b2-7c3e-7d10-8a44-5f0c2b9e6d71"
"""The id in the examples of help texts."""

if TYPE_CHECKING:
    Subparsers: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001
else:
    Subparsers = argparse._SubParsersAction  # noqa: SLF001  argparse has no public name for it


def add_command(
    commands: Subparsers, name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """Add a command, whose help says its summary and shows `example`, the words after its name."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example: %(prog)s {example}",
    )
