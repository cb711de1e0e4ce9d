"""The posts of a build as letters: read from its files, composed once, copied for each subscriber.

Posts are read from the build's files, so that a process that only sends mail can read them too.
Mail programs know few elements and properties, so the post's HTML is rewritten in those; the post
stays whole as long as the letter is shorter than what they show.
"""

import re
import secrets
from base64 import encodebytes
from binascii import b2a_qp
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import urlsplit

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from pydantic import ValidationError

from edge_api.db.mail_addresses import parse_mailbox
from edge_api.journal.builds import BuildRefusal, read_head, read_post_lines
from edge_api.mail.clean_text import one_line
from edge_api.mail.messages import (
    MESSAGE_POLICY,
    add_unsubscribe_headers,
    header_address,
    header_subject,
    is_message_id,
)
from edge_api.schema.index import (
    CURRENT_LINK,
    INDEX_FILE,
    NEWSLETTER_FILE,
    SITE_FOLDER,
    IndexHead,
    NewsletterNotes,
)
from edge_api.schema.sentences import ENGLISH, Language
from edge_api.schema.template_language import add_language_features, read_language

Post = Mapping[str, Any]
"""A post as the index has it."""
_FEW_WORDS: Final = 20
"""Posts with fewer words may have the same text by chance; their titles tell them apart."""


