"""What rules ask of a document: one flat value of counts, made of everything that was found."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Final

from edge_api.analysis.document import Counts, Document, Page
from edge_api.analysis.metrics import Metrics, count_words

ROBOTS: Final = "/robots.txt"
LLMS: Final = "/llms.txt"
SITEMAP: Final = "/sitemap.xml"
API_CATALOG: Final = "/.well-known/api-catalog"
"""RFC 9727."""
AI_CATALOG: Final = "/.well-known/ai-catalog.json"
"""Where agents look for MCP servers."""

PLACES: Final = (ROBOTS, LLMS, SITEMAP, API_CATALOG, AI_CATALOG)
"""In the order in which they are looked at; the page itself makes six."""

Discovery = Mapping[str, str | None]
"""By place, what stands there; `None` for nothing. A place that was not looked at is absent."""


_FIGURE: Final = re.compile(r"\d+(?:[.,:/\-]\d+)*")
_LINE: Final = 12
"""Words; what has fewer is a date, a byline or a caption."""
_LINK: Final = re.compile(r"\]\([^)\s]")
_SITEMAP_LINE: Final = re.compile(r"^[ \t]*sitemap[ \t]*:", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(Counts):
    """Everything that a rule may look at; `None` where the question makes no sense."""

    has_markup: bool
    """Whether there could be headings and links at all."""
    is_page: bool
    words: int
    sentences: int
    paragraphs: int
    avg_sentence_words: float
    lix: float | None
    flesch: float | None
    long_sentences: int
    long_paragraphs: int
    opening_words: int
    """In the first paragraph that is more than a line; 0 where there is none."""
    figures: int
    """Numbers and dates in the prose."""
    headings: int
    top_headings: int
    skipped_levels: int
    """Headings that stand more than one level below the one before."""
    title_length: int
    description_length: int
    has_language: bool
    has_main: bool
    has_canonical: bool
    has_open_graph: bool
    json_ld: int
    json_ld_faults: int
    has_llms: bool | None
    llms_has_title: bool | None
    llms_links: int | None
    has_robots: bool | None
    robots_names_sitemap: bool | None
    has_sitemap: bool | None
    has_api_catalog: bool | None
    has_ai_catalog: bool | None


def gather_facts(document: Document, metrics: Metrics, discovery: Discovery | None) -> Facts:
    """Return the facts of a document, and of the origin it stands at, if it stands at one."""
    found = discovery or {}
    page, counts = document.page or Page(), document.counts
    llms, robots = found.get(LLMS), found.get(ROBOTS)
    return Facts(
        has_markup=document.kind != "text",
        is_page=document.page is not None,
        words=metrics.words,
        sentences=metrics.sentences,
        paragraphs=metrics.paragraphs,
        avg_sentence_words=metrics.avg_sentence_words,
        lix=metrics.lix,
        flesch=metrics.flesch_reading_ease,
        long_sentences=metrics.long_sentences,
        long_paragraphs=metrics.long_paragraphs,
        opening_words=_opening(document),
        figures=sum(1 for each in document.blocks for _ in _FIGURE.finditer(each.text)),
        headings=len(document.headings),
        top_headings=sum(heading.level == 1 for heading in document.headings),
        skipped_levels=_skipped(document),
        **asdict(counts),
        title_length=len(document.title or ""),
        description_length=len(page.description or ""),
        has_language=page.language is not None,
        has_main=page.has_main,
        has_canonical=page.has_canonical,
        has_open_graph=page.has_open_graph,
        json_ld=page.json_ld,
        json_ld_faults=page.json_ld_faults,
        has_llms=_stands(found, LLMS),
        llms_has_title=None if llms is None else llms.lstrip("\ufeff").startswith("# "),
        llms_links=None if llms is None else sum(1 for _ in _LINK.finditer(llms)),
        has_robots=_stands(found, ROBOTS),
        robots_names_sitemap=None if robots is None else bool(_SITEMAP_LINE.search(robots)),
        has_sitemap=_stands(found, SITEMAP),
        has_api_catalog=_stands(found, API_CATALOG),
        has_ai_catalog=_stands(found, AI_CATALOG),
    )


def _stands(found: Discovery, place: str) -> bool | None:
    """Tell whether something stands at a place; `None` where nobody looked."""
    return found[place] is not None if place in found else None


def _opening(document: Document) -> int:
    paragraphs = (block.text for block in document.blocks if block.kind == "paragraph")
    return next((words for words in map(count_words, paragraphs) if words >= _LINE), 0)


def _skipped(document: Document) -> int:
    levels = [heading.level for heading in document.headings]
    return sum(after > before + 1 for before, after in pairwise(levels))
