"""Edits the head of a source file where it stands, and leaves every other byte as it is.

What has one right answer (forms of dates, of tags and of keys), and what the lifecycle of a post
asks for. An address never changes by an edit. Who edits sees by reading the file again whether it
says what it should: values over several lines, and heads in braces, are left to their authors.
"""

import os
import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from site_build.addresses import SourceRules
from site_build.content.dates import explain_doubt, write_moment
from site_build.content.document import read_document
from site_build.content.front_matter import KEYS
from site_build.content.head import OTHER_NAMES, YamlFaultError, make_entry, read_entries
from site_build.errors import BuildError, find_fix

STARTED = "  # when it was started"
"""Follows the date of a draft that `new` has made: the post gets another when it is published."""
_HEAD = re.compile(r"\ufeff?\s*(---+[ \t]*\r?\n)?((?:.*\n)*?)(?:---|(?(1)(?!)|\s*?(?:\n|\Z)))")
"""A head between fences, or Pelican's, which ends before the first empty line."""
_LINE = re.compile(
    r"""^(?P<key>[^\s:]+)(?P<colon>[ \t]*:[ \t]*)(?P<value>"[^"\n]*"|'[^'\n]*'|.*?)"""
    r"(?=[ \t]*(?:[ \t]#.*)?\r?$)",
    re.MULTILINE,
)
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\S+)?")
"""A date whose form is right already."""
_RENAMED = {other: key for other, key in OTHER_NAMES.items() if key != "slug"}
_HIDES = {
    **dict.fromkeys(("draft true", "draft yes", "published false", "published no"), "draft"),
    **dict.fromkeys(("draft false", "draft no", "published true", "published yes"), "published"),
}
"""The status that a key of another generator means, by the key and its value."""


def read_line(raw: bytes, key: str) -> str:
    """Return what a head says in the line of a key, without quotes; nothing where it has none.

    The date of a draft that was only started is none.
    """
    text, line, _ = _find_line(raw, key)
    return (
        "" if line is None or text.startswith(STARTED, line.end()) else line["value"].strip("\"'")
    )


def change_line(raw: bytes, key: str, value: str | None) -> bytes:
    """Return a source file with another value in the line of a key, or without it for None."""
    text, line, end = _find_line(raw, key)
    start, new = end, "" if value is None else f"{key}: {value}"
    if line is None and new:
        new += "\r\n" if "\r\n" in text[:end] else "\n"
    elif line and new:
        start, new = line.start(), f"{line['key']}: {value}"
        end = line.end() + len(STARTED) * text.startswith(STARTED, line.end())
    elif line:
        start, end = line.start(), text.find("\n", line.end()) + 1
    return (text[:start] + new + text[end:]).encode(errors="surrogateescape")


def _find_line(raw: bytes, key: str) -> tuple[str, re.Match[str] | None, int]:
    """Return a file's text, the line of a key in its head, and where another can be added."""
    text = raw.decode(errors="surrogateescape")
    head = _HEAD.match(text)
    end = head.end(2) if head else 0
    lines = (each for each in _LINE.finditer(text, 0, end) if each["key"].lower() == key)
    return text, next(lines, None), end


def fix_head(path: str, raw: bytes, rules: SourceRules) -> bytes:
    """Return a source file with what has one right answer; the same bytes where nothing has.

    Keys get their names, dates the form of ISO 8601, and tags that of a list. A head of Pelican's
    own form is as right as any.
    """
    try:
        text = raw.decode()
        newline = next(iter(re.findall("\r\n|\r|\n", text)), "\n")
        fixed = text.replace(newline, "\n")
        head = _HEAD.match(fixed)
        if not head or not head[1] or fixed.replace("\n", newline) != text:
            return raw
        entries = read_entries(head[2], head.start(2))
    except (ValueError, YamlFaultError):
        return raw
    errors, said = _read_state(path, fixed, rules)
    keys = [each.key for each in entries]
    for entry in reversed(entries):  # The places of those before stay right.
        value = entry.value if isinstance(entry.value, str) else ""
        status = _HIDES.get(f"{entry.key} {value.lower()}", "")
        name = "status" if status else _RENAMED.get(entry.key, entry.key)
        line = _LINE.match(fixed, entry.key_at)
        if line and name in KEYS and keys.count(name) == (name == entry.key):
            # What goes on in further lines is its author's.
            is_whole = not re.match(r".*\n[ \t]+\S", fixed[line.end() :])
            right = is_whole and _fix_value(name, entry.value, line["value"])
            value = status or right or line["value"]
            edited = f"{fixed[: line.start()]}{name}{line['colon']}{value}{fixed[line.end() :]}"
            if edited != fixed:
                state = _read_state(path, edited, rules)
                # It says nothing else to readers, and has no error more.
                if state[0] <= errors and said in {None, state[1]}:
                    fixed = edited
    return fixed.replace("\n", newline).encode()


def _read_state(path: str, text: str, rules: SourceRules) -> tuple[int, object]:
    """Return how many errors a file has, and where and when it is published, if it can be read."""
    post, findings = read_document(path, text.encode(), rules)
    state = post and (post.slug, post.address, post.draft, post.published)
    return sum(each.severity == "error" for each in findings), state


def _fix_value(name: str, value: object, written: str) -> str:
    """Return the right form of a key's value as `written`; nothing where it has it or none is."""
    text = value if isinstance(value, str) else ""
    if name == "status" and not text.islower():
        return text.lower()
    if name in {"date", "updated", "modified"} and not _WRITTEN.fullmatch(text):
        with suppress(ValueError):
            return "" if explain_doubt(text) else write_moment(text)
    members = make_entry(name, value, 0, 0).value
    if not written or written.startswith("[") or not isinstance(members, list):
        return ""
    width = sys.maxsize
    return str(
        yaml.safe_dump(members, default_flow_style=True, allow_unicode=True, width=width)
    ).strip()


def rewrite(content: Path, path: str, before: bytes, after: bytes) -> None:
    """Replace a file of the content in one step, with its mode and its owner.

    Raises BuildError for one that changed since it was read as `before`, that lies outside of the
    folder, or that the disk does not take; it stays as it is.
    """
    place = (content / path).resolve()
    if not place.is_relative_to(content.resolve()):
        raise BuildError(f"{content / path} leads out of the folder; it is left as it is")
    if place.exists() and not os.access(place, os.W_OK):
        raise BuildError(f"{content / path} is not writable; fix its permissions")
    try:
        with TemporaryDirectory(dir=place.parent, prefix=".") as folder:
            new, found = Path(folder, place.name), place.stat()
            new.write_bytes(after)
            shutil.copymode(place, new)
            with suppress(PermissionError):
                os.chown(new, found.st_uid, found.st_gid)
            if place.read_bytes() != before:
                raise BuildError(f"{content / path} was changed meanwhile; it is left as it is")
            new.replace(place)
    except OSError as refusal:
        reason = f"cannot be written: {refusal.strerror}; {find_fix(refusal)}"
        raise BuildError(f"{content / path} {reason}") from refusal
