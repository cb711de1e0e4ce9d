"""Removes metadata from a picture's file and leaves its pixels, frames and colours as they are.

No pixel is decoded. Only parts of listed kinds are kept; all others are removed: EXIF, XMP, IPTC,
comments, thumbnails, and data behind the picture's end. The orientation is written back, as EXIF.
"""

import io
import re
import struct
import zlib
from collections.abc import Iterator

from PIL import ExifTags, Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
"""The first bytes of every PNG."""

_JPEG_MARKER = re.compile(rb"\xff+[^\x00\xd0-\xd7\xff]", re.DOTALL)
"""A marker, which ends the pixels of a scan (ITU-T T.81, section B.1.1.2)."""
_JPEG_END, _JPEG_SCAN = 0xD9, 0xDA
_JPEG_TABLES = frozenset({*range(0xC0, 0xD0), _JPEG_SCAN, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF})
"""Markers of segments that decoding needs."""
_JPEG_COLOURS = {0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
"""Markers of segments about colours, with the bytes that they begin with."""

_PNG_KEPT = frozenset(
    (
        b"tRNS",
        b"gAMA",
        b"cHRM",
        b"sRGB",
        b"iCCP",
        b"cICP",
        b"mDCV",
        b"cLLI",
        b"sBIT",
        b"bKGD",
        b"pHYs",
        b"acTL",
        b"fcTL",
        b"fdAT",
    )
)
"""Chunks of colours and frames that are kept beside the critical ones."""

_WEBP_EXIF, _WEBP_XMP = 0x08, 0x04
"""Flags of the VP8X chunk."""
_WEBP_FRAME_HEAD = 16
_GIF_KEPT = (b"\xff\x0bNETSCAPE2.0", b"\xff\x0bANIMEXTS1.0", b"\xff\x0bICCRGBG1012")
"""Application extensions: repetitions, and the colour profile."""


def strip_metadata(data: bytes) -> bytes:
    """Return the bytes of a picture without metadata, or the same bytes if they are no picture.

    A truncated file is stripped up to its end. Raises ValueError for an AVIF, whose parts refer to
    each other by their offsets in the file.
    """
    exif = _write_orientation(data)
    if data.startswith(b"\xff\xd8"):
        return _strip_jpeg(data, exif)
    if data.startswith(SIGNATURE):
        return SIGNATURE + b"".join(_list_png(data, exif))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        body = b"WEBP" + b"".join(_list_webp(data[12:], exif))
        return b"RIFF" + struct.pack("<I", len(body)) + body
    if data.startswith((b"GIF87a", b"GIF89a")):
        return b"".join(_list_gif(data))
    if data[4:8] == b"ftyp":
        raise ValueError("an AVIF has to be encoded anew")
    return data


def _write_orientation(data: bytes) -> bytes:
    """Return EXIF with the picture's orientation alone; empty for an upright one."""
    exif = Image.Exif()
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "WEBP")) as image:
            exif[ExifTags.Base.Orientation] = image.getexif()[ExifTags.Base.Orientation]
    except Exception:  # noqa: BLE001 - decoders raise whatever they stumble over
        return b""
    return exif.tobytes() if exif[ExifTags.Base.Orientation] in range(2, 9) else b""


def _strip_jpeg(data: bytes, exif: bytes) -> bytes:
    kept = [data[:2], _frame_segment(0xE1, exif)] if exif else [data[:2]]
    at = 2
    while found := _JPEG_MARKER.search(data, at):
        marker, at = found[0][-1], found.end()
        if marker == _JPEG_END:
            return b"".join((*kept, b"\xff\xd9"))
        size = int.from_bytes(data[at : at + 2])
        content, at = data[at + 2 : at + size], at + size
        if marker in _JPEG_TABLES or content.startswith(_JPEG_COLOURS.get(marker, b"\0none")):
            kept.append(_frame_segment(marker, content))
        elif marker == 0xE0 and content.startswith(b"JFIF\0"):  # noqa: PLR2004 - APP0
            # The thumbnail, whose size follows 12 bytes, is removed.
            kept.append(_frame_segment(marker, content[:12] + bytes(2)))
        if marker == _JPEG_SCAN:
            end = _JPEG_MARKER.search(data, at)
            kept.append(data[at : end.start() if end else len(data)])
    return b"".join(kept)


def _frame_segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def _list_png(data: bytes, exif: bytes) -> Iterator[bytes]:
    """Yield the chunks that are kept: critical ones, colours and frames."""
    at = len(SIGNATURE)
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4])
        name = data[at + 4 : at + 8]
        if name == b"IDAT" and exif:
            # A chunk is its size, name, content and checksum (ISO/IEC 15948, section 5.3).
            content = exif.removeprefix(b"Exif\0\0")
            checksum = zlib.crc32(b"eXIf" + content)
            yield struct.pack(">I4s", len(content), b"eXIf") + content + struct.pack(">I", checksum)
            exif = b""
        if name[:1].isupper() or name in _PNG_KEPT:
            yield data[at:end]
        at = len(data) if name == b"IEND" else end


def _list_webp(chunks: bytes, exif: bytes) -> Iterator[bytes]:
    """Yield the chunks that are kept, and those of frames within them."""
    at = 0
    while at + 8 <= len(chunks):
        name, size = struct.unpack_from("<4sI", chunks, at)
        content, at = chunks[at + 8 : at + 8 + size], at + 8 + size + size % 2
        if name == b"VP8X" and content:
            flags = content[0] & ~(_WEBP_EXIF | _WEBP_XMP) | (_WEBP_EXIF if exif else 0)
            content = bytes([flags]) + content[1:]
        elif name == b"ANMF":
            frame = content[_WEBP_FRAME_HEAD:]
            content = content[:_WEBP_FRAME_HEAD] + b"".join(_list_webp(frame, b""))
        if name in {b"VP8X", b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L"}:
            yield _frame_riff(name, content)
    if exif:
        yield _frame_riff(b"EXIF", exif.removeprefix(b"Exif\0\0"))


def _frame_riff(name: bytes, content: bytes) -> bytes:
    return struct.pack("<4sI", name, len(content)) + content + bytes(len(content) % 2)


def _list_gif(data: bytes) -> Iterator[bytes]:
    """Yield the blocks that are kept (GIF89a, appendix A)."""
    at = 13 + _measure_colours(data, 10)
    yield data[:at]
    while at < len(data):
        start, kind = at, data[at : at + 1]
        if kind == b",":
            at = _skip_blocks(data, at + 11 + _measure_colours(data, at + 9))
        elif kind == b"!":
            at = _skip_blocks(data, at + 2)
        else:
            at += 1
        is_control = data[start : start + 2] == b"!\xf9"
        if kind in b",;" or is_control or data[start + 1 : start + 14] in _GIF_KEPT:
            yield data[start:at]
        if kind == b";":
            return


def _measure_colours(data: bytes, at: int) -> int:
    """Return the length in bytes of the colour table that the flags at `at` announce."""
    flags = int.from_bytes(data[at : at + 1])
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _skip_blocks(data: bytes, at: int) -> int:
    """Return the offset behind a series of sub-blocks that begins at `at`."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1
