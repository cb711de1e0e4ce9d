"""The report of a document, with the scores of its signals. Pure.

It is made in a process that can be killed, since anybody may submit a document.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from annotated_types import Interval

from edge_api.analysis.document import (
    AI_CATALOG,
    API_CATALOG,
    LLMS,
    ROBOTS,
    SITEMAP,
    Discovery,
    DocumentFormat,
    PageMetadata,
    ParsedDocument,
)
from edge_api.analysis.languages import UNKNOWN
from edge_api.analysis.metrics import Metrics, find_keywords, measure, tokenize
from edge_api.analysis.parse import PARSERS
from edge_api.analysis.rules import RULES, SIGNALS, Facts, Rule, SignalName

Status = Literal["pass", "warn", "fail", "skipped"]
Grade = Literal["A", "B", "C", "D", "F"]

_PASS, _WARN = 80, 50
_GRADES: Final[tuple[tuple[int, Grade], ...]] = ((90, "A"), (80, "B"), (70, "C"), (60, "D"))


_FIGURE: Final = re.compile(r"\d+(?:[.,:/\-]\d+)*")
_MIN_PARAGRAPH_WORDS: Final = 12  # words; a shorter paragraph is a date, a byline or a caption
_LINK: Final = re.compile(r"\]\([^)\s]")
_SITEMAP_LINE: Final = re.compile(r"^[ \t]*sitemap[ \t]*:", re.IGNORECASE | re.MULTILINE)


def gather_facts(document: ParsedDocument, metrics: Metrics, discovery: Discovery | None) -> Facts:
    """Return the facts of a document, and of its origin if it was fetched."""
    found = discovery or {}
    page, llms, robots = document.page or PageMetadata(), found.get(LLMS), found.get(ROBOTS)
    levels = [heading.level for heading in document.headings]
    paragraphs = (block.text for block in document.blocks if block.kind == "paragraph")
    lengths = (len(tokenize(text)) for text in paragraphs)
    return Facts(
        **vars(document.counts),
        **vars(page),
        **vars(metrics),
        has_markup=document.kind != "text",
        is_page=document.page is not None,
        opening_words=next((words for words in lengths if words >= _MIN_PARAGRAPH_WORDS), 0),
        figures=sum(1 for each in document.blocks for _ in _FIGURE.finditer(each.text)),
        headings=len(levels),
        top_headings=levels.count(1),
        skipped_levels=sum(after > before + 1 for before, after in pairwise(levels)),
        title_length=len(document.title or ""),
        description_length=len(page.description or ""),
        has_llms=_exists(found, LLMS),
        llms_has_title=None if llms is None else llms.lstrip("\ufeff").startswith("# "),
        llms_links=None if llms is None else sum(1 for _ in _LINK.finditer(llms)),
        has_robots=_exists(found, ROBOTS),
        robots_names_sitemap=None if robots is None else bool(_SITEMAP_LINE.search(robots)),
        has_sitemap=_exists(found, SITEMAP),
        has_api_catalog=_exists(found, API_CATALOG),
        has_ai_catalog=_exists(found, AI_CATALOG),
    )


def _exists(found: Discovery, path: str) -> bool | None:
    return found[path] is not None if path in found else None


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of one rule."""

    signal: SignalName
    code: str
    rule: Rule
    value: float  # 0 to 1
    finding: str  # empty if nothing is wrong


@dataclass(frozen=True, slots=True)
class Signal:
    """How well one side of the document is done."""

    score: Annotated[int, Interval(ge=0, le=100)] | None = field(
        metadata={"description": "`null` if no rule applied."}
    )
    status: Status = field(metadata={"description": "The verdict."})
    summary: str = field(metadata={"description": "In a sentence."})
    findings: tuple[str, ...] = field(metadata={"description": "What to fix."})


@dataclass(frozen=True, slots=True)
class SuggestionEntry:
    """Something to fix."""

    code: str = field(metadata={"description": "Its rule."})
    severity: Literal["warn", "fail"] = field(metadata={"description": "`warn` if partly done."})
    message: str = field(metadata={"description": "What to do."})


def apply_rules(facts: Facts) -> list[RuleResult]:
    """Return the results of the rules that apply."""
    known: dict[str, Any] = asdict(facts)
    return [
        RuleResult(signal, code, rule, value, "" if value >= 1 else rule.finding.format_map(known))
        for signal, rules in RULES.items()
        for code, rule in rules.items()
        if (value := rule.value(facts)) is not None
    ]


