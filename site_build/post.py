"""What a source file says, as frozen values: the one vocabulary of the build.

It knows neither Pelican nor HTML; whether something is public is decided here, once.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

Kind = Literal["post", "page"]


class Alias(NamedTuple):
    """A former address of a document."""

    path: str
    """Without its leading slash: `journal/old/` or `2019/old.html`."""
    slug: str
    """Of a post that stood there; empty where none could."""
    line: int
    """In the source file, from 1."""
    column: int
    """From 1, in code points."""


@dataclass(frozen=True, slots=True)
class Document:
    """One Markdown file of the content folder, read and understood."""

    path: str
    """Relative to the content folder, with `/`: `posts/hello.md`."""
    kind: Kind
    """`page` below `pages/`, `post` elsewhere."""
    slug: str
    address: str
    """Path of its page on the site, without a leading slash."""
    title: str
    description: str
    """Plain text; from the front matter, else from the first paragraph."""
    excerpt: str
    """Plain text; the description unless the front matter sets its own."""
    published: datetime
    """UTC. A page without a date carries the epoch and shows none."""
    updated: datetime
    """UTC; the instant of publication unless the front matter sets a later one."""
    tags: tuple[str, ...]
    lang: str
    """BCP 47 tag of the text's language; empty: the site's."""
    draft: bool
    markdown: str
    """The body, without front matter, with `\\n` line ends."""
    body_line: int
    """Line of the file (from 1) on which `markdown` starts."""
    digest: str
    """SHA-256 of the file's bytes, hexadecimal."""
    slug_at: tuple[int, int] = (1, 1)
    """Line and column of the slug in the file, from 1."""
    series: str = ""
    """Name of the series that it is a part of, as the author spells it; empty: none."""
    series_at: tuple[int, int] = (1, 1)
    """Those of the series' name."""
    author: str = ""
    """Who wrote it, by name; empty: the site's author."""
    category: str = ""
    """As Pelican has it; empty: the site's settings choose."""
    extra: tuple[tuple[str, object], ...] = ()
    """Keys and values of the front matter that the site's settings declare."""
    aliases: tuple[Alias, ...] = ()
    """Its former addresses, in the author's order."""

    def is_public_at(self, now: datetime) -> bool:
        """Tell whether readers may see the document at the instant `now` (UTC)."""
        return not self.draft and self.published <= now
