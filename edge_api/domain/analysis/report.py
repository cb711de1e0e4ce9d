"""From a document to its report. Pure, and the same for the same document.

All that comes of what somebody submitted is made here, in a process that can be killed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from edge_api.domain.analysis.discovery import Discovery
from edge_api.domain.analysis.document import Document, Kind
from edge_api.domain.analysis.facts import gather_facts
from edge_api.domain.analysis.keywords import find_keywords
from edge_api.domain.analysis.language_tags import UNKNOWN
from edge_api.domain.analysis.metrics import Metrics, measure
from edge_api.domain.analysis.parse_html import parse_html
from edge_api.domain.analysis.parse_text import parse_markdown, parse_text
from edge_api.domain.analysis.rules import SignalName
from edge_api.domain.analysis.scoring import (
    Signal,
    grade,
    judge,
    score_signals,
    score_whole,
    suggest,
)

HEADINGS_MOST: Final = 100
TEXT_LONGEST: Final = 300
"""Characters of a title, a description or a heading that the report repeats."""
_MEASURES: Final = (
    *("words", "sentences", "paragraphs", "reading_minutes"),
    *("avg_sentence_words", "lix", "flesch_reading_ease", "language"),
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be analysed, and how."""

    kind: Kind
    text: str
    url: str | None = None
    """Where it stands, if it was read there."""
    language: str | None = None
    """A BCP 47 tag, where the asker knows better than the document."""
    terms: int = 10
    """How many keywords to find."""
    discovery: Discovery | None = None


def parse(job: Job) -> Document:
    """Return the document that a job is about."""
    if job.kind == "html":
        return parse_html(job.text, job.url)
    if job.kind == "markdown":
        return parse_markdown(job.text, job.url)
    return parse_text(job.text)


def report(job: Job) -> Json:
    """Return what there is to say about a document, but for what the journal has on it."""
    document = parse(job)
    metrics = measure(document, job.language)
    verdicts = judge(gather_facts(document, metrics, job.discovery))
    signals = score_signals(verdicts)
    score = score_whole(signals)
    keywords = find_keywords(document, metrics.language, job.terms)
    return {
        "input": _describe(job),
        "score": score,
        "grade": grade(score),
        "summary": _summary(score, metrics, signals),
        "metrics": {name: getattr(metrics, name) for name in _MEASURES},
        "structure": _structure(document),
        "keywords": [asdict(keyword) for keyword in keywords],
        "signals": {name: asdict(signal) for name, signal in signals.items()},
        "suggestions": [asdict(suggestion) for suggestion in suggest(verdicts)],
    }


def _describe(job: Job) -> Json:
    return {
        "kind": job.kind,
        "characters": len(job.text),
        "sha256": sha256(job.text.encode()).hexdigest(),
        "url": job.url,
    }


def _structure(document: Document) -> Json:
    counts, page = document.counts, document.page
    return {
        "title": _cut(document.title),
        "description": _cut(page.description if page else None),
        "headings": [
            {"level": heading.level, "text": _cut(heading.text)}
            for heading in document.headings[:HEADINGS_MOST]
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
    return None if text is None else text[:TEXT_LONGEST]


def _summary(score: int, metrics: Metrics, signals: Mapping[SignalName, Signal]) -> str:
    """Return the report in a sentence or two."""
    language = "" if metrics.language == UNKNOWN else f" in {metrics.language}"
    said = (
        f"{_many(metrics.words, 'word')}{language}, "
        f"{_many(metrics.reading_minutes, 'minute')} to read: {score} of 100, grade {grade(score)}."
    )
    weak = _weakest(signals)
    return f"{said} Most is to be gained in {weak}." if weak else said


def _weakest(signals: Mapping[SignalName, Signal]) -> str:
    """Return the name of the signal with the lowest score, unless there is nothing to mend."""
    scores = {name: each.score for name, each in signals.items() if each.findings}
    return min(scores, key=lambda name: scores[name] or 0, default="").replace("_", " ")


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
