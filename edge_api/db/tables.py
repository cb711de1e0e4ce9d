"""Declare the tables: those of the administrative interface, and the service's own.

To add a table, declare it here and add a step to `migrations/`, as ARCHITECTURE.md describes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field

from edge_api.db.internal_tables import (
    ACCESS_REQUESTS,
    ANNOUNCED_POSTS,
    DESK_LINKS,
    DESK_SESSIONS,
    EMAIL_OUTBOX,
    ERASED_ROWS,
    FORMER_ROWS,
    OAUTH_TABLES,
    WEBHOOK_DELIVERIES,
    WEBHOOK_ENDPOINTS,
)
from edge_api.db.newsletter_tables import MAILINGS, SUBSCRIBERS
from edge_api.db.stats_tables import DAILY_FIGURES, MAX_PATH_LENGTH, PAGE_VIEWS
from edge_api.db.table import Index, IrreversibleChange, PersonalData, Retention, RowModel, Table
from edge_api.db.types import (
    Address,
    ColumnType,
    Integer,
    Json,
    Lines,
    NewId,
    Now,
    OnUpdateNow,
    Text,
    Timestamp,
    Uuid,
)
from edge_api.db.visitor_columns import KeyedRow, SentLead

Flag = Annotated[Integer, Field(ge=0, le=1)]


class LeadMessageRow(RowModel):
    """An answer to a lead, or a reply of the lead's sender.

    The id of a sent answer is the id of its outbox entry, and the local part of its Message-ID.
    """

    id: NewId
    lead_id: Uuid
    kind: Literal["draft", "sent", "received"]
    email: Address = Field(description="The recipient of an answer, or the sender of a reply.")
    subject: Annotated[Text, Field(max_length=200)] = ""
    body: Annotated[Lines, Field(max_length=100_000)] = ""
    message_digest: Annotated[Text, Field(min_length=64, max_length=64)] | None = Field(
        default=None, description="The digest of the Message-ID of a reply."
    )
    message_id: Annotated[Text, Field(max_length=250)] | None = Field(
        default=None, description="The Message-ID of a reply, which an answer to it refers to."
    )
    is_verified: Flag = Field(default=0, description="Whether a reply passed DMARC.")
    is_automatic: Flag = Field(
        default=0, description="Whether a program sent the reply (RFC 3834)."
    )
    attachments: Json | None = Field(
        default=None, description="Names of the files that stayed in the mailbox."
    )
    audit_id: Uuid | None = Field(
        default=None, description="The audit entry of a sent answer, by which it is undone."
    )
    created_at: Now


class MailboxStateRow(RowModel):
    """The position in the mailbox of `MAILBOX_URL` up to which it has been read: one row."""

    id: Annotated[Integer, Field(ge=1, le=1)] = 1
    mailbox_digest: Text = Field(
        default="", description="A keyed digest of its address: if that changes, all is read again."
    )
    uid_validity: Integer = Field(default=0, description="UIDVALIDITY (RFC 9051, 2.3.1.1).")
    last_uid: Integer = 0
    turn_until: Timestamp | None = Field(
        default=None, description="The end of the time in which only one edge may read it."
    )
    checked_at: Timestamp | None = None
    fault: Text | None = Field(
        default=None, description="A sentence on the error of the last attempt."
    )


LEAD_MESSAGES = Table(
    "lead_messages",
    LeadMessageRow,
    indexes=(
        Index("lead_messages_lead", ("lead_id", "created_at")),
        Index("lead_messages_kind", ("kind", "-created_at", "-id")),
        Index("lead_messages_digest", ("message_digest",), unique=True),
    ),
    personal=PersonalData(
        ("lead_id", "email"),
        through=("leads",),
        withheld_columns=frozenset({"message_digest", "audit_id"}),
        mailed_column="email",
    ),
    retention=Retention(cascade_from=("lead_id", "leads")),
    on_restore="saved",
)
MAILBOX_STATE = Table("mailbox_state", MailboxStateRow, personal=None)


Origin = Literal["search", "ai_assistant", "social", "other_site", "own_page", "none"]


class LeadRow(SentLead, KeyedRow):
    """An enquiry that somebody sent."""

    created_at: Now
    updated_at: OnUpdateNow
    status: Literal["new", "contacted", "qualified", "won", "lost", "spam"] = "new"
    notes: Text | None = None
    source: Literal["api", "form", "mcp", "admin"] = "api"
    spam_score: Integer = 0
    spam_reasons: Json | None = None
    consent_at: Timestamp | None = None
    consent_text: Text | None = None
    dedupe_hash: Text | None = Field(
        default=None, description="Digest of address and message, to recognize a repeated enquiry."
    )
    other_part: Uuid | None = Field(
        default=None, description="The lead that has the other part of a long message."
    )
    remind_at: Timestamp | None = Field(
        default=None, description="The time from which it is shown again as if it were new."
    )
    origin: Origin | None = Field(
        default=None, description="Where a visitor came to the contact page from; absent: unknown."
    )
    origin_page: Annotated[Text, Field(max_length=MAX_PATH_LENGTH)] | None = Field(
        default=None, description="The page of this site where they followed the link to it."
    )


class EmailSendLogRow(RowModel):
    """One transition of one message; the service only appends."""

    id: NewId
    message_id: Text | None = None
    template_name: Annotated[Text, Field(min_length=1, max_length=200)]
    recipient_email: Address
    status: Literal[
        "pending",
        "sent",
        "suppressed",
        "failed",
        "bounced",
        "complained",
        "dlq",
        "rate_limited",
        "soft_bounced",
    ]
    error_message: Annotated[Text, Field(max_length=1000)] | None = None
    metadata: Json | None = None
    created_at: Now


class EmailSendStateRow(RowModel):
    """State and settings of the mail dispatcher."""

    id: Annotated[Integer, Field(ge=1, le=1)] = 1
    retry_after_until: Timestamp | None = None
    batch_size: Annotated[Integer, Field(ge=1, le=1000)] = 10
    send_delay_ms: Annotated[Integer, Field(ge=0, le=60_000)] = 200
    auth_email_ttl_minutes: Annotated[Integer, Field(ge=1, le=10_080)] = 15
    transactional_email_ttl_minutes: Annotated[Integer, Field(ge=1, le=10_080)] = 60
    updated_at: OnUpdateNow


class EmailUnsubscribeTokenRow(RowModel):
    """The secret in an unsubscribe link, one for each address."""

    id: NewId
    token: Annotated[Text, Field(min_length=32, max_length=128)]
    email: Address
    created_at: Now
    used_at: Timestamp | None = None


class SuppressedEmailRow(RowModel):
    """An address that must not be mailed."""

    id: NewId
    email: Address
    reason: Literal["unsubscribe", "bounce", "complaint"]
    metadata: Json | None = None
    created_at: Now


class CredentialRow(RowModel):
    """An API key or a hand-issued access token; its secret is not here, only the digest."""

    id: NewId
    name: Annotated[Text, Field(min_length=1, max_length=100)]
    type: Literal["api_key", "access_token"]
    digest: Annotated[Text, Field(min_length=64, max_length=64)]
    last_four: Annotated[Text, Field(min_length=4, max_length=4)]
    scopes: Text = Field(description="Scope names, separated by spaces.")
    tables: Text | None = Field(
        default=None, description="The administrative tables it may touch; absent is all of them."
    )
    created_at: Now
    expires_at: Timestamp | None = None
    revoked_at: Timestamp | None = None
    rotated_at: Timestamp | None = None
    former_expires_at: Timestamp | None = Field(
        default=None, description="The expiry before the rotation, which an undo restores."
    )
    last_used_at: Timestamp | None = None
    needs_review: Annotated[Integer, Field(ge=0, le=1)] = Field(
        default=1,  # a former version that still runs after an upgrade issues keys without it
        description="1 if its expiry is to be reviewed: a request before 1.0.1 asked for it.",
    )


class IdempotencyRow(RowModel):
    """The answer to a request that carried an Idempotency-Key, to be given again."""

    id: Annotated[Text, Field(min_length=64, max_length=64)]
    request_digest: Annotated[Text, Field(min_length=64, max_length=64)]
    status: Integer
    response: Text
    created_at: Now
    expires_at: Timestamp


class AuditRow(RowModel):
    """One entry of the audit log: an actor did something to a number of rows at an instant."""

    id: NewId
    at: Now
    actor: Text
    verb: Text
    table_name: Text
    columns: Text = Field(
        description="The columns by which rows were chosen, separated by commas; of a post, its "
        "slug and version."
    )
    rows: Integer


LEADS = Table(
    "leads",
    LeadRow,
    "Enquiries that people sent.",
    (
        Index("leads_recent", ("-created_at", "-id")),
        Index("leads_email", ("email",)),
        Index("leads_status", ("status", "-created_at", "-id")),
        Index("leads_budget_tier", ("budget_tier", "-created_at", "-id")),
        Index("leads_dedupe", ("dedupe_hash", "created_at")),
        Index("leads_remind", ("remind_at",)),
    ),
    hidden=frozenset({"dedupe_hash", "other_part", "remind_at"}),
    searched=("name", "email", "message"),
    administrative=True,
    personal=PersonalData(("email",), mailed_column="email"),
    retention=Retention("created_at", "retain_leads_days"),
    on_restore="compared",
)
EMAIL_SEND_LOG = Table(
    "email_send_log",
    EmailSendLogRow,
    "What happened to each message: one row per change of status.",
    (
        Index("email_send_log_recent", ("-created_at", "-id")),
        Index("email_send_log_recipient", ("recipient_email",)),
        Index("email_send_log_message", ("message_id", "status")),
        Index("email_send_log_sent_once", ("message_id",), unique=True, where=("status", "sent")),
    ),
    administrative=True,
    personal=PersonalData(
        ("recipient_email", "message_id", "error_message", "metadata"),
        through=("leads",),
        mailed_column="recipient_email",
    ),
    retention=Retention("created_at", "retain_mail_log_days"),
    on_restore="added",
)
EMAIL_SEND_STATE = Table(
    "email_send_state",
    EmailSendStateRow,
    "State and settings of the mail dispatcher: one row.",
    administrative=True,
    singleton=True,
    personal=None,
)
EMAIL_UNSUBSCRIBE_TOKENS = Table(
    "email_unsubscribe_tokens",
    EmailUnsubscribeTokenRow,
    "The secrets in unsubscribe links.",
    (
        Index("email_unsubscribe_tokens_token", ("token",), unique=True),
        Index("email_unsubscribe_tokens_email", ("email",), unique=True),
    ),
    case_insensitive=frozenset({"email"}),
    administrative=True,
    personal=PersonalData(("email",), withheld_columns=frozenset({"token"})),
    retention=Retention(),
    on_restore="added",
    irreversible_changes=(IrreversibleChange(("used_at",)),),
)
SUPPRESSED_EMAILS = Table(
    "suppressed_emails",
    SuppressedEmailRow,
    "Addresses that must not be mailed.",
    (Index("suppressed_emails_email", ("email",), unique=True),),
    case_insensitive=frozenset({"email"}),
    administrative=True,
    personal=PersonalData(
        ("email",),
        cleared_columns=("metadata",),
        kept_reason="the address is kept, so that it is not mailed",
    ),
    retention=Retention(),
    on_restore="added",
)
CREDENTIALS = Table(
    "credentials",
    CredentialRow,
    indexes=(Index("credentials_digest", ("digest",), unique=True),),
    personal=None,
    irreversible_changes=(
        IrreversibleChange(("revoked_at",)),
        IrreversibleChange(("rotated_at", "expires_at")),
        IrreversibleChange(("expires_at", "needs_review")),
    ),
)
IDEMPOTENCY_KEYS = Table(
    "idempotency_keys",
    IdempotencyRow,
    indexes=(Index("idempotency_keys_expiry", ("expires_at",)),),
    personal=PersonalData(
        ("response",), through=("leads",), withheld_columns=frozenset({"id", "request_digest"})
    ),
    retention=Retention(),
    on_restore="saved",
)
AUDIT_LOG = Table(
    "audit_log",
    AuditRow,
    indexes=(Index("audit_log_recent", ("-at", "-id")),),
    personal=None,
    retention=Retention("at", "retain_audit_days"),
)


def tables_by_name(*tables: Table) -> Mapping[str, Table]:
    """Return tables by name. Raises ValueError for a table whose `parents` are unsuitable.

    A person's rows are found in this order, so parents come first. The parents' keys are searched
    for within texts, where only a UUID cannot be mistaken for something else.
    """
    found: dict[str, Table] = {}
    for table in tables:
        for name in table.parents:
            parent = found.get(name)
            if not (
                parent and parent.personal and parent.columns[parent.key].kind is ColumnType.UUID
            ):
                raise ValueError(
                    f"{table.name}: {name} must be declared before it, hold personal data and have "
                    "a UUID as its key"
                )
        found[table.name] = table
    return MappingProxyType(found)


TABLES: Final = tables_by_name(
    LEADS,
    EMAIL_SEND_LOG,
    ACCESS_REQUESTS,
    LEAD_MESSAGES,
    MAILBOX_STATE,
    EMAIL_OUTBOX,
    WEBHOOK_ENDPOINTS,
    WEBHOOK_DELIVERIES,
    ANNOUNCED_POSTS,
    SUBSCRIBERS,
    MAILINGS,
    PAGE_VIEWS,
    DAILY_FIGURES,
    EMAIL_SEND_STATE,
    EMAIL_UNSUBSCRIBE_TOKENS,
    SUPPRESSED_EMAILS,
    CREDENTIALS,
    AUDIT_LOG,
    *OAUTH_TABLES,
    IDEMPOTENCY_KEYS,
    DESK_LINKS,
    DESK_SESSIONS,
    FORMER_ROWS,
    ERASED_ROWS,
)
"""Every table by name, in the order in which rows are exported, erased and copied."""
ADMINISTRATIVE: Mapping[str, Table] = {
    name: table for name, table in TABLES.items() if table.administrative
}
