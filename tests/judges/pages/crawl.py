"""The pages of a served journal: those of its sitemap, and those that its links lead to.

Nothing about the journal is known beforehand, so that a page which is added is judged.
"""

import re
from urllib.parse import quote, urldefrag, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser

from edge_api.schema import paths
from tests.judges.pages.served import Served

_LOCATION = re.compile(r"<loc>([^<]+)</loc>")
_MOST = 5000
"""Pages of one journal; links that lead on without an end are a fault of their own."""
_PLAIN = "/%:@!$&'()*+,;=~"
"""Signs that stand for themselves in a path (RFC 3986, section 3.3), and what spells the others."""
_ALSO = (paths.SEARCH, paths.DOCS, paths.TRY_OUT_PATH)
"""Pages of the edge, looked for even where no link leads to them."""


def mapped(served: Served) -> list[str]:
    """Return the paths that the sitemap names."""
    _, _, body = served.get("/sitemap.xml")
    return [urlsplit(found).path for found in _LOCATION.findall(body.decode())]


def crawl(served: Served) -> dict[str, bytes]:
    """Return every page that can be reached by links and the sitemap: its HTML, by its path."""
    found: dict[str, bytes] = {}
    known = ["/", *mapped(served), *_ALSO]
    seen = set(known)
    while known:
        path = known.pop()
        status, headers, body = served.get(path)
        if status != 200 or not headers.get("content-type", "").startswith("text/html"):
            continue
        found[path] = body
        assert len(found) < _MOST, f"more than {_MOST} pages, the last of them {path}"
        new = set(linked(served, path, body)) - seen
        seen |= new
        known += sorted(new)
    return dict(sorted(found.items()))


def linked(served: Served, path: str, body: bytes) -> list[str]:
    """Return the paths of this origin that a page links to, without queries."""
    bases = (served.origin, served.site_url)
    targets = []
    for node in LexborHTMLParser(body).css("a[href]"):
        target = urldefrag(urljoin(served.origin + path, node.attributes["href"] or "")).url
        parts = urlsplit(target)
        if f"{parts.scheme}://{parts.netloc}" in bases and not parts.path.startswith("/api/"):
            targets.append(quote(parts.path, safe=_PLAIN) or "/")
    return targets


def kind(path: str, pages: dict[str, bytes]) -> str:
    """Return what a path looks like when parts that vary are left out: `/journal/*/`.

    A part varies when a page of its own is above it, or when it is a number.
    """
    shape = above = "/"
    for part in path.strip("/").split("/") if path != "/" else []:
        varies = part.isdecimal() or (above != "/" and above in pages)
        shape += f"{'*' if varies else part}/"
        above += f"{part}/"
    return shape if path.endswith("/") else shape.removesuffix("/")


def largest_of_each_kind(pages: dict[str, bytes]) -> list[str]:
    """Return one path for each kind of page: of the one with most in it."""
    chosen: dict[str, str] = {}
    for path in sorted(pages, key=lambda path: (len(pages[path]), path)):
        chosen[kind(path, pages)] = path
    return sorted(chosen.values())
