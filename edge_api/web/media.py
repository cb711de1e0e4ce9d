"""What kind of thing a file of the site is, as headers say it: its type, its caching, its links.

Pure: names in, header fields out.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from edge_api.api.reply import NEGOTIATED, REVALIDATED
from edge_api.domain.site_files import INDEX, WELL_KNOWN, SiteFile
from edge_api.schema.media_types import FEEDS, is_part, media_type
from edge_api.schema.site_policy import PART_HEADERS, SITE_HEADERS, Headers
from edge_api.web.headers import ANY_ORIGIN, API_LINKS, embedding

_HASHED: Final = re.compile(
    r"theme/(?:.+/)?[^/]+\.[0-9a-f]{8,64}\.\w+|pictures/[0-9a-f]{8,64}/[^/]+"
)
"""What carries the hash of its content in its name or its folder: such a name never changes
meaning."""

_TWIN: Final = "index.md"

FOREVER: Final = "public, max-age=31536000, immutable"
BRIEFLY: Final = "public, max-age=300"

_FOR_MACHINES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "/llms.txt": 'rel="describedby"; type="text/plain"',
        "/sitemap.xml": 'rel="sitemap"; type="application/xml"',
    }
)
"""Files that every page points at, where the build has them."""
_FEEDS: Final = ("feed.xml", "feed.json")


def caching(name: str) -> str:
    """Return how long caches may go on giving a file out."""
    if _HASHED.fullmatch(name):
        return FOREVER
    return REVALIDATED if name.endswith((".html", ".md")) else BRIEFLY


def twin_of(files: Mapping[str, SiteFile], file: SiteFile) -> SiteFile | None:
    """Return the Markdown form of a page, where the build has one."""
    if not file.name.endswith(".html"):
        return None
    return files.get(f"/{file.name.removesuffix('.html')}.md")


def describe(files: Mapping[str, SiteFile], file: SiteFile, *, negotiated: bool) -> Headers:
    """Return the header fields that say what a file is, whatever its coding.

    `negotiated`: it was chosen by `Accept`, in place of the page at the same address.
    """
    kind = media_type(file.name)
    varies = "Accept, Accept-Encoding" if negotiated or twin_of(files, file) else "Accept-Encoding"
    location: Headers = (("Content-Location", quote(f"/{file.name}")),) if negotiated else ()
    return (
        ("Content-Type", kind),
        ("Cache-Control", NEGOTIATED if negotiated else caching(file.name)),
        ("Vary", varies),
        *location,
        *_links(files, file),
        embedding(kind),
        *((ANY_ORIGIN,) if is_for_scripts(file) else ()),
        *(PART_HEADERS if is_part(kind) else SITE_HEADERS),
    )


def is_for_scripts(file: SiteFile) -> bool:
    """Tell whether scripts of any origin may read a file: those that are made for programs."""
    return file.name.startswith(f"{WELL_KNOWN}/") or media_type(file.name) in FEEDS.values()


def _links(files: Mapping[str, SiteFile], file: SiteFile) -> Headers:
    """Return where machines find more about a page (RFC 8288), and the page of a twin."""
    if file.name.endswith(".md"):
        page = f"/{file.name.removesuffix('index.md')}"
        is_twin = file.name.endswith("index.md") and page in files
        return (("Link", f'<{quote(page)}>; rel="canonical"'),) if is_twin else ()
    if not file.name.endswith(".html"):
        return ()
    twin = twin_of(files, file)
    own = [f'<{quote(f"/{twin.name}")}>; rel="alternate"; type="text/markdown"'] if twin else []
    feeds = [
        f'<{quote(path)}>; rel="alternate"; type="{media_type(path)}"'
        for path in _list_feeds(file)
        if path in files
    ]
    machines = [f"<{path}>; {rest}" for path, rest in _FOR_MACHINES.items() if path in files]
    return (("Link", ", ".join([*own, *feeds, *machines, *API_LINKS])),)


def _list_feeds(file: SiteFile) -> list[str]:
    """Return where feeds of a page may stand: beside it, and in the root for the whole journal."""
    folder = f"/{file.name.removesuffix(INDEX)}"
    folders = ["/"] if folder == "/" or not folder.endswith("/") else [folder, "/"]
    return [f"{each}{feed}" for each in folders for feed in _FEEDS]


def list_redirects(
    moved: Mapping[str, str], files: Mapping[str, SiteFile]
) -> Iterator[tuple[str, str]]:
    """Yield the address that each name of a moved page leads to; its Markdown leads to Markdown."""
    for former, present in moved.items():
        address = quote(present)
        twin = f"{present}{_TWIN}"
        if former.endswith("/"):
            yield from ((name, address) for name in (former[:-1], f"{former}{INDEX}"))
        name = f"{former}{_TWIN}" if former.endswith("/") else f"{former.removesuffix('.html')}.md"
        yield name, quote(twin) if twin in files else address
        yield former, address


def address_of(files: Mapping[str, SiteFile], path: str) -> str | None:
    """Return the one address of a page that was asked for by another of its names."""
    folder = path.removesuffix(INDEX) if path.endswith(f"/{INDEX}") else f"{path}/"
    return quote(folder) if folder in files else None
