"""Pictures that are fetched from the old journal's own host."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edge_api.net.ssrf_guard import AddressPolicy, SsrfGuard, is_public
from site_build.importers.imported import Imported, Text
from site_build.importers.pictures import MAX_PICTURE_BYTES, fetch_pictures

BODY = """![one](/uploads/one.png) and [![two](two.jpg?w=300)](http://www.old.test:{port}/b%20c.gif)
<img src="http://old.test:{port}/moved.webp" alt=""> ![held](/held.png) ![far](/far.png)
![other](http://other.test:{port}/x.png) ![gone](/gone.png) ![large](/large.png) ![](source:x.png)
![loop](/loop.png) ![](/chunked.png) ![](/liar.png)
"""
PNG = b"\x89PNG picture"


class OldHost:
    """A server that answers as `old.test`, and notes what it was asked for."""

    port = 0

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request for a picture."""
        self.asked.append(f"{request.method} {request.path}")
        moved = {
            "/moved.webp": f"http://www.old.test:{self.port}/new.webp",
            "/far.png": f"http://other.test:{self.port}/far.png",
            "/loop.png": "/loop.png",
        }
        if request.path in moved:
            return web.Response(status=301, headers={"Location": moved[request.path]})
        if request.path == "/gone.png":
            return web.Response(status=404)
        if request.path == "/chunked.png":
            return web.Response(headers={"Transfer-Encoding": "chunked"})
        if request.path == "/liar.png":
            size = 3 if request.method == "HEAD" else len(PNG)
            body = PNG * (request.method == "GET")
            return web.Response(body=body or None, headers={"Content-Length": str(size)})
        size = MAX_PICTURE_BYTES + 1 if request.path == "/large.png" else len(PNG)
        body = PNG if request.method == "GET" else b""
        return web.Response(body=body or None, headers={"Content-Length": str(size)})


async def find_here(_host: str, _port: int) -> list[str]:
    """Return the address of this machine for every name."""
    return ["127.0.0.1"]


def read(file: Path | bytes) -> bytes:
    """Return the bytes of a file of a journal."""
    return file if isinstance(file, bytes) else file.read_bytes()


def list_names(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return [path.name for path in folder.iterdir()]


Fetch = Callable[..., Awaitable[tuple[Imported, OldHost]]]


@pytest.fixture
def fetch(aiohttp_raw_server: Any, tmp_path: Path) -> Fetch:
    """Return what makes a journal whose pictures were fetched, and the host that was asked."""

    async def run(
        agrees: Callable[[str], bool], allowed: AddressPolicy = lambda _: True
    ) -> tuple[Imported, OldHost]:
        host = OldHost()
        host.port = (await aiohttp_raw_server(host.answer)).port
        imported = Imported("Test", origin=f"http://old.test:{host.port}")
        imported.texts = [Text("a.md", BODY.format(port=host.port), "A", address="/2020/post/")]
        imported.files = {"held.png": b"x"}
        await fetch_pictures(imported, tmp_path, agrees, SsrfGuard(allowed, None, find_here))
        return imported, host

    return run


async def test_missing_pictures_of_the_host_become_files(fetch: Fetch) -> None:
    """With their size said before; what fails is named, and nothing else is asked for."""
    asked = list[str]()
    imported, host = await fetch(lambda question: not asked.append(question))  # type: ignore[func-returns-value]

    origin = f"http://old.test:{host.port}"
    assert asked == [f"5 pictures of {origin}, 0.0 MB, are missing; fetch them?"]
    fetched = {"uploads/one.png", "2020/post/two.jpg", "b c.gif", "moved.webp"}
    assert imported.files.keys() == {"held.png"} | fetched
    assert {read(imported.files[path]) for path in fetched} == {PNG}
    assert {each.what: each.source for each in imported.findings} == {
        "the picture /far.png was not fetched: its server answers 301": "a.md",
        "the picture /gone.png was not fetched: its server answers 404": "a.md",
        "the picture /loop.png was not fetched: its server answers 301": "a.md",
        "the picture /chunked.png was not fetched: its server does not say its size": "a.md",
        "the picture /liar.png was not fetched: it is larger than its server said": "a.md",
        "the picture /large.png was not fetched: its 25,000,001 bytes were not wanted": ("a.md"),
    }
    assert not [each for each in host.asked if "x.png" in each or "held" in each]
    assert "GET /large.png" not in host.asked


async def test_nothing_is_fetched_without_consent(fetch: Fetch, tmp_path: Path) -> None:
    """Sizes are asked for; every picture is named."""
    imported, host = await fetch(lambda _: False)

    assert imported.files.keys() == {"held.png"}
    assert len(imported.findings) == 10
    assert all(each.startswith("HEAD ") for each in host.asked)
    assert list_names(tmp_path) == []


async def test_private_addresses_are_not_fetched_from(fetch: Fetch) -> None:
    """An export may name any host; the guard decides."""
    imported, host = await fetch(lambda _: True, is_public)

    assert host.asked == []
    assert {each.what.partition(": ")[2] for each in imported.findings} == {
        "its server cannot be reached at a public address"
    }


@pytest.mark.parametrize("origin", ["", "nonsense", "https://a:port"])
async def test_a_journal_without_a_host_has_nothing_to_fetch(tmp_path: Path, origin: str) -> None:
    """Its links name no host of its own, and a warning says so."""
    imported = Imported("Test", texts=[Text("a.md", "![](/x.png)", "A")], origin=origin)

    await fetch_pictures(imported, tmp_path, lambda _: True)

    assert imported.files == {}
    assert [each.what.partition(",")[0] for each in imported.findings] == ["no picture was fetched"]


async def test_pictures_are_fetched_from_a_host_without_port(tmp_path: Path) -> None:
    """As almost all have none; what only looks like a link in code is passed over."""
    body = "![](/one.png) ![](//www.old.test/two.png) `(http://[your-site]/logo.png)` "
    body += "![](https://old.test//i/three.png) ![](https://a\u2100b/four.png)"
    imported = Imported("Test", texts=[Text("a.md", body, "A")], origin="https://old.test")

    await fetch_pictures(imported, tmp_path, lambda _: True, SsrfGuard(is_public, None, find_here))

    assert [each.what.split()[2] for each in imported.findings] == [
        "/one.png",
        "/two.png",
        "/i/three.png",
    ]
