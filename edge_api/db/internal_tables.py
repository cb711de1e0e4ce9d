"""Declare tables that no interface shows: outbox, OAuth server, access requests, desk.

A row of the outbox is written in the transaction of its lead or event, and deleted once it
is delivered.
"""

from typing import Annotated, Literal

from pydantic import Field

from edge_api.db.table import Index, IrreversibleChange, PersonalData, Retention, RowModel, Table
from edge_api.db.types import Address, Integer, Json, NewId, Now, Text, Timestamp, Uuid
from edge_api.db.visitor_columns import KeyedRow, SentAccessRequest

MAX_URL_LENGTH = 2048  # characters of a webhook's address, and of a target at the desk


class EmailOutboxRow(RowModel):
    """A message that waits to be sent; it is composed when its time comes."""

    id: NewId
    queue: Literal["auth", "transactional", "newsletter"] = Field(
        description="What goes first, and for how long it is tried."
    )
    template_name: Annotated[Text, Field(min_length=1, max_length=200)]
    recipient_email: Address
    subject_id: Uuid = Field(description="The row that the message is about, such as a lead.")
    created_at: Now
    queued_at: Now = Field(description="The start of its time to live; a retry by hand resets it.")
    due_at: Now = Field(description="The time of its next claim: its turn, or the end of a lease.")
    lease: Text | None = Field(default=None, description="The secret of the current claim.")
    claims: Integer = 0
    attempts: Integer = Field(default=0, description="The number of failed attempts.")
    dead_at: Timestamp | None = Field(default=None, description="The time when it was given up.")


class WebhookEndpointRow(RowModel):
    """An address that events are posted to."""

    id: NewId
    url: Annotated[Text, Field(min_length=1, max_length=MAX_URL_LENGTH)]
    secret: Text = Field(description="The secret that signs, encrypted.")
    former_secret: Text | None = Field(
        default=None, description="A second secret that signs until `former_until`, encrypted."
    )
    former_until: Timestamp | None = None
    events: Text = Field(default="lead.created", description="Names, separated by spaces.")
    created_at: Now
    disabled_at: Timestamp | None = None
    disabled_for: Text | None = Field(default=None, description="The reason, in a sentence.")


class WebhookDeliveryRow(RowModel):
    """An event that waits to be posted to one endpoint."""

    id: NewId
    endpoint_id: Uuid
    event: Annotated[Text, Field(min_length=1, max_length=100)]
    subject_id: Uuid = Field(
        description="The id of a lead, or a UUID made from the URL of a post or of the site."
    )
    body: Text = Field(description="The JSON that is sent, the same in each attempt.")
    created_at: Now
    due_at: Now = Field(description="The time of its next claim: its turn, or the end of a lease.")
    lease: Text | None = Field(default=None, description="The secret of the current claim.")
    attempts: Integer = 0
    last_answer: Text | None = Field(default=None, description="The outcome of the last attempt.")
    dead_at: Timestamp | None = Field(default=None, description="The time when it was given up.")


class AnnouncedPostsRow(RowModel):
    """The posts that webhooks announced last: one row, absent until an edge has run."""

    id: Annotated[Integer, Field(ge=1, le=1)] = 1
    index_digest: Annotated[Text, Field(min_length=64, max_length=64)]
    built_for: Timestamp = Field(description="The instant of the build that has this index.")
    posts: Text = Field(description="JSON: by slug, the digest of the content and the URL.")
    texts: Text = Field(
        default="",
        description="JSON: by slug, the digest of the text, by which the newsletter knows a copy. "
        "Empty while that is off, and after a restore: then new posts wait for the owner's press.",
    )


