"""The tables of correspondence about leads: answers, replies, and the state of the mailbox."""

from typing import Annotated, Literal

from pydantic import Field

from edge_api.db.table import Index, PersonalData, Retention, RowModel, Table
from edge_api.db.types import Address, Integer, Json, Lines, NewId, Now, Text, Timestamp, Uuid

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
