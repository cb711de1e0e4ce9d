"""Access requests: their input in two formats, the operator's decision, and the claim.

The second format is that of the first version of auth.md: the type is `anonymous`, and
`requested_credential_type` names the credential. After the approval, the sender's claim token
fetches the credential, which is derived from the token and the secret key, and not stored.
"""

import asyncio
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from edge_api.auth.actor import ANYONE, OPERATOR, Actor, Clock, audit_entry, audited, new_id
from edge_api.auth.keys import (
    IssuedKey,
    KeyType,
    NewKey,
    confirm_scopes,
    make_credential,
    read_end,
)
from edge_api.auth.rate_limits import Limiter, Quota
from edge_api.auth.secrets import derive, hash_secret, mint
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Filter,
    Insert,
    Read,
    RowCount,
    Store,
    Update,
    Where,
    count_rows,
    read_all,
    read_first,
    require_row,
)
from edge_api.db.table import Row
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.db.visitor_columns import SentAccessRequest
from edge_api.mail.queue import Outbox
from edge_api.operation.input import HONEYPOT, SentColumns, check_form
from edge_api.outbox import run_unless_conflict
from edge_api.schema.credentials import HARMLESS_SCOPES, SCOPES, Scope
from edge_api.schema.sentences import sentence

RequestedType = Literal["api_key", "access_token", "both"]
ANONYMOUS: Final = "anonymous"
UNNAMED_AGENT: Final = "An agent that gave no name"
UNSTATED_PURPOSE: Final = "Nothing was said about the purpose."


class _SentType(SentColumns):
    """The type of a request, in both formats."""

    type: Literal["api_key", "access_token", "both", "anonymous"]
    requested_credential_type: RequestedType = Field(
        default="api_key", description="For the REST API, for MCP, or one credential for each."
    )


class AccessRequestInput(SentAccessRequest, _SentType):
    """A request for a credential."""

    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(SCOPES))] | None = Field(
        default=None,
        description="What is asked for. Whoever decides chooses; the default is posts:read.",
    )
    filled_honeypot: Annotated[bool, BeforeValidator(bool)] = Field(default=False, alias=HONEYPOT)

    @model_validator(mode="before")
    @classmethod
    def _add_defaults(cls, given: Any) -> Any:
        """Add the members that anonymous agents do not send."""
        if isinstance(given, Mapping) and given.get("type") == ANONYMOUS:
            return {"name": UNNAMED_AGENT, "purpose": UNSTATED_PURPOSE, **given}
        return given

    @property
    def credential_types(self) -> tuple[KeyType, ...]:
        """The types of the requested credentials; `both` stands for two."""
        requested = self.requested_credential_type if self.type == ANONYMOUS else self.type
        return ("api_key", "access_token") if requested == "both" else (requested,)

    @property
    def requested_scopes(self) -> tuple[Scope, ...]:
        """The requested scopes, or the default ones; with an access token always `mcp` too."""
        defaults = default_scopes(self.credential_types)
        scopes = {*(self.scopes or defaults), *defaults[1:]}
        return tuple(scope for scope in SCOPES if scope in scopes)


def read_access_form(fields: Mapping[str, str]) -> AccessRequestInput:
    """Return the input of a posted form; empty fields count as missing. Raises FormErrors."""
    return check_form(
        AccessRequestInput, {name: text for name, text in fields.items() if name != "scopes"}
    )


def request_schema() -> dict[str, Any]:
    """Return the JSON Schema of a request, in either format."""
    declared = AccessRequestInput.model_json_schema()["properties"]
    members = {name: declared[name] for name in ("name", "purpose", "email", "scopes")}
    credential = {
        name: declared["requested_credential_type"][name] for name in ("enum", "description")
    }
    return {
        "anyOf": [
            {
                "title": "In plain words",
                "type": "object",
                "required": ["type", "name", "purpose"],
                "properties": {"type": credential, **members},
            },
            {
                "title": "In the words of auth.md",
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {"const": ANONYMOUS},
                    "requested_credential_type": credential,
                    **members,
                },
            },
        ]
    }


