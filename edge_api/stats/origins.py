"""Classes of the sites that readers come from, by the host of `Referer`."""

import re
from typing import Final

from edge_api.db.tables import Origin

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
