"""A request: who sends it, the id that follows it, and what its answer has to carry."""

import itertools
import logging
import re
import secrets
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

from aiohttp import web
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDictProxy, istr

from edge_api.auth.actor import Actor
from edge_api.auth.client_address import client_address
from edge_api.db.problems import Problem
from edge_api.health import Health
from edge_api.operation.service import Service
from edge_api.schema.paths import Audience
from edge_api.schema.site_policy import Headers


class Request(BaseRequest):
    """aiohttp's request; attributes take the place of its mapping, which costs more."""

    request_id = ""
    """The id that the answer repeats."""
    is_last = False
    """Whether the connection is to end with the answer, since the service is about to."""
    ends_with_client = False
    """Whether what answers it stops when its client goes away."""
    always: Headers = ()
    """Headers that the origin gives to each of its answers."""
    limits: Mapping[str, str] = MappingProxyType({})
    """The rate-limit fields of its answer."""
    extra_lines = b""
    """Those as lines, and what belongs to this answer alone."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """Leave the software unnamed where aiohttp itself writes the head."""
        response.headers.popall("Server", None)


ID_HEADER = istr("X-Request-ID")
_ACCEPTED = re.compile(r"[A-Za-z0-9-]{8,64}")
_PROCESS = secrets.token_hex(4)
"""Tells the ids of this process from those of any other."""
_numbers = itertools.count(secrets.randbits(16))
_current: ContextVar[str] = ContextVar("request_id", default="-")


def mark(request: Request) -> None:
    """Give the request the id that it brought, if that is well formed, or a new one."""
    request_id = request.headers.get(ID_HEADER)
    if request_id is None or _ACCEPTED.fullmatch(request_id) is None:
        request_id = f"{_PROCESS}{next(_numbers):08x}"
    request.request_id = request_id
    _current.set(request_id)


class RequestIdFilter(logging.Filter):
    """Puts the id of the current request into each log record, as `request_id`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id; keep every record."""
        record.request_id = _current.get()
        return True


API_KEY_HEADER: Final = istr("X-API-Key")
_AUTHORIZATION: Final = istr("Authorization")
_BEARER: Final = "bearer"
_NONE: Final[tuple[str, ...]] = ()


class Callers:
    """Finds who calls, and from which address, seen through trusted proxies only."""

    def __init__(self, service: Service) -> None:
        self._trusted = service.settings.trusted_proxies
        self._health = service[Health]
        self._access = service.access
        self._limiter = service.limiter

    def address_of(self, request: Request) -> str:
        """Return the address that stands for the client; note forwarding by a stranger."""
        caller = client_address(request.remote or "", request.headers, self._trusted)
        if caller.untrusted_forwarding:
            self._health.untrusted_forwarding = True
        return caller.key

    async def identify(self, request: Request, audience: Audience = "rest") -> tuple[str, Actor]:
        """Return the credential that was sent and its holder.

        A failure is counted for its address. Raises Problem.
        """
        try:
            secret = secret_of(request.headers)
            if secret is None:
                raise self._access.no_credential(audience)
            return secret, await self._access.actor_for(secret, audience)
        except Problem as problem:
            if problem.code == "unauthenticated":
                await self._limiter.hit("failed_auth", self.address_of(request))
            raise


def secret_of(headers: CIMultiDictProxy[str]) -> str | None:
    """Return the credential that was sent, or `None`.

    `X-API-Key` or `Authorization: Bearer` (RFC 6750, section 2.1); other schemes are ignored.
    Raises Problem `invalid` for two that differ.
    """
    keys = headers.getall(API_KEY_HEADER, _NONE)
    authorizations = headers.getall(_AUTHORIZATION, _NONE)
    if len(keys) == 1 and not authorizations:  # as most requests have it
        return keys[0].strip()
    tokens = [token for value in authorizations for token in _token(value)]
    if not keys and not tokens:
        return None
    first, *others = (*(key.strip() for key in keys), *tokens)
    if any(other != first for other in others):
        raise Problem("invalid", "Two different credentials were sent: send one")
    return first


def _token(value: str) -> list[str]:
    scheme, _, token = value.strip().partition(" ")
    return [token.strip()] if scheme.lower() == _BEARER else []


class Fields(Mapping[str, str]):
    """Header fields by name, whatever its case; one on several lines is one list."""

    def __init__(self, headers: CIMultiDictProxy[str]) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        value = whole_list(self._headers, name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)


def whole_list(headers: CIMultiDictProxy[str], name: str) -> str | None:
    """Return every member of a list field on one line (RFC 9110, section 5.3); `None` if absent."""
    first = headers.get(name)
    if first is None:
        return None
    lines = headers.getall(name)
    return first if len(lines) == 1 else ", ".join(lines)
