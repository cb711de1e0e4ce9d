"""The built pages of posts, against a hello-world, aiohttp's own static files, and nginx."""

from contextlib import ExitStack
from statistics import mean

from benchmarks import peers
from benchmarks.ground import Ground
from benchmarks.load import Load
from benchmarks.peers import HELLO, NGINX, STATIC
from benchmarks.race import EDGE, Runner, race
from benchmarks.section import Section, compare

_ABOUT = (
    "64 connections, the pages of 50 posts in random order, the same files everywhere, without a "
    "coding. No two requests are equal."
)


def measure(ground: Ground) -> Section:
    """Measure all pages of posts."""
    site = ground.site() / "current" / "site"
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("pages"))
        pages = [f"/journal/{slug}/" for slug in edge.slugs()]
        files = [f"{page}index.html" for page in pages]
        size = mean((site / file.strip("/")).stat().st_size for file in files)
        hello = stack.enter_context(peers.hello())
        static = stack.enter_context(peers.files(site))
        nginx = stack.enter_context(peers.nginx(ground.folder / "pages-nginx", site))
        held = race(
            f"Built pages of {size:,.0f} bytes on average",
            [
                Runner(EDGE, edge.server, Load(edge.server.origin, pages)),
                Runner(HELLO, hello, Load(hello.origin, ["/hello"])),
                Runner(STATIC, static, Load(static.origin, files)),
                Runner(NGINX, nginx, Load(nginx.origin, pages)),
            ],
        )
    reached = {f"page/{peer}": compare(held, peer) for peer in (HELLO, STATIC)}
    return Section("Pages of the site", _ABOUT, (held,), reached=reached)
