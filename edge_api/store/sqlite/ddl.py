"""How SQLite spells declared tables."""

from types import MappingProxyType
from typing import Final

from edge_api.schema.kinds import Kind
from edge_api.store.ddl import Spelling

SPELLING: Final = Spelling(
    types=MappingProxyType(
        {
            Kind.TEXT: "TEXT",
            Kind.UUID: "TEXT",
            Kind.TIMESTAMP: "TEXT",
            Kind.INTEGER: "INTEGER",
            Kind.JSON: "TEXT",
        }
    ),
    # GLOB patterns, in which a question mark is one character. Values of one width: so the order
    # of texts is the order in time. Before 3.45 json_valid does not let NULL pass.
    rules=MappingProxyType(
        {
            Kind.UUID: "{column} GLOB '????????-????-????-????-????????????'",
            Kind.TIMESTAMP: "{column} GLOB '????-??-??T??:??:??.??????Z'",
            Kind.JSON: "{column} IS NULL OR json_valid({column})",
        }
    ),
    # A value of another type than its column's is refused; SQLite would else keep it.
    ending=" STRICT",
)
