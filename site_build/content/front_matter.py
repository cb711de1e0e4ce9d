"""The keys that may stand at the head of a source file: their names, kinds and sentences, once.

Only values come in here; where they stand in the file is `site_build.content.document`'s knowledge.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, tzinfo
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from edge_api.schema.index import PostSummary
from site_build.text import find_control_characters, make_slug, shorten

LONGEST_SERIES = 100
"""Code points; it stands on one line above the parts."""

LONGEST_DESCRIPTION = 160
"""Code points; search engines and cards cut what is longer."""

DATE_FORMS = "2026-03-01 or 2026-03-01T09:30:00Z"

_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|z|[+-][0-9]{2}:[0-9]{2})?)?"
)

_LANGUAGE = "[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*"

_SLUG: TypeAdapter[str] = TypeAdapter(Annotated[str, PostSummary.model_fields["slug"]])


_PART = r"[^\s/?#%\\\"<>.\x00-\x1f\x7f]"
_PARTS = rf"{_PART}(?:{_PART}|\.){{0,199}}"
_ALIAS = (
    rf"(?:[a-z0-9][a-z0-9-]{{0,199}}"
    rf"|/(?:{_PARTS}/)*(?:{_PARTS}/|{_PART}{{1,200}}|{_PARTS}\.html))"
)
"""A former slug, or a path of folders, the last of which may lack its slash or end in `.html`."""


def _fault(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("front_matter", "{sentence}", {"sentence": sentence})


def name_kind(value: object) -> str:
    """Return what a YAML value is, as a person would call it."""
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "text"),
        (bool, "true or false"),
        ((int, float), "a number"),
        (date, "a date"),
        (list, "a list"),
        (dict, "a mapping"),
    )
    if value is None:
        return "empty"
    return next((name for kind, name in names if isinstance(value, kind)), "no plain value")


def _require_text(value: object) -> str:
    """Return `value` on one line and trimmed; refuse what YAML does not take for text."""
    if not isinstance(value, str):
        fix = "put it in quotes" if isinstance(value, int | float | date) else "write it as text"
        raise _fault("is empty; fill it in" if value is None else f"is {name_kind(value)}; {fix}")
    for at in find_control_characters(value):
        raise _fault(f"holds the control character U+{ord(value[at]):04X}; take it out")
    text = " ".join(value.split())
    if not text:
        raise _fault("is empty; fill it in")
    return text


def _require_slug(value: object) -> object:
    text = _require_text(value)
    try:
        return _SLUG.validate_python(text)
    except ValidationError as refusal:
        first = refusal.errors()[0]
    if first["type"] == "string_too_long":
        longest = first["ctx"]["max_length"]
        raise _fault(f"has {len(text)} characters; shorten it to {longest} at most")
    fix = f"`slug: {make_slug(text) or 'my-post'}`"
    raise _fault(f"is {text[:40]!r}; use a-z, 0-9 and hyphens, such as {fix}")


def parse_instant(value: object, zone: tzinfo = UTC) -> datetime:
    """Return the UTC instant of a date, a date with a time, or text; `zone` where it names none.

    Raises ValueError with the fix.
    """
    match value:
        case datetime():
            instant = value
        case date():
            instant = datetime.combine(value, time())
        case str() if _INSTANT.fullmatch(value.strip()):
            instant = _parse_iso(value.strip())
        case str():
            raise ValueError(f"is {value[:40]!r}; write it as {DATE_FORMS}")
        case _:
            raise ValueError(f"is {name_kind(value)}; write it as {DATE_FORMS}")
    try:
        return (instant if instant.tzinfo else instant.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999; fix the year") from None


def _parse_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        raise ValueError(f"is {text!r}, which is on no calendar; fix the day or time") from None


def _require_instant(value: object, info: ValidationInfo) -> datetime:
    try:
        return parse_instant(value, info.context or UTC)
    except ValueError as fault:
        raise _fault(str(fault)) from None


def _require_revision(value: object, info: ValidationInfo) -> datetime:
    """Return the instant of a revision; a bare day that is the day of publication means just it.

    Who writes no time of day does not mean midnight, before the post was there.
    """
    revised = _require_instant(value, info)
    published: datetime | None = info.data.get("date")
    zone = info.context or UTC
    days = {each.astimezone(zone).date() for each in (revised, published or revised)}
    if published and _is_day(value) and len(days) == 1:
        return max(revised, published)
    return revised


def _is_day(value: object) -> bool:
    if isinstance(value, str):
        return len(value.strip()) == len("2026-03-01")
    return not isinstance(value, datetime)


def _require_list(value: object, info: ValidationInfo) -> object:
    if value is None:
        return ()
    if isinstance(value, str):
        names = ", ".join(part.strip() for part in value.split(",") if part.strip())
        raise _fault(f"is text, not a list; write `{info.field_name}: [{shorten(names)}]`")
    if not isinstance(value, list):
        raise _fault(f"is {name_kind(value)}, not a list; write `{info.field_name}: [one, two]`")
    return tuple(value)


def _require(test: Callable[[str], object], explain: Callable[[str], str]) -> BeforeValidator:
    """Return what refuses a text that does not pass a test, with a sentence about the text."""

    def validate(value: object) -> str:
        text = _require_text(value)
        if not test(text):
            raise _fault(explain(text))
        return text

    return BeforeValidator(validate)


def _drop_repeated(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the first of the tags that differ in case alone."""
    kept: dict[str, str] = {}
    for tag in tags:
        kept.setdefault(tag.casefold(), tag)
    return tuple(kept.values())


