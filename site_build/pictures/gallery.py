"""What documents show and name of each other: pictures, and links to source files."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape

from site_build.pictures import dress
from site_build.pictures.encode import Form, Picture, list_forms


@dataclass(frozen=True, slots=True)
class Gallery:
    """Pictures by their paths, as pages and feeds show them."""

    pictures: Mapping[str, Picture]
    shown: Mapping[str, tuple[str, ...]]
    """Paths of the pictures that a document shows, by the document's path."""
    links: Mapping[str, Mapping[str, str]]
    """The address for each link of a document to a source file, by the document's path."""

    def list_digests(self, document: str) -> list[tuple[str, str]]:
        """Return what stands for the pictures that a document shows, and for its links."""
        return [
            *self.links.get(document, {}).items(),
            *self._list_pictures(document),
        ]

    def _list_pictures(self, document: str) -> list[tuple[str, str]]:
        return [
            (path, self.pictures[path].digest)
            for path in self.shown.get(document, ())
            if path in self.pictures
        ]

    def dress(self, html: str, page: str, document: str) -> str:
        """Return the HTML of a document with its images dressed and its links to files mended."""
        return dress.dress(self._link(html, document), page, self.pictures)

    def state_sizes(self, html: str, page: str, document: str) -> str:
        """Return it with dimensions on its images alone, for feeds and the API."""
        return dress.state_sizes(self._link(html, document), page, self.pictures)

    def _link(self, html: str, document: str) -> str:
        for written, address in self.links.get(document, {}).items():
            for name in ("href", "src"):
                html = html.replace(f'{name}="{escape(written)}"', f'{name}="{escape(address)}"')
        return html

    def list_forms(self, documents: Iterable[str]) -> Iterator[tuple[Picture, Form]]:
        """Yield every form that pages of these documents offer, those of equal pictures once."""
        wanted = {path for each in documents for path in self.shown.get(each, ())}
        pictures = [self.pictures[path] for path in sorted(wanted) if path in self.pictures]
        offered = {form.path: (each, form) for each in pictures for form in list_forms(each)}
        yield from offered.values()


def link_markdown(text: str, links: Mapping[str, str]) -> str:
    """Return the Markdown of a document with its links to files mended, for its readers."""
    for written, address in links.items():
        for sign in ("](", "]: "):
            text = text.replace(f"{sign}{written}", f"{sign}{address}")
    return text
