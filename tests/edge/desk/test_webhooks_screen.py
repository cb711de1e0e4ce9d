"""The screen of webhooks, with a receiver on this machine."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from edge_api.auth.actor import recent_entries
from edge_api.db.internal_tables import DESK_SESSIONS, WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.query import Filter, Insert, Update
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from tests.edge.conftest import EdgeMaker
from tests.edge.desk.conftest import Browser
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.each_engine

PATH = "/desk/webhooks/"
PUBLIC = "https://93.184.216.34/hook"
HOSTILE = "https://x.example/<script>alert(1)</script>"


class LocalBrowser(Browser):
    """A browser on the machine of the site, which may have any port."""

    @property
    def own(self) -> dict[str, str]:
        """The headers of a browser besides `Origin`, which has the port."""
        return {"Sec-Fetch-Site": "same-origin"}


async def add(owner: Browser, url: str = PUBLIC, event: str = "lead.created") -> Row:
    """Add an endpoint at the desk; return it as it is stored."""
    shown = await owner.post(PATH, url=url, event=event)
    assert shown.one(".secret code[data-copy]").text().startswith("whsec_")
    assert shown.headers["Cache-Control"] == "no-store"
    return next(row for row in await owner.rows(WEBHOOK_ENDPOINTS) if row["url"] == url)


async def fail(owner: Browser, endpoint: Row, number: int, *, is_dead: bool = True) -> list[Row]:
    """Store deliveries of an endpoint that failed; return them."""
    given = {"endpoint_id": endpoint["id"], "event": "lead.created", "attempts": 10}
    given |= {"subject_id": endpoint["id"], "body": "{}", "last_answer": "answered 500"}
    given |= {"due_at": "2999-01-01T00:00:00.000000Z"}
    given |= {"dead_at": "2026-06-01T12:00:00.000000Z"} if is_dead else {}
    rows = [make_row(WEBHOOK_DELIVERIES, given) for _ in range(number)]
    await owner.edge.service.store.run(Insert(WEBHOOK_DELIVERIES, rows))
    return rows


async def test_an_endpoint_is_added_and_changed(owner: Browser) -> None:
    """Its secret is shown once; events, pause, and removal after a tick."""
    assert "No program hears of anything yet." in (await owner.get(PATH)).said
    row = await add(owner)
    path = f"{PATH}{row['id']}/"
    shown = await owner.get(PATH)
    assert f"{PUBLIC} It hears when somebody wrote." in shown.said
    assert "whsec_" not in shown.text

    await owner.post(f"{path}events/", event=["post.published", "post.removed"])
    assert "when a post is public, or when a post was removed." in (await owner.get(PATH)).said
    none = await owner.post(f"{path}events/", x="")
    assert (none.status, none.one("details[open] .fault").text()) == (
        400,
        "Tick at least one event.",
    )
    await owner.post(f"{path}pause/")
    assert "It has got nothing since" in (await owner.get(PATH)).said
    await owner.post(f"{path}resume/")
    assert (await owner.rows(WEBHOOK_ENDPOINTS))[0]["disabled_at"] is None

    asked = await owner.post(f"{path}remove/", x="")
    assert (asked.status, "Tick this box to remove it." in asked.said) == (400, True)
    assert len(await owner.rows(WEBHOOK_ENDPOINTS)) == 1
    await fail(owner, row, 1)
    assert (await owner.post(f"{path}remove/", sure="yes")).status == 303
    assert (await owner.post(f"{path}remove/", sure="yes")).status == 404
    assert await owner.rows(WEBHOOK_ENDPOINTS) == await owner.rows(WEBHOOK_DELIVERIES) == []
    entries = await recent_entries(owner.edge.service.store, 20)
    made = [each for each in entries if each["table_name"] == "webhook_endpoints"]
    assert [each["verb"] for each in made] == ["remove", "enable", "pause", "choose", "add"]
    assert {each["actor"].partition(":")[0] for each in made} == {"credential"}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://127.0.0.1/hook", "URL: its address is not public."),
        ("https://169.254.169.254/latest", "URL: its address is not public."),
        ("https://[::1]/hook", "URL: its address is not public."),
        ("http://93.184.216.34/hook", "URL: must be https"),
        ("ftp://example.org", "URL: must begin with https://"),
        ("", "URL: must begin with https://"),
        ("https://user:pass@93.184.216.34/", "URL: must have neither a name"),
        (HOSTILE.replace("/<", "/\n<"), "URL: must begin with https://"),
    ],
)
async def test_an_address_inside_is_refused(make_edge: EdgeMaker, url: str, said: str) -> None:
    """On a public site; the typed and ticked values stay, nothing is stored."""
    async with make_edge(SITE_URL="https://journal.example") as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        shown = await owner.post(PATH, url=url, event="post.removed")
        assert (shown.status, shown.one("#url-fault").text()[: len(said)]) == (400, said)
        assert shown.one("#url").attributes["value"] == url
        ticked = [str(each.attributes["value"]) for each in shown.tree.css("[checked]")]
        assert ticked == ["post.removed"]
        assert "<script>alert" not in shown.text
        assert await owner.rows(WEBHOOK_ENDPOINTS) == []


async def test_an_address_is_added_once(owner: Browser) -> None:
    """A second window gets a message, and no secret."""
    await owner.token()
    form = {"url": PUBLIC, "event": "lead.created"}
    answers = await asyncio.gather(*(owner.post(PATH, **form) for _ in range(2)))
    assert sorted(each.status for each in answers) == [200, 409]
    (late,) = [each for each in answers if each.status == 409]
    assert f"There is an endpoint for {PUBLIC} already." in late.said
    assert "whsec_" not in late.text


async def test_a_secret_is_rotated_once_for_a_form(owner: Browser) -> None:
    """The second press, and the form of a second window, change nothing and show no secret."""
    row = await add(owner)
    path, form = f"{PATH}{row['id']}/rotate/", {"former_until": ""}
    answers = await asyncio.gather(*(owner.post(path, **form) for _ in range(2)))
    assert sorted(each.status for each in answers) == [200, 409]
    rotated = (await owner.rows(WEBHOOK_ENDPOINTS))[0]
    assert rotated["former_secret"] == row["secret"]
    late = await owner.post(path, **form)
    assert (late.status, "rotated meanwhile" in late.said, "whsec_" in late.text) == (
        409,
        True,
        False,
    )
    assert (await owner.rows(WEBHOOK_ENDPOINTS))[0] == rotated
    field = (await owner.get(PATH)).one(f'form[action="{path}"] [name=former_until]')
    again = await owner.post(path, former_until=str(field.attributes["value"]))
    assert again.one(".secret").text().startswith("whsec_")


async def test_failed_deliveries_are_retried_and_discarded(owner: Browser) -> None:
    """One, those of an endpoint, or all; with the answer, and when it was given up."""
    first, second = await add(owner), await add(owner, "https://93.184.216.35/hook")
    dead = await fail(owner, first, 3)
    await fail(owner, second, 1)
    await fail(owner, second, 1, is_dead=False)
    shown = await owner.get(PATH)
    assert shown.said.count("answered 500. 10 attempts, given up 1 Jun 2026") == 4
    assert "answered 500. 10 attempts, the next one 1 Jan 2999" in shown.said

    async def given_up() -> list[str]:
        rows = await owner.rows(WEBHOOK_DELIVERIES)
        return sorted(row["id"] for row in rows if row["dead_at"])

    for _ in range(2):  # the second press finds nothing
        assert (await owner.post(f"{PATH}{first['id']}/{dead[0]['id']}/retry/")).status == 303
    assert len(await given_up()) == 3
    # A delivery is that of its endpoint alone.
    await owner.post(f"{PATH}{second['id']}/{dead[1]['id']}/discard/")
    assert len(await given_up()) == 3
    await owner.post(f"{PATH}{first['id']}/{dead[1]['id']}/discard/")
    assert len(await owner.rows(WEBHOOK_DELIVERIES)) == 4
    await owner.post(f"{PATH}{first['id']}/pause/")
    refused = await owner.post(f"{PATH}{first['id']}/retry/")
    assert (refused.status, "enable it first" in refused.said) == (409, True)
    await owner.post(f"{PATH}{first['id']}/resume/")
    await owner.post(f"{PATH}retry/")
    assert await given_up() == []
    await fail(owner, first, 2)
    await owner.post(f"{PATH}{first['id']}/discard/")
    assert (await given_up(), len(await owner.rows(WEBHOOK_DELIVERIES))) == ([], 4)


async def test_a_test_event_says_what_came_of_it(
    make_edge: EdgeMaker, aiohttp_server: AiohttpServer
) -> None:
    """It arrives signed; a failure is a sentence with the answer."""
    received, status = [], [204]

    async def take(request: web.Request) -> web.Response:
        received.append((await request.json(), "webhook-signature" in request.headers))
        return web.Response(status=status[0])

    app = web.Application()
    app.router.add_post("/hook", take)
    server = await aiohttp_server(app)
    async with make_edge(SITE_URL="http://127.0.0.1:8000") as edge:
        owner = await LocalBrowser(edge).sign_in(await edge.key())
        row = await add(owner, str(server.make_url("/hook")))
        path = f"{PATH}{row['id']}/test/"
        done = await owner.get((await owner.post(path)).to)
        assert f"The test event has arrived at {row['url']}." in done.said
        status[0] = 503
        failed = await owner.post(path)
        assert (failed.status, "did not arrive: answered 503." in failed.said) == (409, True)
        assert [(body["type"], is_signed) for body, is_signed in received] == [
            ("webhook.test", True)
        ] * 2
        assert "has arrived" not in (await owner.get(f"{PATH}?tested=made-up")).said


async def test_changing_an_endpoint_needs_a_fresh_sign_in(owner: Browser) -> None:
    """After a day, adding and resuming ask for the key again; pausing and discarding do not."""
    row = await add(owner)
    at = format_instant(owner.edge.service.clock() - timedelta(hours=25))
    every = Update(DESK_SESSIONS, {"created_at": at}, (Filter("id", "is", None, negated=True),))
    await owner.edge.service.store.run(every)
    path = f"{PATH}{row['id']}/"
    asked = await owner.post(PATH, url="https://93.184.216.35/x", event="lead.created")
    assert (asked.status, "You signed in more than a day ago" in asked.said) == (401, True)
    for verb in ("rotate", "events", "resume", "test", "remove"):
        assert (await owner.post(f"{path}{verb}/", sure="yes")).status == 401, verb
    for verb in ("pause", "discard"):
        assert (await owner.post(f"{path}{verb}/")).status == 303, verb
    assert len(await owner.rows(WEBHOOK_ENDPOINTS)) == 1


async def test_an_unknown_endpoint_is_not_found(owner: Browser) -> None:
    """For any id in the address."""
    for key in ("none", "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b", "%00"):
        for verb in ("pause", "resume", "rotate", "test", "retry", "discard"):
            assert (await owner.post(f"{PATH}{key}/{verb}/")).status == 404, (key, verb)
