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
from dateutil.parser import UnknownTimezoneWarning  # type: ignore[import-untyped]
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
from site_build.errors import BuildError, find_fix

Edit = tuple[int, int, str]
"""Where a piece of text begins and ends, and what stands there afterwards."""

_DATES, _LISTS = {"date", "updated", "modified"}, {"tags", "aliases"}
_CANONICAL = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:\d\d)?)?", re.ASCII
)
_TWO_DATES = (datetime(2001, 1, 1, 1), datetime(2002, 2, 2, 2))  # noqa: DTZ001 - only compared
_LONGEST_DATE = 60
"""Characters; the parser takes a time with the square of what is longer."""
_HIDES = {
    **dict.fromkeys(("draft true", "draft yes", "published false", "published no"), "draft"),
    **dict.fromkeys(("draft false", "draft no", "published true", "published yes"), "published"),
}
"""The status that a key of another generator means, by the key and its value."""
STARTED = "  # when it was started"
"""Follows the date of a draft that `new` has made: the post gets another when it is published."""


class Part(NamedTuple):
    """A key of a head and its value; offsets count code points, and a line end as one."""

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
    parts = []
    for key, node in root.value if root else ():
        first, last = at + node.start_mark.index, at + node.end_mark.index
        parts.append(Part(key.value, at + key.start_mark.index, first, last, node))
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

    Keys get their names, dates the form of ISO 8601, and tags that of a list.
    """
    accepted: list[Edit] = []
    parts = read_parts(raw).parts
    before = _read_state(path, raw, rules)
    for part in parts:
        others = {each.key.lower() for each in parts if each is not part}
        edits = [*accepted, *_fix(part, others)]
        if len(edits) > len(accepted):
            after = _read_state(path, apply(raw, edits), rules)
            # It says nothing else to readers, and has no error more.
            if after[0] <= before[0] and before[1] in {None, after[1]}:
                accepted = edits
    return apply(raw, accepted) if accepted else raw


def _read_state(path: str, raw: bytes, rules: SourceRules) -> tuple[int, object]:
    """Return how many errors a file has, and where and when it is published, if it can be read."""
    post, findings = read_document(path, raw, rules)
    state = post and (post.slug, post.address, post.draft, post.published)
    return sum(each.severity == "error" for each in findings), state


def _fix(part: Part, others: set[str]) -> Iterator[Edit]:
    """Yield the edits of one key and its value; `others` are the keys beside it."""
    key, value = part.key.lower(), part.node.value if part.node else ""
    text = value if isinstance(value, str) else ""
    name = key if key in KEYS else OTHER_NAMES.get(key, "slug")
    if (status := _HIDES.get(f"{key} {text.lower()}")) and "status" not in others:
        yield part.key_at, part.end, f"status: {status}"
    # A head of Pelican's own form is as right as any. An address never changes by itself.
    if part.node is None or (name != key and (name == "slug" or name in others)):
        return
    if name != part.key:
        yield part.key_at, part.key_at + len(part.key), name
    fixed: str | None = None
    if name in _DATES and not _CANONICAL.fullmatch(text):
        fixed = _write_date(text)
    elif name in _LISTS:
        members = [each.strip() for each in re.split(";" if ";" in text else ",", text)]
        width, listed = sys.maxsize, [each for each in members if each]
        fixed = yaml.safe_dump(listed, default_flow_style=True, allow_unicode=True, width=width)
    elif name == "status":
        fixed = text.lower()
    if text and fixed and fixed != text:
        yield part.at, part.end, fixed.strip()


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
    except (ValueError, OverflowError, UnknownTimezoneWarning):
        return None
    first: datetime
    (first, *more), (second, *_) = readings
    if more or first.date() != second.date():
        return None
    # An hour that the text does not name comes from the default.
    return (first if first == second else first.date()).isoformat().replace("+00:00", "Z")


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
