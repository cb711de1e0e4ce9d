"""Where a browser may be sent back to: which URIs a client may register, and which it may name.

OAuth 2.1 (draft 15), section 2.3, and RFC 8252, sections 7.1 to 7.3.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
URI_LONGEST: Final = 2048

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
WEB: Final = (
    rf"(?:https://{_LABEL}(?:\.{_LABEL})*|http://(?:127\.0\.0\.1|localhost|\[::1\]))"
    rf"(?::{_PORT})?(?:[/?][A-Za-z0-9._~!$&'()*+,;=:@/?%-]*)?"
)
"""What may be registered but for private-use schemes, as Python and JSON Schema (ECMA-262) read
regular expressions alike: https, or http on this machine; no user, no fragment (RFC 3986)."""
_PRINTABLE: Final = re.compile(r"[!#-\[\]-~]+")
"""No blank, quotation mark, backslash or control character (RFC 3986, section 2)."""
_DANGEROUS: Final = ("javascript", "data", "file", "vbscript", "about", "blob")
"""Schemes that run or show something in the browser itself, whatever a list may say."""


def refusal_of(uri: str, schemes: Iterable[str]) -> str | None:
    """Return why a client may not register `uri`, or `None`.

    `https` with a host, `http` on this machine alone, or a private-use scheme of `schemes`.
    """
    if len(uri) <= URI_LONGEST and re.fullmatch(WEB, uri):
        return None
    parts = _split(uri)
    if parts is None or "#" in uri:
        return "must be a URI without a fragment"
    if _is_web(parts):
        return _refusal_of_web(parts)
    if parts.scheme in schemes and parts.scheme not in _DANGEROUS:
        return None
    return f"must be https, http on a loopback address, or one of {', '.join(schemes) or 'none'}"


def matches(registered: str, named: str) -> bool:
    """Tell whether the URI in a request is the registered one: the very same string.

    On a loopback address any port will do, for a program takes one that is free (RFC 8252, 7.3).
    """
    if registered == named:
        return True
    ours, theirs = _split(registered), _split(named)
    if ours is None or theirs is None or "#" in named or _refusal_of_authority(theirs):
        return False
    if ours.scheme != "http" or ours.hostname not in LOOPBACK or not re.fullmatch(WEB, named):
        return False
    return _without_port(ours) == _without_port(theirs)


def source_of(uri: str) -> str:
    """Return a redirect URI as a source of a content security policy (CSP level 3, 2.3.1).

    A policy cannot name an IPv6 address: there, as for a program's scheme, the scheme has to do.
    """
    parts = urlsplit(uri)
    is_nameable = _is_web(parts) and ":" not in (parts.hostname or "")
    return f"{parts.scheme}://{parts.netloc}" if is_nameable else _scheme(parts)


def host_of(uri: str) -> str:
    """Return where a redirect goes, as a person may judge it: a host, or a program's scheme."""
    parts = urlsplit(uri)
    return parts.netloc if _is_web(parts) else _scheme(parts)


def is_loopback(uri: str) -> bool:
    """Tell whether a redirect goes to a program on the person's own machine."""
    parts = urlsplit(uri)
    return not _is_web(parts) or parts.hostname in LOOPBACK


def _is_web(parts: SplitResult) -> bool:
    return parts.scheme in ("http", "https")


def _scheme(parts: SplitResult) -> str:
    return f"{parts.scheme}:"


def _split(uri: str) -> SplitResult | None:
    if len(uri) > URI_LONGEST or _PRINTABLE.fullmatch(uri) is None:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme else None


def _refusal_of_web(parts: SplitResult) -> str:
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        return "must be https, or http on a loopback address"
    return _refusal_of_authority(parts) or "is not an address that browsers agree on"


def _refusal_of_authority(parts: SplitResult) -> str | None:
    if not parts.hostname:
        return "must have a host"
    if parts.username is not None or parts.password is not None:
        return "must not have a user name or password"
    return None


def _without_port(parts: SplitResult) -> tuple[str, str | None, str, str]:
    return parts.scheme, parts.hostname, parts.path, parts.query
