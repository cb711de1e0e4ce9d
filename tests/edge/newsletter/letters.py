"""Letters of posts that the build has rendered, for tests."""

from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import orjson

from edge_api.journal.builds import read_head, read_index
from edge_api.mail.transports import serialize
from edge_api.newsletter.letter import Letter, LetterSite, compose_letter, read_site
from edge_api.schema.index import CURRENT_LINK, INDEX_FILE

SITE = "https://journal.example"
SENDER = "The Quiet Journal <post@journal.example>"
POSTAL = "The Quiet Journal, 1 Long Lane, Leipzig, Germany"
TOKEN = "a1b2" * 16
URL = f"{SITE}/unsubscribe?token={TOKEN}"
RECIPIENT = "Ann Lee <ann@work.example>"
DATE = datetime(2026, 11, 30, 8, 15, tzinfo=UTC)
MESSAGE_ID = "<018f6f2e-7a51-7c3e-8b1a-0123456789ab@journal.example>"


def compose(html: str = "<p>Words.</p>", language: str = "en", **changes: Any) -> Letter:
    """Return the letter of a post of a test's own; names with `site_` are of its journal."""
    post = {
        "title": "A post",
        "description": "About it.",
        "url": f"{SITE}/journal/post/",
        "published_at": DATE.isoformat(),
        "content_html": html,
    }
    site: dict[str, Any] = {"title": "The Quiet Journal", "url": SITE, "sender": SENDER}
    site["postal_address"] = POSTAL
    for name, value in changes.items():
        (site if name.startswith("site_") else post)[name.removeprefix("site_")] = value
    return compose_letter(post, LetterSite(**site), language)


def copy_letter(letter: Letter, **changes: Any) -> bytes:
    """Return a copy of a letter as it is sent."""
    own = {"recipient": RECIPIENT, "unsubscribe_url": URL, "message_id": MESSAGE_ID, "date": DATE}
    return serialize(letter.copy(**{**own, **changes}), international=False)


def read(octets: bytes) -> EmailMessage:
    """Return a message as a mail program reads it; raises for every defect."""
    message = message_from_bytes(octets, policy=policy.default.clone(raise_on_defect=True))
    assert isinstance(message, EmailMessage)
    return message


def read_part(message: EmailMessage, subtype: str) -> str:
    """Return the text or the HTML of a message."""
    part = message.get_body((subtype,))
    assert isinstance(part, EmailMessage)
    return str(part.get_content()).replace("\r\n", "\n")


def read_letters(
    build_dir: Path, languages: dict[str, str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the slug of each post of a build, and a copy of its letter."""
    build = (build_dir / CURRENT_LINK).resolve()
    site = read_site(build, read_head(build / INDEX_FILE), SENDER, POSTAL)
    _, posts = read_index(build / INDEX_FILE)
    for entry in posts.entries:
        post = orjson.loads(entry.document.body)
        language = (languages or {}).get(post["slug"], "en")
        yield post["slug"], copy_letter(compose_letter(post, site, language))
