"""Bounces and complaints from the mail service: signed, taken once, and acted on."""

import asyncio
import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import ClientResponse
from standardwebhooks import Webhook

from edge_api.background import delete_expired
from edge_api.db.query import Insert, Order, Read
from edge_api.db.table import Row, Table
from edge_api.db.tables import EMAIL_SEND_LOG, IDEMPOTENCY_KEYS, SUPPRESSED_EMAILS
from edge_api.mail.suppressions import REPORT_RETENTION
from edge_api.net.signatures import new_secret
from tests.edge.conftest import EMAIL_HOOK_SECRET, error_of
from tests.edge.domain.conftest import MovableClock

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

PATH = "/api/public/hooks/email"
ADDRESS = "Ann.Lee@example.org"
LOGGED = {
    "id": "00000000-0000-4000-8000-000000000001",
    "message_id": "01989f3a-7c00-7000-8000-3d2b1c0a9f8e",
    "template_name": "lead_acknowledgement",
    "recipient_email": ADDRESS,
    "status": "sent",
    "error_message": None,
    "metadata": None,
    "created_at": "2026-06-01T12:00:00.000000Z",
}


def event(kind: str = "email.bounced", **data: Any) -> bytes:
    """Return the body of an event, as the mail service spells it."""
    return json.dumps({"type": kind, "data": {"email": ADDRESS, **data}}).encode()


