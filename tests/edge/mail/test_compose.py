import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.utils import getaddresses
from typing import Any

import pytest
from jinja2 import UndefinedError
from selectolax.lexbor import LexborHTMLParser

from edge_api.leads.input import SUSPECT_FROM
from edge_api.mail.messages import MESSAGE_TYPES, compose
from tests.edge.mail.conftest import DESK_URL, LEAD, SITE, make_envelope, notification

UNSUBSCRIBE = f"https://journal.example/unsubscribe?token={'a1' * 32}"
CLAIM_URI = "https://journal.example/api/public/access-requests/claim"
APPROVED = {
    "approved": True,
    "claim_uri": CLAIM_URI,
    "expires_at": "2026-06-15T12:00:00.000000Z",
    **SITE,
}
REQUEST = {
    "name": "Ann Lee",
    "email": "ann.lee@work.example.org",
    "purpose": "We would like to read the posts.",
    "scopes": "posts:read",
    "expires_at": "2026-06-15T12:00:00.000000Z",
}
KEY = {"name": "Printer", "last_four": "Q9zY", "scopes": "posts:read"}
VALUES: Mapping[str, Mapping[str, Any]] = {
    "lead_notification": {"lead": LEAD, "desk_url": DESK_URL, **SITE},
    "lead_acknowledgement": SITE,
    "access_decision": APPROVED,
    "access_request": {"request": REQUEST, "desk_url": DESK_URL, **SITE},
    "owner_summary": {"number": 7, "desk_url": DESK_URL, **SITE},
    "weekly_stats": {
        "sentence": "214 people read you this week.",
        "stats": {
            "views": 30,
            "pages": [{"path": "/journal/first/", "views": 30}],
            "referrers": [{"name": "news.example", "count": 7}],
            "kinds": [{"kind": "ai_crawler", "views": 4}],
        },
        "kinds": {"ai_crawler": "AI crawlers"},
        "desk_url": DESK_URL,
        **SITE,
    },
    "hidden_leads": {"number": 2, "leads": [LEAD], "desk_url": DESK_URL, **SITE},
    "desk_link": {
        "link_url": "https://journal.example/desk/link/secret/",
        "expires_at": "2026-06-15T12:00:00.000000Z",
        **SITE,
    },
    "key_notice": {
        "key": {**KEY, "revoked_at": "2026-06-15T12:00:00.000000Z"},
        "undo_until": "2026-06-15T12:10:00.000000Z",
        "desk_url": "https://journal.example/desk/access/",
        **SITE,
    },
    "lead_answer": {
        "answer": {"subject": "Re: Thursday", "body": "Friday?\n\nGrace"},
        "quoted": {"name": "Ann Lee", "at": "2026-06-01T12:00:00.000000Z", "text": "Thursday?"},
        **SITE,
    },
    "mailing_notice": {
        "mailing": {"subject": "Two winters", "held_at": None, "waits_for": "a key published it"},
        "desk_url": DESK_URL,
        **SITE,
    },
    "newsletter_confirmation": {
        "confirm_url": "https://journal.example/subscribe/confirm?token=secret",
        "leave_url": "https://journal.example/unsubscribe?token=secret",
        **SITE,
    },
}
NAMES = tuple(MESSAGE_TYPES)


def composed(name: str, **envelope: Any) -> EmailMessage:
    """Return one message of each kind."""
    given = {"unsubscribe_url": UNSUBSCRIBE, **envelope}
    return compose(name, make_envelope(**given), VALUES[name])


