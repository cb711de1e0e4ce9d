"""Mailings of real builds: a post is mailed once, and what nobody meant to mail is not mailed."""

import asyncio
from dataclasses import replace

import pytest

from edge_api.auth.actor import ANYONE, OPERATOR, Actor, audit_entry
from edge_api.db.internal_tables import ANNOUNCED_POSTS
from edge_api.db.newsletter_tables import MAILINGS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Update
from edge_api.newsletter.mailings import Mailings
from edge_api.schema.index import CURRENT_LINK, PREVIOUS_LINK
from tests.edge.engines import Opener
from tests.edge.newsletter.mailing.conftest import WORDS, Newsroom

OWNER = replace(ANYONE, name="owner")
WRITER = Actor("0190-key", "writer", "api_key", frozenset())


@pytest.fixture
async def going(newsroom: Newsroom) -> Newsroom:
    """Return a newsroom whose newsletter goes: it has a build, and a test was sent."""
    newsroom.write("old", hours=500)
    await newsroom.build()
    await newsroom.test_letter()
    assert await newsroom.found() == []
    return newsroom


async def test_a_new_post_is_mailed_once_whatever_becomes_of_it(going: Newsroom) -> None:
    """It is edited, renamed with and without an alias, rolled back, taken off and put back."""
    going.write("fresh")
    await going.build()
    assert await going.due() == ["fresh"]

    going.write("fresh", text="Another text. " + WORDS)
    await going.build()
    going.remove("fresh")
    going.write("newer", text="Yet another text. " + WORDS, head="aliases: [fresh]")
    await going.build()
    going.remove("newer")
    going.write("newest", text="Yet  another\ntext. " + WORDS)
    await going.build()
    builds = going.settings.build_dir
    former, present = (builds / link for link in (PREVIOUS_LINK, CURRENT_LINK))
    targets = former.readlink(), present.readlink()
    for target in targets:
        present.unlink()
        present.symlink_to(target)
        await going.follow()
    going.start_edge()
    await going.follow()
    going.remove("newest")
    await going.build()
    going.write("newest", text="Yet another text. " + WORDS)
    await going.build()

    assert [row["slug"] for row in await going.found()] == ["fresh"]


async def test_several_posts_that_wait_are_one_message_to_the_owner(going: Newsroom) -> None:
    """It is not sent any more where the owner was faster."""
    for number in range(5):
        going.write(f"post-{number}", hours=10 - number)
    await going.build()
    assert {each["waiting"] for each in await going.mailings.recent()} == {0}
    going.relay.taken.clear()
    await going.office.tick()
    assert [each.message["Subject"] for each in going.relay.taken] == ["Not mailed yet: Post-2"]

    going.write("other", hours=1, head="newsletter: no")
    going.write("imported-old", hours=400)
    going.write("imported", hours=3)
    await going.build()
    await going.mailings.release("imported", OPERATOR)
    await going.office.tick()
    assert len(going.relay.taken) == 1


async def test_two_posts_of_a_build_are_mailed_and_a_third_waits(going: Newsroom) -> None:
    """The oldest go first; the ids of mailings begin differently."""
    for number in range(4):
        going.write(f"post-{number}", hours=10 - number)
    await going.build()

    assert await going.due() == ["post-0", "post-1"]
    assert await going.waiting() == dict.fromkeys(
        ("post-2", "post-3"), "2 posts of the same build are mailed already"
    )
    assert len({row["id"][:13] for row in await going.found()}) == 4


async def test_a_new_post_waits_where_another_vanished(going: Newsroom) -> None:
    """It may be the same with another slug and a mended word; one with an alias is known."""
    going.write("first")
    await going.build()
    going.remove("first")
    going.write("first-again", text="Mended. About first. " + WORDS)
    await going.build()
    assert await going.due() == ["first"]
    reason = "another post vanished in the same build: it may be the same with a new name"
    assert await going.waiting() == {"first-again": reason}

    going.remove("first-again")
    going.write("third", text="Renamed. " + WORDS, head="aliases: [first-again]")
    going.write("old", hours=500, head="newsletter: no")
    going.write("new")
    await going.build()
    assert await going.due() == ["first", "new"]


async def test_old_posts_get_no_mailing_and_make_recent_ones_wait(going: Newsroom) -> None:
    """An import brings both; an old one alone is no news."""
    going.write("backdated", hours=49)
    await going.build()
    assert await going.found() == []

    going.write("imported-old", hours=400)
    going.write("imported", hours=3)
    await going.build()
    assert await going.due() == []
    assert list(await going.waiting()) == ["imported"]


async def test_a_post_of_a_credential_waits(going: Newsroom) -> None:
    """The audit log says who published it last; the owner's own word after that counts."""
    store, clock = going.office.store, going.office.clock
    for slug, actors in {"by_key": [OWNER, WRITER], "by-me": [WRITER, OWNER]}.items():
        for actor in actors:
            clock.move(seconds=1)
            await store.run(audit_entry(actor, "publish", "posts", 1, clock(), slug, "version"))
        going.write(slug)
    await store.run(audit_entry(WRITER, "publish", "posts", 1, clock(), "byxme", "version"))
    going.write("by-x", hours=2)
    await going.build()

    assert await going.waiting() == {"by_key": "a credential published it"}
    assert await going.due() == ["by-x", "by-me"]


