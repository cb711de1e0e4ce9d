"""Documents of strangers, fetched over a real TLS connection, and from public addresses alone."""

import asyncio
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from edge_api.analysis import fetch as fetch_module
from edge_api.analysis.fetch import ClientMetadataFetcher
from edge_api.net.ssrf_guard import MAX_CONCURRENT_LOOKUPS, is_public
from tests.edge.certificates import write_certificate
from tests.edge.oauth.conftest import refusal

pytestmark = pytest.mark.size("test")

PRIVATE = [
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "0.0.0.0",  # noqa: S104
    "100.64.0.1",
    "192.0.2.1",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:8.8.8.8",
    "fec0::1",
    "3fff::1",
    "192.88.99.1",
    "192.0.0.8",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "2002:808:808::1",
    "2001::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_recognized(address: str) -> None:
    """Addresses of this machine, of its networks, of many at once, or that stand for others."""
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111"])
def test_public_addresses_are_recognized(address: str) -> None:
    """Anybody's."""
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "\uff11\uff12\uff17.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
    ],
)
async def test_a_private_address_is_not_connected_to(host: str) -> None:
    """Neither if it is in the URL nor behind a name."""
    problem = await refusal(ClientMetadataFetcher()(f"https://{host}/x"))

    assert "not public" in problem.message


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Return the files of a certificate for `localhost` and of its key."""
    return write_certificate(tmp_path)


async def document(_: web.Request) -> web.Response:
    """Answer as a client's server should."""
    return web.json_response({"client_id": "x"})


async def elsewhere(_: web.Request) -> web.Response:
    """Send the asker on."""
    return web.Response(status=302, headers={"Location": "/document"})


async def large(_: web.Request) -> web.Response:
    """Answer more than anybody needs."""
    return web.Response(body=b"x" * (fetch_module.MAX_METADATA_BYTES + 1))


async def full(_: web.Request) -> web.Response:
    """Answer as much as is taken."""
    return web.Response(body=b"x" * fetch_module.MAX_METADATA_BYTES)


async def slow(_: web.Request) -> web.Response:
    """Let the asker wait."""
    await asyncio.sleep(1)
    return web.Response()


Fetch = Callable[[str], Awaitable[bytes]]


@pytest.fixture
async def fetch(certificate: tuple[Path, Path], aiohttp_server: AiohttpServer) -> Fetch:
    """Return a fetcher that may go to this machine, for paths of a server on it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    app = web.Application()
    for handler in (document, elsewhere, large, full, slow):
        app.router.add_get(f"/{handler.__name__}", handler)
    server = await aiohttp_server(app, host="localhost", ssl=context, shutdown_timeout=0)
    trusted = ssl.create_default_context(cafile=str(certificate[0]))
    fetcher = ClientMetadataFetcher(lambda address: address.is_loopback, trusted)
    return lambda path: fetcher(str(server.make_url(path)))


async def test_a_document_is_fetched(fetch: Fetch) -> None:
    """Whole, up to 64 KiB."""
    assert await fetch("/document") == b'{"client_id": "x"}'
    assert len(await fetch("/full")) == fetch_module.MAX_METADATA_BYTES


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/elsewhere", "answers 302"), ("/large", "larger than 64 KiB"), ("/none", "answers 404")],
)
async def test_an_invalid_document_is_refused(fetch: Fetch, path: str, reason: str) -> None:
    """A redirect is not followed, and nothing large is read."""
    assert reason in (await refusal(fetch(path))).message


async def test_a_silent_server_times_out(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for."""
    monkeypatch.setattr(fetch_module, "METADATA_TIMEOUT", 0.2)

    assert "took longer" in (await refusal(fetch("/slow"))).message


@pytest.mark.size("ci")
async def test_silent_name_servers_block_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their lookups have threads of their own, of which there is an end."""
    release, most = threading.Event(), MAX_CONCURRENT_LOOKUPS
    monkeypatch.setattr(fetch_module, "METADATA_TIMEOUT", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait() and [])
    try:
        waiting = [
            ClientMetadataFetcher()(f"https://{number}.example/x") for number in range(most + 5)
        ]
        problems = [await refusal(each) for each in waiting]
        assert await asyncio.to_thread(int, "7") == 7
    finally:
        release.set()

    said = Counter(problem.message.rpartition(": ")[2] for problem in problems)
    assert said == {"it took longer than 0 s": most, "its server cannot be reached": 5}


async def test_an_untrusted_certificate_is_refused(certificate: tuple[Path, Path]) -> None:
    """Such a server is not believed, and neither is one that is not there."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    server = await asyncio.start_server(lambda *_: None, "localhost", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    fetcher = ClientMetadataFetcher(lambda address: address.is_loopback)
    try:
        assert "cannot be reached" in (await refusal(fetcher(f"https://localhost:{port}/"))).message
    finally:
        server.close()
        await server.wait_closed()
    assert "cannot be reached" in (await refusal(fetcher("https://localhost:1/"))).message
    assert "cannot be reached" in (await refusal(fetcher("https://no.such.host.invalid/"))).message
