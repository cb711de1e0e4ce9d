"""Names of readers' programs by their User-Agent, and classes of the sites that readers come from.

Known programs are those of the package crawler-user-agents, whose 1,504 patterns cost 19 ms when
they are tried one by one. An index by four letters of each leaves a few to try. It is still too
slow for the event loop: names are found in a thread.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, Final

from edge_api.db.stats_tables import MAX_NAME_LENGTH, Kind
from edge_api.db.tables import Origin

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
_DEVICE: Final = re.compile(
    r"(\(linux; (?:u; )?android [^()/:@+]*?)(?:bot(?:\b|_)|scan)(?=[\w .-]*(?:;| build/|\)))"
)
"""Such a word in the name of an Android device, as of a phone by Cubot."""

_ANDROID_BUILD: Final = re.compile(r"[A-Z0-9]{4}\\\.\d{6}\\\.\d{3}")
"""A pattern that is the number of a version of Android: people with phones have it too."""


@cache
def _programs() -> Mapping[str, Sequence[tuple[re.Pattern[str], Mapping[str, Any]]]]:
    """Return the entries of the list by four letters that each needs; empty for those without."""
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA  # noqa: PLC0415  0.5 MB of JSON

    frequency = Counter(
        gram
        for each in CRAWLER_USER_AGENTS_DATA
        for text in each["instances"]
        for gram in _grams(text)
    )
    found: dict[str, list[tuple[re.Pattern[str], Mapping[str, Any]]]] = defaultdict(list)
    for each in CRAWLER_USER_AGENTS_DATA:
        if _ANDROID_BUILD.fullmatch(each["pattern"]):
            continue
        is_literal = re.fullmatch(r"\^?(?:[^\\\[\](){}.*+?|^$]|\\\W)+\$?", each["pattern"])
        grams = sorted(_grams(plain_name(each["pattern"]))) if is_literal else ()
        rarest = min(grams, key=lambda gram: frequency[gram], default="")
        found[rarest].append((re.compile(each["pattern"]), each))
    return found


def plain_name(pattern: str) -> str:
    """Return the text of a pattern without signs of regular expressions: `[wW]get` is wget."""
    first = re.sub(r"\(([^|)]*)\|[^)]*\)", r"\1", pattern).partition("|")[0]
    plain = re.sub(r"\[\\s\\S\]\*|\[\^-\]|\\d\S*", " ", first)
    plain = re.sub(r"\[(.)[^\]]*\]|\\(.)", r"\1\2", plain)
    return " ".join(plain.strip("^$/ ").split())[:MAX_NAME_LENGTH]


def _grams(text: str) -> set[str]:
    return {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}


@lru_cache(4096)
def name_agent(user_agent: str) -> tuple[Kind, str]:
    """Return the kind of a reader, and the name of a known program; empty for people."""
    if found := min(_matches(user_agent), key=itemgetter(0, 1, 2), default=None):
        name, tags = plain_name(found[-1]["pattern"]), found[-1]["tags"]
        kind: Kind = next((kind for tag, kind in _KINDS.items() if tag in tags), "other_program")
        is_assistant = kind == "ai_crawler" and _ASSISTANT.search(name)
        return "ai_assistant" if is_assistant else kind, name
    lowered = user_agent.lower()  # a search that ignores case takes five times as long
    if _FEED_READER.search(lowered):
        return "feed_reader", ""
    is_person = _BROWSER.match(user_agent) and not _PROGRAM.search(_DEVICE.sub(r"\1", lowered))
    return ("person" if is_person else "other_program"), ""


def _matches(text: str) -> Iterator[tuple[bool, int, int, Mapping[str, Any]]]:
    """Yield the known programs of a text; the least, named first and longest, is the right one."""
    for gram in ("", *_grams(text)):
        for pattern, each in _programs().get(gram, ()):
            if match := pattern.search(text):
                is_generic = not _GENERIC.isdisjoint(each["tags"])
                yield is_generic, match.start(), match.start() - match.end(), each


_HOST: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.)+[a-z][a-z0-9-]{1,62}")
"""A host by name: an address of a machine is not one."""
_CLASSES: Final[tuple[tuple[Origin, re.Pattern[str]], ...]] = (
    (
        "ai_assistant",
        re.compile(
            r"(?:.+\.)?(?:chatgpt\.com|chat\.openai\.com|claude\.ai|perplexity\.ai|"
            r"gemini\.google\.com|copilot\.microsoft\.com|you\.com|phind\.com|chat\.mistral\.ai|"
            r"grok\.com|x\.ai|chat\.deepseek\.com|meta\.ai|poe\.com|notebooklm\.google\.com)"
        ),
    ),
    (
        "search",
        re.compile(
            r"(?:.+\.)?(?:google\.[a-z.]{2,6}|bing\.com|duckduckgo\.com|ecosia\.org|qwant\.com|"
            r"search\.yahoo\.com|yahoo\.co\.jp|search\.brave\.com|baidu\.com|yandex\.[a-z.]{2,6}|"
            r"kagi\.com|startpage\.com|mojeek\.com|marginalia-search\.com|naver\.com|seznam\.cz|"
            r"googlequicksearchbox)"
        ),
    ),
    (
        "social",
        re.compile(
            r"(?:.+\.)?(?:t\.co|x\.com|twitter\.com|facebook\.com|linkedin\.com|lnkd\.in|"
            r"reddit\.com|news\.ycombinator\.com|lobste\.rs|bsky\.app|threads\.net|youtube\.com|"
            r"instagram\.com|pinterest\.[a-z.]{2,6}|vk\.com|tiktok\.com|t\.me|telegram\.org|"
            r"whatsapp\.com|discord\.com|mastodon\.[a-z]+|tumblr\.com|weibo\.com)|"
            r"(?:mastodon|mstdn|fosstodon)\..+"
        ),
    ),
)


def clean_host(host: str) -> str:
    """Return a referrer's host by name, without port and `www.`; empty if it is none."""
    name = re.sub(r":[0-9]*\Z", "", host.lower()).removeprefix("www.")
    return name if _HOST.fullmatch(name) else ""


def classify_host(host: str) -> Origin:
    """Return the class of a referrer's host; `none` without one."""
    name = clean_host(host)
    found: Origin = next((each for each, hosts in _CLASSES if hosts.fullmatch(name)), "other_site")
    return found if host else "none"
