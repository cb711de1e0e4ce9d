"""A document as analysis sees it, whatever it was written in. Values only."""

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["text", "markdown", "html"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BlockKind = Literal["paragraph", "heading", "item", "cell"]


@dataclass(frozen=True, slots=True)
class Block:
    """A run of prose that stands by itself; code is no prose."""

    kind: BlockKind
    """`item` is an entry of a list, a caption or the like; `cell` is one of a table."""
    text: str
    """With single spaces, and at least one character."""


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading."""

    level: int
    """1 to 6."""
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """What only a whole HTML page can say of itself."""

    language: str | None = None
    description: str | None = None
    has_main: bool = False
    has_canonical: bool = False
    has_open_graph: bool = False
    json_ld: int = 0
    """How many blocks of JSON-LD there are."""
    json_ld_faults: int = 0
    """How many of them are no JSON."""
    json_ld_types: tuple[str, ...] = ()
    """Their types, each once, in the order in which they stand."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many there are of what is counted."""

    links: int = 0
    external_links: int = 0
    """Those that lead to another host."""
    links_without_text: int = 0
    images: int = 0
    images_without_alt: int = 0
    """An empty `alt` is one: it says that the image is decoration (HTML, 4.8.4.4)."""
    lists: int = 0
    tables: int = 0
    tables_without_header: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document."""

    kind: Kind
    title: str | None
    blocks: tuple[Block, ...]
    headings: tuple[Heading, ...] = ()
    counts: Counts = Counts()
    page: Page | None = None
    """`None` for text, for Markdown, and for a fragment of HTML."""
    reading: str = ""
    """The text that its reading time is taken from."""
