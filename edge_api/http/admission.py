"""Admission of a request: address, credential, rate limit, scope."""

from dataclasses import dataclass
from typing import Final

from multidict import CIMultiDictProxy, istr

from edge_api.auth.actor import Actor
from edge_api.auth.client_address import client_address
from edge_api.auth.rate_limits import AUTHENTICATED, Quota
from edge_api.db.problems import Problem
from edge_api.health import Health
from edge_api.http.response import HeaderFields, Request, move_limit_headers
from edge_api.operation.model import AnyOperation, Service, authorise

API_KEY_HEADER: Final = istr("X-API-Key")
_AUTHORIZATION: Final = istr("Authorization")
_NO_VALUES: Final[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class Admitted:
    """The sender of a request that passed admission."""

    actor: Actor | None = None
    """The holder of the credential; `None` if none was sent and none is required."""
    secret: str = ""
    """The credential that was sent."""
    address: str = ""
    """The client's address as rate limits count it; empty where nothing is counted by it."""


UNAUTHENTICATED: Final = Admitted()


class Admission:
    """Checks the sender of each request to an operation."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._trusted = service.settings.trusted_proxies
        self._health = service[Health]

    async def admit(self, operation: AnyOperation, request: Request) -> Admitted:
        """Count the request and return its sender. Raises Problem.

        A request with a credential counts against the limit of its holder, and without one against
        that of the operation, by the client's address; an invalid one counts against `failed_auth`.
        """
        if operation.check_sender is not None:
            operation.check_sender(
                self._service, HeaderFields(request.headers), request.remote or ""
            )
        secret = None if operation.credential == "none" else read_credential(request.headers)
        if secret is None and operation.credential != "required":
            return await self._admit_anonymous(operation, request)
        actor = await self._identify(operation, request, secret)
        self.count(request, actor)
        authorise(operation, self._service.authenticator, actor, operation.audience)
        return Admitted(actor, secret or "")

    async def _admit_anonymous(self, operation: AnyOperation, request: Request) -> Admitted:
        if not operation.limit and not operation.limits_by_address:
            return UNAUTHENTICATED
        address = self._address_of(request)
        if operation.limit:
            _set_limit_headers(request, await self._service.limiter.hit(operation.limit, address))
        return Admitted(address=address)

    async def _identify(
        self, operation: AnyOperation, request: Request, secret: str | None
    ) -> Actor:
        authenticator = self._service.authenticator
        try:
            if secret is None:
                raise authenticator.missing_credential(operation.audience)
            return await authenticator.authenticate(secret, operation.audience)
        except Problem as problem:
            if problem.code == "unauthenticated":
                await self._service.limiter.hit("failed_auth", self._address_of(request))
            raise

    def count(self, request: Request, actor: Actor) -> None:
        """Count a request, or another message of its batch. Raises Problem `too_many_requests`."""
        _set_limit_headers(request, self._service.limiter.count(AUTHENTICATED, actor.limit_key))

    async def is_still_valid(self, operation: AnyOperation, secret: str) -> bool:
        """Return whether a credential is still valid for an operation whose answer is a stream."""
        try:
            actor = await self._service.authenticator.authenticate(secret, operation.audience)
        except Problem:
            return False
        return operation.scope is None or operation.scope in actor.scopes

    def _address_of(self, request: Request) -> str:
        caller = client_address(request.remote or "", request.headers, self._trusted)
        if caller.untrusted_forwarding:
            self._health.untrusted_forwarding = True
        return caller.key


def _set_limit_headers(request: Request, quota: Quota | None) -> None:
    if quota is not None:
        move_limit_headers(request, quota.headers)


def read_credential(headers: CIMultiDictProxy[str]) -> str | None:
    """Return the credential that was sent, or `None` (RFC 6750, section 2.1).

    Raises Problem `invalid` for two that differ; other schemes than Bearer are ignored.
    """
    keys = headers.getall(API_KEY_HEADER, _NO_VALUES)
    authorizations = headers.getall(_AUTHORIZATION, _NO_VALUES)
    if len(keys) == 1 and not authorizations:  # the usual case, answered without parsing
        return keys[0].strip()
    parts = [value.strip().partition(" ") for value in authorizations]
    tokens = [token.strip() for scheme, _, token in parts if scheme.lower() == "bearer"]
    if not keys and not tokens:
        return None
    first, *others = (*(key.strip() for key in keys), *tokens)
    if any(other != first for other in others):
        raise Problem("invalid", "Two different credentials were sent: send one")
    return first
