"""Migrations of the schema: steps in SQL files, only ever appended to.

A step is never edited and never derived from today's tables, for files out there have seen it. The
number of steps that a store has seen is its schema version. `step_N.sqlite.sql` and
`step_N.postgresql.sql` are one step.
"""

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Migration:
    """One change of the schema, applied completely or not at all."""

    sqlite: tuple[str, ...]
    """Statements in SQLite's dialect; `:now` stands for the instant at which the step is taken."""
    postgresql: tuple[str, ...]
    """The same in PostgreSQL's, where `current_setting('fore_edge.now')` is that instant.

    A parameter could not stand there: statements that define something take none.
    """


def _read(name: str) -> tuple[str, ...]:
    """Return the statements of a file, below the comment that says what the step does."""
    body = (_FOLDER / name).read_text(encoding="utf-8").partition("\n\n")[2]
    return tuple(text.strip() for text in body.split(";\n") if text.strip())


def _read_step(number: int) -> Migration | None:
    """Return a step; `None` after the last."""
    if not (_FOLDER / f"step_{number}.sqlite.sql").exists():
        return None
    if not (_FOLDER / f"step_{number}.postgresql.sql").exists():
        raise SystemExit(f"step_{number}.sqlite.sql has no step_{number}.postgresql.sql: add it")
    return Migration(_read(f"step_{number}.sqlite.sql"), _read(f"step_{number}.postgresql.sql"))


MIGRATIONS: Final = tuple(iter(map(_read_step, count(1)).__next__, None))
"""Every step, oldest first."""
