"""Reading documents at addresses of others: a server of the test's own, and what it is asked."""

import asyncio
import gzip
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from edge_api.analysis import fetch as visitor_module
from edge_api.analysis.analyst import MAX_DOCUMENT_BYTES
from edge_api.analysis.document import AI_CATALOG, LLMS, ROBOTS, SITEMAP
from edge_api.analysis.fetch import WebDocumentFetcher
from edge_api.analysis.report import Job
from edge_api.db.problems import Problem
from edge_api.net.ssrf_guard import SsrfGuard

pytestmark = pytest.mark.one_engine

AGENT = "fore-edge/1.0 (+http://journal.test/)"
PAGE = "<!doctype html><title>There</title><p>Caf\u00e9"


@dataclass
class Site:
    """A site, whose answers are set by each test, and the requests that it got."""

    answers: dict[str, web.Response] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    origin: str = ""
    port: int = 0

    async def answer(self, request: web.Request) -> web.Response:
        """Answer as the test has said."""
        self.asked.append(request.path)
        self.agents.add(request.headers["User-Agent"])
        assert "Cookie" not in request.headers
        if request.path == "/slow":
            await asyncio.sleep(5)
        found = self.answers.get(request.path)
        return web.Response(status=404) if found is None else found

    async def visit(self, path: str) -> Job:
        """Visit a path of the site."""
        gate = SsrfGuard(lambda address: address.is_loopback)
        return await WebDocumentFetcher(AGENT, gate, frozenset({self.port}))(f"{self.origin}{path}")

    async def refuse(self, path: str) -> Problem:
        """Return the problem that a visit ends with."""
        with pytest.raises(Problem) as caught:
            await self.visit(path)
        return caught.value


@pytest.fixture
async def site(aiohttp_server: AiohttpServer) -> Site:
    """Return a site on this machine."""
    found = Site()
    app = web.Application()
    app.router.add_get("/{path:.*}", found.answer)
    server = await aiohttp_server(app, shutdown_timeout=0)
    found.port = server.port or 0
    found.origin = f"http://127.0.0.1:{found.port}"
    return found


def text(body: str, kind: str = "text/plain") -> web.Response:
    """Return an answer of text."""
    return web.Response(text=body, content_type=kind, charset="utf-8")


def chain(length: int) -> dict[str, web.Response]:
    """Return answers that lead on from /0, and a text at the end."""
    answers = {
        f"/{number}": web.Response(status=302, headers={"Location": f"/{number + 1}"})
        for number in range(length)
    }
    return {**answers, f"/{length}": text("There.")}


async def test_a_page_is_read_with_what_its_origin_says(site: Site) -> None:
    """Six requests in all, in our name, robots.txt first; a page in place of a file is none."""
    site.answers = {
        "/page": text(PAGE, "text/html"),
        ROBOTS: text("User-agent: *\nDisallow: /private\n"),
        LLMS: text("# There\n"),
        AI_CATALOG: text("<h1>Not found", "text/html"),
    }
    found = await site.visit("/page?x=1#part")

    assert found.url == f"{site.origin}/page?x=1"
    assert (found.kind, found.text) == ("html", PAGE)
    assert (found.discovery or {})[ROBOTS] is not None
    assert (found.discovery or {})[LLMS] == "# There\n"
    assert (found.discovery or {})[SITEMAP] is None
    assert (found.discovery or {})[AI_CATALOG] is None
    assert site.asked[:2] == [ROBOTS, "/page"]
    assert len(site.asked) == 6
    assert site.agents == {AGENT}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("text/html", "html"), ("text/markdown", "markdown"), ("text/plain", "text")],
)
async def test_the_media_type_chooses_the_parser(site: Site, kind: str, expected: str) -> None:
    """HTML, Markdown and plain text are read."""
    site.answers["/x"] = text("x", kind)

    assert (await site.visit("/x")).kind == expected


