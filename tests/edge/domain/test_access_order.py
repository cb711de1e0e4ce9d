from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from edge_api.access.service import (
    UNNAMED_AGENT,
    UNSTATED_PURPOSE,
    AccessRequestInput,
    read_access_form,
    request_schema,
)
from edge_api.db.problems import format_validation_error
from edge_api.operation.input import FormErrors

PLAIN = {"type": "api_key", "name": "Ann", "purpose": "Read posts."}
LONG = "x" * 2001


def fault_of(given: Any) -> str:
    """Return the first fault of an order."""
    with pytest.raises(ValidationError) as caught:
        AccessRequestInput.model_validate(given)
    fault = caught.value.errors(include_url=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {format_validation_error(fault)}"


def test_an_access_request_in_plain_words() -> None:
    """It names what it wants, who asks and why; text is trimmed and brought to NFC."""
    order = AccessRequestInput.model_validate(
        {**PLAIN, "name": " Zoe\u0308 ", "email": "z@example.org", "scopes": ["posts:read"]}
    )

    assert (order.name, order.email, order.purpose) == ("Zoë", "z@example.org", "Read posts.")
    assert (order.credential_types, order.requested_scopes) == (("api_key",), ("posts:read",))
    assert not order.filled_honeypot


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("api_key", ("api_key",)),
        ("access_token", ("access_token",)),
        ("both", ("api_key", "access_token")),
    ],
)
def test_an_access_request_in_the_words_of_auth_md(kind: str, types: tuple[str, ...]) -> None:
    """An anonymous agent need not say who it is; the person who decides reads that it did not."""
    order = AccessRequestInput.model_validate(
        {"type": "anonymous", "requested_credential_type": kind}
    )

    assert order.credential_types == types
    assert (order.name, order.purpose, order.email) == (UNNAMED_AGENT, UNSTATED_PURPOSE, None)


def test_an_anonymous_agent_may_send_more_members() -> None:
    """It is taken as it is; without a type of credential it gets an API key."""
    order = AccessRequestInput.model_validate(
        {"type": "anonymous", "name": "Bot", "purpose": "Search."}
    )

    assert (order.name, order.purpose, order.credential_types) == ("Bot", "Search.", ("api_key",))


def test_scopes_are_ordered_and_unique() -> None:
    """Without any it is the default; an access token always asks for `mcp`."""
    usual = AccessRequestInput.model_validate(PLAIN)
    token = AccessRequestInput.model_validate(
        {**PLAIN, "type": "access_token", "scopes": ["leads:read", "posts:read", "leads:read"]}
    )

    assert usual.requested_scopes == ("posts:read",)
    assert token.requested_scopes == ("posts:read", "leads:read", "mcp")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"type": "identity_assertion"},
            "type: must be one of 'api_key', 'access_token', 'both' or",
        ),
        ({"type": None}, "type: must be one of"),
        ({"name": " "}, "name: must not be empty"),
        ({"name": "a\nb"}, "name: must not contain control characters"),
        ({"name": 1}, "name: must be a string"),
        ({"purpose": LONG}, "purpose: 2,001 of 2,000 characters: shorten it by 1"),
        ({"purpose": "a\x00"}, "purpose: must not contain NUL"),
        ({"email": "ann at home"}, "email: not a valid e-mail address"),
        ({"email": ""}, "email: "),
        ({"scopes": []}, "scopes: must have 1 item or more"),
        ({"scopes": ["everything"]}, "scopes.0: must be one of 'posts:read'"),
        ({"scopes": ["mcp"] * 13}, "scopes: must have 12 items or fewer"),
        ({"scopes": "mcp"}, "scopes: must be an array"),
        ({"requested_credential_type": "otp"}, "requested_credential_type: must be one of"),
    ],
)
def test_an_invalid_access_request_is_reported(changes: dict[str, Any], message: str) -> None:
    """The sentence begins with the member to fix."""
    assert fault_of({**PLAIN, **changes}).startswith(message)


@pytest.mark.parametrize("member", ["type", "name", "purpose"])
def test_a_missing_member_is_reported(member: str) -> None:
    """In plain words these three are needed."""
    given = {name: value for name, value in PLAIN.items() if name != member}

    assert fault_of(given) == f"{member}: is required"


@pytest.mark.parametrize("given", [[], "x", None, 5])
def test_a_body_that_is_no_object_is_reported(given: Any) -> None:
    """Nothing but an object is an access request."""
    assert fault_of(given) == ": must be an object"


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (PLAIN, True),
        ({"type": "anonymous"}, True),
        ({"type": "anonymous", "requested_credential_type": "access_token"}, True),
        ({**PLAIN, "email": None, "scopes": None, "more": 1}, True),
        ({"type": "api_key", "name": "Ann"}, False),
        ({**PLAIN, "name": " "}, False),
        ({**PLAIN, "scopes": ["everything"]}, False),
        ({"type": "anonymous", "purpose": LONG}, False),
        ({"type": "service_auth"}, False),
    ],
)
def test_the_schema_says_what_the_model_checks(given: dict[str, Any], *, fits: bool) -> None:
    """The published schema accepts an access request exactly when the service does."""
    assert Draft202012Validator(request_schema()).is_valid(given) is fits
    if fits:
        AccessRequestInput.model_validate(given)
    else:
        assert fault_of(given)


def test_a_form_becomes_an_access_request() -> None:
    """Line breaks are as typed, an empty address is none, and the trap is noticed."""
    form = {**PLAIN, "email": "", "purpose": "a\r\nb", "_gotcha": ""}
    order = read_access_form(form)

    assert (order.email, order.purpose, order.filled_honeypot) == (None, "a\nb", False)
    assert read_access_form({**form, "_gotcha": "x"}).filled_honeypot
    assert read_access_form({**form, "scopes": "admin:write"}).scopes is None


def test_every_error_of_a_form_is_reported_at_once() -> None:
    """A sentence for each field, for the page that is shown again."""
    with pytest.raises(FormErrors) as caught:
        read_access_form({"name": "", "email": "x", "purpose": LONG})

    assert caught.value.by_field == {
        "type": "is required",
        "name": "must not be empty",
        "email": "not a valid e-mail address",
        "purpose": "2,001 of 2,000 characters: shorten it by 1",
    }
