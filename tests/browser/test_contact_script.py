"""The contact form with its script: what a reader sees, hears and loses, or does not."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import ARGUMENTS, Journal, settle
from tests.edge.edge_process import free_port

pytestmark = pytest.mark.size("test")

GOOD = {
    "name": "Ann Lee",
    "email": "ann@example.org",
    "message": "Hello,\nI like \u7d19 & edges.",
}
THANKS = "**/contact/thanks/"


def fill(page: Page, url: str, **changes: str) -> None:
    """Open the contact page and fill in the form."""
    page.goto(f"{url}/contact/")
    settle(page)
    type_in(page, **changes)


def type_in(page: Page, **changes: str) -> None:
    """Fill in the form."""
    for name, text in {**GOOD, **changes}.items():
        page.locator(f"#contact-form [name={name}]").fill(text)


def send(page: Page) -> None:
    """Press the button."""
    page.locator("#contact-form button:not([name])").click()


def typed(page: Page) -> dict[str, str]:
    """Return the values of the fields."""
    return {name: page.locator(f"#contact-form [name={name}]").input_value() for name in GOOD}


def test_a_message_is_sent_from_the_page(journal: Journal, page: Page) -> None:
    """It is sent by the script to the form's own door, and leads to the thanks."""
    kinds = []
    page.on("request", lambda request: kinds.append((request.method, request.resource_type)))
    fill(page, journal.url)
    page.get_by_label("You may also write").check()
    send(page)
    page.wait_for_url(THANKS)

    lead = journal.leads()[0]
    assert {name: lead[name] for name in GOOD} == GOOD
    assert lead["budget_tier"] == "No budget: a question"
    assert (lead["source"], lead["status"]) == ("form", "new")
    assert lead["consent_at"]
    assert lead["consent_text"].startswith("You may also write")
    assert ("POST", "fetch") in kinds
    assert ("POST", "document") not in kinds


def test_every_error_is_shown_at_its_field(journal: Journal, page: Page) -> None:
    """Each field at fault is marked and described, the first has the focus, the form says why."""
    before = len(journal.leads())
    fill(page, journal.url, name=" ", email="ann@nowhere")
    send(page)

    expect(page.locator("#name-fault")).to_have_text("Must not be empty.")
    expect(page.locator("#email-fault")).to_have_text("Not a valid e-mail address.")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was sent yet.")
    expect(page.locator("#name")).to_be_focused()
    for name in ("name", "email"):
        field = page.locator(f"#{name}")
        assert field.get_attribute("aria-invalid") == "true"
        assert field.get_attribute("aria-describedby") == f"{name}-fault"
    assert page.locator("[aria-invalid]").count() == 2
    assert typed(page) == {**GOOD, "name": " ", "email": "ann@nowhere"}
    assert page.url == f"{journal.url}/contact/"
    assert len(journal.leads()) == before


def test_a_long_message_keeps_its_end(journal: Journal, page: Page) -> None:
    """It is counted from 1,600 on, comes back whole, and its rest is sent as a second lead."""
    before = len(journal.leads())
    fill(page, journal.url, message="w" * 1599)
    expect(page.locator("#message-limit")).to_have_text("At most 2,000 characters.")
    page.locator("#message").fill("\U0001f58b" * 1600)
    expect(page.locator("#message-limit")).to_have_text("1,600 of 2,000 characters.")
    text = f"{'A long brief. ' * 130}\n\n{'More of it. ' * 140}"
    page.locator("#message").fill(text)
    expect(page.locator("#contact-form [name=rest]")).to_be_hidden()
    send(page)

    expect(page.locator("#message-fault")).to_contain_text("of 2,000 characters: shorten it by")
    expect(page.locator("#rest-fault")).to_be_visible()
    expect(page.locator("#rest-fault")).to_have_class("small")
    expect(page.locator("#message-limit")).to_be_hidden()
    assert page.locator("#message").input_value() == text
    page.locator("#contact-form [name=rest]").click()
    page.wait_for_url(THANKS)
    second, first = journal.leads()[:2]
    assert len(journal.leads()) == before + 2
    assert (first["message"].split() + second["message"].split()) == text.split()


