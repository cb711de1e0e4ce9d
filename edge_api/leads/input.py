"""The input of leads from the API and the form, and its spam score."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Annotated, Any, Final

import orjson
from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from edge_api.db.mail_addresses import normalize_address
from edge_api.db.tables import LEADS
from edge_api.db.types import Lines
from edge_api.db.visitor_columns import SentLead
from edge_api.operation.input import HONEYPOT, FormErrors, SentColumns, check_form
from edge_api.schema.sentences import Sentence, sentence

MAX_MESSAGE: Final = LEADS.columns["message"].bounds[1] or 0  # characters


class LeadInput(SentLead, SentColumns):
    """An enquiry, as somebody sends it."""

    consent: bool = Field(
        default=False, description="Whether they agreed to `consent_text`; the time is kept."
    )
    consent_text: Annotated[Lines, Field(min_length=1, max_length=MAX_MESSAGE)] | None = Field(
        default=None, description="What they agreed to, in the words they saw."
    )
    filled_honeypot: SkipJsonSchema[Annotated[bool, BeforeValidator(bool)]] = Field(
        default=False, alias=HONEYPOT
    )

    def canonical(self) -> bytes:
        """Return the canonical JSON, equal for equal inputs."""
        return orjson.dumps(self.model_dump(), option=orjson.OPT_SORT_KEYS)


class LongLead(LeadInput):
    """An enquiry by the form whose message may be stored as two leads."""

    message: Annotated[Lines, Field(min_length=1, max_length=2 * MAX_MESSAGE)]


def read_form(fields: Mapping[str, str], say: Callable[[str], str] = str) -> LeadInput:
    """Return the input of a posted form; a `LongLead` if the button `rest` sent a long message.

    `say` translates a sentence into the language of the form. Raises FormErrors; if a message is
    too long for one lead but not for two, they offer that button, which sends it as two.
    """
    given: dict[str, Any] = dict(fields)
    if _is_only_started(given.get("message", "").strip(), say):
        given["message"] = ""  # the sender added nothing to the text of `start_message`
    # The values of a ticked box: "on" in browsers, the others in requests that people write.
    given["consent"] = fields.get("consent") in ("on", "true", "1")
    try:
        return check_form(LeadInput, given)
    except FormErrors as errors:
        if len(given.get("message", "")) <= MAX_MESSAGE or "message" not in errors.by_field:
            raise
        faults = errors.by_field
    try:
        lead = check_form(LongLead, given)
        if fields.get("rest", ""):
            return lead
    except FormErrors as errors:
        if "message" in errors.by_field:
            raise
        faults = errors.by_field if fields.get("rest", "") else faults
    offer = {
        "rest": sentence("or send up to %(most)s characters as two messages", most=2 * MAX_MESSAGE)
    }
    raise FormErrors({**faults, **offer})


_PLACES: Final = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?\u2026]\W?\s|[\u3002\uff01\uff1f]"),
    re.compile(r"\s"),
    re.compile(r"(?<!\u200d)(?=\w|[\u2190-\u2bff\U0001f300-\U0001f3fa\U0001f400-\U0001faff])"),
    re.compile(""),
)
"""Places to cut a message, best first: the end of a paragraph, a line, a sentence, a word, a
character with its marks, a code point."""


def split_message(text: str) -> tuple[str, ...]:
    """Return a message in one part, or a too long one in two, cut at the best place."""
    if len(text) <= MAX_MESSAGE:
        return (text,)
    start, end = len(text) - MAX_MESSAGE, MAX_MESSAGE + 1
    found = ([each.end() for each in place.finditer(text, start, end)] for place in _PLACES)
    cut = next(max(within) for ends in found if (within := [each for each in ends if each < end]))
    return text[:cut].rstrip(), text[cut:].lstrip()


# These search a text that `_fold` has folded, since re.IGNORECASE takes four times as long.
# Patterns begin with `\W`, which is twice as fast as `\b`; so `score_spam` puts a blank before the
# text.
_LINK: Final = re.compile(r"(?:https?://|\bwww\.)\S")
_MANY_LINKS: Final = 3
_MIN_LETTERS: Final = 20  # letters that a text needs before its capitals mean something
_MARKUP: Final = re.compile(
    r"</?(?:a|b|img|iframe|script|div|font)(?:\s+[\w-]+=[^<>]{0,200})?\s*/?>|\[/?url\b|\[link="
)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_WARES: Final = re.compile(
    r"\W((?:back-?links?|link[ -]building|guest posts?|domain authority|seo (?:services?|packages?|"
    r"audit)|first page of google|rank(?:ing)? #?1|web ?traffic|casinos?|betting|slots?|viagra|"
    r"cialis|pharmacy|pills|replica watches|crypto\w*|bitcoins?|forex|passive income|payday loans?|"
    r"investments?|"
    r"business loans?|(?:email|e-mail) lists?|bulk (?:sms|e-?mails?)|followers|escorts?|dating)\b)"
)
"""Names of goods that spam sells. Two different ones are a sign of spam: the text is about them."""
_WARE_STEMS: Final = re.compile(
    r"\u043a\u0430\u0437\u0438\u043d\u043e|\u0441\u0442\u0430\u0432\u043a\u0438|"
    r"\u0437\u0430\u0440\u0430\u0431\u043e\u0442|\u043a\u0440\u0438\u043f\u0442|"
    r"\u0431\u0438\u0442\u043a\u043e|\u535a\u5f69|\u8d37\u6b3e|\u53d1\u7968"
)
"""The same in Russian and Chinese, without the ends of words."""
_CALLS: Final = re.compile(
    r"\W(?:"
    r"(?:buy|order|click|act|sign up|register|invest|apply|reply|join) (?:now|here|today|us)\b|"
    r"buy (?:back-?links|followers|traffic|cheap)|(?:limited|special) (?:time )?offer|"
    r"(?:100 ?%|risk)[ -](?:free|guaranteed)|guaranteed (?:results|ranking|profit|income)|"
    r"no obligation|earn \$?\d|only \$ ?\d|\d+ ?% (?:bonus|profit))"
)
"""Words that urge a reader to buy at once."""
_CALL_STEMS: Final = re.compile(
    r"\u0436\u043c\u0438|\u043f\u0435\u0440\u0435\u0445\u043e\u0434\u0438|"
    r"\u0440\u0435\u0433\u0438\u0441\u0442\u0440\u0438\u0440\u0443\u0439|"
    r"\u70b9\u51fb|\u52a0\u5fae\u4fe1"
)
"""The same in Russian and Chinese, without the ends of words."""


def _fold(text: str) -> str:
    """Return a text with its cases folded, the dotted and the dotless I of Turkish as `i`."""
    if text.isascii():  # the usual case, in a tenth of the time
        return text.lower()
    return text.replace("\u0130", "i").replace("\u0131", "i").casefold()


_MAX_TITLE: Final = 200  # characters, so that most of a message is left to its sender
_MAX_PATH: Final = 300  # characters, more than a page has
REPEAT_WEIGHT: Final = 3  # the weight of a repetition within a day; it hides no lead
SUSPECT_FROM: Final = 3
"""The score from which a lead is marked and not acknowledged."""
HIDDEN_FROM: Final = 7
"""The score from which a lead without a credential is stored with the status `spam`."""


def score_spam(lead: LeadInput) -> tuple[int, list[str]]:
    """Return a lead's spam score (0: none), without repetitions, and the names of its signs."""
    # A form offers tiers to choose from: who puts a link or markup into one would do so in a name.
    text, name = _fold(f" {lead.message}"), _fold(f"{lead.name} {lead.budget_tier}")
    links = len(_LINK.findall(text)) if "http" in text or "www." in text else 0
    wares, calls = set(_WARES.findall(text)), _CALLS.search(text)
    if not text.isascii():
        wares.update(_WARE_STEMS.findall(text))
        calls = calls or _CALL_STEMS.search(text)
    signs = (
        ("honeypot", 10, lead.filled_honeypot),
        ("link", 1, links),
        ("many_links", 3, links >= _MANY_LINKS),
        ("link_in_name", 5, _LINK.search(name)),
        ("markup", 2, _MARKUP.search(f"{name}\n{text}")),
        ("mixed_scripts", 2, _mixes_scripts(lead)),
        (
            "shouting",
            1,
            lead.message.isupper() and sum(map(str.isalpha, lead.message)) >= _MIN_LETTERS,
        ),
        ("wares", 2, len(wares) > 1),
        ("call_to_buy", 2, calls),
    )
    found = {name: weight for name, weight, is_seen in signs if is_seen}
    if found.keys() >= {"wares", "call_to_buy"}:
        found["sales_pitch"] = 2
    # Without one of these signs it is never hidden: people send links, code and capitals too.
    has_intent = not found.keys().isdisjoint({"honeypot", "link_in_name", "sales_pitch"})
    most = sum(found.values()) if has_intent else HIDDEN_FROM - 1
    is_weak = list(found) in (["markup"], ["mixed_scripts"])  # one of them is the only sign
    return 1 if is_weak else min(most, sum(found.values())), list(found)


