"""Runs Lighthouse on an address in several guises, and says what it has against the page."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.judges import node
from tests.judges.pages.judging import HERE

GUISES: Final = tuple(
    f"{device} {scheme}" for device, scheme in product(("mobile", "desktop"), ("light", "dark"))
)
LCP_MOST: Final = 1200
"""Milliseconds under mobile throttling."""
UNLISTED: Final = "is-crawlable"
"""The audit that takes points of `seo` from every page that asks not to be found."""
_MEASURED: Final = "performance"
"""The one category that depends on how busy the machine is."""
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one run."""

    guise: str
    scores: Mapping[str, int | None]
    lost: Sequence[Mapping[str, Any]]
    """The audits that cost points, with their category."""
    lcp: float
    cls: float


@dataclass(frozen=True, slots=True)
class Demands:
    """The demands on a page."""

    is_listed: bool
    """True if it may be indexed; otherwise `seo` may lose the points for that alone."""
    is_timed: bool = True
    """True if timings count, which a busy machine makes longer."""


async def run(
    chromium: str, url: str, guises: Sequence[str], folder: Path, cookie: str = ""
) -> list[Verdict]:
    """Judge an address once in each guise, with a cookie `name=value` where one is given.

    AssertionError where it could not be judged.

    A browser that fails, before it has shown the page, is started again.
    """
    for _ in range(_TRIES):
        words = (chromium, url, cookie, *guises)
        outcome = await node.run(HERE / "lighthouse.mjs", *words, folder=folder)
        assert outcome.status == 0, str(outcome)
        found = json.loads(outcome.said)
        faults = [each["fault"] for each in found if each["fault"]]
        if not faults:
            break
    assert faults == [], f"{url}: {faults}"
    return [
        Verdict(each["guise"], each["scores"], each["lost"], each["lcp"], each["cls"])
        for each in found
    ]


def faults_of(verdict: Verdict, demands: Demands) -> list[str]:
    """Return what keeps a page from 100 in all five, from being fast or from a stable layout."""
    missed = [
        f"{category} {score}: {_reasons(verdict, category)}"
        for category, score in verdict.scores.items()
        if score != 100
        and (demands.is_timed or category != _MEASURED)
        and not (category == "seo" and not demands.is_listed and _is_unlisted(verdict))
    ]
    return [
        *missed,
        *([f"{len(verdict.scores)} categories"] if len(verdict.scores) != 5 else []),
        *([f"LCP {verdict.lcp:.0f} ms"] if demands.is_timed and verdict.lcp > LCP_MOST else []),
        *([f"CLS {verdict.cls}"] if verdict.cls > 0 else []),
    ]


def _is_unlisted(verdict: Verdict) -> bool:
    return [each["audit"] for each in verdict.lost if each["category"] == "seo"] == [UNLISTED]


def _reasons(verdict: Verdict, category: str) -> str:
    return "; ".join(
        f"{each['audit']} {each['said']} {each['items']}"
        for each in verdict.lost
        if each["category"] == category
    )


async def judge(
    chromium: str, pages: Mapping[str, Demands], guise: str, folder: Path
) -> dict[str, list[str]]:
    """Return the faults of pages in one guise, by address, speed among them.

    Where what is measured falls short, it is measured twice again, once all have been looked at and
    what else the machine was busy with may be over, and the median counts.
    """
    first = {url: (await run(chromium, url, [guise], folder))[0] for url in pages}
    last = {
        url: verdict if _is_fast(verdict) else await _again(chromium, url, verdict, folder)
        for url, verdict in first.items()
    }
    faults = {url: faults_of(verdict, pages[url]) for url, verdict in last.items()}
    return {url: found for url, found in faults.items() if found}


def _is_fast(verdict: Verdict) -> bool:
    return verdict.scores[_MEASURED] == 100 and verdict.lcp <= LCP_MOST


async def _again(chromium: str, url: str, verdict: Verdict, folder: Path) -> Verdict:
    more = [await run(chromium, url, [verdict.guise], folder) for _ in range(_TRIES - 1)]
    return _middle([verdict, *(each for (each,) in more)])


def _middle(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the run with the median score, with the median of all largest contentful paints."""
    ranked = sorted(verdicts, key=lambda verdict: verdict.scores[_MEASURED] or 0)
    middle = ranked[len(ranked) // 2]
    lcp = median(verdict.lcp for verdict in verdicts)
    return Verdict(middle.guise, middle.scores, middle.lost, lcp, middle.cls)
