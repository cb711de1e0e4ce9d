"""What answers at which address of the site, as far as the content decides it.

It knows documents and addresses, and nothing of HTML or of who asks.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edge_api.schema import paths
from site_build import addresses
from site_build.post import Document
from site_build.slug import make_slug

EDGE = frozenset(
    path.removeprefix("/")
    for path in (paths.SEARCH, *paths.DOCS_PAGES, paths.TRY_DOCS, paths.UNSUBSCRIBE)
)
"""Pages that the edge makes: no document is seen at these addresses."""

_FIXED = frozenset(
    {
        addresses.HOME,
        addresses.JOURNAL,
        addresses.TAGS,
        addresses.ARCHIVE,
        addresses.CONTACT_THANKS,
        addresses.MISSING,
        addresses.FEED,
        addresses.FEED_JSON,
        addresses.SITEMAP,
        addresses.ROBOTS,
        addresses.LLMS,
        addresses.LLMS_FULL,
        addresses.AUTH,
        addresses.SITE_CARD,
    }
)
_BEYOND = ("api/", ".well-known/")
"""Folders that are the edge's, but for a few files that the build makes."""

_ELSEWHERE = (*_BEYOND, addresses.THEME, addresses.PICTURES, addresses.CARDS)
"""Answered by the edge, or made by the build at addresses that the content cannot know."""

_LEAF = re.compile(r"page/[1-9][0-9]*/$")


@dataclass(frozen=True, slots=True)
class Ground:
    """Every address that the content gives, as paths without their leading slash."""

    documents: Mapping[str, Document]
    """By address."""
    paths: Mapping[str, str]
    """Addresses of documents by their paths in the content folder."""
    slugs: Mapping[str, str]
    """Addresses of documents by their slugs."""
    aliases: Mapping[str, str]
    """Addresses of documents by their former addresses."""
    others: frozenset[str]
    """Lists and files that are no documents."""
    files: Mapping[str, str]
    """Files that are published as they are, by their paths in small letters."""

    def answers(self, path: str) -> bool:
        """Tell whether something that is no document answers at `path`, or may."""
        return path in self.others or path.startswith(_ELSEWHERE)

    def settle(self, path: str) -> str:
        """Return the address that `path` leads to: without a file name, twin or leaf number."""
        path = re.sub(r"(?:^|(?<=/))index\.(?:html|md)$", "", path)
        known = (self.documents, self.others, self.aliases)
        if not any(path in each for each in known):
            folder = f"{path}/"
            if any(folder in each for each in known):
                return folder
        if path.startswith((addresses.JOURNAL, addresses.TAGS)):
            return _LEAF.sub("", path)
        return path


def is_of_edge(path: str) -> bool:
    """Tell whether the edge answers at `path` where the build has made nothing."""
    page = path.removesuffix("index.md")
    return page in EDGE or f"{page}/" in EDGE or page.startswith(_BEYOND)


def lay_out(documents: Iterable[Document], files: Iterable[str]) -> Ground:
    """Return the addresses that `documents` and the published `files` give."""
    found: dict[str, Document] = {}
    tags: set[str] = set()
    for document in documents:
        found.setdefault(locate(document), document)
        if not document.draft:
            tags.update(addresses.locate_tag(make_slug(tag)) for tag in document.tags)
    forms = (addresses.FEED, addresses.FEED_JSON)
    feeds = {addresses.locate_feed(tag, form) for tag in tags for form in forms}
    published = sorted(files)
    return Ground(
        documents=found,
        paths={document.path: address for address, document in found.items()},
        slugs={document.slug: address for address, document in found.items()},
        aliases={alias.path: at for at, each in found.items() for alias in each.aliases},
        others=_FIXED | EDGE | tags | feeds | frozenset(published),
        files={file.casefold(): file for file in published},
    )


def locate(document: Document) -> str:
    """Return the address of a document."""
    return addresses.locate_document(document.kind, document.slug)