def signed(
    body: bytes, message_id: str = "msg_1", secret: str = EMAIL_HOOK_SECRET, ago: float = 0
) -> dict[str, str]:
    """Return the headers that the library of Standard Webhooks makes."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, at, body.decode()),
    }


def post(edge: Any, body: bytes, headers: dict[str, str] | None = None) -> Any:
    """Send an event; signed, unless other headers are given."""
    return edge.ask("POST", PATH, data=body, headers=headers or signed(body))


async def rows(edge: Any, table: Table) -> list[Row]:
    """Return every row of a table, oldest first."""
    (result,) = await edge.service.store.run(Read(table, order=(Order("id"),)))
    found: list[Row] = result.rows
    return found


async def assert_nothing_happened(edge: Any) -> None:
    """Neither a log row, nor a suppression, nor a key is there."""
    for table in (EMAIL_SEND_LOG, SUPPRESSED_EMAILS, IDEMPOTENCY_KEYS):
        assert await rows(edge, table) == []


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (event("email.bounced"), "bounced", "bounce"),
        (event("email.bounced", bounce_type="permanent"), "bounced", "bounce"),
        (event("email.bounced", bounce_type="transient"), "soft_bounced", None),
        (event("email.complained"), "complained", "complaint"),
        (event("email.complained", bounce_type="transient"), "complained", "complaint"),
        (event("email.unsubscribed"), "suppressed", "unsubscribe"),
        (event("email.bounced", message_id=None, more=[1]), "bounced", "bounce"),
    ],
)
async def test_an_event_is_logged_and_suppresses(
    edge: Any, body: bytes, status: str, reason: str | None
) -> None:
    """A failure that may pass is only logged."""
    async with post(edge, body) as answer:
        assert answer.status == 200
        assert await answer.json() == {"status": status, "suppressed": reason is not None}
        assert "Idempotency-Replayed" not in answer.headers

    (row,) = await rows(edge, EMAIL_SEND_LOG)
    assert (row["status"], row["template_name"]) == (status, "system")
    assert (row["recipient_email"], row["message_id"]) == (ADDRESS, None)
    assert row["metadata"]["webhook_id"] == "msg_1"
    suppressed = [
        (row["email"], row["reason"], row["metadata"])
        for row in await rows(edge, SUPPRESSED_EMAILS)
    ]
    expected = [("ann.lee@example.org", reason, {"webhook_id": "msg_1"})]
    assert suppressed == (expected if reason else [])


@pytest.mark.parametrize("form", ["{0}", "<{0}@journal.example>", "{0}@journal.example"])
async def test_a_message_is_known_by_its_id(edge: Any, form: str) -> None:
    """As the log has it, or as its header had it: the row names its template."""
    await edge.service.store.run(Insert(EMAIL_SEND_LOG, [LOGGED]))
    async with post(edge, event(message_id=form.format(LOGGED["message_id"]))) as answer:
        assert answer.status == 200

    _, row = await rows(edge, EMAIL_SEND_LOG)
    assert row["message_id"] == LOGGED["message_id"]
    assert (row["template_name"], row["status"]) == ("lead_acknowledgement", "bounced")


async def test_an_id_that_the_log_does_not_know_is_kept(edge: Any) -> None:
    """Somebody may look for it elsewhere."""
    async with post(edge, event(message_id="<x@elsewhere.example>")) as answer:
        assert answer.status == 200

    (row,) = await rows(edge, EMAIL_SEND_LOG)
    assert (row["message_id"], row["template_name"]) == ("<x@elsewhere.example>", "system")


async def test_the_same_message_again_has_no_second_effect(edge: Any) -> None:
    """It is answered as before, also with a new timestamp, and also many at once."""

    async def send() -> tuple[int, bytes, bool]:
        async with post(edge, body, signed(body, ago=sent.pop())) as answer:
            replayed = answer.headers.get("Idempotency-Replayed") == "true"
            return answer.status, await answer.read(), replayed

    body, sent = event("email.complained"), [*range(12)]
    answers = [await send(), *await asyncio.gather(*(send() for _ in range(10))), await send()]

    assert {(status, said) for status, said, _ in answers} == {
        (200, b'{"status":"complained","suppressed":true}')
    }
    assert [replayed for _, _, replayed in answers] == [False] + [True] * 11
    assert len(await rows(edge, EMAIL_SEND_LOG)) == 1


async def test_the_same_message_is_known_for_a_week(make_edge: Any) -> None:
    """Longer than any sender tries; then it is forgotten."""
    clock = MovableClock()
    async with make_edge(clock) as edge:
        for move, logged in ((timedelta(), 1), (REPORT_RETENTION - timedelta(minutes=1), 1)):
            clock.now += move
            await delete_expired(edge.service.store, clock)
            async with post(edge, event()) as answer:
                assert answer.status == 200
            assert len(await rows(edge, EMAIL_SEND_LOG)) == logged
        clock.now += timedelta(minutes=1)
        await delete_expired(edge.service.store, clock)
        assert await rows(edge, IDEMPOTENCY_KEYS) == []


async def test_a_second_event_about_an_address_is_logged_beside_the_first(edge: Any) -> None:
    """The existing suppression is left as it is."""
    for number, kind in enumerate(("email.bounced", "email.complained", "email.unsubscribed")):
        async with post(edge, event(kind), signed(event(kind), f"msg_{number}")) as answer:
            assert (await answer.json())["suppressed"] is True

    statuses = [row["status"] for row in await rows(edge, EMAIL_SEND_LOG)]
    assert statuses == ["bounced", "complained", "suppressed"]
    assert [row["reason"] for row in await rows(edge, SUPPRESSED_EMAILS)] == ["bounce"]


async def test_many_events_about_an_address_at_once(edge: Any) -> None:
    """Each is logged, and one suppresses."""

    async def send(number: int) -> int:
        body = event("email.complained")
        async with post(edge, body, signed(body, f"msg_{number}")) as answer:
            return int(answer.status)

    assert await asyncio.gather(*map(send, range(20))) == [200] * 20
    assert len(await rows(edge, EMAIL_SEND_LOG)) == 20
    assert len(await rows(edge, SUPPRESSED_EMAILS)) == 1


@pytest.mark.parametrize("kind", ["email.opened", "EMAIL.BOUNCED", "lead.created", "x" * 200])
async def test_other_events_are_ignored(edge: Any, kind: str) -> None:
    """Accepted, with a sentence, so that the sender does not repeat them."""
    body = json.dumps({"type": kind, "data": {}}).encode()
    async with post(edge, body) as answer:
        assert answer.status == 202
        ignored = await answer.json()
    assert ignored["status"] == "ignored"
    assert ignored["sentence"].startswith(f"Events of type {kind} are ignored")
    await assert_nothing_happened(edge)


async def refused(answer: ClientResponse) -> None:
    """Check that an answer says that the signature is at fault."""
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("StandardWebhooks ")
    assert "signature" in (await error_of(answer)).lower()


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-signature": "v1,bWFkZS11cA=="},
        {"webhook-signature": ""},
        {"webhook-signature": "made up"},
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
        {"webhook-timestamp": "1"},
        {"webhook-timestamp": "soon"},
    ],
    ids=str,
)
async def test_tampering_with_the_headers_is_refused(edge: Any, change: dict[str, str]) -> None:
    """401, and nothing is written."""
    async with post(edge, event(), {**signed(event()), **change}) as answer:
        await refused(answer)
    await assert_nothing_happened(edge)


@pytest.mark.parametrize("body", [event("email.complained"), event() + b" ", b"{", b"", b"\xff"])
async def test_tampering_with_the_body_is_refused(edge: Any, body: bytes) -> None:
    """Before a word of it is read: also where it is no JSON."""
    async with post(edge, body, signed(event())) as answer:
        await refused(answer)
    await assert_nothing_happened(edge)


@pytest.mark.parametrize("ago", [301, 86_400, -330])
async def test_an_old_or_early_message_is_refused(edge: Any, ago: float) -> None:
    """More than five minutes either way."""
    async with post(edge, event(), signed(event(), ago=ago)) as answer:
        await refused(answer)
    await assert_nothing_happened(edge)


async def test_another_secret_and_none_are_refused(edge: Any) -> None:
    """An API key is no signature."""
    async with post(edge, event(), signed(event(), secret=new_secret())) as answer:
        await refused(answer)
    async with edge.ask("POST", PATH, await edge.key(), json=json.loads(event())) as answer:
        await refused(answer)
    await assert_nothing_happened(edge)


@pytest.mark.parametrize("between", [",", " ", ", "])
async def test_while_the_secret_changes_both_are_taken(make_edge: Any, between: str) -> None:
    """The sender changes its own at any time."""
    secrets = [new_secret(), new_secret()]
    async with make_edge(EMAIL_HOOK_SECRET=between.join(secrets)) as edge:
        for secret in secrets:
            async with post(edge, event(), signed(event(), secret[-9:], secret)) as answer:
                assert answer.status == 200
        assert len(await rows(edge, EMAIL_SEND_LOG)) == 2


async def test_without_a_secret_nothing_is_taken(make_edge: Any) -> None:
    """404 with a sentence that says what to set: no later try would help."""
    async with make_edge(EMAIL_HOOK_SECRET="") as edge:
        async with post(edge, event()) as answer:
            assert answer.status == 404
            assert "EMAIL_HOOK_SECRET is not set" in await error_of(answer)
        await assert_nothing_happened(edge)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b"[]", "body"),
        (b"{}", "type"),
        (b'{"type": 1, "data": {}}', "type"),
        (b'{"type": "", "data": {}}', "type"),
        (b'{"type": "email.bounced", "data": []}', "data"),
        (b'{"type": "email.bounced", "data": {}}', "data.email"),
        (event(email="nobody"), "data.email"),
        (event(email=None), "data.email"),
        (event(email=f"{'a' * 300}@example.org"), "data.email"),
        (event(email="a@example.org, b@example.org"), "data.email"),
        (event(email="a@example.org\r\nBcc: b@example.org"), "data.email"),
        (event(bounce_type="soft"), "data.bounce_type"),
        (event(message_id=1), "data.message_id"),
        (event(message_id="x" * 999), "data.message_id"),
        (event(message_id="x\x00"), "message_id"),
        (b"{", "The body is not valid JSON"),
    ],
)
async def test_a_signed_event_without_sense_names_what_to_fix(
    edge: Any, body: bytes, names: str
) -> None:
    """400, and nothing is written."""
    async with post(edge, body) as answer:
        assert answer.status == 400
        assert (await error_of(answer)).startswith(names)
    await assert_nothing_happened(edge)


async def test_too_much_is_refused_unread(edge: Any) -> None:
    """64 KiB are the most."""
    body = event(more="x" * 65_536)
    async with post(edge, body) as answer:
        assert answer.status == 413


async def test_a_body_may_be_compressed(edge: Any) -> None:
    """The signature is that of the decompressed body."""
    headers = {**signed(event()), "Content-Encoding": "gzip"}
    async with post(edge, gzip.compress(event()), headers) as answer:
        assert answer.status == 200


async def test_while_the_store_is_away_the_sender_is_asked_to_come_again(edge: Any) -> None:
    """503, with a time."""
    await edge.service.store.close()
    async with post(edge, event()) as answer:
        assert (answer.status, "Retry-After" in answer.headers) == (503, True)
