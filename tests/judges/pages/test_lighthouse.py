"""Lighthouse on the two pages that most readers see first; the longer run has all, and speed."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.judges.pages.crawl import crawl, kind, largest_of_each_kind
from tests.judges.pages.lighthouse import UNLISTED, Demands, Verdict, faults_of, run
from tests.judges.pages.served import Served
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

PAGES = scaled(test=1, ci=2)
_BROKEN = b"""<!DOCTYPE html><html><head><meta name=robots content=noindex></head>
<body><img src=/x.png><button></button><p style="color:#eee;background:#fff">Pale</p>
<script>console.error("x"); throw new Error("y")</script></body></html>"""


@pytest.mark.size("test", grows=True)
async def test_pages_have_a_hundred(chromium: str, journal: Served, tmp_path: Path) -> None:
    """The longest post and home, on a telephone, in all that does not depend on the machine.

    The content signals of robots.txt cost no points of `seo` (decision 72).
    """
    assert b"\nContent-Signal: " in journal.get("/robots.txt")[2]
    pages = crawl(journal)
    post = next(path for path in largest_of_each_kind(pages) if kind(path, pages) == "/journal/*/")
    found: dict[str, list[str]] = {}
    judged = ((post, "mobile dark"), ("/", "mobile light"))[:PAGES]
    for path, guise in judged:
        for verdict in await run(chromium, journal.origin + path, [guise], tmp_path):
            found[path] = faults_of(verdict, Demands(is_listed=True, is_timed=False))

    assert found == {path: [] for path, _ in judged}


@pytest.mark.size("ci")
async def test_a_broken_page_is_found(chromium: str, tmp_path: Path) -> None:
    """A fault of readers, searchers and agents costs points in each of their categories."""

    class Broken(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(_BROKEN)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Broken)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        (verdict,) = await run(chromium, url, ["mobile light"], tmp_path)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

    found = "\n".join(faults_of(verdict, Demands(is_listed=True)))
    for category in ("accessibility", "best-practices", "seo", "agentic-browsing"):
        assert category in found, found
    assert UNLISTED in found


@pytest.mark.parametrize(
    ("lcp", "cls", "count", "said"),
    [
        (1201.0, 0.0, 5, "LCP 1201 ms"),
        (900.0, 0.01, 5, "CLS 0.01"),
        (900.0, 0.0, 4, "4 categories"),
    ],
)
def test_core_web_vitals_count(lcp: float, cls: float, count: int, said: str) -> None:
    """A slow first look, a page that moves and a category that is missing are faults."""
    scores = dict.fromkeys("abcde"[:count], 100)

    assert faults_of(Verdict("mobile light", scores, [], lcp, cls), Demands(is_listed=True)) == [
        said
    ]


def test_a_busy_machine_is_no_fault() -> None:
    """Timings, which are longer on a busy machine, count only on request."""
    slow = Verdict("x", {**dict.fromkeys("abcd", 100), "performance": 61}, [], 9000.0, 0.0)

    assert len(faults_of(slow, Demands(is_listed=True))) == 2
    assert faults_of(slow, Demands(is_listed=True, is_timed=False)) == []


def test_a_page_that_hides_may_lose_for_that_alone() -> None:
    """A page with `noindex` loses points for it, and may for nothing else."""
    scores = {**dict.fromkeys("abcd", 100), "seo": 69}
    hidden = {"category": "seo", "audit": UNLISTED, "said": "", "items": []}
    other = {**hidden, "audit": "meta-description"}

    alone = Verdict("mobile light", scores, [hidden], 1.0, 0.0)
    assert faults_of(alone, Demands(is_listed=False)) == []
    assert faults_of(alone, Demands(is_listed=True)) != []
    assert (
        faults_of(Verdict("x", scores, [hidden, other], 1.0, 0.0), Demands(is_listed=False)) != []
    )
