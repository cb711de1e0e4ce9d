"""The consent page as a browser and an attacker meet it, beside what Chromium shows."""

import html
import re
from typing import Any

import pytest

from edge_api.db.query import Read
from edge_api.db.tables import AUDIT_LOG
from edge_api.oauth.clients import NewClient
from edge_api.oauth.server import OAuthServer
from edge_api.schema.credentials import SCOPES, Scope
from tests.edge.oauth.conftest import GRANT_TYPES, REDIRECT, request_pairs

AUTHORIZE = "/api/public/oauth/authorize"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


async def known(edge: Any, *redirects: str) -> str:
    """Return the id of a client of the operator's."""
    order = NewClient("Reader", "none", GRANT_TYPES, ("posts:read",), redirects or (REDIRECT,))
    return str((await edge.service[OAuthServer].clients.register(order))["id"])


async def stranger(edge: Any) -> str:
    """Return the id of a client that registered itself."""
    registered = await edge.service[OAuthServer].clients.register_dynamic(
        {"redirect_uris": [REDIRECT]}
    )
    return str(registered["client_id"])


async def shown(edge: Any, pairs: Any) -> tuple[list[tuple[str, str]], str]:
    """Ask; return the hidden members of the form, and the cookie."""
    async with edge.ask("GET", AUTHORIZE, params=list(pairs)) as answer:
        assert answer.status == 200, await answer.text()
        members = HIDDEN.findall(await answer.text())
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    return [(html.unescape(name), html.unescape(value)) for name, value in members], cookie


async def refusals(edge: Any) -> int:
    """Return how many refusals the audit log has."""
    (result,) = await edge.service.store.run(Read(AUDIT_LOG))
    return sum(row["verb"] == "refuse" for row in result.rows)


async def test_a_form_comes_back_beside_the_cookies_of_others(edge: Any) -> None:
    """Odd ones too: any program on the same host may have set them."""
    members, cookie = await shown(edge, request_pairs("v" * 43, await known(edge)))
    form = [*members, ("decision", "deny")]
    for others in ("foo bar; {}", '{}; a=b c; x="y', "consent=; {}", "é=ü; {}"):
        headers = {"Cookie": others.format(cookie)}
        async with edge.ask("POST", AUTHORIZE, data=form, headers=headers) as answer:
            assert answer.status == 303, others
            assert "error=access_denied" in answer.headers["Location"]


async def test_unticked_scopes_stay_unticked_after_an_error(edge: Any) -> None:
    """Also where nothing was chosen: the next press must not grant all."""
    members, cookie = await shown(edge, request_pairs("v" * 43, await known(edge)))
    form = [*members, ("decision", "allow"), ("api_key", "wrong")]
    for chosen in ([], [("granted", "posts:read")]):
        headers = {"Cookie": cookie}
        async with edge.ask("POST", AUTHORIZE, data=[*form, *chosen], headers=headers) as answer:
            assert answer.status == 400
            boxes = re.findall(r'<input[^>]*name="granted"[^>]*>', await answer.text())
        assert boxes
        assert sum(" checked" in box for box in boxes) == len(chosen)


async def test_asking_ticks_nothing_that_opens_enquiries(edge: Any) -> None:
    """Each scope has its sentence; what is not public is ticked by the person, or not granted."""
    scopes: tuple[Scope, ...] = ("posts:read", "leads:read", "leads:write", "admin:read", "mcp")
    order = NewClient("Reader", "none", GRANT_TYPES, scopes, (REDIRECT,))
    for client in (
        (await edge.service[OAuthServer].clients.register(order))["id"],
        await stranger(edge),
    ):
        pairs = request_pairs("v" * 43, client, scope=" ".join(scopes[:3]))
        async with edge.ask("GET", AUTHORIZE, params=list(pairs)) as answer:
            page = await answer.text()
        boxes = re.findall(r'<input type="checkbox"[^>]*>', page)
        ticked = [each for each in boxes if " checked" in each]
        assert [re.findall('value="([^"]*)"', each) for each in ticked] == [["posts:read"]]
        for scope in scopes[:3]:
            sentence = SCOPES[scope]
            assert f"{sentence[:1].upper()}{sentence[1:]} <code>{scope}</code>" in page


