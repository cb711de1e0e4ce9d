"""The question of the authorization server in a real browser: asked, answered, sent back."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Journal
from tests.edge.oauth.conftest import challenge_of, new_verifier
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

ELSEWHERE = "https://client.example/callback"
SEEN = "<!doctype html><title>arrived</title><h1>arrived</h1>"


def call(url: str, **body: Any) -> dict[str, Any]:
    """Send JSON, or a form where the address is the token endpoint's; return the answer."""
    is_form = url.endswith("/token")
    data = urlencode(body).encode() if is_form else json.dumps(body).encode()
    kind = "application/x-www-form-urlencoded" if is_form else "application/json"
    request = Request(url, data, {"Content-Type": kind})  # noqa: S310  an address of our own
    with urlopen(request, timeout=patience(20)) as answer:  # noqa: S310  likewise
        said: dict[str, Any] = json.load(answer)
    return said


def register(journal: Journal, redirect: str) -> str:
    """Return the id of a client that registered itself."""
    body = {"client_name": "My agent", "redirect_uris": [redirect]}
    return str(call(f"{journal.url}/api/public/oauth/register", **body)["client_id"])


def question(journal: Journal, client: str, redirect: str, verifier: str) -> str:
    """Return the address of the question."""
    asked = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": redirect,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "S256",
        "scope": "posts:read leads:read mcp",
        "state": "a state",
        "resource": f"{journal.url}/api/public/mcp",
    }
    return f"{journal.url}/api/public/oauth/authorize?{urlencode(asked)}"


@contextmanager
def program() -> Iterator[str]:
    """Listen as a program on the person's machine would; yield its address."""

    class Arrival(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(SEEN.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Arrival)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/callback"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(params=["without", *in_ci("with scripts")])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Return a page that can reach the client of another origin."""
    with browser.new_context(java_script_enabled=request.param == "with scripts") as context:

        def arrive(route: Route) -> None:
            route.fulfill(body=SEEN, content_type="text/html")

        context.route(f"{ELSEWHERE}*", arrive)
        yield context.new_page()


def arrived(page: Page, redirect: str) -> dict[str, str]:
    """Return the answer that the browser was sent to the client with."""
    page.wait_for_url(f"{redirect}*")
    assert page.locator("h1").inner_text() == "arrived"
    return dict(parse_qsl(urlsplit(page.url).query))


def redeem(journal: Journal, client: str, answer: dict[str, str], **form: str) -> dict[str, Any]:
    """Exchange the code of an answer."""
    form = {"grant_type": "authorization_code", "client_id": client, "code": answer["code"], **form}
    return call(f"{journal.url}/api/public/oauth/token", **form)


def test_a_person_allows_a_program_of_another_origin(journal: Journal, page: Page) -> None:
    """The ticked scopes are granted, and the browser's policy lets the redirect through."""
    client, verifier = register(journal, ELSEWHERE), new_verifier()
    page.goto(question(journal, client, ELSEWHERE, verifier))
    text = page.locator("main").inner_text()
    assert "My agent" in text
    assert "client.example" in text
    page.get_by_label("leads:read").uncheck()
    page.get_by_label("Your API key").fill(journal.key)
    page.get_by_role("button", name="Allow").click()

    answer = arrived(page, ELSEWHERE)
    assert (answer["state"], answer["iss"]) == ("a state", journal.url)
    tokens = redeem(journal, client, answer, redirect_uri=ELSEWHERE, code_verifier=verifier)
    assert set(tokens["scope"].split()) == {"posts:read", "mcp"}


def test_a_person_allows_a_program_on_the_machine(journal: Journal, page: Page) -> None:
    """On whatever port it listens; the page warns of it."""
    client, verifier = register(journal, "http://127.0.0.1/callback"), new_verifier()
    with program() as redirect:
        page.goto(question(journal, client, redirect, verifier))
        assert page.locator(".warning").is_visible()
        page.get_by_label("Your API key").fill(journal.key)
        page.get_by_label("Your API key").press("Enter")

        answer = arrived(page, redirect)
    tokens = redeem(journal, client, answer, redirect_uri=redirect, code_verifier=verifier)
    assert tokens["access_token"]


def test_a_person_denies_access(journal: Journal, page: Page) -> None:
    """No key is needed for that, and the client is informed."""
    client = register(journal, ELSEWHERE)
    page.goto(question(journal, client, ELSEWHERE, new_verifier()))
    page.get_by_role("button", name="Deny").click()

    assert arrived(page, ELSEWHERE)["error"] == "access_denied"


def test_a_wrong_key_is_reported_and_can_be_fixed(journal: Journal, page: Page) -> None:
    """The form comes again as it was ticked; the key is not in it."""
    client, verifier = register(journal, ELSEWHERE), new_verifier()
    page.goto(question(journal, client, ELSEWHERE, verifier))
    page.get_by_label("leads:read").uncheck()
    page.get_by_label("Your API key").fill("fe_sk_wrong")
    page.get_by_role("button", name="Allow").click()

    expect(page.get_by_role("alert")).to_contain_text("not a valid API key")
    assert not page.get_by_label("leads:read").is_checked()
    assert page.get_by_label("posts:read").is_checked()
    assert page.get_by_label("Your API key").input_value() == ""
    page.get_by_label("Your API key").fill(journal.key)
    page.get_by_role("button", name="Allow").click()
    assert "code" in arrived(page, ELSEWHERE)


def test_an_unknown_client_gets_no_consent_form(journal: Journal, page: Page) -> None:
    """A page of the site says so to the person, who is not redirected."""
    response = page.goto(question(journal, "nobody", ELSEWHERE, new_verifier()))

    assert response is not None
    assert response.status == 403
    assert "No client is known" in page.locator("main").inner_text()
    assert page.locator("form[action*=authorize]").count() == 0


@pytest.mark.parametrize("width", [320, 1280])
def test_the_consent_page_fits_and_obeys_its_policy(
    journal: Journal, browser: Browser, width: int
) -> None:
    """Nothing is wider than the screen, nothing is refused by the page's own policy."""
    client = register(journal, ELSEWHERE)
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        response = page.goto(question(journal, client, ELSEWHERE, new_verifier()))
        wide = page.evaluate("document.documentElement.scrollWidth")

    assert response is not None
    policy = response.headers["content-security-policy"]
    assert "form-action 'self' https://client.example;" in policy
    assert "frame-ancestors 'none'" in policy
    assert "access-control-allow-origin" not in response.headers
    assert complaints == []
    assert wide <= width


def test_the_cookie_is_for_this_page_alone(journal: Journal, browser: Browser) -> None:
    """No script may read it, and no other site sends it."""
    client = register(journal, ELSEWHERE)
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(question(journal, client, ELSEWHERE, new_verifier()))
        (cookie,) = context.cookies()

    assert cookie["path"] == "/api/public/oauth/authorize"
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")


def test_a_form_without_its_cookie_is_refused(journal: Journal, browser: Browser) -> None:
    """It was not shown to this browser."""
    client = register(journal, ELSEWHERE)
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(question(journal, client, ELSEWHERE, new_verifier()))
        context.clear_cookies()
        page.get_by_label("Your API key").fill(journal.key)
        page.get_by_role("button", name="Allow").click()

        assert "go back to the client" in page.locator("main").inner_text()
