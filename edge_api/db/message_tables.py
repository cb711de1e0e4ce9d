"""The tables of correspondence about leads: answers, replies, and how far the mailbox is read."""

from typing import Annotated, Literal

from pydantic import Field

from edge_api.db.table import Index, PersonalData, Retention, RowModel, Table
from edge_api.db.types import Address, Integer, Json, Lines, NewId, Now, Text, Timestamp, Uuid

Flag = Annotated[Integer, Field(ge=0, le=1)]


class LeadMessageRow(RowModel):
    """An answer to a lead, or what its sender wrote back.

    The id of a sent one is the id of its entry of the outbox, and the local part of its Message-ID.
    """

    id: NewId
    lead_id: Uuid
    kind: Literal["draft", "sent", "received"]
    email: Address = Field(description="Whom it is sent to, or who sent it.")
    subject: Annotated[Text, Field(max_length=200)] = ""
    body: Annotated[Lines, Field(max_length=100_000)] = ""
    message_digest: Annotated[Text, Field(min_length=64, max_length=64)] | None = Field(
        default=None, description="Of a received one: the digest of its Message-ID."
    )
    message_id: Annotated[Text, Field(max_length=250)] | None = Field(
        default=None, description="Of a received one: its Message-ID, which an answer refers to."
    )
    is_verified: Flag = Field(default=0, description="Whether DMARC passed for a received one.")
    is_automatic: Flag = Field(default=0, description="Whether a program answered (RFC 3834).")
    attachments: Json | None = Field(
        default=None, description="Names of the files that stayed in the mailbox."
    )
    audit_id: Uuid | None = Field(
        default=None, description="Of a sent one: the entry of the audit log that it can undo."
    )
    created_at: Now


class MailboxStateRow(RowModel):
    """The place up to which the mailbox of `MAILBOX_URL` has been read: one row."""

    id: Annotated[Integer, Field(ge=1, le=1)] = 1
    mailbox_digest: Text = Field(
        default="", description="Keyed, of the address: another one is read anew."
    )
    uid_validity: Integer = Field(default=0, description="As the server says (RFC 9051, 2.3.1.1).")
    last_uid: Integer = 0
    turn_until: Timestamp | None = Field(
        default=None, description="Until when one edge reads it and no other does."
    )
    checked_at: Timestamp | None = None
    fault: Text | None = Field(default=None, description="Why it could not be read, a sentence.")


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
