"""The words of each message: its subject, its text and its HTML, rendered from templates.

Nothing here knows headers or addresses. Whatever a template prints is put on one line first, so
that no value can pass for a part of the message that it is not.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Literal, get_args
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from edge_api.domain.lead_input import HELD_FROM

TemplateName = Literal["lead_notification", "lead_acknowledgement", "access_decision"]
AutoSubmitted = Literal["auto-generated", "auto-replied"]
"""Whether something happened, or somebody wrote (RFC 3834, section 5.1)."""
_JOINERS: Final = frozenset("\u200c\u200d")
"""Format characters that are part of how words are spelled, and of some emoji."""
_LABEL_SIGNS: Final = frozenset(" .'-&+\u2019")
"""What stands in names beside letters, and separates nothing in a header of addresses."""


@dataclass(frozen=True, slots=True)
class Template:
    """One kind of message; its text and HTML are files of its name."""

    subject: str
    """A template too."""
    values: tuple[str, ...]
    """What it is given, no more and no less."""
    auto_submitted: AutoSubmitted = "auto-generated"
    unsubscribable: bool = False
    """Whether it is given `unsubscribe_url` besides."""


_SITE: Final = ("site_title", "site_url")

TEMPLATES: Mapping[TemplateName, Template] = MappingProxyType(
    {
        "lead_notification": Template(
            "{% if lead is suspect %}[looks like spam] {% elif lead is repeated %}[repeated] "
            "{% endif %}New enquiry from {{ lead.name }}",
            ("lead", *_SITE),
        ),
        # Anybody can have it sent to anybody: it has not one word of what they wrote.
        "lead_acknowledgement": Template(
            "Your enquiry has arrived: {{ site_title }}", _SITE, "auto-replied", unsubscribable=True
        ),
        "access_decision": Template(
            "Your request for access is {{ 'approved' if approved else 'declined' }}: "
            "{{ site_title }}",
            ("approved", "claim_uri", "expires_at", *_SITE),
        ),
    }
)
assert tuple(TEMPLATES) == get_args(TemplateName)  # noqa: S101  one list, stated twice for the type


@dataclass(frozen=True, slots=True)
class Wording:
    """What a message says."""

    subject: str
    text: str
    html: str


def render(name: TemplateName, values: Mapping[str, Any], unsubscribe_url: str | None) -> Wording:
    """Return the words of a message.

    Raises TypeError for values that are not the template's, and ValueError where it needs an
    address to unsubscribe at and has none.
    """
    template = TEMPLATES[name]
    _check_names(name, values)
    given = dict(values)
    if template.unsubscribable:
        if unsubscribe_url is None:
            raise ValueError(f"{name}: needs an address to unsubscribe at")
        given["unsubscribe_url"] = unsubscribe_url
    subject = " ".join(_SUBJECTS[name].render(given).split())
    given["subject"] = subject
    text = _TEMPLATES.get_template(f"{name}.txt").render(given)
    return Wording(subject, text, _TEMPLATES.get_template(f"{name}.html").render(given))


def _check_names(name: TemplateName, values: Mapping[str, Any]) -> None:
    wrong = set(values) ^ set(TEMPLATES[name].values)
    if wrong:
        raise TypeError(f"{name}: missing or unknown values: {', '.join(sorted(wrong))}")


def _finalize(value: object) -> object:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return one_line(value)


def _instant(value: str | datetime) -> str:
    """Return an instant for people, in UTC."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    moment = moment.astimezone(UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _reasons(lead: Mapping[str, Any]) -> list[str]:
    """Return the signs of a lead in words; administrators may have put any JSON there."""
    found = lead["spam_reasons"]
    return [str(name).replace("_", " ") for name in found] if isinstance(found, list) else []


def _is_repeated(lead: Mapping[str, Any]) -> bool:
    """Tell whether nothing speaks against a lead but that it came before."""
    return _reasons(lead) == ["repeated"]


def _is_suspect(lead: Mapping[str, Any]) -> bool:
    return lead["spam_score"] >= HELD_FROM and not _is_repeated(lead)


def _mailto(address: str) -> str:
    """Return the URL that writes to an address (RFC 6068)."""
    return f"mailto:{quote(one_line(address), safe='@')}"


_TEMPLATES: Final = Environment(
    loader=PackageLoader("edge_api.domain.mail"),
    autoescape=select_autoescape(["html"], default_for_string=False),
    finalize=_finalize,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters.update(instant=_instant, reasons=_reasons, mailto=_mailto)
_TEMPLATES.tests.update(suspect=_is_suspect, repeated=_is_repeated)
_SUBJECTS: Final = {
    name: _TEMPLATES.from_string(template.subject) for name, template in TEMPLATES.items()
}


def one_line(text: str) -> str:
    """Return a stranger's text fit to be in a message: on one line, as long as it was or shorter.

    Line ends, tabs and other control characters become spaces; characters of Unicode's category
    Cf, such as those that turn the direction of writing, go, and so do lone surrogates.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_tame, text))


def label(text: str) -> str:
    """Return the letters, digits and spaces of a name, which no reader takes for an address."""
    kept = (sign if _is_label(sign) else " " for sign in one_line(text))
    return " ".join("".join(kept).split())


def _tame(sign: str) -> str:
    category = unicodedata.category(sign)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category in ("Cf", "Cs") and sign not in _JOINERS else sign


def _is_label(sign: str) -> bool:
    return sign in _LABEL_SIGNS or sign in _JOINERS or unicodedata.category(sign)[0] in "LMN"
