"""The keys of front matter: their names, types, checks and error messages.

The checks see values only; `site_build.content.document` finds their places in the file.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Literal
from unicodedata import category, normalize

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from edge_api.schema.index import SLUG_PATTERN, PostSummary
from site_build.content.dates import DATE_FORMS, read_instant, read_moment
from site_build.text import find_control_characters, make_slug, shorten

LONGEST_SERIES = 100
"""Most code points of a series' name, which is one line above the list of its posts."""

LONGEST_DESCRIPTION = 160
"""Most code points of a description; search engines and cards cut longer ones."""

_LANGUAGE = "[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*"

_SLUG_BYTES = 200
"""Most bytes of a slug in UTF-8: a file's name has 255 at most, with suffixes."""


_PART = r"[^\s/?#%\\\"<>.\x00-\x1f\x7f]"
_PARTS = rf"{_PART}(?:{_PART}|\.){{0,199}}"
_ALIAS = (
    rf"(?:{SLUG_PATTERN}"
    rf"|/(?:{_PARTS}/)*(?:{_PARTS}/|{_PART}{{1,200}}|{_PARTS}\.html))"
)
"""A former slug, or a path of folders, the last of which may lack its slash or end in `.html`."""


def _fault(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("front_matter", "{sentence}", {"sentence": sentence})


def _name_type(value: object) -> str:
    """Return a plain word for the type of a value that is no text."""
    return "empty" if value is None else "a list" if isinstance(value, list) else "a mapping"


def _require_text(value: object) -> str:
    """Return `value` on one line and trimmed; refuse a value that is no text."""
    if not isinstance(value, str):
        raise _fault(f"is {_name_type(value)}; {'write it as text' if value else 'fill it in'}")
    for at in find_control_characters(value):
        raise _fault(f"holds the control character U+{ord(value[at]):04X}; take it out")
    text = " ".join(value.split())
    if not text:
        raise _fault("is empty; fill it in")
    return text


def _require_slug(value: object) -> str:
    """Return a slug in Unicode's composed form, which file systems and browsers agree on."""
    text = normalize("NFC", _require_text(value))
    if (count := len(text.encode("utf-8", "replace"))) > _SLUG_BYTES:
        raise _fault(f"has {count} bytes; shorten it to {_SLUG_BYTES} at most")
    if (
        re.fullmatch(SLUG_PATTERN, text)
        and category(text[0])[0] != "M"
        and all(category(sign)[0] in "LMN" for sign in text if not sign.isascii())
    ):
        return text
    raise _fault(
        f"is {text[:40]!r}; use letters, digits and - _ . ~, such as "
        f"`slug: {make_slug(text) or 'my-post'}`"
    )


def _require_instant(value: object, info: ValidationInfo) -> datetime:
    if not isinstance(value, str):
        raise _fault(f"is {_name_type(value)}; write it as {DATE_FORMS}")
    try:
        return read_instant(value, info.context or UTC)
    except ValueError as fault:
        raise _fault(str(fault)) from None


def _require_revision(value: object, info: ValidationInfo) -> datetime:
    """Return the instant of a revision; a mere day that is that of publication gets its instant.

    Midnight of that day would be before the publication.
    """
    revised = _require_instant(value, info)
    published: datetime | None = info.data.get("date")
    if published is None or revised >= published:
        return revised
    days = {each.astimezone(info.context or UTC).date() for each in (revised, published)}
    if len(days) > 1 or isinstance(read_moment(str(value)), datetime):
        raise _fault("lies before `date`; a revision follows the publication")
    return published


def _require_list(value: object, info: ValidationInfo) -> object:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _fault(f"is {_name_type(value)}, not a list; write `{info.field_name}: [one, two]`")
    return tuple(value)


def _require(test: Callable[[str], object], explain: Callable[[str], str]) -> BeforeValidator:
    """Return a validator that refuses a text that fails `test`, with the message of `explain`."""

    def validate(value: object) -> str:
        text = _require_text(value)
        if not test(text):
            raise _fault(explain(text))
        return text

    return BeforeValidator(validate)


def _drop_repeated(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the first of tags that differ only in case."""
    first = {tag.casefold(): tag for tag in reversed(tags)}
    return tuple(first[name] for name in dict.fromkeys(tag.casefold() for tag in tags))


def _require_status(value: object) -> str:
    """Return the status in lower case, with `draft` for Pelican's `skip`."""
    text = _require_text(value).lower()
    if text not in {"published", "hidden", "draft", "skip"}:
        raise _fault(f"is {text[:40]!r}; write `status: draft`, `hidden` or `published`")
    return text.replace("skip", "draft")


TextValue = Annotated[str, BeforeValidator(_require_text)]
Slug = Annotated[str, PostSummary.model_fields["slug"], BeforeValidator(_require_slug)]
Instant = Annotated[datetime, BeforeValidator(_require_instant)]
Tag = Annotated[
    str,
    _require(
        make_slug, lambda text: f"is {text!r}, which gives no address; use a letter or a digit"
    ),
]
Tags = Annotated[tuple[Tag, ...], AfterValidator(_drop_repeated), BeforeValidator(_require_list)]
AliasValue = Annotated[
    str,
    Field(pattern=f"^{_ALIAS}$"),
    _require(
        re.compile(_ALIAS).fullmatch,
        lambda text: (
            f"is {shorten(text)!r}; write a former slug, or a path such as `/2019/old-post/` or "
            "`/2019/old.html`"
        ),
    ),
]
PictureLink = Annotated[
    str,
    _require(
        re.compile(r"[^\s()<>\[\]\\]+").fullmatch,
        lambda text: (
            f"is {shorten(text)!r}; write a path without blanks, such as `../images/oak.jpg`"
        ),
    ),
]
Status = Annotated[Literal["published", "hidden", "draft"], BeforeValidator(_require_status)]
Series = Annotated[
    str,
    Field(max_length=LONGEST_SERIES),
    _require(
        lambda text: len(text) <= LONGEST_SERIES,
        lambda text: f"has {len(text)} characters; shorten it to {LONGEST_SERIES} at most",
    ),
]
LanguageTag = Annotated[
    str,
    Field(pattern=f"^{_LANGUAGE}$"),
    _require(
        re.compile(_LANGUAGE).fullmatch,
        lambda text: f"is {text[:40]!r}; write a language tag such as `lang: en` or `lang: pt-BR`",
    ),
]


class PageFrontMatter(BaseModel):
    """The keys of a page's head; the head of a post has the same, and must have a date."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: TextValue = Field(description="The heading, as plain text.", examples=["Hello, world"])
    slug: Slug = Field(
        description="The last part of the address; made of the title if it is left out.",
        examples=["hello-world"],
    )
    date: Instant | None = Field(
        None, description="When it appears; in TIMEZONE unless it has a zone."
    )
    updated: Annotated[datetime, BeforeValidator(_require_revision)] | None = Field(
        None, description="When it was last revised."
    )
    tags: Tags = Field((), description="What it is about, in the author's order.")
    series: Series = Field("", description="The series of posts that it is a part of.")
    description: TextValue = Field(
        "", description="One or two sentences for lists, search engines and feeds."
    )
    excerpt: TextValue = Field("", description="Shown in lists in place of the description.")
    status: Status = Field(
        "published",
        description="A draft is kept out of everything public; a hidden text is in no list.",
    )
    lang: LanguageTag = Field("", description="The language of the text, as a BCP 47 tag.")
    author: TextValue = Field("", description="The author, if not the site's author.")
    category: TextValue = Field(
        "", description="The one category that it is in, for Pelican's themes."
    )
    image: PictureLink = Field(
        "", description="A picture for its top and for lists, as a link to it."
    )
    image_alt: TextValue = Field(
        "", description="What the picture shows, for people who cannot see it."
    )
    aliases: Annotated[tuple[AliasValue, ...], BeforeValidator(_require_list)] = Field(
        (), description="Its former slugs and paths, which lead to it."
    )


class PostFrontMatter(PageFrontMatter):
    """The keys of a post's head."""

    date: Instant = Field(
        description="When it appears; in TIMEZONE unless it has a zone.",
        examples=["2026-03-01T09:30:00Z"],
    )


PELICAN_KEYS = {"summary": "description", "modified": "updated", "authors": "author"}
"""Our keys by the names that Pelican gives them."""

KEYS = tuple(sorted({*PageFrontMatter.model_fields, *PELICAN_KEYS}))

EXAMPLES = {
    name: str(field.examples[0])
    for name, field in PostFrontMatter.model_fields.items()
    if field.examples
}
"""Example values by key, for an author who left the key out."""
