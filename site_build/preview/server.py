"""Serves the preview over HTTP, by default only to this machine.

`Preview` answers requests. It calls `PreviewSession`, which makes the pages, in a single thread.
"""

import asyncio
import json
import os
import re
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from aiohttp import web
from watchfiles import awatch

from edge_api.schema.site_policy import SAME_ORIGIN_RESOURCE, SITE_HEADERS, media_type
from site_build import addresses
from site_build.checks.facts import is_of_edge
from site_build.errors import BuildError
from site_build.preview.session import PreviewSession, State, describe_state
from site_build.site import Document

PREFIX = "/.preview/"
"""The prefix of addresses of the preview's own files and of its event stream."""

_SCRIPT, _SHEET = "preview.js", "preview.css"

_PAGE_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body class="preview-page">
<main>
<h1>{title}</h1>
{paragraphs}
</main>
</body>
</html>
"""


def add_preview_assets(html: str, version: str) -> str:
    """Return a page with the preview's style sheet, and a script that reloads it after changes."""
    sheet = f'<link rel="stylesheet" href="{PREFIX}{_SHEET}">\n'
    script = f'<script src="{PREFIX}{_SCRIPT}" data-version="{version}" defer></script>\n'
    head, opening, rest = html.partition("</head>")
    return f"{head}{sheet}{script}{opening}{rest}"


def render_preview_page(title: str, *sentences: str) -> str:
    """Return a page of the preview itself, such as one for an error."""
    paragraphs = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return _PAGE_TEMPLATE.format(title=escape(title), paragraphs=paragraphs)


def add_badges(html: str, address: str, hidden: Mapping[str, str]) -> str:
    """Return the page at `address` with badges for pages that readers do not see yet.

    A badge is below the page's own heading, and behind each link to such a page; `hidden` has the
    words of badges by address. Badges are not in the theme, so that no build can have them.
    """
    if not hidden:
        return html
    body = re.search(r"<body\b[^>]*>", html)
    start = body.end() if body else 0

    def mark(link: re.Match[str]) -> str:
        words = hidden.get(unquote(link["address"]))
        return f"{link[0]} {_render_badge(words)}" if words else link[0]

    shown = re.sub(
        r"<a\b[^>]*?\shref=\"/(?P<address>[^\"#?]*)[^\"]*\"[^>]*>.*?</a>",
        mark,
        html[start:],
        flags=re.DOTALL,
    )
    if own := hidden.get(address):
        shown = re.sub(
            r"<h1\b.*?</h1>",
            lambda heading: f"{heading[0]}\n<p>{_render_badge(own)}</p>",
            shown,
            count=1,
            flags=re.DOTALL,
        )
    return f"{html[:start]}{shown}"


def _render_badge(words: str) -> str:
    return f'<small class="preview-badge" lang="en" dir="ltr">{words}</small>'


def _describe_hidden(document: Document) -> str:
    """Return the words of the badge of a draft or a scheduled document."""
    if document.draft:
        return "Draft"
    at = document.published
    has_time = (at.hour, at.minute, at.second) != (0, 0, 0)
    return f"Appears on {at.day} {at:%B %Y}{f', {at:%H:%M} UTC' if has_time else ''}"


DEFAULT_PORT = 8001


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 means any free port. Raises BuildError."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except socket.gaierror:
        raise BuildError(f"there is no host {host!r} here; try --host 127.0.0.1", 2) from None
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else "it is no host"
        raise BuildError(
            f"the preview cannot listen on {host} port {port} ({reason}); "
            "name another with --port or --host",
            2,
        ) from None


