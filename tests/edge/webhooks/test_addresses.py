"""Allowed endpoints: public addresses over https, and this machine where the site is on it."""

import ssl
from ipaddress import ip_address
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.net.ssrf_guard import Address, is_public
from edge_api.settings import read_settings
from edge_api.webhooks.dispatcher import WebhookSender, make_sender
from tests.edge.domain.conftest import MovableClock
from tests.edge.oauth.conftest import refusal
from tests.edge.oauth.test_fetch import certificate
from tests.edge.webhooks.conftest import Receiver, make_office

__all__ = ["certificate"]

is_loopback = attrgetter("is_loopback")

HOSTS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "0",
    "0.0.0.0",  # noqa: S104
    "00000000.0",
    "0x7f.1",
    "127.0.0.0x1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "134744072",
    "0x08080808",
    "8.8.2056",
    "1.2.3.4.5",
    "127.0.0.1.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::1]",
    "[2001::1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[fe80::1%25lo]",
    "[::127.0.0.1]",
    "localhost",
    "LOCALHOST",
]
URLS = [
    *(f"https://{host}/" for host in HOSTS),
    *(f"https://{host}:443/x?y" for host in ("127.0.0.1", "[::1]", "localhost")),
    "http://example.org/",
    "HTTP://example.org/",
    "http://8.8.8.8/",
    "ftp://example.org/",
    "//example.org/",
    "example.org",
    "https:example.org",
    "https:///x",
    "https://",
    "",
    "https://user@example.org/",
    "https://user:word@example.org/",
    "https://:@example.org/",
    "https://example.org/#part",
    "https://exa mple.org/",
    "https://example.org/\n",
    "\thttps://a/",
    "https://127.0.0.1\\@example.org/",
    "https://%31%32%37.0.0.1/",
    "https://loc%61lhost/",
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://\u2460.example/",
    "https://127\u30020.0.1/",
    "https://[::1/",
    "https://[example.org]/",
    "https://example.org:65536/",
    "https://example.org:x/",
    f"https://a.example/{'x' * 2048}",
]


@pytest.mark.parametrize("url", URLS)
async def test_an_address_that_is_none_of_ours_is_refused(url: str) -> None:
    """However it is spelled: when it is given, and when an event is to be sent to it."""
    problem = await refusal(WebhookSender().check(url))
    assert problem.code == "invalid"
    assert problem.message.startswith("URL: ")

    answer = await WebhookSender().post(url, b"{}", {})
    assert answer.status is None
    assert "reached" not in answer.message, "nothing was tried"


@pytest.mark.parametrize("url", ["https://8.8.8.8/", "https://[2606:4700::1111]:8443/x?y=1"])
async def test_a_public_address_is_taken(url: str) -> None:
    """With a port, a path and a query."""
    await WebhookSender().check(url)


async def test_a_name_that_cannot_be_one_is_refused() -> None:
    """A part of it is longer than any may be (RFC 1035, section 2.3.4)."""
    problem = await refusal(WebhookSender().check(f"https://{'a' * 64}.example/"))

    assert problem.message == "URL: names a host that cannot be one"


async def test_a_name_that_leads_nowhere_yet_is_taken() -> None:
    """It is looked up again for each attempt, and its faults are reported there."""
    await WebhookSender().check("https://no.such.host.invalid/hook")

    answer = await WebhookSender().post("https://no.such.host.invalid/hook", b"{}", {})
    assert answer.message == "its server cannot be reached"


async def test_a_loopback_site_may_send_to_loopback_endpoints(receiver: Receiver) -> None:
    """Over http as well; no other address by that."""
    sender = make_sender(read_settings({"SITE_URL": "http://localhost:8000"}))
    await sender.check(receiver.url)
    assert (await sender.post(receiver.url, b"{}", {})).status == 204
    for url in ("http://10.0.0.1/", "http://example.org/", "https://192.168.0.1/"):
        assert (await refusal(sender.check(url))).code == "invalid"
        assert (await sender.post(url, b"{}", {})).status is None


async def test_a_name_that_resolves_to_a_private_address_later_is_refused(
    store: Store, clock: MovableClock, receiver: Receiver
) -> None:
    """A name that was public at first may later lead to this machine: it is checked again."""
    allowed = {"127.0.0.1", "::1"}

    def is_allowed(address: Address) -> bool:
        return str(address) in allowed

    office = make_office(store, clock, WebhookSender(is_allowed, is_allowed))
    await office.endpoints.add(receiver.url.replace("127.0.0.1", "localhost"))
    await office.lead()
    allowed.clear()
    await office.dispatcher.run_once()

    (row,) = await office.deliveries()
    assert (row["last_answer"], receiver.received) == ("its address is not public", [])
    assert not is_public(ip_address("127.0.0.1"))


@pytest.fixture
async def secure(certificate: Any, receiver: Receiver, aiohttp_server: AiohttpServer) -> str:
    """Return the address of the receiver behind TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    app = web.Application()
    app.router.add_post("/hook", receiver.handle)
    server = await aiohttp_server(app, host="localhost", ssl=context, shutdown_timeout=0)
    return str(server.make_url("/hook"))


async def test_a_certificate_must_be_vouched_for(
    secure: str, certificate: tuple[Path, Path], receiver: Receiver
) -> None:
    """A receiver whose certificate nobody vouches for gets no event."""
    trusted = ssl.create_default_context(cafile=str(certificate[0]))
    assert (await WebhookSender(is_loopback, ssl=trusted).post(secure, b"{}", {})).status == 204
    assert len(receiver.received) == 1

    answer = await WebhookSender(is_loopback).post(secure, b"{}", {})
    assert answer.message == "its server cannot be reached"
    assert len(receiver.received) == 1


async def test_an_endpoint_is_known_once(
    store: Store, clock: MovableClock, receiver: Receiver
) -> None:
    """The same address again is a conflict."""
    office = make_office(store, clock)
    await office.endpoints.add(receiver.url)

    with pytest.raises(Problem) as caught:
        await office.endpoints.add(receiver.url)
    assert caught.value.code == "conflict"
