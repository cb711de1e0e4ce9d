"""Header fields of a request that are lists, and what is preferred by them (RFC 9110, 12.5)."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from multidict import CIMultiDictProxy

from edge_api.api.preferences import media_weight, preferences
from edge_api.api.reply import JSON


class Fields(Mapping[str, str]):
    """Header fields by name, whatever its case; one on several lines is one list."""

    def __init__(self, headers: CIMultiDictProxy[str]) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        value = whole_list(self._headers, name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)


def whole_list(headers: CIMultiDictProxy[str], name: str) -> str | None:
    """Return every member of a list field on one line (RFC 9110, section 5.3); `None` if absent."""
    first = headers.get(name)
    if first is None:
        return None
    lines = headers.getall(name)
    return first if len(lines) == 1 else ", ".join(lines)


@lru_cache(512)
def prefers_json(header: str) -> bool:
    """Tell whether the answer to a form should be JSON rather than a page: only where it is named.

    A browser that leads to a page names HTML, a script that reads the answer names JSON.
    """
    named = any(preference.name == JSON for preference in preferences(header))
    return named and media_weight(header, JSON) > media_weight(header, "text/html")


@lru_cache(512)
def best_coding(header: str, available: tuple[str, ...]) -> str:
    """Return the coding that an `Accept-Encoding` prefers among `available`, or `""` for none.

    Among equals the earlier of `available` wins, and every coding wins over none. A client that
    refuses all there is gets the answer without coding (section 12.5.3).
    """
    weights = {item.name.removeprefix("x-"): item.weight for item in preferences(header)}
    others = weights.get("*", 0.0)
    best, best_weight = "", 0.0
    for coding in available:
        weight = weights.get(coding, others)
        if weight > best_weight:
            best, best_weight = coding, weight
    plain = weights.get("identity", weights.get("*"))
    return "" if plain is not None and plain > best_weight else best
