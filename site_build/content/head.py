"""Understands the head of a source file: checked front matter out, each defect at its place.

What no front matter needs of YAML (anchors, tags, deep nesting) is refused before libyaml composes
it: its composer recurses on the C stack and takes the interpreter down with it. Pelican's own sites
have lines `Key: value`, up to the first empty one. It knows nothing of the text below.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from functools import partial
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

import yaml
from dateutil.parser import ParserError  # type: ignore[import-untyped]
from dateutil.parser import parse as parse_date
from frontmatter.default_handlers import YAMLHandler
from pydantic import ValidationError
from yaml.constructor import ConstructorError

from site_build import addresses
from site_build.addresses import SourceRules
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

HANDLER = YAMLHandler()
"""Of python-frontmatter: finds the front matter of a text, and loads it."""

LONGEST_TEXT = 65_536
"""Code points of one mapping; what is longer belongs in the body."""

DEEPEST_NESTING = 8

_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_LIST = "separate the members with commas and close the bracket"
_SINGLE = "use single quotes, where a backslash stands for itself"
_YAML_FAULTS = {
    "tab character": "a tab stands where only blanks may; indent with spaces",
    "mapping values are not allowed": (
        "a second colon stands in one line; put a value that holds a colon in quotes"
    ),
    "cannot start any token": (
        "a value begins with a sign that means something else here; "
        "put it in quotes, and indent with spaces"
    ),
    "unexpected end of stream": "a quote is never closed; write a quote at its end",
    "node content": f"a list in brackets holds an empty member; {_LIST}",
    "',' or": f"a list in brackets is never closed; {_LIST}",
    "block sequence entries": "a list begins in the line of its key; begin it on one of its own",
    "escape character": f"a backslash in double quotes means something else; {_SINGLE}",
    "hexdecimal": f"a backslash in double quotes means something else; {_SINGLE}",
    "invalid Unicode character": f"a backslash in double quotes names no character; {_SINGLE}",
    "indented": "a key is indented, so it goes on with the value above; begin each key at the left",
    "expected ':'": "a line has no colon; write a colon and a blank behind the key",
    "expected key": (
        "something stands behind the end of a quote or of a list; "
        "put a value that holds quotes in quotes of the other kind"
    ),
}
"""What libyaml says, and what that means, with the fix."""
_ANY_FIX = "write one `key: value` a line, values with signs such as : # [ in quotes"


class YamlFaultError(Exception):
    """The text is no mapping that can be read: `offset` says where, the message why."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value; offsets count code points, from 0."""

    key: str
    value: object
    """As YAML means it; the bare text where YAML knows the kind but not such a value."""
    key_at: int
    value_at: int
    members_at: tuple[int, ...] = ()
    """Offsets of a list's members."""


def read_entries(text: str, start: int = 0) -> list[Entry]:
    """Return the entries of the mapping that `text` holds, repeated keys included, in order.

    `start` is the offset of `text` in its file; every offset given back counts from there.
    Raises YamlFaultError.
    """
    try:
        _refuse_extravagance(text)
        return HANDLER.load(text, Loader=partial(_EntryLoader, start)) or []
    except YamlFaultError as fault:
        offset, message = fault.offset, str(fault)
    except yaml.MarkedYAMLError as fault:
        offset, message = _explain(fault, text)
    except yaml.YAMLError:
        offset, message = 0, f"cannot be read; {_ANY_FIX}"
        if found := _UNPRINTABLE.search(text):
            offset, message = found.start(), f"holds U+{ord(found[0]):04X}, unseen; take it out"
    raise YamlFaultError(start + offset, message)


class _EntryLoader(yaml.CSafeLoader):
    """Loads a mapping as a list of entries, whose offsets count from `start`."""

    def __init__(self, start: int, text: str) -> None:
        super().__init__(text)
        self._start = start

    def construct_document(self, node: yaml.Node) -> list[Entry]:
        """Return the entries of the mapping."""
        if not isinstance(node, yaml.MappingNode):
            raise YamlFaultError(_offset(node), f"is no mapping; {_ANY_FIX}")
        return [self._read_entry(key, value) for key, value in node.value]

    def _read_entry(self, key: yaml.Node, value: yaml.Node) -> Entry:
        if not isinstance(key, yaml.ScalarNode):
            raise YamlFaultError(_offset(key), f"has a key that is no word; {_ANY_FIX}")
        members = value.value if isinstance(value, yaml.SequenceNode) else ()
        return Entry(
            key=key.value,
            value=self._construct(value),
            key_at=self._start + _offset(key),
            value_at=self._start + _offset(value),
            members_at=tuple(self._start + _offset(member) for member in members),
        )

    def _construct(self, node: yaml.Node) -> object:
        try:
            value: object = self.construct_object(node, deep=True)
        except (ConstructorError, ValueError, OverflowError):
            return node.value if isinstance(node, yaml.ScalarNode) else str(node.tag)
        return value


