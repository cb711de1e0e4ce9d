"""A build that writes nothing: it takes every task, and makes a file when somebody asks for it.

It shows what a build would show, drafts and scheduled posts included. It knows neither Pelican nor
who asks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from site_build import addresses
from site_build.build.builder import KnownContent, SiteBuild, free_memory
from site_build.build.fingerprint import Style
from site_build.build.index_file import make_line
from site_build.build.manifest import Line
from site_build.build.targets import RecordTarget, Target, TargetContext, TemplateTarget
from site_build.build.text_targets import list_full_texts, list_records
from site_build.content.sources import Content
from site_build.errors import BuildError
from site_build.progress import Request
from site_build.site import Identity

_MADE_OF_RECORDS = (".json", ".txt", ".xml")
"""Suffixes of files that may hold whole posts."""


class PreviewBuild(SiteBuild):
    """The site as it would be built with every document public."""

    def __init__(
        self, request: Request, identity: Identity, style: Style, known: KnownContent
    ) -> None:
        """Take what was read and checked; raises BuildError for what the edge cannot show."""
        public = replace(known, content=_publish_drafts(known.content))
        super().__init__(request, identity, style, public)

    def _take_others(self) -> None:
        """Take nothing: other files are looked for when asked for."""

    def make_pages(self) -> Iterator[TemplateTarget]:
        """Make nothing; pages are known now."""
        return iter(())

    def finish(self, folder: Path) -> None:
        """Make nothing; what plugins write is not shown."""

    def make(self, path: str) -> bytes | None:
        """Return a file made now, or None where there is none; raises BuildError if that fails."""
        with self._cache:
            target = self._targets.get(path) or self._others.get(path) or self._find_full_text(path)
            if target is None:
                return None
            try:
                data = target.make(self._context)
            except OSError as error:
                raise BuildError(f"{error.filename} cannot be read: {error.strerror}") from error
            free_memory()
            return data

    @cached_property
    def _others(self) -> Mapping[str, Target]:
        # The first of a path is that of the content folder.
        found = list(self._list_others(datetime.now(UTC)))
        return {target.path: target for target in reversed(found)}

    def tidy(self) -> None:
        """Forget texts and pictures of earlier content: the cache should not grow by every save."""
        with self._cache:
            self._forget_others(self._others.values())

    def _find_full_text(self, path: str) -> Target | None:
        """Return the task of a file that holds whole posts, whose lines nobody has made yet."""
        if not path.endswith(_MADE_OF_RECORDS):
            return None
        forms = (addresses.FEED, addresses.FEED_JSON)
        tags = [
            tag
            for tag in self.site.tags
            if path in {addresses.locate_feed(tag.address, form) for form in forms}
        ]
        targets = list_full_texts(
            replace(self.site, tags=tuple(tags)), self._made_lines, has_cards=bool(self.font)
        )
        return next((target for target in targets if target.path == path), None)

    @cached_property
    def _made_lines(self) -> Mapping[str, Line]:
        return _Lines(self._context, list_records(self.site, self.content.minutes))


class _Lines(dict[str, Line]):
    """Lines of the posts index by slug, each made once and on demand, and held in memory."""

    def __init__(self, context: TargetContext, targets: Iterable[RecordTarget]) -> None:
        super().__init__()
        self._context = context
        self._targets = {target.document.slug: target for target in targets}

    def __missing__(self, slug: str) -> Line:
        line = self._targets[slug].make(self._context)
        self[slug] = make_line(slug, "", line, line)
        return self[slug]


def _publish_drafts(content: Content) -> Content:
    """Return the same with drafts as posts like all others."""
    public = (replace(each, draft=False) if each.draft else each for each in content.documents)
    return replace(content, documents=tuple(public))
