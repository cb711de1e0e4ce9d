"""The pages that the edge renders, as a person would take them: consent, notice, what was filed."""

from typing import Any

import jinja2
import pytest

from tests.theme.html_page import Page

HOSTILE = '</code></p>"\'><script>alert(1)</script><input name="granted" value="admin:write">'
SCOPES = [
    {"name": "posts:read", "description": "read posts", "checked": True},
    {"name": "mcp", "description": "call the MCP endpoint", "checked": False},
]
QUESTION: dict[str, Any] = {
    "action": "/api/public/oauth/authorize",
    "hidden": [("client_id", "c-1"), ("scope", "posts:read mcp"), ("seal", "s")],
    "client_name": "Reader",
    "client_id": "c-1",
    "client_kind": "registered",
    "redirect_host": "agent.example",
    "is_loopback": False,
    "resource": "the MCP endpoint",
    "scopes": SCOPES,
    "fault": "",
}


def render(templates: jinja2.Environment, name: str, **values: Any) -> Page:
    """Return a page's content."""
    return Page(templates.get_template(f"{name}.html").render(values))


def ask(templates: jinja2.Environment, **changes: Any) -> Page:
    """Return the question for a person."""
    return render(templates, "consent", **{**QUESTION, **changes})


def text_of(page: Page) -> str:
    """Return all that the paragraphs, terms and their descriptions say."""
    said = [element.text for tag in ("p", "dt", "dd", "label") for element in page.all(tag)]
    return " ".join(" ".join(said).split())


def test_the_question_names_who_where_and_what(templates: jinja2.Environment) -> None:
    """Client, where the browser goes next, what it is for, and each scope in words and by name."""
    said = text_of(ask(templates))

    assert "Reader asks to use the MCP endpoint of this site in your name." in said
    assert "c-1" in said
    assert "agent.example" in said
    assert "Read posts posts:read" in said
    assert "Call the MCP endpoint mcp" in said


def test_the_form_sends_the_answer_and_what_it_brought(templates: jinja2.Environment) -> None:
    """Hidden members come back as they were, beside key, ticked scopes and one of two buttons."""
    page = ask(templates)
    form = page.one("form").attributes
    inputs = [each.attributes for each in page.all("input")]
    buttons = [each.attributes for each in page.all("button")]

    assert (form["method"], form["action"]) == ("post", QUESTION["action"])
    hidden = [(each["name"], each["value"]) for each in inputs if each["type"] == "hidden"]
    assert hidden == QUESTION["hidden"]
    boxes = [each for each in inputs if each["type"] == "checkbox"]
    assert [(each["name"], each["value"], "checked" in each) for each in boxes] == [
        ("granted", "posts:read", True),
        ("granted", "mcp", False),
    ]
    (key,) = (each for each in inputs if each["type"] == "password")
    assert (key["name"], key["autocomplete"]) == ("api_key", "off")
    assert "value" not in key
    assert [(each["name"], each["value"]) for each in buttons] == [
        ("decision", "allow"),
        ("decision", "deny"),
    ]


def test_denying_needs_no_key(templates: jinja2.Environment) -> None:
    """The browser asks for the key before it allows, never before it denies."""
    page = ask(templates)
    allow, deny = page.all("button")

    assert "required" in page.one("input", id="api_key").attributes
    assert "formnovalidate" in deny.attributes
    assert "formnovalidate" not in allow.attributes


@pytest.mark.parametrize("kind", ["registered", "dynamic", "document"])
def test_each_kind_of_client_is_introduced_differently(
    templates: jinja2.Environment, kind: str
) -> None:
    """A name that a program gave itself is not shown as if somebody had checked it."""
    said = text_of(ask(templates, client_kind=kind))

    assert ("Nobody has checked it" in said) == (kind == "dynamic")
    assert ("The people of this site registered" in said) == (kind == "registered")
    assert ("that this address describes" in said) == (kind == "document")


@pytest.mark.parametrize("is_loopback", [True, False])
def test_a_program_on_the_machine_is_warned_of(
    templates: jinja2.Environment, *, is_loopback: bool
) -> None:
    """Any program here could listen on a loopback port, so the person has to know it is theirs."""
    said = text_of(ask(templates, is_loopback=is_loopback))

    assert ("only if you have just started that program yourself" in said) == is_loopback


def test_a_fault_takes_the_focus_and_is_tied(templates: jinja2.Environment) -> None:
    """The error is shown once, first, and is part of the description of key and scopes."""
    page = ask(templates, fault="This is not a valid API key.")
    alert = page.one("p", role="alert")

    assert alert.text == "This is not a valid API key."
    assert {"autofocus", "tabindex"} <= alert.attributes.keys()
    assert "fault" in page.one("input", id="api_key").attributes["aria-describedby"].split()
    assert page.one("fieldset").attributes["aria-describedby"] == alert.attributes["id"]
    assert ask(templates).all("p", role="alert") == []


