"""Retention of rows: for ever, or for so many days, by their age alone."""

from datetime import timedelta
from typing import Any

import pytest

from edge_api.admin import privacy
from edge_api.admin.privacy import Retention
from edge_api.auth.actor import OPERATOR
from edge_api.db.internal_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.query import Insert, Read, Store
from edge_api.db.table import Row, Table
from edge_api.db.tables import (
    AUDIT_LOG,
    EMAIL_SEND_LOG,
    EMAIL_UNSUBSCRIBE_TOKENS,
    LEAD_MESSAGES,
    LEADS,
)
from edge_api.db.types import format_instant
from edge_api.settings import read_settings
from tests.edge.domain.conftest import MovableClock
from tests.edge.store.samples import make_row

DAYS = (1, 29, 31, 400)
"""The ages of the rows that a test begins with."""


@pytest.fixture
async def filled(store: Store, clock: MovableClock) -> Store:
    """Return a store with rows of several ages, and a waiting notification of each lead."""
    endpoint = make_row(WEBHOOK_ENDPOINTS, {"url": "https://a.test/", "secret": "s"})
    await store.run(Insert(WEBHOOK_ENDPOINTS, [endpoint]))
    for days in DAYS:
        then = format_instant(clock() - timedelta(days=days))
        lead = make_row(LEADS, {**LEAD, "name": str(days), "created_at": then, "status": "won"})
        about = {"subject_id": lead["id"], "recipient_email": "owner@example.org"}
        event = {"endpoint_id": endpoint["id"], "event": "lead.created", "body": "{}"}
        given: dict[Table, Row] = {
            LEADS: lead,
            EMAIL_OUTBOX: {**about, "queue": "transactional", "template_name": str(days)},
            WEBHOOK_DELIVERIES: {**event, "subject_id": lead["id"]},
            LEAD_MESSAGES: {"lead_id": lead["id"], "kind": "sent", "email": lead["email"]},
            EMAIL_SEND_LOG: {**MAIL, "template_name": str(days), "created_at": then},
            AUDIT_LOG: {**CHANGE, "verb": str(days), "at": then},
        }
        await store.run(*(Insert(table, [make_row(table, row)]) for table, row in given.items()))
    return store


LEAD = {"email": "ann@example.org", "budget_tier": "b", "message": "m"}
SUBJECT = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"
MAIL = {"recipient_email": "ann@example.org", "status": "sent"}
CHANGE = {"actor": "test", "table_name": "leads", "columns": "", "rows": 1}


def keep(store: Store, clock: MovableClock, **days: int) -> Retention:
    """Return the retention that settings ask for."""
    given = {f"RETAIN_{name.upper()}_DAYS": str(number) for name, number in days.items()}
    given.setdefault("RETAIN_UNDO_DAYS", "0")
    return Retention(store, clock, read_settings(given, dotenv=None))


async def column(store: Store, table: Table, name: str) -> list[Any]:
    """Return one column of a table."""
    (result,) = await store.run(Read(table))
    return sorted((row[name] for row in result.rows), key=str)


async def audited(store: Store) -> list[tuple[str, str, int]]:
    """Return who was written down to have deleted how much by its age."""
    (result,) = await store.run(Read(AUDIT_LOG))
    entries = [row for row in result.rows if row["verb"] == "forget"]
    return sorted((row["actor"], row["table_name"], row["rows"]) for row in entries)


async def test_everything_is_kept_without_a_setting(filled: Store, clock: MovableClock) -> None:
    """Without a setting nothing is deleted, however old it is."""
    retention_ = keep(filled, clock)

    assert not retention_.is_enabled
    assert await retention_.apply() == {}
    assert len(await column(filled, LEADS, "id")) == len(DAYS)


async def test_old_leads_go_with_what_waits_for_them(filled: Store, clock: MovableClock) -> None:
    """In any status; no notification is sent of a lead that is gone."""
    assert await keep(filled, clock, leads=30).apply() == {LEADS: 2}

    assert await column(filled, LEADS, "name") == ["1", "29"]
    kept = await column(filled, LEADS, "id")
    assert await column(filled, EMAIL_OUTBOX, "subject_id") == kept
    assert await column(filled, WEBHOOK_DELIVERIES, "subject_id") == kept
    assert await column(filled, LEAD_MESSAGES, "lead_id") == kept
    assert await column(filled, EMAIL_SEND_LOG, "template_name") == ["1", "29", "31", "400"]


async def test_the_log_of_mail_has_a_time_of_its_own(filled: Store, clock: MovableClock) -> None:
    """It may go before the leads, or after."""
    assert await keep(filled, clock, mail_log=7).apply() == {EMAIL_SEND_LOG: 3}

    assert await column(filled, EMAIL_SEND_LOG, "template_name") == ["1"]
    assert len(await column(filled, LEADS, "id")) == len(DAYS)


async def test_old_entries_of_the_audit_log_go(filled: Store, clock: MovableClock) -> None:
    """And that they went is an entry itself."""
    assert await keep(filled, clock, audit=365).apply() == {AUDIT_LOG: 1}

    assert await column(filled, AUDIT_LOG, "verb") == ["1", "29", "31", "forget"]


async def test_deletions_are_audited(filled: Store, clock: MovableClock) -> None:
    """By the service where nobody asked it to, by the operator where they did."""
    await keep(filled, clock, leads=30).apply()
    await keep(filled, clock, mail_log=30).apply(OPERATOR)

    assert await audited(filled) == [
        ("credential:operator", "email_send_log", 2),
        ("credential:service", "leads", 2),
    ]


