"""The rules for a good document, each with its fix, in one table.

A rule returns 0 to 1, or `None` if it does not apply; important rules have a higher weight. The
finding and the fix are sentences; the finding includes the facts that it is about.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from edge_api.analysis.document import Counts, PageMetadata
from edge_api.analysis.metrics import LONG_PARAGRAPH, LONG_SENTENCE, TextMetrics

SignalName = Literal[
    "semantic_html",
    "structured_data",
    "citability",
    "readability",
    "llms_txt",
    "protocol_discovery",
]

SIGNALS: Final[Mapping[SignalName, int]] = {
    "semantic_html": 25,
    "structured_data": 15,
    "citability": 25,
    "readability": 20,
    "llms_txt": 5,
    "protocol_discovery": 10,
}
"""The weight of each signal."""

SHORT_TEXT: Final = 300  # words; a text without more of them needs no headings and no lists
MIN_SAMPLE: Final = 50  # words; a shorter text is not rated by the formulas of readability
MAX_TITLE: Final = 70  # characters
MAX_DESCRIPTION: Final = 200  # characters

RuleValue = float | None


@dataclass(frozen=True, kw_only=True)
class Facts(Counts, PageMetadata, TextMetrics):
    """The input of the rules, as one flat value; `None` where it does not apply."""

    has_markup: bool  # whether it can have headings and links
    is_page: bool
    opening_words: int  # in the first paragraph that is more than a line; 0 without one
    figures: int  # numbers and dates in the prose
    headings: int
    top_headings: int
    skipped_levels: int  # headings more than one level below the one before
    title_length: int
    description_length: int
    has_llms: bool | None
    llms_has_title: bool | None
    llms_links: int | None
    has_robots: bool | None
    robots_names_sitemap: bool | None
    has_sitemap: bool | None
    has_api_catalog: bool | None
    has_ai_catalog: bool | None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for one property of a document."""

    value: Callable[[Facts], RuleValue]  # 0 to 1; `None` where the rule does not apply
    finding: str  # what is wrong if the value is below 1; names of facts are in braces
    fix: str
    weight: int = 1


def passing_share(bad: int, total: int) -> float | None:
    """Return the share of `total` that is not bad; `None` if `total` is 0."""
    return None if total == 0 else 1 - bad / total


def ramp(value: float, good: float, bad: float) -> float:
    """Return 1 up to `good` and 0 from `bad` on, in either direction; linear in between."""
    return min(1.0, max(0.0, (bad - value) / (bad - good)))


def when(condition: object, value: RuleValue) -> RuleValue:
    """Return the value if the rule applies, else `None`."""
    return value if condition else None


def _top_headings(facts: Facts) -> RuleValue:
    """Require exactly one heading of level 1; a fragment may have none."""
    if facts.is_page:
        return ramp(abs(facts.top_headings - 1), 0, 2) if facts.top_headings else 0
    return when(facts.headings, facts.top_headings <= 1)


def _rate_formula(facts: Facts, value: float | None, good: float, bad: float) -> RuleValue:
    """Rate the value of a readability formula, unless the text is too short for it."""
    return when(value is not None and facts.words >= MIN_SAMPLE, ramp(value or 0.0, good, bad))


