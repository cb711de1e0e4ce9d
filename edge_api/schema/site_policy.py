"""Headers of the site's files: the policy of its pages, and media types by the files' names."""

from collections.abc import Mapping
from typing import Final

_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "xml": "application/xml",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "webmanifest": "application/manifest+json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "ico": "image/x-icon",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "woff2": "font/woff2",
}
FEEDS: Final[Mapping[str, str]] = {
    "feed.xml": "application/atom+xml",
    "feed.json": "application/feed+json",
}
"""Media types of feeds by file name, as a suffix does not show that a file is a feed."""


def media_type(name: str) -> str:
    """Return the media type of a file, with the charset where it is text."""
    last = name.rpartition("/")[2].lower()
    ending = last.rpartition(".")[2] if "." in last else ""
    return FEEDS.get(last) or _TYPES.get(ending, "application/octet-stream")


def is_subresource(kind: str) -> bool:
    """Return whether a media type is that of a style sheet, a script or a font.

    Pictures do not count: one that is opened by itself, such as an SVG, may run scripts.
    """
    return kind.startswith(("text/css", "text/javascript", "font/"))


Header = tuple[str, str]
Headers = tuple[Header, ...]

SITE_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; media-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Content-Security-Policy (CSP level 3): only a page's own origin, no inline style or script."""

COMMON_HEADERS: Final[Headers] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    (
        "Permissions-Policy",
        (
            "accelerometer=(), camera=(), geolocation=(), gyroscope=(), magnetometer=(), "
            "microphone=(), midi=(), payment=(), usb=()"
        ),
    ),
)
"""Headers of every response that a browser may show by itself."""

SUBRESOURCE_HEADERS: Final[Headers] = tuple(
    (name, value) for name, value in COMMON_HEADERS if name != "Permissions-Policy"
)
"""Headers of files that are only used within pages. They lack Permissions-Policy, which browsers
ignore there, and for whose bytes a first visit would wait."""

SITE_HEADERS: Final[Headers] = (("Content-Security-Policy", SITE_CSP), *COMMON_HEADERS)
"""Headers of all other files of the site; the edge adds `Cross-Origin-Resource-Policy`."""

SAME_ORIGIN_RESOURCE: Final[Header] = ("Cross-Origin-Resource-Policy", "same-origin")
