"""From a document to its report, with the scores of its signals. Pure.

All that comes of what somebody submitted is made here, in a process that can be killed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from edge_api.analysis.document import Document, Kind
from edge_api.analysis.facts import Discovery, Facts, gather_facts
from edge_api.analysis.languages import UNKNOWN
from edge_api.analysis.metrics import Metrics, find_keywords, measure
from edge_api.analysis.parse_html import parse_html
from edge_api.analysis.parse_text import parse_markdown, parse_text
from edge_api.analysis.rules import RULES, SIGNALS, Rule, SignalName

Status = Literal["pass", "warn", "fail", "skipped"]
Grade = Literal["A", "B", "C", "D", "F"]

_PASS, _WARN = 80, 50
_GRADES: Final[tuple[tuple[int, Grade], ...]] = ((90, "A"), (80, "B"), (70, "C"), (60, "D"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule of a signal came to."""

    signal: SignalName
    rule: Rule
    value: float
    """0 to 1."""
    finding: str
    """Empty where nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Signal:
    """What the rules of one signal came to."""

    score: int | None
    """0 to 100; `None` where no rule applied."""
    status: Status
    summary: str
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One thing to mend."""

    code: str
    severity: Literal["warn", "fail"]
    """`fail` where nothing of it was there, `warn` where something was."""
    message: str


def judge(facts: Facts) -> list[Verdict]:
    """Return what each rule that applies came to."""
    known: dict[str, Any] = asdict(facts)
    return [
        Verdict(signal, rule, float(value), "" if value >= 1 else rule.finding.format_map(known))
        for signal, rules in RULES.items()
        for rule in rules
        if (value := rule.value(facts)) is not None
    ]


def score_signals(verdicts: Sequence[Verdict]) -> dict[SignalName, Signal]:
    """Return every signal."""
    return {name: _signal([each for each in verdicts if each.signal == name]) for name in SIGNALS}


def _signal(verdicts: Sequence[Verdict]) -> Signal:
    if not verdicts:
        return Signal(None, "skipped", "Nothing here that could be looked at.", ())
    total = sum(each.rule.weight for each in verdicts)
    score = round(100 * sum(each.rule.weight * each.value for each in verdicts) / total)
    findings = tuple(each.finding for each in verdicts if each.finding)
    status: Status = "pass" if score >= _PASS else "warn" if score >= _WARN else "fail"
    passed = len(verdicts) - len(findings)
    return Signal(score, status, f"{passed} of {len(verdicts)} checks pass.", findings)


def score_whole(signals: dict[SignalName, Signal]) -> int:
    """Return the score of the whole, 0 to 100; signals that were skipped do not count."""
    scores = [
        (SIGNALS[name], signal.score)
        for name, signal in signals.items()
        if signal.score is not None
    ]
    total = sum(weight for weight, _ in scores)
    return round(sum(weight * score for weight, score in scores) / total) if total else 0


def grade(score: int) -> Grade:
    """Return the grade of a score."""
    return next((letter for least, letter in _GRADES if score >= least), "F")


def suggest(verdicts: Sequence[Verdict]) -> list[Suggestion]:
    """Return what to mend, what gains most first."""
    weak = [each for each in verdicts if each.finding]
    return [
        Suggestion(each.rule.code, "warn" if each.value > 0 else "fail", each.rule.mend)
        for each in sorted(weak, key=_gain, reverse=True)
    ]


def _gain(verdict: Verdict) -> float:
    return SIGNALS[verdict.signal] * verdict.rule.weight * (1 - verdict.value)


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
