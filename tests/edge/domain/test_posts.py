"""The list of posts and its parts, against a plain model of them."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.db.problems import Problem
from edge_api.db.types import format_instant
from edge_api.journal.posts import PostCursor, Posts, make_entry, serialize_list
from edge_api.schema.index import PostRecord
from tests.edge.small_builds import START, make_post


def shelve(*records: dict[str, Any]) -> Posts:
    """Return the posts of these records, in whatever order they come."""
    found = [PostRecord.model_validate_json(json.dumps(item)) for item in records]
    entries = [make_entry(record, record.model_dump_json().encode()) for record in found]
    entries.sort(key=lambda entry: entry.cursor.slug)
    entries.sort(key=lambda entry: entry.cursor.published, reverse=True)
    return Posts(entries)


@pytest.fixture(scope="module")
def posts() -> Posts:
    """Return four posts, two of them of one instant."""
    return shelve(
        make_post("old", 1, tags=["Paper"]),
        make_post("b-twin", 5, tags=["Paper", "Ink"]),
        make_post("a-twin", 5, tags=[]),
        make_post("new", 9, tags=["ink"]),
    )


def slugs(part: Any) -> list[str]:
    """Return the slugs of entries, in their order."""
    return [entry.cursor.slug for entry in part]


def test_posts_are_listed_newest_first(posts: Posts) -> None:
    """Posts are listed newest first, and by slug where the instants are equal."""
    assert slugs(posts.select()) == ["new", "a-twin", "b-twin", "old"]


def test_a_post_is_its_record(posts: Posts) -> None:
    """A post's document is the JSON of its whole record, with a strong validator."""
    document = posts.document("b-twin")

    assert json.loads(document.body) == {
        **make_post("b-twin", 5, tags=["Paper", "Ink"]),
        **dict.fromkeys(("publishedAt", "published_at", "updatedAt"), "2026-01-06T00:00:00Z"),
    }
    assert document.etag.startswith('"')
    assert document.cache_control.startswith("private")


def test_the_list_leaves_the_text_out(posts: Posts) -> None:
    """The whole list has every post as a summary, and says how many there are."""
    listed = json.loads(posts.full_list.body)

    assert listed["count"] == len(listed["posts"]) == 4
    assert {"content", "content_html"}.isdisjoint(listed["posts"][0])
    assert listed["posts"][0]["published_at"] == listed["posts"][0]["publishedAt"]
    assert "next" not in listed


def test_an_index_without_posts_lists_none() -> None:
    """A journal without posts has an empty list."""
    assert json.loads(shelve().full_list.body) == {"posts": [], "count": 0}
    assert shelve().select() == []


@pytest.mark.parametrize("slug", ["", "missing", "NEW", "new ", "new\n", "../new", "new\x00"])
def test_a_missing_post_is_a_problem(posts: Posts, slug: str) -> None:
    """Only an exact slug is found."""
    with pytest.raises(Problem) as caught:
        posts.document(slug)

    assert caught.value.code == "not_found"


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ("Paper", ["b-twin", "old"]),
        ("paper", ["b-twin", "old"]),
        (" INK ", ["new", "b-twin"]),
        ("pap", []),
        ("", []),
    ],
)
def test_a_tag_counts_whatever_its_case(posts: Posts, tag: str, found: list[str]) -> None:
    """Posts with the very tag are selected, in their order."""
    assert slugs(posts.select(tag=tag)) == found


def test_a_tag_counts_however_it_is_composed() -> None:
    """One word in two normal forms of Unicode is one tag."""
    assert slugs(shelve(make_post("a", tags=["Caf\u00e9"])).select(tag="cafe\u0301"))


def test_since_is_inclusive(posts: Posts) -> None:
    """A post of the very instant is among those since it."""
    since = format_instant(START + timedelta(days=5))

    assert slugs(posts.select(since=since)) == ["new", "a-twin", "b-twin"]


def test_a_cursor_outlives_its_post(posts: Posts) -> None:
    """A list goes on behind a post that is gone, and sees one that has come behind it."""
    after = posts.select()[1].cursor
    later = shelve(make_post("b-twin", 5), make_post("c", 4), make_post("old", 1))

    assert str(after) == "2026-01-06T00:00:00.000000Z_a-twin"
    assert slugs(later.select(after=after)) == ["b-twin", "c", "old"]


def test_a_cursor_need_not_have_a_valid_instant(posts: Posts) -> None:
    """Digits that are no date are a place all the same: before or behind everything."""
    first, last = (
        PostCursor("9999-99-99T99:99:99.999999Z", "a"),
        PostCursor("0000-00-00T00:00:00.000000Z", "a"),
    )

    assert len(posts.select(after=first)) == 4
    assert posts.select(after=last) == []


def test_searched_text_is_free_of_markup(posts: Posts) -> None:
    """Search gets every post, newest first, as the words that a reader sees."""
    texts = list(posts.texts())

    assert [text.slug for text in texts] == ["new", "a-twin", "b-twin", "old"]
    assert (texts[0].prose, texts[0].code) == ("Words of new.", "")


def test_a_page_of_posts_links_to_the_next() -> None:
    """The JSON of a part carries the address of the one behind it."""
    assert json.loads(serialize_list([], "/more")) == {"posts": [], "count": 0, "next": "/more"}


SLUGS = st.from_regex(r"[a-d]{1,2}", fullmatch=True)
JOURNALS = st.dictionaries(
    SLUGS, st.tuples(st.integers(0, 4), st.sets(st.sampled_from(["X", "y", "Z"]))), max_size=12
)


@given(
    journal=JOURNALS,
    limit=st.none() | st.integers(1, 5),
    tag=st.none() | st.sampled_from(["x", "Y", "z"]),
    since=st.none() | st.integers(0, 5),
    found=st.none() | st.sets(SLUGS),
)
def test_all_pages_together_are_all_posts(
    journal: Any, limit: int | None, tag: str | None, since: int | None, found: Any
) -> None:
    """Going from part to part gives each matching post once, as filtering a list would."""
    records = [make_post(slug, day, tags=sorted(tags)) for slug, (day, tags) in journal.items()]
    posts = shelve(*records)
    expected = [
        slug
        for slug, (day, tags) in sorted(journal.items(), key=lambda item: (-item[1][0], item[0]))
        if (tag is None or tag.upper() in {name.upper() for name in tags})
        and (since is None or day >= since)
        and (found is None or slug in found)
    ]
    spelt = None if since is None else format_instant(START + timedelta(days=since))

    gathered: list[str] = []
    after = None
    for _ in range(len(expected) + 2):
        part = posts.select(after, tag, spelt, found)[:limit]
        gathered += slugs(part)
        if not part:
            break
        after = part[-1].cursor

    assert gathered == expected
