"""Posts by key, against a hello-world, the usual framework, a publisher of tables, and nginx."""

from contextlib import ExitStack
from pathlib import Path

from benchmarks import peers
from benchmarks.ground import Edge, Ground
from benchmarks.load import Load
from benchmarks.peers import DATASETTE, FASTAPI, HELLO, NGINX
from benchmarks.race import EDGE, Race, Runner, race
from benchmarks.section import Reached, Section, compare
from benchmarks.server import Served

_ABOUT = (
    "64 connections. Every server but hello-world, nginx and Datasette checks a key. nginx serves "
    "the very answers of the edge as files."
)


def measure(ground: Ground) -> Section:
    """Measure one post and the list of all."""
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("reading"))
        servers = _start_peers(stack, ground, edge)
        slug = edge.newest_post()
        post = race("One post, keyed", _runners(edge, servers, f"/posts/{slug}"))
        posts = race("The list of 50 posts, keyed", _runners(edge, servers, "/posts"))
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
    """Put down what the edge answers, as files for nginx."""
    (folder / "posts").mkdir(parents=True, exist_ok=True)
    slug = edge.newest_post()
    (folder / "index.html").write_text("hello")
    (folder / "posts.json").write_bytes(edge.get("/posts"))
    (folder / "posts" / f"{slug}.json").write_bytes(edge.get(f"/posts/{slug}"))


def _runners(edge: Edge, servers: dict[str, Served], path: str) -> list[Runner]:
    tables = f"/posts{path}.json"
    options = "?_size=50&_nocount=1&_nofacet=1&_shape=objects" if path == "/posts" else ""
    urls = {
        HELLO: "/hello",
        FASTAPI: path,
        DATASETTE: f"{tables}{options}",
        NGINX: f"{path}.json",
    }
    theirs = [
        Runner(name, server, Load(f"{server.origin}{urls[name]}", edge.keyed))
        for name, server in servers.items()
    ]
    ours = Runner(EDGE, edge.server, Load(edge.url(path), edge.keyed))
    return [ours, *theirs]


def _reached(**races: Race) -> dict[str, Reached]:
    return {
        f"{name}/{peer}": compare(held, peer)
        for name, held in races.items()
        for peer in (HELLO, FASTAPI, DATASETTE)
    }