async def test_redirects_are_followed_three_times(site: Site) -> None:
    """And not a fourth time."""
    site.answers = chain(4)
    assert (await site.visit("/1")).url == f"{site.origin}/4"
    assert len(site.asked) == 6, "what is left goes to the well-known places"

    site.answers = chain(4)
    assert "more than 3 times" in (await site.refuse("/0")).message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (web.Response(status=404), "url: its server answers 404"),
        (web.Response(status=500), "url: its server answers 500"),
        (text("{}", "application/json"), "url: it is neither HTML nor Markdown nor plain text"),
        (web.Response(body=b"x"), "url: it is neither HTML nor Markdown nor plain text"),
        (text("x" * (MAX_DOCUMENT_BYTES + 1)), "url: the document is larger than 2 MiB"),
        (
            web.Response(
                body=gzip.compress(bytes(50_000_000)),
                content_type="text/plain",
                headers={"Content-Encoding": "gzip"},
            ),
            "url: it came in a coding that was not asked for",
        ),
        (
            web.Response(status=302, headers={"Location": "file:///etc/passwd"}),
            "url: only http and https are read",
        ),
        (
            web.Response(status=302, headers={"Location": "http://me:word@127.0.0.1/"}),
            "url: an address with a user or a password is not read",
        ),
        (
            web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
            "url: only the ports 80 and 443 are read",
        ),
    ],
)
async def test_an_unreadable_url_is_reported_in_a_sentence(
    site: Site, answer: web.Response, message: str
) -> None:
    """422, or 403 where it may not be read; nothing of its content is repeated."""
    site.answers["/x"] = answer
    problem = await site.refuse("/x")

    assert problem.message == message
    assert problem.status == (403 if answer.status == 302 else 422)


async def test_no_more_than_the_limit_is_read(site: Site) -> None:
    """2 MiB, whatever the bytes are."""
    site.answers["/x"] = web.Response(body=b"\xff" * MAX_DOCUMENT_BYTES, content_type="text/plain")

    assert (await site.visit("/x")).text == "\ufffd" * MAX_DOCUMENT_BYTES


async def test_robots_txt_is_obeyed(site: Site) -> None:
    """A disallowed page is not read, nor any page if robots.txt fails (RFC 9309, 2.3.1.4)."""
    site.answers = {"/private": text("x"), ROBOTS: text("User-agent: fore-edge\nDisallow: /p\n")}
    assert "asks to keep away" in (await site.refuse("/private")).message
    assert site.asked == [ROBOTS]

    site.answers[ROBOTS] = web.Response(status=503)
    assert "cannot be read" in (await site.refuse("/private")).message


async def test_robots_txt_is_obeyed_after_a_redirect_within_a_site(site: Site) -> None:
    """An allowed page leads to a disallowed one, which is not requested."""
    site.answers = {
        "/a": web.Response(status=302, headers={"Location": "/private"}),
        "/private": text("x"),
        ROBOTS: text("User-agent: *\nDisallow: /private\n"),
    }

    assert "asks to keep away" in (await site.refuse("/a")).message
    assert site.asked == [ROBOTS, "/a"]


async def test_a_slow_server_is_not_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is for the whole visit."""
    monkeypatch.setattr(visitor_module, "FETCH_TIMEOUT_SECONDS", 0.3)

    assert "took longer" in (await site.refuse("/slow")).message


async def test_a_server_that_is_not_there(site: Site) -> None:
    """It cannot be reached, which says nothing of why."""
    gate = SsrfGuard(lambda address: address.is_loopback)
    with pytest.raises(Problem) as caught:
        await WebDocumentFetcher(AGENT, gate, frozenset({1}))("http://127.0.0.1:1/")

    assert caught.value.message == "url: its server cannot be reached"
    assert site.asked == []


async def test_concurrent_visits_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond that it is 503, with a time to come again."""
    monkeypatch.setattr(visitor_module, "MAX_CONCURRENT_FETCHES", 1)
    gate = SsrfGuard(lambda address: address.is_loopback)
    busy = WebDocumentFetcher(AGENT, gate, frozenset({site.port}))
    task = asyncio.create_task(busy(f"{site.origin}/slow"))
    await asyncio.sleep(0)
    with pytest.raises(Problem) as caught:
        await busy(f"{site.origin}/page")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert caught.value.code == "unavailable"
    assert int(caught.value.headers["Retry-After"]) > 0
