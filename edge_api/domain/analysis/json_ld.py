"""The types that a page's JSON-LD names (JSON-LD 1.1, section 3.5)."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

TYPES_MOST: Final = 20
"""Types that are told of one page."""
_TYPE_LONGEST: Final = 100


def read_types(blocks: Iterable[str]) -> tuple[tuple[str, ...], int]:
    """Return the types that the blocks name, each once, and how many blocks are no JSON."""
    types: dict[str, None] = {}
    faults = 0
    for block in blocks:
        try:
            value = orjson.loads(block)
        except orjson.JSONDecodeError:
            faults += 1
            continue
        types.update(dict.fromkeys(_types(value)))
    return tuple(types)[:TYPES_MOST], faults


def _types(value: Any) -> Iterator[str]:
    """Yield the types of every object in a value, in the order of the text."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            named = item.get("@type")
            for name in named if isinstance(named, list) else [named]:
                if isinstance(name, str):
                    yield name[:_TYPE_LONGEST]
            pending.extend(reversed(item.values()))
        elif isinstance(item, list):
            pending.extend(reversed(item))
