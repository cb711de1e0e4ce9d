"""Changes while events wait or are being sent: of leads and of endpoints."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from edge_api.auth.tokens import SecretBox
from edge_api.db.internal_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.query import Delete, Filter, Update
from edge_api.db.tables import AUDIT_LOG, LEADS
from edge_api.webhooks.dispatcher import MAX_CONCURRENT
from edge_api.webhooks.endpoints import KEY_PURPOSE
from tests.edge.webhooks.conftest import SECRET, Office, Receiver, make_office


async def delete_lead(office: Office, lead_id: str) -> None:
    """Delete a lead as an administrator does: that row alone."""
    await office.store.run(Delete(LEADS, (Filter("id", "eq", lead_id),)))


async def disablings(office: Office) -> list[int]:
    """Return how many rows each disabling met, as the audit log has it."""
    return [row["rows"] for row in await office.rows(AUDIT_LOG) if row["verb"] == "disable"]


async def until(holds: Callable[[], Awaitable[bool]]) -> bool:
    """Ask until something holds; return whether it came to that."""
    for _ in range(2000):
        if await holds():
            return True
        await asyncio.sleep(0.01)
    return False


async def test_a_deleted_lead_is_not_sent(office: Office, receiver: Receiver) -> None:
    """Nor kept for any endpoint; the others are sent."""
    await office.endpoints.add(receiver.url)
    gone = await office.lead("Delete me")
    kept = await office.lead("Keep me")
    await delete_lead(office, gone["id"])
    await office.dispatcher.run_once()

    (received,) = receiver.received
    assert kept["id"].encode() in received.body
    assert await office.deliveries() == []


async def test_a_lead_deleted_between_two_attempts_is_not_sent_again(
    office: Office, receiver: Receiver
) -> None:
    """A delivery that failed before is dropped when its time comes."""
    await office.endpoints.add(receiver.url)
    lead = await office.lead()
    receiver.status = 500
    await office.dispatcher.run_once()
    await delete_lead(office, lead["id"])
    office.clock.move(minutes=1)
    await office.dispatcher.run_once()

    assert len(receiver.received) == 1
    assert await office.deliveries() == []


async def test_a_store_that_is_too_slow_is_logged_without_a_trace(
    office: Office,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line for the look at what is due, and one for the endpoint whose turn is cut short."""
    await office.endpoints.add(receiver.url)
    await office.lead()
    (drain,) = await office.dispatcher._start_all()  # noqa: SLF001  the first half of a turn
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"edge_api.db.{engine}.store_connections.FAST_SECONDS", 0.0)
    await drain
    running = asyncio.create_task(office.dispatcher.run())

    async def both() -> bool:
        return len(caplog.records) > 1

    assert await until(both)
    running.cancel()
    first, second = (
        record.getMessage().partition(": The query took")[0] for record in caplog.records
    )
    assert first.startswith("webhooks: ")
    assert (first[-6:], second) == (" waits", "webhooks wait")
    assert not any(record.exc_info for record in caplog.records)


async def test_many_refusals_at_once_disable_once(office: Office, receiver: Receiver) -> None:
    """The audit log tells of one change; the others found nothing to change."""
    await office.endpoints.add(receiver.url)
    for number in range(MAX_CONCURRENT):
        await office.lead(f"Hello {number}")
    everybody = asyncio.Event()

    async def wait_for_all() -> None:
        if len(receiver.received) == MAX_CONCURRENT:
            everybody.set()
        await asyncio.wait_for(everybody.wait(), 20)

    receiver.status, receiver.before_answer = 410, wait_for_all
    await office.dispatcher.run_once()

    assert len(receiver.received) == MAX_CONCURRENT
    assert await disablings(office) == [1]
    assert (await office.endpoint())["disabled_at"] is not None
    assert all(row["dead_at"] for row in await office.deliveries())


async def test_a_late_refusal_does_not_disable_a_reenabled_endpoint(
    office: Office, receiver: Receiver
) -> None:
    """The operator has enabled the endpoint since; that refusal was to what was given up."""
    keyed = await office.endpoints.add(receiver.url)
    await office.lead("One")
    await office.lead("Two")
    enabled = asyncio.Event()

    async def hold_the_second() -> None:
        if len(receiver.received) > 1:
            await asyncio.wait_for(enabled.wait(), 20)

    async def is_disabled() -> bool:
        return (await office.endpoint())["disabled_at"] is not None

    receiver.status, receiver.before_answer = 410, hold_the_second
    telling = asyncio.create_task(office.dispatcher.run_once())
    for _ in range(2):
        await receiver.arrival()
    assert await until(is_disabled)
    await office.endpoints.enable(keyed["id"])
    enabled.set()
    await telling

    assert not await is_disabled()
    assert await disablings(office) == [1]


