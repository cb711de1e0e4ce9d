"""Content negotiation: media types, codings and their weights (RFC 9110, section 12)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from edge_api.operation.model import JSON

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105  a pattern (RFC 9110, 5.6.2)
_QUOTED: Final = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)'
"""A quoted string; an unclosed one extends to the end, so that matching takes linear time."""
_PARAMETER: Final = re.compile(rf"\s*;\s*(?:({_TOKEN})=({_TOKEN}|{_QUOTED}))?")
_UTF8: Final = {"charset": "utf-8"}  # the parameters of all texts that are sent
_MARKDOWN: Final = {**_UTF8, "variant": "gfm"}
"""The parameters of Markdown: tables and strikethrough are GitHub's (RFC 7764, section 3.2)."""


Preference = tuple[str, Mapping[str, str], float]
"""A media range or a coding, the parameters of a range, in lower case, and a weight from 0 to 1."""


@lru_cache(512)
def preferences(header: str) -> tuple[Preference, ...]:
    """Return the well-formed members of an `Accept` or `Accept-Encoding`, in their order."""
    found = (_preference(item[0]) for item in re.finditer(rf'(?:[^",]|{_QUOTED})+', header))
    return tuple(preference for preference in found if preference is not None)


def _preference(item: str) -> Preference | None:
    name = re.match(rf"\s*({_TOKEN}(?:/{_TOKEN})?)", item)
    if name is None:
        return None
    parameters: dict[str, str] = {}
    position = name.end()
    while parameter := _PARAMETER.match(item, position):
        position = parameter.end()
        if parameter[1]:
            parameters[parameter[1].lower()] = parameter[2].strip('"').lower()
    weight = parameters.pop("q", "1")
    if item[position:].strip() or not re.fullmatch(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?", weight):
        return None
    return name[1].lower(), parameters, float(weight)


def media_weight(header: str, media_type: str) -> float:
    """Return the weight of the most specific range for `media_type` in UTF-8; 0 without one."""
    ranges = ("*/*", f"{media_type.partition('/')[0]}/*", media_type)
    best, specificity = 0.0, (-1, -1)
    for name, parameters, weight in preferences(header):
        offered = _MARKDOWN if name == "text/markdown" else _UTF8
        if name in ranges and parameters.items() <= offered.items():
            rank = (ranges.index(name), len(parameters))
            if rank > specificity:
                best, specificity = weight, rank
    return best


@lru_cache(512)
def prefers_markdown(header: str) -> bool:
    """Return whether `text/markdown` is named, and preferred no less than HTML."""
    weight = _named_weight(header, "text/markdown")
    return weight > 0 and weight >= media_weight(header, "text/html")


@lru_cache(512)
def prefers_json(header: str) -> bool:
    """Return whether JSON is named, and preferred to HTML, for the answer to a form."""
    return _named_weight(header, JSON) > media_weight(header, "text/html")


def prefers_csv(header: str) -> bool:
    """Return whether CSV is named, and preferred to JSON."""
    return _named_weight(header, "text/csv") > media_weight(header, JSON)


def _named_weight(header: str, media_type: str) -> float:
    is_named = any(name == media_type for name, _, _ in preferences(header))
    return media_weight(header, media_type) if is_named else 0.0


@lru_cache(512)
def best_coding(header: str, available: tuple[str, ...]) -> str:
    """Return the coding that an `Accept-Encoding` prefers among `available`, or `""` for none.

    Of codings with equal weights the first in `available` is used; a weight of 0 refuses a coding
    (section 12.5.3).
    """
    weights = {name.removeprefix("x-"): weight for name, _, weight in preferences(header)}
    others = weights.get("*", 0.0)
    best, best_weight = "", 0.0
    for coding in available:
        weight = weights.get(coding, others)
        if weight > best_weight:
            best, best_weight = coding, weight
    plain = weights.get("identity", weights.get("*"))
    return "" if plain is not None and plain > best_weight else best
