"""Carries out requests to write: checks texts, stores and commits them, and answers."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final
from unicodedata import normalize

from edge_api.schema.index import SLUG_PATTERN
from edge_api.schema.writing import (
    Operation,
    Source,
    SourceSummary,
    Spool,
    State,
    WriteAnswer,
    WriteRequest,
    blob_id,
)
from site_build.checks.analyse import analyse
from site_build.content.document import guess_publication, read_document
from site_build.content.edits import change_line, set_state
from site_build.content.kept import find_slug
from site_build.content.library import ContentLibrary
from site_build.content.sources import Stamp, list_folder, read_bytes, stamp
from site_build.errors import BuildError, Diagnostic
from site_build.markup.convert import Dialect
from site_build.markup.sanitize import find_foreign
from site_build.site import UNDATED, Document
from site_build.text import Places, fold, make_slug
from site_build.writing.store import ContentStore
from site_build.writing.texts import (
    add_picture,
    complete,
    encode,
    find_title,
    list_findings,
    list_keys,
    name_files,
    run_apart,
)
from site_build.writing.versions import DraftFolder, FormerVersions, Found, Refused

_REFUSED_KEYS: Final = frozenset({"save_as", "url", "template", "permalink"})
"""Keys of a head that a credential may not write: plugins can let them choose an address."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The last reading of a source file, by its stamp."""

    stamp: Stamp
    slug: str
    document: Document | None
    version: str


