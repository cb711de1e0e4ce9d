"""The heads of all documents, for questions about the content as a whole; no text is converted."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from site_build.post import Document
from site_build.reading.document import read_document
from site_build.reading.folder import read_bytes
from site_build.reading.gather import list_folder
from site_build.site import UNDATED

Question = Literal["drafts", "future", "stale"]


@dataclass(frozen=True, slots=True)
class Survey:
    """What could be read, and how many files could not."""

    documents: tuple[Document, ...]
    unread: int


def survey(content: Path) -> Survey:
    """Read every source file; raises BuildError when the folder cannot be read."""
    paths = list_folder(content).sources
    found = [document for path in paths if (document := _read(content, path))]
    return Survey(tuple(found), len(paths) - len(found))


def choose(survey: Survey, question: Question, now: datetime, age: timedelta) -> list[Document]:
    """Return the documents that a question is about, at `now` (UTC).

    Drafts come by their path, future ones by the time when they appear, stale ones, which are
    public and were not updated for longer than `age`, the oldest first.
    """
    documents = survey.documents
    match question:
        case "drafts":
            return [each for each in documents if each.draft]
        case "future":
            later = [each for each in documents if not each.draft and each.published > now]
            return sorted(later, key=lambda each: (each.published, each.slug))
        case "stale":
            public = [each for each in documents if each.is_public_at(now)]
            old = [each for each in public if each.updated != UNDATED and now - each.updated > age]
            return sorted(old, key=lambda each: (each.updated, each.slug))


def _read(content: Path, path: str) -> Document | None:
    try:
        document, _ = read_document(path, read_bytes(content, path))
    except OSError:
        return None
    return document
