"""The webhook sender: a POST to an address of the operator's, which must be public."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from ssl import SSLContext
from typing import Final
from urllib.parse import SplitResult, urlsplit

import aiohttp
from yarl import URL

from edge_api.db.internal_tables import MAX_URL_LENGTH
from edge_api.db.problems import Problem
from edge_api.net.ssrf_guard import (
    Address,
    Allowed,
    BlockedAddress,
    SsrfGuard,
    is_public,
    parse_ip_literal,
)
from edge_api.settings import Settings

POST_TIMEOUT_SECONDS: Final = 15.0

_AGENT: Final = "Fore-edge (webhooks)"
_NOT_PUBLIC: Final = "its address is not public"
_NEEDS_HTTPS: Final = "must be https: http is for this machine alone, where SITE_URL is on it too"
_HTTP_URL: Final = re.compile(r"https?://[!-~]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of one attempt."""

    status: int | None
    """`None` without an answer."""
    message: str
    """The outcome, without a word of what was sent or answered: it may be logged."""
    retry_after: str = ""
    """The header as received (RFC 9110, section 10.2.3)."""

    @property
    def is_delivered(self) -> bool:
        """Return whether the event has arrived."""
        return self.status is not None and HTTPStatus(200) <= self.status < HTTPStatus(300)

    @property
    def is_gone(self) -> bool:
        """Return whether the address wants no event any more."""
        return self.status == HTTPStatus.GONE


def is_own_machine(address: Address) -> bool:
    """Return whether an address is a loopback address."""
    return address.is_loopback


class WebhookSender:
    """Posts over https to addresses that are `allowed`, and over http to those `allowed_http`."""

    def __init__(
        self,
        allowed: Allowed = is_public,
        allowed_http: Allowed = lambda _address: False,
        ssl: SSLContext | None = None,
    ) -> None:
        """Use the certificates of `ssl`; by default those that the system trusts."""
        self._guards = {"https": SsrfGuard(allowed, ssl), "http": SsrfGuard(allowed_http, ssl)}

    async def check(self, url: str) -> None:
        """Raise Problem `invalid` if `url` must not be posted to, with the reason."""
        parts = _parse_url(url)
        try:
            await self._guard(parts).resolve(parts.hostname or "", parts.port or 0)
        except BlockedAddress:
            raise _invalid(_NOT_PUBLIC if parts.scheme == "https" else _NEEDS_HTTPS) from None
        except UnicodeError:
            raise _invalid("names a host that cannot be one") from None
        except OSError:  # there is no such name, or not yet
            return

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> DeliveryResult:
        """Send the body once and return the result; redirects are not followed."""
        try:
            async with asyncio.timeout(POST_TIMEOUT_SECONDS):
                return await self._post(url, body, headers)
        except BlockedAddress:
            return DeliveryResult(None, _NOT_PUBLIC)
        except Problem as problem:
            return DeliveryResult(None, problem.message)
        except TimeoutError:
            return DeliveryResult(None, f"no answer within {POST_TIMEOUT_SECONDS:.0f} s")
        except (aiohttp.ClientError, OSError, ValueError):
            return DeliveryResult(None, "its server cannot be reached")

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> DeliveryResult:
        guard = self._guard(_parse_url(url))
        sent = {"Content-Type": "application/json", "User-Agent": _AGENT, **headers}
        async with guard.request("POST", URL(url, encoded=True), sent, body) as answer:
            again = answer.headers.get("Retry-After", "")
            return DeliveryResult(answer.status, f"answered {answer.status}", again)

    def _guard(self, parts: SplitResult) -> SsrfGuard:
        """Return the guard for a URL. Raises BlockedAddress where its host is not allowed."""
        host, guard = parts.hostname or "", self._guards[parts.scheme]
        guard.check(host)
        # Without TLS a name leads wherever the network says, but for the one that is this machine.
        if parts.scheme == "http" and host != "localhost" and parse_ip_literal(host) is None:
            raise BlockedAddress
        return guard


def make_sender(settings: Settings) -> WebhookSender:
    """Return the sender of webhooks; on a loopback site it may post to this machine too."""
    if not settings.is_loopback:
        return WebhookSender()
    return WebhookSender(lambda each: is_public(each) or each.is_loopback, is_own_machine)


def _parse_url(url: str) -> SplitResult:
    """Return the parts of a URL. Raises Problem `invalid`."""
    if len(url) > MAX_URL_LENGTH:
        raise _invalid(f"is longer than {MAX_URL_LENGTH} characters")
    if _HTTP_URL.fullmatch(url) is None:  # what else looks like a digit or a slash may become one
        raise _invalid("must begin with https:// and have visible ASCII characters only")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _invalid("has an invalid host or port") from None
    if not host or re.search(r"[\\%]", parts.netloc):
        raise _invalid("has no host, or one with invalid characters")
    if parts.username is not None or parts.fragment:
        raise _invalid("must have neither a name and password nor a fragment")
    return parts


def _invalid(reason: str) -> Problem:
    return Problem("invalid", f"URL: {reason}")
