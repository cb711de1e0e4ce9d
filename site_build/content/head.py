"""Parses and checks the head of a source file; each fault has its offset.

Parts of YAML that no front matter needs (anchors, tags, deep nesting) are refused before libyaml
composes them: its composer recurses on the C stack, and could crash the interpreter. Pelican's own
sites have lines `Key: value`, up to the first empty one. The text below the head is not read.
"""

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

import yaml
from frontmatter.default_handlers import YAMLHandler
from pydantic import ValidationError
from yaml.constructor import ConstructorError

from site_build import addresses
from site_build.addresses import SourceRules
from site_build.content.dates import explain_ambiguity
from site_build.content.front_matter import (
    EXAMPLES,
    KEYS,
    LONGEST_DESCRIPTION,
    PELICAN_KEYS,
    PageFrontMatter,
    PostFrontMatter,
)
from site_build.site import Kind
from site_build.text import Places, shorten

HANDLER = YAMLHandler()
"""The handler of python-frontmatter, which finds the front matter of a text and loads it."""

LONGEST_YAML = 65_536
"""Code points of one mapping; what is longer belongs in the body."""

DEEPEST_NESTING = 8

SECOND_COLON_FAULT = "a second colon"
_LIST_FIX = "separate the members with commas and close the bracket"
_QUOTE_FIX = "use single quotes, where a backslash stands for itself"
_YAML_FAULTS = {
    "tab character": "a tab stands where only blanks may; indent with spaces",
    "mapping values are not allowed": (
        f"{SECOND_COLON_FAULT} stands in one line; put a value that holds a colon in quotes"
    ),
    "cannot start any token": (
        "a value begins with a sign that means something else here; "
        "put it in quotes, and indent with spaces"
    ),
    "unexpected end of stream": "a quote is never closed; write a quote at its end",
    "node content": f"a list in brackets holds an empty member; {_LIST_FIX}",
    "',' or": f"a list in brackets is never closed; {_LIST_FIX}",
    "block sequence entries": "a list begins in the line of its key; begin it on one of its own",
    "escape character": f"a backslash in double quotes means something else; {_QUOTE_FIX}",
    "hexdecimal": f"a backslash in double quotes means something else; {_QUOTE_FIX}",
    "invalid Unicode character": f"a backslash in double quotes names no character; {_QUOTE_FIX}",
    "indented": "a key is indented, so it goes on with the value above; begin each key at the left",
    "expected ':'": "a line has no colon; write a colon and a blank behind the key",
    "expected key": (
        "something stands behind the end of a quote or of a list; "
        "put a value that holds quotes in quotes of the other kind"
    ),
}
"""Parts of libyaml's messages, and for each a sentence that explains it, with the fix."""
_GENERAL_FIX = "write one `key: value` a line, values with signs such as : # [ in quotes"


class YamlFaultError(Exception):
    """The text is no mapping that can be read: `offset` says where, the message why."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class HeadEntry:
    """One key with its value; offsets count code points, from 0."""

    key: str
    """In lower case."""
    value: object
    """Text, None, a list of these, or a mapping: numbers, dates and booleans are as written."""
    key_at: int
    value_at: int
    members_at: tuple[int, ...] = ()
    """Offsets of a list's members."""
    typed: object = None
    """The value with the type that YAML gives it, for keys that the settings declare."""


def make_entry(
    key: str, value: object, key_at: int, value_at: int, members_at: tuple[int, ...] = ()
) -> HeadEntry:
    """Return an entry; a text of tags, aliases or authors is split at semicolons, else commas."""
    if key in {"tags", "aliases", "authors"} and isinstance(value, str):
        members = value.split(";" if ";" in value else ",")
        value = [member.strip() for member in members if member.strip()]
        members_at = (value_at,) * len(value)
    if (
        key in {"author", "authors"}
        and isinstance(value, list)
        and all(isinstance(e, str) for e in value)
    ):
        value = "; ".join(value) or None
    return HeadEntry(key, value, key_at, value_at, members_at, value)


