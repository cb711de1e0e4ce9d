"""Revocations and removals since a backup stay when the backup is restored."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from edge_api.admin.rows import Rows
from edge_api.auth.actor import OPERATOR, audited
from edge_api.auth.erasure import Privacy
from edge_api.backup.restoration import carry_over
from edge_api.db.internal_tables import (
    ACCESS_REQUESTS,
    ANNOUNCED_POSTS,
    ERASED_ROWS,
    FORMER_ROWS,
    OAUTH_CLIENTS,
    WEBHOOK_DELIVERIES,
    WEBHOOK_ENDPOINTS,
)
from edge_api.db.query import Delete, Filter, Insert, Read, Update
from edge_api.db.sqlite.copying import copy_store
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.table import Table
from edge_api.db.tables import (
    CREDENTIALS,
    EMAIL_SEND_LOG,
    IDEMPOTENCY_KEYS,
    LEADS,
    SUPPRESSED_EMAILS,
)
from tests.edge.backup.test_restore import LATER, make_key
from tests.edge.store.samples import clock, make_entry, make_lead, make_row

OLD, NEW = "a" * 64, "b" * 64
ENDS = "2026-12-31T00:00:00.000000Z"


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[tuple[SQLiteStore, SQLiteStore]]:
    """Return a store in which an operator went on after a backup, and the backup, both open."""
    former = await open_store(tmp_path / "former.db", clock)
    await former.run(
        Insert(CREDENTIALS, [make_key(OLD)]),
        Insert(OAUTH_CLIENTS, [make_client()]),
        Insert(ACCESS_REQUESTS, [make_request("Ann", "approved"), make_request("Bob", "approved")]),
        Insert(WEBHOOK_ENDPOINTS, [make_endpoint(name) for name in ("stays", "off", "removed")]),
        Insert(WEBHOOK_DELIVERIES, [make_delivery(name) for name in ("off", "removed")]),
        Insert(ANNOUNCED_POSTS, [{"id": 1, **announced(OLD, "{}")}]),
    )
    copy_store(tmp_path / "former.db", tmp_path / "restored.db")
    await former.run(
        Update(CREDENTIALS, {"rotated_at": LATER, "expires_at": ENDS}, (named("digest", OLD),)),
        Update(
            OAUTH_CLIENTS,
            {"secret_digest": NEW, "secret_last_four": "bbbb"},
            (named("name", "App"),),
        ),
        Update(ACCESS_REQUESTS, {"status": "denied", "decided_at": LATER}, (named("name", "Ann"),)),
        Update(WEBHOOK_ENDPOINTS, {"disabled_at": LATER}, (named("url", url_of("off")),)),
        Update(WEBHOOK_DELIVERIES, {"dead_at": LATER}, (named("body", "off"),)),
        Update(ANNOUNCED_POSTS, announced(NEW, '{"a": []}'), (named("index_digest", OLD),)),
        Delete(WEBHOOK_ENDPOINTS, (named("url", url_of("removed")),)),
        Delete(WEBHOOK_DELIVERIES, (named("body", "removed"),)),
    )
    restored = await open_store(tmp_path / "restored.db", clock)
    yield former, restored
    await restored.close()
    await former.close()


def named(column: str, value: str) -> Filter:
    """Return the condition on the one row that is meant."""
    return Filter(column, "eq", value)


def url_of(name: str) -> str:
    """Return the address of an endpoint."""
    return f"https://{name}.example/hook"


def make_client() -> dict[str, Any]:
    """Return a client with a secret."""
    given = {"id": "app", "kind": "registered", "name": "App", "auth_method": "client_secret_basic"}
    lists = {"redirect_uris": "", "grant_types": "client_credentials", "scopes": "posts:read"}
    return make_row(OAUTH_CLIENTS, {**given, **lists, "secret_digest": OLD})


def make_request(name: str, status: str) -> dict[str, Any]:
    """Return somebody's request for access."""
    given = {"type": "api_key", "name": name, "purpose": "Posts", "scopes": "posts:read"}
    claim = {"claim_digest": name[0] * 64, "expires_at": ENDS}
    return make_row(ACCESS_REQUESTS, {**given, **claim, "status": status})


def make_endpoint(name: str) -> dict[str, Any]:
    """Return an address that events are sent to."""
    return make_row(WEBHOOK_ENDPOINTS, {"url": url_of(name), "secret": "sealed"})


