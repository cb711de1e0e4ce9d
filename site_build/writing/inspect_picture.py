"""Decodes a picture from standard input under limits, and prints the suffix for its kind.

It is run as a process of its own, which a hostile picture may end.
"""

import io
import resource
import sys

from PIL import Image

from site_build.images.responsive import measure

KINDS = {"JPEG": ".jpg", "MPO": ".jpg", "PNG": ".png", "GIF": ".gif", "WEBP": ".webp"}
"""Suffixes of the kinds that may be added, by the names that Pillow gives them."""
_MOST_BYTES = 1024 * 1024 * 1024
_MOST_SECONDS = 15


def main() -> int:
    """Print a suffix and return 0, or what is wrong and 1."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    data = sys.stdin.buffer.read()
    try:
        measured = measure("picture.jpg", data)
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "GIF", "WEBP")) as image:
            suffix = KINDS[str(image.format)]
            image.load()
    except (OSError, KeyError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError):
        sys.stdout.write("is no JPEG, PNG, GIF or WebP that can be decoded; save it as one")
        return 1
    sys.stdout.write(f"the picture {measured.fault}" if measured.fault else suffix)
    return int(bool(measured.fault))


if __name__ == "__main__":
    sys.exit(main())