def read_entries(text: str, start: int = 0) -> list[HeadEntry]:
    """Return the entries of the mapping that `text` holds, repeated keys included, in order.

    `start` is the offset of `text` in its file; all returned offsets count from there.
    Raises YamlFaultError.
    """
    try:
        _refuse_unneeded_yaml(text)
        return HANDLER.load(text, Loader=partial(_EntryLoader, start)) or []
    except YamlFaultError as fault:
        offset, message = fault.offset, str(fault)
    except yaml.MarkedYAMLError as fault:
        offset, message = _explain(fault, text)
    except yaml.YAMLError:
        offset, message = 0, f"cannot be read; {_GENERAL_FIX}"
        if found := re.search(
            "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]", text
        ):
            offset, message = found.start(), f"holds U+{ord(found[0]):04X}, unseen; take it out"
    raise YamlFaultError(start + offset, message)


class _EntryLoader(yaml.CSafeLoader):
    """Loads a mapping as a list of entries, whose offsets count from `start`."""

    def __init__(self, start: int, text: str) -> None:
        super().__init__(text)
        self._start = start

    def construct_document(self, node: yaml.Node) -> list[HeadEntry]:
        """Return the entries of the mapping."""
        if not isinstance(node, yaml.MappingNode):
            raise YamlFaultError(_offset(node), f"is no mapping; {_GENERAL_FIX}")
        return [self._read_entry(key, value) for key, value in node.value]

    def _read_entry(self, key: yaml.Node, value: yaml.Node) -> HeadEntry:
        if not isinstance(key, yaml.ScalarNode):
            raise YamlFaultError(_offset(key), f"has a key that is no word; {_GENERAL_FIX}")
        members = value.value if isinstance(value, yaml.SequenceNode) else ()
        entry = make_entry(
            key.value.lower(),
            self._read_text(value),
            self._start + _offset(key),
            self._start + _offset(value),
            tuple(self._start + _offset(member) for member in members),
        )
        return replace(entry, typed=self._construct(value))

    def _read_text(self, node: yaml.Node) -> object:
        """Return a value with its numbers, dates and booleans as the author wrote them."""
        if isinstance(node, yaml.SequenceNode):
            return [self._read_text(member) for member in node.value]
        value = self._construct(node)
        return value if value is None or not isinstance(node, yaml.ScalarNode) else node.value

    def _construct(self, node: yaml.Node) -> object:
        try:
            return self.construct_object(node, deep=True)
        except (ConstructorError, ValueError, OverflowError):
            return node.value if isinstance(node, yaml.ScalarNode) else str(node.tag)


def _refuse_unneeded_yaml(text: str) -> None:
    if len(text) > LONGEST_YAML:
        raise YamlFaultError(0, f"is longer than {LONGEST_YAML} characters; shorten it")
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
    # For an unclosed quote or bracket, name the place where it was opened.
    opened = re.match("while (parsing a flow|scanning a (quoted|simple key))", fault.context or "")
    mark = fault.context_mark if opened and fault.context_mark else fault.problem_mark
    offset = min(mark.index, len(text)) if mark else 0
    if text[offset : offset + 1] == "\t":
        problem = "tab character"
    elif text[text.rfind("\n", 0, offset) + 1 :][:1] == " " and "mapping values" in problem:
        problem = "indented"
    said = next(
        (said for sign, said in _YAML_FAULTS.items() if sign in problem),
        f"this is no `key: value`; {_GENERAL_FIX}",
    )
    return offset, f"cannot be read: {said}"


_LINE = re.compile(r" {0,3}([A-Za-z0-9_-]+):\s*(.*)")


def read_pelican_head(text: str, start: int = 0) -> tuple[list[HeadEntry], int] | None:
    """Return the entries at the head of a text and the offset of its body; None without any.

    An indented line continues the value above, as in Python-Markdown's `meta` extension.
    """
    found: list[tuple[str, int, int, list[str]]] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if match := _LINE.match(line):
            found.append((match[1].lower(), at, at + match.start(2), [match[2].strip()]))
        elif found and line.strip() and line.expandtabs(4).startswith("    "):
            found[-1][3].append(line.strip())
        else:
            at += len(line) if found and re.fullmatch(r"-{3}|\.{3}", line.strip()) else 0
            break
        at += len(line)
    entries = [
        make_entry(key, " ".join(lines).strip() or None, start + key_at, start + value_at)
        for key, key_at, value_at, lines in found
    ]
    return (entries, at) if entries else None


