"""Looks at one picture: how large it is, what is wrong with it, and what its author should mend.

Whatever the bytes, it answers; a picture that would fill the memory is never unpacked.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from PIL import ExifTags, Image, UnidentifiedImageError
from selectolax.lexbor import LexborHTMLParser

from site_build.pictures.picture import Picture
from site_build.text import shorten

SUFFIXES = frozenset({".avif", ".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp"})

LARGEST_FILE = 40_000_000
"""Bytes; no camera's picture for a page is larger."""
MOST_PIXELS = 60_000_000
"""Four bytes each when unpacked, and several copies of that while forms are made."""

HEAVY = 2_000_000
"""Bytes above which a picture asks its author to save it smaller."""
WIDE = 3_840
"""Pixels: twice the widest form."""

_FORMATS = ("AVIF", "GIF", "JPEG", "PNG", "WEBP")
"""What is opened, by the library's names."""
_SEVERAL = "MPO"
"""What the library calls a JPEG with further pictures behind it, which no browser shows."""
_LYING = range(5, 9)
"""Values of EXIF's orientation for pictures that lie on their side."""
_DRAWING_HEAD = 65_536
"""Bytes of a drawing in which its measures stand."""
_LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)(?:px)?\s*")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a look at a file tells."""

    picture: Picture | None
    """None where there is none to be seen, or its measures are not told."""
    fault: str = ""
    """Why no page can show it, and the mend."""
    remarks: tuple[str, ...] = ()
    """What should be mended, each with how."""


Album = Mapping[str, Measured]
"""What was measured, by path within the content folder."""


class _FaultError(Exception):
    """No page can show the picture; the message says why and what to do."""


def is_picture(path: str) -> bool:
    """Tell whether a file is a picture by its name."""
    return PurePosixPath(path).suffix.lower() in SUFFIXES


def measure(path: str, data: bytes) -> Measured:
    """Return the measures of the picture at `path`; never raises, whatever the bytes."""
    digest = hashlib.sha256(data).hexdigest()
    if path.lower().endswith(".svg"):
        return Measured(_measure_drawing(path, data, digest))
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
        exif = image.getexif()
        moves = getattr(image, "is_animated", False) and image.format != _SEVERAL
        lies = exif.get(ExifTags.Base.Orientation) in _LYING
        width, height = (image.height, image.width) if lies else image.size
        tells_place = bool(exif.get_ifd(ExifTags.IFD.GPSInfo))
    still = not moves and kind != "gif"
    picture = Picture(path, digest, kind, width, height, len(data), still)
    return Measured(picture, remarks=tuple(_list_remarks(picture, tells_place=tells_place)))


def _open(data: bytes) -> Image.Image:
    """Open a picture without unpacking it."""
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


def _list_remarks(picture: Picture, *, tells_place: bool) -> Iterator[str]:
    if tells_place:
        yield "the picture tells where it was taken; save it without its GPS data"
    if picture.size > HEAVY:
        yield f"the picture weighs {picture.size / 1e6:.1f} MB; save it below {HEAVY // 1_000_000}"
    if picture.width > WIDE:
        yield f"the picture is {picture.width:,} pixels wide; {WIDE:,} are more than enough"


def _measure_drawing(path: str, data: bytes, digest: str) -> Picture | None:
    """Return the measures of an SVG, where it tells them."""
    head = data[:_DRAWING_HEAD].decode(errors="replace")
    root = LexborHTMLParser(head).css_first("svg")
    if root is None:
        return None
    told = {name.lower(): value or "" for name, value in root.attributes.items()}
    width, height = _read_length(told.get("width", "")), _read_length(told.get("height", ""))
    if not (width and height):
        box = [_read_length(part) for part in re.split(r"[\s,]+", told.get("viewbox", "").strip())]
        width, height = box[2:4] if len(box) == 4 else (0, 0)  # noqa: PLR2004 - x, y, width, height
    if not (width and height):
        return None
    return Picture(path, digest, "svg", round(width), round(height), len(data), still=False)


def _read_length(text: str) -> float:
    """Return a length in pixels; 0 for what is none, or depends on the page."""
    found = _LENGTH.fullmatch(text)
    return float(found[1]) if found else 0.0
