"""The tables of the desk: sign-in links, sessions, and the former values of changed rows."""

from typing import Annotated

from pydantic import Field

from edge_api.db.table import Index, IrreversibleChange, PersonalData, Retention, RowModel, Table
from edge_api.db.types import Json, NewId, Now, Text, Timestamp, Uuid


class DeskLinkRow(RowModel):
    """A link that signs the owner in once; its token is derived from the key of the row."""

    id: NewId
    created_at: Now
    expires_at: Timestamp
    used_at: Timestamp | None = None


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


DESK_LINKS = Table(
    "desk_links",
    DeskLinkRow,
    "Links that sign the owner in, once each.",
    (Index("desk_links_expiry", ("expires_at",)),),
    personal=None,
    irreversible_changes=(IrreversibleChange(("used_at",)),),
)
DESK_SESSIONS = Table(
    "desk_sessions",
    DeskSessionRow,
    "Browsers that are signed in to the desk.",
    (
        Index("desk_sessions_digest", ("digest",), unique=True),
        Index("desk_sessions_expiry", ("expires_at",)),
    ),
    personal=None,
    irreversible_changes=(IrreversibleChange(("revoked_at",)),),
)
FORMER_ROWS = Table(
    "former_rows",
    FormerRowRow,
    "Rows before and after each change, for undo.",
    (
        Index("former_rows_audit", ("audit_id",)),
        Index("former_rows_row", ("table_name", "row_id")),
        Index("former_rows_recent", ("created_at",)),
    ),
    personal=PersonalData(("row_id", "former", "changed"), through=("leads",)),
    retention=Retention("created_at", "retain_undo_days", cascade_from=("row_id", "leads")),
    on_restore="saved",
)
DESK_TABLES = (DESK_LINKS, DESK_SESSIONS, FORMER_ROWS)
