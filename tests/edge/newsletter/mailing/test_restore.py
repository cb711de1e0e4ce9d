"""A restore in the middle of a mailing: nobody is skipped, and nobody gets the letter twice."""

from pathlib import Path

import pytest

from edge_api.admin.privacy import Retention
from edge_api.auth.actor import OPERATOR
from edge_api.backup.restoration import carry_over, settle_newsletter
from edge_api.db.internal_tables import ANNOUNCED_POSTS
from edge_api.db.sqlite.copying import copy_store
from edge_api.db.sqlite.engine import open_store
from edge_api.db.tables import EMAIL_SEND_LOG
from tests.edge.engines import ON_SQLITE
from tests.edge.mail.outbox.post_office import TickingClock
from tests.edge.mail.outbox.scripted_relay import Relay
from tests.edge.newsletter.mailing.conftest import Newsroom, open_newsroom
from tests.edge.newsletter.mailing.test_sending import readers


@ON_SQLITE
@pytest.mark.parametrize("has_former", [True, False])
async def test_a_restore_within_a_mailing(
    newsroom: Newsroom, tmp_path: Path, clock: TickingClock, relay: Relay, *, has_former: bool
) -> None:
    """It goes on where the former store can be read; else it is held until the owner resumes."""
    people = readers(120)
    await newsroom.subscribe(*people)
    (mailing,) = await newsroom.start("one")
    await newsroom.send_all(4)
    copy_store(tmp_path / "edge.db", tmp_path / "restored.db")
    await newsroom.send_all(12)
    sent = len(newsroom.readers)
    restored = await open_store(tmp_path / "restored.db", clock)
    try:
        if has_former:
            await carry_over(newsroom.office.store, restored, clock)
        held = await settle_newsletter(restored, clock, is_carried=has_former)
        after = await open_newsroom(tmp_path, restored, clock, relay)
        (announced,) = await after.office.rows(ANNOUNCED_POSTS)
        assert (announced["texts"], held) == ("", 0 if has_former else 1)
        if not has_former:
            await after.send_all(10)
            assert len(after.readers) == sent
            assert "skip it if it had gone out" in (await after.found())[0]["held_for"]
            await after.mailings.resume(mailing["id"], OPERATOR)
        await after.send_all(60)
    finally:
        await restored.close()
    if has_former:
        assert sorted(after.readers) == people
    assert set(after.readers) == set(people)


async def test_lines_of_the_newsletter_go_after_ninety_days(newsroom: Newsroom) -> None:
    """Others stay as long as the settings say, which is for ever here."""
    await newsroom.subscribe(*readers(3))
    await newsroom.start("one")
    await newsroom.send_all(5)
    await newsroom.office.take_lead()
    await newsroom.send_all(5)
    newsroom.office.clock.move(days=91)
    retention = Retention(newsroom.office.store, newsroom.office.clock, newsroom.settings)
    await retention.apply()
    left = {row["template_name"] for row in await newsroom.office.rows(EMAIL_SEND_LOG)}
    assert left == {"lead_notification", "mailing_notice"}
