"""What is wrong with the pictures that documents show, and which document shows which.

It works on facts and measures alone; the disk is for others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from site_build.checks.facts import Facts, Reference
from site_build.checks.ground import locate
from site_build.pictures.dress import resolve
from site_build.pictures.measure import Album
from site_build.post import Document, Finding


def list_shown(
    documents: Iterable[Document], facts: Mapping[str, Facts], album: Album
) -> dict[str, tuple[str, ...]]:
    """Return the paths of the pictures that each document shows, by the document's path."""
    shown = {
        document.path: tuple(
            dict.fromkeys(path for path, _ in _list_used(document, facts[document.path], album))
        )
        for document in documents
    }
    return {path: pictures for path, pictures in shown.items() if pictures}


def judge_pictures(
    documents: Sequence[Document], facts: Mapping[str, Facts], album: Album
) -> list[Finding]:
    """Return every finding about pictures, sorted.

    A picture that cannot be shown is an error wherever a document shows it, and a warning at its
    file where none does; what should be mended in a picture is told at its file.
    """
    used: set[str] = set()
    findings = []
    for document in documents:
        for path, reference in _list_used(document, facts[document.path], album):
            used.add(path)
            if fault := album[path].fault:
                message = f"the picture {path} {fault}"
                place = (reference.line, reference.column)
                findings.append(Finding(document.path, *place, "error", message))
    for path, measured in album.items():
        remarks = list(measured.remarks)
        if measured.fault and path not in used:
            remarks.append(f"the picture {measured.fault}")
        findings += [Finding(path, 1, 1, "warning", remark) for remark in remarks]
    return sorted(findings)


def _list_used(document: Document, facts: Facts, album: Album) -> Iterator[tuple[str, Reference]]:
    page = locate(document)
    for reference in facts.references:
        path = resolve(page, reference.address) if reference.shown else ""
        if path in album:
            yield path, reference
