"""The dispatcher of webhooks: posts events to endpoints, so that no endpoint delays another.

The operator chooses the addresses of endpoints, which must be public.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from ssl import SSLContext
from typing import Final
from urllib.parse import SplitResult, urlsplit

import aiohttp
from yarl import URL

from edge_api import outbox
from edge_api.auth.actor import SERVICE, Clock, audit_entry
from edge_api.auth.tokens import SecretBox
from edge_api.db.internal_tables import MAX_URL_LENGTH, WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    Delete,
    Filter,
    InsertFromRead,
    Order,
    Query,
    Read,
    RowCount,
    Store,
    Update,
    find_row,
    read_all,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant
from edge_api.net.signatures import sign
from edge_api.net.ssrf_guard import (
    AddressPolicy,
    BlockedAddress,
    SsrfGuard,
    is_public,
    parse_ip_literal,
)
from edge_api.settings import Settings
from edge_api.webhooks.endpoints import (
    ENABLED,
    LEAD_CREATED,
    READ_ENABLED,
    lead_deliveries,
    secrets_of,
)


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of one attempt."""

    status: int | None
    """The HTTP status; `None` without a response."""
    message: str
    """The outcome, without any content of request or response, so that it may be logged."""
    retry_after: str = ""
    """The header `Retry-After` as received (RFC 9110, section 10.2.3)."""

    @property
    def is_delivered(self) -> bool:
        """Return whether the event has arrived."""
        return self.status is not None and HTTPStatus(200) <= self.status < HTTPStatus(300)


LEASE: Final = timedelta(seconds=60)  # an attempt may take a quarter of it
MAX_CONCURRENT: Final = 8  # deliveries to one endpoint in progress at once
RETRY_DELAYS: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    *(timedelta(hours=hours) for hours in (2, 5, 10, 14, 20, 24)),
)
"""The delay after each failure in a row; after one more failure the delivery is given up."""
MAX_RETRY_DELAY: Final = timedelta(hours=24)  # for a longer `Retry-After` as well

_log: Final = logging.getLogger(__name__)


