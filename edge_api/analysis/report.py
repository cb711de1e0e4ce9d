"""The report of a document, with the scores of its signals, and the process that makes it.

Anybody may submit a document, so it must be safe to kill the process at any time. It reads jobs, a
line each, from standard input, answers on standard output, has no secrets and writes no files. When
the edge ends, it ends too: at the end of its input, or in the middle of a job by its own alarm.
"""

import os
import re
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

import orjson
from annotated_types import Interval

from edge_api.analysis.document import (
    AI_CATALOG,
    API_CATALOG,
    LLMS,
    ROBOTS,
    SITEMAP,
    Discovery,
    DocumentFormat,
    Heading,
    PageMetadata,
    ParsedDocument,
)
from edge_api.analysis.languages import LANGUAGES, UNKNOWN
from edge_api.analysis.metrics import (
    Measures,
    TextMetrics,
    find_keywords,
    load_hyphenation,
    measure,
    tokenize,
)
from edge_api.analysis.rules import RULES, SIGNALS, Facts, Rule, SignalName

Status = Literal["pass", "warn", "fail", "skipped"]
Grade = Literal["A", "B", "C", "D", "F"]

_PASS_SCORE, _WARN_SCORE = 80, 50  # the lowest scores with these verdicts
_GRADES: Final[tuple[tuple[int, Grade], ...]] = ((90, "A"), (80, "B"), (70, "C"), (60, "D"))


_NUMBER_OR_DATE: Final = re.compile(r"\d+(?:[.,:/\-]\d+)*")
_MIN_PARAGRAPH_WORDS: Final = 12  # words; a shorter paragraph is a date, a byline or a caption


def gather_facts(
    document: ParsedDocument, metrics: TextMetrics, discovery: Discovery | None
) -> Facts:
    """Return the facts about a document, and about its origin if it was fetched."""
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
        figures=sum(1 for each in document.blocks for _ in _NUMBER_OR_DATE.finditer(each.text)),
        headings=len(levels),
        top_headings=levels.count(1),
        skipped_levels=sum(after > before + 1 for before, after in pairwise(levels)),
        title_length=len(document.title or ""),
        description_length=len(page.description or ""),
        has_llms=_exists(found, LLMS),
        llms_has_title=None if llms is None else llms.lstrip("\ufeff").startswith("# "),
        llms_links=None if llms is None else len(re.findall(r"\]\([^)\s]", llms)),
        has_robots=_exists(found, ROBOTS),
        robots_names_sitemap=None
        if robots is None
        else bool(re.search(r"(?im)^[ \t]*sitemap[ \t]*:", robots)),
        has_sitemap=_exists(found, SITEMAP),
        has_api_catalog=_exists(found, API_CATALOG),
        has_ai_catalog=_exists(found, AI_CATALOG),
    )


def _exists(found: Discovery, path: str) -> bool | None:
    return found[path] is not None if path in found else None


@dataclass(frozen=True, slots=True)
class Examined:
    """What was analysed."""

    kind: DocumentFormat = field(metadata={"description": "Its format."})
    characters: Annotated[int, Interval(ge=0)] = field(metadata={"description": "Its length."})
    sha256: str = field(metadata={"description": "Of the document in UTF-8, in hexadecimal."})
    url: str | None
    """Where it stands, after redirects, without a fragment."""


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """Links."""

    total: int = field(metadata={"description": "How many."})
    external: int = field(metadata={"description": "To another host."})
    without_text: int = field(metadata={"description": "Without words."})


@dataclass(frozen=True, slots=True)
class ImageCounts:
    """Images."""

    total: int = field(metadata={"description": "How many."})
    without_alt: int = field(metadata={"description": "Without `alt`."})


@dataclass(frozen=True, slots=True)
class Structure:
    """What the document is made of."""

    title: str | None = field(metadata={"description": "Its title."})
    description: str | None = field(metadata={"description": "Its description."})
    headings: list[Heading] = field(metadata={"description": "The first 100."})
    links: LinkCounts = field(metadata={"description": "How many."})
    images: ImageCounts = field(metadata={"description": "How many."})
    json_ld_types: list[str] = field(metadata={"description": "Types in JSON-LD."})


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


