"""What the site's pages may load and do, as headers: said once, for the edge and for a preview."""

from typing import Final

Header = tuple[str, str]
Headers = tuple[Header, ...]

SITE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; media-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Content-Security-Policy (CSP level 3): a page's own origin only, and neither style nor
script inline."""

_UNUSED_FEATURES: Final = (
    "accelerometer",
    "camera",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "usb",
)

ALWAYS: Final[Headers] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Permissions-Policy", ", ".join(f"{feature}=()" for feature in _UNUSED_FEATURES)),
)
"""For every answer that a browser may show by itself."""

PART_HEADERS: Final[Headers] = tuple(
    (name, value) for name, value in ALWAYS if name != "Permissions-Policy"
)
"""For what is only ever part of a page. What a page may do is said by the page: said here too, it
would be heeded by nobody, and a first visit would wait for it."""

SITE_HEADERS: Final[Headers] = (("Content-Security-Policy", SITE_POLICY), *ALWAYS)
"""For every other file of the site; how far it may be embedded is said apart."""

EMBEDDED_HERE: Final[Header] = ("Cross-Origin-Resource-Policy", "same-origin")
