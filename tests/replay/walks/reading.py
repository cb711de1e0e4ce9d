"""Walks through what is read: posts, search, the documents that describe the service."""

from typing import Final
from urllib.parse import quote

from tests.replay.walk import Walk, walk

API: Final = "/api/public/v1"
POSTS: Final = f"{API}/posts"
SEARCH: Final = f"{API}/search"
STATS: Final = f"{API}/stats"
QUERIES: Final = (
    "limit=1",
    "limit=3",
    "limit=1000",
    "limit=0",
    "limit=1001",
    "limit=-1",
    "limit=x",
    "limit=",
    "limit=1.0",
    "limit=%2B1",
    "limit=01",
    "limit=1&limit=2",
    "limit=%D9%A1",
    "limit=1e2",
    "tag=bindings",
    "tag=BINDINGS",
    "tag=none",
    "tag=",
    "tag=Gr%C3%B6%C3%9Fe",
    "tag=secret-tag",
    "tag=%00",
    "q=edge",
    "q=sheet",
    "q=sheet+glue",
    "q=%22cut+and+sewn%22",
    "q=",
    "q=%00",
    "q=pag",
    "q=painting",
    "q=nothing-like-it",
    "q=UNPUBLISHED",
    "q=%E7%B4%99",
    "q=cafe",
    "q=a*",
    "q=%22",
    "since=2024-03-01",
    "since=2024-03-15T09:00:00Z",
    "since=2024-03-15T09:00:01Z",
    "since=x",
    "since=2024-03-15T10:00:00%2B01:00",
    "since=2024-02-30",
    "since=",
    "since=2024",
    "since=now",
    "cursor=x",
    "cursor=",
    "unknown=1",
    "unknown=1&limit=1",
    "tag=tools&limit=2&q=sheet",
    "cursor=2024-04-05T09:00:00.000000Z_sheet-05",
    "cursor=2024-04-05T09:00:00.000000Z_",
    "cursor=1999-01-01T00:00:00.000000Z_a",
    "limit=2&since=2024-04-09",
    "select=slug",
    "%zz=1",
)
SLUGS: Final = (
    "first-edge",
    "sewing-and-folding",
    "marbled-paper",
    "sheet-10",
    "oldest-edge",
    "none",
    "a-draft",
    "not-yet",
    "First-Edge",
    "first%2Dedge",
    "first-edge%2F",
    "%C3%A9",
    "%00",
    "a" * 300,
    "first-edge/",
    "first-edge/x",
    "..",
    "%2e%2e",
    "first-edge?x=1",
    " ",
)
WORDS: Final = (
    "edge",
    "Edge",
    "edges",
    "painting",
    "sheet",
    "sheet glue",
    "sheet -glue",
    '"cut and sewn"',
    '"sheet',
    "she",
    "s",
    "",
    " ",
    "marbeld",
    "gildng",
    "none such",
    "sheet none",
    "AND",
    "OR a",
    "NEAR(a b)",
    "title:edge",
    "*",
    "a*",
    '"',
    "(",
    "'; DROP TABLE post; --",
    "<b>sheet</b>",
    "{{ 7*7 }}",
    "café",
    "cafe\u0301",
    "紙",
    "\U0001f4d6",
    "\u202esheet",
    "si\x00te",
    "a\r\nb: c",
    "x" * 200,
    "sheet " * 150,
    "%41",
    "ink press",
    "noon",
    "On ink",
    "binder's",
    "\ufdd0edge\ufdd1",
)
DOCUMENTS: Final = (
    f"{API}/",
    API,
    f"{API}/openapi.json",
    "/.well-known/api-catalog",
    "/.well-known/jwks.json",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/api/public/v1",
    "/.well-known/oauth-protected-resource/api/public/mcp",
    "/api/public/mcp/server-card",
    "/.well-known/mcp/server-card.json",
    "/.well-known/ai-catalog.json",
    "/.well-known/none",
    "/api/public/ping",
    f"{API}/readiness",
)


