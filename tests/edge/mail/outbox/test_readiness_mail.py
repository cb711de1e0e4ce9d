"""Mail in readiness and `doctor`: where somebody has to look, and nobody's address."""

import asyncio
from pathlib import Path

import pytest

from edge_api.db.query import Store
from tests.edge.conftest import EdgeMaker
from tests.edge.domain.conftest import WatchedStore
from tests.edge.edge_process import Installation
from tests.edge.engines import ON_SQLITE
from tests.edge.mail.outbox.post_office import OWNER, PostOffice, TickingClock, open_office
from tests.edge.mail.outbox.scripted_relay import Relay

READINESS = "/api/public/v1/readiness"


async def message(office: PostOffice) -> str:
    """Return what the check says; empty where all is well."""
    check = await office.mailing.check()
    assert check.state == ("warn" if check.message else "pass")
    return check.message


async def test_readiness_is_silent_while_mail_flows(office: PostOffice) -> None:
    """Waiting and sent mail is in order."""
    await office.take_lead()
    assert await message(office) == ""
    await office.tick()
    assert await message(office) == ""


async def test_readiness_is_silent_without_mail_settings(store: Store, clock: TickingClock) -> None:
    """An operator who configured no mail is not warned."""
    assert await message(open_office(store, clock, None, OWNER_EMAIL="")) == ""


async def test_readiness_reports_given_up_mail(office: PostOffice, relay: Relay) -> None:
    """Until somebody has it tried again, or clears it away."""
    relay.recipient_answers.append("554 5.7.1 no")
    await office.take_lead()
    await office.tick()

    assert "mail was given up" in await message(office)


async def test_readiness_reports_a_pause(office: PostOffice, relay: Relay) -> None:
    """With the instant at which it ends."""
    relay.data_answers.append("454 4.7.0 slow down")
    await office.take_lead()
    await office.tick()
    assert "mail is paused until 2026-06-01T12:01:00" in await message(office)
    assert "fix the relay as email_send_log says, or wait" in await message(office)
    office.clock.move(seconds=61)

    assert "paused" not in await message(office)


@pytest.mark.parametrize(("minutes", "late"), [(29, False), (31, True)])
async def test_readiness_reports_mail_that_waits_too_long(
    office: PostOffice, minutes: int, *, late: bool
) -> None:
    """From half of its time to live on."""
    await office.take_lead()
    office.clock.move(minutes=minutes)

    assert ("half of its time to live" in await message(office)) is late


async def test_readiness_reports_a_suppressed_owner(office: PostOffice, relay: Relay) -> None:
    """One refusal too many, and no lead is notified any more: readiness has to say so."""
    relay.by_recipient[OWNER] = "550 5.1.1 no such mailbox"
    await office.take_lead()
    await office.tick()

    assert "the owner's address is suppressed" in await message(office)
    assert OWNER not in await message(office)


async def test_readiness_reports_a_relay_without_an_owner(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """Somebody forgot OWNER_EMAIL."""
    assert "set OWNER_EMAIL" in await message(open_office(store, clock, relay, OWNER_EMAIL=""))


async def test_readiness_reports_a_stuck_dispatcher(office: PostOffice, relay: Relay) -> None:
    """It has a heartbeat while it runs; one that is stuck is found out."""
    relay.silent = asyncio.Event()
    await office.take_lead()
    dispatcher = office.mailing.dispatcher
    dispatcher.shutdown_timeout = 0.1
    running = asyncio.create_task(dispatcher.run())
    await asyncio.sleep(0.1)
    assert await message(office) == ""
    office.clock.move(seconds=121)
    stuck = await message(office)
    running.cancel()
    await asyncio.wait({running})
    relay.silent.set()

    assert "is stuck" in stuck


async def test_readiness_reports_an_unavailable_store(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """For mail too; the store's own check decides whether the edge is ready."""
    watched = WatchedStore(store)
    office = open_office(watched, clock, relay)
    watched.away = True
    check = await office.mailing.check()

    assert (check.state, check.message) == ("warn", "the state of mail cannot be read")


async def test_readiness_warns_and_stays_ready(make_edge: EdgeMaker, relay: Relay) -> None:
    """Leads are taken whatever happens to mail."""
    settings = {"SMTP_URL": f"smtp://127.0.0.1:{relay.port}", "MAIL_FROM": "a@journal-keepers.net"}
    async with make_edge(**settings) as edge, edge.ask("GET", READINESS) as answer:
        report = await answer.json()

    assert (report["status"], report["ready"]) == ("warn", True)
    assert report["checks"]["mail"]["status"] == "warn"


@ON_SQLITE
async def test_doctor_says_the_same_and_sends_nothing(
    office: PostOffice, relay: Relay, tmp_path: Path, journal: Path
) -> None:
    """`doctor` reports the warnings of readiness; it only reads."""
    relay.recipient_answers.append("554 5.7.1 no")
    await office.take_lead()
    await office.tick()
    await office.take_lead()
    settings = {
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(journal),
        "SITE_URL": "http://journal.test",
        "SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
        "OWNER_EMAIL": OWNER,
    }
    installation = Installation(tmp_path, settings)
    code, said, _ = await asyncio.to_thread(installation.run, "doctor")

    assert code == 1
    assert "- mail was given up: python -m edge_api mail list says why" in said
    assert relay.taken == []