async def test_nothing_old_is_nothing_written(filled: Store, clock: MovableClock) -> None:
    """If nothing is too old, nothing is written."""
    before = filled.version()
    assert await keep(filled, clock, leads=1000, mail_log=1000, audit=1000).apply() == {
        LEADS: 0,
        EMAIL_SEND_LOG: 0,
        AUDIT_LOG: 0,
    }

    assert filled.version() == before


async def test_a_row_goes_when_its_day_is_over(filled: Store, clock: MovableClock) -> None:
    """Neither before nor much after."""
    rule = keep(filled, clock, leads=2)
    await rule.apply()
    assert await column(filled, LEADS, "name") == ["1"]
    clock.move(days=1)
    assert await rule.apply() == {LEADS: 0}
    clock.move(seconds=1)
    assert await rule.apply() == {LEADS: 1}


async def test_many_rows_go_a_few_at_a_time(
    filled: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that others can write in between; all of them go."""
    monkeypatch.setattr(privacy, "DELETE_BATCH", 3)

    assert await keep(filled, clock, leads=1, mail_log=1).apply() == {LEADS: 3, EMAIL_SEND_LOG: 3}
    clock.move(days=1000)
    assert await keep(filled, clock, leads=1).apply() == {LEADS: 1}
    assert await column(filled, LEADS, "id") == []


TOKENS = ("nobody", "fresh", "used", "logged", "leading", "waiting")
"""The addresses of tokens, by what keeps them; `nobody` is kept by nothing."""


@pytest.fixture
async def linked(store: Store, clock: MovableClock) -> Store:
    """Return a store with tokens of a hundred days, and rows that name some of their addresses."""
    then = format_instant(clock() - timedelta(days=100))
    yesterday = format_instant(clock() - timedelta(days=1))
    for name in TOKENS:
        given = {"email": f"{name}@b\u00fccher.test", "token": name.ljust(64, "0")}
        used = {"used_at": then if name == "used" else None}
        made = {"created_at": yesterday if name == "fresh" else then}
        token = make_row(EMAIL_UNSUBSCRIBE_TOKENS, {**given, **used, **made})
        await store.run(Insert(EMAIL_UNSUBSCRIBE_TOKENS, [token]))
    about = {"queue": "transactional", "template_name": "t", "subject_id": SUBJECT}
    given_rows: dict[Table, Row] = {
        LEADS: {**LEAD, "name": "a", "email": "Leading@xn--bcher-kva.test"},
        EMAIL_SEND_LOG: {
            **MAIL,
            "template_name": "t",
            "recipient_email": "Logged@B\u00dcCHER.test",
        },
        EMAIL_OUTBOX: {**about, "recipient_email": "waiting@b\u00fccher.test"},
    }
    for table, row in given_rows.items():
        dated = make_row(table, {**row, "created_at": yesterday})
        await store.run(Insert(table, [dated]))
    return store


async def tokens(store: Store) -> list[str]:
    """Return whose tokens are kept."""
    emails = await column(store, EMAIL_UNSUBSCRIBE_TOKENS, "email")
    return [email.partition("@")[0] for email in emails]


@pytest.mark.parametrize("days", [{"leads": 30}, {"mail_log": 30}, {"leads": 30, "mail_log": 7}])
async def test_an_unsubscribe_token_without_rows_is_deleted(
    linked: Store, clock: MovableClock, days: dict[str, int]
) -> None:
    """If it is old and was not used, and no row names its address in any spelling."""
    deleted = await keep(linked, clock, **days).apply()

    assert deleted[EMAIL_UNSUBSCRIBE_TOKENS] == 1
    assert await tokens(linked) == sorted(set(TOKENS) - {"nobody"})
    assert await audited(linked) == [("credential:service", "email_unsubscribe_tokens", 1)]


async def test_a_token_goes_after_the_last_row_that_names_its_address(
    linked: Store, clock: MovableClock
) -> None:
    """In the same sweep; one that was used stays, and so does one that waits to be mailed."""
    clock.move(days=100)
    deleted = await keep(linked, clock, leads=30, mail_log=30).apply()

    assert deleted[LEADS] == deleted[EMAIL_SEND_LOG] == 1
    assert await tokens(linked) == ["used", "waiting"]


@pytest.mark.parametrize("days", [{}, {"audit": 1}, {"leads": 30, "mail_log": 101}])
async def test_unsubscribe_tokens_are_kept_without_a_setting(
    linked: Store, clock: MovableClock, days: dict[str, int]
) -> None:
    """Neither of the two settings, or one that is longer, leaves all of them."""
    assert EMAIL_UNSUBSCRIBE_TOKENS not in await keep(linked, clock, **days).apply()
    assert await tokens(linked) == sorted(TOKENS)


async def test_many_tokens_and_names_are_looked_at_a_few_at_a_time(
    linked: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is passed over between two looks."""
    monkeypatch.setattr(privacy, "READ_BATCH", 1)
    monkeypatch.setattr(privacy, "DELETE_BATCH", 2)
    clock.move(days=100)
    deleted = await keep(linked, clock, leads=30, mail_log=30).apply()

    assert deleted[EMAIL_UNSUBSCRIBE_TOKENS] == 4
    assert await tokens(linked) == ["used", "waiting"]
