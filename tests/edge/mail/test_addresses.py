from pathlib import Path

import pytest

from edge_api.db.mail_addresses import (
    Mailbox,
    MaildirRelay,
    MailServer,
    check_mailbox,
    check_relay,
    parse_imap,
    parse_mailbox,
    parse_relay,
)
from edge_api.mail.transports import open_transport

RELAYS = [
    ("smtp://relay.example", MailServer("offered", "relay.example", 25)),
    ("smtp://localhost:2525", MailServer("offered", "localhost", 2525)),
    ("smtp+starttls://relay.example", MailServer("starttls", "relay.example", 587)),
    ("smtps://relay.example", MailServer("tls", "relay.example", 465)),
    ("smtps://[::1]:2465", MailServer("tls", "::1", 2465)),
    (
        "smtp+starttls://us%40er.example:p%3A%2F%25%C3%A9+@relay.example:25",
        MailServer("starttls", "relay.example", 25, "us@er.example", "p:/%\u00e9+"),
    ),
    ("maildir:var/mail", MaildirRelay(Path("var/mail"))),
    ("maildir:/var/spool/journal mail", MaildirRelay(Path("/var/spool/journal mail"))),
]


@pytest.mark.parametrize(("text", "place"), RELAYS)
def test_an_address_of_a_relay_is_read(text: str, place: MailServer | MaildirRelay) -> None:
    """Each form of SMTP_URL says one place, and a setting keeps its text."""
    assert parse_relay(text) == place
    assert check_relay(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "relay.example",
        "relay.example:25",
        "http://relay.example",
        "smtp:relay.example",
        "smtp://",
        "smtp://:25",
        "smtp://relay.example/",
        "smtp://relay.example?tls=no",
        "smtp://relay.example#x",
        "smtp://relay.example:",
        "smtp://relay.example:0",
        "smtp://relay.example:65536",
        "smtp://relay.example\n",
        "smtp://re lay.example",
        "smtp://user@relay.example",
        "smtp://:password@relay.example",
        "smtp://u:@relay.example",
        "smtp://u:p@ss@relay.example",
        "smtp://u:p/s@relay.example",
        "smtp://u:100%@relay.example",
        "smtp://u:%00@relay.example",
        "smtp://u:%0d%0aQUIT@relay.example",
        "smtp://u:%ff@relay",
        "smtp://[::g]",
        "smtp://[1:2:3]",
        "smtp://[127.0.0.1]",
        "SMTP://relay.example",
        "maildir:",
        "maildir://host/mail",
        "maildir:a\nb",
        "maildir:\x00",
    ],
)
def test_an_invalid_relay_url_is_refused(text: str) -> None:
    """Anything else is refused with what to fix, and without a password."""
    with pytest.raises(ValueError, match=r"^must ") as caught:
        check_relay(text)

    assert "p@ss" not in str(caught.value)
    with pytest.raises(ValueError, match=r"."):
        open_transport(text)


def test_a_password_is_not_printed() -> None:
    """The value of a relay shows no password."""
    assert "secret" not in repr(parse_relay("smtp://user:secret@relay.example"))


READ_MAILBOXES = [
    (
        "imaps://ann%40work.net:p%3A%2F%25+@imap.example",
        MailServer("tls", "imap.example", 993, "ann@work.net", "p:/%+", "INBOX"),
    ),
    (
        "imap+starttls://ann:secret@imap.example:1143/Replies/from%20people",
        MailServer("starttls", "imap.example", 1143, "ann", "secret", "Replies/from people"),
    ),
    ("imap://a:b@localhost", MailServer("offered", "localhost", 143, "a", "b", "INBOX")),
    ("imap://a:b@127.0.0.1:1/x", MailServer("offered", "127.0.0.1", 1, "a", "b", "x")),
    ("imap://a:b@[::1]/x", MailServer("offered", "::1", 143, "a", "b", "x")),
]


@pytest.mark.parametrize(("text", "place"), READ_MAILBOXES)
def test_an_address_of_a_mailbox_is_read(text: str, place: MailServer) -> None:
    """Each form of MAILBOX_URL says one folder, and shows no password."""
    assert parse_imap(text) == place
    assert str(place.password) not in repr(place) or len(str(place.password)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "imap.example",
        "imaps://imap.example",
        "imaps://ann@imap.example",
        "imaps://ann:p@ss@imap.example",
        "imaps://ann:@imap.example",
        "IMAPS://a:b@imap.example",
        "imap://a:b@imap.example",
        "imap://a:b@localhost.evil.net",
        "imap://a:b@127.evil.net",
        "imap://localhost:x@imap.example",
        "imap://a:b@10.0.0.1",
        "smtp://a:b@localhost",
        "imaps://a:b@imap.example/",
        "imaps://a:b@imap.example/a%22b",
        "imaps://a:b@h.net/a%5Cb",
        "imaps://a:b@h.net/a\r\nb",
        "imaps://a:b@h.net/a%0d%0ab",
        "imaps://a:b@h.net/%C3%BC",
        "imaps://a:b@imap.example:0",
        "imaps://a:b@imap.example:65536",
        "imaps://a:%00@h.net",
    ],
)
def test_an_invalid_mailbox_url_is_refused(text: str) -> None:
    """Passwords go without TLS to this machine alone; no folder ends its command."""
    with pytest.raises(ValueError, match=r"^must ") as caught:
        parse_imap(text)

    assert "p@ss" not in str(caught.value)


MAILBOXES = [
    ("journal@work.example.org", Mailbox("", "journal", "work.example.org")),
    ("journal@localhost", Mailbox("", "journal", "localhost")),
    ("Journal <journal@a.test>", Mailbox("Journal", "journal", "a.test")),
    ('"Lee, Ann" <ann@a.test>', Mailbox("Lee, Ann", "ann", "a.test")),
    ("J\u00f6rg <j@b\u00fccher.example>", Mailbox("J\u00f6rg", "j", "xn--bcher-kva.example")),
    ("jos\u00e9@xn--bcher-kva.example", Mailbox("", "jos\u00e9", "b\u00fccher.example")),
]


@pytest.mark.parametrize(("text", "mailbox"), MAILBOXES)
def test_a_mailbox_is_read(text: str, mailbox: Mailbox) -> None:
    """An address, or a name and an address, is one mailbox; a setting keeps its text."""
    assert parse_mailbox(text) == mailbox
    assert check_mailbox(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "journal",
        "journal@",
        "@work.org",
        "Journal",
        "Journal <>",
        "<journal",
        "a@x.org, b@y.org",
        "a@x.org; b@y.org",
        "A <a@x.org>, B <b@y.org>",
        "A <a@x.org> <b@y.org>",
        "A <a@x.org>\r\nBcc: b@y.org",
        "A\n <a@x.org>",
        "A\x00 <a@x.org>",
        "A\u2028 <a@x.org>",
        "a@x.org (comment)",
        "group: a@x.org;",
        "=?utf-8?q?x=0Ay?=@x.org",
        "a@x.org b@y.org",
    ],
)
def test_an_invalid_sender_mailbox_is_refused(text: str) -> None:
    """No address, or one that could be read as two, is refused with what to fix."""
    with pytest.raises(ValueError, match=r"^must "):
        check_mailbox(text)
