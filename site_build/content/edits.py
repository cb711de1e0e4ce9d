"""Edits the head of a source file where it stands, and leaves every other byte as it is.

What has one right answer (forms of dates, of tags and of keys), and what the lifecycle of a post
asks for. An address never changes by an edit.
"""

import codecs
import os
import re
import sys
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from stat import S_IMODE
from tempfile import NamedTemporaryFile
from typing import NamedTuple

import yaml
from dateutil.parser import ParserError, UnknownTimezoneWarning  # type: ignore[import-untyped]
from dateutil.parser import parse as parse_date

from site_build.addresses import SourceRules
from site_build.content.document import read_document
from site_build.content.front_matter import KEYS
from site_build.content.head import (
    HANDLER,
    OTHER_NAMES,
    YamlFaultError,
    read_entries,
    read_pelican_head,
)
from site_build.errors import BuildError, Diagnostic, find_fix
from site_build.site import Document

Edit = tuple[int, int, str]
"""Where a piece of text begins and ends, and what stands there afterwards."""

_DATES, _LISTS = {"date", "updated", "modified"}, {"tags", "aliases"}
_NO_TEXT = {*_DATES, *_LISTS, "slug", "status", "lang", "image"}
_CANONICAL = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:\d\d)?)?", re.ASCII
)
_TWO_DATES = (datetime(2001, 1, 1, 1), datetime(2002, 2, 2, 2))  # noqa: DTZ001 - only compared
_LONGEST_DATE = 60
"""Characters; the parser takes a time with the square of what is longer."""


STARTED = "  # when it was started"
"""Follows the date of a draft that `new` has made: the post gets another when it is published."""
_TEXT, _BOOL, _NULL = (f"tag:yaml.org,2002:{name}" for name in ("str", "bool", "null"))
_TRUE = {"true", "yes", "on"}


class Part(NamedTuple):
    """A key of a head and its value; offsets count code points of the text with `\\n` line ends."""

    key: str
    key_at: int
    at: int
    end: int
    node: yaml.Node | None = None
    """The value in YAML; None in a head of Pelican's."""


class Head(NamedTuple):
    """The head of a text; `end` is where a line can be added."""

    text: str
    parts: list[Part]
    end: int

    def find(self, key: str) -> Part | None:
        """Return the part with a key, in whatever case."""
        return next((each for each in self.parts if each.key.lower() == key), None)

    def says(self, key: str) -> str:
        """Return the text of a value without quotes; nothing where there is none."""
        part = self.find(key)
        return self.text[part.at : part.end].strip("\"' ") if part else ""

    @property
    def is_started(self) -> bool:
        """Whether the date only says when the draft was started."""
        date = self.find("date")
        return date is not None and self.text.startswith(f"{STARTED}\n", date.end)


def read_parts(raw: bytes) -> Head:
    """Return the head of a source file, without parts where it cannot be understood."""
    try:
        text = raw.removeprefix(codecs.BOM_UTF8).decode()
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        opening = HANDLER.FM_BOUNDARY.match(text, len(text) - len(text.lstrip()))
        if opening is None:
            entries, end = read_pelican_head(text) or ([], 0)
            # A text that ends without a line end ends there.
            ends = [f"{text}\n".find("\n", each.value_at) for each in entries]
            lines = zip(entries, ends, strict=True)
            return Head(text, [Part(e.key, e.key_at, e.value_at, at) for e, at in lines], end)
        at, head = opening.end() + 1, HANDLER.split(text)[0].removeprefix("\n")
        read_entries(head, at)  # It refuses what would harm the reader of nodes.
    except (ValueError, YamlFaultError):
        return Head("", [], 0)
    root = yaml.compose(head, Loader=yaml.CSafeLoader)
    parts = [
        Part(
            key.value,
            at + key.start_mark.index,
            at + node.start_mark.index,
            at + node.end_mark.index,
            node,
        )
        for key, node in (root.value if root else ())
    ]
    return Head(text, parts, at + len(head.rstrip("\n")) + 1)


def apply(raw: bytes, edits: Sequence[Edit]) -> bytes:
    """Return a file with edits, its byte order mark and its line ends as they are."""
    text = raw.removeprefix(codecs.BOM_UTF8).decode()
    returns = [each.start() - number for number, each in enumerate(re.finditer("\r\n", text))]
    newline = next(iter(re.findall("\r\n|\r|\n", text)), "\n")
    for start, end, new in sorted(edits, reverse=True):
        first, last = (at + bisect_left(returns, at) for at in (start, end))
        text = text[:first] + new.replace("\n", newline) + text[last:]
    return raw[: len(raw) - len(raw.removeprefix(codecs.BOM_UTF8))] + text.encode()


def fix_head(path: str, raw: bytes, rules: SourceRules) -> bytes:
    """Return a source file with what has one right answer; the same bytes where nothing has.

    Keys get their names, dates the form of ISO 8601, tags that of a list of texts, and what YAML
    takes for a number where a text is meant gets quotes.
    """
    head = read_parts(raw)
    accepted: list[Edit] = []
    before = read_document(path, raw, rules)
    for part in head.parts:
        edits = [
            *accepted,
            *_fix(part, {each.key.lower() for each in head.parts if each is not part}),
        ]
        if len(edits) > len(accepted) and _is_safe(
            before, read_document(path, apply(raw, edits), rules)
        ):
            accepted = edits
    return apply(raw, accepted) if accepted else raw


