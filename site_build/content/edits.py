"""Edits the head of a source file in place, and leaves every other byte as it is.

It corrects dates, tags and keys that have one right form, and changes a line to publish, schedule
or withdraw a post. No edit changes an address. Values over several lines, and heads in braces, are
not edited, so callers read the file again to check the result.
"""

import ctypes
import os
import re
import shutil
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from site_build.addresses import SourceRules
from site_build.content.dates import explain_ambiguity, write_moment
from site_build.content.document import read_document
from site_build.content.front_matter import KEYS
from site_build.content.head import (
    EQUIVALENT_KEYS,
    HeadEntry,
    YamlFaultError,
    make_entry,
    read_entries,
)
from site_build.errors import BuildError, find_fix

STARTED_COMMENT = "  # when it was started"
"""Comment after the date of a draft from `new`, which is replaced when the post is published."""
PARTIAL = ".fore-edge-"
"""The beginning of names of folders in which a file's new bytes wait; a kill can leave one."""
_EOL = r"(?>\r\n?|\n)"
_HEAD = re.compile(
    rf"\ufeff?\s*(---+[ \t]*{_EOL})?((?:[^\r\n]*{_EOL})*?)(?:---|(?(1)(?!)|[ \t]*(?:{_EOL}|\Z)))"
)
"""A head between fences, or Pelican's, which ends before the first empty line."""
_VALUE = (
    r"""(?P<value>"[^"\r\n]*"|'[^'\r\n]*'|[^\r\n]*?)"""
    rf"(?=[ \t]*(?:[ \t]#[^\r\n]*)?(?:{_EOL}(?![ \t]+\S)|\Z))"
)
"""A value before the comment of its line; one that continues on the next line does not match."""
_LINE = re.compile(r"(?P<key>[^\s:]+)(?P<colon>[ \t]*:[ \t]*)" + _VALUE)
_RENAMED = {other: key for other, key in EQUIVALENT_KEYS.items() if key != "slug"}
"""Our keys by their names in other generators."""
_STATUS_OF = {
    **dict.fromkeys(("draft true", "draft yes", "published false", "published no"), "draft"),
    **dict.fromkeys(("draft false", "draft no", "published true", "published yes"), "published"),
}
"""The status that a key of another generator means, by the key and its value."""


def change_line(raw: bytes, key: str, value: str | None) -> bytes:
    """Return a source file with a new value in the line of a key, or without that line for None."""
    text = raw.decode(errors="surrogateescape")
    found = _HEAD.match(text)
    end = found.end(2) if found else 0
    rest, new = rf"[^\r\n]*{_EOL}", ""
    if value:
        rest, new = rf"[ \t]*{_VALUE}(?:{STARTED_COMMENT})?", rf"\1: {value}"
    head, count = re.subn(rf"(?i)(?<![^\r\n])({key})[ \t]*:{rest}", new, text[:end], count=1)
    if value and not count:
        head += f"{key}: {value}" + ("\r\n" if "\r\n" in head else "\n")
    return (head + text[end:]).encode(errors="surrogateescape")


def fix_head(path: str, raw: bytes, rules: SourceRules) -> bytes:
    """Return a source file with its head corrected; the same bytes if there is nothing to correct.

    Keys get their names, dates the form of ISO 8601, and tags the form of a list. A head in
    Pelican's own form stays as it is.
    """
    fixed, entries = "", list[HeadEntry]()
    with suppress(ValueError, YamlFaultError):
        fixed = raw.decode()
        head = _HEAD.match(fixed)
        entries = read_entries(head[2], head.start(2)) if head and head[1] else []
    keys = [each.key for each in entries]
    for entry in reversed(entries):  # Go from last to first, so that offsets stay valid.
        status = _STATUS_OF.get(f"{entry.key} {entry.value}".lower(), "")
        name = "status" if status else _RENAMED.get(entry.key, entry.key)
        line = _LINE.match(fixed, entry.key_at)
        if line and name in KEYS and keys.count(name) == (name == entry.key):
            value = status or _fix_value(name, entry.value, line["value"]) or line["value"]
            edited = f"{fixed[: line.start()]}{name}{line['colon']}{value}{fixed[line.end() :]}"
            if edited != fixed and _is_harmless(path, fixed, edited, rules):
                fixed = edited
    return fixed.encode() if entries else raw


