"""The pictures of one build, and which document shows which of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from site_build.pictures import dress
from site_build.pictures.picture import Form, Picture, list_forms


@dataclass(frozen=True, slots=True)
class Gallery:
    """Pictures by their paths, as pages and feeds show them."""

    pictures: Mapping[str, Picture]
    shown: Mapping[str, tuple[str, ...]]
    """Paths of the pictures that a document shows, by the document's path."""

    def list_digests(self, document: str) -> list[tuple[str, str]]:
        """Return what stands for the pictures that a document shows."""
        return [
            (path, self.pictures[path].digest)
            for path in self.shown.get(document, ())
            if path in self.pictures
        ]

    def dress(self, html: str, page: str) -> str:
        """Return the HTML of the page at the address `page` with its images dressed."""
        return dress.dress(html, page, self.pictures)

    def state_sizes(self, html: str, page: str) -> str:
        """Return the HTML with dimensions on its images, for feeds and the API."""
        return dress.state_sizes(html, page, self.pictures)

    def list_forms(self, documents: Iterable[str]) -> Iterator[tuple[Picture, Form]]:
        """Yield every form that pages of these documents offer, those of equal pictures once."""
        wanted = {path for each in documents for path in self.shown.get(each, ())}
        pictures = [self.pictures[path] for path in sorted(wanted) if path in self.pictures]
        offered = {form.path: (each, form) for each in pictures for form in list_forms(each)}
        yield from offered.values()
