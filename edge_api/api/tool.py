"""What makes an operation a tool of the MCP endpoint: what a model reads before it chooses.

What a tool takes and gives is the operation's own declaration; here stands only what differs. The
protocol is not known here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from edge_api.schema.scopes import Scope

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hints:
    """How careful a client had best be with a tool; all four are always said."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    """Whether it reaches beyond this service."""


READS: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
ADDS: Final = Hints(read_only=False, destructive=False, idempotent=False, open_world=False)


@dataclass(frozen=True, slots=True)
class HeaderArgument:
    """An argument that REST has as a header."""

    header: str
    schema: Mapping[str, Any]


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Tool:
    """One way to use an operation; an operation may be several tools, and a tool several of them.

    `arguments` names what is offered, and what the operation calls it; without it everything is,
    under its own name.
    """

    name: str
    """At most 128 letters, digits, underscores, hyphens and dots."""
    title: str
    description: str
    hints: Hints = READS
    arguments: Mapping[str, str] | None = None
    defaults: Mapping[str, int | str] = field(default_factory=lambda: MappingProxyType({}))
    """What is asked for, by the operation's name, where the caller does not say."""
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    """By the operation's name, in place of the operation's own schema."""
    required: tuple[str, ...] = ()
    """What must be given, by the operation's name, though the operation could do without."""
    headers: Mapping[str, HeaderArgument] = field(default_factory=lambda: MappingProxyType({}))
    chooser: str = ""
    """The argument that says which operation is meant, by the last step of its path."""
    present: Callable[[Any], Any] = _as_it_is
    """Makes the result of the answer's JSON."""
    scope: Scope | None = None
    """What a credential needs where that is not what the operation needs."""
    output: Mapping[str, Any] | None = None
    """The JSON Schema of the result; without it, that of the operation's first success."""
