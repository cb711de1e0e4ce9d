"""Attacks on the desk: other origins, stale sessions, used links, words as code."""

import re
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest

from edge_api.access.service import AccessRequestInput, AccessRequests
from edge_api.auth.actor import system_clock
from edge_api.auth.desk_links import DeskLinks
from edge_api.auth.keys import Keys, NewKey
from edge_api.background import delete_expired
from edge_api.db.internal_tables import ACCESS_REQUESTS, DESK_LINKS, DESK_SESSIONS
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Update
from edge_api.db.tables import CREDENTIALS, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.sessions import Sessions
from edge_api.operations import DESK
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, SCOPES
from tests.edge.conftest import SITE_URL, EdgeMaker, RunningEdge
from tests.edge.desk.conftest import Browser, Response
from tests.edge.store.samples import make_row

POSTS = sorted(each.path for each in DESK if each.method == "POST")
LATER = "2099-01-01T00:00:00.000000Z"
KEY = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"
FOREIGN: dict[str, dict[str, str]] = {
    "no header": {},
    "another site": {"Sec-Fetch-Site": "cross-site", "Origin": SITE_URL},
    "a subdomain": {"Sec-Fetch-Site": "same-site", "Origin": "http://evil.journal.test"},
    "typed": {"Sec-Fetch-Site": "none"},
    "another origin alone": {"Origin": "http://evil.test"},
    "an opaque origin": {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
    "another scheme": {"Origin": SITE_URL.replace("http:", "https:")},
    "another port": {"Origin": f"{SITE_URL}:8080"},
}


def filled(path: str) -> str:
    """Return the address of an action on something."""
    return path.format(key=KEY, table="leads", token="x", delivery=KEY, slug="x")


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
async def test_no_form_of_another_origin_is_taken(owner: Browser, headers: dict[str, str]) -> None:
    """For every action; the same form from the desk itself works."""
    lead = await owner.lead()
    for path in POSTS:
        assert (await owner.post(filled(path), headers=headers, key="x")).status == 403, path
    done = {"id": lead["id"], "status": "won"}
    assert (await owner.post("/desk/leads/mark/", headers=headers, **done)).status == 403
    assert (await owner.rows(LEADS))[0]["status"] == "new"
    assert (
        await owner.post("/desk/leads/mark/", headers={"Origin": SITE_URL}, **done)
    ).status == 303


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/json", ""])
async def test_no_other_media_type_is_taken(owner: Browser, kind: str) -> None:
    """A form that a browser sends without asking first is one of three types; two are refused."""
    lead = await owner.lead()
    body = f"id={lead['id']}&status=won".encode()
    headers = {**owner.own, "Content-Type": kind}
    shown = await owner.ask("POST", "/desk/leads/mark/", data=body, headers=headers)
    assert shown.status == 415
    assert (await owner.rows(LEADS))[0]["status"] == "new"


async def test_only_post_changes_anything(owner: Browser) -> None:
    """The address of an action, opened, does nothing."""
    lead = await owner.lead()
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
        path = f"/desk/leads/mark/?id={lead['id']}&status=won"
        assert (await owner.ask(method, path)).status == 405
    await owner.get(f"/desk/leads/{lead['id']}/?notes=x&status=won")
    assert (await owner.rows(LEADS))[0]["status"] == "new"


async def test_a_typed_form_outlives_a_lost_session(owner: Browser) -> None:
    """It is asked to sign in, then offers to send the same form."""
    lead, key = await owner.lead(), await owner.edge.key()
    path = f"/desk/leads/{lead['id']}/"
    owner.cookie = ""
    lost = await owner.post(path, notes="long <b>", **{"was.notes": ""})
    assert (lost.status, "What you typed is kept" in lost.said) == (401, True)
    hidden = {
        str(each.attributes["name"]): str(each.attributes["value"])
        for each in lost.tree.css("input[type=hidden]")
    }
    resumed = await owner.post("/desk/sign-in/", key=key, **hidden)
    assert "long <b>" in resumed.said
    form = resumed.one(f'form[action="{path}"]')
    again = {
        str(each.attributes["name"]): str(each.attributes["value"]) for each in form.css("input")
    }
    await owner.post(path, **again)
    assert (await owner.rows(LEADS))[0]["notes"] == "long <b>"


async def test_an_action_without_fields_leads_back_to_its_screen(owner: Browser) -> None:
    """Its own address answers no GET; an undo goes back to where it was pressed."""
    lead, key = await owner.lead(), await owner.edge.key()
    owner.cookie = ""
    for path in POSTS:
        if path in ("/desk/sign-in/", "/desk/mail-link/", "/desk/link/{token}/", "/desk/sign-out/"):
            continue
        lost = await owner.post(path.format(key=lead["id"], table="leads", delivery=KEY, slug="x"))
        assert (lost.status, "What you typed is kept" in lost.said) == (401, False), path
        to = str(lost.one("[name=to]").attributes["value"])
        back = await owner.post("/desk/sign-in/", key=key, to=to)
        # Writing and the newsletter are off, all but a subscriber's own screens.
        is_off = path.startswith(("/desk/posts/", "/desk/newsletter/")) and "subsc" not in path
        assert (await owner.get(back.to)).status == (503 if is_off else 200), path
        owner.cookie = ""


async def test_a_mailed_link_leads_to_what_was_asked_for(owner: Browser) -> None:
    """A lead whose address was opened signed out, or the page whose form was sent; never else."""
    lead = await owner.lead()
    path = f"/desk/leads/{lead['id']}/"
    owner.cookie = ""
    shown = await owner.get((await owner.get(f"{path}?status=new")).to)
    lost = await owner.post(f"{path}erase/", sure="yes")
    wrong = await owner.post("/desk/sign-in/", **hidden_fields(lost, "sign-in"), key="x")
    asked = [hidden_fields(each, "mail-link") for each in (shown, lost, wrong)]
    assert [each["to"] for each in asked] == [f"{path}?status=new", path, path]
    for given, to in (
        (asked[0]["to"], f"{path}?status=new"),
        ("/desk/%2e%2e/api/", "/desk/"),
        ("/desk/" + "x" * 2048, "/desk/"),
    ):
        await owner.edge.service.store.run(Delete(DESK_LINKS, EVERY))
        assert (await owner.post("/desk/mail-link/", to=given)).status == 200
        (row,) = await owner.rows(DESK_LINKS)
        assert row["target"] == to
        address = owner.edge.service[DeskLinks].address(row["id"])
        used = await Browser(owner.edge).post(address.removeprefix(SITE_URL))
        assert (used.status, used.to) == (303, to)


EVERY = (Filter("id", "is", None, negated=True),)


def hidden_fields(shown: Response, form: str) -> dict[str, str]:
    """Return the hidden fields of a form of the page that asks to sign in."""
    found = shown.tree.css(f'form[action="/desk/{form}/"] input[type=hidden]')
    return {str(each.attributes["name"]): str(each.attributes["value"]) for each in found}


async def test_a_session_is_new_at_each_sign_in_and_ends_for_good(edge: RunningEdge) -> None:
    """No session can be chosen for somebody; another sign-in and signing out end a cookie."""
    browser = Browser(edge, cookie="desk=chosen-by-somebody")
    await browser.sign_in(await edge.key())
    first = browser.cookie
    assert first != "desk=chosen-by-somebody"
    assert first.partition("=")[2] not in str(await browser.rows(DESK_SESSIONS))
    await browser.sign_in(await edge.key())
    second = browser.cookie
    assert (await Browser(edge, cookie=first).get("/desk/")).status == 303
    await browser.post("/desk/sign-out/")
    assert (await Browser(edge, cookie=second).get("/desk/")).status == 303
    assert browser.cookie == "desk="


async def test_the_cookie_is_for_the_desk_alone(owner: Browser) -> None:
    """Scripts cannot read it, other sites cannot send it, and no other endpoint takes it."""
    shown = await owner.post("/desk/sign-in/", key=await owner.edge.key())
    cookie = shown.headers["Set-Cookie"]
    assert "HttpOnly; SameSite=Lax" in cookie
    assert "Path=/" in cookie
    assert (await owner.get("/api/public/v1/admin/leads")).status == 401


@pytest.mark.parametrize("end", ["revoked", "expired", "deleted"])
async def test_a_session_ends_with_its_key(edge: RunningEdge, end: str) -> None:
    """In whatever way the key ends."""
    browser = await Browser(edge).sign_in(await edge.key())
    (row,) = await browser.rows(CREDENTIALS)
    past = format_instant(system_clock() - timedelta(days=1))
    column = {"revoked": "revoked_at", "expired": "expires_at"}.get(end)
    where = (Filter("id", "eq", row["id"]),)
    if column:
        await edge.service.store.run(Update(CREDENTIALS, {column: past}, where))
    else:
        other = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2c"
        every = (Filter("id", "is", None, negated=True),)
        await edge.service.store.run(Update(DESK_SESSIONS, {"credential_id": other}, every))
    assert (await browser.get("/desk/")).status == 303
    assert await edge.service[Sessions].all() == []


async def test_old_sessions_and_links_are_deleted(edge: RunningEdge) -> None:
    """Past their time nothing of them is kept."""
    browser = await Browser(edge).sign_in(await edge.key())
    await edge.service[DeskLinks].create()
    every = (Filter("id", "is", None, negated=True),)
    past = {
        "expires_at": "2001-01-01T00:00:00.000000Z",
        "created_at": "2001-01-01T00:00:00.000000Z",
    }
    for table in (DESK_SESSIONS, DESK_LINKS):
        await edge.service.store.run(Update(table, past, every))
    assert (await browser.get("/desk/")).status == 303
    await delete_expired(edge.service.store, edge.service.clock)
    assert [await browser.rows(table) for table in (DESK_SESSIONS, DESK_LINKS)] == [[], []]


@pytest.mark.parametrize(
    ("scopes", "tables"),
    [(("admin:read",), ()), (("admin:read", "admin:write"), ("email_send_log",))],
    ids=["read only", "another table"],
)
async def test_each_action_needs_scope_and_tables(
    edge: RunningEdge, scopes: tuple[str, ...], tables: tuple[str, ...]
) -> None:
    """The matrix of actions and sign-ins that do not reach them: nothing is changed."""
    browser = await Browser(edge).sign_in(await edge.key(*scopes, tables=tables))
    lead = await browser.lead()
    for path in POSTS:
        if path in ("/desk/sign-in/", "/desk/mail-link/", "/desk/link/{token}/", "/desk/sign-out/"):
            continue
        if tables and path in ("/desk/mail/retry/", "/desk/mail/discard/"):
            continue
        own = path.format(key=lead["id"], table="leads", token="x", delivery=KEY, slug="x")
        shown = await browser.post(own, id=lead["id"], status="won", notes="x", sure="yes")
        assert shown.status in ((403,) if "audit" not in path or not tables else (403, 404)), path
    assert await browser.rows(LEADS) == [lead]
    shown = await browser.get("/desk/tables/leads/")
    assert shown.status == (403 if tables else 200)
    assert (await browser.get("/desk/access/")).status == (403 if tables else 200)
    assert ("leads" in (await browser.get("/desk/tables/")).said) == (not tables)
    assert (await browser.get("/desk/")).status == 200


async def test_a_key_without_admin_read_does_not_sign_in(edge: RunningEdge) -> None:
    """Nor does a token for MCP, nor a word that is no key; the last is counted."""
    browser = Browser(edge)
    for key in (await edge.key("posts:read"), await edge.token(), "fe_sk_wrong", ""):
        shown = await browser.post("/desk/sign-in/", key=key)
        assert (shown.status, browser.cookie) == (400, "")
        assert shown.tree.css_first("#key-fault") is not None


async def test_nobody_grants_more_than_they_have(edge: RunningEdge) -> None:
    """Neither scopes nor time, neither by a new key, a rotation, nor an approval."""
    soon = format_instant(system_clock() + timedelta(days=2))
    scopes = ("admin:read", "admin:write", "mcp")
    keys = Keys(edge.service.store, system_clock)
    issued = await keys.issue(NewKey("short", scopes=scopes, expires_at=soon))
    wide = await keys.issue(NewKey("wide", scopes=(*SCOPES, PUBLISH_WITH_ENQUIRIES)))
    tomorrow = format_instant(system_clock() + timedelta(days=1))
    token = await keys.issue(NewKey("bot", "access_token", ("mcp",), None, tomorrow))
    browser = await Browser(edge).sign_in(issued.secret)
    path = "/desk/access/keys/"
    before = len(await browser.rows(CREDENTIALS))
    for form in (
        {"scope": ["posts:read"], "expires": soon[:10]},
        {"scope": ["admin:read"], "expires": "2999-01-01"},
    ):
        assert (await browser.post(path, name="x", once=KEY, **form)).status == 400
    for each in (wide, token):  # the successor of a token has a new lifetime
        assert (await browser.post(f"{path}{each.row['id']}/rotate/")).status == 400
    assert len(await browser.rows(CREDENTIALS)) == before
    for name, last_day in (("same day", soon[:10]), ("no day", "")):
        form = {"name": name, "once": str(uuid4()), "expires": last_day}
        assert (await browser.post(path, scope=["admin:read"], **form)).status == 200
    issued_here = [row for row in await browser.rows(CREDENTIALS) if row["name"].endswith(" day")]
    assert [row["expires_at"] for row in issued_here] == [soon, soon]
    rotated = await browser.post(f"{path}{issued.row['id']}/rotate/")
    assert rotated.status == 200


async def approve_and_deny(owner: Browser, scopes: str) -> tuple[str, str]:
    """Approve a request, then deny it; return its claim token, and the entry of the denial."""
    given = {"type": "api_key", "name": "Bot", "purpose": "Read.", "scopes": scopes.split()}
    request = AccessRequestInput.model_validate(given)
    filed = await owner.edge.service[AccessRequests].submit(request, "192.0.2.1")
    path = f"/desk/access/requests/{filed.row['id']}"
    assert (await owner.post(f"{path}/approve/", scope=scopes.split())).status == 303
    denied = await owner.post(f"{path}/deny/")
    return filed.claim_token, denied.to.rpartition("=")[2]


async def test_an_undo_grants_no_more_than_an_approval(owner: Browser) -> None:
    """Neither scopes that the key lacks, nor a time beyond its end; a key with both may."""
    edge = owner.edge
    scopes = "leads:write metrics:read admin:write"
    token, denial = await approve_and_deny(owner, scopes)
    narrow = await Browser(edge).sign_in(await edge.key("admin:read", "admin:write"))
    refused = await narrow.post(f"/desk/audit/{denial}/undo/")
    assert (refused.status, "Your key has no scope leads:write" in refused.said) == (400, True)
    assert (await owner.rows(ACCESS_REQUESTS))[0]["status"] == "denied"

    soon = format_instant(system_clock() + timedelta(days=2))
    keys = Keys(edge.service.store, system_clock)
    short = await keys.issue(
        NewKey("short", scopes=(*SCOPES, PUBLISH_WITH_ENQUIRIES), expires_at=soon)
    )
    brief = await Browser(edge).sign_in(short.secret)
    refused = await brief.post(f"/desk/audit/{denial}/undo/")
    assert (refused.status, f"Your key ends on {soon[:10]}" in refused.said) == (400, True)
    with pytest.raises(Problem, match="denied"):
        await edge.service[AccessRequests].claim(token)

    undone = await owner.post(f"/desk/audit/{denial}/undo/")
    assert (undone.status, (await owner.rows(ACCESS_REQUESTS))[0]["status"]) == (303, "approved")
    again = await owner.post(f"/desk/audit/{undone.to.rpartition('=')[2]}/undo/")
    entry = again.to.rpartition("=")[2]
    assert (await brief.post(f"/desk/audit/{entry}/undo/")).status == 400
    assert (await owner.rows(ACCESS_REQUESTS))[0]["status"] == "denied"


async def test_a_link_signs_in_once_and_looking_does_nothing(edge: RunningEdge) -> None:
    """A mail scanner that fetches it leaves it whole; a second use and a guess get nowhere."""
    address = await edge.service[DeskLinks].create()
    path = address.removeprefix(SITE_URL)
    scanner, browser = Browser(edge), Browser(edge)
    for method in ("GET", "HEAD", "GET"):
        assert (await scanner.ask(method, path)).status == 200
    assert scanner.cookie == ""
    used = await browser.post(path, headers={**browser.own, "X-Forwarded-Host": "evil.test"})
    assert (used.status, used.to) == (303, "/desk/")
    assert (await browser.get("/desk/access/")).status == 200
    for wrong in (path, path.replace(path[-4:-1], "000"), "/desk/link/x/", "/desk/link/.../"):
        again = await Browser(edge).post(wrong)
        assert (again.status, "has been used" in again.said) == (404, True)
        assert "python -m edge_api desk link prints one" in again.said
        assert (await Browser(edge).get(wrong)).status == 404


async def test_a_redirect_stays_at_the_desk(edge: RunningEdge) -> None:
    """For any address that the form is given to go on to."""
    key = await edge.key()
    for to in (
        "//evil.test/desk/",
        "//[",
        "https://evil.test/desk/",
        "/desk/../api/",
        "/desk/%2e%2e/api/",
        "/desk/.%2E/api/",
        "/desk/%252e%252e/api/",
        "/\\evil.test",
        "x",
    ):
        shown = await Browser(edge).post("/desk/sign-in/", key=key, to=to)
        assert shown.to == "/desk/", to


async def test_every_address_of_the_desk_is_for_the_owner_alone(owner: Browser) -> None:
    """Unknown ones and files too: no cache and no index keeps them."""
    lead = await owner.lead()
    files = ("/desk/leads.csv", f"/desk/leads/{lead['id']}/person.json")
    unknown = ("/desk/nothing", "/desk/nothing/", "/desk/a/b/c/d/", "/desk/leads.csv/")
    for paths, status in ((files, 200), (unknown, 404)):
        for path in paths:
            shown = await owner.get(path)
            assert (shown.status, shown.headers["Cache-Control"]) == (status, "no-store"), path
            assert shown.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert (await owner.ask("GET", "/desk/x", headers={"Accept": "text/markdown"})).status == 404
    assert (await owner.post("/desk/nothing/")).status == 404


async def test_an_address_without_its_slash_leads_to_the_page(edge: RunningEdge) -> None:
    """With its query, as for pages of the site; only GET and HEAD, whose bodies are nothing."""
    browser = Browser(edge)
    for path in ("/desk", "/desk/sign-in", "/desk/leads", "/desk/leads/x", "/desk/tables/leads/x"):
        for query in ("", "?status=new&q=a+b%26c"):
            async with edge.ask("GET", f"{path}{query}") as answer:
                assert (answer.status, answer.headers["Location"]) == (301, f"{path}/{query}")
                assert answer.headers["Cache-Control"] == "no-store"
    assert (await browser.ask("HEAD", "/desk/leads")).status == 301
    assert (await browser.post("/desk/leads/mark")).status == 404
    assert (await browser.get("/deskful")).status == 404


async def test_the_desk_can_be_switched_off(make_edge: EdgeMaker) -> None:
    """Then nothing is there."""
    async with make_edge(DESK="off") as edge:
        assert (await Browser(edge).get("/desk/")).status == 404
        assert (await Browser(edge).get("/desk")).status == 404
        assert (await Browser(edge).get("/desk/sign-in/")).status == 404


BREAKS = ("", '"', "'", "`", "-->", "]]>", "</textarea>", "</title>", "</style>", "&quot;", "\\")
CODE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    " onfocus=alert(1) autofocus x=",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "<a href='javascript:alert(1)'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<form action=//evil.test><button>",
    "<base href=//evil.test>",
    "<meta http-equiv=refresh content=0>",
    "<style>*{display:none}</style>",
    "\u202e<b>\u2066",
    "<!--",
)
PAYLOADS = [f"{first}{code}{last}" for first, code, last in product(BREAKS, CODE, ("", ">"))]


