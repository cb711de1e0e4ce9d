"""Facts for checks: about single documents, the addresses of the site, and pictures.

This module knows documents and addresses, but neither HTML nor the checks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import unquote, urljoin

from edge_api.schema import paths
from site_build import addresses
from site_build.addresses import CONVERTED_SUFFIXES, MARKDOWN_SUFFIXES, SourceRules
from site_build.errors import Diagnostic
from site_build.images.responsive import MeasuredImages, resolve
from site_build.site import Document
from site_build.text import make_slug


class Reference(NamedTuple):
    """An address within the site that a document uses; a bare tuple, as there are thousands."""

    line: int
    column: int
    address: str
    """The address in the converted HTML: percent-encoded or not, with query and fragment."""
    shown: bool
    """Whether it is part of the page, such as an image; False for a link."""


class Facts(NamedTuple):
    """All that a check of the whole content needs to know of one document."""

    notes: tuple[Diagnostic, ...]
    references: tuple[Reference, ...]
    """Addresses in the order of the page, without those of other sites."""
    anchors: frozenset[str]
    """Names on the document's page that a fragment may refer to."""
    external: tuple[str, ...] = ()
    """Addresses with a scheme or host, even if this is the site's own."""


EDGE_PAGES = frozenset(path.removeprefix("/") for path in paths.EDGE_PAGES)
"""Addresses of pages that the edge makes: no document can be read there."""
_LINKED_PAGES = EDGE_PAGES.union(path.removeprefix("/") for path in paths.NEWSLETTER_PAGES)

_FIXED = frozenset(
    {
        addresses.HOME,
        addresses.CONTACT_THANKS,
        addresses.MISSING,
        addresses.FEED,
        addresses.FEED_JSON,
        addresses.SITEMAP,
        addresses.OPENSEARCH,
        addresses.ROBOTS,
        addresses.LLMS,
        addresses.LLMS_FULL,
        addresses.AUTH,
        addresses.SITE_CARD,
    }
)
"""Addresses at which every build has a file."""
_SOURCE_SUFFIX = re.compile(rf"(?:{'|'.join(map(re.escape, MARKDOWN_SUFFIXES))})(?=[?#]|$)")
_HEIC = re.compile(rf"(?:{'|'.join(map(re.escape, CONVERTED_SUFFIXES))})(?=[?#]|$)", re.IGNORECASE)
_EDGE_FOLDERS = tuple(path.removeprefix("/") for path in paths.EDGE_FOLDERS)
"""Folders of the edge, in which the build makes only a few files."""
_UNCHECKED_PREFIXES = (*_EDGE_FOLDERS, addresses.THEME, addresses.PICTURES, addresses.CARDS)
"""Prefixes of addresses that the edge answers, or whose files get computed names in a build."""


@dataclass(frozen=True, slots=True)
class UrlMap:
    """Every address that the content gives, as paths without their leading slash."""

    documents: Mapping[str, Document]
    """Documents by address."""
    paths: Mapping[str, str]
    """Addresses of documents by their paths in the content folder."""
    slugs: Mapping[str, str]
    """Addresses of documents by their slugs."""
    aliases: Mapping[str, str]
    """Addresses of documents by their former addresses."""
    others: frozenset[str]
    """Addresses of lists and files."""
    files: Mapping[str, str]
    """Paths on the site of published files, by these paths in lower case."""

    def answers(self, path: str) -> bool:
        """Return whether a list, a file or the edge answers at `path`, or may."""
        return path in self.others or path.startswith(_UNCHECKED_PREFIXES)

    def canonical(self, path: str) -> str:
        """Return the address that `path` leads to, without `index.html` or `.md` or page number."""
        path = re.sub(r"(?:^|(?<=/))index\.(?:html|md)$", "", normalize("NFC", path))
        known = (self.documents, self.others, self.aliases)
        if not any(path in each for each in known):
            folder = f"{path}/"
            if any(folder in each for each in known):
                return folder
        return path if path in known[0] else re.sub(r"page/[1-9][0-9]*/$", "", path)


def map_link_targets(
    documents: Iterable[Document], files: Iterable[str], rules: SourceRules
) -> dict[str, str]:
    """Return addresses by path of the source file, and by names in links, such as `{tag}ink`."""
    where, targets = rules.addresses, {"{index}": "", **rules.list_paths(tuple(files))}
    for document in documents:
        targets[document.path] = document.address
        for kind, names in (
            ("tag", document.tags),
            ("category", (document.category,)),
            ("author", (*map(str.strip, document.author.split(";")), rules.author)),
        ):
            for name in filter(None, names if getattr(where, kind) else ()):
                if (target := f"{{{kind}}}{name}") not in targets:
                    targets[target] = where.locate(kind, make_slug(name))
    return targets


def is_of_edge(path: str) -> bool:
    """Return whether the edge answers at `path` where the build has made nothing."""
    page = path.removesuffix("index.md")
    return page in _LINKED_PAGES or f"{page}/" in EDGE_PAGES or page.startswith(_EDGE_FOLDERS)


