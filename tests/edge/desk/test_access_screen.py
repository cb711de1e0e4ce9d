"""The Access screen: what a request gets, until when, and the keys that are out already."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from edge_api.access.service import AccessRequestInput, AccessRequests, StoredRequest
from edge_api.auth.actor import system_clock
from edge_api.auth.keys import Keys, NewKey
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.query import Filter, Update
from edge_api.db.table import Row
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, SCOPES
from tests.edge.conftest import RunningEdge
from tests.edge.desk.conftest import Browser, Response

pytestmark = pytest.mark.each_engine

ALL = ["posts:read", "leads:read", "leads:write", "admin:read", "admin:write"]
PATH = "/desk/access/"
HOSTILE = "<script>alert(1)</script>"


async def file(edge: RunningEdge, kind: str = "api_key", name: str = "Bot") -> StoredRequest:
    """File a request that asks for everything; return it."""
    given = {"type": kind, "name": name, "purpose": "Read.", "scopes": ALL}
    wish = AccessRequestInput.model_validate(given)
    requests: AccessRequests = edge.service[AccessRequests]
    return await requests.submit(wish, "192.0.2.1")


def approving(filed: StoredRequest) -> str:
    """Return where the form of a request is posted to."""
    return f"{PATH}requests/{filed.row['id']}/approve/"


def day(days: int) -> str:
    """Return the date of a day from today."""
    return (system_clock() + timedelta(days=days)).date().isoformat()


def ticked(shown: Response, form: str) -> list[str]:
    """Return the values of the ticked boxes of a form."""
    boxes = shown.tree.css(f'form[action="{form}"] [type=checkbox][checked]')
    return [str(each.attributes["value"]) for each in boxes]


async def issued(owner: Browser, filed: StoredRequest) -> list[Row]:
    """Claim what was approved; return the rows of the keys."""
    _, keys = await owner.edge.service[AccessRequests].claim(filed.claim_token)
    return [each.row for each in keys]


async def test_a_request_for_everything_ticks_posts_alone(owner: Browser) -> None:
    """Every other scope is an empty box beside what it opens here and now."""
    key, token = await file(owner.edge), await file(owner.edge, "access_token")
    await asyncio.gather(*(owner.lead() for _ in range(3)))
    shown = await owner.get(PATH)

    assert ticked(shown, approving(key)) == ["posts:read"]
    assert ticked(shown, approving(token)) == ["posts:read", "mcp"]
    for scope, sentence in SCOPES.items():
        label = shown.one(f'label[for="{key.row["id"]}-{scope}"]').text()
        assert label.strip() == f"{scope}: {sentence.replace('all enquiries', 'all 3 enquiries')}"
    assert "leads:read: read all 3 enquiries: names, addresses, messages" in shown.said
    words = {str(name): text for name, text in SCOPES.items()}
    asked = [words[each].replace("all enquiries", "all 3 enquiries") for each in ALL]
    assert f"It asks to {'; '.join(asked)}." in shown.said
    assert shown.one(f'[id="{key.row["id"]}-expires"]').attributes["value"] == day(90)
    assert shown.tree.css_first(f'[id="{token.row["id"]}-no_end"]') is None


async def test_the_end_is_chosen_on_the_form(owner: Browser) -> None:
    """The last day counts whole; without a day it is in 90 days; without an end by a tick."""
    ends = {}
    for name, form in {
        "usual": {"expires": day(90)},
        "empty": {"expires": ""},
        "soon": {"expires": day(3)},
        "none": {"expires": day(90), "no_end": "yes"},
    }.items():
        filed = await file(owner.edge, name=name)
        assert (await owner.post(approving(filed), scope=["posts:read"], **form)).status == 303
        ((row,)) = await issued(owner, filed)
        ends[name] = row["expires_at"]
    shown = await owner.get(PATH)

    assert ends.pop("none") is None
    assert ends.pop("empty")[:10] == day(90)
    midnight = "T00:00:00.000000Z"
    assert ends == {"usual": f"{day(91)}{midnight}", "soon": f"{day(4)}{midnight}"}
    assert "none: claimed" in shown.said
    assert f"to {SCOPES['posts:read']}, without an end" in shown.said


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"scope": ["posts:read"], "expires": "2020-01-01"}, "expires must be in the future."),
        ({"scope": ["posts:read"], "expires": "soon"}, "Write a date such as 2027-12-31."),
        ({"scope": ["posts:read"], "expires": "9999-12-31"}, "Write a date such as 2027-12-31."),
        ({"scope": ["everything"]}, "Your key has no scope everything, so it cannot grant it."),
        ({"expires": "2999-01-01"}, "Tick at least one scope that the request is to get."),
    ],
)
async def test_a_faulty_form_is_shown_as_it_was(owner: Browser, form: Any, message: str) -> None:
    """Nothing was approved; what was typed and ticked is still there, in this form alone."""
    filed, other = await file(owner.edge, name=HOSTILE), await file(owner.edge)
    form = {"scope": [], **form}
    shown = await owner.post(approving(filed), no_such="x", **form)

    assert (shown.status, message in shown.said) == (400, True)
    assert ticked(shown, approving(filed)) == [each for each in form["scope"] if each in SCOPES]
    typed = shown.one(f'[id="{filed.row["id"]}-expires"]').attributes["value"]
    assert typed == form.get("expires", day(90))
    assert ticked(shown, approving(other)) == ["posts:read"]
    assert HOSTILE not in shown.text
    assert {row["status"] for row in await owner.rows(ACCESS_REQUESTS)} == {"pending"}


async def test_a_token_always_ends(owner: Browser) -> None:
    """A form that was made up is refused with a sentence."""
    filed = await file(owner.edge, "access_token")
    refused = await owner.post(approving(filed), scope=["posts:read", "mcp"], no_end="yes")
    assert (refused.status, "an access token always ends" in refused.said) == (400, True)


async def test_a_sign_in_that_ends_grants_no_longer_than_that(owner: Browser) -> None:
    """The box for no end is not there, and the day is the last of the sign-in."""
    filed = await file(owner.edge)
    soon = format_instant(system_clock() + timedelta(days=2))
    order = NewKey("short", scopes=(*SCOPES, PUBLISH_WITH_ENQUIRIES), expires_at=soon)
    key = await Keys(owner.edge.service.store, system_clock).issue(order)
    brief = await Browser(owner.edge).sign_in(key.secret)
    shown = await brief.get(PATH)
    assert shown.tree.css_first("[name=no_end]") is None
    assert shown.one(f'[id="{filed.row["id"]}-expires"]').attributes["value"] == soon[:10]
    for form in ({"no_end": "yes"}, {"expires": day(3)}):
        refused = await brief.post(approving(filed), scope=["posts:read"], **form)
        assert (refused.status, f"Your key ends on {soon[:10]}" in refused.said) == (400, True)
    assert (await brief.post(approving(filed), scope=["posts:read"])).status == 303
    (row,) = await issued(owner, filed)
    assert row["expires_at"] == soon


async def test_two_windows_approve_once(owner: Browser) -> None:
    """The second approval is refused as already made, and changes neither scopes nor end."""
    filed = await file(owner.edge)
    forms: list[dict[str, Any]] = [
        {"scope": ["posts:read"]},
        {"scope": ["posts:read", "leads:read"], "no_end": "yes"},
    ]
    answers = await asyncio.gather(*(owner.post(approving(filed), **form) for form in forms))
    assert sorted(each.status for each in answers) == [303, 409]
    won = [each.status for each in answers].index(303)
    (row,) = await issued(owner, filed)
    assert (row["scopes"].split(), row["expires_at"] is None) == (forms[won]["scope"], won == 1)


async def open_key(owner: Browser, name: str) -> str:
    """Issue a key as one that a request got before 1.0.1; return its id."""
    store = owner.edge.service.store
    order = NewKey(name, scopes=("posts:read", "leads:read"))
    made = (await Keys(store, system_clock).issue(order)).row["id"]
    await store.run(Update(CREDENTIALS, {"needs_review": 1}, (Filter("id", "eq", made),)))
    return str(made)


async def test_issued_keys_are_listed_and_revoked(owner: Browser) -> None:
    """On the first page and here; each gets an end, is said to stay, or is revoked."""
    assert "given to" not in (await owner.get("/desk/")).said
    assert "Keys that are out" not in (await owner.get(PATH)).said
    ids = [await open_key(owner, name) for name in ("Lena's app", HOSTILE, "third", "fourth")]
    for _ in range(2):
        await owner.lead()
    said = f"4 keys given to requests can read all 2 enquiries and never end: Lena's app, {HOSTILE}"
    for path in ("/desk/", PATH):
        shown = await owner.get(path)
        assert f"{said}, third, fourth. End them?" in shown.said
        assert HOSTILE not in shown.text

    first, second, third, fourth = (f"{PATH}keys/{each}/" for each in ids)
    wrong = await owner.post(f"{first}end/", expires="2020-01-01")
    assert (wrong.status, "expires must be in the future." in wrong.said) == (400, True)
    assert wrong.one(f'[id="open-{ids[0]}-expires"]').attributes["value"] == "2020-01-01"
    assert (await owner.post(f"{first}end/", expires=day(30))).status == 303
    assert (await owner.post(f"{second}end/", no_end="yes")).status == 303
    assert (await owner.post(f"{third}revoke/")).status == 303
    shown = await owner.get(PATH)
    assert "1 key given to a request can read all 2 enquiries and never ends: fourth." in shown.said
    assert (await owner.post(f"{fourth}end/", expires="")).status == 303
    assert "Keys that are out" not in (await owner.get(PATH)).said
    assert (await owner.post(f"{third}end/", expires="")).status == 409
    assert (await owner.post(f"{PATH}keys/none/end/", expires="")).status == 404
    rows = {row["id"]: row["expires_at"] for row in await owner.rows(CREDENTIALS)}
    assert [(rows[each] or "never")[:10] for each in ids] == [day(31), "never", "never", day(90)]


async def test_revoking_needs_the_write_scope_and_all_tables(owner: Browser) -> None:
    """A sign-in for reading sees the keys without buttons; one for a table sees nothing."""
    made = await open_key(owner, "Lena's app")
    edge = owner.edge
    reader = await Browser(edge).sign_in(await edge.key("admin:read"))
    shown = await reader.get(PATH)
    assert "Lena's app" in shown.said
    assert shown.tree.css(f'form[action="{PATH}keys/{made}/end/"]') == []
    assert (await reader.post(f"{PATH}keys/{made}/end/", no_end="yes")).status == 403
    narrow = await Browser(edge).sign_in(
        await edge.key("admin:read", "admin:write", tables=("leads",))
    )
    assert "Lena's app" not in (await narrow.get("/desk/")).said
    poor = await Browser(edge).sign_in(await edge.key("admin:read", "admin:write"))
    refused = await poor.post(f"{PATH}keys/{made}/end/", no_end="yes")
    assert (refused.status, "Your key has no scope leads:read" in refused.said) == (400, True)