RESERVED_SLUGS: dict[Kind, frozenset[str]] = {
    "post": frozenset({"page", "index.html", "index.md"}),
    "page": frozenset({"api", "index.html", "index.md"})
    | {
        folder.rstrip("/")
        for folder in (
            *addresses.DEFAULT_ADDRESSES.list_overviews(),
            addresses.CARDS,
            addresses.IMAGES,
            addresses.PICTURES,
            addresses.THEME,
        )
    },
}
"""Slugs whose addresses the site itself answers, with the default settings of addresses."""

EQUIVALENT_KEYS = {
    "categories": "tags",
    "keywords": "tags",
    "subtitle": "description",
    "abstract": "description",
    "permalink": "slug",
    "language": "lang",
    "created": "date",
    "publishdate": "date",
    "lastmod": "updated",
    "redirect_from": "aliases",
}
"""Our keys by keys of other generators that mean the same."""
_WITHOUT_EFFECT = {
    "translation": "a translation is a text of its own; give it a slug of its own",
    "template": "PAGE_TEMPLATES says which pages have a template of their own",
    **dict.fromkeys(("url", "save_as"), "the settings say addresses; `slug` is the last part"),
}
"""Keys of Pelican that only give a warning."""
LAYOUTS = ("pictures",)
"""The layouts of pages and posts that the theme has besides the usual one."""
NEWSLETTER_KEY = "newsletter"
"""The key that keeps a post out of the newsletter, or has a hidden one mailed."""
DRAFT_KEYS = frozenset({"draft", "hidden", "private", "publish", "published", "unlisted"})


def read_newsletter(value: object) -> bool | None:
    """Return whether a post is to be mailed, by the value of `newsletter`; None for other values.

    Heads in Pelican's form have words where YAML has booleans.
    """
    words = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
    return words.get(str(value).lower())


class Fault(NamedTuple):
    """A finding before its line is known; the offset counts code points of the file's text."""

    offset: int
    message: str
    severity: Literal["error", "warning"] = "error"


def read_head(
    kind: Kind, fence_at: int, entries: list[HeadEntry], rules: SourceRules, places: Places
) -> tuple[PageFrontMatter | None, list[Fault]]:
    """Return the checked front matter, or None where errors forbid it, with all faults.

    `fence_at` is the offset of the opening fence, where missing keys are reported; `places` are
    those of the file.
    """
    known, faults = _sort_out(entries, rules.extra, places)
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
    layout = next((e for e in entries if e.key == "layout" and e.value), None)
    # A journal whose own theme has layouts declares the key itself.
    if layout and layout.value not in LAYOUTS and rules.extra.count(layout.key) == 1:
        given, fix = shorten(str(layout.value)), f"write one of these: {', '.join(LAYOUTS)}"
        message = f"`layout` is {given!r}, which the theme does not have; {fix}"
        faults.append(Fault(layout.value_at, message, "warning"))
    letter = next((e for e in entries if e.key == NEWSLETTER_KEY), None)
    # An error, since an author who writes `newsletter: off it` trusts that nobody gets it by mail.
    if letter and rules.extra.count(letter.key) == 1 and read_newsletter(letter.typed) is None:
        given = shorten(str(letter.value or ""))
        message = f"`newsletter` is {given!r}; write `newsletter: no` or `newsletter: yes`"
        faults.append(Fault(letter.value_at, message))
    forms, usual = (
        (each.post, each.page, each.list_overviews())
        for each in (rules.addresses, addresses.DEFAULT_ADDRESSES)
    )
    faults += [
        Fault(known[name].value_at, f"`{known[name].key}` {ambiguity}", "warning")
        for name in ("date", "updated")
        if getattr(head, name) and (ambiguity := explain_ambiguity(str(known[name].value)))
    ]
    if forms == usual and head.slug.casefold() in RESERVED_SLUGS[kind]:
        message = f"`slug` is {head.slug!r}, an address of the site itself; choose another"
        faults.append(Fault(known["slug"].value_at, message))
    if kind == "page" and head.series:
        message = "`series` is for posts, and this is a page; take it out"
        faults.append(Fault(known["series"].key_at, message, "warning"))
    if (length := len(head.description)) > LONGEST_DESCRIPTION:
        entry = known["description"]
        message = f"`{entry.key}` has {length} characters; shorten it to {LONGEST_DESCRIPTION}"
        faults.append(Fault(entry.value_at, message, "warning"))
    return head, faults


