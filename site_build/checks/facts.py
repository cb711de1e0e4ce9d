"""What one document says about itself, free of its path: the part of a check worth keeping."""

from typing import Literal, NamedTuple


class Note(NamedTuple):
    """A finding that does not know its file.

    Of these and of references there are tens of thousands, so they are bare tuples.
    """

    line: int
    """From 1, in the source file."""
    column: int
    """From 1, in code points."""
    severity: Literal["error", "warning"]
    message: str


class Reference(NamedTuple):
    """An address within the site that the document points at or shows."""

    line: int
    column: int
    address: str
    """As the converter hands it to a browser: percent-encoded or not, with query and fragment."""
    shown: bool
    """True for what is part of the page, such as an image; False for a link."""


class Facts(NamedTuple):
    """All that a check of the whole content needs to know of one document."""

    notes: tuple[Note, ...]
    references: tuple[Reference, ...]
    """In the order of the page; addresses of other sites are left out."""
    anchors: frozenset[str]
    """What a fragment may name on the document's page."""