def map_urls(documents: Iterable[Document], files: Iterable[str], rules: SourceRules) -> UrlMap:
    """Return the addresses that `documents` and the published `files` give."""
    where, sources = rules.addresses, tuple(files)
    found: dict[str, Document] = {}
    for document in documents:
        found.setdefault(document.address, document)
    public = map_link_targets((e for e in found.values() if not (e.draft or e.hidden)), (), rules)
    feeds = {
        addresses.locate_feed(address, form)
        for name, address in public.items()
        if name.startswith("{tag}")
        for form in (addresses.FEED, addresses.FEED_JSON)
    }
    groups = {address for name, address in public.items() if name.startswith("{")}
    published = sorted(rules.list_paths(sources).values())
    return UrlMap(
        documents=found,
        paths=map_link_targets(found.values(), sources, rules),
        slugs={document.slug: address for address, document in found.items()},
        aliases={alias.path: at for at, each in found.items() for alias in each.aliases},
        others=_FIXED.union(
            EDGE_PAGES, feeds, groups, published, where.list_overviews(), where.lists
        ),
        files={file.casefold(): file for file in published},
    )


@lru_cache(maxsize=100_000)  # several passes look up the same
def find_source(base: str, address: str) -> str:
    """Return the source file that an address means, written in the source file `base`.

    Both are relative to the content folder. Such links work on code hosts too.
    """
    plain = unquote(re.split("[?#]", address, maxsplit=1)[0])
    plain = re.sub(r"^\{(?:filename|static|attach)\}", "", plain)
    return urljoin(f"/{base}", plain).removeprefix("/")


def resolve_source(base: str, reference: Reference, paths: Mapping[str, str]) -> str | None:
    """Return the address on the site of the source file that a link in `base` names, or None.

    `paths` has addresses by source file; pictures and other files are among these.
    """
    address = re.sub(r"^\|(\w+)\|", r"{\1}", reference.address)
    # The site has nothing at the address of a Markdown or HEIC file, so a link names the source.
    is_named = (_SOURCE_SUFFIX.search(address) and not reference.shown) or _HEIC.search(address)
    if (named := paths.get(unquote(address)) if address.startswith("{") else None) is not None:
        return f"/{named}"
    if address.startswith(("/", "#", "?")) and not is_named:
        return None
    source = find_source(base, address)
    # A relative link to a file is followed from the source, as on a code host.
    is_file = not address.startswith(("/", "#", "?")) and not source.endswith(MARKDOWN_SUFFIXES)
    is_source = is_named or is_file or address.startswith(("{filename}", "{static}", "{attach}"))
    if not is_source or source not in paths:
        return None
    end = re.search("[?#].*", address, re.DOTALL)
    return f"/{paths[source]}{end[0] if end else ''}"


def link_sources(document: Document, facts: Facts, paths: Mapping[str, str]) -> dict[str, str]:
    """Return the address for each link of a document to a source file."""
    return {
        reference.address: address
        for reference in facts.references
        if (address := resolve_source(document.path, reference, paths))
    }


def list_shown_pictures(
    documents: Iterable[Document],
    facts: Mapping[str, Facts],
    measured: MeasuredImages,
    paths: Mapping[str, str],
) -> dict[str, tuple[str, ...]]:
    """Return the paths of the pictures that each document shows, by the document's path."""
    used = {e.path: _list_used(e, facts[e.path], paths, only_shown=True) for e in documents}
    sources = {paths.get(path, path): path for path in measured}
    shown = {
        at: tuple(dict.fromkeys(sources[path] for path, _ in found if path in sources))
        for at, found in used.items()
    }
    return {path: pictures for path, pictures in shown.items() if pictures}


def check_pictures(
    documents: Sequence[Document],
    facts: Mapping[str, Facts],
    measured: MeasuredImages,
    paths: Mapping[str, str],
) -> list[Diagnostic]:
    """Return every finding about pictures, sorted.

    A picture that cannot be shown is an error wherever a document shows it, and a warning at its
    file where none does; other remarks on a picture are reported at its file.
    """
    used: set[str] = set()
    findings = []
    sources = {paths.get(path, path): path for path in measured}
    for document in documents:
        for public, reference in _list_used(document, facts[document.path], paths, only_shown=True):
            if public not in sources:
                continue
            used.add(path := sources[public])
            if fault := measured[path].fault:
                findings.append(
                    Diagnostic(
                        document.path, *reference[:2], "error", f"the picture {path} {fault}"
                    )
                )
    for path, each in measured.items():
        remarks = list(each.remarks)
        if each.fault and path not in used:
            remarks.append(f"the picture {each.fault}")
        findings += [Diagnostic(path, 1, 1, "warning", remark) for remark in remarks]
    return sorted(findings)


def list_uses(
    documents: Iterable[Document], facts: Mapping[str, Facts], paths: Mapping[str, str]
) -> set[str]:
    """Return every path of the site that documents show or link."""
    return {path for e in documents for path, _ in _list_used(e, facts[e.path], paths)}


def _list_used(
    document: Document, facts: Facts, paths: Mapping[str, str], *, only_shown: bool = False
) -> Iterator[tuple[str, Reference]]:
    """Yield the path on the site that each reference leads to, and the reference."""
    for reference in (e for e in facts.references if e.shown or not only_shown):
        written = resolve_source(document.path, reference, paths) or reference.address
        yield resolve(document.address, written), reference
