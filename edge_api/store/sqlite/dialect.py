"""SQLite's words: what `store.sql` says differently for this engine."""

import json
from types import MappingProxyType
from typing import Final

from edge_api.store.sql import COMPARISONS, Dialect

LIKE: Final = "like_text"
ILIKE: Final = "ilike_text"
"""Functions that every connection brings; SQLite's own LIKE folds ASCII letters only."""

SQLITE: Final = Dialect(
    operations=MappingProxyType(
        {
            **COMPARISONS,
            "like": f"{LIKE}({{column}}, ?)",
            "ilike": f"{ILIKE}({{column}}, ?)",
            # One parameter however long the list. An empty one matches nothing, and its negation
            # everything, NULL included, as in PostgreSQL.
            "in": "{column} IN (SELECT value FROM json_each(?))",
        }
    ),
    operands=MappingProxyType(
        {"in": lambda values: (json.dumps(values),), "is": lambda _null: ()},
    ),
    no_limit=-1,
    mark=str,
)
