"""The form that asks for access, on a real build: filed, shown again, closed to other sites."""

from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse
from selectolax.lexbor import LexborHTMLParser, LexborNode

from edge_api.access.service import AccessDecisions, AccessRequests
from edge_api.auth.actor import system_clock
from edge_api.auth.keys import Keys
from edge_api.auth.secrets import is_well_formed
from edge_api.schema.sentences import ENGLISH
from tests.page_scripts import has_own_scripts_alone

PATH = "/contact/access/"
CLAIM_PATH = f"{PATH}claim/"
GOOD = {
    "name": "Ann Lee",
    "email": "",
    "purpose": "Show posts.\r\nOn our wall.",
    "type": "api_key",
    "_gotcha": "",
}
HOSTILE = "\"'><script>alert(1)</script></textarea></select>{{ 7*7 }}"


async def send(edge: Any, fields: Any, path: str = PATH) -> tuple[ClientResponse, LexborHTMLParser]:
    """Post a form; return the answer and its page."""
    async with edge.ask("POST", path, data=fields) as answer:
        return answer, LexborHTMLParser(await answer.read())


async def requests(edge: Any) -> list[Any]:
    """Return every request."""
    return await AccessDecisions(edge.service.store, system_clock).all()


def find(page: LexborHTMLParser, selector: str) -> LexborNode:
    """Return the first node that fits; there must be one."""
    node = page.css_first(selector)
    assert node is not None, selector
    return node


def fault(page: LexborHTMLParser, field: str) -> str:
    """Return what the page says of a field."""
    node = page.css_first(f"#access-{field}-fault")
    return node.text() if node else ""


async def test_a_form_becomes_a_request(edge: Any) -> None:
    """The page shows the claim token, once, and that token is the request's."""
    answer, page = await send(edge, GOOD)

    assert (answer.status, answer.content_type) == (200, "text/html")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    token = find(page, ".secret").text()
    assert is_well_formed(token, "claim_token")
    assert find(page, "title").text() == "Your request is filed · Fore-edge"
    assert find(page, "h1").text() == "Your request is filed"
    (row,) = await requests(edge)
    assert (row["name"], row["email"], row["purpose"]) == (
        "Ann Lee",
        None,
        "Show posts.\nOn our wall.",
    )
    claimed, _ = await edge.service[AccessRequests].claim(token)
    assert claimed["id"] == row["id"]


async def test_a_person_fetches_the_key_by_a_button(edge: Any) -> None:
    """Waiting, approved, fetched again, and over: each is said on the page, beside the token."""
    _, page = await send(edge, GOOD)
    form = find(page, f'form[action="{CLAIM_PATH}"]')
    token = str(find(page, f'form[action="{CLAIM_PATH}"] [name=claim_token]').attributes["value"])
    assert (form.attributes["method"], is_well_formed(token, "claim_token")) == ("post", True)

    waiting, page = await send(edge, {"claim_token": f" {token} "}, CLAIM_PATH)
    assert (waiting.status, find(page, "[role=alert]").text()[:24]) == (
        200,
        "Nobody has decided yet. ",
    )
    assert find(page, "[name=claim_token]").attributes["value"] == token
    (row,) = await requests(edge)
    await AccessDecisions(edge.service.store, system_clock).approve(row["id"])
    shown = [await send(edge, {"claim_token": token}, CLAIM_PATH) for _ in range(2)]
    secrets = {find(page, ".secret").text() for _, page in shown}
    (secret,) = secrets
    answer, page = shown[0]
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    assert answer.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert find(page, "h1").text() == "Your credential"
    said = find(page, "main").text()
    posts_url = f"{edge.service.settings.site_url}/api/public/v1/posts"
    assert f'curl {posts_url} \\\n  -H "X-API-Key: $JOURNAL_KEY"' in said
    assert f'posts = "{posts_url}"' in said
    assert len(page.css("main pre")) == 3
    assert str(find(page, "main").html).count(secret) == 1, "the examples do not repeat it"
    (key,) = await Keys(edge.service.store, system_clock).all()
    assert "posts:read" in find(page, "main").text()
    day = ENGLISH.format_day(datetime.fromisoformat(key["expires_at"])).replace(" ", "\xa0", 1)
    assert f"ends on {day}." in find(page, "main").text()
    async with edge.ask("GET", "/api/public/v1/posts", secret) as posts:
        assert posts.status == 200
    await Keys(edge.service.store, system_clock).revoke(key["id"])
    late, page = await send(edge, {"claim_token": token}, CLAIM_PATH)
    assert (late.status, "is not valid any more" in find(page, "[role=alert]").text()) == (
        409,
        True,
    )


