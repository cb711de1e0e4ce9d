"""Webhook events and endpoints; secrets are stored encrypted, and each change is audited."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_URL, uuid5

import orjson

from edge_api.auth.actor import OPERATOR, Actor, Clock, audit_entry, new_id
from edge_api.auth.tokens import SecretBox
from edge_api.db.internal_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    InsertFromRead,
    Order,
    Query,
    Read,
    RowCount,
    Store,
    Update,
    count_query,
    read_all,
    require_row,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.health import Check
from edge_api.leads.service import PUBLIC_MEMBERS
from edge_api.net.signatures import new_secret, sign
from edge_api.outbox import GIVEN_UP, UNCLAIMED, WAITING, requeued_values
from edge_api.schema.environment import EDGE

if TYPE_CHECKING:  # it imports aiohttp, which most commands do without
    from edge_api.webhooks.dispatcher import DeliveryResult, WebhookSender

LEAD_CREATED: Final = "lead.created"
SITE_CHANGED: Final = "site.changed"
EVENTS: Final = (LEAD_CREATED, "post.published", "post.updated", "post.removed", SITE_CHANGED)
"""The events that an endpoint can choose."""
PURGE_DELAYS: Final = (timedelta(seconds=1), timedelta(seconds=15))
"""A purge is sent twice: meanwhile another process or machine may serve the build before, and the
CDN would keep a page of that."""


def format_event(event: str, timestamp: str, data: dict[str, Any]) -> str:
    """Return the body of an event in JSON (Standard Webhooks 1.0, payload structure)."""
    return orjson.dumps({"type": event, "timestamp": timestamp, "data": data}).decode()


def lead_deliveries(lead: Row, now: datetime, endpoints: Sequence[Row]) -> Insert:
    """Return the query that stores a delivery of a new lead for each endpoint that chose them."""
    data = {name: lead[name] for name in PUBLIC_MEMBERS}
    body = format_event(LEAD_CREATED, lead["created_at"], data)
    event = {"event": LEAD_CREATED, "subject_id": lead["id"], "body": body}
    return make_deliveries([event], now, endpoints)


def make_deliveries(events: Sequence[Row], now: datetime, endpoints: Sequence[Row]) -> Insert:
    """Return the query that stores a delivery of each event for each endpoint that chose it."""
    now_text, make_id = format_instant(now), partial(new_id, now)
    rows = [
        WEBHOOK_DELIVERIES.trusted_row({**each, "endpoint_id": found["id"]}, now_text, make_id)
        for found in endpoints
        for each in events
        if each["event"] in found["events"].split()
    ]
    return Insert(WEBHOOK_DELIVERIES, rows)


KEY_PURPOSE: Final = "webhook secrets"
"""The purpose of the key that encrypts the endpoints' secrets."""

ENABLED: Final = Filter("disabled_at", "is", None)
READ_ENABLED: Final = Read(WEBHOOK_ENDPOINTS, where=(ENABLED,), order=(Order("id"),))


def queue_purge(
    now: datetime, urls: Sequence[str] = (), endpoints: Read = READ_ENABLED
) -> InsertFromRead:
    """Return the query that queues the purge of addresses of a CDN; without any, of everything."""
    instant, data = format_instant(now), {"everything": not urls, "urls": urls}
    event = {
        "event": SITE_CHANGED,
        "subject_id": str(uuid5(NAMESPACE_URL, SITE_CHANGED)),
        "body": format_event(SITE_CHANGED, instant, data),
    }
    events = [{**event, "due_at": format_instant(now + delay)} for delay in PURGE_DELAYS]
    return InsertFromRead(endpoints, partial(make_deliveries, events, now))


async def check_webhooks(store: Store) -> Check:
    """Return a check for disabled endpoints and dead deliveries."""
    faults = {
        "a webhook endpoint is disabled": Read(
            WEBHOOK_ENDPOINTS, ("id",), (Filter("disabled_at", "is", None, negated=True),), limit=1
        ),
        "events for webhooks were given up": Read(
            WEBHOOK_DELIVERIES, ("id",), (GIVEN_UP,), limit=1
        ),
    }
    try:
        results = await store.run(*faults.values())
    except Problem:
        return Check("warn", "the state of webhooks cannot be read")
    found = " and ".join(name for name, each in zip(faults, results, strict=True) if each.rows)
    return Check("warn", f"{found}: see {EDGE} webhooks list") if found else Check("pass")


