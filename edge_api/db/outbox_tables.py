"""The outbox tables: queued mail, webhook endpoints and deliveries.

A row is written in the transaction of its lead or event, and deleted once that is delivered.
"""

from typing import Annotated, Literal

from pydantic import Field

from edge_api.db.table import Index, IrreversibleChange, PersonalData, Retention, RowModel, Table
from edge_api.db.types import ColumnOptions, ColumnType, Integer, NewId, Now, Text, Timestamp, Uuid

MAX_URL_LENGTH = 2048
"""Characters of a webhook's address."""
MAX_RECIPIENT_LENGTH = 255

MailQueue = Annotated[Literal["auth", "transactional"], ColumnOptions(ColumnType.TEXT)]


class EmailOutboxRow(RowModel):
    """A message that waits to be sent; it is composed when its time comes."""

    id: NewId
    queue: MailQueue = Field(description="Says which time to live of `email_send_state` counts.")
    template_name: Annotated[Text, Field(min_length=1, max_length=200)]
    recipient_email: Annotated[Text, Field(min_length=3, max_length=MAX_RECIPIENT_LENGTH)]
    subject_id: Uuid = Field(description="The row that the message is about, such as a lead.")
    created_at: Now
    queued_at: Now = Field(description="When its time to live began: at first, or by hand anew.")
    due_at: Now = Field(description="When it may be claimed: its turn, or the end of a lease.")
    lease: Text | None = Field(default=None, description="The secret of who has claimed it.")
    claims: Integer = 0
    attempts: Integer = Field(default=0, description="How often a relay would not have it.")
    dead_at: Timestamp | None = Field(default=None, description="When it was given up.")


class WebhookEndpointRow(RowModel):
    """An address that events are posted to."""

    id: NewId
    url: Annotated[Text, Field(min_length=1, max_length=MAX_URL_LENGTH)]
    secret: Text = Field(description="What signs, encrypted.")
    former_secret: Text | None = Field(
        default=None, description="What signs as well until `former_until`, encrypted."
    )
    former_until: Timestamp | None = None
    created_at: Now
    disabled_at: Timestamp | None = None
    disabled_for: Text | None = Field(default=None, description="Why, in a sentence.")


class WebhookDeliveryRow(RowModel):
    """An event that waits to be posted to one endpoint."""

    id: NewId
    endpoint_id: Uuid
    event: Annotated[Text, Field(min_length=1, max_length=100)]
    subject_id: Uuid = Field(description="The row that the event is about, such as a lead.")
    body: Text = Field(description="The JSON that is sent, the same in each attempt.")
    created_at: Now
    due_at: Now = Field(description="When it may be claimed: its turn, or the end of a lease.")
    lease: Text | None = Field(default=None, description="The secret of who has claimed it.")
    attempts: Integer = 0
    last_answer: Text | None = Field(default=None, description="What came of the last attempt.")
    dead_at: Timestamp | None = Field(default=None, description="When it was given up.")


EMAIL_OUTBOX = Table(
    "email_outbox",
    EmailOutboxRow,
    "Messages that wait to be sent.",
    (
        Index("email_outbox_due", ("dead_at", "due_at")),
        Index("email_outbox_subject", ("subject_id",)),
    ),
    personal=PersonalData(
        ("recipient_email", "subject_id"),
        through=("leads",),
        withheld_columns=frozenset({"lease"}),
        mailed_column="recipient_email",
    ),
    retention=Retention(cascade_from=("subject_id", "leads")),
    on_restore="delivered",
)
WEBHOOK_ENDPOINTS = Table(
    "webhook_endpoints",
    WebhookEndpointRow,
    "Addresses that events are posted to.",
    (Index("webhook_endpoints_url", ("url",), unique=True),),
    personal=None,
    on_restore="removed",
    irreversible_changes=(IrreversibleChange(("disabled_at", "disabled_for")),),
)
WEBHOOK_DELIVERIES = Table(
    "webhook_deliveries",
    WebhookDeliveryRow,
    "Events that wait to be posted.",
    (
        Index("webhook_deliveries_due", ("dead_at", "due_at")),
        Index("webhook_deliveries_subject", ("subject_id",)),
    ),
    personal=PersonalData(
        ("subject_id", "body"), through=("leads",), withheld_columns=frozenset({"lease"})
    ),
    retention=Retention(cascade_from=("subject_id", "leads")),
    on_restore="delivered",
    irreversible_changes=(IrreversibleChange(("dead_at", "last_answer")),),
)
OUTBOX_TABLES = (EMAIL_OUTBOX, WEBHOOK_ENDPOINTS, WEBHOOK_DELIVERIES)
