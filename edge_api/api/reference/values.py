"""What the reference is made of: pages, and the operations on them, as values."""

from collections.abc import Mapping
from dataclasses import dataclass

from edge_api.api.reference.prose import Code, Prose


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a member of a body."""

    name: str
    """A member of a member stands behind the name of that, with a dot between."""
    kind: str
    """Such as `integer`, or `array of string`."""
    mark: str
    """`needed` in what is sent, `may be absent` in what comes back, or nothing."""
    sentence: Prose
    place: str = ""
    """Of a parameter: path, query or header."""


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent, or what comes back."""

    media_types: tuple[str, ...]
    fields: tuple[Field, ...]
    is_deeper: bool
    """Whether there are members that are not listed here for their depth."""
    example: Code | None
    """`None` also for what is sent: the examples in the languages show it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One status that an operation answers with."""

    status: str
    phrase: str
    """As HTTP calls the status."""
    sentence: Prose
    headers: Mapping[str, Prose]
    body: Body | None
    """`None` where there is none, and for an error: all errors have one body."""


@dataclass(frozen=True, slots=True)
class Example:
    """The same request in one language."""

    label: str
    code: Code


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation."""

    anchor: str
    method: str
    path: str
    summary: str
    about: Prose
    access: Prose
    """Which credential it takes, and how often it may be asked."""
    parameters: tuple[Field, ...]
    body: Body | None
    answers: tuple[Answer, ...]
    problems: tuple[Answer, ...]
    examples: tuple[Example, ...]
    remark: Prose
    """Why there are no examples, where there are none."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the reference: its own words, then operations."""

    path: str
    name: str
    """As the list of pages has it."""
    title: str
    description: str
    prose: Prose
    entries: tuple[Entry, ...] = ()
