"""Headers of the edge's answers; `schema.site_policy` has those that a preview sends too."""

from typing import Final

from edge_api.schema import paths
from edge_api.schema.site_policy import (
    COMMON_HEADERS,
    SAME_ORIGIN_RESOURCE,
    SITE_CSP,
    SITE_HEADERS,
    Header,
    Headers,
)

API_LINKS: Final = (
    f'<{paths.API_CATALOG}>; rel="api-catalog"',
    f'<{paths.OPENAPI}>; rel="service-desc"; type="application/json"',
    f'<{paths.DOCS}>; rel="service-doc"; type="text/html"',
    f'<{paths.AUDIENCES["rest"]}/readiness>; rel="status"; type="application/json"',
)
"""Links to the API's documents (RFC 8288, RFC 8631, RFC 9727), sent with every page."""

_LINK: Final[Header] = ("Link", ", ".join(API_LINKS))
PAGE_HEADERS: Final[Headers] = (*SITE_HEADERS, SAME_ORIGIN_RESOURCE, _LINK)
"""The headers of a page that the edge renders."""

ANY_ORIGIN: Final[Header] = ("Access-Control-Allow-Origin", "*")
API_HEADERS: Final[Headers] = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),  # data loads nothing
    *COMMON_HEADERS,
    SAME_ORIGIN_RESOURCE,
    ANY_ORIGIN,
    # Scripts of other origins may read these headers (Fetch, section 3.3.3).
    (
        "Access-Control-Expose-Headers",
        (
            "Content-Location, Content-Range, ETag, Idempotency-Replayed, Link, Location, "
            "RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-ID"
        ),
    ),
)
"""The headers of every answer of an operation, errors included."""

STRICT_TRANSPORT: Final[Header] = ("Strict-Transport-Security", "max-age=63072000")
"""Requires https for two years, for this host alone (RFC 6797); sent only by an https origin."""

PRIVATE_HEADERS: Final[Headers] = (
    ("Content-Security-Policy", SITE_CSP),
    *(pair for pair in COMMON_HEADERS if pair[0] != "Referrer-Policy"),
    ("Referrer-Policy", "same-origin"),
    ("X-Robots-Tag", "noindex, nofollow"),
    SAME_ORIGIN_RESOURCE,
)
"""The headers of the owner's pages."""
_SHARED_DRAFT_VALUES: Final = {
    # The text may be a credential's: its forms must not reach the desk, whatever the theme allows.
    "Content-Security-Policy": SITE_CSP.replace("form-action 'self'", "form-action 'none'"),
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}
SHARED_DRAFT_HEADERS: Final[Headers] = (
    ("Cache-Control", "no-store"),
    *((name, _SHARED_DRAFT_VALUES.get(name, value)) for name, value in PRIVATE_HEADERS),
)
"""The headers of shared drafts, whose addresses are secret: `Referrer-Policy` hides them."""
PREVIEW_HEADERS: Final[Headers] = tuple(
    pair
    for pair in SHARED_DRAFT_HEADERS
    if pair[0] not in ("Cache-Control", "X-Robots-Tag")  # the desk sends these with each page
)
"""The headers of a preview at the desk, whose text may be by somebody else."""


def page_headers(form_action: tuple[str, ...] = ()) -> Headers:
    """Return the headers of a page whose forms may also be sent to these origins (CSP 3, 6.4.1)."""
    if not form_action:
        return PAGE_HEADERS
    allowed = " ".join(("form-action 'self'", *form_action))
    policy = SITE_CSP.replace("form-action 'self'", allowed)
    return (("Content-Security-Policy", policy), *COMMON_HEADERS, SAME_ORIGIN_RESOURCE, _LINK)


def resource_policy(media_type: str) -> Header:
    """Return the header that lets other origins embed pictures and feeds, and no other file."""
    is_shared = media_type.startswith(("image/", "application/atom", "application/feed"))
    return ("Cross-Origin-Resource-Policy", "cross-origin") if is_shared else SAME_ORIGIN_RESOURCE
