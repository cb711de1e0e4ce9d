"""Validation of lead input, and signs of spam."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, Final

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from edge_api.db.email_address import normalize_address
from edge_api.db.tables import MAX_EMAIL_LENGTH
from edge_api.operation.input import HONEYPOT, TextRule, check_email, check_form, normalize_newlines

_NAME = TextRule(100)
_BUDGET_TIER = TextRule(50)
_MESSAGE = TextRule(2000, multiline=True)


class LeadInput(BaseModel, strict=True, frozen=True):
    """An enquiry, as somebody sends it."""

    name: Annotated[
        str,
        AfterValidator(_NAME.clean),
        WithJsonSchema(_NAME.json_schema("Who asks.")),
        Field(examples=["Ann Lee"]),
    ]
    email: Annotated[
        str,
        AfterValidator(check_email),
        WithJsonSchema(
            {
                "type": "string",
                "format": "email",
                "minLength": 3,
                "maxLength": MAX_EMAIL_LENGTH,
                "description": "Where an answer reaches them. White space around it is taken off.",
            }
        ),
        Field(examples=["ann.lee@example.org"]),
    ]
    budget_tier: Annotated[
        str,
        AfterValidator(_BUDGET_TIER.clean),
        WithJsonSchema(_BUDGET_TIER.json_schema("What they may spend, in any words.")),
        Field(examples=["5k-10k"]),
    ]
    message: Annotated[
        str,
        AfterValidator(_MESSAGE.clean),
        WithJsonSchema(_MESSAGE.json_schema("What they want; tabs and line feeds stay.")),
        Field(examples=["We would like to move our blog to a static site."]),
    ]
    consent: bool = Field(
        default=False, description="Whether they agreed to `consent_text`; the time is kept."
    )
    consent_text: (
        Annotated[
            str,
            AfterValidator(_MESSAGE.clean),
            WithJsonSchema(_MESSAGE.json_schema("")),
        ]
        | None
    ) = Field(default=None, description="What they agreed to, in the words they saw.")
    filled_honeypot: SkipJsonSchema[Annotated[bool, BeforeValidator(bool)]] = Field(
        default=False, alias=HONEYPOT
    )

    def canonical(self) -> bytes:
        """Return the canonical JSON, equal for equal inputs."""
        return orjson.dumps(self.model_dump(), option=orjson.OPT_SORT_KEYS)


_CHECKED: Final = MappingProxyType({"on": True, "true": True, "1": True})
"""The values of a ticked box from browsers and people; anything else is not ticked."""


def read_form(fields: Mapping[str, str]) -> LeadInput:
    """Return the input of a posted form. Raises FormErrors."""
    given = normalize_newlines(fields)
    given["consent"] = _CHECKED.get(fields.get("consent", ""), False)
    if not fields.get("consent_text", ""):
        given["consent_text"] = None
    return check_form(LeadInput, given)


_LINK: Final = re.compile(r"(?:https?://|\bwww\.)\S", re.IGNORECASE)
_MANY_LINKS: Final = 3
_MARKUP: Final = re.compile(
    r"</?(?:a|b|img|iframe|script|div|font)(?:\s+[\w-]+=[^<>]{0,200})?\s*/?>|\[/?url\b|\[link=",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK")
"""Scripts whose letters look alike, so that words are forged by mixing them."""
_MIN_LETTERS: Final = 20  # letters that a text needs before its capitals mean something


_MAX_TITLE: Final = 200  # characters, so that most of a message is left to its sender
_REPEAT_WEIGHT: Final = 3  # the weight of a repetition within a short time
SPAM_THRESHOLD: Final = 3
"""The score from which a lead is not acknowledged: one strong sign, or several weak ones."""


@dataclass(frozen=True, slots=True)
class SpamScore:
    """A score from 0 on, and the name of each sign that added to it."""

    score: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def repeated(self) -> "SpamScore":
        """The score if the same was sent a short time ago."""
        return SpamScore(self.score + _REPEAT_WEIGHT, (*self.reasons, "repeated"))


def score_spam(lead: LeadInput) -> SpamScore:
    """Return the spam score of the lead by itself."""
    found = [(name, weight) for name, weight, is_seen in _SPAM_RULES if is_seen(lead)]
    return SpamScore(sum(weight for _, weight in found), tuple(name for name, _ in found))


def start_message(title: str, path: str) -> str:
    """Return the first line of a message about a page; a title that looks like spam is left out."""
    start = f"About \u201c{title[:_MAX_TITLE]}\u201d ({path}):\n\n"
    lead = LeadInput.model_construct(name="", budget_tier="", message=start)
    return f"About {path}:\n\n" if score_spam(lead).score else start


def dedupe_digest(lead: LeadInput) -> str:
    """Return a digest of sender and message, without case, white space and compatibility forms."""
    message = " ".join(unicodedata.normalize("NFKC", lead.message).casefold().split())
    return sha256(f"{normalize_address(lead.email)}\n{message}".encode()).hexdigest()


def _mixes_scripts(lead: LeadInput) -> bool:
    text = f"{lead.name} {lead.message}"
    return not text.isascii() and any(len(_scripts(word[0])) > 1 for word in _WORD.finditer(text))


def _scripts(word: str) -> set[str]:
    starts = (unicodedata.name(letter, "").partition(" ")[0] for letter in word)
    return {script for script in starts if script in _SCRIPTS}


def _shouts(lead: LeadInput) -> bool:
    text = lead.message
    return text.isupper() and sum(map(str.isalpha, text)) >= _MIN_LETTERS


_SPAM_RULES: Final[tuple[tuple[str, int, Callable[[LeadInput], bool]], ...]] = (
    ("honeypot", 10, lambda lead: lead.filled_honeypot),
    ("link", 1, lambda lead: bool(_LINK.search(lead.message))),
    ("many_links", 3, lambda lead: len(_LINK.findall(lead.message)) >= _MANY_LINKS),
    ("link_in_name", 5, lambda lead: bool(_LINK.search(f"{lead.name} {lead.budget_tier}"))),
    ("markup", 3, lambda lead: bool(_MARKUP.search(f"{lead.name}\n{lead.message}"))),
    ("mixed_scripts", 4, _mixes_scripts),
    ("shouting", 1, _shouts),
)