async def test_the_first_build_waits_and_so_does_one_after_a_restore(newsroom: Newsroom) -> None:
    """The newsletter was turned on, or nobody knows what was mailed; a test is needed too."""
    newsroom.write("first")
    await newsroom.build()
    reason = "it is the first build since the newsletter was turned on, or since a restore"
    assert await newsroom.waiting() == {"first": reason}

    newsroom.write("second")
    await newsroom.build()
    waiting = await newsroom.waiting()
    assert "no test letter was sent to you yet" in waiting["second"]
    with pytest.raises(Problem, match="no test letter was sent"):
        await newsroom.mailings.release("second", OPERATOR)
    await newsroom.test_letter("second")
    assert (await newsroom.mailings.check()) is None
    *notices, letter = (each for each in newsroom.relay.taken)
    assert [each.message["Subject"] for each in notices] == [
        "Not mailed yet: First",
        "Not mailed yet: Second",
    ]
    body = notices[0].message.get_body(("plain",))
    assert body is not None
    told = body.get_content()
    assert f"Why: {reason}." in told
    assert "https://journal.example/desk/newsletter/" in told
    assert (letter.recipient, letter.sender) == (
        newsroom.office.mailing.outbox.owner,
        "post@letters-of-it.net",
    )
    released = await newsroom.mailings.release("second", OPERATOR)
    assert (released["waits_for"], bool(released["due_at"])) == ("", True)

    newsroom.write("third")
    await newsroom.build()
    assert await newsroom.due() == ["second", "third"]

    await newsroom.office.store.run(
        Update(ANNOUNCED_POSTS, {"texts": ""}, (Filter("id", "eq", 1),))
    )
    newsroom.write("fourth")
    await newsroom.build()
    assert (await newsroom.waiting())["fourth"] == reason


async def test_the_head_keeps_a_post_out_and_has_a_hidden_one_mailed(going: Newsroom) -> None:
    """A hidden post is in no list of the edge; another wish than yes or no is an error."""
    await going.subscribe("ann@readers-club.net")
    going.write("kept", head="newsletter: no")
    going.write("hidden", head="status: hidden\nnewsletter: yes\nlang: de")
    going.write("only-hidden", head="status: hidden")
    await going.build()
    assert await going.due() == ["hidden"]
    build = going.builds.build()
    assert {entry.cursor.slug for entry in build.posts.entries} == {"old", "kept"}

    going.office.clock.move(minutes=10)
    await going.send_all(10)
    assert going.readers == ["ann@readers-club.net"]

    going.write("hidden", head="newsletter: yes")
    await going.build()
    assert [row["slug"] for row in await going.found()] == ["hidden"]


async def test_the_owner_mails_any_post_once(going: Newsroom) -> None:
    """Released by former slug too; skipped and then released it goes; a second time it does not."""
    mailing = await going.mailings.release("old", OPERATOR)
    with pytest.raises(Problem, match="in no state to release"):
        await going.mailings.release("old", OPERATOR)
    await going.mailings.skip(mailing["id"], OPERATOR)
    with pytest.raises(Problem, match="in no state to hold"):
        await going.mailings.hold(mailing["id"], OPERATOR)
    again = await going.mailings.release("old", OPERATOR)
    assert again["id"] == mailing["id"]
    with pytest.raises(Problem, match="No post of the current build has this slug"):
        await going.mailings.release("nothing", OPERATOR)
    assert len(await going.office.rows(MAILINGS)) == 1


@pytest.mark.parametrize("is_ended", [False, True])
async def test_two_presses_at_once_release_once(
    going: Newsroom, open_another: Opener, *, is_ended: bool
) -> None:
    """One of two edges does it, and the other says that it is done."""
    office = going.office
    other = Mailings(going.settings, await open_another(), office.clock, office.mailing.outbox)
    if is_ended:
        mailing = await going.mailings.release("old", OPERATOR)
        await going.mailings.skip(mailing["id"], OPERATOR)
    presses = (each.release("old", OPERATOR) for each in (going.mailings, other))
    answers = await asyncio.gather(*presses, return_exceptions=True)
    (refused,) = (each for each in answers if isinstance(each, BaseException))
    assert isinstance(refused, Problem)
    assert refused.code == "conflict"
    assert await going.due() == ["old"]


async def test_nobody_can_mail_what_its_head_keeps_out(going: Newsroom) -> None:
    """Neither to the subscribers nor as a test; the newest of a test is one that may be mailed."""
    going.write("kept", head="newsletter: no")
    await going.build()
    for press in (going.mailings.release("kept", OPERATOR), going.mailings.test(OPERATOR, "kept")):
        with pytest.raises(Problem, match="or it is not to be mailed"):
            await press
    going.relay.taken.clear()
    await going.test_letter()
    assert [each.message["Subject"] for each in going.relay.taken] == ["Old"]
