"""Turns links of an old journal into links between source files of the new one."""

import posixpath
import re
from collections.abc import Callable
from html import unescape
from typing import Final, NamedTuple
from unicodedata import normalize
from urllib.parse import quote, unquote, urljoin, urlsplit

from site_build.checks.raw_markup import blank_code
from site_build.importers.imported import SOURCE

_PLACES: Final = re.compile(
    r"<(pre|code|script|style)\b.*?</\1>|<!--.*?-->"
    r"|\]\(\s*(?:<(?P<pointed>[^<>\n]*)>|(?P<plain>[^\s()<>]+(?:\([^\s()]*\)[^\s()<>]*)*))"
    r"|^[ >]{0,6}\[[^\]\n^][^\]\n]*\]:[ \t]*(?:<(?P<defined>[^<>\n]*)>|(?P<reference>[^\s<>]+))"
    r"|(?P<srcset>\ssrcset\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'))"
    r"|(?<=\s)(?:href|src|poster)\s*=\s*(?:\"(?P<double>[^\"<>]*)\"|'(?P<single>[^'<>]*)')",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
"""Places of links, in named groups; a match without such a group is left alone."""


def name_address(path: str) -> str:
    """Return the key of all forms of an address: without outer slashes and without a suffix."""
    path, mark, query = normalize("NFC", path).partition("?")
    ending = r"(?:(?:^|/)_?index)?\.(?:md|markdown|mdx|mkd|mdown|rst|html?)$|(?:^|/)index$"
    return re.sub(ending, "", path.strip("/")) + (mark + query if query else "")


def canonical(address: str) -> str:
    """Return the canonical form of an old address: no leading slash, but one after a folder."""
    path, mark, query = normalize("NFC", address).lstrip("/").partition("?")
    path = re.sub(r"(?:^|(?<=/))index\.html?$", "", path)
    is_folder = path and "." not in posixpath.basename(path)
    return f"{path.rstrip('/')}/{mark}{query}" if is_folder else f"{path}{mark}{query}"


def rewrite_links(text: str, resolve: Callable[[str, int], str]) -> str:
    """Return Markdown with each link replaced by what `resolve` returns for it and its offset.

    Code is left alone, and `srcset` is dropped, since the build makes lighter pictures itself.
    """
    pieces, done = [], 0
    for found in _PLACES.finditer(blank_code(text)):
        if place := found.lastgroup:
            at, end = found.span(place)
            pieces += [text[done:at], "" if place == "srcset" else resolve(text[at:end], at)]
            done = end
    return "".join([*pieces, text[done:]])


class Links(NamedTuple):
    """Targets of links of the old journal: a path in the content folder, or `/` and an address.

    The keys of both tables are those that `name_address` returns.
    """

    host: str
    """Host of the old journal, without `www.`."""
    addresses: dict[str, str]
    """Targets by old address."""
    sources: dict[str, str]
    """Targets by path below the root of the old journal."""

    def find(self, link: str, base: str = "", address: str = "/") -> tuple[str, str] | None:
        """Return the target of a link and its fragment; None for a broken link.

        `base` is the path, below the root, of the text that has the link, and `address` the old
        address of that text. A link to another site is returned as it is.
        """
        try:
            parts = urlsplit(unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", link.strip())))
        except ValueError:
            return link, ""
        is_source = parts.scheme == SOURCE[:-1]
        is_own = is_source or parts.netloc.removeprefix("www.").lower() == self.host != ""
        path = parts.path or "/" * is_own
        if not is_own and (parts.scheme or parts.netloc or not (path or parts.query)):
            return link, ""
        old_address = urljoin(address, path)
        tables = [
            (self.sources, urljoin("/" if is_source else f"/{base}", path)),
            # A query may be the address, as in `/?p=12`, or only say how old a file is.
            (self.addresses, f"{old_address}?{parts.query}"),
            (self.addresses, old_address),
        ]
        # Relative links are mostly paths between files, and absolute ones addresses.
        addresses_first = [*tables[1:], *tables[:1]]
        ordered = tables[:1] if is_source else addresses_first if path[:1] == "/" else tables
        found = (table.get(name_address(unquote(each))) for table, each in ordered)
        target = next(filter(None, found), None)
        return (target, f"#{parts.fragment}" * bool(parts.fragment)) if target else None


def write_link(target: str, fragment: str, path: str) -> str:
    """Return a link from the source file `path` to a target that `Links` found."""
    if re.match(r"#|//|[A-Za-z][\w+.-]*:", target):
        return target
    relative = target if target[:1] == "/" else posixpath.relpath(target, posixpath.dirname(path))
    # Letters of other scripts stay readable, and a fragment may be encoded already.
    escaped = (r"[\s%()<>\[\]{}\"'\\?#&*`|:]", relative), (r"[\s()<>\"'`|]", fragment)
    return "".join(re.sub(each, lambda sign: quote(sign[0], ""), part) for each, part in escaped)
