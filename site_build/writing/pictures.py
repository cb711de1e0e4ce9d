"""Pictures that somebody sends, decoded in a process of their own before they are stored."""

import base64
import binascii
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Final

from edge_api.schema.writing import MAX_PICTURE_BYTES, WriteRequest
from site_build.content.edits import rewrite
from site_build.images.strip import strip_metadata
from site_build.text import make_slug
from site_build.writing.versions import Refused

PICTURE_SECONDS: Final = 20
"""The longest time for decoding a picture."""


def add_picture(request: WriteRequest, folder: str, target: Path, known: Sequence[Path]) -> str:
    """Store a picture without its metadata in `target`, and return its path there.

    Its name is one that no folder of `known` has. Raises Refused, BuildError and OSError.
    """
    try:
        data = base64.b64decode(request.data, validate=True)
    except binascii.Error:
        raise Refused("invalid", "data: is not base64") from None
    if len(data) > MAX_PICTURE_BYTES:
        raise Refused(
            "invalid",
            f"data: a picture has at most {MAX_PICTURE_BYTES // 1_000_000} MB; save it smaller",
        )
    suffix = _inspect(data)
    stem = make_slug(PurePosixPath(request.name).stem) or "picture"
    names = (f"{folder}/{stem}{f'-{n}' if n > 1 else ''}{suffix}" for n in count(1))
    path = next(name for name in names if not any((each / name).exists() for each in known))
    rewrite(target, path, None, strip_metadata(data))
    return path


def _inspect(data: bytes) -> str:
    """Return the suffix for a picture that can be decoded, in a process with limits.

    Raises Refused for another file.
    """
    try:
        found = subprocess.run(
            [sys.executable, "-m", "site_build.writing.inspect_picture"],
            input=data,
            capture_output=True,
            check=False,
            timeout=PICTURE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise Refused("invalid", "data: the picture takes too long to decode") from None
    said = found.stdout.decode(errors="replace").strip()
    if found.returncode != 0:
        raise Refused("invalid", f"data: {said or 'the picture needs too much memory'}")
    return said
