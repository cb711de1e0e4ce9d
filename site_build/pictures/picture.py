"""A picture of the content folder as values: how large it is, and in which forms it is published.

A form's address carries the digest of the picture and of the way forms are made, so that it says
the same for ever. It opens nothing.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Literal

from PIL import features

from site_build import addresses
from site_build.slug import make_slug

WIDTHS = (480, 960, 1440)
"""Pixels: a phone's column, the widest column, and that on a screen of two pixels for each."""
WIDEST = 1920
"""Pixels of the largest form."""
LONGEST_SIDE = 2560
"""Pixels of a published original: a large screen shows no more."""

_NEAR = 0.85
"""A form this close to the largest would save nobody anything."""
_WORTHWHILE = 8_000
"""Bytes below which a picture is published as it is and no more."""
_DIGITS = 12

FormKind = Literal["avif", "webp"]
KINDS: tuple[FormKind, ...] = ("avif", "webp")
"""Best first: a browser takes the first that it knows."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it is published: turned upright, its longer side within the bound."""

    path: str
    """Relative to the content folder and to the site alike: `images/shelf.jpg`."""
    digest: str
    """SHA-256 of the file, hexadecimal."""
    kind: str
    """`jpeg`, `png`, `webp`, `avif`, `gif` or `svg`."""
    width: int
    height: int
    size: int
    """Bytes."""
    still: bool
    """False for what moves or is drawn by lines: no forms are made of it."""
    moves: bool = False
    is_reduced: bool = False
    """True where the file is larger than what is published."""

    @property
    def reduced_key(self) -> bytes:
        """Stand for the reduced original: the file, and the way originals are encoded."""
        return f"original {self.path} {_digest(self)}".encode()


@dataclass(frozen=True, slots=True)
class Form:
    """One file that is made of a picture."""

    path: str
    kind: FormKind
    width: int
    height: int


@cache
def list_forms(picture: Picture) -> tuple[Form, ...]:
    """Return the forms that are made of a picture, by kind and width; none for most drawings."""
    if not picture.still or picture.size < _WORTHWHILE:
        return ()
    folder = f"{addresses.PICTURES}{_digest(picture)}"
    name = make_slug(PurePosixPath(picture.path).stem) or "picture"
    return tuple(
        Form(f"{folder}/{name}-{width}.{kind}", kind, width, scale_height(picture, width))
        for kind in KINDS
        for width in _list_widths(picture.width)
    )


def scale_height(picture: Picture, width: int) -> int:
    """Return the height of the picture at that width."""
    return max(1, round(picture.height * width / picture.width))


def _list_widths(own: int) -> Iterator[int]:
    largest = min(own, WIDEST)
    yield from (width for width in WIDTHS if width < largest * _NEAR)
    yield largest


def _digest(picture: Picture) -> str:
    return hashlib.sha256(f"{picture.digest} {_fingerprint()}".encode()).hexdigest()[:_DIGITS]


@cache
def _fingerprint() -> str:
    """Return the digest of the way forms are made: the code and the libraries."""
    folder = Path(__file__).parent
    digest = hashlib.sha256(version("pillow").encode())
    for codec in KINDS:
        digest.update(f"{codec} {features.version(codec)}\n".encode())
    for name in (Path(__file__).name, "encode.py"):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()
