"""Walks over the five tables: each column by each operator, and rows through their whole life."""

from typing import Any, Final

from tests.replay.walk import JSON, Walk, walk

ADMIN: Final = "/api/public/v1/admin"
OBJECT: Final = "application/vnd.pgrst.object+json"
ROWS: Final[dict[str, list[dict[str, Any]]]] = {
    "leads": [
        {
            "id": "00000000-0000-4000-8000-00000000000a",
            "name": "=Ann",
            "email": "a@example.org",
            "budget_tier": "x",
            "message": 'one, "two"',
            "created_at": "2021-01-01T00:00:00Z",
            "spam_reasons": ["link"],
        },
        {
            "id": "00000000-0000-4000-8000-00000000000b",
            "name": "Bo",
            "email": "b@example.org",
            "budget_tier": "y",
            "message": "two",
            "created_at": "2021-01-02T00:00:00.123456Z",
            "status": "won",
            "notes": "n",
        },
    ],
    "email_send_log": [
        {
            "id": "00000000-0000-4000-8000-00000000000c",
            "template_name": "lead_notice",
            "recipient_email": "a@example.org",
            "status": "sent",
            "message_id": "m-1",
            "metadata": {"a": 1},
            "created_at": "2021-01-01T00:00:00Z",
        }
    ],
    "email_send_state": [{"id": 1, "batch_size": 20, "updated_at": "2021-01-01T00:00:00Z"}],
    "email_unsubscribe_tokens": [
        {
            "id": "00000000-0000-4000-8000-00000000000d",
            "token": "t" * 32,
            "email": "A@example.org",
            "created_at": "2021-01-01T00:00:00Z",
        }
    ],
    "suppressed_emails": [
        {
            "id": "00000000-0000-4000-8000-00000000000e",
            "email": "Gone@Example.org",
            "reason": "bounce",
            "created_at": "2021-01-01T00:00:00Z",
        }
    ],
}
COLUMNS: Final = {
    "leads": ("id", "name", "created_at", "status", "notes", "spam_score", "spam_reasons"),
    "email_send_log": ("message_id", "recipient_email", "metadata"),
    "email_send_state": ("id", "retry_after_until", "batch_size"),
    "email_unsubscribe_tokens": ("token", "used_at"),
    "suppressed_emails": ("email", "reason"),
}
CONDITIONS: Final = (
    "eq.x",
    "neq.1",
    "gt.2021-01-01",
    "lte.00000000-0000-4000-8000-00000000000a",
    "like.*n*",
    "ilike.A*",
    "is.null",
    "not.is.null",
    "in.(1,Bo,won)",
)
WRITES: Final[tuple[Any, ...]] = (
    {},
    {"match": {}},
    {"match": {"id": 1}, "values": {}},
    {"values": {"a": 1}},
    {"match": []},
    {"match": {"none": 1}, "values": {"name": "x"}},
    {"match": {"id": "x"}, "values": {"id": 1}},
    {"match": {"created_at": None}, "values": {"created_at": "x"}},
    {"match": 5},
    [],
    "x",
    {"match": {"created_at": ["2021-01-01"]}, "values": {"none": 1}},
    {"match": {"id": {}}},
)
QUERIES: Final = (
    "?select=none",
    "?select=id",
    "?id=eq.1",
    "?on_conflict=id",
    "?columns=id",
    "?select=a:id",
    "?limit=1",
    "?select=",
    "?order=id",
)


def fill(w: Walk) -> None:
    """Store the rows."""
    w.ask("DELETE", f"{ADMIN}/email_send_state", key="all", json_body={"match": {"id": 1}})
    for table, rows in ROWS.items():
        w.post(f"{ADMIN}/{table}", rows, key="all")


@walk("administrative-columns")
def columns(w: Walk) -> None:
    """Filter by columns of each type with each operator, and ask for each form."""
    fill(w)
    for table, names in COLUMNS.items():
        for name in names:
            for condition in CONDITIONS:
                w.get(f"{ADMIN}/{table}?select={name}&{name}={condition}", key="all")
        for accept in ("text/csv", OBJECT, "text/html", f"{JSON};q=0.1, text/csv", "*/*"):
            w.get(f"{ADMIN}/{table}?order={names[0]}", key="all", headers={"Accept": accept})
        w.get(f"{ADMIN}/{table}?limit=1", key="all", headers={"Prefer": "count=exact"})
        w.get(f"{ADMIN}/{table}?limit=0", key="all")
        w.get(f"{ADMIN}/{table}?offset=5", key="all", headers={"Prefer": "count=exact"})


@walk("administrative-life-of-rows")
def life(w: Walk) -> None:
    """Insert, change and delete rows of each table, and see what the audit log has."""
    fill(w)
    fill(w)
    for table, rows in ROWS.items():
        target, first = f"{ADMIN}/{table}", rows[0]
        match = {"id": first["id"]}
        values = (
            {"created_at": "2021-05-05T00:00:00Z"} if "created_at" in first else {"batch_size": 5}
        )
        for body in WRITES:
            w.ask("PATCH", target, key="all", json_body=body)
            w.ask("DELETE", target, key="all", json_body=body)
            w.post(target, body, key="all")
        for query in QUERIES:
            w.ask(
                "PATCH", f"{target}{query}", key="all", json_body={"match": match, "values": values}
            )
        change = {"match": match, "values": values}
        w.ask("PATCH", target, key="all", json_body=change, headers={"Accept": OBJECT})
        w.ask("PATCH", target, key="all", json_body=change, headers={"Accept": "text/csv"})
        w.ask("PATCH", target, key="reading", json_body=change)
        w.ask("PATCH", target, key="writing", json_body=change)
        w.post(target, first, key="all", headers={"Prefer": "resolution=merge-duplicates"})
        for wanted in (None, match["id"]):
            w.ask(
                "DELETE",
                target,
                key="all",
                json_body={"match": {"id": wanted}},
                headers={"Accept": OBJECT},
            )
        w.get(target, key="all")
        w.post(f"{target}?columns=id", first, key="all")
        w.post(f"{target}?select=id", first, key="all", headers={"Accept": "text/csv"})
        w.post(target, [first] * 1001, key="all")
    w.audit()
    w.command("audit", "--limit", "5")
