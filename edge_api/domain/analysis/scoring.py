"""From rules and facts to scores: each signal's, the whole, and what to mend first. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from edge_api.domain.analysis.facts import Facts
from edge_api.domain.analysis.rules import RULES, SIGNALS, Rule, SignalName

Status = Literal["pass", "warn", "fail", "skipped"]
Grade = Literal["A", "B", "C", "D", "F"]

_PASS, _WARN = 80, 50
_GRADES: Final[tuple[tuple[int, Grade], ...]] = ((90, "A"), (80, "B"), (70, "C"), (60, "D"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule came to."""

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
    values = ((rule, rule.value(facts)) for rule in RULES)
    return [
        Verdict(rule, float(value), "" if value >= 1 else rule.finding.format_map(known))
        for rule, value in values
        if value is not None
    ]


def score_signals(verdicts: Sequence[Verdict]) -> dict[SignalName, Signal]:
    """Return every signal."""
    return {
        name: _signal([each for each in verdicts if each.rule.signal == name]) for name in SIGNALS
    }


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
    return SIGNALS[verdict.rule.signal] * verdict.rule.weight * (1 - verdict.value)
