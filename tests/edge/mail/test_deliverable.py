import pytest

from edge_api.mail.queue import undeliverable_reason

RESERVED = "The address is in a domain that is reserved and receives no mail"


@pytest.mark.parametrize(
    "address",
    [
        "ann@work.org",
        "ann.lee+tag@mail.work.co.uk",
        "ann@b\u00fccher.de",
        "jos\u00e9@b\u00fccher.de",
        "ann@xn--bcher-kva.de",
        "ann@testing.org",
        "ann@example.work.org",
        "ann@myexample.com",
        "ann@test.de",
        "x" * 64 + "@work.org",
    ],
)
def test_an_address_that_may_be_mailed(address: str) -> None:
    """Addresses that could receive mail have nothing said against them."""
    assert undeliverable_reason(address) is None


@pytest.mark.parametrize(
    "address",
    [
        "ann@a.test",
        "ann@a.invalid",
        "ann@a.example",
        "ann@a.localhost",
        "ann@example.com",
        "ann@example.net",
        "ann@example.org",
        "ann@mail.example.org",
        "ANN@A.TEST",
        "ann@EXAMPLE.com",
        "ann@\uff45xample.com",
        "ann@a.b.c.d.invalid",
        "ann@printer.local",
        "ann@abc.onion",
        "ann@tv.home.arpa",
        "ann@a.internal",
        "jos\u00e9@example.com",
    ],
)
def test_a_reserved_domain_is_never_mailed(address: str) -> None:
    """Special-use domains and all below them receive no mail (RFC 6761), in any spelling."""
    assert undeliverable_reason(address) == RESERVED


def test_an_address_that_no_envelope_holds() -> None:
    """255 characters are taken as a lead's address, and are one octet too many for mail."""
    domain = ".".join(["b" * 60, "c" * 60, "d" * 60, "de"])
    fits = f"{'a' * (254 - len(domain) - 1)}@{domain}"

    assert undeliverable_reason(fits) == "The address has more than 64 octets before the @"
    assert undeliverable_reason(f"a{fits}") == "The address is longer than 254 octets"


def test_octets_count_and_not_characters() -> None:
    """A local part of 33 letters of two octets each is too long (RFC 6531, section 3.3)."""
    assert undeliverable_reason("\u00e9" * 32 + "@work.org") is None
    assert undeliverable_reason("\u00e9" * 33 + "@work.org") is not None


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ann",
        "ann@",
        "@work.org",
        "ann@localhost",
        "Ann <ann@work.org>",
        "a@work.org,b@work.org",
        "a@work.org\r\nBcc: b@work.org",
        "a@work.org\n",
        "a\x00@work.org",
        '"a b"@work.org',
        "ann@[127.0.0.1]",
        "ann@work..org",
        "a@work.org b@work.org",
        "=?utf-8?q?x=0D=0ABcc=3Ab=40work.org?=@work.org",
    ],
)
def test_an_invalid_address_is_not_deliverable(address: str) -> None:
    """No address, several, or one that could be read as another, is never mailed."""
    said = undeliverable_reason(address)

    assert said == "The address cannot be written on an envelope"
