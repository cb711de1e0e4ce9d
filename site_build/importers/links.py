"""Makes links of an old journal links of the new one: between source files, as code hosts do."""

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
    """Return what the forms of one address have in common: no slashes at its ends, no suffix."""
    path, mark, query = normalize("NFC", path).partition("?")
    ending = r"(?:(?:^|/)_?index)?\.(?:md|markdown|mdx|mkd|mdown|rst|html?)$|(?:^|/)index$"
    return re.sub(ending, "", path.strip("/")) + (mark + query if query else "")


def canonical(address: str) -> str:
    """Return the one form of an old address: no leading slash, but one behind a folder."""
    path, mark, query = normalize("NFC", address).lstrip("/").partition("?")
    path = re.sub(r"(?:^|(?<=/))index\.html?$", "", path)
    is_folder = path and "." not in posixpath.basename(path)
    return f"{path.rstrip('/')}/{mark}{query}" if is_folder else f"{path}{mark}{query}"


def rewrite_links(text: str, resolve: Callable[[str, int], str]) -> str:
    """Return Markdown in which each link is what `resolve` gives for it and its offset.

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

    Both tables have names that `name_address` gives.
    """

    host: str
    """Of the old journal, without `www.`."""
    addresses: dict[str, str]
    sources: dict[str, str]
    """By path below the root of the old journal."""

    def find(self, link: str, base: str = "", address: str = "/") -> tuple[str, str] | None:
        """Return what a link leads to and its fragment; None where it meets nothing.

        `base` is the path of the text that has it, below the root, and `address` where it stood.
        A link out of the journal leads to itself.
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
        stood = urljoin(address, path)
        tables = [
            (self.sources, urljoin("/" if is_source else f"/{base}", path)),
            # A query may be the address, as in `/?p=12`, or only say how old a file is.
            (self.addresses, f"{stood}?{parts.query}"),
            (self.addresses, stood),
        ]
        # What is relative was most often written between files; what is not, for a browser.
        for_browsers = [*tables[1:], *tables[:1]]
        ordered = tables[:1] if is_source else for_browsers if path[:1] == "/" else tables
        found = (table.get(name_address(unquote(each))) for table, each in ordered)
        target = next(filter(None, found), None)
        return (target, f"#{parts.fragment}" * bool(parts.fragment)) if target else None


def write_link(target: str, fragment: str, path: str) -> str:
    """Return a link to what `Links` found as the source file `path` writes it."""
    if re.match(r"#|//|[A-Za-z][\w+.-]*:", target):
        return target
    relative = target if target[:1] == "/" else posixpath.relpath(target, posixpath.dirname(path))
    # Letters of other scripts stay readable, and a fragment may be encoded already.
    signs = (r"[\s%()<>\[\]{}\"'\\?#&*`|:]", relative), (r"[\s()<>\"'`|]", fragment)
    return "".join(re.sub(each, lambda sign: quote(sign[0], ""), part) for each, part in signs)
