"""Which text is shown of each source file: as it is, as the build before shows it, or none."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from site_build.content.kept import KeptSources
from site_build.content.sources import Reading
from site_build.errors import Diagnostic, Held
from site_build.text import fold


class Choice:
    """The choice under way: each file that is refused makes way for what was before it."""

    def __init__(
        self,
        readings: Mapping[str, Reading],
        kept: KeptSources,
        recall: Callable[[str], Reading | None],
        now: datetime | None,
    ) -> None:
        """`recall` reads one of the `kept` sources; without an instant (UTC) drafts are shown."""
        self.shown = {**readings}
        """What is shown by the path of its source."""
        self.errors: dict[str, Diagnostic] = {}
        """The first error of each file that has one."""
        self._readings, self._kept, self._recall, self._now = readings, kept, recall, now
        self._instead: dict[str, str] = {}
        """Files that were refused, by the paths of sources that are shown instead."""

    def refuse(self, path: str, error: Diagnostic) -> None:
        """Show what was before in place of a file; nothing, where it is that already."""
        self.errors.setdefault(path, error)
        self.shown.pop(path, None)
        if path not in self._instead:
            for name, reading in self._list_former(path):
                self.shown[name], self._instead[name] = reading, path

    def drop_alias(self, error: Diagnostic) -> None:
        """Show a file without the alias that an error is about."""
        self.errors.setdefault(error.path, error)
        reading = self.shown[error.path]
        if document := reading.document:
            kept = tuple(e for e in document.aliases if (e.line, e.column) != error[1:3])
            changed = replace(document, aliases=kept)
            self.shown[error.path] = reading._replace(document=changed)

    def is_fresh(self, path: str) -> bool:
        """Return whether what is shown of a file is not what the build before shows."""
        return self._kept.get(path, ("", ""))[0] != self.shown[path].digest

    def list_held(self, files: Mapping[str, object]) -> Iterator[Held]:
        """Yield every file with an error; `files` have those that are shown as they were."""
        replaced = {path for name, path in self._instead.items() if name in self.shown}
        for path, error in sorted(self.errors.items()):
            is_draft = path in self._readings and self._readings[path].is_draft
            finding = error._replace(severity="warning") if is_draft else error
            yield Held(path, path in replaced or path in self.shown or path in files, finding)

    def _list_former(self, path: str) -> Iterator[tuple[str, Reading]]:
        """Yield what readers see of a file, of each file in a folder, or of one renamed to it."""
        reading = self._readings.get(path)
        document = reading and reading.document
        if reading and self._now:
            public = document.is_public_at(self._now) if document else not reading.is_withdrawn
            if not public:
                return
        names = [path] if path in self._kept else []
        if not names:
            slug = document.slug if document else reading.slug if reading else ""
            gone = (each for each in self._kept if each not in self._readings)
            inside = path if path.endswith("/") else f"{path}/"
            names = [
                e for e in gone if fold(self._kept[e][1]) == fold(slug) or e.startswith(inside)
            ]
        for name in names:
            found = self._recall(name)
            if found and found.document:
                is_draft = found.document.draft or bool(reading and reading.is_draft)
                yield name, found._replace(document=replace(found.document, draft=is_draft))
