"""The posts of the current build as the newsletter reads them, and by what a post is known again.

They are read from the build's files, so that a process that only sends mail can read them too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize

import orjson
from pydantic import ValidationError

from edge_api.journal.builds import BuildRefusal, read_head, read_post_lines
from edge_api.schema.index import (
    CURRENT_LINK,
    INDEX_FILE,
    NEWSLETTER_FILE,
    IndexHead,
    NewsletterNotes,
)

Post = Mapping[str, Any]
"""A post as the index has it."""
_FEW_WORDS: Final = 20
"""Posts with fewer words may have the same text by chance; their titles tell them apart."""


def digest_text(post: Post) -> str:
    """Return the digest of a post's Markdown in normal form, which no version of ours changes."""
    words = normalize("NFC", post["content"]).split()
    title = [post["title"]] if len(words) < _FEW_WORDS else []
    return sha256(" ".join(words + title).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class MailedBuild:
    """A build: its head, and what the heads of its posts say of the newsletter."""

    folder: Path
    head: IndexHead
    notes: NewsletterNotes

    def posts(self) -> Iterator[Post]:
        """Yield every post that can be mailed, the newest of the index first."""
        with (self.folder / INDEX_FILE).open("rb") as lines:
            next(lines)
            listed = map(orjson.loads, read_post_lines(lines))
            yield from (post for post in listed if post["slug"] not in self.notes.kept_out)
        yield from (orjson.loads(record.model_dump_json()) for record in self.notes.hidden)

    def list_names(self, slug: str) -> set[str]:
        """Return the slug of a post, and its former ones."""
        renamed = (self.head.renamed, self.notes.renamed)
        return {slug, *(old for names in renamed for old, new in names.items() if new == slug)}


@lru_cache(maxsize=8)
def find_post(build: MailedBuild, slug: str, text_digest: str = "") -> Post | None:
    """Return the post with a slug, a former slug, or else a text; without a slug the newest."""
    present, found = {**build.head.renamed, **build.notes.renamed}.get(slug), None
    for post in build.posts():
        if not slug or post["slug"] == slug:
            return post
        is_copy = text_digest and not found and digest_text(post) == text_digest
        if post["slug"] == present or is_copy:
            found = post
    return found


def open_build(build_dir: Path) -> MailedBuild:
    """Return the current build. Raises BuildRefusal."""
    try:
        folder = (build_dir / CURRENT_LINK).resolve(strict=True)
        return read_build(folder, (folder / INDEX_FILE).stat().st_mtime_ns)
    except OSError as error:
        raise BuildRefusal(f"there is no build: {error.strerror}") from None


@lru_cache(maxsize=2)
def read_build(folder: Path, _changed: int = 0) -> MailedBuild:
    """Return the build in a folder, read again if its index has changed. Raises BuildRefusal."""
    file = folder / NEWSLETTER_FILE
    try:
        notes = NewsletterNotes.model_validate_json(file.read_bytes() if file.exists() else b"{}")
    except ValidationError:
        raise BuildRefusal(f"{NEWSLETTER_FILE} cannot be read: build again") from None
    return MailedBuild(folder, read_head(folder / INDEX_FILE), notes)