@walk("reading-posts", fresh=False)
def posts(w: Walk) -> None:
    """List posts in whole and in part, and read single ones."""
    tag = w.get(POSTS, key="posts").header("ETag")
    w.get(POSTS, key="posts", headers={"If-None-Match": tag})
    w.get(POSTS, key="posts", headers={"If-None-Match": f'W/{tag}, "x"'})
    w.get(POSTS, key="posts", headers={"Accept-Encoding": "gzip"})
    w.get(POSTS, key="posts", headers={"Accept-Encoding": "br", "If-None-Match": tag})
    w.ask("HEAD", POSTS, key="posts")
    w.get(POSTS, bearer="posts")
    w.get(POSTS, bearer="all", headers={"Range": "bytes=0-9"})
    for query in QUERIES:
        w.get(f"{POSTS}?{query}", key="posts")
    for slug in SLUGS:
        w.get(f"{POSTS}/{quote(slug, safe='%/?=')}", key="posts")
    tag = w.get(f"{POSTS}/first-edge", key="posts").header("ETag")
    w.get(f"{POSTS}/first-edge", key="posts", headers={"If-None-Match": tag})
    w.ask("HEAD", f"{POSTS}/first-edge", key="posts")
    w.ask("HEAD", f"{POSTS}/none", key="posts")


@walk("reading-pages-of-posts", fresh=False)
def pages_of_posts(w: Walk) -> None:
    """Follow the list from page to page, to its end."""
    for start in ("limit=4", "limit=3&tag=tools", "limit=5&q=sheet", "limit=6&since=2024-03-01"):
        path = f"{POSTS}?{start}"
        for _ in range(6):
            answer = w.get(path, key="posts")
            following = answer.json().get("next")
            if not following:
                break
            path = str(following)


@walk("reading-search", fresh=False)
def search(w: Walk) -> None:
    """Search as data and as a page, with plain and with odd words."""
    for words in WORDS:
        w.get(f"{SEARCH}?q={quote(words)}")
        w.get(f"/search?q={quote(words)}")
    for query in (
        "",
        "?",
        "?q=sheet&limit=1",
        "?q=sheet&limit=0",
        "?q=sheet&limit=51",
        "?limit=x",
        "?x=1",
        "?q=a&q=edge",
        "?q=%ff",
        "?q=" + "a" * 1001,
        "?q=sheet&limit=20",
    ):
        w.get(f"{SEARCH}{query}")
    for query in (
        "",
        "?page=2",
        "?q=sheet&page=2",
        "?q=sheet&page=0",
        "?q=sheet&page=x",
        "?q=sheet&page=99",
        "?q=a&q=edge",
        "?q=%ff",
        "?page=1&q=sheet",
        "?q=sheet&x=1",
        "?q=" + "a" * 1001,
    ):
        tag = w.get(f"/search{query}").header("ETag")
        w.get(f"/search{query}", headers={"If-None-Match": tag})
        w.get(f"/search{query}", headers={"Accept": "text/markdown"})
    w.ask("HEAD", "/search?q=edge")
    w.ask("HEAD", f"{SEARCH}?q=edge")
    tag = w.get(f"{SEARCH}?q=edge").header("ETag")
    w.get(f"{SEARCH}?q=edge", headers={"If-None-Match": tag})
    w.get(f"{SEARCH}?q=sheet", headers={"Accept-Encoding": "gzip"})
    w.get("/search?q=sheet", headers={"Accept-Encoding": "gzip"})


@walk("reading-stats", fresh=False)
def stats(w: Walk) -> None:
    """Read the counts of days on which nothing was counted, and what is refused.

    The sums themselves have what the walks before have opened today.
    """
    past = "since=2025-01-01&until=2025-01-31"
    for accept in ("text/csv", "application/json;q=0.5, text/csv"):
        w.get(f"{STATS}?{past}", key="all", headers={"Accept": accept})
    for query in ("since=x", "until=2025-02-30", "since=2025-02-01&until=2025-01-01", "limit=x"):
        w.get(f"{STATS}?{query}", key="all")
    w.get(f"{STATS}?{past}&path=%00", key="all")
    w.get(STATS, key="posts")
    w.get(STATS)


@walk("reading-documents", fresh=False)
def documents(w: Walk) -> None:
    """Read each document that describes the service, in each way in which it can be read."""
    for path in DOCUMENTS:
        tag = w.get(path).header("ETag")
        w.get(path, headers={"If-None-Match": tag or '"x"'})
        w.get(path, headers={"Accept-Encoding": "gzip, br;q=0.5"})
        w.get(path, headers={"Accept-Encoding": "br"})
        w.ask("HEAD", path)
        w.get(path, key="posts", headers={"Origin": "https://other.example"})
        w.get(path, headers={"Accept": "text/html"})
        w.get(path, headers={"X-Request-ID": "replay-request-1"})
    for given in ("short", "a" * 64, "a" * 65, "bad id with blanks", "id-\xe9-12345", "A1b2C3d4"):
        w.get("/api/public/ping", headers={"X-Request-ID": given})
