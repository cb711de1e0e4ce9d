"""The journal of another system as an importer reads it, before anything is written.

An importer is a function `read_NAME(root: Path) -> Imported`: it opens files below `root`, runs
nothing of it, reaches no network and writes nothing. `writer.py` makes the journal of the result.
"""

import codecs
import csv
import io
import posixpath
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from site_build.errors import BuildError
from site_build.importers.heads import NO, YES, pick, read_date

_STATES: Final = {
    **dict.fromkeys(("", "published", "publish", "public", "live", "everyone"), "published"),
    "unlisted": "hidden",
    **dict.fromkeys(("draft", "private", "unpublished", "pending", "scheduled", "skip"), "draft"),
}
_MEANINGS: Final[dict[str, Mapping[str, str]]] = {
    **dict.fromkeys(
        ("draft", "private", "unpublished"),
        dict.fromkeys(NO, "published") | dict.fromkeys(YES, "draft"),
    ),
    **dict.fromkeys(
        ("publish", "published", "public", "visible"),
        dict.fromkeys(("", *YES), "published") | dict.fromkeys(NO, "draft"),
    ),
    # To some systems that is a page in no list, and to others no page: its owner decides.
    "hidden": dict.fromkeys(NO, "published"),
    "unlisted": dict.fromkeys(NO, "published") | dict.fromkeys(YES, "hidden"),
    "listed": dict.fromkeys(("", *YES), "published") | dict.fromkeys(NO, "hidden"),
    **dict.fromkeys(("state", "visibility"), _STATES),
    "status": _STATES | {"hidden": "hidden"},
}
"""Statuses by values in lower case, by the keys of heads that say who can read a text."""
SOURCE = "source:"
"""The beginning of a link to a text or a file of the old journal, before its path in the root."""
READING_ERRORS: Final = (
    OSError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    re.error,
    zipfile.BadZipFile,
    zlib.error,
    csv.Error,
    yaml.YAMLError,
    SyntaxError,
)
"""Exceptions of a broken archive, table, text or setting; a tree too deep is a RuntimeError."""


class UnreadableJournal(BuildError):  # noqa: N818 - it is named for what it is about
    """A journal that cannot be read as a whole; the message is a sentence that says what to do."""


@dataclass
class Finding:
    """Something that was left out or changed, and what its owner can do about it."""

    source: str
    """Path below the root; empty where it is about the journal as a whole."""
    line: int
    """From 1; 0 where it is about the whole file."""
    what: str
    """A sentence without its full stop, such as `the shortcode gist is not known`."""
    fix: str
    """An imperative, such as `write a link in its place`."""
    kind: Literal["left out", "changed"] = "changed"
    """`left out`: the text itself is missing from the new journal."""


@dataclass
class Text:
    """A post or a page."""

    source: str
    """Path below the root; for an export, the file's name and what names the item in it."""
    body: str
    """Markdown as this journal reads it.

    A link is absolute (`/2020/01/post/`, or with the old journal's host), relative to the
    address or to the source, or `source:PATH#fragment` where the importer knows which file it
    means. The writer makes them links of the new journal.
    """
    title: str
    address: str = ""
    """The public path at the old journal, percent-decoded, with its query; empty for none."""
    kind: Literal["post", "page"] = "post"
    status: Literal["published", "hidden", "draft"] = "published"
    date: datetime | None = None
    updated: datetime | None = None
    slug: str = ""
    """The slug that its owner chose; made of the address or the title where it is empty."""
    tags: list[str] = field(default_factory=list)
    """Tags, then categories: this journal's theme has pages of tags alone."""
    category: str = ""
    author: str = ""
    lang: str = ""
    description: str = ""
    series: str = ""
    image: str = ""
    """A link like those of the body."""
    image_alt: str = ""
    aliases: list[str] = field(default_factory=list)
    """Further old paths."""
    first_line: int = 1
    """Line of the source at which the body begins."""

    @property
    def folder(self) -> str:
        """Folder of the source as an absolute path whose `/` is the root; `..` cannot leave it."""
        return posixpath.dirname(posixpath.normpath(f"/{self.source.lstrip('/')}"))