def name_origin(listening: socket.socket) -> str:
    """Return the origin of a listening socket for browsers."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def is_allowed_host(host_header: str, chosen: str) -> bool:
    """Return whether a request with this Host header may be answered; `chosen` is that of `--host`.

    Other names are refused, since another site could make its name resolve to this machine (DNS
    rebinding).
    """
    try:
        host = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return False
    with suppress(ValueError):
        ip_address(host)
        return True
    return host in {"localhost", chosen.lower()} or host.endswith(".localhost")


T = TypeVar("T")

_HEADERS = dict((*SITE_HEADERS, SAME_ORIGIN_RESOURCE, ("Cache-Control", "no-store")))

_NOT_IN_PREVIEW = render_preview_page(
    "Not in the preview",
    "The service answers this, and a preview shows only what a build makes.",
    "Type `make run`, and look there.",
)
_QUIET_MS = 1000
"""Milliseconds without a reported change after which every file is checked."""


class Preview:
    """Answers requests, and notifies browsers of each change."""

    def __init__(
        self, session: PreviewSession, content: Path, host: str, report: Callable[[State], None]
    ) -> None:
        """Show a session; `report` is called with each new state."""
        self._session = session
        self._content = content
        self._host = host
        self._report, self._reported = report, session.state
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="preview")
        self._changed = asyncio.Event()
        self._is_ending = False
        self._files = {
            f"{PREFIX}{name}": (
                media_type(name),
                Path(__file__).with_name("static").joinpath(name).read_bytes(),
            )
            for name in (_SCRIPT, _SHEET)
        }

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        if not is_allowed_host(request.headers.get("Host", ""), self._host):
            return _page_response(
                render_preview_page(
                    "This preview is for its own machine",
                    "It was asked for under a name that is not its own. "
                    "Open it by its address, such as 127.0.0.1.",
                ),
                403,
            )
        if request.method not in {"GET", "HEAD"}:
            return _page_response(_NOT_IN_PREVIEW, 405, Allow="GET, HEAD")
        if request.path == f"{PREFIX}events":
            return await self._stream(request)
        if known := self._files.get(request.path):
            return _file_response(*known)
        return await self._answer_path(request.path)

    async def serve(
        self, listening: socket.socket, watched: Sequence[Path], ending: asyncio.Event
    ) -> None:
        """Answer on a socket and follow changes until `ending` is set."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        # When the preview ends, answers under way may take one more second.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.SockSite(runner, listening)
        await site.start()
        following = asyncio.create_task(self.follow(watched))
        stopping = asyncio.create_task(ending.wait())
        try:
            await asyncio.wait({following, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
        finally:
            await site.stop()
            following.cancel()
            stopping.cancel()
            self._is_ending = True  # ends every stream
            self._changed.set()
            await asyncio.gather(following, stopping, return_exceptions=True)
            await runner.cleanup()
            # No request follows, so work under way need not be finished.
            self._executor.shutdown(wait=False, cancel_futures=True)

    async def follow(self, watched: Sequence[Path]) -> None:
        """Refresh the session with every change of these files and folders, until cancelled.

        Deferred work is done after the first second without a change.
        """
        async with aclosing(watch(watched)) as notices:
            async for changes in notices:
                before = self._reported
                await self._run(self._session.refresh, changes)
                if changes is None and self._reported is before:
                    await self._run(self._session.do_deferred_work)
                    await self._run(self._session.check)

    async def _run(self, method: Callable[..., T], *values: object) -> T:
        """Call a method of the session in its thread, and report its state if that has changed."""
        done = await asyncio.get_running_loop().run_in_executor(self._executor, method, *values)
        if self._reported != self._session.state:
            self._reported = self._session.state
            self._report(self._reported)
            self._changed.set()
            self._changed = asyncio.Event()
        return done

    async def _answer_path(self, path: str) -> web.Response:
        """Return the answer for a path: a file, a page with badges, or why there is none."""
        name = addresses.name_file(path.removeprefix("/"))
        data, state = await self._run(self._session.show, name)
        if data is None:
            return await self._explain_absence(path)
        if not name.endswith(".html"):
            return _file_response(media_type(name), data)
        return self._finish_page(
            path.removeprefix("/"), data, state, status=500 if name in state.file_problems else 200
        )

    async def _explain_absence(self, path: str) -> web.Response:
        """Return the answer for a path without a file: a redirect to a folder, or an error."""
        if is_of_edge(path.removeprefix("/")):
            return _page_response(_NOT_IN_PREVIEW, 501)
        folder = f"{path.removeprefix('/')}/"
        if not path.endswith("/"):
            beside, _ = await self._run(self._session.show, addresses.name_file(folder))
            if beside is not None:
                return web.Response(status=307, headers={**_HEADERS, "Location": f"/{folder}"})
        missing, state = await self._run(self._session.show, addresses.MISSING)
        return self._finish_page("", missing or b"", state, 404)

    def _finish_page(self, address: str, data: bytes, state: State, status: int) -> web.Response:
        """Return a page with its badges and the script that reloads it."""
        html = data.decode() or render_preview_page("This page cannot be made")
        now = datetime.now(UTC)
        hidden = {
            each.address: _describe_hidden(each)
            for each in state.documents
            if not each.is_public_at(now)
        }
        address = address.removesuffix("index.html")
        return _page_response(
            add_preview_assets(add_badges(html, address, hidden), state.version), status
        )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Send the state now and at each change (server-sent events)."""
        page = addresses.name_file(request.query.get("page", "/").removeprefix("/"))
        response = web.StreamResponse(
            headers={**_HEADERS, "Content-Type": "text/event-stream; charset=utf-8"}
        )
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        last_sent = ""
        with suppress(ConnectionError):
            while not self._is_ending:
                changed = self._changed
                data = json.dumps(describe_state(self._session.state, page, self._content))
                line = (
                    f"event: state\ndata: {data}\n\n" if data != last_sent else ": still here\n\n"
                )
                await response.write(line.encode())
                last_sent = data
                with suppress(TimeoutError):
                    async with asyncio.timeout(15):
                        await changed.wait()
        return response


def _file_response(kind: str, data: bytes) -> web.Response:
    return web.Response(body=data, headers={**_HEADERS, "Content-Type": kind})


def _page_response(html: str, status: int, **headers: str) -> web.Response:
    return web.Response(
        status=status,
        body=html.encode(),
        headers={**_HEADERS, **headers, "Content-Type": "text/html; charset=utf-8"},
    )


async def watch(watched: Sequence[Path]) -> AsyncGenerator[frozenset[str] | None, None]:
    """Yield the paths of changed files, and None after a second without a change, until closed.

    None means that any file may have changed: some disks report no changes, and a folder may have
    been replaced.
    """
    while True:
        notices = awatch(
            *(place for place in watched if place.exists()),
            # Changes are collected for 100 ms at most, or until 10 ms pass without one.
            debounce=100,
            step=10,
            rust_timeout=_QUIET_MS,
            yield_on_timeout=True,
        )
        # These errors mean that a place was moved, or that a name is not UTF-8.
        with suppress(OSError, RuntimeError, ExceptionGroup):
            async for notice in notices:
                yield frozenset(path for _, path in notice) or None
        await asyncio.sleep(_QUIET_MS / 1000)
        yield None
