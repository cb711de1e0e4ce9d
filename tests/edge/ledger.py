"""The answers that clients got, compared with the rows of the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.edge.load import Outcome
from tests.edge.postgresql import PostgreSQL


@dataclass
class Difference:
    """Stored rows that differ from what clients were told."""

    lost: set[str] = field(default_factory=set)
    """Leads that were acknowledged and are not there."""
    doubled: set[str] = field(default_factory=set)
    """Idempotency keys with more than one lead."""
    unacknowledged: set[str] = field(default_factory=set)
    """Keys with a lead that was not acknowledged; each client asked until it was."""


def compare(outcome: Outcome, stored: Mapping[str, list[str]]) -> Difference:
    """Return how the two differ."""
    acknowledged = outcome.acknowledged
    return Difference(
        lost={key for key, row in acknowledged.items() if row not in stored.get(key, ())},
        doubled={key for key, rows in stored.items() if len(rows) > 1},
        unacknowledged=stored.keys() - acknowledged.keys(),
    )


def stored_leads(postgresql: PostgreSQL, url: str) -> dict[str, list[str]]:
    """Return the ids of all leads in a database, by their message, which is the key."""
    found: dict[str, list[str]] = {}
    question = "SELECT message, id FROM fore_edge.leads"
    for message, row in postgresql.execute(question, url.rpartition("/")[2]):
        found.setdefault(message, []).append(row)
    return found
