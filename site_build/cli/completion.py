"""`completion`: prints a shell script that completes the commands of `fore-edge`."""

from typing import Final

from click import Argument, Choice, Command
from click.shell_completion import get_completion_class

from edge_api.schema.commands import Arguments

PARAMS: Final = (
    Argument(["shell"], type=Choice(("bash", "zsh", "fish")), help="the shell that reads it"),
)


def run(arguments: Arguments) -> int:
    """Print the script, which runs this program at each completion."""
    shell = get_completion_class(arguments.shell)
    assert shell  # noqa: S101  click has a class for each choice
    print(shell(Command(None), {}, "fore-edge", "_FORE_EDGE_COMPLETE").source())  # noqa: T201
    return 0
