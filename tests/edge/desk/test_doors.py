"""Access to the desk: tokens of forms, fresh sign-ins, undone revocations, links."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from edge_api.auth.actor import system_clock
from edge_api.auth.desk_links import LIFETIME, STRANGER_LIFETIME, DeskLinks
from edge_api.auth.keys import UNDO_TIME, Keys, NewKey
from edge_api.db.internal_tables import (
    ACCESS_REQUESTS,
    DESK_LINKS,
    DESK_SESSIONS,
    EMAIL_OUTBOX,
    OAUTH_GRANTS,
)
from edge_api.db.query import Filter, Insert, Update
from edge_api.db.tables import AUDIT_LOG, CREDENTIALS, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.sessions import HIDDEN_FIELD
from edge_api.operations import DESK
from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.desk.conftest import Browser, Response
from tests.edge.desk.test_actions import SCREENS, ask_for_access
from tests.edge.domain.conftest import MovableClock
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.each_engine
POSTS = sorted(each.path for each in DESK if each.method == "POST")
EVERY = (Filter("id", "is", None, negated=True),)
SITE = "https://journal.test"
MAIL = {
    "SITE_URL": SITE,
    "SMTP_URL": "smtp://127.0.0.1:9",
    "OWNER_EMAIL": "o@example.org",
    "MAIL_FROM": "desk@example.org",
    "MAIL_DISPATCHER": "off",
}


def path_of(address: str) -> str:
    """Return the path of a link to the desk."""
    return f"/desk/{address.partition('/desk/')[2]}"


async def owner_by_link(edge: RunningEdge) -> Browser:
    """Return a browser that is signed in by a link."""
    browser = Browser(edge)
    address = await edge.service[DeskLinks].create()
    assert (await browser.post(path_of(address))).status == 303
    return browser


async def age(browser: Browser, **ago: float) -> None:
    """Have all sessions begin some time ago."""
    at = format_instant(browser.edge.service.clock() - timedelta(**ago))
    await browser.edge.service.store.run(Update(DESK_SESSIONS, {"created_at": at}, EVERY))


def in_days(days: int) -> str:
    """Return a day that is so many days away."""
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"


def fields_of(shown: Response, form: str) -> dict[str, str]:
    """Return the hidden fields of a form, the token too."""
    found = shown.tree.css(f'form[action="{form}"] input[type=hidden]')
    return {str(each.attributes["name"]): str(each.attributes["value"]) for each in found}


@pytest.mark.parametrize("kind", ["none", "empty", "wrong", "stranger", "another", "former", "two"])
async def test_a_form_that_the_desk_did_not_show_does_nothing(edge: RunningEdge, kind: str) -> None:
    """For every action: without the token of this very session nothing is changed."""
    former = await Browser(edge).sign_in(await edge.key())
    given: Any = {"none": [], "empty": "", "wrong": "a.b", "former": await former.token()}.get(kind)
    owner = await former.sign_in(await edge.key())
    if kind == "stranger":
        given = await Browser(edge).token()
    elif kind == "another":
        given = await (await Browser(edge).sign_in(await edge.key())).token()
    elif kind == "two":
        given = [await owner.token(), await owner.token()]
    lead, asked = await owner.lead(), await ask_for_access(edge)
    tables = (LEADS, CREDENTIALS, ACCESS_REQUESTS, AUDIT_LOG, DESK_SESSIONS, DESK_LINKS)
    before = [await owner.rows(table) for table in tables]
    form = {"sure": "yes", "id": lead["id"], "status": "won", "name": "Evil", "key": "fe_sk_typed"}
    form |= {"scope": ["admin:write"], "once": str(uuid4()), "notes": "a long note"}
    assert len(POSTS) > 15
    for path in POSTS:
        key = asked if "requests" in path else lead["id"]
        own = path.format(key=key, table="leads", token="x", delivery=key, slug="x")
        refused = await owner.post(own, **{**form, HIDDEN_FIELD: given})
        assert (refused.status, "reload that page" in refused.said) == (403, True), path
        assert "a long note" in refused.said
        assert "fe_sk_typed" not in refused.text
    after = [await owner.rows(table) for table in tables]
    used = [{**row, "last_used_at": None} for row in after[1]]
    assert used == [{**row, "last_used_at": None} for row in before[1]]
    assert (after[0], after[2:]) == (before[0], before[2:])
    assert (await owner.get("/desk/access/")).status == 200


async def test_every_form_has_a_token_that_no_other_page_has(owner: Browser) -> None:
    """Also those of pages that are shown signed out, after an error, and once."""
    lead = await owner.lead(status="spam")
    await ask_for_access(owner.edge)
    link = path_of(await owner.edge.service[DeskLinks].create())
    key = await owner.post("/desk/access/keys/", name="n", scope=["posts:read"], once=str(uuid4()))
    shown = [key, await owner.post("/desk/leads/mark/"), await owner.post("/desk/audit/x/undo/")]
    shown += [await owner.get(path) for path in (*SCREENS, f"/desk/leads/{lead['id']}/", link)]
    stranger = Browser(owner.edge)
    shown += [await stranger.get("/desk/sign-in/"), await stranger.get(link)]
    tokens: list[str] = []
    for each in shown:
        forms = each.tree.css("form[method=post]")
        found = {
            str(field.attributes["value"])
            for form in forms
            for field in form.css(f"[name='{HIDDEN_FIELD}']")
        }
        assert len(each.tree.css(f"[name='{HIDDEN_FIELD}']")) == len(forms)
        assert len(found) == min(1, len(forms))
        tokens += found
    assert len(set(tokens)) == len(tokens) > 8
    assert owner.cookie.partition("=")[2] not in str([each.text for each in shown])


async def test_a_browser_without_cookies_gets_a_message(edge: RunningEdge) -> None:
    """No cookie, no token: also the key that was typed is not taken, nor shown."""
    key, lost = await edge.key(), Browser(edge)
    token = await lost.token()
    lost.tokens[("", "")], lost.known = token, ""
    refused = await lost.post("/desk/sign-in/", key=key)
    assert (refused.status, lost.cookie, key in refused.text) == (403, "", False)
    assert "must take cookies" in refused.said
    for cookie in ("desk=\udcff", "desk=", "desk-browser=.", "=; ;;", "desk=\xff\u20ac"):
        odd = Browser(edge, cookie=cookie)
        odd.tokens[cookie, ""] = token
        assert (await odd.post("/desk/sign-in/", key=key)).status == 403, cookie
    for odd_token in ("é.é", "." * 2000, "\x00", "a" * 300):
        answer = await Browser(edge).post("/desk/sign-in/", **{HIDDEN_FIELD: odd_token})
        assert answer.status == 403


async def test_a_form_outlives_its_session(owner: Browser) -> None:
    """A typed form can be sent after a new sign-in, since the old cookie shows whose it is."""
    lead, key = await owner.lead(), await owner.edge.key()
    path = f"/desk/leads/{lead['id']}/"
    await owner.get(path)
    every = Update(DESK_SESSIONS, {"expires_at": format_instant(system_clock())}, EVERY)
    await owner.edge.service.store.run(every)
    lost = await owner.post(path, notes="typed for an hour", **{"was.notes": ""})
    assert (lost.status, "What you typed is kept" in lost.said) == (401, True)
    resumed = await owner.post("/desk/sign-in/", **fields_of(lost, "/desk/sign-in/"), key=key)
    await owner.post(path, **fields_of(resumed, path))
    assert (await owner.rows(LEADS))[0]["notes"] == "typed for an hour"


async def test_grave_actions_ask_for_a_fresh_sign_in(owner: Browser) -> None:
    """Erasing, exporting a person, and keys without an end; a key that is pasted again does."""
    lead, key = await owner.lead(), await owner.edge.key()
    endless = (await owner.rows(CREDENTIALS))[0]
    asked = await ask_for_access(owner.edge)
    path = f"/desk/leads/{lead['id']}"
    grave: dict[str, dict[str, Any]] = {
        f"{path}/erase/": {"sure": "yes"},
        "/desk/access/keys/": {"name": "Printer", "scope": ["posts:read"], "once": str(uuid4())},
        f"/desk/access/keys/{endless['id']}/rotate/": {},
    }
    for ago in ({"hours": 24}, {"days": 29}, {"days": -2}):  # the last: a clock was set back
        await age(owner, **ago)
        before = len(await owner.rows(CREDENTIALS))
        for address, form in grave.items():
            asked_again = await owner.post(address, **form)
            assert (asked_again.status, "sign in again" in asked_again.said) == (401, True), address
        shown = await owner.get(f"{path}/person.json")
        assert (shown.status, lead["email"] in shown.text) == (401, False)
        assert len(await owner.rows(LEADS)) == 1
        assert len(await owner.rows(CREDENTIALS)) == before
        # An old session must not make itself a new one, nor a key that as good as never ends.
        for more in ({"scope": ["admin:read"], "expires": in_days(9)}, {"expires": in_days(400)}):
            form = {**grave["/desk/access/keys/"], "once": str(uuid4()), **more}
            assert (await owner.post("/desk/access/keys/", **form)).status == 401
        assert len(await owner.rows(CREDENTIALS)) == before
    # What is not grave goes on.
    ends = {**grave["/desk/access/keys/"], "once": str(uuid4()), "expires": in_days(300)}
    assert (await owner.post("/desk/access/keys/", **ends)).status == 200
    assert (await owner.post(f"{path}/", notes="x", **{"was.notes": ""})).status == 303
    assert (await owner.post(f"/desk/access/requests/{asked}/deny/")).status == 303

    kept = await owner.post("/desk/access/keys/", **grave["/desk/access/keys/"])
    hidden = fields_of(kept, "/desk/sign-in/")
    wrong = await owner.post("/desk/sign-in/", **hidden, key="fe_sk_wrong")
    assert (wrong.status, "What you typed is kept" in wrong.said) == (400, True)
    resumed = await owner.post("/desk/sign-in/", **fields_of(wrong, "/desk/sign-in/"), key=key)
    again = fields_of(resumed, "/desk/access/keys/")
    assert (again["name"], again["scope"]) == ("Printer", "posts:read")
    assert (await owner.post("/desk/access/keys/", **again)).status == 200

    await age(owner, hours=25)
    shown = await owner.get(f"{path}/person.json")
    back = await owner.post("/desk/sign-in/", **fields_of(shown, "/desk/sign-in/"), key=key)
    assert back.to == f"{path}/person.json"
    assert lead["email"] in (await owner.get(back.to)).text
    assert (await owner.post(f"{path}/erase/", sure="yes")).status == 200
    assert await owner.rows(LEADS) == []


async def grant(browser: Browser, key_id: str, **more: Any) -> str:
    """Store what a key let an OAuth client do; return its id."""
    given = {"client_id": f"{SITE}/client", "scopes": "posts:read", "resource": SITE}
    row = make_row(OAUTH_GRANTS, {**given, "credential_id": key_id, **more})
    await browser.edge.service.store.run(Insert(OAUTH_GRANTS, [row]))
    return str(row["id"])


async def works(edge: RunningEdge, secret: str) -> bool:
    """Return whether a key opens something."""
    async with edge.ask("GET", "/api/public/v1/posts", secret) as answer:
        return bool(answer.status == 200)


async def test_a_revocation_is_taken_back_by_the_owner_for_ten_minutes(
    make_edge: EdgeMaker,
) -> None:
    """Dead at once, mailed, alive again with what it granted, and never after the time."""
    clock = MovableClock(system_clock())
    async with make_edge(clock, **MAIL) as edge:
        issued = await Keys(edge.service.store, clock).issue(NewKey("Printer"))
        path = f"/desk/access/keys/{issued.row['id']}"
        owner = await owner_by_link(edge)
        helper = await Browser(edge).sign_in(await edge.key())
        mine = await grant(owner, issued.row["id"])
        at = format_instant(clock() - timedelta(minutes=2))
        others = await grant(owner, issued.row["id"], revoked_at=at)
        assert await works(edge, issued.secret)

        done = await helper.post(f"{path}/revoke/")
        assert not await works(edge, issued.secret)
        shown = await helper.get(done.to)
        assert shown.tree.css(f"form[action='{path}/undo/']") == []
        assert "the owner, signed in by a link, can take it back" in shown.said
        assert (await helper.post(f"{path}/undo/")).status == 403
        assert len((await owner.get(done.to)).tree.css(f".notice form[action='{path}/undo/']")) == 0
        assert len((await owner.get("/desk/access/")).tree.css(f"form[action='{path}/undo/']")) == 1
        assert (await owner.post(f"{path}/revoke/")).status == 409
        clock.move(minutes=9)
        undone = await owner.post(f"{path}/undo/")
        assert await works(edge, issued.secret)
        assert "The end of a key was taken back" in (await owner.get(undone.to)).said
        alive = {row["id"]: row["revoked_at"] for row in await owner.rows(OAUTH_GRANTS)}
        assert alive == {mine: None, others: at}
        again = await owner.post(f"{path}/undo/")
        assert (again.status, "it was taken back already" in again.said) == (409, True)
        mailed = [row["template_name"] for row in await owner.rows(EMAIL_OUTBOX)]
        assert mailed == ["key_notice", "key_notice"]

        again = await owner.post(f"{path}/revoke/")
        assert (
            len((await owner.get(again.to)).tree.css(f".notice form[action='{path}/undo/']")) == 1
        )
        twice = await asyncio.gather(*(owner.post(f"{path}/undo/") for _ in range(2)))
        assert sorted(each.status for each in twice) == [303, 409]
        await owner.post(f"{path}/revoke/")
        for minutes in (10, -2 * 24 * 60):
            clock.move(minutes=minutes)
            assert (await (await owner_by_link(edge)).post(f"{path}/undo/")).status == 409
            assert not await works(edge, issued.secret)
        assert (await owner.post("/desk/access/keys/none/undo/")).status == 404


@pytest.mark.parametrize("days", [None, 3, 300])
@pytest.mark.parametrize("kind", ["api_key", "access_token"])
async def test_a_rotation_is_taken_back(make_edge: EdgeMaker, kind: Any, days: int | None) -> None:
    """The old key ends as it would have, its successor at once, and grants pass back."""
    clock = MovableClock(system_clock())
    async with make_edge(clock) as edge:
        end = days and format_instant(clock() + timedelta(days=days))
        keys, scopes = Keys(edge.service.store, clock), ("posts:read", "mcp")
        issued = await keys.issue(NewKey("Printer", kind, scopes, None, end or None))
        old, path = issued.row["id"], f"/desk/access/keys/{issued.row['id']}"
        owner = await owner_by_link(edge)
        mine = await grant(owner, old)
        shown = await owner.post(f"{path}/rotate/")
        secret = shown.one(".secret").text()
        assert fields_of(shown, f"{path}/undo/")
        new = next(row for row in await owner.rows(CREDENTIALS) if row["id"] != old)
        assert (await owner.post(f"/desk/access/keys/{new['id']}/undo/")).status == 409
        assert len((await owner.get("/desk/access/")).tree.css(f"[action='{path}/undo/']")) == 1
        if kind == "api_key":
            assert await works(edge, secret)
        assert (await owner.post(f"{path}/undo/")).status == 303
        rows = {row["id"]: row for row in await owner.rows(CREDENTIALS)}
        assert {**rows[old], "last_used_at": None} == issued.row
        assert rows[new["id"]]["revoked_at"]
        assert not await works(edge, secret)
        (row,) = [row for row in await owner.rows(OAUTH_GRANTS) if row["id"] == mine]
        assert (row["credential_id"], row["revoked_at"]) == (old, None)

        await owner.post(f"{path}/rotate/")
        clock.move(minutes=UNDO_TIME.total_seconds() / 60)
        assert (await (await owner_by_link(edge)).post(f"{path}/undo/")).status == 409
        assert f"{path}/undo/" not in (await owner.get("/desk/access/")).text


async def test_a_successor_that_was_rotated_comes_first(make_edge: EdgeMaker) -> None:
    """Else a third key would go on."""
    async with make_edge() as edge:
        keys = Keys(edge.service.store, system_clock)
        first = (await keys.issue(NewKey("Printer"))).row
        second = (await keys.rotate(first["id"])).row
        await keys.rotate(second["id"])
        owner = await owner_by_link(edge)
        early = await owner.post(f"/desk/access/keys/{first['id']}/undo/")
        assert (early.status, "successor was rotated too" in early.said) == (409, True)
        for row in (second, first):
            assert (await owner.post(f"/desk/access/keys/{row['id']}/undo/")).status == 303
        states = {row["id"]: row["revoked_at"] for row in await owner.rows(CREDENTIALS)}
        assert [each for each, ended in states.items() if not ended] == [first["id"]]


async def mailed(browser: Browser) -> int:
    """Return how many links are to be mailed."""
    entries = await browser.rows(EMAIL_OUTBOX)
    return sum(row["template_name"] == "desk_link" for row in entries)


async def test_strangers_cannot_shut_the_owner_out(make_edge: EdgeMaker) -> None:
    """However many ask: one mail, whose link goes on working; a browser that is known gets its own.

    At most five mails a day, also with two windows, a restart, and a clock that jumps.
    """
    clock = MovableClock(system_clock())
    async with make_edge(clock, **MAIL, RATE_DESK_LINKS="3/hour;10/day") as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        await owner.get("/desk/")
        await owner.post("/desk/sign-out/")
        bombs = [await Browser(edge).post("/desk/mail-link/") for _ in range(40)]
        assert {(each.status, each.said) for each in bombs} == {(200, bombs[0].said)}
        assert await mailed(owner) == 1
        (unanswered,) = await owner.rows(DESK_LINKS)
        assert (await (await owner_by_link(edge)).get("/desk/")).status == 200, "`desk link` works"
        assert (await owner.post("/desk/mail-link/", to="/desk/leads/")).status == 200
        assert await mailed(owner) == 2
        (own,) = [row for row in await owner.rows(DESK_LINKS) if row["target"] == "/desk/leads/"]
        assert own["id"] != unanswered["id"]
        path = path_of(edge.service[DeskLinks].address(own["id"]))
        assert (await owner.post(path)).to == "/desk/leads/"

        clock.move(minutes=STRANGER_LIFETIME.total_seconds() / 60 - 1)
        for pair in range(3):
            windows = [Browser(edge), Browser(edge)]
            await asyncio.gather(*(each.token() for each in windows))
            await asyncio.gather(*(each.post("/desk/mail-link/") for each in windows))
            assert await mailed(owner) == 2 + pair
            clock.move(minutes=2 if pair == 0 else STRANGER_LIFETIME.total_seconds() / 60)
    async with make_edge(clock, **MAIL) as edge:
        again = Browser(edge)
        start, before = clock(), await mailed(again)
        while clock() < start + timedelta(days=1):
            await Browser(edge).post("/desk/mail-link/")
            clock.move(minutes=13)
        assert await mailed(again) - before == 5
        clock.move(minutes=-3 * 24 * 60)
        for _ in range(3):
            await Browser(edge).post("/desk/mail-link/")
        assert await mailed(again) - before == 6


async def test_the_link_that_was_mailed_stays_good(make_edge: EdgeMaker) -> None:
    """Until the next may be mailed; when it was used, the next browser need not wait."""
    clock = MovableClock(system_clock())
    async with make_edge(clock, **MAIL) as edge:
        asking = Browser(edge)
        await asking.post("/desk/mail-link/")
        (row,) = await asking.rows(DESK_LINKS)
        assert datetime.fromisoformat(row["expires_at"]) == clock() + STRANGER_LIFETIME
        clock.move(minutes=STRANGER_LIFETIME.total_seconds() / 60 - 1)
        for _ in range(3):
            await Browser(edge).post("/desk/mail-link/")
        path = path_of(edge.service[DeskLinks].address(row["id"]))
        assert (await asking.post(path)).status == 303
        await Browser(edge).post("/desk/mail-link/")
        assert await mailed(asking) == 2
        await asking.get("/desk/")
        await asking.post("/desk/mail-link/")
        ends = {each["asked_by"]: each["expires_at"] for each in await asking.rows(DESK_LINKS)}
        assert datetime.fromisoformat(ends[""]) == clock() + LIFETIME


async def test_the_cookie_of_a_known_browser_is_signed_and_no_credential(
    make_edge: EdgeMaker,
) -> None:
    """It opens nothing, cannot be made or chosen, and has a limit; edges take each other's."""
    async with make_edge(**MAIL, RATE_DESK_LINKS="3/hour;10/day") as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        assert owner.known.count(".") == 0
        shown = await owner.get("/desk/leads/")
        assert "HttpOnly; SameSite=Lax" in shown.headers["Set-Cookie"]
        assert "Set-Cookie" not in (await owner.get("/desk/leads/")).headers
        thief = Browser(edge, known=owner.known)
        assert (await thief.get("/desk/")).status == 303
        limited = [(await thief.post("/desk/mail-link/")).status for _ in range(4)]
        assert limited == [200, 200, 200, 429]
        assert await mailed(owner) == 3
        name, _, value = owner.known.partition("=")
        salt, _, mac = value.partition(".")
        for forged in (f"x.{mac}", f"{salt}.{'0' * 64}", salt, f"{salt}.", f".{mac}", mac, "."):
            other = Browser(edge, known=f"{name}={forged}")
            assert "Nobody has signed in" in (await other.post("/desk/mail-link/")).said, forged
        assert await mailed(owner) == 4
        fixed = await Browser(edge, known=owner.known).sign_in(await edge.key("admin:read"))
        await fixed.get("/desk/")
        assert fixed.known == owner.known
        planted = await Browser(edge, known="desk-browser=planted").sign_in(await edge.key())
        await planted.get("/desk/")
        assert planted.known != "desk-browser=planted"


async def test_sign_out_empties_the_cache(owner: Browser) -> None:
    """Nothing that the desk showed comes back from the browser."""
    out = await owner.post("/desk/sign-out/")
    assert out.headers["Clear-Site-Data"] == '"cache"'
    assert (owner.cookie, out.to) == ("desk=", "/desk/sign-in/")


def test_five_sign_in_links_are_mailed_a_day() -> None:
    """The figure of the docs."""
    assert timedelta(days=1) / STRANGER_LIFETIME == 5