def skeleton(shown: Any) -> list[str]:
    """Return the elements of a page with the names of their attributes, without their values."""
    found = [f"{each.tag} {' '.join(sorted(each.attributes))}" for each in shown.tree.css("*")]
    return [each for each in found if not each.startswith(("-", "_"))]


async def test_words_of_strangers_are_never_code(owner: Browser) -> None:
    """With 308 payloads in each field that a stranger fills, pages have the same elements."""
    assert len(PAYLOADS) >= 300
    store = owner.edge.service.store
    given = {"name": "n", "email": "e@example.org", "budget_tier": "b", "message": "m"}
    row = make_row(LEADS, {**given, "spam_reasons": ["r"], "status": "spam", "notes": "x"})
    await store.run(Insert(LEADS, [row]))
    pages = (
        f"/desk/leads/{row['id']}/",
        "/desk/leads/?status=spam",
        "/desk/tables/leads/",
        f"/desk/tables/leads/{row['id']}/",
    )
    plain = [skeleton(await owner.get(path)) for path in pages]
    own = (Filter("id", "eq", row["id"]),)
    for payload in PAYLOADS:
        values = {
            "name": payload[:100],
            "email": payload[:200].ljust(3, "x"),
            "budget_tier": payload[:50],
            "message": payload,
            "spam_reasons": [payload],
            "notes": payload,
        }
        await store.run(Update(LEADS, values, own))
        shown = [await owner.get(path) for path in pages]
        assert [skeleton(each) for each in shown] == plain, payload
        for each in shown:
            for link in each.tree.css("a[href]"):
                assert re.match(r"[/#?]|mailto:", str(link.attributes["href"])), payload
    for payload in PAYLOADS[::7]:
        await owner.ask("GET", "/desk/leads/", params={"q": payload, "order": payload})
        assert "alert(1)</script>" not in (await owner.get("/desk/audit/")).text