class SourceWriter:
    """Carries out requests to write, one at a time."""

    def __init__(
        self,
        content: Path,
        var: Path,
        site_url: str,
        dialect: Dialect,
        open_library: Callable[[], ContentLibrary | None],
    ) -> None:
        """`open_library` returns all texts once they are read; until then one is checked alone."""
        self._content, self._site_url = content, site_url
        self._rules, self._dialect = dialect.rules, dialect
        self._open_library = open_library
        self._spool = Spool(var)
        self._drafts, self._kept = DraftFolder(var), FormerVersions(var)
        self.store = ContentStore(content, self._drafts, self._kept)
        self._known: dict[str, _Known] = {}
        self._operations: dict[Operation, Callable[[WriteRequest, datetime], WriteAnswer]] = {
            "check": self._check,
            "list": self._list,
            "get": lambda request, now: self._show(self._require(request.slug), now),
            "save": self._save,
            "picture": self._add_picture,
            "publish": self._publish,
            "withdraw": self._withdraw,
            "bin": self._bin,
            "history": self._list_history,
            "former": self._show_former,
            "preview": self._allow_page,
            "share": self._allow_page,
        }

    def answer(self, request: WriteRequest, now: datetime) -> WriteAnswer:
        """Carry out a request at `now` (UTC); it never raises for what a request can cause."""
        try:
            self.store.finish()
            return self._operations[request.operation](request, now)
        except Refused as refused:
            return refused.answer
        except BuildError as error:
            return WriteAnswer(refusal="unavailable", message=str(error))
        except OSError as error:
            said = f"{error.filename or self._content} cannot be read or written: {error.strerror}"
            return WriteAnswer(refusal="unavailable", message=said)

    def _find(self, slug: str, known: Mapping[str, _Known] | None = None) -> Found:
        """Return the versions of a source, found among `known` ones or in the folder.

        Raises Refused for a slug that names two files, or a link.
        """
        if (
            not re.fullmatch(SLUG_PATTERN, slug)
            or len(slug.encode()) > 200  # noqa: PLR2004  a file's name has 255 at most
            or slug != normalize("NFC", slug)
        ):
            raise Refused(
                "invalid", f"slug: {slug[:40]!r} is none; use letters, digits and - _ . ~"
            )
        known = self._read_all() if known is None else known
        paths = [path for path, each in known.items() if fold(each.slug) == fold(slug)]
        if len(paths) > 1:
            raise Refused("conflict", f"{' and '.join(paths)} have the slug {slug}; change one")
        draft, record = self._drafts.read(slug)
        folder = next(iter(self._rules.posts), "") or "posts"
        path = paths[0] if paths else f"{folder}/{slug}.md"
        content, document = None, None
        place = self._content.resolve() / path
        if place.resolve() != place:
            raise Refused("conflict", f"{path} is a link, or in a linked folder; put a file there")
        with suppress(FileNotFoundError):
            content = read_bytes(self._content, path)
            document, _ = read_document(path, content, self._rules)
        if not paths and content is not None:
            raise Refused("conflict", f"{path} is a file with another slug; choose another slug")
        is_public = content is not None and (
            not document.draft if document else guess_publication(content, self._rules) is not None
        )
        return Found(slug, path, content, draft, record, document, is_public)

    def _require(self, slug: str) -> Found:
        found = self._find(slug)
        if found.raw is None:
            raise Refused("not_found", f"no post has the slug {slug!r}")
        return found

    @staticmethod
    def _require_version(request: WriteRequest, found: Found) -> Found:
        """Return a source whose present version the request names. Raises Refused."""
        if request.base is None:
            more = "; for another post, choose another slug" * (request.operation == "save")
            message = f"name the version of {found.slug} that you read, in If-Match{more}"
            raise Refused("unnamed", message, found)
        if request.base != found.version:
            raise Refused("stale", "it was changed since you read it; read it again", found)
        return found

    def _read_all(self) -> dict[str, _Known]:
        """Return every post in the content; only changed files are read."""
        known, content = {}, self._content
        for path in list_folder(content, self._rules).sources:
            if self._rules.is_page(path):
                continue
            now, last = stamp(content / path), self._known.get(path)
            if last is None or last.stamp != now:
                raw = read_bytes(content, path)
                document, _ = read_document(path, raw, self._rules)
                slug = document.slug if document else find_slug(raw) or PurePosixPath(path).stem
                last = _Known(now, slug, document, blob_id(raw))
            known[path] = last
        self._known = known
        return known

    def _examine(
        self, path: str, raw: bytes, now: datetime
    ) -> tuple[Document | None, tuple[Diagnostic, ...]]:
        """Return the document of a text and findings about it, as if it were published."""
        if change_line(raw, "status", None) != raw:  # the line stays, and so do lines below it
            raw = change_line(raw, "status", "published")
        if library := self._open_library():
            library.refresh()
        try:
            return run_apart(partial(self._convert, library, path, raw, now))
        except Refused as refused:
            return None, (Diagnostic(path, 1, 1, "error", str(refused)),)

    def _convert(
        self, library: ContentLibrary | None, path: str, raw: bytes, now: datetime
    ) -> tuple[Document | None, tuple[Diagnostic, ...]]:
        """Return the document of a text, and findings about it as it stands."""
        if library:
            return library.examine(path, raw, now, self._drafts.pictures(raw))
        document, findings = read_document(path, raw, self._rules)
        if document:
            facts, _ = analyse(document, self._dialect)
            findings += facts.notes
        return document, tuple(sorted(findings))

    def _summarize(self, found: Found, now: datetime) -> dict[str, object]:
        document = found.document
        if found.draft is not None:
            document, _ = read_document(found.path, found.draft, self._rules)
        shown = found.document if found.is_public else None
        state: State = "hidden" if shown and shown.hidden else "published" if shown else "draft"
        if shown and shown.published > now:
            state = "scheduled"
        return {
            "slug": document.slug if document else found.slug,
            "title": document.title if document else "",
            "state": state,
            "date": document.published if document and document.published != UNDATED else None,
            "author": found.author,
            "version": found.version,
            "is_changed": found.draft is not None and found.is_public,
            "url": f"{self._site_url}/{document.address}" if document else "",
        }

    def _list(self, _: WriteRequest, now: datetime) -> WriteAnswer:
        """List drafts, scheduled posts and changed ones; those that credentials wrote first."""
        drafts, known, found = self._drafts.slugs(), self._read_all(), []
        others = [
            each.slug
            for each in known.values()
            if fold(each.slug) not in drafts
            and (each.document is None or each.document.draft or each.document.published > now)
        ]
        for slug in drafts + sorted(others):
            with suppress(Refused):  # two files have the slug, which `check` reports
                found.append(self._summarize(self._find(slug, known), now))
        return WriteAnswer(sources=tuple(map(SourceSummary.model_validate, found)))

    def _show(self, found: Found, now: datetime) -> WriteAnswer:
        raw = found.raw or b""
        source = Source.model_validate(
            {**self._summarize(found, now), "markdown": raw.decode(errors="replace")}
        )
        _, findings = self._examine(found.path, raw, now)
        return WriteAnswer(source=source, version=found.version, findings=list_findings(findings))

    def _allow_page(self, request: WriteRequest, now: datetime) -> WriteAnswer:
        """Return a source that may be shown as a page, and its path in the content."""
        found = self._require(request.slug)
        if request.base is not None:
            self._require_version(request, found)
        if found.author and (findings := self._find_foreign(found.path, found.raw or b"")):
            return WriteAnswer(
                refusal="conflict",
                message=f"line {findings[0].line}: {findings[0].message}",
                version=found.version,
                findings=list_findings(findings),
            )
        return self._show(found, now).model_copy(update={"path": found.path})

    def _add_picture(self, request: WriteRequest, _: datetime) -> WriteAnswer:
        """Store a picture in the content; that of a credential waits beside its drafts."""
        target = self._drafts.folder if request.author else self._content
        folder = next((each for each in self._rules.static if "." not in each), "images")
        path = add_picture(request, folder, target, (self._drafts.folder, self._content))
        return WriteAnswer(path=f"/{path}")

    def _check(self, request: WriteRequest, now: datetime) -> WriteAnswer:
        raw = encode(request.markdown)
        path = self._find(request.slug).path if request.slug else "posts/check.md"
        whole = complete(raw, request.slug or "check", now)
        _, findings = self._examine(path, whole, now)
        # Lines are those of the text that was sent, to which the head was added, or lines of it.
        pairs = zip(raw.splitlines(), whole.splitlines(), strict=False)
        same = next((at for at, (one, other) in enumerate(pairs) if one != other), raw.count(b"\n"))
        added = whole.count(b"\n") - raw.count(b"\n")
        moved = (
            each._replace(line=each.line if each.line <= same else max(each.line - added, 1))
            for each in findings
        )
        return WriteAnswer(findings=list_findings(moved))

    def _save(self, request: WriteRequest, now: datetime) -> WriteAnswer:
        raw = encode(request.markdown)
        slug = request.slug or find_slug(raw) or make_slug(find_title(raw))
        if not slug:
            raise Refused("invalid", "slug: name the post, or begin its text with a title")
        found = self._find(slug)
        raw = complete(raw, slug, now)
        self._refuse_unsafe(found, raw, request)
        if found.version != blob_id(raw) and (found.version or request.base):
            self._require_version(request, found)
        if found.is_public and not request.may_publish:
            raise Refused("forbidden", f"{slug} is published; it takes posts:publish", found)
        author = request.author or found.author
        author = author or (request.moved_from and self._find(request.moved_from).author)
        if found.raw is None and not author:  # what was binned may come back: it stays untrusted
            author = next((each.author for each in self._kept.list(slug)), "")
        if author or found.is_public or found.draft is not None:
            if found.draft not in {None, raw}:
                self._kept.keep(slug, found.draft or b"", found.author, is_rewritten=True)
            self._drafts.write(slug, raw, author, found.find_base(request.author))
        else:
            self.store.put(found, raw, "owner", f"Save {slug}")
        return self._show(self._require(slug), now)

    def _refuse_unsafe(self, found: Found, raw: bytes, request: WriteRequest) -> None:
        """Raise Refused for a text that readers would see, or that names another address."""
        document, _ = read_document(found.path, raw, self._rules)
        slug = document.slug if document else find_slug(raw)
        if slug and fold(slug) != fold(found.slug):
            message = f"the head has the slug {slug}, and the post {found.slug}; send the same"
            raise Refused("conflict", message, found)
        if not (document.draft if document else guess_publication(raw, self._rules) is None):
            raise Refused("invalid", "the head cannot be made that of a draft: mend it", found)
        if request.author and (keys := _REFUSED_KEYS & list_keys(raw)):
            raise Refused("invalid", f"{min(keys)}: only the owner can write this key", found)

    def _publish(self, request: WriteRequest, now: datetime) -> WriteAnswer:
        found = self._require_version(request, self._require(request.slug))
        if not request.may_publish:
            raise Refused("forbidden", "publishing takes posts:publish", found)
        if request.at and (request.at <= now or request.at.year > now.year + 100):
            raise Refused("invalid", "at: is past, or more than 100 years ahead", found)
        raw, was_hidden = found.raw or b"", bool(found.document and found.document.hidden)
        if was_hidden and found.draft is not None:
            raw = change_line(raw, "status", "hidden")
        changed = set_state(found.path, raw, self._rules, is_draft=False, at=request.at, now=now)
        # With a line for the status, faults have the lines of the text that was read.
        is_as_long = changed.count(b"\n") >= raw.count(b"\n")
        checked = changed if is_as_long else change_line(changed, "status", "published")
        document, findings = self._examine(found.path, checked, now)
        if document and (found.author or request.author):
            findings += self._find_foreign(found.path, checked)
        errors = [each for each in findings if each.severity == "error"]
        if document is None or document.draft or errors:
            first = f": line {errors[0].line}, {errors[0].message}" if errors else ""
            return WriteAnswer(
                refusal="conflict",
                message=f"{found.slug} has errors that readers would see{first}",
                version=found.version,
                findings=list_findings(findings),
            )
        for path, each in self._read_all().items():
            given = each.document.aliases if each.document and path != found.path else ()
            if any(alias.path == document.address for alias in given):
                raise Refused(
                    "conflict",
                    f"/{document.address} is a former address of {path}; choose another slug",
                    found,
                )
        if found.draft is not None and found.is_overtaken:
            self._drafts.write(
                found.slug,
                found.draft,
                found.author,
                found.record.get("content", ""),
                **{f"told {request.author}": found.content_version},
            )
            raise Refused(
                "conflict",
                f"{found.path} was changed since this draft of it; read both, and save again",
                found,
            )
        verb = "Schedule" if document.published > now else "Publish"
        self.store.put(
            found, changed, request.author or "owner", f"{verb} {found.slug}", found.draft
        )
        return self._show(self._require(found.slug), now)

    def _withdraw(self, request: WriteRequest, now: datetime) -> WriteAnswer:
        found = self._require_version(request, self._require(request.slug))
        if not request.may_publish:
            raise Refused("forbidden", "withdrawing takes posts:publish", found)
        if found.content is None:
            raise Refused("conflict", f"{found.slug} is not published", found)
        changed = set_state(found.path, found.content, self._rules, is_draft=True, at=None, now=now)
        if found.document and found.is_public:  # `restore` takes it back if the rest fails
            self._spool.set_withdrawn(self._spool.list_withdrawn() | name_files(found.document))
        self.store.put(found, changed, request.author or "owner", f"Withdraw {found.slug}")
        if found.draft is not None and not found.is_overtaken:
            self._drafts.write(found.slug, found.draft, found.author, blob_id(changed))
        return self._show(self._require(found.slug), now)

    def _bin(self, request: WriteRequest, _: datetime) -> WriteAnswer:
        """Remove a draft, and keep it as a former version; a text that is public stays."""
        found = self._require_version(request, self._require(request.slug))
        if found.draft is None and found.is_public:
            raise Refused(
                "conflict", f"{found.slug} is published or scheduled; withdraw it before", found
            )
        self._kept.keep(found.slug, found.raw or b"", found.author)
        if found.draft is None:
            self.store.put(found, None, request.author or "owner", f"Bin {found.slug}")
        else:
            self._drafts.remove(found.slug)
        return WriteAnswer(version=self._find(found.slug).version)

    def _list_history(self, request: WriteRequest, _: datetime) -> WriteAnswer:
        found = self._find(request.slug)
        return WriteAnswer(version=found.version, versions=self.store.list_former(found))

    def _show_former(self, request: WriteRequest, now: datetime) -> WriteAnswer:
        """Return the text of a former version, and the present version beside it."""
        found = self._find(request.slug)
        base = request.base or ""
        if base not in {each.version for each in self.store.list_former(found)}:
            raise Refused("not_found", f"{found.slug} has no such version any more", found)
        shown = self._show(replace(found, draft=self.store.read_former(found, base)), now)
        return shown.model_copy(update={"version": found.version})

    def restore(self, now: datetime) -> None:
        """Let withdrawn addresses answer again that a public text has, whoever published it."""
        if gone := self._spool.list_withdrawn():
            known = [each.document for each in self._read_all().values()]
            shown = [name_files(each) for each in known if each and each.is_public_at(now)]
            if (left := gone.difference(*shown)) != gone:
                self._spool.set_withdrawn(left)

    def _find_foreign(self, path: str, raw: bytes) -> tuple[Diagnostic, ...]:
        """Return an error for each element or attribute that only the owner may write.

        Raises Refused for a text that takes too long.
        """
        document, _ = read_document(path, raw, self._rules)
        made = run_apart(lambda: analyse(document, self._dialect)[1]) if document else None
        text = raw.decode(errors="replace")
        places = Places(text)
        return tuple(
            Diagnostic(
                path,
                *places.locate(max(text.find(word), 0)),
                "error",
                f"`{word}` is HTML that only the owner can publish; take it out",
            )
            for word in find_foreign(made.html if made else "")
        )
