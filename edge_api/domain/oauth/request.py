"""A request to the authorization server, as its parameters; checked as far as RFC 6749 goes."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from authlib.oauth2.rfc6749 import OAuth2Request  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749.requests import OAuth2Payload  # type: ignore[import-untyped]

from edge_api.schema.problems import Problem

KNOWN: Final = frozenset(
    {
        *("client_id", "client_secret", "client_assertion_type", "client_assertion"),
        *("response_type", "redirect_uri", "scope", "state", "resource"),
        *("code_challenge", "code_challenge_method"),
        *("grant_type", "code", "code_verifier", "refresh_token", "token", "token_type_hint"),
    }
)
"""Parameters that mean something; others are ignored (RFC 6749, sections 3.1 and 3.2)."""
_REPEATABLE: Final = ("resource",)
"""RFC 8707, section 2."""
_FREE: Final = ("state",)
"""What only its client looks at may hold any printable character (RFC 6749, appendix A.5)."""
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
_QUOTABLE: Final = re.compile(r'[^"\\]*')
VALUE_LONGEST: Final = 4096
"""Characters: what is longer has no place in an address that a browser is sent to."""
_LONGER: Final[Mapping[str, int]] = MappingProxyType(
    {"client_assertion": 16384, "token": 8192, "refresh_token": 8192}
)
_OFFLINE: Final = "offline_access"
"""Asked for out of habit; whether a client gets refresh tokens is in its registration."""


class _Payload(OAuth2Payload):  # type: ignore[misc]
    def __init__(self, lists: Mapping[str, list[str]]) -> None:
        self._lists = lists
        self._data = {name: values[0] for name, values in lists.items()}

    @property
    def data(self) -> Mapping[str, str]:
        return self._data

    @property
    def datalist(self) -> Mapping[str, list[str]]:
        return self._lists


class AuthRequest(OAuth2Request):  # type: ignore[misc]
    """Parameters by name, each once but for `resource`; headers for client authentication."""

    def __init__(
        self, pairs: Iterable[tuple[str, str]], headers: Mapping[str, str], method: str = "POST"
    ) -> None:
        """Check the parameters. Raises Problem `invalid` that names the faulty one.

        What has no value counts as left out (RFC 6749, section 3.1).
        """
        # The transport is not this layer's: Authlib would refuse http, also on a loopback address.
        super().__init__(method, "https://transport.invalid/", headers=headers)
        lists: dict[str, list[str]] = {}
        for name, value in pairs:
            if value and name in KNOWN:
                lists.setdefault(name, []).append(_check(name, value))
        for name, values in lists.items():
            if len(values) > 1 and name not in _REPEATABLE:
                raise Problem("invalid", f"{name}: stands more than once")
        if "scope" in lists:
            lists["scope"] = [_without_habits(lists["scope"][0])]
        self.payload: Any = _Payload(lists)

    @property
    def args(self) -> Mapping[str, str]:
        """The parameters, where they stood in a query."""
        parameters: Mapping[str, str] = self.payload.data
        return parameters

    @property
    def form(self) -> Mapping[str, str]:
        """The parameters, where they stood in a form."""
        parameters: Mapping[str, str] = self.payload.data
        return parameters

    @property
    def resources(self) -> list[str]:
        """What the token is to be for (RFC 8707, section 2)."""
        named: list[str] = self.payload.datalist.get("resource", [])
        return named


def pairs_of(form: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the members of a decoded form one by one."""
    return [
        (name, each)
        for name, value in form.items()
        for each in (value if isinstance(value, list) else [value])
    ]


def _check(name: str, value: str) -> str:
    is_printable = _PRINTABLE.fullmatch(value) is not None
    if not is_printable or (name not in _FREE and _QUOTABLE.fullmatch(value) is None):
        raise Problem("invalid", f"{name}: must be printable ASCII, without quotation marks")
    if len(value) > _LONGER.get(name, VALUE_LONGEST):
        raise Problem("invalid", f"{name}: is too long")
    return value


def _without_habits(scope: str) -> str:
    """Return what is asked for in earnest. Raises Problem where that is nothing."""
    names = [name for name in scope.split() if name != _OFFLINE]
    if not names:  # else it would count as left out, which asks for all there is
        raise Problem("invalid", "scope: names nothing that can be granted", oauth="invalid_scope")
    return " ".join(names)