def received(message: EmailMessage, *, utf8: bool = False) -> EmailMessage:
    """Return a message as a reader has it, from its octets."""
    octets = message.as_bytes(policy=message.policy.clone(utf8=utf8))  # type: ignore[call-arg]
    parsed = message_from_bytes(octets, policy=policy.default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def part(message: EmailMessage, kind: str) -> str:
    """Return the text of a received message, or its HTML."""
    body = received(message).get_body((kind,))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


def both(message: EmailMessage) -> str:
    """Return all that a reader sees of a message: subject, text, and the text of the HTML."""
    html = LexborHTMLParser(part(message, "html")).text()
    return "\n".join([str(received(message)["Subject"]), part(message, "plain"), html])


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_whole(name: str) -> None:
    """Each message has its headers once, text before HTML, and lines that every relay takes."""
    message = composed(name)
    octets = message.as_bytes()
    parsed = received(message)

    for header in ("From", "To", "Subject", "Date", "Message-ID", "MIME-Version"):
        assert len(parsed.get_all(header, [])) == 1, header
    # A person wrote an answer (RFC 3834, section 5).
    assert len(parsed.get_all("Auto-Submitted", [])) == (name != "lead_answer")
    assert parsed.get_content_type() == "multipart/alternative"
    parts = [child.get_content_type() for child in parsed.iter_parts()]
    assert parts == ["text/plain", "text/html"]
    assert {child.get_content_charset() for child in parsed.iter_parts()} == {"utf-8"}
    assert octets.isascii()
    assert max(map(len, octets.split(b"\r\n"))) <= 998
    assert octets.count(b"\n") == octets.count(b"\r\n") == octets.count(b"\r")
    assert not parsed.defects
    assert parsed["Precedence"] is None


def test_a_message_keeps_its_id_and_date() -> None:
    """Two attempts at the same entry have the same Message-ID, and the date in UTC."""
    date = datetime(2026, 6, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    given = {"message_id": "0197F0C0-0000-7000-8000-000000000001", "date": date}
    first, second = (received(composed("access_decision", **given)) for _ in range(2))

    assert first["Message-ID"] == "<0197f0c0-0000-7000-8000-000000000001@journal.example>"
    assert first["Message-ID"] == second["Message-ID"]
    assert first["Date"] == "Mon, 01 Jun 2026 12:30:00 +0000"


@pytest.mark.parametrize(
    ("host", "written"),
    [("a" * 60 + "." + "b" * 60 + ".example", None), ("127.0.0.1", None), ("::1", "[::1]")],
)
def test_a_message_id_is_on_one_line(host: str, written: str | None) -> None:
    """A long host is neither folded nor encoded, and an address of IPv6 is in brackets."""
    message = composed("access_decision", host=host)

    line = next(
        line for line in message.as_bytes().split(b"\r\n") if line.startswith(b"Message-ID")
    )
    assert line.endswith(f"@{written or host}>".encode())


def test_an_owner_can_answer() -> None:
    """The owner's message comes from the journal, and its answer goes to the sender of the lead."""
    parsed = received(notification())

    assert str(parsed["From"]) == "The Journal <journal@journal.example>"
    assert str(parsed["To"]) == "owner@journal.example"
    assert str(parsed["Reply-To"]) == "Ann Lee <ann.lee@work.example.org>"
    assert parsed["Subject"] == "New enquiry from Ann Lee"
    assert parsed["Auto-Submitted"] == "auto-generated"
    assert parsed["List-Unsubscribe"] is None


@pytest.mark.parametrize("kind", ["plain", "html"])
def test_an_owner_reads_the_whole_lead(kind: str) -> None:
    """Text and HTML have all of the lead, as it was typed."""
    message = (
        "2 < 3 & \u201cJosu\u00e9\u201d\n\n<script>alert(1)</script>\n{{ 7 * 7 }} \u5f20\U0001f600"
    )
    content = part(notification(message=message, budget_tier="5k & more"), kind)
    seen = LexborHTMLParser(content).text() if kind == "html" else content

    for words in ("Ann Lee", "ann.lee@work.example.org", "5k & more", "1 June 2026, 12:00 UTC"):
        assert words in seen
    assert [line for line in message.split("\n") if line not in seen] == []
    assert "<script" not in content or kind == "plain"


def test_each_line_of_a_lead_is_quoted() -> None:
    """Each line of a lead's message is quoted in the text, whatever ends a line."""
    ends = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
    message = "".join(f"here{end}-- \n" for end in ends)
    text = part(notification(message=message), "plain")

    assert [line for line in text.splitlines() if "here" in line] == ["> here"] * len(ends)
    assert [line for line in text.splitlines() if line == "-- "] == ["-- "]


MARKS: list[tuple[int, Any, str | None]] = [
    (0, None, None),
    (SUSPECT_FROM - 1, ["link", "shouting"], None),
    (SUSPECT_FROM, ["markup"], "looks like spam"),
    (8, ["many_links", "mixed_scripts"], "looks like spam"),
    (3, ["repeated"], "repeated"),
    (4, ["link", "repeated"], "looks like spam"),
    (99, None, "looks like spam"),
    (99, {"set": "by hand"}, "looks like spam"),
    (99, [1, None, ["x"]], "looks like spam"),
]


@pytest.mark.parametrize(("score", "reasons", "mark"), MARKS)
def test_a_lead_that_looks_like_spam_is_marked(score: int, reasons: Any, mark: str | None) -> None:
    """A high score and a repetition are in the subject, and the reasons in the message."""
    message = notification(spam_score=score, spam_reasons=reasons)
    subject = "New enquiry from Ann Lee"

    assert received(message)["Subject"] == (f"[{mark}] {subject}" if mark else subject)
    for kind in ("plain", "html"):
        content = part(message, kind)
        assert ("This looks like spam: " in content) == (mark == "looks like spam")
        assert ("The same was sent before" in content) == (mark == "repeated")
        if mark == "looks like spam" and isinstance(reasons, list):
            assert str(reasons[0]).replace("_", " ") in content


def test_an_acknowledgement_is_unsubscribed_from_with_one_click() -> None:
    """The headers of RFC 8058 are whole, each on its line, and the link is in text and HTML."""
    message = composed("lead_acknowledgement")
    lines = message.as_bytes().split(b"\r\n")

    assert f"List-Unsubscribe: <{UNSUBSCRIBE}>".encode() in lines
    assert b"List-Unsubscribe-Post: List-Unsubscribe=One-Click" in lines
    assert b"Auto-Submitted: auto-replied" in lines
    assert UNSUBSCRIBE in part(message, "plain").splitlines()
    links = LexborHTMLParser(part(message, "html")).css("a")
    assert UNSUBSCRIBE in [link.attributes.get("href") for link in links]


def test_one_click_is_only_offered_over_https() -> None:
    """A journal on this machine has a link and no promise of one click (RFC 8058, section 3.1)."""
    parsed = received(
        composed("lead_acknowledgement", unsubscribe_url="http://127.0.0.1:8000/u?t=1")
    )

    assert parsed["List-Unsubscribe"] == "<http://127.0.0.1:8000/u?t=1>"
    assert parsed["List-Unsubscribe-Post"] is None


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "mailto:x@journal.example",
        "https://journal.example/u>, <https://evil.example",
        "https://journal.example/u\r\nBcc: a@b.org",
        "https://journal.example/\u00fc",
        "//x",
        "https://journal.example/?a==?utf-8?q?x=0Ay?=",
        f"https://journal.example/{'x' * 1000}",
    ],
)
def test_an_acknowledgement_needs_a_way_out(url: str | None) -> None:
    """Without an address to unsubscribe at there is no acknowledgement."""
    with pytest.raises(ValueError, match="unsubscribe"):
        composed("lead_acknowledgement", unsubscribe_url=url)


