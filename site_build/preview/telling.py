"""What a browser is told of the state: errors in full, and warnings about the page it shows."""

from pathlib import Path
from typing import TypedDict

from site_build.preview.stage import State, Trouble, find_document, read_finding


class _Told(TypedDict):
    place: str
    message: str


class Telling(TypedDict):
    """The data of an event."""

    version: str
    errors: list[_Told]
    warnings: list[_Told]
    """About the page's own source file."""
    others: int
    """Warnings about other files."""


def tell_state(state: State, page: str, content: Path) -> Telling:
    """Return what to tell a browser that shows the file `page` of the site."""
    document = find_document(state, page)
    own = [each for each in state.findings if document and each.path == document.path]
    return Telling(
        version=state.version,
        errors=[_word(each) for each in list_troubles(state, page, content)],
        warnings=[_word(read_finding(content, each)) for each in own],
        others=len(state.findings) - len(own),
    )


def list_troubles(state: State, page: str, content: Path) -> list[Trouble]:
    """Return what has to be mended before the site, or the file `page` of it, can be made."""
    found = [state.theme, state.faults.get(page)]
    return [
        *(trouble for trouble in found if trouble),
        *(read_finding(content, finding) for finding in state.errors),
    ]


def _word(trouble: Trouble) -> _Told:
    return _Told(place=trouble.place, message=trouble.message)
