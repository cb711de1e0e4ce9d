"""A migration step, for SQLite and PostgreSQL."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the schema, carried out whole or not at all."""

    sentence: str
    sqlite: tuple[str, ...]
    """Statements in SQLite's dialect; `:now` stands for the instant at which the step is taken."""
    postgresql: tuple[str, ...]
    """The same in PostgreSQL's, where `current_setting('fore_edge.now')` is that instant.

    A parameter could not stand there: statements that define something take none.
    """


_JSON: Final = re.compile(r"TEXT CHECK \((\w+) IS NULL OR json_valid\(\1\)\)")
_PATTERNS: Final = (
    ("GLOB '????????-????-????-????-????????????'", "LIKE '________-____-____-____-____________'"),
    ("GLOB '????-??-??T??:??:??.??????Z'", "LIKE '____-__-__T__:__:__.______Z'"),
    ("TEXT", 'text COLLATE "C"'),
    ("INTEGER", "bigint"),
    (") STRICT", ")"),
    (":now", "current_setting('fore_edge.now')"),
)


def in_both_dialects(sentence: str, sqlite: tuple[str, ...]) -> Step:
    """Return a step from its statements for SQLite; PostgreSQL's are these, translated.

    The translation belongs to the past, as the steps do, and is never edited. A step that it does
    not fit names the statements of both engines itself.
    """
    return Step(sentence, sqlite, tuple(map(_translate, sqlite)))


def _translate(statement: str) -> str:
    statement = _JSON.sub("json", statement)
    for ours, theirs in _PATTERNS:
        statement = statement.replace(ours, theirs)
    return statement