def test_more_than_two_messages_hold_is_not_offered(journal: Journal, page: Page) -> None:
    """Not as it is typed behind an offer, nor sent; the count is said once, and all is kept."""
    rest = page.locator("#contact-form [name=rest]")
    fill(page, journal.url, message="w" * 3000)
    send(page)
    expect(rest).to_be_visible()
    page.locator("#message").fill("w" * 4001)
    expect(rest).to_be_hidden()
    expect(page.locator("#message-limit")).to_be_visible()

    page.locator("#message").fill("\u0436" * 13_200)
    send(page)
    expect(page.locator("#message-fault")).to_have_text(
        "13,200 of 4,000 characters: shorten it by 9,200."
    )
    expect(rest).to_be_hidden()
    expect(page.locator("#message-limit")).to_be_hidden()
    assert page.locator("#message").input_value() == "\u0436" * 13_200


def test_an_empty_form_is_reported_in_the_page(journal: Journal, page: Page) -> None:
    """The service reports each missing field too, at the field."""
    page.goto(f"{journal.url}/contact/")
    settle(page)
    send(page)

    expect(page.locator("#contact-form .field .fault")).to_have_count(3)
    expect(page.locator("#message-fault")).to_be_visible()


def test_an_error_goes_when_its_field_is_fixed(journal: Journal, page: Page) -> None:
    """The mark goes as soon as the field is changed, and the fixed form is taken."""
    fill(page, journal.url, email="ann@nowhere")
    send(page)
    expect(page.locator("#email-fault")).to_be_visible()

    page.locator("#email").fill("fixed@example.org")
    expect(page.locator("#email-fault")).to_have_count(0)
    assert page.locator("#email").get_attribute("aria-invalid") is None
    send(page)
    page.wait_for_url(THANKS)
    assert journal.leads()[0]["email"] == "fixed@example.org"


@pytest.mark.size("ci")
def test_a_form_returned_with_errors_is_handled_by_the_script(
    journal: Journal, browser: Browser, page: Page
) -> None:
    """The form had posted itself, and its page came back with errors: the script goes on."""
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{journal.url}/contact/")
    type_in(plain, email="ann@nowhere")
    send(plain)
    body = plain.content()
    plain.context.close()
    page.route("**/contact/", lambda route: _once(route, body))
    page.goto(f"{journal.url}/contact/")
    settle(page)
    expect(page.locator("#email-fault")).to_have_count(1)

    page.locator("#message").fill("")
    send(page)
    expect(page.locator("#message-fault")).to_be_visible()
    expect(page.locator("#email-fault")).to_have_count(1)
    expect(page.get_by_role("alert")).to_have_count(1)


def _once(route: Route, body: str) -> None:
    if route.request.method == "GET":
        route.fulfill(body=body, content_type="text/html; charset=utf-8")
    else:
        route.continue_()


def test_a_double_click_makes_one_lead(journal: Journal, page: Page) -> None:
    """However often the button is pressed, the message is stored once."""
    before = len(journal.leads())
    fill(page, journal.url, name="Twice")
    page.locator("#contact-form button:not([name])").dblclick()
    page.wait_for_url(THANKS)

    assert len(journal.leads()) == before + 1


@pytest.mark.size("ci")
def test_a_page_that_is_gone_back_to_sends_nothing_twice(
    journal: Journal, browser: Browser, chromium: str
) -> None:
    """A browser that kept the page shows it as it was left: the button works, the key is known."""
    # Playwright itself would have the browser keep no pages.
    kept = browser.browser_type.launch(
        executable_path=chromium,
        args=list(ARGUMENTS),
        ignore_default_args=["--disable-back-forward-cache"],
    )
    page = kept.new_page()
    before = len(journal.leads())
    fill(page, journal.url, name="Back")
    page.evaluate("window.isTheSame = true")
    send(page)
    page.wait_for_url(THANKS)
    page.go_back(wait_until="commit")
    assert page.evaluate("window.isTheSame") is True
    expect(page.locator("#contact-form button:not([name])")).to_have_text("Send")
    send(page)
    page.wait_for_url(THANKS)
    kept.close()

    assert len(journal.leads()) == before + 1


