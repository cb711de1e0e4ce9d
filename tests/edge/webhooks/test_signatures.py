"""Signatures of Standard Webhooks: the library verifies ours, ours verifies the library's."""

import base64
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from edge_api.db.internal_tables import WEBHOOK_ENDPOINTS
from edge_api.net.signatures import is_signed, new_secret, sign
from tests.edge.webhooks.conftest import Office, Receiver

BODY = '{"type": "email.bounced", "data": {"email": "\u00e9@example.org"}}'.encode()
SECRET = new_secret()
Headers = dict[str, str]


def signed(secret: str = SECRET, ago: float = 0) -> Headers:
    """Return the headers that the library makes."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("msg_1", at, BODY.decode()),
    }


def test_the_library_verifies_ours() -> None:
    """With each of two secrets; and with no other."""
    secrets = [new_secret(), new_secret()]
    headers = sign(secrets, "msg_1", datetime.now(UTC), BODY)

    for secret in secrets:
        assert Webhook(secret).verify(BODY, headers)["type"] == "email.bounced"
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(BODY, headers)


def test_ours_verifies_the_librarys() -> None:
    """With either of two secrets during a rotation, and within five minutes."""
    for ago in (0, 290, -290):
        assert is_signed([SECRET], signed(ago=ago), BODY)
        assert is_signed([new_secret(), SECRET], signed(ago=ago), BODY)
        assert not is_signed([new_secret()], signed(ago=ago), BODY)
    assert not is_signed([], signed(), BODY)


def test_a_secret_is_random_and_of_the_right_length() -> None:
    """24 to 64 bytes in base64, behind a prefix."""
    assert len({new_secret() for _ in range(100)}) == 100
    prefix, _, text = SECRET.partition("_")
    assert (prefix, len(base64.b64decode(text, validate=True))) == ("whsec", 32)


ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (ID, lambda _: "msg_2"),
        (ID, lambda _: ""),
        (ID, lambda text: f"{text} "),
        (ID, lambda _: "m" * 256),
        (TIMESTAMP, lambda text: str(int(text) + 1)),
        (TIMESTAMP, lambda _: ""),
        (TIMESTAMP, lambda _: "now"),
        (TIMESTAMP, lambda _: "nan"),
        (TIMESTAMP, lambda _: "1e400"),
        (SIGNATURE, lambda text: text.replace("v1,", "v2,")),
        (SIGNATURE, lambda text: text.replace("v1,", "v1a,")),
        (SIGNATURE, lambda text: text.removeprefix("v1,")),
        (SIGNATURE, lambda _: ""),
        (SIGNATURE, lambda _: "v1,"),
        (SIGNATURE, lambda _: "v1,not base64"),
        (SIGNATURE, lambda _: "v1,\u00e9"),
        (SIGNATURE, lambda text: text[:-4] + "AAA="),
        (SIGNATURE, lambda _: "v1," + base64.b64encode(bytes(32)).decode()),
    ],
)
def test_tampering_is_refused(name: str, change: Callable[[str], str]) -> None:
    """Whichever header is changed or empty."""
    headers = signed()

    assert is_signed([SECRET], headers, BODY)
    assert not is_signed([SECRET], {**headers, name: change(headers[name])}, BODY)


@pytest.mark.parametrize("ago", [301, 86_400, -310, -86_400])
def test_an_old_or_future_signature_is_refused(ago: float) -> None:
    """More than five minutes either way; and what is not signed at all."""
    assert not is_signed([SECRET], signed(ago=ago), BODY)
    assert not is_signed([SECRET], {}, BODY)


@pytest.mark.parametrize("body", [BODY + b" ", BODY.lower().replace(b"b", b"B"), b"", b"\xff\xfe"])
def test_another_body_is_refused(body: bytes) -> None:
    """Also one that is no text."""
    assert not is_signed([SECRET], signed(), body)


async def test_a_sent_event_verifies(office: Office, receiver: Receiver) -> None:
    """With the secret that was shown once; the store holds it encrypted."""
    office.clock.now = datetime.now(UTC)
    keyed = await office.endpoints.add(receiver.url)
    await office.lead()
    await office.dispatcher.run_once()

    (received,) = receiver.received
    event = Webhook(keyed["secret"]).verify(received.body, received.headers)
    assert event["data"]["email"] == "ann@example.org"
    assert abs(time.time() - int(received.headers["webhook-timestamp"])) < 300
    with pytest.raises(WebhookVerificationError):
        Webhook(keyed["secret"]).verify(received.body + b" ", received.headers)
    (row,) = await office.rows(WEBHOOK_ENDPOINTS)
    assert keyed["secret"].removeprefix("whsec_") not in str(row)


async def test_while_a_secret_is_rotated_both_sign(office: Office, receiver: Receiver) -> None:
    """A receiver may change its own at any time within the overlap."""
    office.clock.now = datetime.now(UTC)
    old = await office.endpoints.add(receiver.url)
    new = await office.endpoints.rotate(old["id"], timedelta(minutes=2))
    assert new["secret"] != old["secret"]
    await office.lead()
    await office.dispatcher.run_once()
    office.clock.move(minutes=2)
    await office.lead("Another")
    await office.dispatcher.run_once()

    during, after = receiver.received
    for secret in (old["secret"], new["secret"]):
        assert Webhook(secret).verify(during.body, during.headers)
    assert Webhook(new["secret"]).verify(after.body, after.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(old["secret"]).verify(after.body, after.headers)


async def test_a_rotation_without_overlap_ends_the_old_secret(
    office: Office, receiver: Receiver
) -> None:
    """For one that others have seen."""
    office.clock.now = datetime.now(UTC)
    old = await office.endpoints.add(receiver.url)
    await office.endpoints.rotate(old["id"], timedelta())
    await office.lead()
    await office.dispatcher.run_once()

    (received,) = receiver.received
    assert len(received.headers["webhook-signature"].split()) == 1
    with pytest.raises(WebhookVerificationError):
        Webhook(old["secret"]).verify(received.body, received.headers)
