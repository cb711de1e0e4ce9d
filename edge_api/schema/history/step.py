"""What one step of the schema's history is."""

from dataclasses import dataclass


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