def test_a_page_that_is_loaded_again_sends_nothing_twice(journal: Journal, page: Page) -> None:
    """The same words from the same tab are the same message; other words are another."""
    before = len(journal.leads())
    for changes in ({}, {}, {"message": "Something else."}):
        fill(page, journal.url, name="Again", **changes)
        send(page)
        page.wait_for_url(THANKS)

    assert len(journal.leads()) == before + 2


def test_an_answer_that_got_lost_makes_no_second_lead(journal: Journal, page: Page) -> None:
    """The connection breaks after the lead is stored: sending again finds it."""
    before = len(journal.leads())

    def lose(route: Route) -> None:
        if route.request.method == "POST":
            route.fetch()
            route.abort("connectionreset")
        else:
            route.continue_()

    fill(page, journal.url, name="Lost")
    page.route("**/contact/", lose)
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("Send it again")
    assert typed(page) == {**GOOD, "name": "Lost"}
    page.unroute("**/contact/")
    send(page)
    page.wait_for_url(THANKS)

    assert len(journal.leads()) == before + 1


@pytest.mark.size("ci")
def test_a_changed_message_is_a_new_lead(journal: Journal, page: Page) -> None:
    """After a lost answer, what was changed meanwhile is a message of its own, and not refused."""
    before = len(journal.leads())

    def lose(route: Route) -> None:
        route.fetch()
        route.abort("connectionreset")

    fill(page, journal.url, name="First")
    page.route("**/contact/", lose)
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("Send it again")
    page.unroute("**/contact/")
    page.locator("#name").fill("Second")
    send(page)
    page.wait_for_url(THANKS)

    assert [lead["name"] for lead in journal.leads()[:2]] == ["Second", "First"]
    assert len(journal.leads()) == before + 2


def test_without_a_connection_nothing_is_lost(journal: Journal, page: Page) -> None:
    """Offline, the page says so and keeps what was typed; online again, it is sent."""
    fill(page, journal.url, name="Offline")
    page.context.set_offline(True)
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("The connection failed")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.locator("#contact-form button:not([name])")).to_have_text("Send")
    assert typed(page) == {**GOOD, "name": "Offline"}
    assert page.locator("[aria-invalid]").count() == 0

    page.context.set_offline(False)
    send(page)
    page.wait_for_url(THANKS)
    assert journal.leads()[0]["name"] == "Offline"


@pytest.mark.size("ci")
def test_an_answer_of_a_proxy_is_reported(journal: Journal, page: Page) -> None:
    """A proxy's error page is no answer of the service, and is reported as what it is."""
    fill(page, journal.url)
    page.route("**/contact/", lambda route: route.fulfill(status=502, body="<h1>Bad</h1>"))
    send(page)

    expect(page.get_by_role("alert")).to_contain_text("was not taken (status 502)")
    assert typed(page) == GOOD


@contextmanager
def served_with(journal: Journal, **settings: str) -> Iterator[str]:
    """Serve the same journal once more, under settings that differ, from a store of its own."""
    port = free_port()
    store = f"sqlite:///{journal.installation.folder}/{port}/edge.db"
    changed = {"PORT": str(port), "SITE_URL": journal.url, "DATABASE_URL": store, **settings}
    with journal.installation.changed(**changed).serving():
        yield f"http://127.0.0.1:{port}"


