"""A journal behind Varnish: most views never reach the edge, and a new post shows at once."""

import asyncio
import json
import os
import random
import shutil
import time
from collections import Counter
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp import ClientSession

from tests.drills.varnish import receiver, varnish
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.patience import patience
from tests.shared_material import find_posts
from tests.site_build.workbench import PACKED, Workbench, list_inodes, name_build, run
from tests.sizes import is_whole, scaled

pytestmark = pytest.mark.size("ci", grows=True)

BROWSERS = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
)
"""The `Accept` of Firefox, Safari and Chrome."""
AGENT = "text/markdown, text/html;q=0.9"
NAMING_POSTS = ("/", "/feed.xml", "/feed.json", "/sitemap.xml", "/llms.txt", "/index.md")
"""Addresses that name a new post."""


def write_content(bench: Workbench) -> None:
    """Write the posts of the corpus in the largest run, else some of the test's own."""
    posts = find_posts() if is_whole() else []
    (bench.content / "posts").mkdir(parents=True)
    for path in posts:
        shutil.copy(path, bench.content / "posts")
    for number in range(0 if posts else scaled(ci=40, judge=1160)):
        bench.post(f"post-{number}", text=f"Text {number}. " * 40, tags=f"[tag-{number % 5}]")


def build(bench: Workbench, site_url: str) -> float:
    """Build the site as its user does; return when it was current."""
    words = [site_url if word.startswith("https://") else word for word in name_build(bench)]
    at = words.index("--now")
    done = run(*words[:at], *words[at + 2 :])
    assert done.returncode == 0, done.stderr
    return (bench.output / "current").lstat().st_ctime


def list_paths(bench: Workbench) -> list[str]:
    """Return the paths of pages, the most read first: the home page, then posts by chance."""
    site = bench.output / "current" / "site"
    found = [quote(f"/{each.parent.relative_to(site)}/") for each in site.rglob("index.html")]
    pages = sorted({*found} - {"/./"} - {each for each in found if each.startswith("/contact/")})
    random.Random(7).shuffle(pages)  # noqa: S311  no secret
    return ["/", *pages]


