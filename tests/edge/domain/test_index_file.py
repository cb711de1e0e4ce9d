"""The posts index: what is read, and what is refused."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from edge_api.journal.builds import BuildRefusal, read_index
from edge_api.journal.posts import Entry
from edge_api.schema.index import INDEX_END, PostRecord
from tests.edge.small_builds import encode_index, make_head, make_post

POSTS = [make_post("new", 9), make_post("mid", 5), make_post("old", 1)]
HEAD = make_head("build-0001", len(POSTS))


def write(folder: Path, raw: bytes) -> Path:
    """Return an index with these bytes."""
    path = folder / "posts.json"
    path.write_bytes(raw)
    return path


def refusal(folder: Path, raw: bytes) -> str:
    """Return the sentence with which an index is refused."""
    with pytest.raises(BuildRefusal) as caught:
        read_index(write(folder, raw))
    return str(caught.value)


def test_an_index_is_read(tmp_path: Path) -> None:
    """Head and posts come back as they were written."""
    head, posts = read_index(write(tmp_path, encode_index(HEAD, POSTS)))

    assert (head.build_id, head.count) == ("build-0001", 3)
    assert [json.loads(entry.document.body)["slug"] for entry in posts.entries] == [
        "new",
        "mid",
        "old",
    ]


def test_an_index_is_one_json_value() -> None:
    """Programs that know nothing of lines read the index as JSON."""
    assert json.loads(encode_index(HEAD, POSTS)) == {"head": HEAD, "posts": POSTS}


def test_an_unchanged_post_is_taken_over(tmp_path: Path) -> None:
    """Posts of two indexes that are equal byte for byte are one object, the others are not."""
    old = read_records(tmp_path, POSTS)
    new = read_records(tmp_path, [POSTS[0], {**POSTS[1], "title": "Changed"}, POSTS[2]], old)

    assert [first is second for first, second in zip(old, new, strict=True)] == [True, False, True]
    assert json.loads(new[1].document.body)["title"] == "Changed"


def read_records(folder: Path, posts: list[Any], before: Iterable[Entry] = ()) -> list[Entry]:
    """Return the entries of an index that is written as a build writes it."""
    spelt = [PostRecord.model_validate_json(json.dumps(post)).model_dump_json() for post in posts]
    lines = ",\n".join(spelt).encode() + b"\n" + INDEX_END
    raw = encode_index(HEAD, []).replace(INDEX_END, lines)
    return list(read_index(write(folder, raw), before)[1].entries)


def test_an_index_without_posts_is_read(tmp_path: Path) -> None:
    """A journal may begin with nothing."""
    head, posts = read_index(write(tmp_path, encode_index(make_head("build-0001", 0), [])))

    assert (head.count, posts.entries) == (0, ())


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    """An index that was cut off anywhere is refused, and the sentence names no path."""
    whole = encode_index(HEAD, POSTS)
    for length in [*range(0, len(whole) - 1, 5), len(whole) - 2]:
        message = refusal(tmp_path, whole[:length])
        assert "index" in message
        assert str(tmp_path) not in message


def test_a_flipped_bit_never_loses_a_post(tmp_path: Path) -> None:
    """A damaged byte is refused, or every post is still there.

    Inside a text a flipped bit gives another text, which nobody can tell from what was meant.
    """
    whole = encode_index(HEAD, POSTS)
    for position in range(0, len(whole), 5):
        raw = bytearray(whole)
        raw[position] ^= 0x04
        with suppress(BuildRefusal):
            _, posts = read_index(write(tmp_path, bytes(raw)))
            assert len(posts.entries) == len(POSTS)


@pytest.mark.parametrize("number", [0, 1, 99])
def test_another_format_is_refused(tmp_path: Path, number: int) -> None:
    """An index of another format is refused by its number, whatever else its head says."""
    head = {"format": number, "altogether": "new"}

    assert f"has format {number}" in refusal(tmp_path, encode_index(head, []))


@pytest.mark.parametrize("count", [2, 4, 0])
def test_a_wrong_count_is_refused(tmp_path: Path, count: int) -> None:
    """A head that counts other posts than follow is refused."""
    raw = encode_index(make_head("build-0001", count), POSTS)

    assert f"announces {count} posts and holds 3" in refusal(tmp_path, raw)


@pytest.mark.parametrize(
    "posts",
    [
        [POSTS[1], POSTS[0], POSTS[2]],
        [POSTS[0], POSTS[0], POSTS[1]],
        [make_post("b", 1), make_post("a", 1), make_post("c", 1)],
    ],
)
def test_a_wrong_order_is_refused(tmp_path: Path, posts: list[Any]) -> None:
    """Posts out of order, or twice, are refused."""
    assert "out of order" in refusal(tmp_path, encode_index(HEAD, posts))


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"slug": "Not A Slug"}, "slug"),
        ({"slug": ""}, "slug"),
        ({"title": ""}, "title"),
        ({"title": None}, "title"),
        ({"publishedAt": "yesterday"}, "publishedAt"),
        ({"publishedAt": "2026-01-01T00:00:00"}, "publishedAt"),
        ({"updatedAt": None}, "updatedAt"),
        ({"readingMinutes": 0}, "readingMinutes"),
        ({"tags": "paper"}, "tags"),
        ({"url": "nowhere"}, "url"),
        ({"secret": "x"}, "secret"),
        ({"publishedAt": "2026-01-09T00:00:00Z"}, "two times of publication differ"),
    ],
)
def test_a_faulty_record_is_refused(tmp_path: Path, changes: Any, where: str) -> None:
    """A record that does not fit its model is refused with its line and member."""
    posts = [POSTS[0], {**POSTS[1], **changes}, POSTS[2]]
    message = refusal(tmp_path, encode_index(HEAD, posts))

    assert "damaged in line 3" in message
    assert where in message


@pytest.mark.parametrize("member", sorted(POSTS[0]))
def test_a_missing_member_is_refused(tmp_path: Path, member: str) -> None:
    """Each member of a record is needed."""
    partial = {name: value for name, value in POSTS[0].items() if name != member}

    assert f"{member} is required" in refusal(tmp_path, encode_index(HEAD, [partial]))


@pytest.mark.parametrize(
    "raw",
    [b"", b"\n", b"{}", b"[]\n", b"null\n", b'"x"\n', b"\xff\xfe\n", b"PK\x03\x04", INDEX_END],
)
def test_a_file_that_is_no_index_is_refused(tmp_path: Path, raw: bytes) -> None:
    """Anything else is refused by its first line."""
    assert "damaged in line 1" in refusal(tmp_path, raw)


def test_a_missing_index_is_refused(tmp_path: Path) -> None:
    """An index that is not there, or is a folder, is refused in a sentence without its path."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(BuildRefusal) as caught:
            read_index(path)
        assert "cannot be read" in str(caught.value)
        assert str(tmp_path) not in str(caught.value)