class AccessDecisions:
    """Lists requests and decides on them; `outbox` mails the decisions to the senders."""

    def __init__(
        self, store: Store, clock: Clock, outbox: Outbox | None = None, actor: Actor = OPERATOR
    ) -> None:
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._actor = actor

    async def all(self) -> list[Row]:
        """Return every request that has not expired, the newest first."""
        where = not_expired(format_instant(self._clock()))
        return await read_all(self._store, Read(ACCESS_REQUESTS, where=where, order=NEWEST))

    async def approve(
        self, request_id: str, scopes: tuple[str, ...] = (), end: str | None = ""
    ) -> Row:
        """Approve a request: its claim token then fetches the credential. Return the changed row.

        The credential gets `scopes`, or else `default_scopes`, whatever was requested. It expires
        at the instant `end`; an empty text means `CREDENTIAL_LIFETIME` from now, `None` never.
        Raises Problem `not_found`, `invalid` for invalid scopes or an invalid end, and `conflict`
        if the request is decided already.
        """
        row, now = await self._find(request_id), self._clock()
        kinds = credential_types(row)
        granted, end = confirm_scopes(scopes) or default_scopes(kinds), read_end(end, now)
        if end is None and kinds == ("access_token",):
            raise Problem("invalid", "expires: an access token always ends: choose a day")
        for kind in kinds:  # validates scopes and end
            make_credential(NewKey(row["name"], kind, granted, None, end), now)
        values = {
            "status": "approved",
            "scopes": " ".join(granted),
            "credential_expires_at": end or NO_END,
            # An expired credential cannot be claimed.
            "expires_at": min(row["expires_at"], end or NO_END),
        }
        return await self._decide(row, "approve", values)

    async def deny(self, request_id: str) -> Row:
        """Deny a pending request, or an approved one before its claim; return the changed row.

        Raises Problem `not_found`, and `conflict` if the request is denied or claimed already.
        """
        row = await self._find(request_id)
        return await self._decide(row, "deny", {"status": "denied"})

    async def _decide(self, row: Row, verb: str, values: Row) -> Row:
        now = self._clock()
        open_states = ("pending",) if verb == "approve" else ("pending", "approved")
        values = {**values, "decided_at": format_instant(now)}
        where = (Filter("id", "eq", row["id"]), Filter("status", "in", open_states))
        update = Update(ACCESS_REQUESTS, values, where, at_least=1)
        change = audited(self._actor, verb, update, now, ("id",))
        mail = self._outbox.decision_entries(row) if self._outbox else ()
        if not await run_unless_conflict(self._store, *change, *mail):
            status = (await self._find(row["id"]))["status"]
            raise Problem("conflict", f"The request {row['id']} is {status} already")
        return {**row, **values}

    async def _find(self, request_id: str) -> Row:
        where = not_expired(format_instant(self._clock()))
        missing = f"There is no request {request_id}, or it has expired"
        return await require_row(self._store, ACCESS_REQUESTS, request_id, missing, *where)


NO_END: Final = "9999-12-31T23:59:59.999999Z"
"""The stored expiry of an approved credential that never expires.

NULL would not do: it marks approvals by former versions, which stored no expiry.
"""
CLAIM_REPEAT_WINDOW: Final = timedelta(minutes=10)  # how long a claim can be repeated
MAX_PENDING: Final = 1000

_LIMIT_NAME: Final = "access_requests"


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A new request: its row, its claim token, and the sender's rate limit."""

    row: Row
    claim_token: str  # shown once
    quota: Quota | None  # the sender's remaining requests; `None` without a limit


