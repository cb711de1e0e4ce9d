"""The content folder as a store of sources: what is written there is committed, or kept."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from edge_api.schema.writing import FormerVersion, blob_id, read_file, write_file
from site_build.content.edits import rewrite
from site_build.writing.commits import Repository
from site_build.writing.versions import (
    DraftFolder,
    FormerVersions,
    Found,
    Refused,
)

_MOST_VERSIONS: Final = 50
"""Most former versions that are listed."""


class ContentStore:
    """Puts sources into the content folder, each in one step that is finished after a kill."""

    def __init__(self, content: Path, drafts: DraftFolder, kept: FormerVersions) -> None:
        self._content, self._drafts, self._kept = content, drafts, kept
        self._intent = kept.folder / "intent.json"
        """The record of a write into the content that is under way.

        It is not in the spool, where the edge may write: it names a file of the content.
        """

    def put(
        self, found: Found, raw: bytes | None, author: str, message: str, draft: bytes | None = None
    ) -> None:
        """Write a source into the content and commit it, or keep its former version.

        A source that becomes `None` is removed. The pictures of a `draft` that is published go
        with it, and it is removed. Nothing is changed if it cannot be committed.

        Raises Refused, BuildError and OSError.
        """
        repository = Repository.find(self._content)
        pictures = self._list_pictures(draft or b"")
        with repository.lock() if repository else nullcontext():
            if repository:
                file = self._content / found.path
                present = {found.content_version, repository.staged(file)}
                if present != {repository.committed(file)}:
                    raise Refused(
                        "conflict",
                        f"{found.path} has changes that are not committed; commit them first",
                        found,
                    )
            elif found.content is not None:
                is_rewritten = not found.is_public and raw is not None
                self._kept.keep(found.slug, found.content, "", is_rewritten=is_rewritten)
            intent = {
                "path": found.path,
                "slug": found.slug,
                "version": blob_id(raw),
                "draft": blob_id(draft),
                "pictures": pictures,
                "author": author,
                "message": message,
            }
            self._kept.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(self._intent, json.dumps(intent).encode())
            self._replace(found, found.content, raw)
            try:
                self._finish(intent, repository)
            except Refused:
                self._replace(found, raw, found.content)
                self._intent.unlink()
                raise

    def _replace(self, found: Found, before: bytes | None, after: bytes | None) -> None:
        """Replace the bytes of a file, unless somebody has changed it. Raises Refused."""
        file = self._content / found.path
        if after is None:
            if file.read_bytes() != before:
                raise Refused("conflict", f"{found.path} was changed meanwhile; it is left", found)
            file.unlink()
        elif before != after:
            rewrite(self._content, found.path, before, after)

    def _list_pictures(self, draft: bytes) -> dict[str, str]:
        """Return versions of pictures that a draft names, by path. Raises Refused."""
        found = {}
        for name in self._drafts.pictures(draft):
            raw, place = (self._drafts.folder / name).read_bytes(), self._content / name
            if place.exists() and place.read_bytes() != raw:
                raise Refused("conflict", f"{name} is another file by now; add the picture again")
            found[name] = blob_id(raw)
        return found

    def recover(self) -> None:
        """Finish what a kill has cut short. Raises Refused, BuildError and OSError."""
        if repository := Repository.find(self._content):
            with repository.lock():
                pass  # our lock is removed
        self.finish()

    def finish(self) -> None:
        """Commit what `put` wrote, and remove the draft that it was, where it could not.

        Raises Refused, BuildError and OSError.
        """
        if intent := json.loads(read_file(self._intent) or b"null"):
            repository = Repository.find(self._content)
            with repository.lock() if repository else nullcontext():
                self._finish(intent, repository)

    def _finish(self, intent: dict[str, Any], repository: Repository | None) -> None:
        file = self._content / intent["path"]
        raw = read_file(file)
        if blob_id(raw) == intent["version"]:
            raws = {file: raw}
            for name, version in intent["pictures"].items():
                picture, waiting = self._content / name, self._drafts.folder / name
                if not picture.exists():
                    rewrite(self._content, name, None, waiting.read_bytes())
                waiting.unlink(missing_ok=True)  # it was moved before a kill
                if blob_id(moved := picture.read_bytes()) == version:
                    raws[picture] = moved
            if repository:
                repository.commit(raws, intent["message"], intent["author"])
            draft, _ = self._drafts.read(intent["slug"])
            if draft is not None and blob_id(draft) == intent["draft"]:
                self._drafts.remove(intent["slug"])
        self._intent.unlink()

    def list_former(self, found: Found) -> tuple[FormerVersion, ...]:
        """Return former versions, the newest first."""
        place, repository = self._content / found.path, Repository.find(self._content)
        committed = [*repository.list_versions(place, _MOST_VERSIONS)] if repository else []
        known = sorted((*committed, *self._kept.list(found.slug)), key=lambda each: each.at)
        latest = {each.version: each for each in known if each.version != found.version}
        newest = sorted(latest.values(), key=lambda each: each.at, reverse=True)
        return tuple(newest[:_MOST_VERSIONS])

    def read_former(self, found: Found, version: str) -> bytes | None:
        """Return the bytes of a version that `list_former` has."""
        raw = read_file(self._kept.locate(found.slug, version))
        if raw is None and (repository := Repository.find(self._content)):
            raw = repository.read(version)
        return raw
