"""Pictures and the lighter forms that they are offered in, and the bytes of these.

A published original keeps its own colours; it is encoded again only where it is too large, or an
AVIF.

One thread, whatever the library would take: the same picture gives the same bytes, and the build
has a process for each core already.
"""

import hashlib
import io
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Literal

import pi_heif
from PIL import Image, ImageCms, ImageOps, ImageSequence, features

from site_build import addresses
from site_build.cache import make_key
from site_build.errors import BuildError
from site_build.images.strip import strip_metadata
from site_build.text import make_slug

WIDTHS = (480, 720, 960, 1440)
"""Pixels: a phone's column at up to three device pixels a CSS pixel, and a wide one at two."""
WIDEST = 1920
"""Pixels of the largest form."""
LONGEST_SIDE = 2560
"""Pixels of a published original: a large screen shows no more."""

_LEAST_SIDE = 200
"""Pixels; places where people share links take no smaller picture."""
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
    """Relative to the content folder: `images/shelf.jpg`."""
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
    """True where the file is encoded anew: one that is too large, and every AVIF and HEIC."""

    @property
    def can_lead(self) -> bool:
        """Whether it can stand for a post elsewhere: still, and not tiny."""
        return self.still and min(self.width, self.height) >= _LEAST_SIDE

    @property
    def folder(self) -> str:
        """Where its forms stand; it changes with the file and with the way they are made."""
        return f"{addresses.PICTURES}{_digest(self)}"

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
    """Return the forms that are made of a picture, by width and kind; none for most drawings."""
    if not picture.still or picture.size < _WORTHWHILE:
        return ()
    name = make_slug(PurePosixPath(picture.path).stem) or "picture"
    largest = min(picture.width, WIDEST)
    widths = [*(width for width in WIDTHS if width < largest * _NEAR), largest]
    return tuple(
        Form(f"{picture.folder}/{name}-{width}.{kind}", kind, width, scale_height(picture, width))
        for width in widths
        for kind in KINDS
    )


def scale_height(picture: Picture, width: int) -> int:
    """Return the height of the picture at that width."""
    return max(1, round(picture.height * width / picture.width))


def _digest(picture: Picture) -> str:
    return hashlib.sha256(f"{picture.digest} {_fingerprint()}".encode()).hexdigest()[:_DIGITS]


@cache
def _fingerprint() -> str:
    """Return the digest of the way forms are made: the code and the libraries."""
    codecs = [features.version(codec) for codec in KINDS]
    libraries = version("pillow"), version("pi-heif")
    return make_key(libraries, codecs, Path(__file__).read_bytes()).hex()


_QUALITY = {"avif": {"jpeg": 60, "other": 68}, "webp": {"jpeg": 80, "other": 86}}
"""Drawings and screens show faults that photographs hide."""

_AVIF_SPEED = 9
"""Three times as quick as 8 and ten times as quick as 6, for hardly more bytes."""
_WEBP_METHOD = 2
"""Twice as quick as the usual 4, for a few percent of size: browsers without AVIF are few."""

_ORIGINAL: dict[str, dict[str, object]] = {
    "avif": {"quality": 80, "speed": _AVIF_SPEED, "max_threads": 1},
    "gif": {},
    "jpeg": {"quality": 90, "optimize": True, "progressive": True},
    "png": {},
    "webp": {"quality": 90, "method": _WEBP_METHOD},
}
"""How a reduced original is encoded: it may be looked at for its details."""
_TOLD = frozenset({"duration", "icc_profile", "loop"})
"""What a published original says of itself."""
_REDUCING_GAP = 2.0
"""Down to so many times the new size whole pixels are averaged: nobody sees the difference."""
_COLOURS = frozenset({"RGB", "RGBA", "CMYK", "L"})
"""Modes that colour profiles are made for."""


# One thread, as for the encoders. libheif turns a picture upright by itself.
pi_heif.register_heif_opener(decode_threads=1)


def encode(source: Path, picture: Picture, form: Form | None = None) -> bytes:
    """Return the bytes of a form of the picture in `source`, or of its reduced original.

    That is upright, has its colour profile and no other metadata; what moves still moves. Raises
    BuildError and OSError.
    """
    if form is None:
        return _encode_original(_unpack(source, picture), picture)
    image = _shrink(source, picture, (form.width, form.height))
    sort = "jpeg" if picture.kind == "jpeg" else "other"
    quality = _QUALITY[form.kind][sort]
    file = io.BytesIO()
    if form.kind == "webp":
        image.save(file, "WEBP", quality=quality, method=_WEBP_METHOD)
    else:
        sampling = "4:2:0" if sort == "jpeg" else "4:4:4"
        options = {"speed": _AVIF_SPEED, "subsampling": sampling, "max_threads": 1}
        image.save(file, "AVIF", quality=quality, **options)
    return file.getvalue()