async def test_the_page_leads_machines_on_like_any_other(edge: Any) -> None:
    """Though its forms may lead to another origin, which its policy says."""
    pairs = list(request_pairs("v" * 43, await known(edge)))
    async with edge.ask("GET", AUTHORIZE, params=pairs) as answer:
        assert "form-action 'self' http" in answer.headers["Content-Security-Policy"]
        assert 'rel="service-doc"' in answer.headers["Link"]


async def test_a_repeated_parameter_is_kept_by_the_form(edge: Any) -> None:
    """The resource may, with others between (RFC 8707, section 2)."""
    resource = ("resource", f"{edge.service[OAuthServer].issuer.url}/api/public/v1")
    pairs = [resource, *request_pairs("v" * 43, await known(edge)), resource]
    members, cookie = await shown(edge, pairs)
    form = [*members, ("decision", "deny")]
    async with edge.ask("POST", AUTHORIZE, data=form, headers={"Cookie": cookie}) as answer:
        assert answer.status == 303


async def test_the_only_redirect_may_be_left_out(edge: Any) -> None:
    """By a client that registered one alone (OAuth 2.1, section 4.1.1)."""
    one, two = await known(edge), await known(edge, REDIRECT, f"{REDIRECT}/2")
    members, _ = await shown(edge, request_pairs("v" * 43, one, redirect_uri=""))
    assert members
    pairs = list(request_pairs("v" * 43, two, redirect_uri=""))
    async with edge.ask("GET", AUTHORIZE, params=pairs) as answer:
        assert answer.status == 403
        assert "must name one redirect_uri" in await answer.text()


async def test_a_fault_leads_back_at_once_to_known_clients_alone(edge: Any) -> None:
    """Anybody can register a client and have us redirect browsers: there a person has to click."""
    pairs = list(request_pairs("v" * 43, await known(edge), response_type="token"))
    async with edge.ask("GET", AUTHORIZE, params=pairs) as answer:
        assert answer.status == 303
        assert answer.headers["Location"].startswith(f"{REDIRECT}?error=unsupported_response_type")

    pairs = list(request_pairs("v" * 43, await stranger(edge), response_type="token"))
    async with edge.ask("GET", AUTHORIZE, params=pairs) as answer:
        text = await answer.text()
        assert answer.status == 403
        assert "Location" not in answer.headers
        assert f'href="{REDIRECT}?error=unsupported_response_type' in text
        assert "Go back to client.example" in text


@pytest.mark.parametrize(
    ("method", "more", "status"),
    [
        ("PUT", {}, 405),
        ("POST", {"json": {}}, 415),
        ("POST", {"data": b"a" * 70_000, "headers": FORM}, 413),
        ("POST", {"data": b"\xff", "headers": FORM}, 400),
    ],
)
async def test_errors_of_the_consent_form_are_pages(
    edge: Any, method: str, more: dict[str, Any], status: int
) -> None:
    """No script of another origin may read it."""
    async with edge.ask(method, AUTHORIZE, **more) as answer:
        assert answer.status == status
        assert answer.content_type == "text/html"
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


async def test_the_rate_limit_of_consent_is_a_page(make_edge: Any) -> None:
    """With the time to come again."""
    async with make_edge(RATE_TOKEN="1/hour") as edge:
        for status in (400, 429):
            async with edge.ask("GET", AUTHORIZE) as answer:
                assert (answer.status, answer.content_type) == (status, "text/html")
        assert int(answer.headers["Retry-After"]) > 0


async def test_refusals_are_in_the_audit_log(edge: Any) -> None:
    """Those of an unknown client, an unregistered redirect, a faulty request and a wrong key."""
    client = await known(edge)
    for changes in ({"redirect_uri": "https://evil.example/"}, {"response_type": "token"}):
        pairs = list(request_pairs("v" * 43, client, **changes))
        async with edge.ask("GET", AUTHORIZE, params=pairs):
            pass
    async with edge.ask("GET", AUTHORIZE, params=list(request_pairs("v" * 43, "nobody"))):
        pass
    assert await refusals(edge) == 3

    members, cookie = await shown(edge, request_pairs("v" * 43, client))
    form = [*members, ("decision", "allow"), ("api_key", "fe_sk_wrong")]
    async with edge.ask("POST", AUTHORIZE, data=form, headers={"Cookie": cookie}) as answer:
        assert answer.status == 400
    assert await refusals(edge) == 4
