"""Which media type a file of the site has by its name: said once, for the edge and for a preview.

Pure: a name in, a type out.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
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
)
FEEDS: Final[Mapping[str, str]] = MappingProxyType(
    {"feed.xml": "application/atom+xml", "feed.json": "application/feed+json"}
)
"""By file name: an ending alone does not tell that it is a feed."""


def media_type(name: str) -> str:
    """Return the media type of a file, with the charset where it is text."""
    last = name.rpartition("/")[2].lower()
    ending = last.rpartition(".")[2] if "." in last else ""
    return FEEDS.get(last) or _TYPES.get(ending, "application/octet-stream")


def is_part(kind: str) -> bool:
    """Tell whether a media type is of what pages are put together from, and no page of its own.

    Pictures are not: one that is opened by itself may carry scripts.
    """
    return kind.startswith(("text/css", "text/javascript", "font/"))