def clean(data: bytes, picture: Picture | None) -> bytes:
    """Return the bytes of a picture file without metadata; `picture` is None for a damaged one.

    Nothing is left of a damaged one whose metadata cannot be found.
    """
    try:
        return strip_metadata(data)
    except (OSError, ValueError, RecursionError):
        return b"" if picture is None else _encode_original(_read_frames(data, picture), picture)


def _read_frames(data: bytes, picture: Picture) -> list[Image.Image]:
    """Return a picture upright and as large as it is published, in a mode that profiles are for.

    Of what moves that are all frames. What they tell of themselves is what `_TOLD` names.
    """
    frames = []
    with Image.open(io.BytesIO(data)) as image:
        for frame in ImageSequence.Iterator(image) if picture.moves else [image]:
            plain = ImageOps.exif_transpose(_deepen(frame))
            mode = "RGBA" if plain.has_transparency_data else plain.mode
            bare = plain.convert(mode if mode in _COLOURS else "RGB")
            bare.info = {name: plain.info[name] for name in _TOLD & plain.info.keys()}
            frames.append(_resize(bare, (picture.width, picture.height)))
    return frames


def _encode_original(frames: list[Image.Image], picture: Picture) -> bytes:
    file, told = io.BytesIO(), frames[0].info
    options = {**_ORIGINAL[picture.kind], "icc_profile": told.get("icc_profile")}
    if picture.moves:
        times = [frame.info.get("duration", 0) for frame in frames]
        options |= {"save_all": True, "append_images": frames[1:], "duration": times}
        options |= {"loop": told["loop"]} if "loop" in told else {}
    frames[0].save(file, picture.kind.upper(), **options)
    return file.getvalue()


def _read(source: Path, picture: Picture) -> bytes:
    data = source.read_bytes() if source.exists() else b""
    if hashlib.sha256(data).hexdigest() != picture.digest:
        message = f"{picture.path} was changed while the site was being built; build again"
        raise BuildError(message)
    return data


# The original, the forms and the card of a picture are made one after the other.
@lru_cache(maxsize=1)
def _unpack(source: Path, picture: Picture) -> list[Image.Image]:
    return _read_frames(_read(source, picture), picture)


@lru_cache(maxsize=1)
def develop(source: Path, picture: Picture) -> Image.Image:
    """Return the picture ready to be resized, in sRGB and not larger than its original.

    Raises BuildError and OSError.
    """
    plain = _convert_colours(_unpack(source, picture)[0])
    plain.info.clear()  # Encoders would copy profiles and notes from here.
    return plain


def cut(
    source: Path, picture: Picture, size: tuple[int, int], ground: str | tuple[int, int, int]
) -> Image.Image:
    """Return the middle of a picture in that size and in sRGB, its holes filled with `ground`.

    Less is cut off above than below: faces are there. Raises BuildError and OSError.
    """
    image = ImageOps.fit(develop(source, picture), size, centering=(0.5, 0.4))
    filled = Image.new("RGB", size, ground)
    filled.paste(image, mask=image if image.mode == "RGBA" else None)
    return filled


@lru_cache(maxsize=1)
def _shrink(source: Path, picture: Picture, size: tuple[int, int]) -> Image.Image:
    return _resize(develop(source, picture), size)


def free_pictures() -> None:
    """Let go of the picture that was made last."""
    for remembered in (_unpack, develop, _shrink):
        remembered.cache_clear()


def _deepen(image: Image.Image) -> Image.Image:
    """Return a picture of 16 bits for each pixel with 8; `convert` would clip it."""
    if not image.mode.startswith("I"):
        return image
    return image.convert("I").point(lambda level: level * (1 / 256)).convert("L")


def _convert_colours(image: Image.Image) -> Image.Image:
    """Return the picture in sRGB, with transparency where it has any."""
    profile = image.info.get("icc_profile")
    mode = "RGBA" if image.has_transparency_data else "RGB"
    if profile and image.mode in _COLOURS:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            srgb = ImageCms.createProfile("sRGB")
            target = "RGBA" if image.mode == "RGBA" else "RGB"
            converted = ImageCms.profileToProfile(image, source, srgb, outputMode=target)
        except (ImageCms.PyCMSError, OSError):
            return image.convert(mode)  # A profile that cannot be used is as good as none.
        return (converted or image).convert(mode)
    return image.convert(mode)


def _resize(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    if image.size == size:
        return image
    # Weighted by opacity, so that what is unseen does not bleed in.
    mode = "RGBa" if image.mode == "RGBA" else image.mode
    small = image.convert(mode).resize(size, Image.Resampling.LANCZOS, reducing_gap=_REDUCING_GAP)
    return small.convert(image.mode)