class AccessRequests:
    """Stores requests, and issues the credentials of approved ones, derived from `secret`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limiter: Limiter,
        secret: bytes,
        outbox: Outbox | None = None,
    ) -> None:
        self._key = hmac.digest(secret, b"claimed credentials", "sha256")
        self._store = store
        self._clock = clock
        self._limiter = limiter
        self._outbox = outbox
        self._lock = asyncio.Lock()

    async def submit(self, request: AccessRequestInput, address: str) -> StoredRequest:
        """Store a request from a network address.

        A request with a filled-in honeypot is denied at once, but answered like any other. Raises
        Problem `too_many_requests`, and `unavailable` while too many requests are pending.
        """
        await self._limiter.hit(_LIMIT_NAME, address)
        token, now = mint("claim_token"), self._clock()
        first, *second = request.credential_types
        given = {
            "type": first,
            "second_type": second[0] if second else None,
            **request.model_dump(include={*SentAccessRequest.model_fields}),
            "scopes": " ".join(request.requested_scopes),
            "claim_digest": hash_secret(token),
            "status": "denied" if request.filled_honeypot else "pending",
            "decided_at": format_instant(now) if request.filled_honeypot else None,
            # The request must be decided and claimed before this.
            "expires_at": format_instant(now + timedelta(days=14)),
        }
        row = ACCESS_REQUESTS.new_row(given, format_instant(now), partial(new_id, now))
        verb = "trap" if request.filled_honeypot else "file"
        audit = audit_entry(ANYONE, verb, ACCESS_REQUESTS, RowCount(0), now)
        mail = self._outbox.request_entries(row) if self._outbox else ()
        try:
            async with self._lock:  # no other request is stored between the count and the insert
                if await count_pending(self._store, self._clock()) >= MAX_PENDING:
                    raise Problem(  # noqa: TRY301  the handler below refunds the limit
                        "unavailable",
                        sentence(
                            "Too many requests for access wait for a decision: "
                            "try again another day"
                        ),
                        headers={"Retry-After": "3600"},
                    )
                await self._store.run(Insert(ACCESS_REQUESTS, [row]), audit, *mail)
        except Problem:
            await self._limiter.refund(_LIMIT_NAME, address)
            raise
        if self._outbox and mail:
            self._outbox.wake()
        return StoredRequest(row, token, await self._limiter.peek(_LIMIT_NAME, address))

    async def claim(self, token: str) -> tuple[Row, tuple[IssuedKey, ...]]:
        """Return a request and, if it is approved, its credentials; none while it is pending.

        Raises Problem `not_found` for an unknown or expired token, `forbidden` for a denied
        request, and `conflict` after `CLAIM_REPEAT_WINDOW` since the first claim.
        """
        row = await self._find(token)
        if row["status"] == "pending":
            return row, ()
        if row["status"] == "approved":
            try:
                return row, await self._issue_credentials(row, token)
            except Problem as problem:  # another claim, or a denial, was faster
                if problem.code != "conflict":
                    raise
            row = await self._find(token)
        if row["status"] == "denied":
            raise Problem("forbidden", sentence("This request was denied"))
        return row, await self._reissue_credentials(row, token)

    async def _find(self, token: str) -> Row:
        now = format_instant(self._clock())
        where = (Filter("claim_digest", "eq", hash_secret(token)), *not_expired(now))
        row = await read_first(self._store, Read(ACCESS_REQUESTS, where=where))
        if row is None:
            raise Problem(
                "not_found",
                sentence(
                    "No request has this claim token, or it has expired: make another request"
                ),
            )
        return row

    async def _issue_credentials(self, row: Row, token: str) -> tuple[IssuedKey, ...]:
        """Store new credentials and the claim, in one transaction. Raises Problem `conflict`."""
        now, kinds, end = self._clock(), credential_types(row), row["credential_expires_at"]
        scopes = tuple(row["scopes"].split())
        if end is None:  # approved by a former version, with all requested scopes
            scopes, end = default_scopes(kinds), read_end("", now)
        issued = tuple(
            make_credential(
                NewKey(row["name"], kind, scopes, None, None if end == NO_END else end),
                now,
                derive(kind, self._key, token),
            )
            for kind in kinds
        )
        ids = [each.row["id"] for each in issued]
        values = {
            "status": "claimed",
            "expires_at": max(row["expires_at"], format_instant(now + CLAIM_REPEAT_WINDOW)),
            **dict(zip(("credential_id", "second_credential_id"), ids, strict=False)),
        }
        approved = Filter("status", "eq", "approved")
        where = (Filter("id", "eq", row["id"]), approved, *not_expired(format_instant(now)))
        actor = Actor(ids[0], row["name"], row["type"], frozenset())
        await self._store.run(
            Update(ACCESS_REQUESTS, values, where, at_least=1),
            Insert(CREDENTIALS, [each.row for each in issued]),
            audit_entry(actor, "claim", ACCESS_REQUESTS, RowCount(0), now, "claim_digest"),
            audit_entry(actor, "issue", CREDENTIALS, RowCount(1), now),
        )
        return issued

    async def _reissue_credentials(self, row: Row, token: str) -> tuple[IssuedKey, ...]:
        """Return the credentials of a claimed request again, since the first answer may be lost.

        Raises Problem `conflict` after `CLAIM_REPEAT_WINDOW`, and if a credential was revoked or
        SECRET_KEY has changed.
        """
        secrets = [derive(kind, self._key, token) for kind in credential_types(row)]
        where = (
            Filter("digest", "in", tuple(map(hash_secret, secrets))),
            Filter("created_at", "gt", format_instant(self._clock() - CLAIM_REPEAT_WINDOW)),
            Filter("revoked_at", "is", None),
        )
        found = {
            each["digest"]: each
            for each in await read_all(self._store, Read(CREDENTIALS, where=where))
        }
        if len(found) < len(secrets):
            raise Problem(
                "conflict",
                sentence(
                    "The credential of this request was handed out more than ten minutes ago, "
                    "or is not valid any more: file another request, and tell us if somebody "
                    "else claimed it"
                ),
            )
        return tuple(IssuedKey(secret, found[hash_secret(secret)]) for secret in secrets)


def credential_types(row: Row) -> tuple[KeyType, ...]:
    """Return the types of the credentials of a stored request."""
    return (row["type"], row["second_type"]) if row["second_type"] else (row["type"],)


def default_scopes(types: Sequence[KeyType]) -> tuple[Scope, ...]:
    """Return the scopes of credentials of these types unless the operator chooses others."""
    return HARMLESS_SCOPES if "access_token" in types else HARMLESS_SCOPES[:1]


def requested_type(row: Row) -> RequestedType:
    """Return the credential type that a stored request asks for, which may be `both`."""
    return "both" if row["second_type"] else row["type"]


def not_expired(now: str) -> Where:
    """Return the filter of requests that have not expired."""
    return (Filter("expires_at", "gt", now),)


async def count_pending(store: Store, now: datetime) -> int:
    """Return the number of requests that wait for a decision."""
    return await count_rows(
        store,
        ACCESS_REQUESTS,
        Filter("status", "eq", "pending"),
        *not_expired(format_instant(now)),
    )