def test_an_acknowledgement_has_nothing_of_the_submitter() -> None:
    """Nothing that was sent can be in it: its template has no place for it, and takes none."""
    secrets = {name: f"{name}-zqx-7391" for name in LEAD}
    message = composed("lead_acknowledgement", recipient="someone@work.example.org")
    everything = message.as_string() + both(message) + part(message, "html")

    assert [
        word for word in [*secrets.values(), "zqx", "Ann", "5k-10k"] if word in everything
    ] == []
    assert str(received(message)["To"]) == "someone@work.example.org"
    for name, value in {**secrets, "lead": secrets}.items():
        with pytest.raises(TypeError, match=name):
            compose(
                "lead_acknowledgement",
                make_envelope(unsubscribe_url=UNSUBSCRIBE),
                {**SITE, name: value},
            )


def test_acknowledgements_are_all_the_same() -> None:
    """Two of them differ in recipient, id, date and link, and in nothing else."""
    first = composed("lead_acknowledgement")
    second = composed("lead_acknowledgement", recipient="someone@work.example.org")

    assert part(first, "plain") == part(second, "plain")
    assert part(first, "html") == part(second, "html")
    assert first["Subject"] == second["Subject"]


def test_an_approval_says_how_to_claim() -> None:
    """The message says what the token does, where, and until when."""
    text = part(composed("access_decision"), "plain")

    assert str(composed("access_decision")["Subject"]) == (
        "Your request for access is approved: The Journal"
    )
    assert "https://journal.example/contact/access/claim/" in text.splitlines()
    assert f"curl {CLAIM_URI} \\" in text.splitlines()
    assert "15 June 2026, 12:00 UTC" in " ".join(text.split())
    assert re.search(r"(?s)claim token .* fetches your credential", text)
    assert "fe_" not in both(composed("access_decision"))