def test_every_control_has_a_label(templates: jinja2.Environment) -> None:
    """A screen reader names each control."""
    page = ask(templates)
    shown = [each for each in page.all("input") if each.attributes["type"] != "hidden"]
    labels = {each.attributes["for"] for each in page.all("label")}
    ids = {each.attributes["id"] for each in page.elements if "id" in each.attributes}

    assert {each.attributes["id"] for each in shown} == labels
    described = page.one("input", id="api_key").attributes["aria-describedby"].split()
    assert set(described) <= ids
    assert page.one("legend").text == "What you allow"


def test_nothing_that_a_client_says_becomes_markup(templates: jinja2.Environment) -> None:
    """Names, addresses and members of the request are text, wherever they are."""
    texts = ("client_name", "client_id", "redirect_host", "resource", "fault", "action")
    page = ask(templates, **dict.fromkeys(texts, HOSTILE), hidden=[(HOSTILE, HOSTILE)])

    assert page.all("script") == []
    assert len(page.all("input")) == 1 + len(SCOPES) + 1
    assert len(page.all("form")) == 1


def test_a_notice_has_sentences_and_perhaps_a_link(templates: jinja2.Environment) -> None:
    """Each sentence is a paragraph; a link comes last."""
    plain = render(templates, "notice", sentences=["One <i>.", "Two."], link=None)
    linked = render(templates, "notice", sentences=["One."], link=("/contact/", "Write"))

    assert [each.text for each in plain.all("p")] == ["One <i>.", "Two."]
    assert plain.all("a") == plain.all("i") == []
    assert (linked.one("a").attributes["href"], linked.one("a").text) == ("/contact/", "Write")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("api_key", "an API key"),
        ("access_token", "an access token"),
        ("both", "an API key and an access token"),
    ],
)
def test_a_filed_request_is_shown_with_its_token(
    templates: jinja2.Environment, kind: str, words: str
) -> None:
    """The page shows the token, until when it is good, and how to fetch the credential with it."""
    page = render(
        templates,
        "access_requested",
        claim_token="fe_cl_x",
        claim_uri="https://journal.example/claim",
        credential_type=kind,
        expires="2026-12-05",
        action="/claim/",
    )

    form = page.one("form")
    assert (form.attributes["method"], form.attributes["action"]) == ("post", "/claim/")
    assert page.one("input").attributes["value"] == "fe_cl_x"
    assert f"Your request for {words} is filed." in text_of(page)
    assert "until 5 December 2026" in text_of(page)
    token, command = (each.text for each in page.all("pre"))
    assert token == "fe_cl_x"
    assert command.startswith("curl https://journal.example/claim \\\n")
    assert """-d '{"claim_token": "fe_cl_x"}'""" in command


def test_a_claim_token_is_taken_and_its_credentials_are_shown(
    templates: jinja2.Environment,
) -> None:
    """The form keeps what was pasted beside the sentence; what was fetched replaces the form."""
    given = {"action": "/claim/", "claim_token": HOSTILE, "said": HOSTILE, "credentials": []}
    asked = render(templates, "access_claim", **given)
    field = asked.one("input")
    assert (field.attributes["value"], field.attributes["aria-describedby"]) == (HOSTILE, "said")
    assert asked.one("label").attributes["for"] == field.attributes["id"]
    assert (asked.one("p", id="said").text, asked.all("script")) == (HOSTILE, [])

    key = {
        "credential": "fe_sk_x",
        "credential_type": "api_key",
        "credential_expires": "2027-03-05T09:30:00.000000Z",
        "scopes": ["posts:read", "leads:read"],
    }
    token = {**key, "credential_type": "access_token", "credential_expires": None}
    shown = {"site_url": "https://journal.example", "credentials": [key, token]}
    fetched = render(templates, "access_claim", **{**given, **shown})
    assert fetched.all("form") == []
    shown_texts = [each.text.partition("\n")[0] for each in fetched.all("pre")]
    assert shown_texts == [
        "fe_sk_x",
        "curl https://journal.example/api/public/v1/posts \\",
        "import os",
        "fe_sk_x",
        "https://journal.example/api/public/mcp",
        "Authorization: Bearer fe_mt_\u2026",
    ]
    assert len(fetched.all("pre", **{"class": "secret"})) == 2
    assert "It may use posts:read, leads:read, and ends on 5 March 2027." in text_of(fetched)
    assert "It may use posts:read, leads:read, and has no end." in text_of(fetched)
    assert [each.text for each in fetched.all("h2")] == ["Your API key", "Your access token"]
