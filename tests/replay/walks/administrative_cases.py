"""Walks over the cases of PostgREST's dialect: reads and writes on known rows."""

import json
from pathlib import Path
from typing import Any, Final

from tests.replay.walk import JSON, Walk, walk

ADMIN: Final = "/api/public/v1/admin"
CASES: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "admin_cases.json").read_text(encoding="utf-8")
)


def fill(w: Walk, fixture: dict[str, list[dict[str, Any]]]) -> None:
    """Store the rows that the cases are about."""
    w.ask("DELETE", f"{ADMIN}/email_send_state", key="all", json_body={"match": {"id": 1}})
    for table, rows in fixture.items():
        w.post(f"{ADMIN}/{table}", rows, key="all")


def read(w: Walk, suite: dict[str, Any]) -> None:
    """Send every read, some of them in other forms too."""
    fill(w, suite["fixture"])
    for number, (_, table, query, headers) in enumerate(suite["reads"]):
        target = f"{ADMIN}/{table}?{query}"
        w.get(target, key="all", headers=headers)
        if number % 4 == 0:
            w.get(target, key="all", headers={**headers, "Accept": "text/csv"})
        if number % 8 == 1:
            w.ask("HEAD", target, key="all", headers={**headers, "Prefer": "count=exact"})


def write(w: Walk, suite: dict[str, Any]) -> None:
    """Send every write, with what it left."""
    fill(w, suite["fixture"])
    for _, method, table, body, then, query in suite["writes"]:
        target = f"{ADMIN}/{table}"
        headers = {"Content-Type": JSON}
        w.ask(method, target, key="all", headers=headers, body=body.encode())
        w.get(f"{ADMIN}/{then or table}?{query}", key="all")


@walk("administrative-reads")
def shared_reads(w: Walk) -> None:
    """Read by the cases that were taken from PostgREST."""
    read(w, CASES["shared"])


@walk("administrative-own-reads")
def own_reads(w: Walk) -> None:
    """Read by the cases of this project."""
    read(w, CASES["own"])


@walk("administrative-write-cases")
def shared_writes(w: Walk) -> None:
    """Write by the cases that were taken from PostgREST."""
    write(w, CASES["shared"])


@walk("administrative-own-write-cases")
def own_writes(w: Walk) -> None:
    """Write by the cases of this project."""
    write(w, CASES["own"])