@pytest.mark.size("ci")
def test_the_rate_limit_is_explained(journal: Journal, page: Page) -> None:
    """Over the limit the page says when it may be tried again, as the service says it."""
    with served_with(journal, RATE_LEADS="1/hour") as url:
        fill(page, url)
        send(page)
        page.wait_for_url(THANKS)
        fill(page, url, name="Ben")
        with page.expect_response("**/contact/") as response:
            send(page)
        expect(page.get_by_role("alert")).to_contain_text("Too many messages")

        assert response.value.status == 429
        minutes = -(-int(response.value.headers["retry-after"]) // 60)
        alert = page.get_by_role("alert").inner_text()
        assert f"Try again in {minutes} minutes; what you typed stays here." in alert
        assert typed(page)["name"] == "Ben"


@pytest.mark.size("ci")
def test_a_closed_form_says_so(journal: Journal, page: Page) -> None:
    """If leads need a credential, a message above the form says so."""
    with served_with(journal, LEADS_REQUIRE_CREDENTIAL="true") as url:
        fill(page, url)
        send(page)
        expect(page.get_by_role("alert")).to_contain_text("This form is closed")


def test_the_form_works_with_the_keyboard_alone(journal: Journal, page: Page) -> None:
    """From field to field with Tab, a fault fixed where the focus was put, sent with Enter."""
    page.goto(f"{journal.url}/contact/")
    page.locator("#name").focus()
    keys = page.keyboard
    keys.type("Kay")
    keys.press("Tab")
    keys.type("kay@nowhere")
    keys.press("Tab")
    keys.type("By keyboard.")
    keys.press("Tab")
    keys.press("Space")
    keys.press("Tab")
    keys.press("Enter")
    expect(page.locator("#email")).to_be_focused()
    keys.press("ControlOrMeta+a")
    keys.type("kay@example.org")
    keys.press("Enter")
    page.wait_for_url(THANKS)

    lead = journal.leads()[0]
    assert (lead["name"], lead["email"], lead["message"]) == (
        "Kay",
        "kay@example.org",
        "By keyboard.",
    )
    assert lead["consent_at"]


@pytest.mark.size("ci")
def test_the_honeypot_is_sent_by_the_script(journal: Journal, page: Page) -> None:
    """A machine that fills in the trap and runs scripts is thanked, and its lead is marked."""
    fill(page, journal.url, name="Machine")
    page.locator("#gotcha").evaluate("field => { field.value = 'x' }")
    send(page)
    page.wait_for_url(THANKS)

    lead = journal.leads()[0]
    assert (lead["name"], lead["status"]) == ("Machine", "spam")


@pytest.mark.size("ci")
def test_the_policy_lets_the_script_do_its_work(journal: Journal, page: Page) -> None:
    """Nothing of the page is stopped by its security policy, and nothing complains."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    fill(page, journal.url)
    send(page)
    page.wait_for_url(THANKS)

    assert complaints == []


def call(page: Page, **changes: str) -> None:
    """Let the browser's agent call the form's tool; what it gets is in `outcome` later."""
    settle(page)  # else the press after this may send the form without its script
    page.evaluate(
        """async (values) => {
          const [tool] = await document.modelContext.getTools();
          window.outcome = "";
          document.modelContext.executeTool(tool, values)
            .catch((error) => `! ${error}`)
            .then((said) => { window.outcome = String(said); });
        }""",
        {**GOOD, **changes},
    )
    expect(page.locator("#contact-form [name=message]")).to_have_value(GOOD["message"])


def test_the_form_is_a_tool_of_the_browsers_agent(journal: Journal, agent_page: Page) -> None:
    """Its members are those of a lead, each described, and what is required is."""
    agent_page.goto(f"{journal.url}/contact/")
    (tool,) = agent_page.evaluate(
        "async () => (await document.modelContext.getTools())"
        ".map(({name, description, inputSchema}) => ({name, description, inputSchema}))"
    )
    members = tool["inputSchema"]["properties"]

    assert tool["name"] == "send_message"
    assert tool["description"]
    assert set(tool["inputSchema"]["required"]) == set(GOOD)
    assert set(members) == {*GOOD, "consent", "_gotcha"}
    assert all(member["description"] for member in members.values())


def test_an_agent_fills_in_and_the_reader_sends(journal: Journal, agent_page: Page) -> None:
    """Nothing is sent before the person has pressed the button."""
    before = len(journal.leads())
    agent_page.goto(f"{journal.url}/contact/")
    call(agent_page, name="Agent")
    assert typed(agent_page) == {**GOOD, "name": "Agent"}
    assert len(journal.leads()) == before

    send(agent_page)
    agent_page.wait_for_url(THANKS)
    assert [lead["name"] for lead in journal.leads()][:1] == ["Agent"]


def test_an_agent_gets_the_error_message(journal: Journal, agent_page: Page) -> None:
    """The service's own words about a fault are what the tool gives back."""
    agent_page.goto(f"{journal.url}/contact/")
    call(agent_page, email="agent@nowhere")
    send(agent_page)
    expect(agent_page.locator("#email-fault")).to_be_visible()
    agent_page.wait_for_function("window.outcome !== ''")

    assert "email: not a valid e-mail address" in agent_page.evaluate("window.outcome")
