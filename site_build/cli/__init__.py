"""The commands of the site build, one module each: their options, and what they print."""

from types import ModuleType

from edge_api.schema.commands import Arguments


def execute(command: ModuleType, arguments: Arguments) -> int:
    """Run a command; return its exit status. Raises BuildError."""
    return int(command.run(arguments))
