"""The data classes of a parsed document, whatever its format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from annotated_types import Interval

DocumentFormat = Literal["text", "markdown", "html"]
BlockKind = Literal["paragraph", "heading", "item", "cell"]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of prose; code is no prose."""

    kind: BlockKind  # `item`: an entry of a list, a caption or the like
    text: str  # with single spaces, not empty


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading."""

    level: Annotated[int, Interval(ge=1, le=6)] = field(metadata={"description": "Its rank."})
    text: str = field(metadata={"description": "Its text."})


@dataclass(frozen=True)
class PageMetadata:
    """Properties of a whole HTML page."""

    page_language: str | None = None
    description: str | None = None
    has_main: bool = False
    has_canonical: bool = False
    has_open_graph: bool = False
    json_ld: int = 0  # the number of blocks of JSON-LD
    json_ld_errors: int = 0  # the number of blocks that are not valid JSON
    json_ld_types: tuple[str, ...] = ()  # each once, in the order of the page


@dataclass(frozen=True)
class Counts:
    """Counts of links, images, lists and tables."""

    links: int = 0
    external_links: int = 0  # to another host
    links_without_text: int = 0
    images: int = 0
    images_without_alt: int = 0  # `alt=""` counts as alt text: decoration (HTML, 4.8.4.4)
    lists: int = 0
    tables: int = 0
    tables_without_header: int = 0


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The parts of a document that are analysed."""

    kind: DocumentFormat
    title: str | None
    blocks: tuple[Block, ...]
    headings: tuple[Heading, ...] = ()
    counts: Counts = Counts()
    page: PageMetadata | None = None  # `None` for text, Markdown and fragments of HTML
    reading_time_text: str = ""  # the text whose reading time is estimated


ROBOTS: Final = "/robots.txt"
LLMS: Final = "/llms.txt"
SITEMAP: Final = "/sitemap.xml"
API_CATALOG: Final = "/.well-known/api-catalog"  # RFC 9727
AI_CATALOG: Final = "/.well-known/ai-catalog.json"  # names MCP servers
WELL_KNOWN_PATHS: Final = (ROBOTS, LLMS, SITEMAP, API_CATALOG, AI_CATALOG)
"""The well-known files, in the order in which they are requested."""

Discovery = Mapping[str, str | None]
"""The content of each requested well-known file, or `None` if the site does not have it."""
