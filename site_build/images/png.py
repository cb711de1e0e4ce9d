"""A picture of few colours and large even areas as PNG (ISO/IEC 15948), packed in little time.

Each row is written as its difference from the one above, which is nothing nearly everywhere. To
pack runs of nothing needs no search for repetitions, and that is what takes other packers long.
Rows are packed a strip at a time, so that what pictures have in common is packed once.
"""

import struct
import zlib
from collections.abc import Sequence
from functools import lru_cache

from PIL import Image, ImageChops

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INDEXED = 3
"""Colour type of pictures whose pixels are numbers of colours."""
_UP = 2
"""The filter that takes the row above away; every row begins with its number."""
_STRIP = 42
"""Rows."""
_ZLIB_HEAD = b"\x78\x01"
_LAST_BLOCK = b"\x03\x00"
"""An empty block that says it is the last (RFC 1951, section 3.2.3)."""


def write_png(numbers: Image.Image, colours: Sequence[int]) -> bytes:
    """Return a picture whose pixels are numbers of `colours`: red, green and blue, up to 255."""
    head = struct.pack(">2I5B", *numbers.size, 8, _INDEXED, 0, 0, 0)
    packed = _pack(_subtract_rows(numbers), (numbers.width + 1) * _STRIP)
    chunks = ((b"IHDR", head), (b"PLTE", bytes(colours)), (b"IDAT", packed), (b"IEND", b""))
    return SIGNATURE + b"".join(frame_chunk(*chunk) for chunk in chunks)


def _subtract_rows(numbers: Image.Image) -> bytes:
    width, height = numbers.size
    rows = Image.new("L", (width + 1, height), _UP)
    rows.paste(numbers.crop((0, 0, width, 1)), (1, 0))
    rows.paste(ImageChops.subtract_modulo(numbers.crop((0, 1, width, height)), numbers), (1, 1))
    return rows.tobytes()


def _pack(rows: bytes, strip: int) -> bytes:
    """Return a stream of zlib (RFC 1950) made of parts, each a whole number of bytes long."""
    strips = [_pack_strip(rows[at : at + strip]) for at in range(0, len(rows), strip)]
    return b"".join((_ZLIB_HEAD, *strips, _LAST_BLOCK, struct.pack(">I", zlib.adler32(rows))))


@lru_cache(maxsize=64)  # Fifty kilobytes each; what all cards have is asked for all the time.
def _pack_strip(rows: bytes) -> bytes:
    packer = zlib.compressobj(level=1, wbits=-zlib.MAX_WBITS, strategy=zlib.Z_RLE)
    return packer.compress(rows) + packer.flush(zlib.Z_FULL_FLUSH)


def frame_chunk(name: bytes, content: bytes) -> bytes:
    """Return a chunk (section 5.3)."""
    named = name + content
    return struct.pack(">I", len(content)) + named + struct.pack(">I", zlib.crc32(named))
