"""Samples of what the edge gives to its templates, so that a build can try each of them.

Between them each value is there and missing, as happens at the edge.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from edge_api.schema.edge_pages import PageName
from edge_api.schema.scopes import SCOPES

Sample = Mapping[str, object]

_CHOICES = [
    {"name": name, "sentence": sentence, "checked": number % 2 == 0}
    for number, (name, sentence) in enumerate(SCOPES.items())
]
_CONSENT: Sample = {
    "action": "/api/public/oauth/authorize",
    "hidden": [("client_id", "https://agent.example/client"), ("seal", "sealed")],
    "fault": "",
    "client_name": "An agent",
    "client_id": "https://agent.example/client",
    "client_kind": "document",
    "redirect_host": "agent.example",
    "is_loopback": False,
    "resource": "the MCP endpoint",
    "scopes": _CHOICES,
}
_REQUESTED: Sample = {
    "claim_token": "fe_cl_sample",
    "claim_uri": "https://journal.example/api/public/access-requests/claim",
    "credential_type": "api_key",
    "expires": "2026-12-05",
}
_RESULT: Sample = {
    "title": [("The first ", False), ("edge", True)],
    "snippet": [("Binders painted the fore-", False), ("edge", True)],
    "url": "https://journal.example/journal/the-first-edge/",
    "path": "/journal/the-first-edge/",
    "published_at": "2026-01-05T09:00:00Z",
    "published": datetime(2026, 1, 5, 9, tzinfo=UTC),
    "minutes": 3,
    "tags": ("bindings",),
}
_NOTHING_FOUND: Sample = {
    "total": 0,
    "page": 1,
    "pages": 1,
    "results": (),
    "before": None,
    "behind": None,
}
_FOUND: Sample = {
    "total": 21,
    "page": 2,
    "pages": 3,
    "results": (_RESULT, {**_RESULT, "tags": (), "snippet": ()}),
    "before": "/search?q=edge",
    "behind": "/search?q=edge&page=3",
}
_SEARCH: Sample = {"words": "edge", "results": _FOUND, "leaf_size": 10}
_PAGES: Mapping[PageName, Sequence[Sample]] = MappingProxyType(
    {
        "consent": (
            _CONSENT,
            {**_CONSENT, "client_kind": "dynamic", "is_loopback": True, "fault": "Mend this."},
            {**_CONSENT, "client_kind": "registered", "hidden": [], "scopes": _CHOICES[:1]},
        ),
        "notice": (
            {"sentences": ["This is so.", "Do that."]},
            {"sentences": [], "link": ("/contact/", "Write to us")},
        ),
        "access_requested": (_REQUESTED, {**_REQUESTED, "credential_type": "access_token"}),
        "search": (
            _SEARCH,
            {**_SEARCH, "results": {**_FOUND, "total": 1, "page": 1, "pages": 1, "before": None}},
            {**_SEARCH, "results": _NOTHING_FOUND},
            {**_SEARCH, "words": "", "results": _NOTHING_FOUND},
        ),
        "unsubscribe": ({"address": "a…@example.org", "action": "/unsubscribe?token=sample"},),
    }
)


def sample_page(name: PageName) -> Sequence[Sample]:
    """Return values for a page."""
    return _PAGES[name]


def sample_form(fields: Sequence[str]) -> Sequence[Sample]:
    """Return values and faults for a form with these fields."""
    return (
        {"values": {}, "faults": {"form": "Try again later."}},
        {
            "values": dict.fromkeys(fields, "Typed"),
            "faults": dict.fromkeys(fields, "Too long."),
        },
    )