def find_value_offset(entries: list[HeadEntry], name: str) -> int:
    """Return the offset of a key's value in a head without errors; 0 without the key."""
    return next(
        (each.value_at for each in entries if PELICAN_KEYS.get(each.key, each.key) == name), 0
    )


def _sort_out(
    entries: list[HeadEntry], extra: tuple[str, ...], places: Places
) -> tuple[dict[str, HeadEntry], list[Fault]]:
    """Return the entries of known keys, and faults for unknown and repeated ones."""
    seen: dict[str, HeadEntry] = {}
    faults, declared = [], {name.lower() for name in extra}
    for entry in entries:
        name = PELICAN_KEYS.get(entry.key, entry.key)
        if first := seen.get(name):
            says = "is given twice" if entry.key == first.key else f"says the same as `{first.key}`"
            faults.append(
                Fault(
                    entry.key_at,
                    f"`{shorten(entry.key)}` {says}, which line "
                    f"{places.locate(first.key_at)[0]} has; keep one of them",
                )
            )
        elif name not in declared and name not in PageFrontMatter.model_fields:
            faults.append(_explain_unknown(entry))
        seen.setdefault(name, entry)
    return {name: e for name, e in seen.items() if name in PageFrontMatter.model_fields}, faults


def _explain_unknown(entry: HeadEntry) -> Fault:
    # An error, since an author who writes `draft: true` trusts that nobody will read the text.
    if entry.key in DRAFT_KEYS:
        fix = "write `status: draft` or `status: published`"
        return Fault(entry.key_at, f"`{entry.key}` is not a front matter key; {fix}")
    if why := _WITHOUT_EFFECT.get(entry.key):
        return Fault(entry.key_at, f"`{entry.key}` has no effect: {why}", "warning")
    key = entry.key[:40]
    near = EQUIVALENT_KEYS.get(key) or next(iter(get_close_matches(key, KEYS, n=1)), None)
    fix = (
        f"did you mean `{near}`?"
        if near
        else f"the keys are {', '.join(KEYS)}, and those of FRONT_MATTER_EXTRA"
    )
    return Fault(
        entry.key_at, f"`{shorten(entry.key)}` is not a front matter key; {fix}", "warning"
    )


def _explain_refusal(
    refusal: ValidationError, known: dict[str, HeadEntry], fence_at: int
) -> list[Fault]:
    """Return a fault for the first error of each value, at its place."""
    faults: dict[tuple[str | int, ...], Fault] = {}
    for complaint in refusal.errors(include_url=False):
        name, member = str(complaint["loc"][0]), complaint["loc"][1:2]
        entry = known.get(name)
        if entry is None:
            if name == "slug" and any(key == ("title",) for key in faults):
                continue  # it is made of the title
            fault = Fault(fence_at, f"`{name}` is missing; add a line `{name}: {EXAMPLES[name]}`")
        elif member and isinstance(member[0], int):
            noun = "an alias" if name == "aliases" else "a tag"
            fault = Fault(entry.members_at[member[0]], f"{noun} {complaint['msg']}")
        else:
            fault, member = Fault(entry.value_at, f"`{entry.key}` {complaint['msg']}"), ()
        faults.setdefault((name, *member), fault)
    return list(faults.values())