def score_signals(results: Sequence[RuleResult]) -> dict[SignalName, Signal]:
    """Return the result of every signal."""
    return {name: _signal([each for each in results if each.signal == name]) for name in SIGNALS}


def _signal(results: Sequence[RuleResult]) -> Signal:
    if not results:
        return Signal(None, "skipped", "Nothing here that could be looked at.", ())
    total = sum(each.rule.weight for each in results)
    score = round(100 * sum(each.rule.weight * each.value for each in results) / total)
    findings = tuple(each.finding for each in results if each.finding)
    status: Status = "pass" if score >= _PASS else "warn" if score >= _WARN else "fail"
    passed = len(results) - len(findings)
    return Signal(score, status, f"{passed} of {len(results)} checks pass.", findings)


def overall_score(signals: dict[SignalName, Signal]) -> int:
    """Return the overall score, 0 to 100, without the signals that were skipped."""
    scores = [
        (SIGNALS[name], signal.score)
        for name, signal in signals.items()
        if signal.score is not None
    ]
    total = sum(weight for weight, _ in scores)
    return round(sum(weight * score for weight, score in scores) / total) if total else 0


def grade(score: int) -> Grade:
    """Return the grade of a score."""
    return next((letter for minimum, letter in _GRADES if score >= minimum), "F")


def suggest(results: Sequence[RuleResult]) -> list[SuggestionEntry]:
    """Return suggestions, the largest gain first."""

    def gain(result: RuleResult) -> float:
        return SIGNALS[result.signal] * result.rule.weight * (1 - result.value)

    weak = [each for each in results if each.finding]
    return [
        SuggestionEntry(each.code, "warn" if each.value > 0 else "fail", each.rule.fix)
        for each in sorted(weak, key=gain, reverse=True)
    ]


MAX_HEADINGS: Final = 100
MAX_TEXT_LENGTH: Final = 300
"""Characters of a title, a description or a heading that the report repeats."""
_METRICS: Final = (
    *("words", "sentences", "paragraphs", "reading_minutes"),
    *("avg_sentence_words", "lix", "flesch_reading_ease", "language"),
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A document to analyse, with the options."""

    kind: DocumentFormat
    text: str
    url: str | None = None  # where it was fetched
    language: str | None = None  # a BCP 47 tag, if the caller named one
    terms: int = 10  # the number of keywords
    discovery: Discovery | None = None


def report(job: Job) -> Json:
    """Return the report of a document, without the related posts of the journal."""
    document = PARSERS[job.kind](job.text, job.url)
    metrics = measure(document, job.language)
    results = apply_rules(gather_facts(document, metrics, job.discovery))
    signals = score_signals(results)
    score = overall_score(signals)
    keywords = find_keywords(document, metrics.language, job.terms)
    return {
        "input": {
            "kind": job.kind,
            "characters": len(job.text),
            "sha256": sha256(job.text.encode()).hexdigest(),
            "url": job.url,
        },
        "score": score,
        "grade": grade(score),
        "summary": _summary(score, metrics, signals),
        "metrics": {name: getattr(metrics, name) for name in _METRICS},
        "structure": _structure(document),
        "keywords": [asdict(keyword) for keyword in keywords],
        "signals": {name: asdict(signal) for name, signal in signals.items()},
        "suggestions": [asdict(suggestion) for suggestion in suggest(results)],
    }


def _structure(document: ParsedDocument) -> Json:
    counts, page = document.counts, document.page
    return {
        "title": _cut(document.title),
        "description": _cut(page.description if page else None),
        "headings": [
            {"level": heading.level, "text": _cut(heading.text)}
            for heading in document.headings[:MAX_HEADINGS]
        ],
        "links": {
            "total": counts.links,
            "external": counts.external_links,
            "without_text": counts.links_without_text,
        },
        "images": {"total": counts.images, "without_alt": counts.images_without_alt},
        "json_ld_types": list(page.json_ld_types) if page else [],
    }


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:MAX_TEXT_LENGTH]


def _summary(score: int, metrics: Metrics, signals: Mapping[SignalName, Signal]) -> str:
    language = "" if metrics.language == UNKNOWN else f" in {metrics.language}"
    summary = (
        f"{_count(metrics.words, 'word')}{language}, "
        f"{_count(metrics.reading_minutes, 'minute')} to read: "
        f"{score} of 100, grade {grade(score)}."
    )
    scores = {name: each.score for name, each in signals.items() if each.findings}
    weakest = min(scores, key=lambda name: scores[name] or 0, default="").replace("_", " ")
    return f"{summary} Most is to be gained in {weakest}." if weakest else summary


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
