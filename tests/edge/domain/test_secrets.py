import binascii
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from edge_api.auth.actor import new_id
from edge_api.auth.secrets import hash_secret, is_well_formed, last_four, mint
from edge_api.schema.credentials import PREFIXES, SecretKind


@pytest.mark.parametrize("kind", PREFIXES)
def test_a_minted_secret_has_the_published_shape(kind: SecretKind) -> None:
    """A secret is its prefix, 43 base62 characters and the base62 CRC-32 of all before it."""
    secret = mint(kind)

    assert re.fullmatch(rf"{PREFIXES[kind]}[0-9A-Za-z]{{49}}", secret)
    alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    number = 0
    for digit in secret[-6:]:
        number = number * 62 + alphabet.index(digit)
    assert number == binascii.crc32(secret[:-6].encode())


def test_secrets_do_not_repeat() -> None:
    """A thousand secrets are a thousand."""
    assert len({mint("api_key") for _ in range(1000)}) == 1000


@pytest.mark.parametrize("kind", PREFIXES)
def test_a_secret_is_well_formed_for_its_own_kind_alone(kind: SecretKind) -> None:
    """The same secret in place of another kind of credential is refused by its looks."""
    secret = mint(kind)

    assert [is_well_formed(secret, other) for other in PREFIXES] == [
        other == kind for other in PREFIXES
    ]


@pytest.mark.parametrize("position", range(55))
def test_one_wrong_character_makes_a_secret_malformed(position: int) -> None:
    """A slip of the hand anywhere is noticed without looking anything up."""
    secret = mint("api_key")
    wrong = "x" if secret[position] != "x" else "y"

    assert not is_well_formed(secret[:position] + wrong + secret[position + 1 :], "api_key")


@pytest.mark.parametrize(
    "text",
    ["", "fe_sk_", "x" * 55, "fe_sk_" + "é" * 49, "fe_sk_" + "\udcff" * 49, "fe_xx_" + "0" * 49],
)
def test_any_other_text_is_malformed(text: str) -> None:
    """Any text may be asked about, whatever a header can carry."""
    assert not is_well_formed(text, "api_key")


def test_a_newline_behind_a_secret_makes_it_malformed() -> None:
    """The whole text counts, its end included."""
    assert not is_well_formed(mint("api_key") + "\n", "api_key")


def test_the_digest_is_sha_256() -> None:
    """The digest of `abc` is the one that FIPS 180-4 gives."""
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    assert hash_secret("abc") == expected


def test_any_header_text_has_a_digest() -> None:
    """Bytes that are no UTF-8 reach the service as lone surrogates; they break nothing."""
    assert len(hash_secret("\udcff\ud800")) == 64


def test_the_last_four_characters_identify_a_key() -> None:
    """They are the end of the secret."""
    assert last_four("fe_sk_abcdef") == "cdef"


def test_an_identifier_is_a_uuid_of_version_7_with_its_instant() -> None:
    """The first 48 bits are milliseconds since 1970 (RFC 9562, section 5.7)."""
    now = datetime(2026, 6, 1, 12, 0, 0, 123456, tzinfo=UTC)
    identifier = UUID(new_id(now))

    assert (identifier.version, identifier.variant) == (7, "specified in RFC 4122")
    assert identifier.int >> 80 == int(now.timestamp() * 1000)


def test_identifiers_sort_by_the_microsecond_they_were_made_for() -> None:
    """A later microsecond gives a greater identifier, within one millisecond too."""
    start = datetime(2026, 6, 1, 12, tzinfo=UTC)
    made = [new_id(start + timedelta(microseconds=step)) for step in range(3000)]

    assert all(earlier < later for earlier, later in pairwise(made))


def test_identifiers_of_one_instant_differ() -> None:
    """62 random bits keep them apart."""
    now = datetime(2026, 6, 1, 12, tzinfo=UTC)

    assert len({new_id(now) for _ in range(1000)}) == 1000