def test_a_refusal_says_that_there_is_nothing_to_claim() -> None:
    """The message says so, and has no address to claim at."""
    values = {**APPROVED, "approved": False, "expires_at": None}
    message = compose("access_decision", make_envelope(), values)

    assert "declined" in str(message["Subject"])
    assert CLAIM_URI not in both(message)


def test_a_notice_of_a_key_says_what_holds_now() -> None:
    """Revoked, and until when that can be taken back; or valid, and what to do if that is wrong."""
    revoked = composed("key_notice")
    assert str(revoked["Subject"]) == "The key Printer was revoked"
    assert "15 June 2026, 12:10 UTC" in part(revoked, "plain")
    late = {**VALUES["key_notice"], "undo_until": None}
    assert "slip" not in both(compose("key_notice", make_envelope(), late))
    back = {**late, "key": {**KEY, "revoked_at": None}}
    message = compose("key_notice", make_envelope(), back)
    assert str(message["Subject"]) == "The key Printer is valid as before"
    assert "https://journal.example/desk/access/" in both(message)
    without_desk = compose("key_notice", make_envelope(), {**back, "desk_url": ""})
    assert "/desk/" not in both(without_desk)


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_given_what_it_is_declared_to_be_given(name: str) -> None:
    """A value too few or too many is an error that names it."""
    values = VALUES[name]
    envelope = make_envelope(unsubscribe_url=UNSUBSCRIBE)

    assert set(values) == set(MESSAGE_TYPES[name].values)
    for value in values:
        with pytest.raises(TypeError, match=f"missing or unknown values: {value}"):
            compose(name, envelope, {key: values[key] for key in values if key != value})
    with pytest.raises(TypeError, match="missing or unknown values: extra"):
        compose(name, envelope, {**values, "extra": 1})


@pytest.mark.parametrize("member", [name for name in LEAD if name != "spam_score"])
def test_a_lead_lacks_nothing(member: str) -> None:
    """A lead without one of its members is an error, and no message with a gap."""
    lead = {key: LEAD[key] for key in LEAD if key != member}
    with pytest.raises((UndefinedError, KeyError)):
        compose("lead_notification", make_envelope(), {"lead": lead, "desk_url": "", **SITE})


@pytest.mark.parametrize("name", NAMES)
def test_a_message_fetches_nothing(name: str) -> None:
    """The HTML has no picture, script, form or style sheet from elsewhere: nobody is tracked."""
    html = part(composed(name), "html")
    page = LexborHTMLParser(html)

    assert page.css("img, script, link, iframe, form, object, svg, video") == []
    assert re.findall(r"\burl\(|@import|\bsrc=|\bon\w+=", html) == []
    assert (page.css_first("h1") is None) == (name == "lead_answer")
    assert [element.attributes["lang"] for element in page.css("html")] == ["en"]


@pytest.mark.parametrize(
    "name",
    [
        "J\u00f6rg M\u00fcller",
        "\u0410\u043d\u043d\u0430 \u0418\u0432\u0430\u043d\u043e\u0432\u0430",
        "\u5f20\u4f1f",
        "\u0935\u093f\u0915\u094d\u0930\u092e",
        "O'Neil-Smith Jr.",
        "Zo\u00eb \u2019t Hart",
    ],
)
def test_a_name_arrives_letter_by_letter(name: str) -> None:
    """Names beyond ASCII are encoded by RFC 2047, and read the same at the other end."""
    message = notification(name=name)
    parsed = received(message)

    assert message.as_bytes().isascii()
    assert parsed["Reply-To"].addresses[0].display_name == name
    assert parsed["Subject"] == f"New enquiry from {name}"
    assert name in part(message, "plain")


