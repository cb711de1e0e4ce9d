"""Samples of what the edge gives to its templates, so that a build can try each of them.

Between them each value is there and missing, as happens at the edge.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from edge_api.schema.credentials import SCOPES
from edge_api.schema.edge_pages import PageName

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
    "sentence": "No post has all of these words.",
    "suggestion": "edge",
    "suggested_address": "/search?q=edge",
}
_FOUND: Sample = {
    "total": 21,
    "page": 2,
    "pages": 3,
    "results": (_RESULT, {**_RESULT, "tags": (), "snippet": ()}),
    "before": "/search?q=edge",
    "behind": "/search?q=edge&page=3",
    "sentence": "21 posts have these words, best first.",
    "suggestion": None,
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
        "access_requested": tuple(
            {**_REQUESTED, "credential_type": each} for each in ("api_key", "access_token", "both")
        ),
        "search": (
            _SEARCH,
            {**_SEARCH, "results": {**_FOUND, "total": 1, "page": 1, "pages": 1, "before": None}},
            {**_SEARCH, "results": _NOTHING_FOUND},
            {
                **_SEARCH,
                "words": "",
                "results": {**_NOTHING_FOUND, "sentence": "", "suggestion": None},
            },
        ),
        "unsubscribe": ({"address": "a…@example.org", "action": "/unsubscribe?token=sample"},),
    }
)


_PROSE: Sample = {"html": "<p>Words.</p>", "line": "Words.", "markdown": "Words."}
_NONE: Sample = {"html": "", "line": "", "markdown": ""}
_CODE: Sample = {"html": "<span>1</span>", "text": "1", "language": "json"}
_FIELD: Sample = {
    "name": "limit",
    "kind": "integer",
    "mark": "needed",
    "sentence": _PROSE,
    "place": "query",
}
_BODY: Sample = {
    "media_types": ("application/json",),
    "fields": (_FIELD, {**_FIELD, "mark": "", "sentence": _NONE}),
    "is_deeper": True,
    "example": _CODE,
}
_ANSWER: Sample = {
    "status": "200",
    "phrase": "OK",
    "sentence": _PROSE,
    "headers": {"ETag": _PROSE},
    "body": _BODY,
}
_BARE_ANSWER: Sample = {**_ANSWER, "headers": {}, "body": None}
_ENTRY: Sample = {
    "anchor": "list_posts",
    "method": "GET",
    "path": "/api/public/v1/posts",
    "summary": "List posts",
    "about": _PROSE,
    "access": _PROSE,
    "parameters": (_FIELD,),
    "body": {**_BODY, "is_deeper": False, "example": None},
    "answers": (_ANSWER, _BARE_ANSWER),
    "problems": (_BARE_ANSWER,),
    "examples": ({"label": "curl", "code": _CODE},),
    "remark": _NONE,
}
_BARE_ENTRY: Sample = {
    **_ENTRY,
    "about": _NONE,
    "parameters": (),
    "body": None,
    "problems": (),
    "examples": (),
    "remark": _PROSE,
}
_DOCS_PAGE: Sample = {
    "path": "/docs/",
    "name": "Overview",
    "title": "API",
    "description": "How to call it.",
    "prose": _PROSE,
    "entries": (),
}
_DOCS_GROUP: Sample = {
    **_DOCS_PAGE,
    "path": "/docs/posts/",
    "name": "Posts",
    "title": "API: Posts",
    "prose": _NONE,
    "entries": (_ENTRY, _BARE_ENTRY),
}
_REFERENCE: Mapping[str, Sequence[Sample]] = MappingProxyType(
    {
        "docs.html": tuple(
            {"page": page, "pages": (_DOCS_PAGE, _DOCS_GROUP)} for page in (_DOCS_PAGE, _DOCS_GROUP)
        ),
        "docs_try.html": (
            {
                "docs": "/docs/",
                "sheets": ("/theme/try/look.css",),
                "scripts": ("/theme/try/start.js",),
                "document": "/api/public/v1/openapi.json",
            },
        ),
    }
)


def sample_reference(name: str) -> Sequence[Sample]:
    """Return values for a template of the reference, by its file name."""
    return _REFERENCE[name]


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