def _is_safe(
    before: tuple[Document | None, list[Diagnostic]],
    after: tuple[Document | None, list[Diagnostic]],
) -> bool:
    """Return whether a file says nothing else to readers, and has no error more."""
    errors = [sum(e.severity == "error" for e in findings) for _, findings in (before, after)]
    states = [d and (d.slug, d.address, d.draft, d.published) for d, _ in (before, after)]
    return errors[1] <= errors[0] and (states[0] is None or states[0] == states[1])


def _fix(part: Part, others: set[str]) -> Iterator[Edit]:
    """Yield the edits of one key and its value; `others` are the keys beside it."""
    key, node = part.key.lower(), part.node
    name = key if key in KEYS else OTHER_NAMES.get(key, "slug")
    if node is None:  # Pelican's own form is as right as any.
        return
    scalar = node.value if isinstance(node, yaml.ScalarNode) else ""
    is_text = node.tag == _TEXT
    if key in {"draft", "published"} and node.tag == _BOOL and "status" not in others:
        says = "draft" if (scalar.lower() in _TRUE) == (key == "draft") else "published"
        yield part.key_at, part.end, f"status: {says}"
        return
    if name not in KEYS or (name != key and (name == "slug" or name in others)):
        return
    if name != part.key:
        yield part.key_at, part.key_at + len(part.key), name
    span = part.at, part.end
    if (
        name in _DATES
        and scalar
        and not _CANONICAL.fullmatch(scalar)
        and (date := _write_date(scalar))
    ):
        yield *span, date
    elif name == "status" and scalar != scalar.lower():
        yield *span, scalar.lower()
    elif name in _LISTS and scalar:
        members = [each.strip() for each in re.split(";" if ";" in scalar else ",", scalar)]
        yield *span, _write_list([each for each in members if each])
    elif name in _LISTS and isinstance(node, yaml.SequenceNode):
        start = part.at - node.start_mark.index
        for each in node.value:
            if isinstance(each, yaml.ScalarNode) and each.tag not in {_TEXT, _NULL}:
                first, last = each.start_mark.index, each.end_mark.index
                yield start + first, start + last, f'"{each.value}"'
    elif name not in _NO_TEXT and scalar and not is_text and node.tag != _NULL:
        yield *span, f'"{scalar}"'


def _write_date(text: str) -> str | None:
    """Return a date, or a date with a time, in ISO 8601; None for what can be read in two ways."""
    if len(text) > _LONGEST_DATE:
        return None
    # A year in front is followed by the month and the day everywhere.
    orders = [(False, False)]
    if not re.match(r"\d{4}", text):
        orders = [(day, year) for day in (False, True) for year in (False, True)]
    try:
        with warnings.catch_warnings(action="error", category=UnknownTimezoneWarning):
            readings = [
                {parse_date(text, default=e, dayfirst=d, yearfirst=y) for d, y in orders}
                for e in _TWO_DATES
            ]
    except (ParserError, OverflowError, UnknownTimezoneWarning):
        return None
    (first, *more), (second, *_) = readings
    if more or first.date() != second.date():
        return None
    # An hour that the text does not name comes from the default.
    return (first if first == second else first.date()).isoformat().replace("+00:00", "Z")


def _write_list(members: list[str]) -> str:
    listed = yaml.safe_dump(members, default_flow_style=True, allow_unicode=True, width=sys.maxsize)
    return listed.strip()


def change_state(head: Head, status: str | None, date: str | None) -> list[Edit]:
    """Return what gives a head a status, or takes it out, and gives it a date unless it is None."""
    edits: list[Edit] = []
    for key, value in (("status", status), ("date", date)):
        if (part := head.find(key)) is None:
            edits += [(head.end, head.end, f"{key}: {value}\n")] * (value is not None)
        elif value is not None:
            more = len(STARTED) * (key == "date" and head.is_started)
            gap = " " * (head.text[part.at - 1] == ":")
            edits.append((part.at, part.end + more, f"{gap}{value}"))
        elif key == "status":
            start = head.text.rfind("\n", 0, part.key_at) + 1
            edits.append((start, f"{head.text}\n".find("\n", part.end) + 1, ""))
    return edits


def rewrite(content: Path, path: str, before: bytes, after: bytes) -> None:
    """Replace a file of the content in one step, with its mode and its owner.

    Raises BuildError for one that changed since it was read as `before`, that lies outside of the
    folder, or that the disk does not take; it stays as it is.
    """
    place = (content / path).resolve()
    if not place.is_relative_to(content.resolve()):
        raise BuildError(f"{content / path} leads out of the folder; it is left as it is")
    new = None
    try:
        found = place.stat()
        if not os.access(place, os.W_OK):
            raise BuildError(f"{content / path} is not writable; fix its permissions")
        with NamedTemporaryFile(dir=place.parent, prefix=".", delete=False) as file:
            new = Path(file.name)
            file.write(after)
            os.fchmod(file.fileno(), S_IMODE(found.st_mode))
            with suppress(PermissionError):
                os.fchown(file.fileno(), found.st_uid, found.st_gid)
        if place.read_bytes() != before:
            raise BuildError(f"{content / path} was changed meanwhile; it is left as it is")
        new.replace(place)
    except OSError as refusal:
        reason = f"cannot be written: {refusal.strerror}; {find_fix(refusal)}"
        raise BuildError(f"{content / path} {reason}") from refusal
    finally:
        if new:
            new.unlink(missing_ok=True)
