"""The link of the newsletter ends that subscription alone, and takes its end back."""

import asyncio
from typing import Any

import pytest

from edge_api.db.newsletter_tables import SUBSCRIBERS
from tests.edge.newsletter.conftest import ANN, Newsletter

pytestmark = pytest.mark.each_engine
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


async def state(newsletter: Newsletter) -> tuple[str, str | None, dict[str, str]]:
    """Return the status of Ann's subscription, who ended it, and the suppressions."""
    row = await newsletter.subscriber()
    return row["status"], row["ended_by"], await newsletter.suppressed()


async def test_opening_the_link_changes_nothing(newsletter: Newsletter) -> None:
    """A scanner opens it a thousand times, with every change that a button would make."""
    token = await newsletter.add()
    (before,) = await newsletter.rows(SUBSCRIBERS)

    async def open_links(then: str) -> None:
        for _ in range(200):
            async with newsletter.edge.ask("GET", f"/unsubscribe?token={token}{then}") as answer:
                assert answer.status == 200

    changes = ("", "&then=no-mail", "&then=mail", "&then=resume", "&then=leave")
    await asyncio.gather(*map(open_links, changes))

    assert await newsletter.rows(SUBSCRIBERS) == [before]
    assert await newsletter.suppressed() == {}
    page = await newsletter.page("GET", f"/unsubscribe?token={token}")
    assert (page.title, list(page.buttons)) == ("Unsubscribe", ["Unsubscribe"])
    assert "a\u2026@readers-club.net" in page.text
    assert ANN not in page.text
    assert page.headers["X-Robots-Tag"] == "noindex, nofollow"


@pytest.mark.parametrize(
    "body",
    [{"data": ONE_CLICK}, {"data": b"\xff"}, {"json": []}, {}, {"headers": {"Origin": "null"}}],
    ids=str,
)
async def test_one_post_ends_that_subscription_alone(
    newsletter: Newsletter, body: dict[str, Any]
) -> None:
    """For any body; other mail goes on, and other subscribers stay."""
    token = await newsletter.add()
    await newsletter.add("ben@readers-club.net")
    page = await newsletter.page("POST", f"/unsubscribe?token={token}", **body)

    assert (page.status, page.title) == (200, "You are unsubscribed")
    assert list(page.buttons) == ["Subscribe again", "No mail at all from this site"]
    assert await state(newsletter) == ("ended", "link", {})
    assert (await newsletter.subscriber("ben@readers-club.net"))["status"] == "active"


async def test_leaving_again_and_coming_back(newsletter: Newsletter) -> None:
    """Each button is the same link; a second press changes nothing."""
    token = await newsletter.add()
    path = f"/unsubscribe?token={token}"
    first = await newsletter.page("POST", path)
    ended = await newsletter.subscriber()
    await newsletter.page("POST", path)
    assert await newsletter.subscriber() == ended

    back = await newsletter.page("POST", first.buttons["Subscribe again"])
    assert (back.title, list(back.buttons)) == ("You are subscribed", ["Unsubscribe"])
    assert await state(newsletter) == ("active", None, {})
    row = await newsletter.subscriber()
    assert row["confirmed_at"]
    assert row["ended_at"] is None


async def test_no_mail_at_all_and_its_taking_back(newsletter: Newsletter) -> None:
    """The subscription stays ended until it is taken back too."""
    token = await newsletter.add()
    left = await newsletter.page("POST", f"/unsubscribe?token={token}")
    refused = await newsletter.page("POST", left.buttons["No mail at all from this site"])
    assert (refused.title, list(refused.buttons)) == (
        "You get no mail from this site",
        ["Allow mail again"],
    )
    assert await state(newsletter) == ("ended", "link", {ANN: "unsubscribe"})

    allowed = await newsletter.page("POST", refused.buttons["Allow mail again"])
    assert allowed.title == "You are unsubscribed"
    assert await state(newsletter) == ("ended", "link", {})


async def test_no_mail_at_all_by_one_post_ends_the_subscription_too(
    newsletter: Newsletter,
) -> None:
    """Without the step before."""
    token = await newsletter.add()
    await newsletter.page("POST", f"/unsubscribe?token={token}&then=no-mail")
    assert await state(newsletter) == ("ended", "link", {ANN: "unsubscribe"})


@pytest.mark.parametrize("reason", ["bounce", "complaint"])
async def test_other_suppressions_are_not_taken_back(newsletter: Newsletter, reason: str) -> None:
    """Nor does the page offer it."""
    token = await newsletter.add()
    await newsletter.suppress(ANN, reason)
    page = await newsletter.page("POST", f"/unsubscribe?token={token}&then=mail")
    assert page.buttons == {}
    assert await newsletter.suppressed() == {ANN: reason}


@pytest.mark.parametrize(
    "values",
    [
        {"status": "ended", "confirmed_at": None},
        {"status": "pending", "confirmed_at": None},
        {"status": "bounced"},
    ],
    ids=str,
)
async def test_only_a_confirmed_subscription_comes_back(
    newsletter: Newsletter, values: dict[str, Any]
) -> None:
    """What was never confirmed needs a confirmation; what bounced too."""
    token = await newsletter.add(**values)
    page = await newsletter.page("POST", f"/unsubscribe?token={token}&then=resume")
    assert "Subscribe again" not in page.buttons
    assert (await newsletter.subscriber())["status"] == values["status"]


async def test_links_work_without_the_newsletter(make_edge: Any) -> None:
    """They were mailed for ever; whoever asks for anything else is answered 404."""
    async with make_edge() as edge:
        for method, path in (
            ("GET", "/subscribe"),
            ("POST", "/subscribe"),
            ("GET", "/subscribe/confirm?token=x"),
            ("POST", "/subscribe/confirm?token=x"),
        ):
            async with edge.ask(method, path, data=b"") as answer:
                assert answer.status in (404, 405), (method, path)
        key, body = await edge.key("subscribers:write"), {"email": ANN, "consent": "x"}
        async with edge.ask("POST", "/api/public/v1/subscribers", key, json=body) as answer:
            assert answer.status == 503
            assert "NEWSLETTER=on" in await answer.text()
        reader = await edge.key("posts:read")
        async with edge.ask("GET", "/api/public/v1/posts?limit=1", reader) as answer:
            slug = (await answer.json())["posts"][0]["slug"]
        async with edge.ask("GET", f"/journal/{slug}/") as answer:
            assert "/subscribe" not in await answer.text()
        for method in ("GET", "POST"):
            async with edge.ask(method, f"/unsubscribe?token={'0' * 64}") as answer:
                assert answer.status == 200
                assert "nothing is mailed by it" in await answer.text()