def secrets_of(endpoint: Row, box: SecretBox, now: datetime) -> Sequence[str]:
    """Return the secrets that are valid now, the current one first.

    Raises Problem `unavailable` if they cannot be decrypted.
    """
    encrypted = [endpoint["secret"]]
    if (endpoint["former_until"] or "") > format_instant(now):
        encrypted.append(endpoint["former_secret"])
    try:
        return [box.decrypt(each).decode() for each in encrypted]
    except ValueError:
        raise Problem(
            "unavailable", "its secret was kept with another SECRET_KEY: rotate it"
        ) from None


SECRET_ROTATION_OVERLAP: Final = timedelta(hours=24)
"""The default time for which a replaced secret signs beside its successor."""


class Endpoints:
    """The endpoints of one store; `box` encrypts their secrets, the audit log names `actor`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        box: SecretBox,
        make_sender: Callable[[], "WebhookSender"],
        actor: Actor = OPERATOR,
    ) -> None:
        self._store = store
        self._clock = clock
        self._box = box
        self._make_sender = make_sender
        self._actor = actor

    def with_actor(self, actor: Actor) -> "Endpoints":
        """Return the same endpoints, with another actor in the audit log."""
        return Endpoints(self._store, self._clock, self._box, self._make_sender, actor)

    async def add(self, url: str, events: Sequence[str] = (LEAD_CREATED,)) -> Row:
        """Store a new endpoint; return it with its secret in clear, to be shown once.

        Raises Problem `invalid`, and `conflict` if there is an endpoint with this URL.
        """
        await self._make_sender().check(url)
        secret, now = new_secret(), self._clock()
        encrypted = self._box.encrypt(secret.encode())
        given = {"url": url, "secret": encrypted, "events": " ".join(events)}
        row = WEBHOOK_ENDPOINTS.new_row(given, format_instant(now), partial(new_id, now))
        try:
            await self._run("add", Insert(WEBHOOK_ENDPOINTS, [row]), self._purge_all(row["id"]))
        except Problem as problem:
            if problem.code != "conflict":
                raise
            raise Problem("conflict", f"There is an endpoint for {url} already") from None
        return {**row, "secret": secret}

    async def all(self) -> list[Row]:
        """Return every endpoint, oldest first, with counts of deliveries: `waiting`, `given_up`."""
        order = Order("created_at"), Order("id")
        return [
            await self._add_counts(row)
            for row in await read_all(self._store, Read(WEBHOOK_ENDPOINTS, order=order))
        ]

    async def failed(self, limit: int) -> list[Row]:
        """Return the newest deliveries whose last attempt failed, given up or to be tried again."""
        where, newest = (
            (Filter("last_answer", "is", None, negated=True),),
            Order("id", descending=True),
        )
        return await read_all(self._store, Read(WEBHOOK_DELIVERIES, (), where, (newest,), limit))

    async def remove(self, endpoint_id: str) -> None:
        """Delete an endpoint with its deliveries. Raises Problem `not_found`."""
        row = await self._find(endpoint_id)
        waiting = Delete(WEBHOOK_DELIVERIES, (Filter("endpoint_id", "eq", row["id"]),))
        await self._run("remove", Delete(WEBHOOK_ENDPOINTS, where_id(row["id"])), waiting)

    async def enable(self, endpoint_id: str) -> None:
        """Enable an endpoint for events from now on, and have its CDN forget everything.

        Raises Problem `not_found`.
        """
        row = await self._find(endpoint_id)
        values = {"disabled_at": None, "disabled_for": None}
        change = Update(WEBHOOK_ENDPOINTS, values, where_id(row["id"]))
        await self._run("enable", change, self._purge_all(row["id"]))

    async def pause(self, endpoint_id: str) -> None:
        """Disable an endpoint until it is enabled again; its waiting deliveries are kept.

        Raises Problem `not_found`.
        """
        row = await self._find(endpoint_id)
        values = {
            "disabled_at": format_instant(self._clock()),
            "disabled_for": "it was paused by hand",
        }
        await self._run("pause", Update(WEBHOOK_ENDPOINTS, values, (*where_id(row["id"]), ENABLED)))

    async def set_events(self, endpoint_id: str, events: Sequence[str]) -> None:
        """Set the events that an endpoint gets from now on. Raises Problem `not_found`."""
        row, values = await self._find(endpoint_id), {"events": " ".join(events)}
        change = Update(WEBHOOK_ENDPOINTS, values, where_id(row["id"]))
        await self._run("choose", change, self._purge_all(row["id"]))

    async def rotate(
        self,
        endpoint_id: str,
        overlap: timedelta = SECRET_ROTATION_OVERLAP,
        expected_former_until: str | None = None,
    ) -> Row:
        """Make a new secret; return the endpoint with it in clear, to be shown once.

        The old secret signs too for `overlap`. `expected_former_until` is the value of
        `former_until` that a person saw before rotating: empty for NULL, `None` for no check.
        Raises Problem `not_found`, and `conflict` if somebody has rotated the secret since.
        """
        row, secret = await self._find(endpoint_id), new_secret()
        if expected_former_until not in (None, row["former_until"] or ""):
            raise Problem("conflict", "The secret was rotated meanwhile, and shown then")
        values = {
            "secret": self._box.encrypt(secret.encode()),
            "former_secret": row["secret"] if overlap else None,
            "former_until": format_instant(self._clock() + overlap) if overlap else None,
        }
        untouched = Filter("secret", "eq", row["secret"])
        update = Update(WEBHOOK_ENDPOINTS, values, (*where_id(row["id"]), untouched), at_least=1)
        await self._run("rotate", update)
        return {**row, **values, "secret": secret}

    async def retry(self, endpoint_id: str | None = None, delivery_id: str | None = None) -> int:
        """Make dead and waiting deliveries due now, of one endpoint or of all; return their number.

        With `delivery_id`, only that delivery is retried.

        Raises Problem `not_found`, and `conflict` where the endpoint is disabled.
        """
        rows = (
            [await self._find(endpoint_id)]
            if endpoint_id
            else await read_all(self._store, READ_ENABLED)
        )
        if endpoint_id and rows[0]["disabled_at"]:
            raise Problem("conflict", f"The endpoint {endpoint_id} is disabled: enable it first")
        now = self._clock()
        one = where_id(delivery_id) if delivery_id else ()
        which = (Filter("endpoint_id", "in", tuple(row["id"] for row in rows)), *one)
        values = requeued_values(WEBHOOK_DELIVERIES, now)
        due = {"due_at": format_instant(now)}
        later = (*which, *UNCLAIMED, Filter("due_at", "gt", due["due_at"]))
        count = await self._run("retry", Update(WEBHOOK_DELIVERIES, values, (*which, GIVEN_UP)))
        return count + await self._run("retry", Update(WEBHOOK_DELIVERIES, due, later))

    async def discard(self, endpoint_id: str, delivery_id: str | None = None) -> int:
        """Delete an endpoint's dead deliveries, or one; return their number.

        Raises Problem `not_found` for an unknown endpoint.
        """
        row = await self._find(endpoint_id)
        one = where_id(delivery_id) if delivery_id else ()
        where = (Filter("endpoint_id", "eq", row["id"]), GIVEN_UP, *one)
        change = Delete(WEBHOOK_DELIVERIES, where)
        return await self._run("discard", change, self._purge_all(row["id"]))

    async def test(self, endpoint_id: str) -> "DeliveryResult":
        """Send a test event to an endpoint, disabled or not. Raises Problem `not_found`."""
        row, now = await self._find(endpoint_id), self._clock()
        body = format_event("webhook.test", format_instant(now), {}).encode()
        headers = sign(secrets_of(row, self._box, now), new_id(now), now, body)
        return await self._make_sender().post(row["url"], body, headers)

    def _purge_all(self, endpoint_id: str) -> InsertFromRead:
        """Return the query that makes up the purges that an endpoint missed, if it chose them."""
        return queue_purge(self._clock(), (), Read(WEBHOOK_ENDPOINTS, where=where_id(endpoint_id)))

    async def _run(self, verb: str, change: Insert | Update | Delete, *more: Query) -> int:
        """Run a change with its entry in the audit log; return the number of rows changed."""
        where = () if isinstance(change, Insert) else change.where
        columns, now = (condition.column for condition in where), self._clock()
        audit = audit_entry(self._actor, verb, change.table, RowCount(0), now, *columns)
        changed, *_ = await self._store.run(change, *more, audit)
        return len(changed.rows)

    async def _add_counts(self, row: Row) -> Row:
        wheres = ((Filter("endpoint_id", "eq", row["id"]), each) for each in (WAITING, GIVEN_UP))
        waiting, dead = await self._store.run(
            *(count_query(WEBHOOK_DELIVERIES, *where) for where in wheres)
        )
        return {**row, "waiting": waiting.total, "given_up": dead.total}

    async def _find(self, endpoint_id: str) -> Row:
        missing = f"There is no webhook endpoint {endpoint_id}"
        return await require_row(self._store, WEBHOOK_ENDPOINTS, endpoint_id, missing)
