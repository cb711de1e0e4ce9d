"""Budgets of pages: bytes that are sent for one, compressed as browsers request it."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from edge_api.schema import paths
from tests.judges.pages.served import Served
from tests.judges.pages.visit import PageVisit

BUDGETS: Final[Mapping[str, int]] = {
    "document": 40_000,
    "stylesheet": 14_000,
    "script": 10_000,
    "font": 40_000,
}
"""Bytes a page by the browser's name for the kind of resource."""
FIRST_VISIT: Final = 60_000
"""Bytes that the first page of a visit takes in all, but for photographs."""
EXCEPTIONS: Final[Mapping[str, str]] = {
    paths.TRY_OUT_PATH: "Swagger UI as a whole, for trying the API; no page for readers links it",
}
"""Pages whose sheets and scripts may weigh more, and why."""


def weigh(served: Served, visit: PageVisit) -> dict[str, int]:
    """Return how many bytes were needed of each kind that has a budget.

    The page itself counts as it was served; what it asks for is fetched again, with Brotli.
    """
    weights = dict.fromkeys(BUDGETS, 0)
    path = urlsplit(visit.url).path
    for url, kind in dict.fromkeys(visit.requests):
        if kind in weights and kind != "document":
            weights[kind] += _size(served, urlsplit(url).path)
    weights["document"] = _size(served, path, visit.status)
    return weights


def weigh_first_visit(served: Served, visit: PageVisit) -> int:
    """Return the bytes of all that a page needs, the painting too, but no photograph."""
    painted = {urlsplit(url).path for url, _ in visit.requests if url.endswith(".svg")}
    return sum(weigh(served, visit).values()) + sum(_size(served, path) for path in painted)


def _size(served: Served, path: str, status: int = 200) -> int:
    """Return the bytes of a body; of a page that only this visit could see, nothing."""
    found, _, body = served.get(path, **{"Accept-Encoding": "br"})
    return len(body) if found == status else 0


def excess(served: Served, visit: PageVisit) -> dict[str, int]:
    """Return what a page weighs beyond its budgets."""
    limits = dict(BUDGETS)
    if urlsplit(visit.url).path in EXCEPTIONS:
        del limits["stylesheet"], limits["script"]
    weights = weigh(served, visit)
    return {kind: weights[kind] for kind, most in limits.items() if weights[kind] > most}
