"""Walks of mail programs and services: events of the mail service, and unsubscribing."""

import base64
import hmac
import json
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tests.replay.stage import HOOK_SECRET
from tests.replay.walk import JSON, Walk, walk

HOOK: Final = "/api/public/hooks/email"
ADMIN: Final = "/api/public/v1/admin"
ANN: Final = "ann@example.org"
TOKEN: Final = "t" * 32
EVENTS: Final[tuple[Any, ...]] = (
    {"type": "email.bounced", "data": {"email": ANN, "bounce_type": "permanent"}},
    {"type": "email.bounced", "data": {"email": "bo@example.org", "bounce_type": "transient"}},
    {"type": "email.bounced", "data": {"email": "cy@example.org"}},
    {"type": "email.complained", "data": {"email": " Di@Example.org ", "message_id": "m-1"}},
    {"type": "email.unsubscribed", "data": {"email": "ed@example.org"}},
    {"type": "email.opened", "data": {"email": ANN}},
    {"type": "email.bounced", "data": {"email": "no address"}},
    {"type": "email.bounced", "data": {}},
    {"type": "email.bounced", "data": {"email": ANN, "bounce_type": "other"}},
    {"type": "email.bounced"},
    {"type": "", "data": {}},
    {"type": 5, "data": {}},
    {"type": "x" * 201, "data": {}},
    {"data": {}},
    [],
    None,
)


def event(
    w: Walk,
    body: bytes,
    message: str,
    changes: Mapping[str, str] = MappingProxyType({}),
    moved: int = 0,
) -> None:
    """Send an event with a signature of Standard Webhooks."""
    stamp = str(int(time.time()) + moved)
    secret = base64.b64decode(HOOK_SECRET.partition("_")[2])
    signed = hmac.digest(secret, f"{message}.{stamp}.".encode() + body, "sha256")
    headers = {
        "webhook-id": message,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
        "Content-Type": JSON,
        **changes,
    }
    w.post(HOOK, body=body, headers={name: value for name, value in headers.items() if value})


@walk("mail-events")
def events(w: Walk) -> None:
    """Report bounces, complaints and others; repeat them; sign them wrongly."""
    for number, given in enumerate(EVENTS):
        event(w, json.dumps(given).encode(), f"msg_{number}")
    first, second = (json.dumps(given).encode() for given in EVENTS[:2])
    event(w, first, "msg_0")
    event(w, second, "msg_0")
    event(w, b"{", "msg_a")
    event(w, first, "msg_b", moved=-400)
    event(w, first, "msg_c", moved=86_400)
    event(w, first, "msg_d", moved=-200)
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        event(w, first, "msg_e", {name: ""})
        event(w, first, "msg_f", {name: "x"})
    event(w, first, "msg_g", {"webhook-signature": "v1,AAAA v2,x"})
    event(w, first, "msg_h", {"Content-Type": "text/plain"})
    w.get(f"{ADMIN}/suppressed_emails?order=created_at", key="all")
    w.get(f"{ADMIN}/email_send_log?order=created_at", key="all")
    w.audit()


@walk("mail-unsubscribe")
def unsubscribe(w: Walk) -> None:
    """Follow the link of a mail, as a person, as a checker of links, and as a mail program."""
    tokens = [
        {"token": TOKEN, "email": ANN},
        {"token": "u" * 64, "email": "Bo@example.org"},
        {"token": "v" * 128, "email": "x@y.example", "used_at": "2021-01-01T00:00:00Z"},
    ]
    w.post(f"{ADMIN}/email_unsubscribe_tokens", tokens, key="all")
    link = f"/unsubscribe?token={TOKEN}"
    for _ in range(2):
        w.get(link)
    w.ask("HEAD", link)
    w.get(link, headers={"Accept": "text/markdown"})
    one_click = {"List-Unsubscribe": "One-Click"}
    w.post(link, form=one_click)
    w.get(link)
    w.post(link, form=one_click)
    w.post(f"/unsubscribe?token={'u' * 64}", body=b"\xff\xfe", headers={"Content-Type": "a/b"})
    w.post(f"/unsubscribe?token={'v' * 128}")
    for query in ("", "?token=", "?token=x", f"?token={'w' * 32}", f"?token={TOKEN[:-1]}", "?x=y"):
        w.get(f"/unsubscribe{query}")
        w.post(f"/unsubscribe{query}")
    w.ask("OPTIONS", link, headers={"Origin": "https://other.example"})
    w.ask("PUT", link)
    w.get(f"{ADMIN}/suppressed_emails?select=email,reason&order=email", key="all")
    w.get(f"{ADMIN}/email_unsubscribe_tokens?order=email", key="all")
    w.audit()


@walk("mail-subscribers", kind="newsletter")
def subscribers(w: Walk) -> None:
    """Ask addresses by the API, and look at pages of a site that is not built."""
    path = "/api/public/v1/subscribers"
    wish = {"email": "ann@readers-club.net", "consent": "I want it."}
    bodies: tuple[Any, ...] = (
        wish,
        wish,
        {**wish, "email": "Bo@readers-club.net", "source": "A fair", "language": "de"},
        {"email": ANN},
        {**wish, "email": "no address"},
        {**wish, "language": "?"},
        {**wish, "consent": "x" * 1001},
        [],
        None,
    )
    for body in bodies:
        w.post(path, body, key="all")
    w.post(path, wish)
    w.get(path, key="all")
    for page in ("/subscribe", "/subscribe/confirm?token=x", f"/unsubscribe?token={'0' * 64}"):
        w.get(page)
        w.post(page, form={"email": ANN})
    w.post("/subscribe", form={"email": ANN}, headers={"Sec-Fetch-Site": "cross-site"})
    w.get(f"{ADMIN}/email_send_log?select=status,recipient_email,error_message", key="all")
    w.audit()
