"""Finding the route of a path."""

import pytest
from yarl import URL

from edge_api.http.dispatch import Routes

TARGETS = {"/api/posts": "list", "/api/posts/{slug}": "post", "/api/v1.0/": "root"}


def find(table: Routes[str], path: str) -> tuple[str, dict[str, str]] | None:
    """Return the target on a path as a client sends it, and its variables."""
    found = table.find(URL(path, encoded=True))
    return found and (found[0], dict(found[1]))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/posts", ("list", {})),
        ("/api/posts?tag=a", ("list", {})),
        ("/api/p%6Fsts", ("list", {})),
        ("/api/posts/a", ("post", {"slug": "a"})),
        ("/api/posts/caf%C3%A9", ("post", {"slug": "caf\u00e9"})),
        ("/api/posts/a%2Fb", ("post", {"slug": "a/b"})),
        ("/api/posts/a%252Fb", ("post", {"slug": "a%2Fb"})),
        ("/api/v1.0/", ("root", {})),
        ("/api/v1x0/", None),
        ("/api/posts/", None),
        ("/api/posts/a/b", None),
        ("/api", None),
        ("/", None),
        ("*", None),
    ],
)
def test_a_path_has_one_target(path: str, expected: object) -> None:
    """Fixed paths, and variable parts decoded; an encoded slash separates nothing."""
    assert find(Routes(TARGETS), path) == expected
