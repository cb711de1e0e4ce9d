"""Checks documents against each other: addresses given twice, and broken links.

This module works on facts alone, so it costs little and runs at every build.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from heapq import merge
from itertools import islice
from urllib.parse import unquote, urljoin, urlsplit

from site_build.addresses import SourceRules
from site_build.checks.facts import (
    EDGE_PAGES,
    Facts,
    Reference,
    UrlMap,
    find_source,
    is_of_edge,
    map_urls,
    resolve_source,
)
from site_build.errors import Diagnostic
from site_build.site import Document
from site_build.text import fold, make_slug, shorten

_MOST_COMPARED = 200
"""The most anchors or slugs that are compared with a misspelt one."""

_MAX_LENGTH_DIFFERENCE = 3
"""Characters by which a misspelt slug may be longer or shorter."""

_RULES = SourceRules()


def find_repeated_slugs(documents: Iterable[Document]) -> list[Diagnostic]:
    """Report every document that shares its address or slug with others, and name these."""
    sharing: dict[str, list[Document]] = defaultdict(list)
    slugs: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        sharing[fold(document.address)].append(document)
        if document.kind == "post":
            slugs[fold(document.slug)].append(document)
    # The API, feeds and cards name a post by its slug, whatever the address of its page.
    message = "another post has this slug, which names it in feeds and in the API; change one"
    findings = [
        Diagnostic(each.path, *each.slug_at, "error", message)
        for group in slugs.values()
        if len({fold(each.address) for each in group}) > 1
        for each in group
    ]
    for group in sharing.values():
        for each in group if len(group) > 1 else ():
            (path, address), *rest = sorted(
                (other.path, other.address) for other in group if other is not each
            )
            owner = f"{path} and {len(rest)} more" if rest else path
            does = f"which some disks cannot tell from /{address} of {owner}"
            does = f"as {owner} does" if address == each.address else does
            message = f"the slug gives the address /{each.address}, {does}; change one of them"
            findings.append(Diagnostic(each.path, *each.slug_at, "error", message))
    return findings


def _find_taken_addresses(documents: Iterable[Document], urls: UrlMap) -> list[Diagnostic]:
    """Report every document whose address belongs to the edge, or to another file of the build."""
    return [
        Diagnostic(
            each.path,
            *each.slug_at,
            "error",
            f"the slug gives the address /{each.address}, where the "
            f"{'site' if each.address.rstrip('/') in urls.others - EDGE_PAGES else 'edge'} has a "
            "page of its own; choose another",
        )
        for each in documents
        if is_of_edge(each.address)
        or each.address.rstrip("/") in EDGE_PAGES
        or each.address.rstrip("/") in urls.others
    ]


def _find_bad_aliases(documents: Iterable[Document], urls: UrlMap) -> Iterator[Diagnostic]:
    """Report every alias that is the address of something else, or that two documents have."""
    by_alias: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        for path in {alias.path for alias in document.aliases}:
            by_alias[path].append(document)
    for document in documents:
        for alias in document.aliases:
            path = urls.canonical(alias.path)
            known = (urls.others, urls.documents, by_alias)
            above = (path[:at] for at, sign in enumerate(path) if sign == "/")
            file = next((e for e in above if any(e in each for each in known)), "")
            others = sorted(each.path for each in by_alias[alias.path] if each is not document)
            if owner := urls.documents.get(path):
                what = "this file itself" if owner is document else owner.path
                message = f"the alias is the address of {what}; take it out"
            elif urls.answers(path) or is_of_edge(path) or is_of_edge(path.rstrip("/")):
                message = "the alias is an address of the site itself; take it out"
            elif file:
                message = f"the alias needs a folder where the file /{file} is; take it out"
            elif others:
                message = f"the alias is given by {others[0]} too; keep one of them"
            else:
                continue
            yield Diagnostic(document.path, alias.line, alias.column, "error", message)


def _find_conflicts(
    documents: Sequence[Document], files: Collection[str], rules: SourceRules
) -> tuple[UrlMap, list[Diagnostic]]:
    """Return the map of addresses, and the findings about slugs and aliases that clash."""
    urls = map_urls(documents, files, rules)
    return urls, [
        *find_repeated_slugs(documents),
        *_find_taken_addresses(documents, urls),
        *_find_bad_aliases(documents, urls),
    ]


def _find_similar_series(documents: Iterable[Document]) -> Iterator[Diagnostic]:
    """Report names of series that differ from a more frequent one only in blanks and signs."""
    spelled: dict[str, dict[str, list[Document]]] = defaultdict(lambda: defaultdict(list))
    for document in documents:
        if slug := make_slug(document.series):
            spelled[slug][document.series.casefold()].append(document)
    for names in spelled.values():
        first, *others = sorted(names.values(), key=lambda group: (-len(group), group[0].path))
        message = f"`series` is nearly {shorten(first[0].series)!r}; spell both the same"
        for document in (each for group in others for each in group):
            yield Diagnostic(document.path, *document.series_at, "warning", message)


def find_displaced(documents: Iterable[Document], kept: Mapping[str, str]) -> set[str]:
    """Return the paths of documents whose address, slug or alias another document keeps.

    `kept` has digests by path. A document with the digest in `kept` takes precedence over one with
    another digest, and that over one that `kept` lacks; drafts come last.
    """

    def rank(document: Document) -> tuple[bool, bool, bool, str]:
        return (
            document.draft,
            kept.get(document.path) != document.digest,
            document.path not in kept,
            document.path,
        )

    displaced, taken = set(), set[tuple[str, str]]()
    for document in sorted(documents, key=rank):
        slug = ("slug", fold(document.slug)) if document.kind == "post" else ("", document.path)
        names = {("alias", alias.path) for alias in document.aliases}
        names |= {("address", fold(document.address)), slug}
        if names & taken:
            displaced.add(document.path)
        else:
            taken |= names
    return displaced


class CrossCheck:
    """Checks documents against each other, and follows their links as a browser would.

    Findings about the links of a document are kept while all addresses and anchors are the same.
    """

    def __init__(self, rules: SourceRules = _RULES) -> None:
        self._rules = rules
        self._conflict_inputs: object = None
        self._link_inputs: object = None
        self._link_findings: dict[str, tuple[Facts, list[Diagnostic]]] = {}

    def find_conflicts(
        self, documents: Sequence[Document], files: Collection[str]
    ) -> tuple[Diagnostic, ...]:
        """Return findings about slugs and aliases whose addresses are taken.

        A finding that only drafts cause is a warning. The result is kept, since a build calls this
        twice for the same documents.
        """
        if (documents, files) != self._conflict_inputs:
            self._conflict_inputs = documents, files
            self._urls, found = _find_conflicts(documents, files, self._rules)
            if found and (public := [each for each in documents if not each.draft]) != documents:
                serious = {each[:3] for each in _find_conflicts(public, files, self._rules)[1]}
                found = [e if e[:3] in serious else e._replace(severity="warning") for e in found]
            self._conflicts = tuple(found)
        return self._conflicts

    def check(  # noqa: PLR0913  all that decides what readers see
        self,
        documents: Sequence[Document],
        facts: Mapping[str, Facts],
        files: Collection[str],
        now: datetime,
        unread: Collection[str] = (),
        *,
        only: str = "",
    ) -> list[Diagnostic]:
        """Return every finding about texts, the notes of their facts included, sorted.

        `facts` are by path; `files` are published ones, such as `images/plan.png`; `now` (UTC)
        decides what readers see. `unread` are paths of files that could not be parsed: a missing
        page whose slug is in such a path is not reported, as it may come from that file. With
        `only`, the path of a document, the links of the others are not followed.
        """
        findings = [*self.find_conflicts(documents, files), *_find_similar_series(documents)]
        urls = self._urls
        self._near_slugs = NearSlugs(
            slug
            for slug, at in urls.slugs.items()
            if not (urls.documents[at].draft or urls.documents[at].hidden)
        )
        self._facts, self._now, self._unread = facts, now, "\n".join(sorted(unread)).casefold()
        basis = (
            (urls.others, urls.files, self._unread),
            [
                (
                    each.path,
                    each.address,
                    each.slug,
                    each.aliases,
                    facts[each.path].anchors,
                    each.draft,
                    each.hidden,
                    each.published,
                    each.published > now,
                    each.tags,
                    each.category,
                    each.author,
                )
                for each in documents
            ],
        )
        if basis != self._link_inputs:
            self._link_inputs, self._link_findings = basis, {}
        for document in documents:
            if only not in {"", document.path}:
                continue
            own = facts[document.path]
            known, found = self._link_findings.get(document.path, (None, []))
            if known is not own:
                found = [
                    Diagnostic(document.path, each.line, each.column, "warning", message)
                    for each in own.references
                    if (message := self._find_fault(document, each))
                ]
                self._link_findings[document.path] = own, found
            findings += [*own.notes, *found]
        return sorted(findings)

    def _find_fault(self, document: Document, reference: Reference) -> str | None:
        """Return the fault of a reference, with its fix, or None."""
        address = resolve_source(document.path, reference, self._urls.paths)
        address, own = address or reference.address, f"/{document.address}"
        try:
            # Resolve the address as a browser does on this document's page.
            parts = urlsplit(own + address if address.startswith("#") else urljoin(own, address))
        except ValueError:
            return f"{_quote(reference.address)} is no address; fix it"
        path = self._urls.canonical(unquote(parts.path).removeprefix("/"))
        target = self._urls.documents.get(path)
        if target:
            return self._explain_unpublished(document, target) or self._explain_anchor(
                document, target, parts.fragment
            )
        if present := self._urls.aliases.get(path):
            address = _quote(reference.address)
            return f"the link {address} leads to a former address; write /{present}"
        last = path.rstrip("/").rpartition("/")[2].removesuffix(".html").casefold()
        # A document that could not be parsed might have such an address.
        form = r"(?:[^/]+/)+|(?:[^/]+/)*[^/.]+(?:\.html)?"
        is_unread = last and last in self._unread and re.fullmatch(form, path)
        if self._urls.answers(path) or is_unread:
            return None
        what = "missing image or file:" if reference.shown else "broken link: no page at"
        return f"{what} {_quote(reference.address)}; {self._suggest_fix(document, reference, path)}"

    def _suggest_fix(self, document: Document, reference: Reference, path: str) -> str:
        """Return the fix: the address of the file or post that the author may have meant."""
        # If the reference names a source file correctly, suggest that file's address.
        source = find_source(document.path, reference.address)
        if known := self._urls.paths.get(source, source if source in self._urls.others else ""):
            return f"write /{known}"
        # If an address of another site lacks its scheme, add it.
        if re.match(r"(?:[a-z0-9-]+\.)+[a-z]{2,}/", reference.address):
            return f"write https://{reference.address}"
        if re.fullmatch(r"[^\s@/:]+@(?:[\w-]+\.)+[a-z]{2,}", reference.address):
            return f"write mailto:{reference.address}"
        # The file may be in another folder or below the root, or differ by a typo or by capitals.
        is_file = reference.shown or re.search(r"\.(?!html?$|md$)\w{1,5}$", path)
        files = self._urls.files if is_file else {}
        written = find_source("", reference.address.replace("\\", "/")).casefold()
        near = (
            [file for file in files if file.rpartition("/")[2] == written.rpartition("/")[2]]
            or get_close_matches(path.casefold(), files, n=1, cutoff=0.8)
            or get_close_matches(written, files, n=1, cutoff=0.8)
        )
        if near:
            return f"did you mean /{files[near[0]]}?"
        last = re.sub(r"\.\w{1,5}$", "", path.rstrip("/").rpartition("/")[2])
        slug = make_slug(last)
        meant = self._urls.slugs.get(last) or self._urls.slugs.get(slug)
        # Addresses of tags begin with `tag`, here and in Pelican: no post was meant.
        if not meant and not path.startswith("tag"):
            meant = self._urls.slugs.get(_find_near(slug, self._near_slugs.find(slug)) or "")
        return f"did you mean /{meant}?" if meant else "fix the address, or remove it"

    def _explain_unpublished(self, document: Document, target: Document) -> str | None:
        """Return the reason why readers of this document will not find `target`, or None."""
        if document.draft:
            return None
        if target.draft:
            return f"the link leads to a draft, {target.path}; publish it, or take the link away"
        if target.published > max(self._now, document.published):
            return (
                f"the link leads to {target.path}, which appears on "
                f"{target.published:%Y-%m-%d %H:%M} UTC; wait, or unlink"
            )
        return None

    def _explain_anchor(self, document: Document, target: Document, fragment: str) -> str | None:
        anchors = self._facts[target.path].anchors
        name = unquote(fragment)
        if not name or name.casefold() == "top" or name.startswith(":~:") or name in anchors:
            return None
        where = "this page" if target.path == document.path else f"/{target.address}"
        near = _find_near(name, tuple(sorted(anchors)[:_MOST_COMPARED]))
        fix = f"did you mean #{near}?" if near else "name a heading's anchor, or take it away"
        return f"nothing on {where} is named {_quote('#' + name)}; {fix}"


class NearSlugs:
    """Slugs by beginning and end: comparing every link with every slug would be quadratic."""

    def __init__(self, slugs: Iterable[str]) -> None:
        self._ends: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        for entry in enumerate(slugs):
            self._ends["begins", entry[1][:3]].append(entry)
            self._ends["ends", entry[1][-4:]].append(entry)

    def find(self, slug: str) -> tuple[str, ...]:
        """Return up to 200 slugs, in order, that begin or end like `slug` and are about as long."""
        found = merge(*(self._ends.get(e, ()) for e in (("begins", slug[:3]), ("ends", slug[-4:]))))
        likely = (each for _, each in found if abs(len(each) - len(slug)) <= _MAX_LENGTH_DIFFERENCE)
        return tuple(islice(dict.fromkeys(islice(likely, 2 * _MOST_COMPARED)), _MOST_COMPARED))


@lru_cache(4_096)  # Several documents often have the same misspelt name.
def _find_near(name: str, candidates: tuple[str, ...]) -> str | None:
    return next(iter(get_close_matches(name, candidates, n=1, cutoff=0.75)), None)


def _quote(address: str) -> str:
    return f"`{shorten(address, 120)}`"