class WebhookDispatcher(outbox.OutboxDispatcher):
    """Posts events to the endpoints of one store; `box` decrypts their secrets."""

    def __init__(self, store: Store, clock: Clock, box: SecretBox, sender: "WebhookSender") -> None:
        super().__init__(store, clock)
        self._box = box
        self._sender = sender
        self._leases = outbox.Leases(store, clock, WEBHOOK_DELIVERIES, LEASE)
        self._busy: set[str] = set()  # the ids of the endpoints that have a task

    def outbox_entries(self, lead: Row) -> tuple[Query, ...]:
        """Return the query that queues a new lead's delivery to every endpoint."""
        if lead["status"] == "spam":
            return ()
        return (InsertFromRead(READ_ENABLED, partial(lead_deliveries, lead, self._clock())),)

    async def run_once(self) -> None:
        """Post all due deliveries; return when each has been tried. Raises Problem."""
        await asyncio.gather(*await self._start_all())

    async def _dispatch_due(self) -> bool:
        failure = "webhooks: the queue cannot be read; trying again"
        with outbox.log_errors(_log, "webhooks wait", failure):
            await self._start_all()
        return False

    async def _start_all(self) -> list[asyncio.Task[None]]:
        """Start a task for each endpoint that has none; return the new ones."""
        ids = [row["id"] for row in await read_all(self._store, READ_ENABLED)]
        new = [each for each in ids if each not in self._busy]
        self._busy.update(new)
        return [self._start_task(self._drain(each)) for each in new]

    async def _drain(self, endpoint_id: str) -> None:
        """Post to an endpoint until no delivery is due.

        If this is interrupted, deliveries that it has claimed are due again after their lease.
        """
        message = f"webhooks: {endpoint_id} waits"
        failure = f"webhooks: posting to {endpoint_id} was interrupted; trying again"
        try:
            with outbox.log_errors(_log, message, failure):
                while not self._stopping.is_set() and await self._post_batch(endpoint_id):
                    pass
        finally:
            self._busy.discard(endpoint_id)

    async def _post_batch(self, endpoint_id: str) -> bool:
        """Post deliveries claimed for an endpoint; return whether there may be more."""
        now = self._clock()
        where = (*outbox.where_due(now), Filter("endpoint_id", "eq", endpoint_id))
        due = Read(WEBHOOK_DELIVERIES, ("id",), where, (Order("due_at"),), MAX_CONCURRENT)
        claimed = await self._leases.claim(await read_all(self._store, due), now)
        rows = await self._drop_orphaned(claimed) if claimed else []
        # The endpoint is read again, as it may have changed.
        endpoint = await find_row(self._store, WEBHOOK_ENDPOINTS, endpoint_id)
        if endpoint is None or endpoint["disabled_at"]:
            return False
        if self._stopping.is_set():
            await self._leases.release(rows)
            return False
        await asyncio.gather(*(self._attempt(endpoint, row) for row in rows))
        return bool(claimed)

    async def _drop_orphaned(self, deliveries: Sequence[Row]) -> list[Row]:
        """Drop the deliveries of leads that an administrator has deleted; return the others."""
        leads = {row["subject_id"] for row in deliveries if row["event"] == LEAD_CREATED}
        where = (Filter("id", "in", tuple(leads)),)
        gone = leads - {
            row["id"] for row in await read_all(self._store, Read(LEADS, ("id",), where))
        }
        orphaned = [row for row in deliveries if row["subject_id"] in gone]
        if orphaned:
            await self._store.run(
                *(Delete(WEBHOOK_DELIVERIES, outbox.where_leased(row)) for row in orphaned)
            )
        return [row for row in deliveries if row["subject_id"] not in gone]

    async def _attempt(self, endpoint: Row, delivery: Row) -> None:
        """Post one event once, and store the result. Raises nothing."""
        number = delivery["attempts"] + 1
        what = f"webhook {delivery['id']} to endpoint {endpoint['id']}, attempt {number}"
        try:
            result = await self._post(endpoint, delivery)
            if not result.is_delivered:
                _log.warning("%s: %s", what, result.message)
            queries = self._result_queries(delivery, result)
        except Exception:  # noqa: BLE001  whatever it was, it counts as a failure
            _log.exception("%s", what)
            result = DeliveryResult(None, "the attempt failed: see the log of the service")
            queries = self._result_queries(delivery, result)
        with outbox.log_errors(_log, what, what):
            await outbox.run_unless_conflict(self._store, *queries)  # a conflict: the lease is lost

    async def _post(self, endpoint: Row, delivery: Row) -> DeliveryResult:
        now, body = self._clock(), delivery["body"].encode()
        try:
            secrets = secrets_of(endpoint, self._box, now)
        except Problem as problem:
            return DeliveryResult(None, problem.message)
        return await self._sender.post(
            endpoint["url"], body, sign(secrets, delivery["id"], now, body)
        )

    def _result_queries(self, delivery: Row, result: DeliveryResult) -> tuple[Query, ...]:
        """Return the queries that store a result, which conflict where the lease is lost."""
        now = self._clock()
        if result.is_delivered:
            return (Delete(WEBHOOK_DELIVERIES, outbox.where_leased(delivery)),)
        if result.status == HTTPStatus.GONE:  # the endpoint wants no more events
            return self._disable(delivery, now)
        retry_at = next_attempt(delivery["attempts"], result.retry_after, now)
        values = {
            **outbox.failed_values(WEBHOOK_DELIVERIES, delivery, retry_at, now),
            "last_answer": result.message,
            "due_at": format_instant(retry_at or now),
        }
        return (Update(WEBHOOK_DELIVERIES, values, outbox.where_leased(delivery)),)

    def _disable(self, delivery: Row, now: datetime) -> tuple[Query, ...]:
        """Return the queries that disable an endpoint, and give up its deliveries.

        They conflict if the delivery's lease is lost: an operator may have enabled the endpoint
        since.
        """
        endpoint_id = delivery["endpoint_id"]
        values = {"disabled_at": format_instant(now), "disabled_for": "it answered 410 Gone"}
        where = (*where_id(endpoint_id), ENABLED)
        given_up = {
            **outbox.dead_values(WEBHOOK_DELIVERIES, now),
            "last_answer": "the endpoint is disabled",
        }
        waiting = (Filter("endpoint_id", "eq", endpoint_id), outbox.WAITING)
        return (
            self._leases.update(delivery, {"attempts": delivery["attempts"] + 1}),
            Update(WEBHOOK_ENDPOINTS, values, where, at_least=1),
            Update(WEBHOOK_DELIVERIES, given_up, waiting),
            audit_entry(SERVICE, "disable", WEBHOOK_ENDPOINTS, RowCount(1), now, "id"),
        )