async def test_words_of_clients_and_browsers_are_never_code(owner: Browser) -> None:
    """Neither in a request for access nor in the name of a browser that signed in."""
    store, agent = owner.edge.service.store, Browser(owner.edge)
    given = {"type": "api_key", "name": "n", "purpose": "p", "email": "e@example.org"}
    fixed = {"scopes": "posts:read", "claim_digest": "0" * 64, "expires_at": LATER}
    row = make_row(ACCESS_REQUESTS, {**given, **fixed})
    await store.run(Insert(ACCESS_REQUESTS, [row]))
    (session,) = await owner.rows(DESK_SESSIONS)
    plain = skeleton(await owner.get("/desk/access/"))
    for payload in PAYLOADS[::3]:
        words = {"name": payload[:100], "purpose": payload, "email": payload[:200].ljust(3, "x")}
        of_session = Update(DESK_SESSIONS, {"browser": payload[:60]}, _by_id(session["id"]))
        await store.run(Update(ACCESS_REQUESTS, words, _by_id(row["id"])), of_session)
        assert skeleton(await owner.get("/desk/access/")) == plain, payload
    key = await owner.edge.key()
    for payload in PAYLOADS[::29]:
        sent = {**agent.own, "User-Agent": payload.encode().decode("latin-1")}
        assert (await agent.post("/desk/sign-in/", headers=sent, key=key)).status == 303
    shown = await owner.get("/desk/access/")
    assert len(await owner.rows(DESK_SESSIONS)) > 10
    assert shown.tree.css(".desk :is(script, img, svg, iframe, base, meta, style)") == []


def _by_id(key: str) -> tuple[Filter, ...]:
    return (Filter("id", "eq", key),)
