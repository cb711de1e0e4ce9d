"""Cases of each table: the members that a new row needs, and values that break a constraint."""

from typing import Any

from edge_api.db.table import Column
from edge_api.db.tables import TABLES
from edge_api.db.types import ColumnType

INSTANT = "2026-01-31T08:05:09.000000Z"
UUID = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"


def minimal_values(name: str) -> dict[str, Any]:
    """Return the least that a new row of a table must bring, by the declared kinds and bounds."""
    columns = TABLES[name].columns.values()
    return {column.name: _least(column) for column in columns if column.required}


def _least(column: Column) -> Any:
    if column.choices:
        return column.choices[0]
    if column.kind is ColumnType.TEXT:
        return "a@b" if "email" in column.name else "x" * (column.bounds[0] or 0)
    return {
        ColumnType.TIMESTAMP: INSTANT,
        ColumnType.UUID: UUID,
        ColumnType.JSON: "{}",
        ColumnType.INTEGER: 0,
    }[column.kind]


BREACHES: list[tuple[str, dict[str, Any]]] = [
    ("leads", {"name": ""}),
    ("leads", {"name": "x" * 101}),
    ("leads", {"email": "x" * 256}),
    ("leads", {"message": "x" * 2001}),
    ("leads", {"status": "lukewarm"}),
    ("leads", {"source": ""}),
    ("leads", {"id": "1"}),
    ("leads", {"created_at": "2026-01-31"}),
    ("leads", {"created_at": "2026-01-31 08:05:09.000000Z"}),
    ("leads", {"consent_at": "x" * 27}),
    ("leads", {"spam_reasons": "{"}),
    ("leads", {"spam_score": 10**18 + 1}),
    ("leads", {"spam_score": "many"}),
    ("leads", {"spam_score": None}),
    ("leads", {"name": None}),
    ("leads", {"notes": b"bytes"}),
    ("email_send_log", {"status": "lost"}),
    ("email_send_log", {"error_message": "x" * 1001}),
    ("email_send_log", {"metadata": "not json"}),
    ("email_send_state", {"id": 2}),
    ("email_send_state", {"batch_size": 0}),
    ("email_send_state", {"batch_size": 1001}),
    ("email_send_state", {"send_delay_ms": -1}),
    ("email_unsubscribe_tokens", {"token": "t" * 31}),
    ("email_unsubscribe_tokens", {"email": "A@B"}),
    ("suppressed_emails", {"email": "Ada@example.org"}),
    ("suppressed_emails", {"reason": "dislike"}),
    ("credentials", {"digest": "d" * 63}),
    ("credentials", {"type": "password"}),
    ("idempotency_keys", {"id": "short"}),
    ("audit_log", {"rows": None}),
    ("oauth_clients", {"kind": "friend"}),
    ("oauth_clients", {"auth_method": "password"}),
    ("oauth_clients", {"jwks": "not json"}),
    ("oauth_clients", {"secret_digest": "short"}),
    ("oauth_grants", {"credential_id": "1"}),
    ("oauth_codes", {"challenge": "c" * 42}),
    ("oauth_refresh_tokens", {"id": "short"}),
    ("oauth_revoked_tokens", {"expires_at": "soon"}),
    ("access_requests", {"status": "lost"}),
    ("access_requests", {"purpose": ""}),
]