def test_operators_mailboxes_arrive() -> None:
    """Names and domains beyond ASCII in settings are encoded."""
    sender = "B\u00fccher & Co <post@b\u00fccher.example>"
    parsed = received(composed("access_decision", sender=sender, recipient='"Lee, Ann" <a@b.test>'))

    assert parsed["From"].addresses[0].display_name == "B\u00fccher & Co"
    assert parsed["From"].addresses[0].addr_spec == "post@xn--bcher-kva.example"
    assert str(parsed["To"]) == "Lee Ann <a@b.test>"


@pytest.mark.parametrize(
    "changes",
    [
        {"recipient": "a@x.org, b@y.org"},
        {"recipient": "a@x.org\r\nBcc: b@y.org"},
        {"recipient": ""},
        {"sender": "A <a@x.org>, B <b@y.org>"},
        {"message_id": "x\r\nBcc: b@y.org"},
        {"message_id": ""},
        {"host": "x>\r\nBcc: b@y.org"},
        {"host": ""},
        {"host": "b\u00fccher.example"},
    ],
)
def test_an_invalid_envelope_is_refused(changes: dict[str, str]) -> None:
    """Anything but one message between two mailboxes is refused."""
    with pytest.raises(ValueError, match=r"must |badly formed"):
        composed("access_decision", **changes)


ENDS = [
    "\r",
    "\n",
    "\r\n",
    "\n\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
]
TRICKS = [
    *(f"Ann{end}Bcc: evil@x.org" for end in ENDS),
    *(f"Ann{end}{end}<b>body</b>" for end in ENDS),
    *(f"Ann{end} folded: evil@x.org" for end in ENDS),
    *(f"=?utf-8?q?Ann{end}Bcc:_evil=40x.org?=" for end in ENDS[:3]),
    "=?utf-8?q?Ann=0D=0ABcc:_evil=40x.org?=",
    "=?utf-8?q?Ann=0D=0ABcc=3A_evil=40x.org?= <evil@x.org>",
    "=?utf-8?b?QW5uDQpCY2M6IGV2aWxAeC5vcmc=?=",
    "Ann =?utf-8?b?DQpCY2M6IGV2aWxAeC5vcmc=?= Lee",
    "=?utf-7?q?+AA0ACg-Bcc:_evil?=",
    "=?iso-8859-1?q?=0ABcc:_evil=40x.org?=" * 2,
    "=" + "?utf-8?q?=0ABcc:_evil?" + "=",
    "=\u200b?utf-8?q?=0ABcc:_evil?\u200b=",
    "=\x00?utf-8?q?=0ABcc:_evil?=",
    "evil@x.org",
    "evil@x.org,",
    "evil@x.org, Ann",
    "Ann, evil@x.org",
    "Ann <evil@x.org>",
    "Ann <evil@x.org>,",
    '"Ann" <evil@x.org>, "',
    'Ann" <evil@x.org>, "Lee',
    "Ann\\",
    'Ann\\" <evil@x.org>, "',
    "Ann (evil@x.org",
    "Ann) <evil@x.org> (",
    "group: evil@x.org;",
    "undisclosed-recipients:;",
    "<evil@x.org>",
    ">, <evil@x.org",
    ";evil@x.org;",
    "Ann\x00<evil@x.org>",
    "\x00Bcc: evil@x.org",
    "Ann\u202emoc.live@nna",
    "\u2066Ann\u2069\u202d<evil@x.org>",
    "\u200fAnn\u200e\u061c",
    "\ufeffAnn\u00ad\u180e",
    "\uff1cevil\uff20x.org\uff1e",
    "J\u00f6rg, evil@x.org, " + "\u00fc" * 60,
    "a" * 60 + "," + "b" * 30,
    "\u00dcnsal, " + "Foo " * 20,
    ("\u00e9" * 30 + ", <evil@x.org>, ") * 2,
    "Ann\t\t\tBcc: evil@x.org",
    "\ud800Ann\udfff",
    "{{ 7 * 7 }}{% raw %}",
    "<img src=x onerror=alert(1)>",
    "]]><!--",
    "To: evil@x.org",
    ".",
    "\U0001f600" * 100,
    " ",
]


