"""What is forgotten once it can tell nothing any more."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from edge_api.domain.oauth.judge import REFRESH_LIFE
from edge_api.schema.kinds import spell_instant
from edge_api.schema.oauth_tables import (
    AUTHORIZATION_CODES,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
    USED_ASSERTIONS,
)
from edge_api.schema.table import Table
from edge_api.store.plan import Condition, Delete, Read, Store

KEPT_AFTER: Final[Mapping[Table, timedelta]] = MappingProxyType(
    {
        # As long as something that a replay would revoke may live.
        AUTHORIZATION_CODES: REFRESH_LIFE,
        REFRESH_TOKENS: REFRESH_LIFE,
        REVOKED_TOKENS: timedelta(0),
        USED_ASSERTIONS: timedelta(0),
    }
)
"""How long a row is kept after it expired."""


async def forget_expired(store: Store, now: datetime) -> None:
    """Delete what expired long enough ago; nothing is written for nothing. Raises Problem."""
    for table, kept in KEPT_AFTER.items():
        expired = (Condition("expires_at", "lte", spell_instant(now - kept)),)
        (outcome,) = await store.run(Read(table, ("id",), expired, limit=1))
        if outcome.rows:
            await store.run(Delete(table, expired))
