"""The tables of the newsletter: those who get it, and what is mailed to them."""

from typing import Annotated, Literal

from pydantic import Field

from edge_api.db.table import Index, IrreversibleChange, PersonalData, Retention, RowModel, Table
from edge_api.db.types import Address, Integer, Lines, NewId, Now, Text, Timestamp

Digest = Annotated[Text, Field(min_length=64, max_length=64)]
Reason = Annotated[Text, Field(max_length=200)]
FAR = "9999-12-31T00:00:00.000000Z"
"""The time at which letters of a held mailing are due."""
LETTER_LOG_DAYS = 90
"""The days for which the mail log has lines of the newsletter, if it keeps others for longer."""


class SubscriberRow(RowModel):
    """An address that asked for the newsletter, and what it agreed to."""

    id: NewId
    email: Address
    status: Literal["pending", "active", "ended", "bounced"] = "pending"
    token: Digest = Field(description="The secret of its links: random, and valid for ever.")
    language: Annotated[Text, Field(max_length=35)] = Field(
        default="", description="The language of what it gets (BCP 47); empty: the journal's."
    )
    source: Reason = Field(default="", description="Where it asked: a path, `api`, or an import.")
    consent: Annotated[Lines, Field(max_length=1000)] = Field(
        default="", description="The sentence beside the button that was pressed."
    )
    asked_at: Timestamp | None = Field(
        default=None, description="The time of the last confirmation, mailed or due; absent: none."
    )
    confirmed_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    ended_by: Reason | None = Field(
        default=None, description="Who ended it: link, owner, bounce or complaint."
    )
    created_at: Now


class MailingRow(RowModel):
    """A post that is mailed to the subscribers, once."""

    id: NewId
    slug: Annotated[Text, Field(min_length=1, max_length=200)]
    subject: Annotated[Text, Field(max_length=300)]
    url: Annotated[Text, Field(max_length=2048)]
    text_digest: Digest = Field(description="The digest of the text, by which a copy is known.")
    host: Annotated[Text, Field(max_length=255)] = Field(
        description="The host in its Message-IDs, the same also after SITE_URL has changed."
    )
    waits_for: Reason = Field(
        default="", description="Why it waits for the owner's press; empty: it does not."
    )
    due_at: Timestamp | None = Field(default=None, description="Absent: it waits for the press.")
    cursor: Text = Field(default="", description="The id of the last subscriber that was queued.")
    recipients: Integer = Field(default=0, description="The number of subscribers queued so far.")
    queued_at: Timestamp | None = Field(default=None, description="When the last was queued.")
    held_at: Timestamp | None = None
    held_for: Reason | None = Field(default=None, description="Why it is held, in a sentence.")
    resumed_at: Timestamp | None = Field(
        default=None, description="When the owner let it go on. Refusals count from then."
    )
    ended_at: Timestamp | None = Field(
        default=None, description="When it was stopped for good, or skipped."
    )
    ended_for: Reason | None = None
    created_at: Now


SUBSCRIBERS = Table(
    "subscribers",
    SubscriberRow,
    indexes=(
        Index("subscribers_email", ("email",), unique=True),
        Index("subscribers_token", ("token",), unique=True),
        Index("subscribers_status", ("status", "id")),
        Index("subscribers_asked", ("-asked_at",)),
    ),
    case_insensitive=frozenset({"email"}),
    personal=PersonalData(("email",), withheld_columns=frozenset({"token"}), mailed_column="email"),
    retention=Retention(),
    on_restore="saved",
    irreversible_changes=(
        IrreversibleChange(
            ("status", "ended_at", "ended_by"), value="ended", former_values=("pending", "active")
        ),
        IrreversibleChange(
            ("status", "ended_at", "ended_by"),
            value="bounced",
            former_values=("pending", "active"),
        ),
    ),
)
MAILINGS = Table(
    "mailings",
    MailingRow,
    indexes=(
        Index("mailings_slug", ("slug",), unique=True),
        Index("mailings_recent", ("-created_at", "-id")),
    ),
    personal=None,
    on_restore="added",
    irreversible_changes=(
        IrreversibleChange(
            ("cursor", "recipients", "queued_at", "due_at", "waits_for", "resumed_at"),
            replaces=True,
        ),
        IrreversibleChange(("ended_at", "ended_for")),
        IrreversibleChange(("held_at", "held_for")),
    ),
)