def start_message(title: str, path: str) -> Sentence:
    """Return the first line of a message about a page; a title that looks like spam is left out."""
    start, short = _starts(title[:_MAX_TITLE], path)
    lead = LeadInput.model_construct(name="", budget_tier="", message=start)
    return short if score_spam(lead)[0] else start


def _starts(title: str, path: str) -> tuple[Sentence, Sentence]:
    return (
        sentence("About \u201c%(title)s\u201d (%(path)s):", title=title, path=path),
        sentence("About %(path)s:", path=path),
    )


def _is_only_started(message: str, say: Callable[[str], str]) -> bool:
    """Return whether a message has only the text of `start_message`."""
    title, path = f".{{0,{_MAX_TITLE}}}", f"/\\S{{0,{_MAX_PATH}}}"  # bounded, so matched fast
    forms = (re.escape(say(start)) for start in _starts("\0", "\1"))
    patterns = (form.replace("\0", title).replace("\1", path) for form in forms)
    return any(re.fullmatch(pattern, message) for pattern in patterns)


def dedupe_digest(email: str, text: str) -> str:
    """Return a digest of sender and message that ignores case, white space and Unicode variants."""
    known = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return sha256(f"{normalize_address(email)}\n{' '.join(known.split())}".encode()).hexdigest()


def _mixes_scripts(lead: LeadInput) -> bool:
    text = f"{lead.name} {lead.message}"
    words = [] if text.isascii() else [word for word in _WORD.findall(text) if not word.isascii()]
    starts = ([unicodedata.name(letter, "").partition(" ")[0] for letter in word] for word in words)
    # Letters of these scripts look alike: a word that mixes them is disguised.
    return any(len({"LATIN", "CYRILLIC", "GREEK"}.intersection(each)) > 1 for each in starts)