def headers_of(message: EmailMessage) -> list[tuple[str, str]]:
    """Return the headers as a naive reader has them: unfolded, not decoded."""
    octets = message.as_bytes(policy=message.policy.clone(utf8=True))  # type: ignore[call-arg]
    raw = BytesHeaderParser(policy=policy.compat32).parsebytes(octets)
    return [(name, " ".join(str(value).split())) for name, value in raw.items()]


def check_harmless(message: EmailMessage) -> None:
    """Assert that a message goes to one, comes from one, and has no header but ours."""
    ours = [name for name, _ in headers_of(notification())]
    found = headers_of(message)
    assert [name for name, _ in found] in (ours, [name for name in ours if name != "Reply-To"])
    values = dict(found)
    assert values["To"] == "owner@journal.example"
    assert values["From"] == "The Journal <journal@journal.example>"
    octets = message.as_bytes()
    head = octets.partition(b"\r\n\r\n")[0]
    assert re.search(rb"^(bcc|folded|cc):", head, re.IGNORECASE | re.MULTILINE) is None
    assert max(map(len, head.split(b"\r\n"))) <= 998
    check_answers(message, values)
    parsed = received(message)
    shown = f"{parsed['Subject']}{parsed['Reply-To'] or ''}"
    assert not re.search(
        r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f]", shown
    )
    assert [child.get_content_type() for child in parsed.iter_parts()] == [
        "text/plain",
        "text/html",
    ]


def check_answers(message: EmailMessage, values: Mapping[str, str]) -> None:
    """Assert that readers strict and lenient find one address to answer to, the lead's."""
    if "Reply-To" not in values:
        return
    assert [address for _, address in getaddresses([values["Reply-To"]])] == [LEAD["email"]]
    decoded = received(message)["Reply-To"]
    assert [address.addr_spec for address in decoded.addresses] == [LEAD["email"]]
    # A reader that decodes first and parses then finds the same.
    assert [address for _, address in getaddresses([str(decoded)])] == [LEAD["email"]]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_name_adds_a_header_or_an_address(trick: str) -> None:
    """With any name there is one recipient and one address to answer to, no more."""
    check_harmless(notification(name=trick))


@pytest.mark.parametrize("trick", TRICKS)
def test_no_reason_adds_a_header(trick: str) -> None:
    """Any text in the reasons, the budget or the source is plain text."""
    changes = {"spam_score": 9, "spam_reasons": [trick], "budget_tier": trick, "source": trick}
    message = notification(**changes)

    check_harmless(message)
    (line,) = re.findall(r"^This looks like spam: .*$", part(message, "plain"), re.MULTILINE)
    assert line.endswith(".")


@pytest.mark.parametrize("trick", TRICKS)
def test_no_title_adds_a_header(trick: str) -> None:
    """With any title of the site, the subject is one header."""
    message = compose("access_decision", make_envelope(), {**APPROVED, "site_title": trick})

    ours = [name for name, _ in headers_of(composed("access_decision"))]
    assert [name for name, _ in headers_of(message)] == ours


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("form", ["{}", "{}@x.org", "ann@{}", "ann@x.org{}", "{} <ann@x.org>"])
def test_no_address_adds_a_header_or_an_address(trick: str, form: str) -> None:
    """An address that is none is refused on the envelope, and left out of Reply-To."""
    address = form.format(trick)
    message = notification(email=address)
    found = headers_of(message)
    answers = [value for name, value in found if name == "Reply-To"]

    assert {name for name, _ in found} - {"Reply-To"} == {
        name for name, _ in headers_of(notification()) if name != "Reply-To"
    }
    assert len(getaddresses(answers)) == len(answers) <= 1
    try:
        sent = composed("access_decision", recipient=address)
    except ValueError:
        return
    to = [value for name, value in headers_of(sent) if name == "To"]
    assert len(to) == len(getaddresses(to)) == 1


def test_there_are_enough_tricks() -> None:
    """The lists above try each kind of place in more than fifty ways, all different."""
    assert len(TRICKS) == len(set(TRICKS)) > 50
