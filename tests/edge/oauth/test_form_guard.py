"""The proof that a form was shown to the browser that sends it."""

from datetime import UTC, datetime, timedelta

import pytest

from edge_api.oauth.request import ConsentCsrf

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PAIRS = [("client_id", "a"), ("scope", "b c")]
GUARD = ConsentCsrf(b"s" * 32)


def test_a_form_comes_back_as_it_was_shown() -> None:
    """For half an hour."""
    nonce = GUARD.new_nonce()
    token = GUARD.make_token(nonce, PAIRS, NOW)

    assert GUARD.is_valid(token, nonce, PAIRS, NOW + timedelta(minutes=30))
    assert not GUARD.is_valid(token, nonce, PAIRS, NOW + timedelta(minutes=30, seconds=1))


def test_a_form_of_another_browser_request_or_service_is_refused() -> None:
    """And so is one whose time was changed."""
    nonce = GUARD.new_nonce()
    token = GUARD.make_token(nonce, PAIRS, NOW)
    until, mac = token.split(".")

    assert not GUARD.is_valid(token, GUARD.new_nonce(), PAIRS, NOW)
    assert not GUARD.is_valid(token, "", PAIRS, NOW)
    assert not GUARD.is_valid(token, nonce, PAIRS[:1], NOW)
    assert not GUARD.is_valid(token, nonce, [*PAIRS, ("resource", "r")], NOW)
    assert not ConsentCsrf(b"t" * 32).is_valid(token, nonce, PAIRS, NOW)
    assert not GUARD.is_valid(f"{int(until) + 60}.{mac}", nonce, PAIRS, NOW)


@pytest.mark.parametrize("token", ["", ".", "x", "1.", "٣.x", "9" * 5000 + ".x", "1.ä"])
def test_an_invalid_form_token_is_refused(token: str) -> None:
    """Is refused like any other."""
    assert not GUARD.is_valid(token, GUARD.new_nonce(), PAIRS, NOW)
