"""A request to the authorization server (RFC 6749): parameters, redirect URIs, CSRF protection."""

import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import orjson
from authlib.oauth2.rfc6749 import OAuth2Request  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload  # type: ignore[import-untyped]

from edge_api.db.problems import Problem
from edge_api.schema.sentences import sentence

LOOPBACK_HOSTS: Final = ("127.0.0.1", "::1", "localhost")
MAX_URI_LENGTH: Final = 2048

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
WEB_URI_PATTERN: Final = (
    rf"(?:https://{_LABEL}(?:\.{_LABEL})*|http://(?:127\.0\.0\.1|localhost|\[::1\]))"
    rf"(?::{_PORT})?(?:[/?][A-Za-z0-9._~!$&'()*+,;=:@/?%-]*)?"
)
"""The pattern of a redirect URI with a web scheme: https, or http on this machine, without
user and fragment (RFC 3986). It means the same in Python and in JSON Schema (ECMA-262)."""


def redirect_uri_error(uri: str, schemes: Iterable[str]) -> str | None:
    """Return the error of a redirect URI, or `None`; `schemes` are allowed private-use schemes."""
    if len(uri) <= MAX_URI_LENGTH and re.fullmatch(WEB_URI_PATTERN, uri):
        return None
    parts = split_uri(uri)
    if parts is None or "#" in uri:
        return "must be a URI without a fragment"
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        return "must be https, or http on a loopback address"
    if _is_web(parts):
        return _authority_error(parts) or "is not an address that browsers agree on"
    # These run or show content in the browser itself: they are never allowed.
    dangerous = ("javascript", "data", "file", "vbscript", "about", "blob")
    if parts.scheme in schemes and parts.scheme not in dangerous:
        return None
    return f"must be https, http on a loopback address, or one of {', '.join(schemes) or 'none'}"


def matches_uri(registered: str, named: str) -> bool:
    """Return whether the URI in a request equals the registered one.

    On a loopback address any port is accepted, since programs listen on a free one (RFC 8252, 7.3).
    """
    if registered == named:
        return True
    ours, theirs = split_uri(registered), split_uri(named)
    if ours is None or theirs is None or "#" in named or _authority_error(theirs):
        return False
    if (
        ours.scheme != "http"
        or ours.hostname not in LOOPBACK_HOSTS
        or not re.fullmatch(WEB_URI_PATTERN, named)
    ):
        return False
    return all(
        getattr(ours, part) == getattr(theirs, part)
        for part in ("scheme", "hostname", "path", "query")
    )


def csp_source(uri: str) -> str:
    """Return a redirect URI as a source of a content security policy (CSP level 3, 2.3.1).

    The source is the scheme alone for a private-use scheme, and for an IPv6 address, which a policy
    cannot name.
    """
    parts = urlsplit(uri)
    is_nameable = _is_web(parts) and ":" not in (parts.hostname or "")
    return f"{parts.scheme}://{parts.netloc}" if is_nameable else f"{parts.scheme}:"


def display_host(uri: str) -> str:
    """Return the target of a redirect for display: a host, or a private-use scheme."""
    parts = urlsplit(uri)
    return parts.netloc if _is_web(parts) else f"{parts.scheme}:"


def is_local_redirect(uri: str) -> bool:
    """Return whether a redirect leads to a program on the person's own machine."""
    parts = urlsplit(uri)
    return not _is_web(parts) or parts.hostname in LOOPBACK_HOSTS


def _is_web(parts: SplitResult) -> bool:
    return parts.scheme in ("http", "https")