EMAIL_OUTBOX = Table(
    "email_outbox",
    EmailOutboxRow,
    indexes=(
        Index("email_outbox_due", ("dead_at", "due_at")),
        Index("email_outbox_subject", ("subject_id",)),
    ),
    personal=PersonalData(
        ("recipient_email", "subject_id"),
        through=("leads", "access_requests"),
        withheld_columns=frozenset({"lease"}),
        mailed_column="recipient_email",
    ),
    retention=Retention(cascade_from=("subject_id", "leads")),
    on_restore="delivered",
)
WEBHOOK_ENDPOINTS = Table(
    "webhook_endpoints",
    WebhookEndpointRow,
    indexes=(Index("webhook_endpoints_url", ("url",), unique=True),),
    personal=None,
    on_restore="removed",
    irreversible_changes=(IrreversibleChange(("disabled_at", "disabled_for")),),
)
WEBHOOK_DELIVERIES = Table(
    "webhook_deliveries",
    WebhookDeliveryRow,
    indexes=(
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
ANNOUNCED_POSTS = Table(
    "announced_posts",
    AnnouncedPostsRow,
    personal=None,
    irreversible_changes=(
        IrreversibleChange(("index_digest", "built_for", "posts"), replaces=True),
    ),
)


MAX_CLIENT_ID_LENGTH = 2048  # characters: a client may be known by the URL of its metadata document

RequestedType = Literal["api_key", "access_token"]
ClientId = Annotated[Text, Field(min_length=1, max_length=MAX_CLIENT_ID_LENGTH)]
Digest = Annotated[Text, Field(min_length=64, max_length=64)]


class ClientRow(RowModel):
    """A program that may ask for access: registered by hand, by itself, or by a document."""

    id: ClientId
    kind: Literal["registered", "dynamic", "document"]
    name: Annotated[Text, Field(min_length=1, max_length=200)]
    auth_method: Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"] = (
        "none"
    )
    secret_digest: Digest | None = None
    secret_last_four: Annotated[Text, Field(min_length=4, max_length=4)] | None = None
    redirect_uris: Text = Field(description="URIs, separated by spaces.")
    grant_types: Text = Field(description="Names of grants, separated by spaces.")
    scopes: Text = Field(description="The most it may be granted: names, separated by spaces.")
    jwks: Json | None = Field(default=None, description="Its public keys, for private_key_jwt.")
    created_at: Now
    fresh_until: Timestamp | None = Field(
        default=None, description="The time at which its document has to be fetched again."
    )
    last_used_at: Timestamp | None = None
    revoked_at: Timestamp | None = None


class GrantRow(RowModel):
    """The consent of an API key's holder to what a client may do."""

    id: NewId
    client_id: ClientId
    credential_id: Uuid = Field(description="The API key that consented.")
    scopes: Text
    resource: Annotated[Text, Field(min_length=1, max_length=2048)]
    created_at: Now
    revoked_at: Timestamp | None = None


class AuthorizationCodeRow(RowModel):
    """A code that is exchanged once; kept after that, so that a replay is known."""

    id: Digest
    grant_id: Uuid
    redirect_uri: Annotated[Text, Field(min_length=1, max_length=2048)]
    challenge: Annotated[Text, Field(min_length=43, max_length=43)]
    created_at: Now
    expires_at: Timestamp
    used_at: Timestamp | None = None


class RefreshTokenRow(RowModel):
    """A refresh token that is exchanged once; kept after that, so that a replay is known."""

    id: Digest
    grant_id: Uuid
    created_at: Now
    expires_at: Timestamp
    used_at: Timestamp | None = None


class RevokedTokenRow(RowModel):
    """The `jti` of an access token that was revoked before its time."""

    id: Annotated[Text, Field(min_length=1, max_length=64)]
    expires_at: Timestamp


class AssertionRow(RowModel):
    """A client assertion that was used: the digest of its issuer and `jti`."""

    id: Digest
    expires_at: Timestamp


class SigningKeyRow(RowModel):
    """A key that signs access tokens, encrypted with the service's secret."""

    id: Annotated[Text, Field(min_length=1, max_length=64, description="Its `kid`.")]
    private_key: Text = Field(description="A JWE (RFC 7516) of the private JWK.")
    created_at: Now
    active_from: Timestamp = Field(description="The start of its use; it is published before.")


class AccessRequestRow(SentAccessRequest, KeyedRow):
    """Somebody's request for a credential, and what became of it."""

    type: RequestedType
    scopes: Text = Field(description="The requested scopes; once approved, the granted ones.")
    claim_digest: Digest
    status: Literal["pending", "approved", "denied", "claimed"] = "pending"
    created_at: Now
    expires_at: Timestamp
    decided_at: Timestamp | None = None
    credential_id: Uuid | None = None
    second_type: RequestedType | None = Field(default=None, description="A second type, if any.")
    second_credential_id: Uuid | None = None
    credential_expires_at: Timestamp | None = Field(
        default=None, description="The expiry of the approved credential; absent: never."
    )


OAUTH_CLIENTS = Table(
    "oauth_clients",
    ClientRow,
    indexes=(Index("oauth_clients_recent", ("kind", "created_at")),),
    personal=None,
    irreversible_changes=(
        IrreversibleChange(("revoked_at",)),
        IrreversibleChange(("secret_digest", "secret_last_four"), replaces=True),
    ),
)
OAUTH_GRANTS = Table(
    "oauth_grants",
    GrantRow,
    indexes=(
        Index("oauth_grants_credential", ("credential_id",)),
        Index("oauth_grants_client", ("client_id",)),
    ),
    personal=None,
    irreversible_changes=(IrreversibleChange(("revoked_at",)),),
)
AUTHORIZATION_CODES = Table(
    "oauth_codes",
    AuthorizationCodeRow,
    indexes=(Index("oauth_codes_expiry", ("expires_at",)),),
    personal=None,
    irreversible_changes=(IrreversibleChange(("used_at",)),),
)
REFRESH_TOKENS = Table(
    "oauth_refresh_tokens",
    RefreshTokenRow,
    indexes=(
        Index("oauth_refresh_tokens_expiry", ("expires_at",)),
        Index("oauth_refresh_tokens_grant", ("grant_id",)),
    ),
    personal=None,
    irreversible_changes=(IrreversibleChange(("used_at",)),),
)
REVOKED_TOKENS = Table(
    "oauth_revoked_tokens",
    RevokedTokenRow,
    indexes=(Index("oauth_revoked_tokens_expiry", ("expires_at",)),),
    personal=None,
    on_restore="added",
)
USED_ASSERTIONS = Table(
    "oauth_assertions",
    AssertionRow,
    indexes=(Index("oauth_assertions_expiry", ("expires_at",)),),
    personal=None,
    on_restore="added",
)
SIGNING_KEYS = Table("oauth_signing_keys", SigningKeyRow, personal=None)
ACCESS_REQUESTS = Table(
    "access_requests",
    AccessRequestRow,
    indexes=(
        Index("access_requests_claim", ("claim_digest",), unique=True),
        Index("access_requests_status", ("status", "created_at")),
        Index("access_requests_expiry", ("expires_at",)),
    ),
    personal=PersonalData(("email",), withheld_columns=frozenset({"claim_digest"})),
    retention=Retention(),
    on_restore="saved",
    irreversible_changes=(
        IrreversibleChange(
            ("status", "decided_at"), value="denied", former_values=("pending", "approved")
        ),
    ),
)

OAUTH_TABLES: tuple[Table, ...] = (
    OAUTH_CLIENTS,
    OAUTH_GRANTS,
    AUTHORIZATION_CODES,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
    USED_ASSERTIONS,
    SIGNING_KEYS,
)


class DeskLinkRow(RowModel):
    """A link that signs the owner in once; its token is derived from the key of the row."""

    id: NewId
    created_at: Now
    expires_at: Timestamp
    used_at: Timestamp | None = None
    target: Annotated[Text, Field(max_length=MAX_URL_LENGTH)] = "/desk/"
    asked_by: Text = Field(
        default="", description="`stranger`: a browser where nobody has signed in."
    )


class DeskSessionRow(RowModel):
    """A browser that is signed in; its secret is not here, only the digest."""

    id: NewId
    digest: Annotated[Text, Field(min_length=64, max_length=64)]
    credential_id: Uuid | None = Field(
        default=None, description="The API key it was made with; absent for the owner's link."
    )
    browser: Annotated[Text, Field(max_length=200)]
    created_at: Now
    expires_at: Timestamp
    revoked_at: Timestamp | None = None


class FormerRowRow(RowModel):
    """A row before and after one change, so that the change can be undone."""

    id: NewId
    audit_id: Uuid = Field(description="The entry of the audit log for the change.")
    table_name: Text
    row_id: Text = Field(description="The key of the row.")
    former: Json | None = Field(default=None, description="Absent for a row that was inserted.")
    changed: Json | None = Field(default=None, description="Absent for a row that was deleted.")
    created_at: Now


class ErasedRowRow(RowModel):
    """The key of a row that was erased with the person whom it was about, and nothing else."""

    id: Uuid
    expires_at: Timestamp


DESK_LINKS = Table(
    "desk_links",
    DeskLinkRow,
    indexes=(Index("desk_links_expiry", ("expires_at",)),),
    personal=None,
    irreversible_changes=(IrreversibleChange(("used_at",)),),
)
DESK_SESSIONS = Table(
    "desk_sessions",
    DeskSessionRow,
    indexes=(
        Index("desk_sessions_digest", ("digest",), unique=True),
        Index("desk_sessions_expiry", ("expires_at",)),
    ),
    personal=None,
    irreversible_changes=(IrreversibleChange(("revoked_at",)),),
)
FORMER_ROWS = Table(
    "former_rows",
    FormerRowRow,
    indexes=(
        Index("former_rows_audit", ("audit_id",)),
        Index("former_rows_row", ("table_name", "row_id")),
        Index("former_rows_recent", ("created_at",)),
    ),
    personal=PersonalData(("row_id", "former", "changed"), through=("leads",)),
    retention=Retention("created_at", "retain_undo_days", cascade_from=("row_id", "leads")),
    on_restore="saved",
)
ERASED_ROWS = Table(
    "erased_rows",
    ErasedRowRow,
    indexes=(Index("erased_rows_expiry", ("expires_at",)),),
    personal=None,
    on_restore="added",
)