@dataclass
class Imported:
    """A journal of another system."""

    system: str
    """Its name, as people write it: `Hugo`."""
    texts: list[Text] = field(default_factory=list)
    files: dict[str, Path | bytes] = field(default_factory=dict)
    """Pictures and attachments by old public path, without the leading slash."""
    public_paths: dict[str, str] = field(default_factory=dict)
    """Old public paths of files by path below the root, where the two differ."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Targets by old path, with its query, for what is no text. A target is an address of the new
    journal, `source:PATH`, or one of `home:`, `posts:`, `archive:`, `tags:`, `tag:NAME`, `feed:`
    and, for the feed of a tag, `feed:NAME`."""
    title: str = ""
    description: str = ""
    author: str = ""
    lang: str = ""
    timezone: str = ""
    origin: str = ""
    """Scheme and host of the old journal, without a trailing slash."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of Pelican that stay as they are; only importers of Pelican have any."""
    menu: list[tuple[str, str]] = field(default_factory=list)
    """Names and links of the old journal's menu."""
    members: list[dict[str, str]] = field(default_factory=list)
    """Subscribers, never users: `email`, `name`, `created_at`, `note`."""
    comments: list[dict[str, str]] = field(default_factory=list)
    """`post`, `author`, `date`, `text`; no addresses of mail or of the network."""
    findings: list[Finding] = field(default_factory=list)
    unread_keys: Counter[str] = field(default_factory=Counter)
    """Numbers of heads by the keys in them that are left out."""

    def note(
        self,
        source: str,
        line: int,
        what: str,
        fix: str,
        kind: Literal["left out", "changed"] = "changed",
    ) -> None:
        """Add a finding."""
        self.findings.append(Finding(source, line, what, fix, kind))

    def note_true(self, source: str, findings: Mapping[str, object]) -> None:
        """Add a finding about a text for each key whose value is true."""
        self.findings += [
            Finding(source, 0, what, "look at it in the new journal")
            for what, holds in findings.items()
            if holds
        ]

    def judge_head(
        self,
        source: str,
        head: Mapping[str, Any],
        known: Collection[str],
        dates: Mapping[str, object],
        date: datetime | None,
    ) -> Literal["published", "hidden", "draft"]:
        """Return a text's status by its head; count keys, in lower case, that are not `known`.

        A value that cannot be read is noted. It makes the text a draft if it says who can read it,
        so that nobody gives away more than they meant; `dates["date"]` makes it one if the text has
        no other `date`, since it may lie ahead.
        """
        # Some put a word before a key, as in `isDraft` and `dg-publish`.
        names = {key: re.sub("^(?:is|dg)?[-_]?", "", key.lower()) for key in head}
        self.unread_keys.update(
            key
            for key in head
            if head[key] and key.lower() not in known and names[key] not in _MEANINGS
        )
        given: dict[str, Any] = {
            f"{key}: {word}".rstrip(): _MEANINGS[name].get(word)
            for key, name in names.items()
            # In some systems `published` is the date.
            if name in _MEANINGS and not (name == "published" and read_date(head[key]))
            for each in (head[key] if isinstance(head[key], list) else [head[key]])
            for word in ["" if each is None else " ".join(str(each).lower().split())]
        } | {
            f"{name}: {text}": None if name == "date" and not date else ""
            for name, value in dates.items()
            if (text := pick(value)) and not read_date(text)
        }
        self.note_true(
            source,
            {
                f"`{what[:80]}` in its head has no meaning here"
                + ", so it is a draft" * (status is None): not status
                for what, status in given.items()
            },
        )
        return max(
            ("draft" if status is None else status or "published" for status in given.values()),
            key=("published", "hidden", "draft").index,
            default="published",
        )

    @contextmanager
    def skipping_unreadable(self, source: str, name: str) -> Iterator[None]:
        """End the block with a finding, `left out`, if the text cannot be read."""
        try:
            yield
        except READING_ERRORS as error:
            line = getattr(error, "line", 0)  # a HeadError has one
            what = str(error) if line else f"{name!r} cannot be read ({error!r})"
            fix = "fix its head, then run the command again" if line else "copy it by hand"
            self.note(source, line, what, fix, "left out")


def walk(root: Path, below: str = "") -> Iterator[tuple[str, Path]]:
    """Yield the regular files of `root`, or of its folder `below`, sorted, with relative paths.

    Names that begin with a dot, `node_modules` and links that lead out of the folder are left out;
    so are backups of editors, and sources in R, since their output is beside them.
    """
    top = root.resolve()
    for path in sorted((top / below).rglob("*")):
        name = path.relative_to(top / below)
        is_left_out = any(part.startswith(".") or part == "node_modules" for part in name.parts)
        is_left_out |= path.name.lower().endswith(("~", ".bak", ".orig", ".rmd", ".rmarkdown"))
        if not is_left_out and path.is_file() and path.resolve().is_relative_to(top):
            yield name.as_posix(), path


def _read_windows(fault: Any) -> tuple[str, int]:
    """Decode bytes that are not UTF-8 as Windows-1252 (an error handler of `codecs`)."""
    return fault.object[fault.start : fault.end].decode("cp1252", "replace"), fault.end


codecs.register_error("windows", _read_windows)


def read_text(path: Path | zipfile.Path) -> str:
    """Return a file's text without a byte order mark; bytes that are not UTF-8 are Windows-1252."""
    data = path.read_bytes()
    is_wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = data.decode("utf-16", "replace") if is_wide else data.decode("utf-8-sig", "windows")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_redirects(text: str) -> dict[str, str]:
    """Return new paths by old ones, from files of Netlify or settings of other hosts."""
    found = (
        filter(None, groups)
        for groups in re.findall(
            r"(?m)\b(?:source|from)[\"']?\s*[:=]\s*[\"'](/[^\"']*)[\"'],?\s*"
            r"[\"']?(?:destination|to)[\"']?\s*[:=]\s*[\"']([^\"']+)[\"']"
            r"|[\"'](/[^\"'\s]+)[\"']\s*:\s*(?:\{[^{}]*?\bdestination\s*:\s*)?"
            r"[\"'](/[^\"'\s]*|https?:[^\"'\s]+)"
            r"|^(/\w\S*)[ \t]+(/\S*|http\S+)",
            text,
        )
    )
    return {old: new for old, new in found}  # noqa: C416 - mypy cannot count them


def read_members(text: str) -> list[dict[str, str]]:
    """Return the subscribers of a table (CSV); `note` says who wants no mail."""
    return [
        {
            "email": row["email"],
            "name": row.get("name") or "",
            "created_at": row.get("created_at") or "",
            # Ghost asks who wants mail, and Substack who does not.
            "note": "wants no mail. "
            * (row.get("subscribed_to_emails") == "false" or row.get("email_disabled") == "true")
            + (row.get("note") or ""),
        }
        for row in csv.DictReader(io.StringIO(text))
        if row.get("email")
    ]
