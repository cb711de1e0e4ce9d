"""How PostgreSQL spells declared tables.

A value has the same spelling as in the embedded engine, so that it sorts and compares alike: text
by code point, whatever the locale of the database.
"""

from types import MappingProxyType
from typing import Final

from edge_api.schema.kinds import Kind
from edge_api.store.ddl import Spelling

SPELLING: Final = Spelling(
    types=MappingProxyType(
        {
            Kind.TEXT: 'text COLLATE "C"',
            Kind.UUID: 'text COLLATE "C"',
            Kind.TIMESTAMP: 'text COLLATE "C"',
            Kind.INTEGER: "bigint",
            Kind.JSON: "json",
        }
    ),
    # LIKE patterns, in which an underscore is one character; JSON is seen to by its type.
    rules=MappingProxyType(
        {
            Kind.UUID: "{column} LIKE '________-____-____-____-____________'",
            Kind.TIMESTAMP: "{column} LIKE '____-__-__T__:__:__.______Z'",
        }
    ),
)