def _require_status(value: object) -> object:
    if not isinstance(value, str) or value not in {"published", "draft"}:
        said = repr(value[:40]) if isinstance(value, str) else name_kind(value)
        raise _fault(f"is {said}; write `status: draft` or `status: published`")
    return value


Text = Annotated[str, BeforeValidator(_require_text)]
Slug = Annotated[str, PostSummary.model_fields["slug"], BeforeValidator(_require_slug)]
Instant = Annotated[datetime, BeforeValidator(_require_instant)]
Revision = Annotated[datetime, BeforeValidator(_require_revision)]
Tag = Annotated[
    str,
    _require(
        make_slug, lambda text: f"is {text!r}, which gives no address; use a letter or a digit"
    ),
]
Tags = Annotated[tuple[Tag, ...], AfterValidator(_drop_repeated), BeforeValidator(_require_list)]
Alias = Annotated[
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
Aliases = Annotated[tuple[Alias, ...], BeforeValidator(_require_list)]
Picture = Annotated[
    str,
    _require(
        re.compile(r"[^\s()<>\[\]\\]+").fullmatch,
        lambda text: (
            f"is {shorten(text)!r}; write a path without blanks, such as `../images/oak.jpg`"
        ),
    ),
]
Status = Annotated[Literal["published", "draft"], BeforeValidator(_require_status)]
Series = Annotated[
    str,
    Field(max_length=LONGEST_SERIES),
    _require(
        lambda text: len(text) <= LONGEST_SERIES,
        lambda text: f"has {len(text)} characters; shorten it to {LONGEST_SERIES} at most",
    ),
]
Language = Annotated[
    str,
    Field(pattern=f"^{_LANGUAGE}$"),
    _require(
        re.compile(_LANGUAGE).fullmatch,
        lambda text: f"is {text[:40]!r}; write a language tag such as `lang: en` or `lang: pt-BR`",
    ),
]


class PageFrontMatter(BaseModel):
    """What the head of a page may say; a post says the same, and its date."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Text = Field(description="The heading, as plain text.", examples=["Hello, world"])
    slug: Slug = Field(description="The last part of the address.", examples=["hello-world"])
    date: Instant | None = Field(None, description="When it appears; UTC unless it has a zone.")
    updated: Revision | None = Field(None, description="When it was last revised.")
    tags: Tags = Field((), description="What it is about, in the author's order.")
    series: Series = Field("", description="The series of posts that it is a part of.")
    description: Text = Field(
        "", description="One or two sentences for lists, search engines and feeds."
    )
    excerpt: Text = Field("", description="Shown in lists in place of the description.")
    status: Status = Field("published", description="A draft is kept out of everything public.")
    lang: Language = Field("", description="The language of the text, as a BCP 47 tag.")
    author: Text = Field("", description="Who wrote it, where that is not the site's author.")
    category: Text = Field("", description="The one category that it is in, for Pelican's themes.")
    image: Picture = Field("", description="A picture for its top and for lists, as a link to it.")
    image_alt: Text = Field("", description="What the picture shows, for who does not see it.")
    aliases: Aliases = Field((), description="Its former slugs and paths, which lead to it.")

    @field_validator("updated")
    @classmethod
    def _follow_date(cls, updated: datetime | None, info: ValidationInfo) -> datetime | None:
        published = info.data.get("date")
        if updated and published and updated < published:
            raise _fault("lies before `date`; a revision follows the publication")
        return updated


class PostFrontMatter(PageFrontMatter):
    """What the head of a post may say."""

    date: Instant = Field(
        description="When it appears; UTC unless it has a zone.", examples=["2026-03-01T09:30:00Z"]
    )


ALIASES = {"summary": "description"}
"""Other names for a key, as other generators have them."""

KEYS = tuple(sorted({*PageFrontMatter.model_fields, *ALIASES}))

EXAMPLES = {
    name: str(field.examples[0])
    for name, field in PostFrontMatter.model_fields.items()
    if field.examples
}
"""A value to show to an author who left the key out."""