def _refuse_extravagance(text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise YamlFaultError(0, f"is longer than {LONGEST_TEXT} characters; shorten it")
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if getattr(event, "anchor", None):
            raise YamlFaultError(_offset(event), "uses an anchor; write the value out")
        if getattr(event, "tag", None):
            raise YamlFaultError(_offset(event), "uses a tag; take it off, quotes make text")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST_NESTING:
            raise YamlFaultError(_offset(event), "is nested too deeply; flatten it")


def _offset(part: yaml.Event | yaml.Node) -> int:
    return part.start_mark.index if part.start_mark else 0


def _explain(fault: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    problem = fault.problem or ""
    # For what is left open, the place that opened it helps more than the place where it was missed.
    opened = (fault.context or "").startswith(
        ("while parsing a flow", "while scanning a quoted", "while scanning a simple key")
    )
    mark = fault.context_mark if opened and fault.context_mark else fault.problem_mark
    offset = min(mark.index, len(text)) if mark else 0
    if text[offset : offset + 1] == "\t":
        problem = "tab character"
    elif text[text.rfind("\n", 0, offset) + 1 :][:1] == " " and "mapping values" in problem:
        problem = "indented"
    known = (said for sign, said in _YAML_FAULTS.items() if sign in problem)
    said = next(known, f"this is no `key: value`; {_ANY_FIX}")
    return offset, f"cannot be read: {said}"


_LINE = re.compile(r"([A-Za-z][\w-]*):[ \t]*(.*)")
_NAMES = {"modified": "updated", "authors": "author"}
"""Keys of Pelican, with the one that means the same here."""
_LONGEST_DATE = 60
"""Characters; the parser takes a time with the square of what is longer."""
_DEFAULTS = (datetime(2001, 1, 1), datetime(2002, 2, 2))  # noqa: DTZ001 - only compared


def read_pelican_head(text: str) -> tuple[list[Entry], int] | None:
    """Return the entries at the head of a text and the offset of its body; None without any.

    An indented line goes on with the value above, as in Python-Markdown's `meta` extension.
    """
    found: list[tuple[str, int, int, list[str]]] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if match := _LINE.match(line):
            found.append((match[1].lower(), at, at + match.start(2), [match[2].strip()]))
        elif found and line.strip() and line.startswith("    "):
            found[-1][3].append(line.strip())
        else:
            break
        at += len(line)
    entries = [
        _read(key, " ".join(lines).strip(), key_at, value_at)
        for key, key_at, value_at, lines in found
    ]
    return (entries, at) if entries else None


def _read(key: str, text: str, key_at: int, value_at: int) -> Entry:
    """Return one entry; a list is parted by commas, or by semicolons where it has any."""
    name = _NAMES.get(key, key)
    if key in {"tags", "aliases", "authors"}:
        sign = ";" if ";" in text else ","
        members = [member.strip() for member in text.split(sign) if member.strip()]
        if key == "authors":
            return Entry(name, "; ".join(members) or None, key_at, value_at)
        return Entry(name, members, key_at, value_at, (value_at,) * len(members))
    value = _read_date(text) if key in {"date", "modified", "updated"} else text
    return Entry(name, value or None, key_at, value_at)


def _read_date(text: str) -> date | str:
    """Return the date, or the text where it names no whole day: the check of the head tells why."""
    if len(text) > _LONGEST_DATE:
        return text
    try:
        first: datetime = parse_date(text, default=_DEFAULTS[0])
        second: datetime = parse_date(text, default=_DEFAULTS[1])
    except (ParserError, OverflowError):
        return text
    if first != second:
        return text
    return first if ":" in text else first.date()


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
    fix = (
        f"did you mean `{near}`?"
        if near
        else f"the keys are {', '.join(KEYS)}, and those of FRONT_MATTER_EXTRA"
    )
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