def _rate_signal(results: Sequence[RuleResult]) -> Signal:
    if not results:
        return Signal(None, "skipped", "Nothing here that could be looked at.", ())
    total = sum(each.rule.weight for each in results)
    score = round(100 * sum(each.rule.weight * each.value for each in results) / total)
    findings = tuple(each.finding for each in results if each.finding)
    status: Status = "pass" if score >= _PASS_SCORE else "warn" if score >= _WARN_SCORE else "fail"
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


MAX_TEXT_LENGTH: Final = 300
"""Characters of a title, a description or a heading that the report repeats."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A document to analyse, with the caller's options."""

    kind: DocumentFormat
    text: str
    url: str | None = None  # where it was fetched
    language: str | None = None  # a BCP 47 tag, if the caller named one
    terms: int = 10  # the number of keywords
    discovery: Discovery | None = None


def report(job: Job) -> Json:
    """Return the report of a document, without the related posts of the journal."""
    from edge_api.analysis.parse import PARSERS  # noqa: PLC0415  the edge itself does not parse

    document = PARSERS[job.kind](job.text, job.url)
    metrics = measure(document, job.language)
    results = apply_rules(gather_facts(document, metrics, job.discovery))
    signals = {
        name: _rate_signal([each for each in results if each.signal == name]) for name in SIGNALS
    }
    score = overall_score(signals)
    return {
        "input": Examined(job.kind, len(job.text), sha256(job.text.encode()).hexdigest(), job.url),
        "score": score,
        "grade": grade(score),
        "summary": _summary(score, metrics, signals),
        "metrics": {each.name: getattr(metrics, each.name) for each in fields(Measures)},
        "structure": _structure(document),
        "keywords": find_keywords(document, metrics.language, job.terms),
        "signals": signals,
        "suggestions": suggest(results),
    }


def _structure(document: ParsedDocument) -> Structure:
    counts, page = document.counts, document.page
    return Structure(
        _cut(document.title),
        _cut(page.description if page else None),
        [Heading(each.level, each.text[:MAX_TEXT_LENGTH]) for each in document.headings[:100]],
        LinkCounts(counts.links, counts.external_links, counts.links_without_text),
        ImageCounts(counts.images, counts.images_without_alt),
        list(page.json_ld_types) if page else [],
    )


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:MAX_TEXT_LENGTH]


def _summary(score: int, metrics: TextMetrics, signals: Mapping[SignalName, Signal]) -> str:
    language = "" if metrics.language == UNKNOWN else f" in {metrics.language}"
    summary = (
        f"{_count(metrics.words, 'word')}{language}, "
        f"{_count(metrics.reading_minutes, 'minute')} to read: "
        f"{score} of 100, grade {grade(score)}."
    )
    scores = {name: each.score for name, each in signals.items() if each.findings}
    weakest = min(scores, key=lambda name: scores[name] or 0, default="").replace("_", " ")
    return f"{summary} Improve {weakest} first." if weakest else summary


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


WORK_SECONDS: Final = 5
"""The edge kills a worker after this time; its own alarm ends it a second later."""


def main() -> None:
    """Answer jobs until the input ends."""
    import edge_api.analysis.parse  # noqa: F401, PLC0415  before the limits, and the first job

    for known in LANGUAGES.values():
        if known.flesch is not None:
            load_hyphenation(known.flesch.hyphenation)
    limit_resources()
    send(b"")  # ready
    for job in sys.stdin.buffer:
        signal.alarm(WORK_SECONDS + 1)
        send(b"")  # acknowledges the job: if this process ends now, the job may be the cause
        send(answer(job))
        signal.alarm(0)


def send(message: bytes) -> None:
    """Send a message to the edge."""
    sys.stdout.buffer.write(message + b"\n")
    sys.stdout.buffer.flush()


def limit_resources() -> None:
    """Limit this process: memory, written files, core dumps, priority."""
    os.nice(10)  # so that the edge answers other requests first
    # 512 MiB of address space; the most expensive documents need a tenth of it.
    limits = {"RLIMIT_AS": 512 * 1024 * 1024, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0}
    for name, most in limits.items():
        with suppress(AttributeError, ValueError, OSError):  # a system may have no such limit
            resource.setrlimit(getattr(resource, name), (most, most))


def answer(job: bytes) -> bytes:
    """Return the report on a job as JSON, or just the name of the exception that it raised."""
    try:
        return orjson.dumps({"report": report(Job(**orjson.loads(job)))})
    except Exception as error:  # noqa: BLE001  a traceback could hold the document
        return orjson.dumps({"fault": type(error).__name__})


if __name__ == "__main__":
    main()
