"""A page of the built site, against a hello-world, aiohttp's own static files, and nginx."""

from contextlib import ExitStack

from benchmarks import peers
from benchmarks.ground import Ground
from benchmarks.load import Load
from benchmarks.peers import HELLO, NGINX, STATIC
from benchmarks.race import EDGE, Runner, race
from benchmarks.section import Section, compare

_ABOUT = "64 connections, the same file everywhere, without a coding."


def measure(ground: Ground) -> Section:
    """Measure one page."""
    site = ground.site() / "current" / "site"
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("pages"))
        page = f"/journal/{edge.newest_post()}/"
        size = (site / page.strip("/") / "index.html").stat().st_size
        hello = stack.enter_context(peers.hello())
        static = stack.enter_context(peers.files(site))
        nginx = stack.enter_context(peers.nginx(ground.folder / "pages-nginx", site))
        ours = Runner(EDGE, edge.server, Load(f"{edge.server.origin}{page}"))
        held = race(
            f"A built page of {size:,} bytes",
            [
                ours,
                Runner(HELLO, hello, Load(f"{hello.origin}/hello")),
                Runner(STATIC, static, Load(f"{static.origin}{page}index.html")),
                Runner(NGINX, nginx, Load(f"{nginx.origin}{page}")),
            ],
        )
    reached = {f"page/{peer}": compare(held, peer) for peer in (HELLO, STATIC)}
    return Section("Pages of the site", _ABOUT, (held,), reached=reached)