@pytest.mark.parametrize(
    ("token", "status", "said"),
    [
        ("fe_cl_made-up", 404, "No request has this claim token, or it has expired"),
        (HOSTILE, 404, "No request has this claim token"),
        ("x" * 5000, 404, "No request has this claim token"),
        ("", 200, ""),
    ],
)
async def test_an_invalid_claim_token_is_reported_on_the_page(
    edge: Any, token: str, status: int, said: str
) -> None:
    """The pasted text stays; nothing becomes markup; without a token there is the empty form."""
    answer, page = await send(edge, {"claim_token": token}, CLAIM_PATH)

    assert answer.status == status
    assert find(page, "[name=claim_token]").attributes["value"] == token
    assert has_own_scripts_alone(page)
    alert = page.css_first("[role=alert]")
    assert (alert.text() if alert else "").startswith(said)
    assert (alert is None) is (said == "")


async def test_the_page_for_a_token_is_open_and_guarded(make_edge: Any) -> None:
    """Looking at it claims nothing; another site's form is refused; tokens are not tried out."""
    async with make_edge(RATE_LEADS_ATTEMPTS="2/hour") as edge:
        async with edge.ask("GET", CLAIM_PATH) as answer:
            assert (answer.status, "claim_token" in await answer.text()) == (200, True)
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["X-Robots-Tag"] == "noindex, nofollow"
        async with edge.ask(
            "POST", CLAIM_PATH, data={"claim_token": "x"}, headers={"Sec-Fetch-Site": "cross-site"}
        ) as answer:
            assert answer.status == 403
        sent = [await send(edge, {"claim_token": "x"}, CLAIM_PATH) for _ in range(3)]
        assert [answer.status for answer, _ in sent] == [404, 404, 429]
    async with make_edge(ACCESS_REQUESTS="off") as edge:  # the API takes requests all the same
        for path, status in ((CLAIM_PATH, 200), (PATH, 404)):
            async with edge.ask("GET", path) as answer:
                assert answer.status == status


async def test_a_form_with_faults_comes_back(edge: Any) -> None:
    """Each error is shown at its field, all at once; what was typed stays; nothing is filed."""
    fields = {**GOOD, "name": " ", "email": "ann at", "type": "access_token"}
    answer, page = await send(edge, fields)

    assert (answer.status, answer.content_type) == (400, "text/html")
    assert fault(page, "name") == "Must not be empty."
    assert fault(page, "email") == "Not a valid e-mail address."
    assert fault(page, "purpose") == ""
    assert find(page, "#access-email").attributes["value"] == "ann at"
    assert find(page, "#access-purpose").text().strip() == "Show posts.\nOn our wall."
    assert find(page, "option[selected]").attributes["value"] == "access_token"
    assert await requests(edge) == []


async def test_the_other_form_is_left_alone(edge: Any) -> None:
    """The faults of one form are not shown in the other."""
    _, page = await send(edge, {**GOOD, "name": ""})

    assert find(page, "#contact-form").css(".fault") == []
    assert find(page, "#name").attributes["value"] == ""
    assert len(page.css("form")) == 2


async def test_a_type_that_is_not_offered_is_a_fault(edge: Any) -> None:
    """Values that a browser would not send are reported at the field."""
    _, page = await send(edge, {**GOOD, "type": "everything"})

    assert fault(page, "type").startswith("Must be one of")


async def test_nothing_typed_becomes_markup(edge: Any) -> None:
    """Hostile text comes back as the text it is."""
    fields = dict.fromkeys(("name", "email", "purpose", "type"), HOSTILE)
    answer, page = await send(edge, {**fields, "purpose": HOSTILE * 100})

    assert answer.status == 400
    assert has_own_scripts_alone(page)
    assert find(page, "#access-name").attributes["value"] == HOSTILE
    assert "49" not in find(page, "#access-form").text()