class Readers:
    """Readers of pages; the page with rank n has 1/n of the views of the first (Zipf)."""

    def __init__(self, session: ClientSession, origin: str, paths: list[str]) -> None:
        self.views: Counter[bool] = Counter()  # by whether Varnish answered without the edge
        self._session, self._origin, self._paths = session, origin, paths
        self._weights = list(accumulate(1 / rank for rank in range(1, len(paths) + 1)))
        self._luck = random.Random(20)  # noqa: S311  no secret

    async def read(self, number: int) -> None:
        """View so many pages; one in a hundred by a link with a campaign in its query."""
        await asyncio.gather(*(self._read(number // 8) for _ in range(8)))

    async def _read(self, number: int) -> None:
        for path in self._luck.choices(self._paths, cum_weights=self._weights, k=number):
            query = "?utm_source=letter" if self._luck.random() < 0.01 else ""
            headers = {"Accept": self._luck.choice(BROWSERS), "Accept-Encoding": "gzip, br"}
            async with self._session.get(self._origin + path + query, headers=headers) as answer:
                assert answer.status == 200, path
                assert answer.content_type == "text/html"
                await answer.read()
                self.views[" " in answer.headers["X-Varnish"]] += 1
            if self._luck.random() < 0.02:  # an agent at the same address, then the next browser
                headers = {"Accept": AGENT}
                async with self._session.get(self._origin + path, headers=headers) as answer:
                    assert answer.content_type in {"text/markdown", "text/html"}
                    has_markdown = 'type="text/markdown"' in answer.headers.get("Link", "")
                    assert answer.content_type == "text/markdown" or not has_markdown


async def test_a_cdn_answers_and_forgets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """HTML and Markdown are never mixed, 95 % of views are its own, and purges show a new post.

    They take what a build changed and nothing else; after a build without an edge, everything.
    """
    port, purge_port, hook_port = free_port(), free_port(), free_port()
    origin = f"http://127.0.0.1:{port}"
    bench = Workbench(tmp_path / "content", tmp_path / "build")
    await asyncio.to_thread(write_content, bench)
    await asyncio.to_thread(build, bench, origin)
    settings = {
        "PORT": str(free_port()),
        "SITE_URL": origin,
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(bench.output),
        "CONTENT_DIR": str(bench.content),
        "CDN_SECONDS": "86400",
        "TRUSTED_PROXIES": "127.0.0.1",
    }
    installation = Installation(tmp_path, settings)
    hook = f"http://127.0.0.1:{hook_port}/"
    code, said, complained = installation.run(
        "webhooks", "add", hook, "--events", "site.changed", "--json"
    )
    assert code == 0, complained
    with ExitStack() as stack:
        serving = stack.enter_context(ExitStack())
        edge = serving.enter_context(installation.serving())
        stack.enter_context(varnish(tmp_path, port, purge_port, edge.port))
        stack.enter_context(receiver(hook_port, purge_port, json.loads(said)["secret"]))
        await await_readiness(edge)
        await await_deliveries(installation)
        async with ClientSession() as session:
            pages = list_paths(bench)
            readers = Readers(session, origin, pages)
            views = scaled(ci=6000, judge=60_000) // 2
            await readers.read(views)
            for path in NAMING_POSTS:
                assert not await find(session, origin + path, "brand-new")
            bench.post("brand-new", day=time.strftime("%Y-%m-%d"), tags="[tag-1]")
            for path in pages:
                await is_kept(session, origin + path)
            before = list_inodes(bench.output / "current" / "site")
            swapped = await asyncio.to_thread(build, bench, origin)
            after = list_inodes(bench.output / "current" / "site")
            changed = [each for each in {*before, *after} if before.get(each) != after.get(each)]
            at_edge = f"http://127.0.0.1:{edge.port}"
            by_edge = await wait_until_shown(session, at_edge, "brand-new") - swapped
            by_varnish = await wait_until_shown(session, origin, "brand-new") - swapped
            await await_deliveries(installation)
            unchanged = await check_kept(session, origin, at_edge, pages, changed)
            await readers.read(views)
            serving.close()
            bench.post("newest", day=time.strftime("%Y-%m-%d"), tags="[tag-1]")
            await asyncio.to_thread(build, bench, origin)
            assert await is_kept(session, origin + unchanged[0])
            serving.enter_context(installation.serving())
            await wait_until_shown(session, origin, "newest")
            assert not await is_kept(session, origin + unchanged[0])
    own, total = readers.views[True], readers.views.total()
    with capsys.disabled():
        print(  # noqa: T201  what a person wants of a drill
            f"\na CDN: {own} of {total} page views ({own / total:.1%}) without the edge, "
            f"of {len(pages)} pages, which begin unknown; a new post changed "
            f"{sum(not each.endswith(PACKED) for each in changed)} addresses, and showed "
            f"{by_edge:.1f} s after its build at the edge, {by_varnish:.1f} s at Varnish; "
            f"load {os.getloadavg()[0]:.0f}"
        )
    assert own / total >= 0.95


async def await_readiness(edge: ServedEdge) -> None:
    """Wait until the edge has found that purges work."""
    check = {}
    for _ in range(round(patience())):
        _, _, body = await asyncio.to_thread(edge.get, "/api/public/v1/readiness")
        check = json.loads(body)["checks"]["cdn"]
        if check["status"] == "pass":
            return
        await asyncio.sleep(1)
    raise AssertionError(check)


async def check_kept(
    session: ClientSession, origin: str, at_edge: str, pages: list[str], changed: list[str]
) -> list[str]:
    """Assert that Varnish kept what did not change, and has else what the edge has.

    Return the pages that did not change; `changed` has names of files.
    """
    addresses = {name_address(each) for each in changed if not each.endswith(PACKED)}
    unchanged = [each for each in pages if each not in addresses]
    assert unchanged
    for path in unchanged:
        assert await is_kept(session, origin + path), path
    for path in addresses:
        assert await read(session, origin + path) == await read(session, at_edge + path), path
    return unchanged


async def await_deliveries(installation: Installation) -> None:
    """Wait until no purge waits to be sent."""
    for _ in range(round(patience())):
        _, said, _ = await asyncio.to_thread(installation.run, "webhooks", "list", "--json")
        if json.loads(said)[0]["waiting"] == 0:
            return
        await asyncio.sleep(1)
    raise AssertionError(said)


def name_address(name: str) -> str:
    """Return the address of a file of the site."""
    return quote(f"/{name}".removesuffix("index.html"))


async def is_kept(session: ClientSession, url: str) -> bool:
    """Return whether Varnish answers for an address without the edge."""
    async with session.get(url, headers={"Accept": BROWSERS[0]}) as answer:
        await answer.read()
        return " " in answer.headers["X-Varnish"]


async def read(session: ClientSession, url: str) -> tuple[int, bytes]:
    """Return the status and the body of an answer."""
    async with session.get(url, headers={"Accept": BROWSERS[0]}) as answer:
        return answer.status, await answer.read()


async def find(session: ClientSession, url: str, slug: str) -> bool:
    """Return whether an address names a post."""
    async with session.get(url, headers={"Accept": BROWSERS[0]}) as answer:
        return f"/{slug}/" in await answer.text()


async def wait_until_shown(session: ClientSession, origin: str, slug: str) -> float:
    """Return when the last of these addresses named the new post."""
    missing = [*NAMING_POSTS]
    for _ in range(round(patience() / 0.05)):
        while missing and await find(session, origin + missing[0], slug):
            missing.pop(0)
        if not missing:
            return time.time()
        await asyncio.sleep(0.05)
    raise AssertionError(missing)
