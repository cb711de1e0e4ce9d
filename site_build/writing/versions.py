"""Versions of a source: in the content folder, and as a draft of a credential in `var/drafts/`."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from edge_api.schema.writing import MAX_TEXT_BYTES, Refusal, WriteAnswer
from site_build.content.edits import rewrite
from site_build.content.sources import read_bytes
from site_build.site import Document
from site_build.text import fold
from site_build.writing.commits import blob_id

KEPT_DAYS: Final = 30


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
    """Who wrote the draft, and the version of the content at that time; empty without one."""
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
        """Whether the content has another version than when the draft was saved."""
        present = "" if self.content is None else blob_id(self.content)
        return self.record.get("content", "") != present

    @property
    def version(self) -> str:
        """The blob id of that version; empty if there is none."""
        return "" if self.raw is None else blob_id(self.raw)


class DraftFolder:
    """Drafts of credentials, in `var/drafts/`: a text, its author beside it, and pictures."""

    def __init__(self, var: Path) -> None:
        self.folder = var / "drafts"

    def read(self, slug: str) -> tuple[bytes | None, Mapping[str, str]]:
        """Return a draft and its record; `None` if there is none."""
        file = self._file(slug)
        try:
            raw = read_bytes(self.folder, file.name, MAX_TEXT_BYTES)
        except FileNotFoundError:
            return None, {}
        with suppress(OSError, ValueError):
            return raw, json.loads(file.with_suffix(".json").read_bytes())
        return raw, {"author": "somebody"}  # so that HTML is not trusted

    def write(self, slug: str, raw: bytes, author: str, content: bytes | None) -> None:
        """Store a draft of a source whose content is this now. Raises OSError and BuildError."""
        file = self._file(slug)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {"author": author, "content": "" if content is None else blob_id(content)}
        # If this is killed between the two, the record is that of a draft that was not confirmed.
        file.with_suffix(".json").write_text(json.dumps(record), encoding="utf-8")
        rewrite(self.folder, file.name, self.read(slug)[0], raw)

    def remove(self, slug: str) -> None:
        """Remove a draft."""
        for each in (self._file(slug), self._file(slug).with_suffix(".json")):
            each.unlink(missing_ok=True)

    def pictures(self, raw: bytes) -> list[str]:
        """Return the paths of those pictures of drafts that a text names."""
        text, folder = raw.decode(errors="replace"), self.folder
        found = (each.relative_to(folder).as_posix() for each in folder.glob("*/*"))
        return sorted(path for path in found if f"/{path}" in text)

    def slugs(self) -> list[str]:
        """Return the slugs of all drafts."""
        return sorted(each.name.removesuffix(".md") for each in self.folder.glob("*.md"))

    def _file(self, slug: str) -> Path:
        return self.folder / f"{fold(slug)}.md"


def keep_former(var: Path, found: Found) -> None:
    """Keep a version that is replaced for `KEPT_DAYS` days, where there is no git."""
    folder = var / "versions"
    end = datetime.now(UTC) - timedelta(days=KEPT_DAYS)
    for each in folder.glob("*"):
        if each.stat().st_mtime < end.timestamp():
            each.unlink()
    if found.content is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / f"{fold(found.slug)}-{blob_id(found.content)}.md").write_bytes(found.content)
