"""How much a lead looks like spam: signs that are looked for in what was sent, and their weights.

Asks nobody else and drops nothing: it only gives a number with its reasons.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from edge_api.domain.lead_input import LeadInput
from edge_api.schema.mailbox import fold_address

_LINK: Final = re.compile(r"(?:https?://|\bwww\.)\S", re.IGNORECASE)
_MANY_LINKS: Final = 3
_MARKUP: Final = re.compile(
    r"</?(?:a|b|img|iframe|script|div|font)(?:\s+[\w-]+=[^<>]{0,200})?\s*/?>|\[/?url\b|\[link=",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK")
"""Scripts whose letters look alike, so that words are forged by mixing them."""
_SHOUTED: Final = 20
"""Letters that a text needs before its capitals mean something."""


_REPEATED: Final = 3
"""What it weighs that the same was sent a short time ago."""
HELD_FROM: Final = 3
"""The score from which on a lead is not acknowledged: one strong sign, or several weak ones."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A score from 0 on, and the name of each sign that added to it."""

    score: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def repeated(self) -> "Verdict":
        """The verdict if the same was sent a short time ago."""
        return Verdict(self.score + _REPEATED, (*self.reasons, "repeated"))


def judge(lead: LeadInput) -> Verdict:
    """Return the verdict on what the lead itself shows."""
    found = [(name, weight) for name, weight, is_seen in _SIGNS if is_seen(lead)]
    return Verdict(sum(weight for _, weight in found), tuple(name for name, _ in found))


def likeness(lead: LeadInput) -> str:
    """Return the digest that two leads share when the same person sends the same message.

    Case, white space and compatibility forms (NFKC) make no difference.
    """
    message = " ".join(unicodedata.normalize("NFKC", lead.message).casefold().split())
    return sha256(f"{fold_address(lead.email)}\n{message}".encode()).hexdigest()


def _has_links(lead: LeadInput) -> bool:
    return _LINK.search(lead.message) is not None


def _has_many_links(lead: LeadInput) -> bool:
    return sum(1 for _ in _LINK.finditer(lead.message)) >= _MANY_LINKS


def _has_link_in_name(lead: LeadInput) -> bool:
    return _LINK.search(f"{lead.name} {lead.budget_tier}") is not None


def _has_markup(lead: LeadInput) -> bool:
    return _MARKUP.search(f"{lead.name}\n{lead.message}") is not None


def _mixes_scripts(lead: LeadInput) -> bool:
    """Tell whether one word is written in letters of two scripts that look alike."""
    text = f"{lead.name} {lead.message}"
    return not text.isascii() and any(len(_scripts(word[0])) > 1 for word in _WORD.finditer(text))


def _scripts(word: str) -> set[str]:
    starts = (unicodedata.name(letter, "").partition(" ")[0] for letter in word)
    return {script for script in starts if script in _SCRIPTS}


def _shouts(lead: LeadInput) -> bool:
    text = lead.message
    return text.isupper() and sum(map(str.isalpha, text)) >= _SHOUTED


_SIGNS: Final[tuple[tuple[str, int, Callable[[LeadInput], bool]], ...]] = (
    ("honeypot", 10, lambda lead: lead.trapped),
    ("link", 1, _has_links),
    ("many_links", 3, _has_many_links),
    ("link_in_name", 5, _has_link_in_name),
    ("markup", 3, _has_markup),
    ("mixed_scripts", 4, _mixes_scripts),
    ("shouting", 1, _shouts),
)
