"""Texts and pictures that somebody sends: their bytes, their head, their findings.

A text is converted, and a picture decoded, in a process of its own with a limit.
"""

import base64
import binascii
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

import yaml

from edge_api.schema.writing import MAX_PICTURE_BYTES, MAX_TEXT_BYTES, Finding, WriteRequest
from site_build.addresses import name_alternate, name_file
from site_build.content.edits import STARTED_COMMENT, change_line, rewrite
from site_build.content.head import YamlFaultError, read_entries
from site_build.content.kept import find_head
from site_build.errors import BuildError, Diagnostic
from site_build.images.strip import strip_metadata
from site_build.parallel import in_background
from site_build.site import Document
from site_build.text import make_slug
from site_build.writing.versions import Refused

CONVERT_SECONDS: Final = 5
"""The most time for converting a text, since others wait: one of MAX_TEXT_BYTES takes one."""
_Result = TypeVar("_Result")


def encode(markdown: str | None) -> bytes:
    """Return the bytes of a text. Raises Refused for one that no file can hold."""
    try:
        raw = (markdown or "").encode()
    except UnicodeEncodeError:
        raise Refused("invalid", "markdown: holds half of a character; send it as UTF-8") from None
    if len(raw) > MAX_TEXT_BYTES:
        raise Refused("invalid", f"markdown: has more than {MAX_TEXT_BYTES} bytes; split it")
    if b"\0" in raw:
        raise Refused("invalid", "markdown: holds NUL; take it out")
    return raw


def find_title(raw: bytes) -> str:
    """Return the title of a text: its first line if that is a heading, or that in its head."""
    found = re.match(r"\s*#[ \t]+([^\n]+)", raw.decode(errors="replace"))
    found = found or re.search(r"(?im)^title[ \t]*:[ \t]*[\"']?([^\n]*?)[\"']?$", find_head(raw))
    return found[1].rstrip("# \t\r") if found else ""


def complete(raw: bytes, slug: str, now: datetime) -> bytes:
    """Return a text with a head, in which slug and date stand and which is that of a draft."""
    text = raw.decode()
    if not re.match(r"\ufeff?\s*(?:---|[A-Za-z_-]+:)", text):
        title = find_title(raw)
        body = re.sub(r"\A\s*#[^\n]*\n?\s*", "", text) if title else text
        head = yaml.safe_dump({"title": title or slug}, allow_unicode=True, width=sys.maxsize)
        raw = f"---\n{head}---\n\n{body}".encode()
    for key, value in (("slug", slug), ("date", f"{now:%Y-%m-%dT%H:%M:%SZ}{STARTED_COMMENT}")):
        if change_line(raw, key, None) == raw:
            raw = change_line(raw, key, value)
    return change_line(raw, "status", "draft")


def list_keys(raw: bytes) -> set[str]:
    """Return the keys of a head in lower case: those of its lines, and what YAML makes of them."""
    head = find_head(raw)
    found = re.findall(r"(?m)^[ \t]*[\"']?([\w-]+)[\"']?[ \t]*[:=]", head)
    with suppress(YamlFaultError):  # such a head is not published
        found += [each.key for each in read_entries(head)]
    return {each.lower().replace("-", "_") for each in found}


def run_apart(work: Callable[[], _Result]) -> _Result:
    """Return the result of `work`, in a process that can be ended whatever a text makes it do.

    Raises Refused if it takes too long.
    """

    def limited() -> _Result:
        resource.setrlimit(resource.RLIMIT_CPU, (CONVERT_SECONDS, CONVERT_SECONDS))
        signal.alarm(10 * CONVERT_SECONDS)
        return work()

    try:
        with in_background(limited, 2) as wait:
            return wait()
    except BuildError:
        raise Refused(
            "conflict", f"the text takes more than {CONVERT_SECONDS} s to convert; split it"
        ) from None


def name_files(document: Document) -> frozenset[str]:
    """Return the names of the files that show a document."""
    return frozenset({name_file(document.address), name_alternate(document.address)})


def list_findings(findings: Iterable[Diagnostic]) -> tuple[Finding, ...]:
    """Return findings as answers have them."""
    return tuple(
        Finding(line=each.line, column=each.column, severity=each.severity, message=each.message)
        for each in findings
    )


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
