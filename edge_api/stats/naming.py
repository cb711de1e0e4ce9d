"""Names of readers' programs by their User-Agent.

Known programs are those of the package crawler-user-agents, whose 1,504 patterns cost 19 ms when
they are tried one by one. An index by four letters of each leaves a few to try. It is still too
slow for the event loop: names are found in a thread.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from edge_api.db.stats_tables import MAX_NAME_LENGTH, Kind

CACHE_SIZE: Final = 4096
_GRAM: Final = 4  # letters
_KINDS: Final[Mapping[str, Kind]] = {
    "ai-crawler": "ai_crawler",
    "feed-reader": "feed_reader",
    "search-engine": "search_engine",
}
"""The kinds of a pattern's tags; the first that a pattern has counts."""
_ASSISTANT: Final = re.compile(r"User$|Assist|Deep-Research|NotebookLM|fetcher", re.IGNORECASE)
"""Names of AI crawlers that fetch a page when a person asks about it."""
_GENERIC: Final = frozenset({"http-library", "browser-automation"})
"""Tags of tools on which a program of another name may be built."""
_FEED_READER: Final = re.compile(
    r"\b(?:rss|atom)\b|\d subscriber|(?:feed|rss)[ -]?(?:reader|fetch|pars)|newsreader"
)
_BROWSER: Final = re.compile(
    r"Mozilla/5\.0 \([^()]*(?:\([^()]*\)[^()]*)*\) ?(?:\w*WebKit|Gecko|Goanna|KHTML|like Gecko)|"
    r"Mozilla/5\.0 \([^()]*\bTrident/|Opera/9|(?:Lynx|w3m|E?Links|Dillo|NetSurf)[/ ][\d(]"
)
_PROGRAM: Final = re.compile(
    r"bot\b|bot[/_-]|crawl|spider|scrap|fetch|monitor|archiv|validat|preview|headless|"
    r"https?:|www\.|@|\+http|python|java/|okhttp|axios|node-|scan|probe|checker"
)
"""Words in lower case, by which programs that borrow a browser's name give themselves away."""


class _Program(NamedTuple):
    """A known program."""

    pattern: re.Pattern[str]
    name: str
    kind: Kind
    is_generic: bool
    url: str


class _Programs(NamedTuple):
    """All known programs: those to try if a text has four letters of their own, and the others."""

    by_gram: Mapping[str, Sequence[_Program]]
    others: Sequence[_Program]


@cache
def _programs() -> _Programs:
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA  # noqa: PLC0415  0.5 MB of JSON

    data: Sequence[Mapping[str, Any]] = CRAWLER_USER_AGENTS_DATA
    frequency = Counter(
        gram for each in data for text in each["instances"] for gram in _grams(text)
    )
    by_gram: dict[str, list[_Program]] = {}
    others: list[_Program] = []
    for each in data:
        tags = each["tags"]
        kind: Kind = next((kind for tag, kind in _KINDS.items() if tag in tags), "other_program")
        name = plain_name(each["pattern"])
        if kind == "ai_crawler" and _ASSISTANT.search(name):
            kind = "ai_assistant"
        program = _Program(
            re.compile(each["pattern"]),
            name,
            kind,
            not _GENERIC.isdisjoint(tags),
            each.get("url", ""),
        )
        grams = _grams(name) if _is_literal(each["pattern"]) else set()
        rarest = min(sorted(grams), key=lambda gram: frequency[gram], default="")
        (by_gram.setdefault(rarest, []) if rarest else others).append(program)
    return _Programs(by_gram, others)


def _is_literal(pattern: str) -> bool:
    return re.fullmatch(r"\^?(?:[^\\\[\](){}.*+?|^$]|\\\W)+\$?", pattern) is not None


def plain_name(pattern: str) -> str:
    """Return the text of a pattern without signs of regular expressions: `[wW]get` is wget."""
    first = re.sub(r"\(([^|)]*)\|[^)]*\)", r"\1", pattern).partition("|")[0]
    plain = re.sub(r"\[\\s\\S\]\*|\[\^-\]|\\d\S*", " ", first)
    plain = re.sub(r"\[(.)[^\]]*\]|\\(.)", r"\1\2", plain)
    return " ".join(plain.strip("^$/ ").split())[:MAX_NAME_LENGTH]


def _grams(text: str) -> set[str]:
    return {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}


@lru_cache(CACHE_SIZE)
def name_agent(user_agent: str) -> tuple[Kind, str]:
    """Return the kind of a reader, and the name of a known program; empty for people."""
    if found := min(_matches(user_agent), key=itemgetter(0, 1, 2), default=None):
        return found[-1].kind, found[-1].name
    lowered = user_agent.lower()  # a search that ignores case takes five times as long
    if _FEED_READER.search(lowered):
        return "feed_reader", ""
    is_person = _BROWSER.match(user_agent) and not _PROGRAM.search(lowered)
    return ("person" if is_person else "other_program"), ""


def _matches(text: str) -> Iterator[tuple[bool, int, int, _Program]]:
    """Yield the known programs of a text; the least, named first and longest, is the right one."""
    programs = _programs()
    likely = [each for gram in _grams(text) for each in programs.by_gram.get(gram, ())]
    for program in (*likely, *programs.others):
        if match := program.pattern.search(text):
            yield program.is_generic, match.start(), match.start() - match.end(), program


@cache
def agent_url(agent: str) -> str:
    """Return the address where a known program is described; empty without one."""
    programs = _programs()
    known = (*programs.others, *(each for found in programs.by_gram.values() for each in found))
    return next((each.url for each in known if each.name == agent), "")
