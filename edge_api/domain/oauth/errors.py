"""From Authlib's errors to the product's one exception, with the codes that OAuth clients read."""

from typing import Final

from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]

from edge_api.schema.problems import Problem

BASIC: Final = {"WWW-Authenticate": 'Basic realm="oauth"'}
"""RFC 6749, section 5.2, and RFC 7617."""


class InvalidTargetError(OAuth2Error):  # type: ignore[misc]
    """A resource that tokens of this server are not for (RFC 8707, section 2)."""

    error = "invalid_target"


def problem_of(error: OAuth2Error) -> Problem:
    """Return the problem that tells a client of an error in its own words.

    A client that cannot authenticate gets 401 (RFC 6749, section 5.2).
    """
    said = _OURS.get(error.error) or error.get_error_description()
    sentence = (said or _SENTENCES.get(error.error, ""))[:_SENTENCE_MOST]
    if error.error == "invalid_client":
        sentence = _NO_CLIENT if sentence.startswith(_AUTHLIB_WORDS) else sentence
        return Problem("unauthenticated", sentence, oauth=error.error, headers=BASIC)
    return Problem("invalid", sentence, oauth=error.error)


_SENTENCE_MOST: Final = 200
"""Characters: some of the library's sentences repeat what was sent."""
_AUTHLIB_WORDS: Final = "The client cannot authenticate with methods"
_NO_CLIENT: Final = "No client is known by these credentials, or it is registered for another way"
_OURS: Final = {"unsupported_response_type": "response_type: only code is known"}
"""In place of the library's sentence, which says it twice."""
_SENTENCES: Final = {
    "invalid_grant": "The code or token is unknown, expired, used, revoked, or of another client",
    "invalid_scope": "A scope is unknown, or not within what was granted",
    "unauthorized_client": "The client is not registered for this",
}
