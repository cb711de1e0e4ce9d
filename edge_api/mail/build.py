"""The parts of mail, put together from the settings: one way for the service and for commands."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Never
from urllib.parse import urlsplit

from edge_api.auth.actor import Clock
from edge_api.db.email_address import MailFolder, parse_mailbox, parse_relay
from edge_api.db.query import Store
from edge_api.journal.builds import BuildRefusal, read_head
from edge_api.mail.delivery import Delivery
from edge_api.mail.dispatcher import Dispatcher, MailStatus
from edge_api.mail.maildir import MaildirTransport
from edge_api.mail.messages import Refused, Session, Transport
from edge_api.mail.preparation import Acknowledgements, Letterhead, Preparation
from edge_api.mail.queue import NO_RELAY, MailRules, Outbox
from edge_api.mail.smtp import SmtpTransport
from edge_api.mail.suppressions import UnsubscribeLinks
from edge_api.schema.index import CURRENT_LINK, INDEX_FILE
from edge_api.settings import Settings

NO_SENDER: Final = "nobody@localhost"
"""Whom mail is from where nobody is named; it never leaves."""


@dataclass(frozen=True, slots=True)
class Mailing:
    """The parts of mail."""

    outbox: Outbox
    dispatcher: Dispatcher
    status: MailStatus
    links: UnsubscribeLinks


def make_mailing(
    settings: Settings,
    store: Store,
    clock: Clock,
    secret: bytes,
    transport: Transport | None = None,
) -> Mailing:
    """Return the parts of mail over one store; nothing runs yet.

    Without a `transport` it is the one of the settings.
    """
    carrier = transport or (
        open_transport(settings.smtp_url) if settings.smtp_url else NullTransport()
    )
    sender = settings.mail_from or NO_SENDER
    links = UnsubscribeLinks(store, clock, settings.site_url)
    preparation = Preparation(
        store,
        Letterhead(sender, settings.site_url, lambda: site_title(settings)),
        Acknowledgements(store, clock, secret, settings.acknowledgements_per_hour),
        links,
    )
    delivery = Delivery(store, clock, preparation, parse_mailbox(sender).address)
    dispatcher = Dispatcher(store, clock, carrier, delivery)
    rules = mail_rules(settings)
    outbox = Outbox(rules, clock, dispatcher.wake)
    return Mailing(outbox, dispatcher, MailStatus(store, clock, rules, dispatcher), links)


def mail_rules(settings: Settings) -> MailRules:
    """Return what the settings say about who is written to."""
    return MailRules(
        configured=settings.smtp_url is not None,
        owner=parse_mailbox(settings.owner_email).address if settings.owner_email else None,
        acknowledges=settings.acknowledge_leads,
    )


def site_title(settings: Settings) -> str:
    """Return what the site calls itself: in its current build, or else by its host."""
    index = settings.build_dir / CURRENT_LINK / INDEX_FILE
    try:
        return read_head(index).site_title
    except BuildRefusal:
        return urlsplit(settings.site_url).hostname or settings.site_url


class NullTransport(AbstractAsyncContextManager[Session]):
    """A transport that carries nothing, where no relay is configured.

    Messages that were queued while there was one wait as they would for a relay that is down.
    """

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Return what raises Refused when it is entered."""
        return self

    async def __aenter__(self) -> Never:
        raise Refused("connect", None, "", NO_RELAY)

    async def __aexit__(self, *_exception: object) -> None:
        """Do nothing: it is never entered."""


def open_transport(url: str) -> Transport:
    """Return what carries mail to an address such as SMTP_URL. Raises ValueError.

    Nothing is connected to before a session is entered.
    """
    place = parse_relay(url)
    return MaildirTransport(place) if isinstance(place, MailFolder) else SmtpTransport(place)
