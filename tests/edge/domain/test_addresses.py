import pytest
from multidict import CIMultiDict

from edge_api.auth.client_address import ClientAddress, address_key, client_address

TRUSTED = ("10.0.0.0/8", "2001:db8:ffff::/48")
PROXY = "10.0.0.1"


def found(peer: str, *lines: tuple[str, str], trusted: tuple[str, ...] = TRUSTED) -> str:
    """Return the address that is found behind `peer`."""
    return client_address(peer, CIMultiDict(lines), trusted).address


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_an_address_is_counted_by_what_one_subscriber_has(address: str, key: str) -> None:
    """IPv4 by itself, IPv6 by its /64, anything else unchanged."""
    assert address_key(address) == key


def test_without_forwarding_headers_the_peer_is_the_caller() -> None:
    """Nothing is looked at, and nothing is reported."""
    assert client_address("192.0.2.7", CIMultiDict(), TRUSTED) == ClientAddress(
        "192.0.2.7", "192.0.2.7"
    )


@pytest.mark.parametrize("header", ["X-Forwarded-For", "x-forwarded-for", "Forwarded"])
@pytest.mark.parametrize("trusted", [(), TRUSTED])
def test_an_untrusted_peer_cannot_speak_for_others(header: str, trusted: tuple[str, ...]) -> None:
    """Its header is not believed, and that it came is reported."""
    headers = CIMultiDict([(header, "for=198.51.100.1")])

    assert client_address("192.0.2.7", headers, trusted) == ClientAddress(
        "192.0.2.7", "192.0.2.7", untrusted_forwarding=True
    )


def test_a_trusted_proxy_is_not_reported() -> None:
    """Its header is used, and nothing is logged."""
    headers = CIMultiDict({"X-Forwarded-For": "2001:db8:1:2::9"})

    assert client_address(PROXY, headers, TRUSTED) == ClientAddress(
        "2001:db8:1:2::9", "2001:db8:1:2::/64"
    )


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("  198.51.100.1  ", "198.51.100.1"),
        ("198.51.100.1:4711", "198.51.100.1"),
        ("2001:db8::9", "2001:db8::9"),
        ("[2001:db8::9]", "2001:db8::9"),
        ("[2001:db8::9]:4711", "2001:db8::9"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("203.0.113.9, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("198.51.100.1,, 10.0.0.2,", "198.51.100.1"),
        ("127.0.0.1, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("2001:db8:ffff::1, 10.0.0.2", "2001:db8:ffff::1"),
        ("unknown", PROXY),
        ("198.51.100.1, unknown", PROXY),
        ("198.51.100.1, nonsense, 10.0.0.2", "10.0.0.2"),
        ("198.51.100.999", PROXY),
        ("[2001:db8::9", PROXY),
        ("198.51.100.1:4711:9", PROXY),
        ("", PROXY),
        (", ,", PROXY),
    ],
)
def test_x_forwarded_for_is_walked_from_the_right(value: str, address: str) -> None:
    """The first address that is no trusted proxy is the caller; nothing beyond it counts."""
    assert found(PROXY, ("X-Forwarded-For", value)) == address


def test_all_lines_of_a_header_are_one_list() -> None:
    """The client's own header is on an earlier line than the one that the proxy adds."""
    lines = ("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-For", "198.51.100.1")

    assert found(PROXY, *lines) == "198.51.100.1"


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("for=198.51.100.1", "198.51.100.1"),
        ("FOR=198.51.100.1", "198.51.100.1"),
        ("for=198.51.100.1;proto=https;by=10.0.0.1", "198.51.100.1"),
        ("proto=https; for=198.51.100.1", "198.51.100.1"),
        ('for="198.51.100.1:4711"', "198.51.100.1"),
        ('for="[2001:db8::9]:4711"', "2001:db8::9"),
        ('for="[2001:db8::9]"', "2001:db8::9"),
        (r'for="198.51.100\.1"', "198.51.100.1"),
        ("for=203.0.113.9, for=198.51.100.1;host=x, for=10.0.0.2", "198.51.100.1"),
        ('for=198.51.100.1;host="a,b;c", for=10.0.0.2', "198.51.100.1"),
        ("for=198.51.100.1;", "198.51.100.1"),
        (";for=198.51.100.1;;by=10.0.0.1,, ;", "198.51.100.1"),
        ("for=_hidden, for=10.0.0.2", "10.0.0.2"),
        ("for=unknown", PROXY),
        ("proto=https", PROXY),
        ("for=198.51.100.1, proto=https", PROXY),
        ("for=", PROXY),
        ("198.51.100.1", PROXY),
        ('for="198.51.100.1', PROXY),
        ('for=203.0.113.9;x=", for=198.51.100.1;by="10.0.0.1"', PROXY),
        ("for=198.51.100.1 for=203.0.113.9", PROXY),
    ],
)
def test_forwarded_is_read_by_its_grammar(value: str, address: str) -> None:
    """RFC 7239, section 4; a broken line tells nothing, so that nobody hides in its quotes."""
    assert found(PROXY, ("Forwarded", value)) == address


@pytest.mark.parametrize("start", ["", "for=198.51.100.1,", "for=198.51.100.1"])
@pytest.mark.parametrize(("blanks", "lines"), [(8000, 128), (1_000_000, 1)])
def test_a_header_of_blanks_is_read_through_once(start: str, blanks: int, lines: int) -> None:
    """A million blanks that were gone through again from each of them would take hours."""
    line = start + " " * blanks + "!"

    assert found(PROXY, *[("Forwarded", line)] * lines) == PROXY


@pytest.mark.parametrize(("header", "mark"), [("X-Forwarded-For", ""), ("Forwarded", "for=")])
def test_ten_lines_of_a_header_are_read(header: str, mark: str) -> None:
    """The last ones, which proxies wrote; a chain that goes on before them is cut there."""
    client, proxies = (header, f"{mark}198.51.100.1"), [(header, f"{mark}10.0.0.2")] * 10

    assert found(PROXY, client, *proxies[1:]) == "198.51.100.1"
    assert found(PROXY, client, *proxies) == "10.0.0.2"


def test_headers_that_agree_are_believed() -> None:
    """A proxy may write both."""
    lines = ("X-Forwarded-For", "198.51.100.1"), ("Forwarded", 'for="198.51.100.1:80"')

    assert found(PROXY, *lines) == "198.51.100.1"


def test_headers_that_disagree_are_not_believed() -> None:
    """A client behind a proxy that writes one header cannot choose its address by the other."""
    lines = ("X-Forwarded-For", "198.51.100.1"), ("Forwarded", "for=203.0.113.9")

    assert found(PROXY, *lines) == PROXY


def test_a_peer_without_an_address_is_never_trusted() -> None:
    """A Unix socket has no network to be in."""
    assert client_address(
        "", CIMultiDict({"Forwarded": "for=198.51.100.1"}), TRUSTED
    ) == ClientAddress("", "", untrusted_forwarding=True)


def test_a_trusted_network_holds_its_addresses_mapped_into_ipv6() -> None:
    """A dual-stack socket shows an IPv4 proxy so."""
    assert found("::ffff:10.0.0.1", ("X-Forwarded-For", "198.51.100.1")) == "198.51.100.1"
