"""Which representation of a file a client prefers (RFC 9110, section 12.5), as pure functions."""

from functools import lru_cache

from edge_api.api.preferences import media_weight, preferences
from edge_api.api.reply import JSON


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