async def test_a_refusal_gives_up_no_delivery_of_another_endpoint(
    office: Office, receiver: Receiver
) -> None:
    """What waits for the other one is sent when that is enabled again."""
    await office.endpoints.add(receiver.url)
    other = await office.endpoints.add(f"{receiver.url}/other")
    await office.lead()
    await office.endpoints.pause(other["id"])
    receiver.status = 410
    await office.dispatcher.run_once()
    assert await disablings(office) == [1]

    receiver.status = 200
    await office.endpoints.enable(other["id"])
    await office.dispatcher.run_once()
    assert len(receiver.received) == 2


async def test_a_pause_beyond_the_calendar_is_a_failure_like_any_other(
    office: Office, receiver: Receiver
) -> None:
    """Each delivery is counted and tried again, whatever cannot be reckoned with its answer."""
    office.clock.now = datetime(9999, 12, 31, 20, tzinfo=UTC)
    await office.endpoints.add(receiver.url)
    for number in range(3):
        await office.lead(f"Hello {number}")
    receiver.status, receiver.headers = 503, {"Retry-After": "86400"}
    await office.dispatcher.run_once()

    rows = await office.deliveries()
    assert [(row["attempts"], row["lease"]) for row in rows] == [(1, None)] * 3


async def test_a_secret_that_cannot_sign_is_a_failure_like_any_other(
    office: Office, receiver: Receiver
) -> None:
    """The delivery is counted, and not claimed for ever."""
    keyed = await office.endpoints.add(receiver.url)
    broken = SecretBox(SECRET, KEY_PURPOSE).encrypt(b"whsec_a")
    where = (Filter("id", "eq", keyed["id"]),)
    await office.store.run(Update(WEBHOOK_ENDPOINTS, {"secret": broken}, where))
    await office.lead()
    await office.dispatcher.run_once()

    (row,) = await office.rows(WEBHOOK_DELIVERIES)
    assert (row["attempts"], row["lease"], receiver.received) == (1, None, [])


async def test_a_retry_does_not_resend_a_delivery_under_way(
    office: Office, receiver: Receiver
) -> None:
    """The receiver has the event and has not answered yet: nobody else sends it once more."""
    keyed = await office.endpoints.add(receiver.url)
    await office.lead()
    rival = make_office(office.store, office.clock)
    retried = []

    async def retry_meanwhile() -> None:
        if len(receiver.received) == 1:
            retried.append(await office.endpoints.retry(keyed["id"]))
            await rival.dispatcher.run_once()

    receiver.before_answer = retry_meanwhile
    await office.dispatcher.run_once()

    assert (retried, len(receiver.received)) == ([0], 1)
    assert await office.deliveries() == []


async def test_a_paused_endpoint_gets_only_the_deliveries_under_way(
    office: Office, receiver: Receiver
) -> None:
    """The rest is kept, and is told once when the endpoint is enabled again."""
    keyed = await office.endpoints.add(receiver.url)
    for number in range(MAX_CONCURRENT + 2):
        await office.lead(f"Hello {number}")

    async def pause_at_the_first() -> None:
        if len(receiver.received) == 1:
            await office.endpoints.pause(keyed["id"])

    receiver.before_answer = pause_at_the_first
    await office.dispatcher.run_once()
    office.clock.move(hours=1)
    await office.dispatcher.run_once()
    assert (len(receiver.received), len(await office.deliveries())) == (MAX_CONCURRENT, 2)

    await office.endpoints.enable(keyed["id"])
    await office.dispatcher.run_once()
    assert len(receiver.ids) == len(set(receiver.ids)) == MAX_CONCURRENT + 2
    assert await office.deliveries() == []


async def test_a_pause_keeps_the_reason_of_a_disabled_endpoint(
    office: Office, receiver: Receiver
) -> None:
    """It was disabled when its receiver said that it is gone: since when and why stay known."""
    keyed = await office.endpoints.add(receiver.url)
    await office.lead()
    receiver.status = 410
    await office.dispatcher.run_once()
    disabled = await office.endpoint()
    office.clock.move(hours=1)
    await office.endpoints.pause(keyed["id"])

    assert await office.endpoint() == disabled
    assert disabled["disabled_for"] == "it answered 410 Gone"
