"""The content folder: which files are in it, which cannot be used, and measures of its pictures.

It looks at names and kinds of files; what is in texts is for others to say. A picture is unpacked
once, to see that it can be; after that its digest tells.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from site_build.addresses import SourceRules
from site_build.cache import Cache, make_key
from site_build.content.document import LARGEST_FILE
from site_build.errors import Diagnostic, find_fix
from site_build.images.measure import LARGEST_FILE as LARGEST_PICTURE
from site_build.images.measure import Measured, is_picture, measure
from site_build.parallel import map_unordered

_FOREIGN_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdwn"})
_OTHER_SUFFIXES = _FOREIGN_SUFFIXES | {".rst", ".html", ".htm"}
"""Of texts that Pelican builds."""
_RULES = SourceRules()


@dataclass(frozen=True, slots=True)
class Listing:
    """What is in a content folder; paths are relative to it, with `/`, and sorted."""

    sources: tuple[str, ...]
    """Markdown files."""
    files: tuple[str, ...]
    """Files that are published as they are."""
    findings: tuple[Diagnostic, ...]
    has_links: bool
    """Whether a file is a symbolic link: what changes its text then goes by another path."""


def list_content(folder: Path, rules: SourceRules = _RULES) -> Listing:
    """Return what is in `folder`, dot files left out; raises OSError for an unreadable folder."""
    sources, files, findings, has_links = [], [], [], False
    os.scandir(folder).close()
    for path, fault, is_link in _walk(folder):
        has_links |= is_link
        if fault:
            findings.append(Diagnostic(show_path(path), 1, 1, "error", fault))
        elif path.endswith(".md"):
            if rules.is_source(path):
                sources.append(path)
        elif rules.is_static(path):
            files.append(path)
        elif (suffix := Path(path).suffix.lower()) in _OTHER_SUFFIXES and rules.is_source(path):
            fix = "give it" if suffix in _FOREIGN_SUFFIXES else "write it in Markdown, with"
            message = f"the file is not built; {fix} the suffix .md"
            findings.append(Diagnostic(show_path(path), 1, 1, "warning", message))
    found = tuple(sorted(findings))
    return Listing(tuple(sorted(sources)), tuple(sorted(files)), found, has_links)


def read_bytes(folder: Path, path: str, largest: int = LARGEST_FILE) -> bytes:
    """Return a file's bytes, cut one byte behind the `largest` size. Raises OSError."""
    with open(f"{folder}/{path}", "rb") as file:  # noqa: PTH123  a Path costs as much as the file
        return file.read(largest + 1)


def digest_file(folder: Path, path: str, largest: int = LARGEST_FILE) -> str:
    """Return the SHA-256 of what is read of a file; an empty string where it cannot be."""
    try:
        return hashlib.sha256(read_bytes(folder, path, largest)).hexdigest()
    except OSError:
        return ""


def explain_refusal(path: str, refusal: OSError) -> Diagnostic:
    """Return the finding for a file that the disk would not give."""
    message = f"the file cannot be read ({refusal.strerror}); {find_fix(refusal)}"
    return Diagnostic(show_path(path), 1, 1, "error", message)


def show_path(path: str) -> str:
    """Return `path` as it can be printed anywhere."""
    if path.isprintable():
        return path
    text = path.encode("utf-8", "backslashreplace").decode()
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def _walk(folder: Path) -> Iterator[tuple[str, str | None, bool]]:
    """Yield every file's path, what is wrong with it as a file, and whether it is a link."""
    home = folder.resolve()
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(folder / inside) as found:
                entries = [entry for entry in found if not entry.name.startswith(".")]
        except OSError as refusal:
            fault = f"the folder cannot be read ({refusal.strerror}); {find_fix(refusal)}"
            yield inside, fault, False
            continue
        for entry in entries:
            path = f"{inside}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{path}/")
            else:
                yield path, _find_fault(entry, home), entry.is_symlink()


def _find_fault(entry: os.DirEntry[str], home: Path) -> str | None:
    if show_path(entry.name) != entry.name:
        return "the file's name holds signs that are no text; rename it"
    if entry.is_symlink():
        try:
            target = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError):
            return "the link leads nowhere; put the file itself here"
        if not target.is_relative_to(home):
            return "the link leads out of the content folder; put the file itself here"
        if target.is_dir():
            return "a linked folder is not followed; put its files here"
    return None if entry.is_file() else "this is no plain file; take it away"


_MEASURES = "measure"


def measure_pictures(
    content: Path, files: Sequence[str], jobs: int, cache: Cache | None = None, code: str = ""
) -> dict[str, Measured]:
    """Return the measures of pictures by path; `code`, the program, is part of their cache keys."""
    paths = [path for path in files if is_picture(path)]
    keys, known = {}, {}
    if cache:
        digests = {path: digest_file(content, path, LARGEST_PICTURE) for path in paths}
        keys = {path: make_key(code, path, digest) for path, digest in digests.items()}
        known = cache.recall(_MEASURES, keys, Measured)
    unknown = [path for path in paths if path not in known]
    fresh = {
        unknown[at]: each for at, each in map_unordered(partial(_measure, content), unknown, jobs)
    }
    if cache:
        cache.put(_MEASURES, [(keys[path], each) for path, each in fresh.items() if each.is_read])
        cache.keep_only(_MEASURES, keys.values())
    return {path: known.get(path) or fresh[path] for path in paths}


def _measure(content: Path, path: str) -> Measured:
    try:
        return measure(path, read_bytes(content, path, LARGEST_PICTURE))
    except OSError as refusal:
        fault = f"cannot be read ({refusal.strerror}); {find_fix(refusal)}"
        return Measured(None, fault, is_read=False)
