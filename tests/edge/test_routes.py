"""Finding what stands on a path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from edge_api.http import dispatch as app
from edge_api.http.dispatch import Routes

TARGETS = {"/api/posts": "list", "/api/posts/{slug}": "post", "/api/v1.0/": "root"}


def find(table: Routes[str], path: str) -> tuple[str, dict[str, str]] | None:
    """Return the target on a path as a client sends it, and its variables."""
    found = table.find(URL(path, encoded=True))
    return found and (found.target, dict(found.variables))


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
    table = Routes(TARGETS)

    assert find(table, path) == expected
    assert find(table, path) == expected, "asked again, it is remembered"


@given(st.lists(st.text("ab/%2F\u00e9", max_size=12), max_size=30))
def test_what_is_remembered_changes_nothing(paths: list[str]) -> None:
    """Whatever was asked before, a path is answered as if it were the first."""
    table = Routes(TARGETS)
    for path in paths:
        whole = f"/api/posts/{path}"
        assert find(table, whole) == find(Routes(TARGETS), whole)


def test_strangers_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many paths are remembered and no more, and the fixed ones always."""
    monkeypatch.setattr(app, "_MAX_CACHED_PATHS", 10)
    table = Routes(TARGETS)

    for number in range(50):
        assert find(table, f"/api/posts/{number}") == ("post", {"slug": str(number)})
        assert find(table, f"/nowhere/{number}") is None
    assert find(table, "/api/posts/" + "x" * 10_000) == ("post", {"slug": "x" * 10_000})

    assert len(table._cached) <= 10  # noqa: SLF001  what it holds is the point
    assert find(table, "/api/posts") == ("list", {})
