"""Encodes published pictures and their lighter forms, in smaller sizes and as AVIF and WebP.

A published original keeps its own colours; it is encoded again only if it is too large, an AVIF or
a HEIC.

Encoders use one thread: the same picture gives the same bytes, and the build has a process for
each core already.
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
"""Widths in pixels: of a phone's column at up to three per CSS pixel, of a wide one at two."""
WIDEST = 1920
"""Most pixels of the width of a form."""
LONGEST_SIDE = 2560
"""Most pixels of a published original: a large screen shows no more."""

_LEAST_SIDE = 200
"""Fewest pixels of a picture for cards: sites where links are shared take no smaller one."""
_NEAR = 0.85
"""Share of the largest width; a form that is wider than this would save too little."""
_WORTHWHILE = 8_000
"""Bytes below which no forms of a picture are made."""
_DIGITS = 12
"""Hexadecimal digits of the digest in addresses of forms."""

FormKind = Literal["avif", "webp"]
KINDS: tuple[FormKind, ...] = ("avif", "webp")
"""Best first: a browser takes the first that it knows."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it is published: turned upright, its longer side within the bound."""

    path: str
    """Path below the content folder: `images/shelf.jpg`."""
    digest: str
    """SHA-256 of the file, hexadecimal."""
    kind: str
    """`jpeg`, `png`, `webp`, `avif`, `gif` or `svg`."""
    width: int
    height: int
    size: int
    """Size of the file in bytes."""
    still: bool
    """False for GIFs, animations and drawings (SVG): no forms are made of them."""
    moves: bool = False
    """True for an animation."""
    is_reduced: bool = False
    """True if the published file is encoded anew: one too large, and every AVIF and HEIC."""

    @property
    def can_lead(self) -> bool:
        """Whether it can represent a post on cards and in feeds: it is still, and not tiny."""
        return self.still and min(self.width, self.height) >= _LEAST_SIDE

    @property
    def folder(self) -> str:
        """The folder of its forms, which changes with the file and with the code for forms."""
        return f"{addresses.PICTURES}{_digest(self)}"

    @property
    def reduced_key(self) -> bytes:
        """The cache key of the reduced original, which changes with the file and with the code."""
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
    """Return the digest of the code and the libraries that make forms."""
    codecs = [features.version(codec) for codec in KINDS]
    libraries = version("pillow"), version("pi-heif")
    return make_key(libraries, codecs, Path(__file__).read_bytes()).hex()


_QUALITY = {"avif": {"jpeg": 60, "other": 68}, "webp": {"jpeg": 80, "other": 86}}
"""Quality by kind of form and of picture: screenshots show artefacts that photographs hide."""

_AVIF_SPEED = 9
"""The encoder's speed: three times as fast as 8 and ten times as 6, for hardly more bytes."""
_WEBP_METHOD = 2
"""Twice as quick as the usual 4, for a few percent of size: browsers without AVIF are few."""

_ORIGINAL: dict[str, dict[str, object]] = {
    "avif": {"quality": 80, "speed": _AVIF_SPEED, "max_threads": 1},
    "gif": {},
    "jpeg": {"quality": 90, "optimize": True, "progressive": True},
    "png": {},
    "webp": {"quality": 90, "method": _WEBP_METHOD},
}
"""Encoder options of reduced originals, at high quality since readers look at their details."""
_KEPT_INFO = frozenset({"duration", "icc_profile", "loop"})
"""Keys of Pillow's `info` that a published original keeps."""
_REDUCING_GAP = 2.0
"""Pillow's `reducing_gap`: it averages whole pixels down to this multiple of the new size."""
_COLOURS = frozenset({"RGB", "RGBA", "CMYK", "L"})
"""Pillow's modes that a colour profile can describe."""


# One thread, as for the encoders. libheif turns a picture upright by itself.
pi_heif.register_heif_opener(decode_threads=1)


def encode(source: Path, picture: Picture, form: Form | None = None) -> bytes:
    """Return the bytes of a form of the picture in `source`, or of its reduced original.

    The original is upright, and keeps its colour profile and its animation, but no other metadata.
    Raises BuildError and OSError.
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

    Returns no bytes for a damaged file whose metadata cannot be found.
    """
    try:
        return strip_metadata(data)
    except (OSError, ValueError, RecursionError):
        return b"" if picture is None else _encode_original(_read_frames(data, picture), picture)


def _read_frames(data: bytes, picture: Picture) -> list[Image.Image]:
    """Return a picture's frames, upright, in the published size and in a mode of `_COLOURS`.

    A still picture gives one frame. The `info` of frames has only keys of `_KEPT_INFO`.
    """
    frames = []
    with Image.open(io.BytesIO(data)) as image:
        for frame in ImageSequence.Iterator(image) if picture.moves else [image]:
            plain = ImageOps.exif_transpose(_reduce_depth(frame))
            mode = "RGBA" if plain.has_transparency_data else plain.mode
            bare = plain.convert(mode if mode in _COLOURS else "RGB")
            bare.info = {name: plain.info[name] for name in _KEPT_INFO & plain.info.keys()}
            frames.append(_resize(bare, (picture.width, picture.height)))
    return frames


def _encode_original(frames: list[Image.Image], picture: Picture) -> bytes:
    file, info_kept = io.BytesIO(), frames[0].info
    options = {**_ORIGINAL[picture.kind], "icc_profile": info_kept.get("icc_profile")}
    if picture.moves:
        times = [frame.info.get("duration", 0) for frame in frames]
        options |= {"save_all": True, "append_images": frames[1:], "duration": times}
        options |= {"loop": info_kept["loop"]} if "loop" in info_kept else {}
    frames[0].save(file, picture.kind.upper(), **options)
    return file.getvalue()


def _read(source: Path, picture: Picture) -> bytes:
    data = source.read_bytes() if source.exists() else b""
    if hashlib.sha256(data).hexdigest() != picture.digest:
        message = f"{picture.path} was changed while the site was being built; build again"
        raise BuildError(message)
    return data


# One result is enough: a picture's original, forms and card are made one after the other.
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
    """Return the middle of a picture in that size and in sRGB, with `ground` where it is clear.

    Less is cut off above than below, since faces are there. Raises BuildError and OSError.
    """
    image = ImageOps.fit(develop(source, picture), size, centering=(0.5, 0.4))
    filled = Image.new("RGB", size, ground)
    filled.paste(image, mask=image if image.mode == "RGBA" else None)
    return filled


@lru_cache(maxsize=1)
def _shrink(source: Path, picture: Picture, size: tuple[int, int]) -> Image.Image:
    return _resize(develop(source, picture), size)


def free_pictures() -> None:
    """Free the memory of the picture that was made last."""
    for cached in (_unpack, develop, _shrink):
        cached.cache_clear()


def _reduce_depth(image: Image.Image) -> Image.Image:
    """Return a picture of 16 bits per pixel as one of 8; `convert` alone would clip it."""
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
            return image.convert(mode)  # Treat an invalid profile like a missing one.
        return (converted or image).convert(mode)
    return image.convert(mode)


def _resize(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    if image.size == size:
        return image
    # Weighted by opacity, so that colours of clear pixels do not bleed in.
    mode = "RGBa" if image.mode == "RGBA" else image.mode
    small = image.convert(mode).resize(size, Image.Resampling.LANCZOS, reducing_gap=_REDUCING_GAP)
    return small.convert(image.mode)
