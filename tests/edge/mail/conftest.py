"""Messages to send, and a certificate for relays of the tests' own."""

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edge_api.mail.messages import Envelope, compose
from tests.edge.mail.relays import ANY_ADDRESS

SITE: Mapping[str, Any] = MappingProxyType(
    {"site_title": "The Journal", "site_url": "https://journal.example"}
)
DESK_URL = "https://journal.example/desk/leads/1/"
LEAD: Mapping[str, Any] = MappingProxyType(
    {
        "name": "Ann Lee",
        "email": "ann.lee@work.example.org",
        "budget_tier": "5k-10k",
        "message": "We would like to move our blog.\n\nWhat does it cost?",
        "created_at": "2026-06-01T12:00:00.000000Z",
        "source": "form",
        "spam_score": 0,
        "spam_reasons": None,
        "other_part": None,
    }
)


def make_envelope(**changes: Any) -> Envelope:
    """Return an envelope of a message to the owner, but for what changes."""
    given = {
        "message_id": str(uuid4()),
        "sender": "The Journal <journal@journal.example>",
        "recipient": "owner@journal.example",
        "date": datetime(2026, 6, 1, 12, tzinfo=UTC),
        "host": "journal.example",
    }
    return Envelope(**{**given, **changes})


def notification(**lead: Any) -> EmailMessage:
    """Return what the owner gets for a lead that differs in `lead`."""
    values = {"lead": {**LEAD, **lead}, "desk_url": DESK_URL, **SITE}
    return compose("lead_notification", make_envelope(), values)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the files of a certificate for this machine, and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "relay")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ip_address(address)) for address in ("127.0.0.1", ANY_ADDRESS)]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    written = folder / "certificate.pem", folder / "key.pem"
    written[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    written[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return written


@pytest.fixture
def served(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    """Return the TLS of a relay."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def trusting(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    """Return the TLS of a client that trusts the relay."""
    return ssl.create_default_context(cafile=str(certificate[0]))
