"""Paths that look like one that is not there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.journal.site_files import PathSuggester

PATHS = (
    "/",
    "/about/",
    "/journal/what-a-fore-edge-is/",
    "/journal/the-api-from-python/",
    "/journal/the-api-from-javascript/",
    "/journal/publishing-a-post/",
    "/tags/running/",
    "/tags/\u672c\u68da\u306e\u8a71/",
)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("/journal/the-api-from-pyhton/", "/journal/the-api-from-python/"),
        ("/journal/the_api_from_python", "/journal/the-api-from-python/"),
        ("/blog/publishing-a-post.html", "/journal/publishing-a-post/"),
        ("/JOURNAL/WHAT-A-FOREEDGE-IS", "/journal/what-a-fore-edge-is/"),
        ("/2024/05/publishing-post/", "/journal/publishing-a-post/"),
        ("/abuot/", "/about/"),
        ("/tags/\u672c\u68da\u306e/", "/tags/\u672c\u68da\u306e\u8a71/"),
    ],
)
def test_a_misspelt_path_suggests_the_right_one(asked: str, first: str) -> None:
    """Wrong letters, signs, folders and endings lead to the page whose name is nearest."""
    assert PathSuggester(PATHS).find(asked, 3)[0] == first


@pytest.mark.parametrize("asked", ["/wp-login.php", "/.env", "/", "", "x", "/qqqqqqqqqq/"])
def test_an_unlike_path_suggests_nothing(asked: str) -> None:
    """Nothing is named for the sake of naming something."""
    assert PathSuggester(PATHS[1:]).find(asked, 3) == []


def test_the_likest_come_first_and_no_more_than_asked_for() -> None:
    """The nearest of many similar paths are named, in a stable order."""
    posts = [f"/journal/printing-number-{number}/" for number in range(2000)]
    nearby = PathSuggester(posts)

    found = nearby.find("/journal/printing-number-77", 5)

    assert len(found) == 5
    assert found == nearby.find("/journal/printing-number-77", 5)


@given(st.text(max_size=400))
def test_no_path_is_too_odd_to_be_asked_for(asked: str) -> None:
    """For any path, the answer is some of the known paths."""
    assert set(PathSuggester(PATHS).find(asked, 3)) <= set(PATHS)


def test_an_empty_site_has_nothing_near() -> None:
    """Without paths there is nothing to name."""
    assert PathSuggester(()).find("/journal/a/", 5) == []
