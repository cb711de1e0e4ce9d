"""Posts by key, against a hello-world, the usual framework, a publisher of tables, and nginx."""

from collections.abc import Callable
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

_LIST: Final = "?_size=50&_nocount=1&_nofacet=1&_shape=objects"
_PATHS: Final[dict[str, Callable[[str], str]]] = {
    EDGE: lambda path: f"{API}{path}",
    HELLO: lambda _path: "/hello",
    FASTAPI: lambda path: path,
    DATASETTE: lambda path: f"/posts{path}.json{_LIST if path == '/posts' else ''}",
    NGINX: lambda path: f"{path}.json",
}
"""Where each server has what the API has at a path."""
_ABOUT = (
    "64 connections; the posts in random order, and the list of all. No two requests are equal. "
    "Every server but hello-world, nginx and Datasette checks a key. nginx serves the very answers "
    "of the edge as files."
)


def measure(ground: Ground) -> Section:
    """Measure single posts and the list of all."""
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("reading"))
        servers = {EDGE: edge.server, **_start_peers(stack, ground, edge)}
        paths = [f"/posts/{slug}" for slug in edge.slugs()]
        post = race("One post of 50, keyed", _runners(edge, servers, paths))
        posts = race("The list of 50 posts, keyed", _runners(edge, servers, ["/posts"]))
    return Section("Posts", _ABOUT, (post, posts), reached=_reached(post=post, posts=posts))


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
    for path in ("/posts", *(f"/posts/{slug}" for slug in edge.slugs())):
        (folder / f"{path.strip('/')}.json").write_bytes(edge.get(path))


def _runners(edge: Edge, servers: dict[str, Served], paths: list[str]) -> list[Runner]:
    return [
        Runner(name, server, Load(server.origin, list(map(_PATHS[name], paths)), edge.keyed))
        for name, server in servers.items()
    ]


def _reached(**races: Race) -> dict[str, Reached]:
    return {
        f"{name}/{peer}": compare(held, peer)
        for name, held in races.items()
        for peer in (HELLO, FASTAPI, DATASETTE)
    }