def next_attempt(attempts: int, retry_after: str, now: datetime) -> datetime | None:
    """Return the time of the next attempt after one that followed `attempts` failures, if any.

    The header `retry_after` (RFC 9110, section 10.2.3) makes the pause longer, never shorter.
    """
    if attempts >= len(RETRY_DELAYS):
        return None
    asked = min(_read_retry_after(retry_after, now), MAX_RETRY_DELAY)
    return now + outbox.with_jitter(max(RETRY_DELAYS[attempts], asked))


def _read_retry_after(text: str, now: datetime) -> timedelta:
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:9]), MAX_RETRY_DELAY.total_seconds()))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError, IndexError):  # the last two by some Pythons
        return timedelta()
    return (until if until.tzinfo else until.replace(tzinfo=UTC)) - now


POST_TIMEOUT_SECONDS: Final = 15.0

_NOT_PUBLIC: Final = "its address is not public"


class WebhookSender:
    """Posts to addresses that `allowed` accepts over https, and `allowed_over_http` over http."""

    def __init__(
        self,
        allowed: AddressPolicy = is_public,
        allowed_over_http: AddressPolicy = lambda _address: False,
        ssl: SSLContext | None = None,
    ) -> None:
        """Use the certificates of `ssl`; by default those that the system trusts."""
        self._guards = {"https": SsrfGuard(allowed, ssl), "http": SsrfGuard(allowed_over_http, ssl)}

    async def check(self, url: str) -> None:
        """Raise Problem `invalid` if `url` must not be posted to, with the reason."""
        parts = _parse_url(url)
        try:
            await self._guard(parts).resolve(parts.hostname or "", parts.port or 0)
        except BlockedAddress:
            raise _invalid(
                _NOT_PUBLIC
                if parts.scheme == "https"
                else "must be https: http is for this machine alone, where SITE_URL is on it too"
            ) from None
        except UnicodeError:
            raise _invalid("names a host that cannot be one") from None
        except OSError:  # the host name does not exist, or not yet
            return

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> DeliveryResult:
        """Send the body once and return the result; redirects are not followed."""
        return await self.send("POST", url, body, {"Content-Type": "application/json", **headers})

    async def send(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> DeliveryResult:
        """Send a request once and return the result; redirects are not followed."""
        sent = {"User-Agent": "Fore-edge (webhooks)", **headers}
        try:
            async with asyncio.timeout(POST_TIMEOUT_SECONDS):
                guard = self._guard(_parse_url(url))
                async with guard.request(method, URL(url, encoded=True), sent, body) as answer:
                    again = answer.headers.get("Retry-After", "")
                    return DeliveryResult(answer.status, f"answered {answer.status}", again)
        except BlockedAddress:
            return DeliveryResult(None, _NOT_PUBLIC)
        except Problem as problem:
            return DeliveryResult(None, problem.message)
        except TimeoutError:
            return DeliveryResult(None, f"no answer within {POST_TIMEOUT_SECONDS:.0f} s")
        except (aiohttp.ClientError, OSError, ValueError):
            return DeliveryResult(None, "its server cannot be reached")

    def _guard(self, parts: SplitResult) -> SsrfGuard:
        """Return the guard for a URL. Raises BlockedAddress where its host is not allowed."""
        host, guard = parts.hostname or "", self._guards[parts.scheme]
        guard.check_literal(host)
        # Without TLS nothing proves which machine answers for a name, but for `localhost`.
        if parts.scheme == "http" and host != "localhost" and parse_ip_literal(host) is None:
            raise BlockedAddress
        return guard


def make_sender(settings: Settings) -> WebhookSender:
    """Return the sender of webhooks; on a loopback site it may post to this machine too."""
    if not settings.is_loopback:
        return WebhookSender()
    return WebhookSender(
        lambda each: is_public(each) or each.is_loopback, lambda each: each.is_loopback
    )


def _parse_url(url: str) -> SplitResult:
    """Return the parts of a URL. Raises Problem `invalid`."""
    if len(url) > MAX_URL_LENGTH:
        raise _invalid(f"is longer than {MAX_URL_LENGTH} characters")
    # Other characters that look like a digit or a slash may be normalized to one.
    if re.fullmatch(r"(?i)https?://[!-~]+", url) is None:
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
