"""The theme's static files under names that carry their digest, so that browsers keep them.

A style sheet goes out without its comments, and its references to its neighbours get their new
names. It knows nothing of pages.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import quote

from site_build import addresses
from site_build.faults import BuildError

_URL = re.compile(rb"""url\(\s*(?P<quote>["']?)(?P<address>[^"')\s]+)(?P=quote)\s*\)""")
_COMMENT = re.compile(
    rb"""(?P<kept>"(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | url\([^"')]*\) | /\*!.*?\*/)
    | (?P<before>\s*) /\*(?!!).*?\*/ (?P<after>\s*)""",
    re.DOTALL | re.VERBOSE,
)
"""A comment of a style sheet, or what may hold the like of one (CSS Syntax Level 3, section 4.3.2).
One that begins with `!` is a licence's by custom, and stays."""
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|/|#", re.IGNORECASE)
_BETWEEN = re.compile(rb">\s+<")
_PLAIN = "!$&'()*+,-./:;=?@_~"
"""What needs no escape in an address (URL Standard, section 4.3)."""
_DIGITS = 12
"""Of the digest, hexadecimal: no two versions of a file meet."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file as it is published."""

    path: str
    """Relative to the site's folder."""
    data: bytes


class Assets:
    """The theme's static files by the names that its author gave them."""

    def __init__(self, folder: Path) -> None:
        self.published: dict[str, Asset] = {}
        self._originals = _list_files(folder)
        # Style sheets come last: they name the others, whose digests must be known by then.
        for name in sorted(self._originals, key=lambda name: (name.endswith(".css"), name)):
            data = self._originals[name].read_bytes()
            if name.endswith(".css"):
                data = self._rename_references(name, _drop_comments(data))
            self.published[name] = Asset(_name_by_digest(name, data), data)

    def locate(self, name: str) -> str:
        """Return the address of a static file, from the root; raises BuildError for none."""
        if name not in self.published:
            raise BuildError(f"a template asks for asset('{name}'), which is not in theme/static/")
        return f"/{self.published[name].path}"

    def embed(self, name: str) -> str:
        """Return an SVG picture as an address that needs no request (RFC 2397).

        Raises BuildError for one that is not there, and for a file of another kind.
        """
        if not name.endswith(".svg"):
            raise BuildError(f"a template asks for embedded('{name}'), which is for SVG pictures")
        self.locate(name)
        source = _BETWEEN.sub(b"><", self.published[name].data.strip())
        return f"data:image/svg+xml,{quote(source, safe=_PLAIN)}"

    def _rename_references(self, sheet: str, data: bytes) -> bytes:
        def rename(found: re.Match[bytes]) -> bytes:
            address = found["address"].decode()
            if _OUTSIDE.match(address):
                return found[0]
            path, mark, rest = address.partition("#")
            name = normpath(PurePosixPath(sheet).parent / path)
            if name not in self.published:
                raise BuildError(f"theme/static/{sheet} names {address}, which is not there")
            return f'url("{self.locate(name)}{mark}{rest}")'.encode()

        return _URL.sub(rename, data)


def _drop_comments(sheet: bytes) -> bytes:
    """Return a style sheet without comments; where they alone part two tokens, they still do."""

    def shorten(found: re.Match[bytes]) -> bytes:
        if found["kept"] is not None:
            return found[0]
        return b"\n" if found["before"] or found["after"] else b"/**/"

    return _COMMENT.sub(shorten, sheet).lstrip()


def _list_files(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def _name_by_digest(name: str, data: bytes) -> str:
    path = PurePosixPath(name)
    digest = hashlib.sha256(data).hexdigest()[:_DIGITS]
    return f"{addresses.THEME}{path.with_name(f'{path.stem}.{digest}{path.suffix}')}"
