"""The posts index of a build, read and checked record by record.

What is not exactly what a build promises is refused in one sentence, which names no path.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import orjson
from pydantic import ValidationError

from edge_api.domain.posts import Entry, Posts, make_entry
from edge_api.schema.index import (
    INDEX_CLOSING,
    INDEX_FORMAT,
    INDEX_MIDDLE,
    INDEX_OPENING,
    IndexHead,
    PostRecord,
)
from edge_api.schema.problems import sentence_of


class BuildRefusal(Exception):  # noqa: N818  a refusal is an answer, not a fault of the code
    """A build that cannot be served; its text is a sentence for operators and readiness."""


def read_head(path: Path) -> IndexHead:
    """Return the head of the index at `path` alone. Raises BuildRefusal."""
    try:
        with path.open("rb") as lines:
            return _read_head(lines.readline())
    except OSError as error:
        raise _unreadable(error) from None


def read_index(path: Path, before: Iterable[Entry] = ()) -> tuple[IndexHead, Posts]:
    """Return the head of the index at `path`, and its posts.

    A post that stands in `before` as well, byte for byte, is taken from there: it was checked, and
    two editions share its memory. Raises BuildRefusal for a format that this version cannot read,
    and for every damage.
    """
    known = {entry.document.body: entry for entry in before}
    try:
        with path.open("rb") as lines:
            head = _read_head(lines.readline())
            entries = tuple(_read_entries(lines, known))
    except OSError as error:
        raise _unreadable(error) from None
    if len(entries) != head.count:
        raise BuildRefusal(
            f"the posts index announces {head.count} posts and holds {len(entries)}: build again"
        )
    if not all(first.place.is_before(second.place) for first, second in pairwise(entries)):
        raise BuildRefusal("the posts of the index are out of order: build again")
    return head, Posts(entries, head.renamed)


def _read_head(line: bytes) -> IndexHead:
    try:
        text = line.removeprefix(INDEX_OPENING).removesuffix(INDEX_MIDDLE)
        _check_format(orjson.loads(text))
        return IndexHead.model_validate_json(text)
    except (orjson.JSONDecodeError, ValidationError):
        raise _damaged(1) from None


def _check_format(head: object) -> None:
    """Look at the format before anything else: the rest may mean something new."""
    number = head.get("format") if isinstance(head, dict) else None
    if isinstance(number, int) and number != INDEX_FORMAT:
        raise BuildRefusal(
            f"the posts index has format {number} and this version reads format {INDEX_FORMAT}: "
            "use site build and edge of one version"
        )


def _read_entries(lines: Iterator[bytes], known: Mapping[bytes, Entry]) -> Iterator[Entry]:
    """Yield the posts up to the closing line, without which the file was cut off."""
    for number, line in enumerate(lines, start=2):
        if line == INDEX_CLOSING:
            return
        post = line.rstrip(b",\n")
        yield known.get(post) or make_entry(_read_record(number, post))
    raise BuildRefusal("the posts index ends too early: build again")


def _read_record(number: int, post: bytes) -> PostRecord:
    try:
        record = PostRecord.model_validate_json(post)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in fault["loc"]) or "the line"
        raise _damaged(number, f" ({where} {sentence_of(fault)})") from None
    if record.published_at != record.publishedAt:
        raise _damaged(number, " (its two times of publication differ)")
    return record


def _unreadable(error: OSError) -> BuildRefusal:
    return BuildRefusal(f"the posts index cannot be read: {error.strerror}")


def _damaged(number: int, how: str = "") -> BuildRefusal:
    return BuildRefusal(f"the posts index is damaged in line {number}{how}: build again")
