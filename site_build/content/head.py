"""Understands the head of a source file: entries of YAML in, checked front matter out.

Every defect becomes a sentence with its fix at its place. It knows nothing of the text below.
"""

from difflib import get_close_matches
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from site_build import addresses
from site_build.addresses import SourceRules
from site_build.content.entries import Entry
from site_build.content.front_matter import (
    ALIASES,
    EXAMPLES,
    KEYS,
    LONGEST_DESCRIPTION,
    PageFrontMatter,
    PostFrontMatter,
)
from site_build.site import Kind
from site_build.text import make_slug, shorten

RESERVED_SLUGS: dict[Kind, frozenset[str]] = {
    "post": frozenset({"page"}),
    "page": frozenset({"api"})
    | {
        folder.rstrip("/")
        for folder in (
            *addresses.HOUSE.list_overviews(),
            addresses.CARDS,
            addresses.IMAGES,
            addresses.PICTURES,
            addresses.THEME,
        )
    },
}
"""Addresses that the site itself answers, where its settings leave addresses as they are."""

OTHER_NAMES = {
    "categories": "tags",
    "keywords": "tags",
    "subtitle": "description",
    "abstract": "description",
    "permalink": "slug",
    "url": "slug",
    "language": "lang",
    "created": "date",
    "publishdate": "date",
    "modified": "updated",
    "lastmod": "updated",
    "authors": "author",
    "redirect_from": "aliases",
}
"""Keys of other generators, with the one that means the same here."""
DRAFT_KEYS = frozenset({"draft", "hidden", "private", "published", "unlisted"})


class Fault(NamedTuple):
    """A finding before its line is known; the offset counts code points of the file's text."""

    offset: int
    message: str
    severity: Literal["error", "warning"] = "error"


def read_head(
    kind: Kind, fence_at: int, entries: list[Entry], rules: SourceRules
) -> tuple[PageFrontMatter | None, list[Fault]]:
    """Return the checked front matter, or None where errors forbid it, with all faults.

    `fence_at` is the offset of the opening fence, where faults of missing keys stand.
    """
    known, faults = _sort_out(entries)
    model = PostFrontMatter if kind == "post" else PageFrontMatter
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    values = {
        key: entry.value
        for key, entry in known.items()
        if entry.value is not None or key in required
    }
    try:
        head = model.model_validate(values, context=ZoneInfo(rules.timezone))
    except ValidationError as refusal:
        return None, faults + _explain_refusal(refusal, known, fence_at)
    places = (rules.addresses, addresses.HOUSE)
    forms, usual = ((each.post, each.page, each.list_overviews()) for each in places)
    is_reserved = forms == usual and head.slug in RESERVED_SLUGS[kind]
    return head, faults + _check_values(kind, head, known, is_reserved=is_reserved)


def find_value(entries: list[Entry], name: str) -> int:
    """Return the offset of what a key says in a head that was understood; 0 without the key."""
    named = (each.value_at for each in entries if ALIASES.get(each.key, each.key) == name)
    return next(named, 0)


def find_members(entries: list[Entry], name: str) -> tuple[int, ...]:
    """Return the offsets of the members of a list in a head that was understood."""
    return next((each.members_at for each in entries if each.key == name), ())


def _sort_out(entries: list[Entry]) -> tuple[dict[str, Entry], list[Fault]]:
    """Part the keys that mean something from those that do not, or say it twice."""
    known: dict[str, Entry] = {}
    faults = []
    for entry in entries:
        name = ALIASES.get(entry.key, entry.key)
        if name not in PageFrontMatter.model_fields:
            faults.append(_explain_unknown(entry))
        elif name in known:
            first = known[name].key
            says = "is given twice" if entry.key == first else f"says the same as `{first}`"
            faults.append(Fault(entry.key_at, f"`{entry.key}` {says}; keep one of them"))
        else:
            known[name] = entry
    return known, faults


def _explain_unknown(entry: Entry) -> Fault:
    # An author who writes `draft: true` trusts that nobody will read it: not a matter of warning.
    if entry.key in DRAFT_KEYS:
        fix = "write `status: draft` or `status: published`"
        return Fault(entry.key_at, f"`{entry.key}` is no key of the front matter; {fix}")
    key = entry.key[:40].casefold()
    near = OTHER_NAMES.get(key) or next(iter(get_close_matches(key, KEYS, n=1)), None)
    known = f"the keys are {', '.join(KEYS)}, and those of FRONT_MATTER_EXTRA"
    fix = f"did you mean `{near}`?" if near else known
    message = f"`{shorten(entry.key)}` is no key of the front matter; {fix}"
    return Fault(entry.key_at, message, "warning")


def _explain_refusal(
    refusal: ValidationError, known: dict[str, Entry], fence_at: int
) -> list[Fault]:
    """Turn the first complaint about each value into a fault at its place."""
    faults: dict[tuple[str | int, ...], Fault] = {}
    for complaint in refusal.errors(include_url=False):
        name, member = str(complaint["loc"][0]), complaint["loc"][1:2]
        entry = known.get(name)
        if entry is None:
            title = known.get("title")
            slug = make_slug(title.value) if title and isinstance(title.value, str) else ""
            example = slug if name == "slug" and slug else EXAMPLES[name]
            fault = Fault(fence_at, f"`{name}` is missing; add a line `{name}: {example}`")
        elif member and isinstance(member[0], int):
            noun = "an alias" if name == "aliases" else "a tag"
            fault = Fault(entry.members_at[member[0]], f"{noun} {complaint['msg']}")
        else:
            fault, member = Fault(entry.value_at, f"`{entry.key}` {complaint['msg']}"), ()
        faults.setdefault((name, *member), fault)
    return list(faults.values())


def _check_values(
    kind: Kind, head: PageFrontMatter, known: dict[str, Entry], *, is_reserved: bool
) -> list[Fault]:
    faults = []
    if is_reserved:
        message = f"`slug` is {head.slug!r}, an address of the site itself; choose another"
        faults.append(Fault(known["slug"].value_at, message))
    if kind == "page" and head.series:
        message = "`series` is for posts, and this is a page; take it out"
        faults.append(Fault(known["series"].key_at, message, "warning"))
    if (length := len(head.description)) > LONGEST_DESCRIPTION:
        entry = known["description"]
        message = f"`{entry.key}` has {length} characters; shorten it to {LONGEST_DESCRIPTION}"
        faults.append(Fault(entry.value_at, message, "warning"))
    return faults
