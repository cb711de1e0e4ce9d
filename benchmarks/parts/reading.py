"""Posts by key, against a hello-world, the usual framework, a publisher of tables, and nginx."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import peers
from benchmarks.ground import API, Edge, Ground
from benchmarks.load import Load
from benchmarks.peers import DATASETTE, FASTAPI, HELLO, NGINX
from benchmarks.race import EDGE, Race, Runner, race
from benchmarks.section import Reached, Section, compare
from benchmarks.server import Served

PARTS_OF_LIST: Final = [f"/posts?limit={limit}" for limit in range(40, 51)]
"""Lists of 45 posts on average."""
_PLAIN: Final = "_nocount=1&_nofacet=1&_shape=objects"
_PATHS: Final[dict[str, Callable[[str], str]]] = {
    EDGE: lambda path: f"{API}{path}",
    HELLO: lambda _path: "/hello",
    FASTAPI: lambda path: path,
    DATASETTE: lambda path: f"/posts{_table_of(path)}",
    NGINX: lambda path: f"{path.replace('?limit=', '/limit-')}.json",
}
"""Where each server has what the API has at a path."""
_ABOUT = (
    "64 connections; single posts, the list of all, and lists of the newest 40 to 50, in random "
    "order. The edge has the list of all ready, and puts the others together for each request. No "
    "two requests are equal. Every server but hello-world, nginx and Datasette checks a key. nginx "
    "serves the very answers of the edge as files."
)


def measure(ground: Ground) -> Section:
    """Measure single posts and lists of them."""
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("reading"))
        servers = {EDGE: edge.server, **_start_peers(stack, ground, edge)}
        paths = [f"/posts/{slug}" for slug in edge.slugs()]
        post = race("One post of 50, keyed", _runners(edge, servers, paths))
        whole = race("The list of 50 posts, keyed", _runners(edge, servers, ["/posts"]))
        parts = race("Lists of 40 to 50 posts, keyed", _runners(edge, servers, PARTS_OF_LIST))
    races = {"post": post, "posts": whole, "newest posts": parts}
    return Section("Posts", _ABOUT, tuple(races.values()), reached=_reached(races))


def _start_peers(stack: ExitStack, ground: Ground, edge: Edge) -> dict[str, Served]:
    index = ground.site() / "current" / "posts.json"
    home = ground.folder / "reading-peers"
    home.mkdir(exist_ok=True)
    posts, leads = home / "posts.db", ground.database("reading-peer", 0)
    posts.unlink(missing_ok=True)
    peers.write_posts(index, posts)
    _write_answers(edge, home / "answers")
    return {
        HELLO: stack.enter_context(peers.hello()),
        FASTAPI: stack.enter_context(peers.fastapi(index, leads, edge.keys)),
        DATASETTE: stack.enter_context(peers.datasette(posts, leads)),
        NGINX: stack.enter_context(peers.nginx(home / "nginx", home / "answers")),
    }


def _write_answers(edge: Edge, folder: Path) -> None:
    """Write what the edge answers as files for nginx."""
    (folder / "posts").mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text("hello")
    slugs = [f"/posts/{slug}" for slug in edge.slugs()]
    for path in ("/posts", *PARTS_OF_LIST, *slugs):
        (folder / _PATHS[NGINX](path).strip("/")).write_bytes(edge.get(path))


def _table_of(path: str) -> str:
    name, _, limit = path.partition("?limit=")
    is_list = name == "/posts"
    return f"{name}.json" + f"?_size={limit or 50}&{_PLAIN}" * is_list


def _runners(edge: Edge, servers: dict[str, Served], paths: list[str]) -> list[Runner]:
    return [
        Runner(name, server, Load(server.origin, list(map(_PATHS[name], paths)), edge.keyed))
        for name, server in servers.items()
    ]


def _reached(races: Mapping[str, Race]) -> dict[str, Reached]:
    return {
        f"{name}/{peer}": compare(held, peer)
        for name, held in races.items()
        for peer in (HELLO, FASTAPI, DATASETTE)
    }
