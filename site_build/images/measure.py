"""Looks at one picture: how large it is, what is wrong with it, and what its author should fix.

Whatever the bytes, it answers; a picture that would fill the memory is never unpacked.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from PIL import ExifTags, Image, UnidentifiedImageError
from selectolax.lexbor import LexborHTMLParser

from site_build.images.encode import LONGEST_SIDE, Picture
from site_build.text import shorten

UNSHOWN = (".heic", ".heif", ".tif", ".tiff")
"""Suffixes of pictures that most browsers do not show; their metadata cannot be removed here."""
_UNSHOWN_FAULT = (
    "is of a kind that most browsers do not show, and is not published; save it as JPEG or PNG"
)
SUFFIXES = frozenset(
    {".apng", ".avif", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png", ".svg", ".webp", *UNSHOWN}
)

LARGEST_FILE = 40_000_000
"""Bytes; no camera's picture for a page is larger."""
MOST_PIXELS = 60_000_000
"""Four bytes each when unpacked, and several copies of that while forms are made."""

HEAVY = 2_000_000
"""Bytes above which a picture asks its author to save it smaller."""

_FORMATS = ("AVIF", "GIF", "JPEG", "PNG", "WEBP")
"""What is opened, by the library's names."""
_SEVERAL = "MPO"
"""What the library calls a JPEG with further pictures behind it, which no browser shows."""
_LYING = range(5, 9)
"""Values of EXIF's orientation for pictures that lie on their side."""
_DRAWING_HEAD = 65_536
"""Bytes of a drawing in which its measures stand."""
_NOTED_DRAWING = "the drawing has `<metadata>`, which is published; take it out, or save plain SVG"
_LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)(?:px)?\s*")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a look at a file tells."""

    picture: Picture | None
    """None where there is none to be seen, or its measures are not told."""
    fault: str = ""
    """Why no page can show it, and the fix."""
    remarks: tuple[str, ...] = ()
    """What should be fixed, each with how."""
    is_read: bool = True
    """Whether the disk gave the file; if not, it may do so the next time."""


MeasuredImages = Mapping[str, Measured]
"""What was measured, by path within the content folder."""


class _FaultError(Exception):
    """No page can show the picture; the message says why and what to do."""


def is_picture(path: str) -> bool:
    """Return whether a file is a picture by its name."""
    return PurePosixPath(path).suffix.lower() in SUFFIXES


def measure(path: str, data: bytes) -> Measured:
    """Return the measures of the picture at `path`; never raises, whatever the bytes."""
    digest = hashlib.sha256(data).hexdigest()
    suffix = PurePosixPath(path).suffix.lower()
    if suffix == ".svg":
        return _measure_drawing(path, data, digest)
    if suffix in UNSHOWN:
        return Measured(None, _UNSHOWN_FAULT)
    try:
        return _measure_raster(path, data, digest)
    except _FaultError as fault:
        return Measured(None, str(fault))
    except Exception as refusal:  # noqa: BLE001 - decoders raise whatever they stumble over
        why = shorten(str(refusal).partition("<")[0].strip(" .") or type(refusal).__name__)
        return Measured(None, f"cannot be read ({why}); save it anew")


def _measure_raster(path: str, data: bytes, digest: str) -> Measured:
    if len(data) > LARGEST_FILE:
        raise _FaultError(f"has more than {LARGEST_FILE // 1_000_000} MB; save it smaller")
    with _open(data) as image:
        kind = "jpeg" if image.format == _SEVERAL else str(image.format).lower()
        image.load()
        moves = getattr(image, "is_animated", False) and image.format != _SEVERAL
        lies = image.getexif().get(ExifTags.Base.Orientation) in _LYING
        width, height = (image.height, image.width) if lies else image.size
    share = min(1, LONGEST_SIDE / max(width, height))
    size = (max(1, round(width * share)), max(1, round(height * share)), len(data))
    still = not moves and kind != "gif"
    picture = Picture(path, digest, kind, *size, still, moves, is_reduced=share < 1)
    if len(data) <= HEAVY or picture.is_reduced:
        return Measured(picture)
    weight = f"{len(data) / 1e6:.1f} MB; save it below {HEAVY // 1_000_000}"
    return Measured(picture, remarks=(f"the picture weighs {weight}",))


def _open(data: bytes) -> Image.Image:
    try:
        with warnings.catch_warnings():
            # What is too large is told below, by our own measure.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=_FORMATS)
    except Image.DecompressionBombError:
        raise _FaultError(_explain_size("far too many")) from None
    except UnidentifiedImageError:
        raise _FaultError("is no picture that can be read; save it anew") from None
    if image.width * image.height > MOST_PIXELS:
        raise _FaultError(_explain_size(f"{image.width:,} × {image.height:,}"))  # noqa: RUF001
    return image


def _explain_size(count: str) -> str:
    return f"has {count} pixels, which no build unpacks; save it with fewer than {MOST_PIXELS:,}"


def _measure_drawing(path: str, data: bytes, digest: str) -> Measured:
    """Return the measures of an SVG, where it tells them."""
    head = data[:_DRAWING_HEAD].decode(errors="replace")
    root = LexborHTMLParser(head).css_first("svg")
    if root is None:
        return Measured(None)
    notes = [each for each in root.css("metadata") if each.text().strip()]
    remarks = (_NOTED_DRAWING,) if notes else ()
    told = {name.lower(): value or "" for name, value in root.attributes.items()}
    width, height = _read_length(told.get("width", "")), _read_length(told.get("height", ""))
    if not (width and height):
        box = [_read_length(part) for part in re.split(r"[\s,]+", told.get("viewbox", "").strip())]
        width, height = box[2:4] if len(box) == 4 else (0, 0)  # noqa: PLR2004 - x, y, width, height
    if not (width and height):
        return Measured(None, remarks=remarks)
    size = (round(width), round(height), len(data))
    return Measured(Picture(path, digest, "svg", *size, still=False), remarks=remarks)


def _read_length(text: str) -> float:
    """Return a length in pixels; 0 for what is none, or depends on the page."""
    found = _LENGTH.fullmatch(text)
    return float(found[1]) if found else 0.0
