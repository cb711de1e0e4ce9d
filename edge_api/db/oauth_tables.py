"""The tables of the authorization server, and of those who ask for access. All are internal."""

from typing import Annotated, Literal

from pydantic import Field

from edge_api.db.table import Index, IrreversibleChange, PersonalData, Retention, RowModel, Table
from edge_api.db.types import ColumnOptions, ColumnType, Json, NewId, Now, Text, Timestamp, Uuid

MAX_CLIENT_ID_LENGTH = 2048
"""Characters: a client may be known by the URL of its metadata document."""

ClientKind = Annotated[Literal["registered", "dynamic", "document"], ColumnOptions(ColumnType.TEXT)]
AuthMethod = Annotated[
    Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
    ColumnOptions(ColumnType.TEXT),
]
RequestStatus = Annotated[
    Literal["pending", "approved", "denied", "claimed"], ColumnOptions(ColumnType.TEXT)
]
RequestedType = Annotated[Literal["api_key", "access_token"], ColumnOptions(ColumnType.TEXT)]
ClientId = Annotated[Text, Field(min_length=1, max_length=MAX_CLIENT_ID_LENGTH)]
Digest = Annotated[Text, Field(min_length=64, max_length=64)]


class ClientRow(RowModel):
    """A program that may ask for access: registered by hand, by itself, or by a document."""

    id: ClientId
    kind: ClientKind
    name: Annotated[Text, Field(min_length=1, max_length=200)]
    auth_method: AuthMethod = "none"
    secret_digest: Digest | None = None
    secret_last_four: Annotated[Text, Field(min_length=4, max_length=4)] | None = None
    redirect_uris: Text = Field(description="URIs, separated by spaces.")
    grant_types: Text = Field(description="Names of grants, separated by spaces.")
    scopes: Text = Field(description="The most it may be granted: names, separated by spaces.")
    jwks: Json | None = Field(default=None, description="Its public keys, for private_key_jwt.")
    created_at: Now
    fresh_until: Timestamp | None = Field(
        default=None, description="When a document has to be fetched again."
    )
    last_used_at: Timestamp | None = None
    revoked_at: Timestamp | None = None


class GrantRow(RowModel):
    """What the holder of an API key let a client do."""

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
    active_from: Timestamp = Field(description="When it begins to sign; it is published before.")


class AccessRequestRow(RowModel):
    """Somebody's request for a credential, and what became of it."""

    id: NewId
    type: RequestedType
    name: Annotated[Text, Field(min_length=1, max_length=100)]
    email: Annotated[Text, Field(min_length=3, max_length=255)] | None = None
    purpose: Annotated[Text, Field(min_length=1, max_length=2000)]
    scopes: Text = Field(description="Those asked for; once approved, those that are given.")
    claim_digest: Digest
    status: RequestStatus = "pending"
    created_at: Now
    expires_at: Timestamp
    decided_at: Timestamp | None = None
    credential_id: Uuid | None = None
    second_type: RequestedType | None = Field(default=None, description="Asked for beside `type`.")
    second_credential_id: Uuid | None = None


OAUTH_CLIENTS = Table(
    "oauth_clients",
    ClientRow,
    "Programs that may ask for access.",
    (Index("oauth_clients_recent", ("kind", "created_at")),),
    personal=None,
    irreversible_changes=(
        IrreversibleChange(("revoked_at",)),
        IrreversibleChange(("secret_digest", "secret_last_four"), replaces=True),
    ),
)
OAUTH_GRANTS = Table(
    "oauth_grants",
    GrantRow,
    "What holders of API keys let clients do.",
    (
        Index("oauth_grants_credential", ("credential_id",)),
        Index("oauth_grants_client", ("client_id",)),
    ),
    personal=None,
    irreversible_changes=(IrreversibleChange(("revoked_at",)),),
)
AUTHORIZATION_CODES = Table(
    "oauth_codes",
    AuthorizationCodeRow,
    "Authorization codes, as digests.",
    (Index("oauth_codes_expiry", ("expires_at",)),),
    personal=None,
    irreversible_changes=(IrreversibleChange(("used_at",)),),
)
REFRESH_TOKENS = Table(
    "oauth_refresh_tokens",
    RefreshTokenRow,
    "Refresh tokens, as digests.",
    (
        Index("oauth_refresh_tokens_expiry", ("expires_at",)),
        Index("oauth_refresh_tokens_grant", ("grant_id",)),
    ),
    personal=None,
    irreversible_changes=(IrreversibleChange(("used_at",)),),
)
REVOKED_TOKENS = Table(
    "oauth_revoked_tokens",
    RevokedTokenRow,
    "Access tokens that were revoked before their time.",
    (Index("oauth_revoked_tokens_expiry", ("expires_at",)),),
    personal=None,
    on_restore="added",
)
USED_ASSERTIONS = Table(
    "oauth_assertions",
    AssertionRow,
    "Client assertions that were used.",
    (Index("oauth_assertions_expiry", ("expires_at",)),),
    personal=None,
    on_restore="added",
)
SIGNING_KEYS = Table(
    "oauth_signing_keys", SigningKeyRow, "Keys that sign access tokens.", personal=None
)
ACCESS_REQUESTS = Table(
    "access_requests",
    AccessRequestRow,
    "Requests for a credential.",
    (
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
    ACCESS_REQUESTS,
)