def digest_text(post: Post) -> str:
    """Return the digest of a post's Markdown in normal form, which no version of ours changes."""
    words = normalize("NFC", post["content"]).split()
    title = [post["title"]] if len(words) < _FEW_WORDS else []
    return sha256(" ".join(words + title).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class MailedBuild:
    """A build: its head, and what the heads of its posts say of the newsletter."""

    folder: Path
    head: IndexHead
    notes: NewsletterNotes

    def posts(self) -> Iterator[Post]:
        """Yield every post that can be mailed, the newest of the index first."""
        with (self.folder / INDEX_FILE).open("rb") as lines:
            next(lines)
            listed = map(orjson.loads, read_post_lines(lines))
            yield from (post for post in listed if post["slug"] not in self.notes.kept_out)
        yield from (orjson.loads(record.model_dump_json()) for record in self.notes.hidden)

    def list_names(self, slug: str) -> set[str]:
        """Return the slug of a post, and its former ones."""
        renamed = (self.head.renamed, self.notes.renamed)
        return {slug, *(old for names in renamed for old, new in names.items() if new == slug)}


@lru_cache(maxsize=8)
def find_post(build: MailedBuild, slug: str, text_digest: str = "") -> Post | None:
    """Return the post with a slug, a former slug, or else a text; without a slug the newest."""
    present, found = {**build.head.renamed, **build.notes.renamed}.get(slug), None
    for post in build.posts():
        if not slug or post["slug"] == slug:
            return post
        is_copy = text_digest and not found and digest_text(post) == text_digest
        if post["slug"] == present or is_copy:
            found = post
    return found


def open_build(build_dir: Path) -> MailedBuild:
    """Return the current build. Raises BuildRefusal."""
    try:
        folder = (build_dir / CURRENT_LINK).resolve(strict=True)
        return read_build(folder, (folder / INDEX_FILE).stat().st_mtime_ns)
    except OSError as error:
        raise BuildRefusal(f"there is no build: {error.strerror}") from None


@lru_cache(maxsize=2)
def read_build(folder: Path, _changed: int = 0) -> MailedBuild:
    """Return the build in a folder, read again if its index has changed. Raises BuildRefusal."""
    file = folder / NEWSLETTER_FILE
    try:
        notes = NewsletterNotes.model_validate_json(file.read_bytes() if file.exists() else b"{}")
    except ValidationError:
        raise BuildRefusal(f"{NEWSLETTER_FILE} cannot be read: build again") from None
    return MailedBuild(folder, read_head(folder / INDEX_FILE), notes)


MAX_HTML_OCTETS: Final = 100_000
"""The most octets of a letter's HTML as encoded: Gmail shows no more than 102 kB of it."""

_HOUSE_COLOURS: Final = """
    --paper: light-dark(#f8f5ee, #17181d);
    --sheet: light-dark(#f0ece1, #1f2127);
    --ink: light-dark(#1f222c, #d9d4c8);
    --ink-soft: light-dark(#5c5d66, #a3a096);
    --hairline: light-dark(#d8d2c3, #383a42);
    --accent: light-dark(#97192f, #e48f8b);
    --code-marked: light-dark(#e9dfbd, #3a3524);
"""
"""The colours of this project's theme, by day and by night, where another theme has none."""
_COLOUR: Final = re.compile(
    r"--([a-z-]+):\s*light-dark\((#(?:[\da-fA-F]{3}){1,2}),\s*(#(?:[\da-fA-F]{3}){1,2})\)"
)
_BAND: Final = ("#cddee4", "#e6e3d4", "#c9c08f", "#a3b184", "#7f9a7a", "#5f7f74", "#44615f")
"""The band of a journal without a photograph: the hills of its drawn landscape, from afar."""


@dataclass(frozen=True, slots=True)
class LetterSite:
    """The journal that a letter comes from."""

    title: str
    url: str
    sender: str  # `address` or `Name <address>`
    postal_address: str
    language: Language = ENGLISH
    style_sheet: str = ""
    """The theme's, whose colours of the form `--ink: light-dark(#000000, #ffffff)` are taken."""
    painting: str | None = None
    """The address of the photograph on the fore-edge, if the journal has one."""


def read_site(build: Path, head: IndexHead, sender: str, postal_address: str) -> LetterSite:
    """Return the journal of a build. Raises OSError where the build is gone."""
    site = build / SITE_FOLDER
    return LetterSite(
        head.site_title,
        head.site_url,
        sender,
        postal_address,
        read_language(build),
        "".join(each.read_text("utf-8") for each in sorted(site.glob("theme/style.*css"))),
        f"{head.site_url}/edge/picture.webp" if (site / "edge/picture.webp").is_file() else None,
    )


@dataclass(frozen=True, slots=True)
class Letter:
    """A composed letter; its copies differ in recipient, address to unsubscribe at, id and date."""

    headers: Mapping[str, object]
    """The headers that all copies have, as the library has parsed them."""
    text: tuple[str, ...]
    """The pieces around each address to unsubscribe at."""
    html: tuple[str, ...]

    def copy(
        self, recipient: str, unsubscribe_url: str, message_id: str, date: datetime
    ) -> EmailMessage:
        """Return the message to one subscriber.

        `message_id` is `<entry@host>`. Raises ValueError for it and for the addresses, if invalid.
        """
        if not is_message_id(message_id):
            raise ValueError("the Message-ID must have the form <id@host>, in ASCII")
        message = EmailMessage(policy=MESSAGE_POLICY)
        for name, value in {
            **self.headers,
            "To": header_address(parse_mailbox(recipient)),
            "Date": date.astimezone(UTC),
            "Message-ID": message_id,
        }.items():
            message[name] = value
        add_unsubscribe_headers(message, unsubscribe_url)
        # Encoded anew as a whole: an encoding breaks an address over lines wherever it stands.
        message.attach(_make_part("plain", unsubscribe_url.join(self.text)))
        message.attach(_make_part("html", str(escape(unsubscribe_url)).join(self.html)))
        return message


def compose_letter(post: Mapping[str, Any], site: LetterSite, language: str) -> Letter:
    """Return the letter of a post, which is as the index has it.

    Raises ValueError for an invalid sender.
    """
    # Parsers that nothing else of the service needs, and most journals mail nothing.
    from edge_api.newsletter import mail_markup  # noqa: PLC0415

    address = secrets.token_hex(16)  # random, so that no post can contain it
    # Of two colours of a name the first counts: others are for more contrast.
    found = _COLOUR.findall(f"{site.style_sheet}{_HOUSE_COLOURS}")[::-1]
    values: dict[str, Any] = {
        "colours": {
            "day": {name.replace("-", "_"): colour for name, colour, _ in found},
            "night": {name.replace("-", "_"): colour for name, _, colour in found},
        },
        "band": _BAND,
        "painting": site.painting,
        "title": one_line(post["title"]),
        "description": one_line(post["description"]),
        "url": post["url"],
        "published_at": post["published_at"],
        "language": language,
        "site_title": one_line(site.title),
        "site_url": site.url,
        "site_language": site.language,
        "postal_address": one_line(site.postal_address),
        "unsubscribe_url": address,
        "content": Markup(mail_markup.adapt(post["content_html"], post["url"], site.url)),  # noqa: S704
    }
    html, content, is_cut = mail_markup.finish(
        _ENVIRONMENT.get_template("letter.html").render(values),
        # A message has two octets for each line end.
        lambda part: min(len(each) + each.count(b"\n") for each in _encode(part)),
        MAX_HTML_OCTETS,
    )
    text = _ENVIRONMENT.get_template("letter.txt").render(
        {**values, "content": content, "is_cut": is_cut}
    )
    headers = EmailMessage(policy=MESSAGE_POLICY)
    for name, value in {
        "From": header_address(parse_mailbox(site.sender)),
        "Subject": header_subject(values["title"]),
        "List-Id": f"<newsletter.{urlsplit(site.url).hostname}>",
        "Content-Language": language,
        "MIME-Version": "1.0",
        # Neither quoted-printable nor base64 ever has this boundary.
        "Content-Type": 'multipart/alternative; boundary="=_letter"',
    }.items():
        headers[name] = value
    return Letter(dict(headers), tuple(text.split(address)), tuple(html.split(address)))


def _make_part(subtype: str, text: str) -> EmailMessage:
    part = EmailMessage(policy=MESSAGE_POLICY)
    octets, encoding = min(
        zip(_encode(text), ("quoted-printable", "base64"), strict=True),
        key=lambda each: len(each[0]),
    )
    part["Content-Type"] = f'text/{subtype}; charset="utf-8"'
    part["Content-Transfer-Encoding"] = encoding
    part.set_payload(octets.decode("ascii"))
    return part


def _encode(text: str) -> tuple[bytes, bytes]:
    """Return a text as quoted-printable and base64 (RFC 2045), which pass every relay unchanged."""
    return b2a_qp(text.encode()), encodebytes(text.encode())


_ENVIRONMENT: Final = Environment(
    loader=PackageLoader("edge_api.newsletter"),
    autoescape=select_autoescape(["html"], default_for_string=False),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
add_language_features(_ENVIRONMENT)