def _is_harmless(path: str, former: str, latter: str, rules: SourceRules) -> bool:
    """Return whether an edit brings no error, and changes no address, no state and no date."""
    read = [read_document(path, each.encode(), rules) for each in (former, latter)]
    before, after = (e and (e.slug, e.address, e.draft, e.published) for e, _ in read)
    errors, left = (sum(each.severity == "error" for each in found) for _, found in read)
    return left <= errors and before in {None, after}


def _fix_value(name: str, value: object, written: str) -> str:
    """Return a corrected value for the one that is `written`; empty if it is right or unclear."""
    text = value if isinstance(value, str) else ""
    if name == "status" and not text.islower():
        return text.lower()
    if name in {"date", "updated", "modified"} and not re.fullmatch(
        r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\S+)?", text
    ):
        with suppress(ValueError):
            return "" if explain_ambiguity(text) else write_moment(text)
    members = make_entry(name, value, 0, 0).value
    if not written or written.startswith("[") or not isinstance(members, list):
        return ""
    return str(
        yaml.safe_dump(members, default_flow_style=True, allow_unicode=True, width=sys.maxsize)
    ).strip()


def set_state(  # noqa: PLR0913  a post and its new state
    path: str, raw: bytes, rules: SourceRules, *, is_draft: bool, at: datetime | None, now: datetime
) -> bytes:
    """Return a post made a draft, or published `at` an instant (None: `now`) of any zone.

    A hidden post stays hidden, and a past date that the author chose stays the date.
    """
    before, _ = read_document(path, raw, rules)
    changed = raw
    if is_draft or not (before and before.hidden):
        changed = change_line(raw, "status", "draft" if is_draft else None)
    with_status, _ = read_document(path, changed, rules)
    is_chosen = with_status and with_status.published <= now and STARTED_COMMENT.encode() not in raw
    if at or not (is_draft or is_chosen):
        changed = change_line(changed, "date", f"{(at or now).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
    return changed


def _exchange(one: Path, other: Path) -> bool:
    """Let two files change places in one step; return whether this system can."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    # -100 is AT_FDCWD, and 2 is RENAME_EXCHANGE.
    return rename is not None and rename(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0


def rewrite(content: Path, path: str, before: bytes | None, after: bytes) -> None:
    """Replace a file of the content atomically, and keep its mode; `before` is None for a new one.

    It is on the disk when this returns. Raises BuildError, and leaves the file as it is, if it no
    longer has the bytes `before` or cannot be written.
    """
    place = (content / path).resolve()
    if place.exists() and not os.access(place, os.W_OK):
        raise BuildError(f"{content / path} is not writable; fix its permissions")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=place.parent, prefix=PARTIAL) as folder:
            new = Path(folder, place.name)
            if before is not None:
                shutil.copy(place, new)  # copies the mode
            with new.open("wb") as file:
                file.write(after)
                file.flush()
                os.fsync(file.fileno())
            if before is None:
                os.link(new, place)  # fails if somebody has made the file meanwhile
            elif place.read_bytes() != before:
                raise BuildError(f"{content / path} was changed meanwhile; it is left as it is")
            elif not _exchange(new, place):
                new.replace(place)
            elif new.read_bytes() != before:  # somebody has replaced it in this very moment
                _exchange(new, place)
                raise BuildError(f"{content / path} was changed meanwhile; it is left as it is")
        folder_of = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder_of)
        finally:
            os.close(folder_of)
    except FileExistsError:
        raise BuildError(f"{content / path} was made meanwhile; it is left as it is") from None
    except OSError as refusal:
        raise BuildError(
            f"{content / path} cannot be written: {refusal.strerror}; {find_fix(refusal)}"
        ) from refusal
