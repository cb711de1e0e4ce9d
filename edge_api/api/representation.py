"""The forms in which administrative rows can be had, and which of them a client asked for."""

import re
from typing import Final

from edge_api.api.reply import JSON

CSV: Final = "text/csv"
OBJECT: Final = "application/vnd.pgrst.object+json"
"""PostgREST's name for one row that is not wrapped in an array."""

_RANGE: Final = re.compile(r"\s*([\w*.+-]+/[\w*.+-]+)((?:\s*;[^,]*)?)")
_WEIGHT: Final = re.compile(r";\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*(?:;|$)", re.IGNORECASE)


def chosen_form(accept: str | None) -> str:
    """Return JSON, CSV or OBJECT: the one with most weight (RFC 9110, section 12.5.1).

    JSON wins among equals, stands for every wildcard, and is the answer to any other wish.
    """
    weights = _weights(accept or "*/*")
    wildcard = weights.get("application/*", weights.get("*/*", 0.0))
    forms = {JSON: weights.get(JSON, wildcard), CSV: weights.get(CSV), OBJECT: weights.get(OBJECT)}
    return max(forms, key=lambda form: forms[form] or 0.0)


def _weights(accept: str) -> dict[str, float]:
    found = (_RANGE.match(member) for member in accept.split(","))
    return {item[1].lower(): _weight(item[2]) for item in found if item is not None}


def _weight(parameters: str) -> float:
    found = _WEIGHT.search(parameters)
    return min(float(found[1]), 1.0) if found else 1.0