def split_uri(uri: str) -> SplitResult | None:
    """Return the parts of a URI; `None` for anything else, and for one that is too long."""
    # No blank, quotation mark, backslash or control character (RFC 3986, section 2).
    if len(uri) > MAX_URI_LENGTH or not re.fullmatch(r"[!#-\[\]-~]+", uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme else None


def _authority_error(parts: SplitResult) -> str | None:
    if not parts.hostname:
        return "must have a host"
    if parts.username is not None or parts.password is not None:
        return "must not have a user name or password"
    return None


def is_nonce(text: str) -> bool:
    """Return whether a cookie has the form of a nonce."""
    return re.fullmatch(r"[A-Za-z0-9_-]{32}", text) is not None


class ConsentCsrf:
    """Makes and checks the CSRF tokens of consent forms, in their field `seal`."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"consent form", "sha256")

    def new_nonce(self) -> str:
        """Return a nonce for the cookie."""
        return secrets.token_urlsafe(24)

    def make_token(self, nonce: str, pairs: Sequence[tuple[str, str]], now: datetime) -> str:
        """Return the CSRF token of a form, bound to the cookie, the request and the time."""
        expiry = str(int((now + timedelta(minutes=30)).timestamp()))
        return f"{expiry}.{self._mac(nonce, pairs, expiry)}"

    def is_valid(
        self, csrf_token: str, nonce: str, pairs: Sequence[tuple[str, str]], now: datetime
    ) -> bool:
        """Return whether the token is of this cookie and request, and not expired."""
        expiry, _, mac = csrf_token.partition(".")
        if not nonce or not expiry.isdecimal() or not expiry.isascii():
            return False
        expected = self._mac(nonce, pairs, expiry)
        is_late = len(expiry) > len(expected) or int(expiry) < now.timestamp()
        return not is_late and hmac.compare_digest(mac.encode(), expected.encode())

    def _mac(self, nonce: str, pairs: Sequence[tuple[str, str]], expiry: str) -> str:
        # Sorted: a decoded form has lost the order of its members.
        payload = orjson.dumps([nonce, expiry, sorted(list(pair) for pair in pairs)])
        return hmac.digest(self._key, payload, "sha256").hex()


KNOWN_PARAMETERS: Final = frozenset(
    {
        "client_id",
        "client_secret",
        "client_assertion_type",
        "client_assertion",
        "response_type",
        "redirect_uri",
        "scope",
        "state",
        "resource",
        "code_challenge",
        "code_challenge_method",
        "grant_type",
        "code",
        "code_verifier",
        "refresh_token",
        "token",
        "token_type_hint",
    }
)
"""Known parameters; others are ignored (RFC 6749, sections 3.1 and 3.2)."""
MAX_VALUE_LENGTH: Final = 4096  # characters
_LONGER_VALUES: Final[Mapping[str, int]] = {
    "client_assertion": 16384,
    "token": 8192,
    "refresh_token": 8192,
}


class AuthRequest(OAuth2Request):  # type: ignore[misc]
    """A request with its parameters by name, and its headers for client authentication."""

    def __init__(
        self, pairs: Iterable[tuple[str, str]], headers: Mapping[str, str], method: str = "POST"
    ) -> None:
        """Check the parameters; omit empty ones (RFC 6749, 3.1). Raises Problem `invalid`."""
        # A placeholder URL, since Authlib would refuse http, even on a loopback address.
        super().__init__(method, "https://transport.invalid/", headers=headers)
        lists: dict[str, list[str]] = {}
        for name, value in pairs:
            if value and name in KNOWN_PARAMETERS:
                lists.setdefault(name, []).append(_check_value(name, value))
        for name, values in lists.items():
            if len(values) > 1 and name != "resource":  # RFC 8707, section 2
                raise Problem("invalid", sentence("%(name)s: is given more than once", name=name))
        if "scope" in lists:
            # `offline_access` has no effect: the registration decides about refresh tokens.
            names = [name for name in lists["scope"][0].split() if name != "offline_access"]
            if not names:  # without scope the request would be for all scopes
                raise Problem(
                    "invalid",
                    sentence("scope: names nothing that can be granted"),
                    oauth="invalid_scope",
                )
            lists["scope"] = [" ".join(names)]
        self.payload: Any = BasicOAuth2Payload({name: each[0] for name, each in lists.items()})
        self.resources = lists.get("resource", [])
        """The resources that the token is requested for (RFC 8707, section 2)."""

    @property
    def form(self) -> Mapping[str, str]:
        """The parameters, from a form or a query."""
        parameters: Mapping[str, str] = self.payload.data
        return parameters

    args = form


def _check_value(name: str, value: str) -> str:
    pattern = r"[\x20-\x7e]*" if name == "state" else r"[ !#-\[\]-~]*"
    if not re.fullmatch(pattern, value):
        raise Problem(
            "invalid",
            sentence("%(name)s: must be printable ASCII, without quotation marks", name=name),
        )
    if len(value) > _LONGER_VALUES.get(name, MAX_VALUE_LENGTH):
        raise Problem("invalid", sentence("%(name)s: is too long", name=name))
    return value