RULES: Final[Mapping[SignalName, Mapping[str, Rule]]] = {
    "semantic_html": {
        "one-h1": Rule(
            _top_headings,
            "headings of level 1: {top_headings}",
            "Give the document exactly one h1 that says what it is about.",
            weight=2,
        ),
        "heading-order": Rule(
            lambda facts: passing_share(facts.skipped_levels, facts.headings),
            "{skipped_levels} of {headings} headings skip a level",
            "Let each heading stand at most one level below the one before.",
        ),
        "image-alt": Rule(
            lambda facts: passing_share(facts.images_without_alt, facts.images),
            "{images_without_alt} of {images} images have no alt text",
            "Describe each image in alt; leave alt empty for decoration.",
            weight=2,
        ),
        "link-text": Rule(
            lambda facts: passing_share(facts.links_without_text, facts.links),
            "{links_without_text} of {links} links have no text",
            "Give each link a text that says where it leads.",
            weight=2,
        ),
        "table-header": Rule(
            lambda facts: passing_share(facts.tables_without_header, facts.tables),
            "{tables_without_header} of {tables} tables have no header cells",
            "Mark the cells that name rows or columns as th.",
        ),
        "main-landmark": Rule(
            lambda facts: when(facts.is_page, facts.has_main),
            "there is no main element",
            "Put the content into a main element, apart from navigation and footer.",
        ),
        "page-language": Rule(
            lambda facts: when(facts.is_page, facts.page_language is not None),
            "the page does not say its language",
            "State the language in the lang attribute of html.",
        ),
    },
    "structured_data": {
        "page-title": Rule(
            lambda facts: when(facts.is_page, facts.title_length > 0),
            "the page has no title",
            "Give the page a title element.",
            weight=2,
        ),
        "title-length": Rule(
            lambda facts: when(
                facts.is_page and facts.title_length, facts.title_length <= MAX_TITLE
            ),
            "the title has {title_length} characters",
            f"Keep the title within {MAX_TITLE} characters.",
        ),
        "description": Rule(
            lambda facts: when(facts.is_page, 0 < facts.description_length <= MAX_DESCRIPTION),
            "the description has {description_length} characters",
            f"Describe the page in a meta description of up to {MAX_DESCRIPTION} characters.",
            weight=2,
        ),
        "json-ld": Rule(
            lambda facts: when(facts.is_page, facts.json_ld > 0),
            "there is no JSON-LD",
            "Say in JSON-LD what the page is: for a post, an Article with author and dates.",
            weight=2,
        ),
        "json-ld-valid": Rule(
            lambda facts: passing_share(facts.json_ld_errors, facts.json_ld),
            "{json_ld_errors} of {json_ld} blocks of JSON-LD are not valid JSON",
            "Fix the JSON in the blocks of JSON-LD.",
        ),
        "open-graph": Rule(
            lambda facts: when(facts.is_page, facts.has_open_graph),
            "there is no og:title",
            "Add Open Graph properties, so that shared links show a title.",
        ),
        "canonical": Rule(
            lambda facts: when(facts.is_page, facts.has_canonical),
            "there is no canonical link",
            "Name the address of the page in a canonical link.",
        ),
    },
    "citability": {
        "substance": Rule(
            lambda facts: ramp(facts.words, SHORT_TEXT, 50),
            "the text has {words} words",
            f"Say more: with {SHORT_TEXT} words or more, an answer can quote the text in context.",
            weight=2,
        ),
        "sections": Rule(
            lambda facts: when(
                facts.has_markup and facts.words > SHORT_TEXT,
                ramp(facts.words / max(1, facts.headings), 250, 800),
            ),
            "headings: {headings}, over {words} words",
            "Put a heading over every 250 words or so, which says what follows.",
            weight=2,
        ),
        "short-paragraphs": Rule(
            lambda facts: passing_share(facts.long_paragraphs, facts.paragraphs),
            "{long_paragraphs} of {paragraphs} paragraphs have more than "
            f"{LONG_PARAGRAPH} words",
            "Divide long paragraphs: one thought each can be quoted by itself.",
            weight=2,
        ),
        "opening": Rule(
            lambda facts: when(
                facts.words > SHORT_TEXT,
                ramp(facts.opening_words, 100, 250) if facts.opening_words else 0,
            ),
            "the first paragraph that is more than a line has {opening_words} words",
            "Begin with a paragraph of one to four sentences that says what the text is about.",
        ),
        "figures": Rule(
            lambda facts: when(
                facts.words > SHORT_TEXT, ramp(facts.figures, max(1, facts.words / 200), 0)
            ),
            "figures and dates: {figures}, in {words} words",
            "State figures and dates where there are any: they are what is quoted.",
        ),
        "sources": Rule(
            lambda facts: when(
                facts.has_markup and facts.words > SHORT_TEXT, facts.external_links > 0
            ),
            "no link leads to a source elsewhere",
            "Link the sources of what is claimed.",
        ),
        "lists": Rule(
            lambda facts: when(
                facts.has_markup and facts.words > 2 * SHORT_TEXT,
                1.0 if facts.lists + facts.tables else 0.5,
            ),
            "there is no list and no table",
            "Put steps and comparisons into lists and tables.",
        ),
    },
    "readability": {
        "sentence-length": Rule(
            lambda facts: when(facts.sentences, ramp(facts.avg_sentence_words, 20, 35)),
            "a sentence has {avg_sentence_words} words on average",
            "Write shorter sentences: up to 20 words on average.",
            weight=2,
        ),
        "long-sentences": Rule(
            lambda facts: when(
                facts.sentences, ramp(facts.long_sentences / max(1, facts.sentences), 0.1, 1)
            ),
            f"{{long_sentences}} of {{sentences}} sentences have more than {LONG_SENTENCE} words",
            f"Divide sentences of more than {LONG_SENTENCE} words.",
        ),
        "lix": Rule(
            lambda facts: _rate_formula(facts, facts.lix, 45, 65),
            "its LIX is {lix}, where 45 is medium and 60 hard to read",
            "Use shorter words and sentences.",
            weight=2,
        ),
        "reading-ease": Rule(
            lambda facts: _rate_formula(facts, facts.flesch_reading_ease, 50, 10),
            "its Flesch reading ease is {flesch_reading_ease}, "
            "where 50 is fairly difficult and 30 difficult",
            "Prefer words with fewer syllables.",
        ),
    },
    "llms_txt": {
        "llms-txt": Rule(
            lambda facts: facts.has_llms,
            "the origin has no /llms.txt",
            "Offer /llms.txt: a title and a list of links for language models.",
            weight=3,
        ),
        "llms-txt-title": Rule(
            lambda facts: facts.llms_has_title,
            "/llms.txt does not begin with a heading",
            "Begin /llms.txt with a heading of level 1 that names the site.",
        ),
        "llms-txt-links": Rule(
            lambda facts: when(facts.has_llms, (facts.llms_links or 0) > 0),
            "/llms.txt has no links",
            "List the pages in /llms.txt as Markdown links.",
        ),
    },
    "protocol_discovery": {
        "robots-txt": Rule(
            lambda facts: facts.has_robots,
            "the origin has no /robots.txt",
            "Say in /robots.txt what robots may read (RFC 9309).",
            weight=2,
        ),
        "sitemap": Rule(
            lambda facts: facts.has_sitemap,
            "the origin has no /sitemap.xml",
            "List the pages in /sitemap.xml.",
            weight=2,
        ),
        "sitemap-named": Rule(
            lambda facts: facts.robots_names_sitemap,
            "/robots.txt does not name the sitemap",
            "Name the sitemap in /robots.txt.",
        ),
        "api-catalog": Rule(
            lambda facts: facts.has_api_catalog,
            "the origin has no /.well-known/api-catalog",
            "Tell programs in /.well-known/api-catalog which APIs there are (RFC 9727).",
        ),
        "ai-catalog": Rule(
            lambda facts: facts.has_ai_catalog,
            "the origin has no /.well-known/ai-catalog.json",
            "Tell agents in /.well-known/ai-catalog.json where MCP servers are.",
        ),
    },
}
"""The rules of each signal, by their code; suggestions of equal gain are in this order."""
