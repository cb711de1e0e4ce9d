"""A letter in plain text, which stands in for the one in the post's own face."""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from urllib.parse import urlsplit

from edge_api.schema.index import IndexHead


@dataclass(frozen=True, slots=True)
class LetterSource:
    """The post that a letter has, as its record in the index has it."""

    slug: str
    title: str
    description: str
    url: str
    published_at: datetime
    content_html: str
    language: str = "en"
    direction: str = "ltr"


@dataclass(frozen=True, slots=True)
class LetterSite:
    """The journal that a letter comes from."""

    title: str
    url: str
    sender: str
    postal_address: str
    list_id: str


def read_site(_build: Path, head: IndexHead, sender: str, postal_address: str) -> LetterSite:
    """Return the journal of a build."""
    list_id = f"newsletter.{urlsplit(head.site_url).hostname}"
    return LetterSite(head.site_title, head.site_url, sender, postal_address, list_id)


@dataclass(frozen=True, slots=True)
class Letter:
    """A composed letter; its copies differ in recipient, address to unsubscribe at, id and date."""

    source: LetterSource
    site: LetterSite

    def copy(
        self, recipient: str, unsubscribe_url: str, message_id: str, date: datetime
    ) -> EmailMessage:
        """Return the message to one subscriber."""
        message = EmailMessage(policy=SMTP)
        message["From"], message["To"] = self.site.sender, recipient
        message["Subject"], message["Date"] = self.source.title, date.astimezone(UTC)
        message["Message-ID"] = message_id
        message["List-Id"] = f"<{self.site.list_id}>"
        message["List-Unsubscribe"] = f"<{unsubscribe_url}>"
        lines = self.source.description, self.source.url, self.site.postal_address, unsubscribe_url
        message.set_content("\n\n".join(lines))
        return message


def compose_letter(source: LetterSource, site: LetterSite) -> Letter:
    """Return the letter of a post."""
    return Letter(source, site)