async def test_the_honeypot_of_the_access_form_answers_as_usual(edge: Any) -> None:
    """A machine that fills in the trap sees the same page, and waits on nobody's desk."""
    answer, page = await send(edge, {**GOOD, "_gotcha": "x"})

    assert answer.status == 200
    assert is_well_formed(find(page, ".secret").text(), "claim_token")
    assert [row["status"] for row in await requests(edge)] == ["denied"]


@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.test"}]
)
async def test_a_form_from_another_site_is_refused(edge: Any, headers: dict[str, str]) -> None:
    """A form that another site's page sends in a reader's name is refused."""
    async with edge.ask("POST", PATH, data=GOOD, headers=headers) as answer:
        assert answer.status == 403
    assert await requests(edge) == []


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{}", "application/json", 415),
        (b"name=%ff", "application/x-www-form-urlencoded", 400),
        (b"name=" + b"x" * 1_100_000, "application/x-www-form-urlencoded", 413),
    ],
)
async def test_requests_that_no_form_sends_are_refused(
    edge: Any, body: bytes, content_type: str, status: int
) -> None:
    """Anything but a form of this size is refused: with a page, or with an Error to a script."""
    headers = {"Content-Type": content_type}
    async with edge.ask("POST", PATH, data=BytesIO(body), headers=headers) as answer:
        assert (answer.status, answer.content_type) == (status, "text/html")
    headers["Accept"] = "application/json"
    async with edge.ask("POST", PATH, data=BytesIO(body), headers=headers) as answer:
        assert answer.status == status
        assert list(await answer.json()) == ["error"]


async def test_the_rate_limit_is_reported_on_the_page(make_edge: Any) -> None:
    """Over the limit the form comes back with the reason, what was typed, and 429."""
    async with make_edge(RATE_LEADS="1/hour") as edge:
        await send(edge, GOOD)
        answer, page = await send(edge, {**GOOD, "name": "Ben"})

        assert answer.status == 429
        assert int(answer.headers["Retry-After"]) > 0
        assert find(page, "#access-name").attributes["value"] == "Ben"
        assert "Too many requests" in find(page, "#access-form [role=alert]").text()


async def test_attempts_are_counted_as_in_the_api(make_edge: Any) -> None:
    """Forms that are refused count against the limit of attempts, which both doors share."""
    async with make_edge(RATE_LEADS_ATTEMPTS="2/hour") as edge:
        assert [(await send(edge, {}))[0].status for _ in range(3)] == [400, 400, 429]
        async with edge.ask("POST", "/api/public/access-requests", json=GOOD) as answer:
            assert answer.status == 429


async def test_an_unavailable_store_is_reported_on_the_page(edge: Any) -> None:
    """While requests cannot be kept, the form comes back with 503 and nothing is lost of it."""
    await edge.service.store.close()
    answer, page = await send(edge, GOOD)

    assert answer.status == 503
    assert find(page, "#access-name").attributes["value"] == "Ann Lee"


async def test_going_back_leads_to_the_form(edge: Any) -> None:
    """The address at which a form was answered has no page of its own."""
    for method in ("GET", "HEAD"):
        async with edge.ask(method, PATH) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/contact/#access")
    async with edge.ask("OPTIONS", PATH) as answer:
        assert (answer.status, answer.headers["Allow"]) == (204, "GET, HEAD, POST, OPTIONS")
    async with edge.ask("PUT", PATH) as answer:
        assert answer.status == 405


async def test_a_build_without_the_page(make_edge: Any, build_dir: Path) -> None:
    """A theme that lacks the templates cannot show them: 503 with a sentence."""
    async with make_edge(BUILD_DIR=str(build_dir)) as edge:
        for fields in ({}, GOOD):
            async with edge.ask("POST", PATH, data=fields) as answer:
                assert answer.status == 503
                assert "cannot be shown" in (await answer.json())["error"]
                assert answer.headers["Retry-After"] == "60"
