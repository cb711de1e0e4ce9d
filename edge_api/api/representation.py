"""The forms in which administrative rows can be had, and which of them a client asked for."""

from functools import lru_cache
from typing import Final

from edge_api.api.preferences import media_weight, preferences
from edge_api.api.reply import JSON

CSV: Final = "text/csv"
OBJECT: Final = "application/vnd.pgrst.object+json"
"""PostgREST's name for one row that is not wrapped in an array."""


@lru_cache(512)
def chosen_form(accept: str | None) -> str:
    """Return JSON, CSV or OBJECT: the one with most weight (RFC 9110, section 12.5.1).

    JSON wins among equals, stands for every wildcard, and is the answer to any other wish.
    """
    wanted = accept or "*/*"
    weights = {JSON: media_weight(wanted, JSON), CSV: 0.0, OBJECT: 0.0}
    for preference in preferences(wanted):
        if preference.name in (CSV, OBJECT):
            weights[preference.name] = max(weights[preference.name], preference.weight)
    return max(weights, key=lambda form: weights[form])
