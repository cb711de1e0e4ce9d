"""What carries mail, by its address: a relay that speaks SMTP, or a folder."""

from edge_api.domain.mail.transport import Transport
from edge_api.outgoing.maildir import MaildirTransport
from edge_api.outgoing.smtp import SmtpTransport
from edge_api.schema.relay_address import MailFolder, parse_relay


def open_transport(url: str) -> Transport:
    """Return what carries mail to an address such as SMTP_URL. Raises ValueError.

    Nothing is connected to before a session is entered.
    """
    place = parse_relay(url)
    return MaildirTransport(place) if isinstance(place, MailFolder) else SmtpTransport(place)
