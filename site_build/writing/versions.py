"""Versions of a source: in the content folder, and as a draft of a credential in `var/drafts/`."""

import glob
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from edge_api.schema.writing import (
    FormerVersion,
    Refusal,
    WriteAnswer,
    blob_id,
    read_file,
    write_file,
)
from site_build.site import Document
from site_build.text import fold

KEPT_DAYS: Final = 30
PAUSE: Final = timedelta(minutes=1)
"""The least time between two versions that are kept of a text while somebody types it."""

_RECORD: Final = TypeAdapter(dict[str, str])


class Refused(Exception):  # noqa: N818  an answer, not a fault of the code
    """Nothing was done; the message says why and what to do."""

    def __init__(self, kind: Refusal, message: str, found: "Found | None" = None) -> None:
        super().__init__(message)
        self.answer = WriteAnswer(
            refusal=kind, message=message, version=found.version if found else ""
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The versions of a source: in the content, and as a draft of a credential."""

    slug: str
    path: str
    """In the content folder; where it would be, if it is not there."""
    content: bytes | None
    draft: bytes | None
    record: Mapping[str, str]
    """Who wrote the draft, and versions: its own, and that of the content; empty without one."""
    document: Document | None
    """That of the content, if it can be read."""
    is_public: bool
    """Whether readers see it, or will without another act."""

    @property
    def raw(self) -> bytes | None:
        """The version that an editor reads; `None` if there is no such source."""
        return self.content if self.draft is None else self.draft

    @property
    def author(self) -> str:
        """The credential that wrote the draft; empty for the owner."""
        return self.record.get("author", "")

    @property
    def is_overtaken(self) -> bool:
        """Whether the content has another version than the one that the draft is a change of.

        It counts as another one, too, where a kill left the draft with the record of the next.
        """
        is_whole = self.record.get("draft") == self.version
        return not is_whole or self.record.get("content", "") != self.content_version

    @property
    def content_version(self) -> str:
        """The blob id of the content; empty if there is none."""
        return blob_id(self.content)

    def find_base(self, author: str) -> str:
        """Return the version of the content that a draft by this author is a change of.

        It stays that of the draft before, which is the only one that the author knows of, until
        that author's publication is refused for it.
        """
        known = self.record.get("content", self.content_version)
        return self.record.get(f"told {author}", known)

    @property
    def version(self) -> str:
        """The blob id of that version; empty if there is none."""
        return blob_id(self.raw)


def _read_record(file: Path) -> Mapping[str, str]:
    """Return the record beside a text."""
    with suppress(OSError, ValidationError):
        return _RECORD.validate_json(read_file(file.with_suffix(".json")) or b"")
    return {"author": "somebody"}  # so that HTML is not trusted


class DraftFolder:
    """Drafts of credentials, in `var/drafts/`: a text, its author beside it, and pictures."""

    def __init__(self, var: Path) -> None:
        self.folder = var / "drafts"

    def read(self, slug: str) -> tuple[bytes | None, Mapping[str, str]]:
        """Return a draft and its record; `None` if there is none."""
        raw = read_file(self._file(slug))
        return raw, {} if raw is None else _read_record(self._file(slug))

    def write(self, slug: str, raw: bytes, author: str, base: str, **more: str) -> None:
        """Store a draft that is a change of a version of the content. Raises OSError."""
        file = self._file(slug)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {"author": author, "content": base, "draft": blob_id(raw), **more}
        # If this is killed between the two, the record is that of a draft that was not confirmed.
        write_file(file.with_suffix(".json"), json.dumps(record).encode())
        write_file(file, raw)

    def remove(self, slug: str) -> None:
        """Remove a draft."""
        for each in (self._file(slug), self._file(slug).with_suffix(".json")):
            each.unlink(missing_ok=True)

    def pictures(self, raw: bytes) -> list[str]:
        """Return the paths of those pictures of drafts that a text names."""
        text, folder = raw.decode(errors="replace"), self.folder.resolve()
        plain = (each for each in folder.glob("*/*") if each.resolve() == each)  # no link
        found = (each.relative_to(folder).as_posix() for each in plain)
        return sorted(path for path in found if f"/{path}" in text)

    def slugs(self) -> list[str]:
        """Return the slugs of all drafts."""
        return sorted(each.name.removesuffix(".md") for each in self.folder.glob("*.md"))

    def _file(self, slug: str) -> Path:
        return self.folder / f"{fold(slug)}.md"


class FormerVersions:
    """Versions that were replaced or removed, `var/versions/SLUG-ID.md`, and their authors."""

    def __init__(self, var: Path) -> None:
        self.folder = var / "versions"

    def keep(self, slug: str, raw: bytes, author: str, *, is_rewritten: bool = False) -> None:
        """Keep a version for `KEPT_DAYS` days. Raises OSError.

        One that `is_rewritten`, as a text is while somebody types, is kept once a minute.
        """
        now = datetime.now(UTC)
        for each in self.folder.glob("*-*"):
            if each.lstat().st_mtime < (now - timedelta(days=KEPT_DAYS)).timestamp():
                each.unlink()
        last = next(iter(self.list(slug)), None)
        if is_rewritten and last and last.author == author and abs(now - last.at) < PAUSE:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self.locate(slug, blob_id(raw))
        write_file(file.with_suffix(".json"), json.dumps({"author": author}).encode())
        write_file(file, raw)

    def list(self, slug: str) -> list[FormerVersion]:
        """Return the versions of a source, the newest first."""
        found = []
        for each in self.folder.glob(f"{glob.escape(fold(slug))}-*.md"):
            version = each.stem.rpartition("-")[2]
            if each == self.locate(slug, version):  # not that of a slug which begins alike
                found.append(
                    FormerVersion(
                        version=version,
                        at=datetime.fromtimestamp(each.lstat().st_mtime, UTC),
                        author=_read_record(each).get("author", ""),
                        message="",
                    )
                )
        return sorted(found, key=lambda each: each.at, reverse=True)

    def locate(self, slug: str, version: str) -> Path:
        """Return the file of a version; it need not be there."""
        return self.folder / f"{fold(slug)}-{version}.md"