def make_delivery(name: str) -> dict[str, Any]:
    """Return an event that waits for an endpoint."""
    given = {"endpoint_id": str(uuid4()), "event": "lead.created", "subject_id": str(uuid4())}
    return make_row(WEBHOOK_DELIVERIES, {**given, "body": name})


def announced(digest: str, posts: str) -> dict[str, Any]:
    """Return the events of posts that webhooks were sent."""
    return {"index_digest": digest, "built_for": ENDS, "posts": posts, "texts": ""}


async def rows(store: SQLiteStore, table: Table) -> list[dict[str, Any]]:
    """Return every row of a table, by its key."""
    (result,) = await store.run(Read(table))
    return sorted(result.rows, key=lambda row: str(row[table.key]))


@pytest.mark.parametrize(
    "table",
    [
        CREDENTIALS,
        OAUTH_CLIENTS,
        ACCESS_REQUESTS,
        WEBHOOK_ENDPOINTS,
        WEBHOOK_DELIVERIES,
        ANNOUNCED_POSTS,
    ],
    ids=lambda t: t.name,
)
async def test_a_restore_does_not_undo_revocations(
    stores: tuple[SQLiteStore, SQLiteStore], table: Table
) -> None:
    """A replaced key and an old secret are void; denied, removed, given up and sent stay so."""
    former, restored = stores
    before = await rows(restored, table)
    sent = await carry_over(former, restored, clock)

    ended, _, given, *_ = sent.values()
    assert (ended, given) == (7, 1)
    assert await rows(restored, table) == await rows(former, table) != before
    assert next(iter((await carry_over(former, restored, clock)).values())) == 0


ANN, BOB = "ann@readers-club.net", "bob@readers-club.net"


async def test_a_restore_brings_no_erased_person_back(tmp_path: Path) -> None:
    """Neither a row, nor by an undo of what the backup can undo; a later lead stays."""
    former = await open_store(tmp_path / "former.db", clock)
    leads = [make_lead(email=ANN), make_lead(email=ANN), make_lead(email=BOB)]
    answer = {"id": "1" * 64, "request_digest": "2" * 64, "status": 201, "expires_at": ENDS}
    answered = make_row(IDEMPOTENCY_KEYS, {**answer, "response": f'{{"id": "{leads[0]["id"]}"}}'})
    noted = {"email": ANN, "reason": "bounce", "metadata": {"said": "no such user"}}
    await former.run(
        Insert(LEADS, leads),
        Insert(IDEMPOTENCY_KEYS, [answered]),
        Insert(EMAIL_SEND_LOG, [make_entry(recipient_email=ANN), make_entry(recipient_email=BOB)]),
        Insert(SUPPRESSED_EMAILS, [make_row(SUPPRESSED_EMAILS, noted)]),
    )
    for lead in leads:
        where = (Filter("id", "eq", lead["id"]),)
        await former.run(
            *audited(OPERATOR, "update", Update(LEADS, {"notes": "n"}, where), clock())
        )
    copy_store(tmp_path / "former.db", tmp_path / "restored.db")
    # One is deleted by hand before the erasure, so that former rows alone know it.
    await Rows(former, clock).delete(LEADS, {"id": leads[1]["id"]}, OPERATOR)
    await Privacy(former, clock).erase("Ann@Readers-Club.NET", OPERATOR)
    await former.run(Insert(LEADS, [make_lead(email=ANN, message="again")]))
    restored = await open_store(tmp_path / "restored.db", clock)
    try:
        numbers = list((await carry_over(former, restored, clock)).values())
        again = list((await carry_over(former, restored, clock)).values())

        assert [row["email"] for row in await rows(restored, LEADS)] == [BOB]
        assert [row["recipient_email"] for row in await rows(restored, EMAIL_SEND_LOG)] == [BOB]
        assert [row["row_id"] for row in await rows(restored, FORMER_ROWS)] == [leads[2]["id"]]
        assert await rows(restored, IDEMPOTENCY_KEYS) == []
        assert [row["metadata"] for row in await rows(restored, SUPPRESSED_EMAILS)] == [None]
        assert await rows(restored, ERASED_ROWS) == await rows(former, ERASED_ROWS) != []
        assert (numbers[3], numbers[5], again[3], again[5]) == (6, 0, 0, 0)
    finally:
        await restored.close()
        await former.close()
