"""What the site's pages may load and do: said once, for the edge and for a preview of them."""

from typing import Final

SITE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; media-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Content-Security-Policy (CSP level 3): a page's own origin only, nothing inline."""
