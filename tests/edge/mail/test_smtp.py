import asyncio
import ssl
from contextlib import AsyncExitStack
from email import message_from_bytes, message_from_string, policy
from email.message import EmailMessage
from functools import partial
from typing import Any

import pytest

from edge_api.db.mail_addresses import MailServer, parse_relay
from edge_api.mail.delivery import classify
from edge_api.mail.transports import (
    MailRefusal,
    MailSession,
    SmtpSession,
    Stage,
    Transport,
    open_transport,
)
from tests.edge.edge_process import free_port
from tests.edge.mail.conftest import make_envelope, notification
from tests.edge.mail.relays import ANY_ADDRESS, Relay, reciting, serving

pytestmark = pytest.mark.size("test")

SENDER, RECIPIENT = "journal@journal.example", "owner@journal.example"
LOGIN = "us%40er:p%3A%2Fss@"


def transport(url: str, seconds: float = 10, trust: ssl.SSLContext | None = None) -> Transport:
    """Return a transport to a relay of the test's own."""
    relay = parse_relay(url)
    assert isinstance(relay, MailServer)
    timeouts = (seconds, seconds)
    return partial(SmtpSession, relay, trust or ssl.create_default_context(), timeouts)


def near(port: int, **more: Any) -> Transport:
    """Return a transport to a port of this machine."""
    return transport(f"smtp://127.0.0.1:{port}", **more)


async def post(session: MailSession, message: EmailMessage | None = None, **changes: Any) -> None:
    """Send a message."""
    given = {"sender": SENDER, "recipient": RECIPIENT, **changes}
    await session.send(given["sender"], given["recipient"], message or notification())


async def refusal_of(carrier: Transport, **changes: Any) -> MailRefusal:
    """Return how a relay refuses a message, whenever it does."""
    with pytest.raises(MailRefusal) as caught:
        async with carrier() as session:
            await post(session, **changes)
    return caught.value


async def test_a_message_arrives_as_it_was_composed() -> None:
    """The relay receives the composed message, for one recipient."""
    message = notification(message=".\n..\nFrom here\n" + "x" * 1990)
    async with serving(Relay()) as relay, near(relay.port)() as session:
        await post(session, message)

    (received,) = relay.received
    assert (received.sender, received.recipients) == (SENDER, [RECIPIENT])
    assert received.octets == message.as_bytes()
    assert "SMTPUTF8" not in received.options


async def test_envelopes_have_addresses_without_names() -> None:
    """A sender or recipient with a name goes onto the envelope as an address."""
    async with serving(Relay()) as relay, near(relay.port)() as session:
        await post(session, sender=f"Journal <{SENDER}>", recipient=f"Owner <{RECIPIENT}>")

    assert (relay.received[0].sender, relay.received[0].recipients) == (SENDER, [RECIPIENT])


async def test_a_batch_goes_over_one_connection() -> None:
    """A session sends many messages over one connection."""
    async with serving(Relay()) as relay, near(relay.port)() as session:
        for _ in range(50):
            await post(session)

    assert (len(relay.received), len(relay.connections)) == (50, 1)


async def test_a_connection_closed_between_messages_is_opened_again() -> None:
    """A relay that hangs up between two messages gets both, each once."""
    async with serving(Relay()) as relay, near(relay.port)() as session:
        for _ in range(3):
            await post(session)
            relay.hang_up()

    assert (len(relay.received), len(relay.connections)) == (3, 3)


async def test_a_relay_that_says_goodbye_between_messages_is_called_again() -> None:
    """A 421 at the beginning of a second message opens a new connection; a second 421 ends it."""
    async with serving(Relay()) as relay, near(relay.port)() as session:
        await post(session)
        relay.answers["sender"] = "421 4.3.2 enough for one connection"
        with pytest.raises(MailRefusal) as caught:
            await post(session)

    assert (caught.value.stage, caught.value.code) == ("sender", 421)
    assert (len(relay.received), len(relay.connections)) == (1, 2)


REFUSALS: list[tuple[Stage, str, int, str, str]] = [
    ("sender", "550 5.7.1 not from you", 550, "5.7.1", "refused"),
    ("sender", "550 5.1.8 owner@journal.example", 550, "5.1.8", "refused"),
    ("recipient", "550 5.1.1 <owner@journal.example> unknown", 550, "5.1.1", "bounced"),
    ("recipient", "550 no such user", 550, "", "refused"),
    ("recipient", "550 4.1.1 codes that contradict", 550, "", "refused"),
    ("recipient", "450 4.2.0 greylisted, come back", 450, "4.2.0", "greylisted"),
    ("recipient", "451 4.7.1 greylisting in action", 451, "4.7.1", "greylisted"),
    ("recipient", "452 4.2.2 full", 452, "4.2.2", "retry"),
    ("recipient", "450 4.7.28 too many", 450, "4.7.28", "greylisted"),
    ("data", "554 5.7.1 policy", 554, "5.7.1", "refused"),
    ("data", "552 5.3.4 too big", 552, "5.3.4", "refused"),
    ("data", "451 4.3.0 later", 451, "4.3.0", "retry"),
    ("data", "454 4.7.0 slowly", 454, "4.7.0", "rate_limited"),
    ("data", "550 5.1.1 found out late", 550, "5.1.1", "bounced"),
    ("sender", "530 5.7.0 log in first", 530, "5.7.0", "login"),
]


@pytest.mark.parametrize(("stage", "answer", "code", "enhanced", "verdict"), REFUSALS)
async def test_a_refusal_has_its_stage_and_codes(
    stage: Stage, answer: str, code: int, enhanced: str, verdict: str
) -> None:
    """A relay's reply at a stage is reported in codes, without its text; the next one passes."""
    async with serving(Relay({stage: answer})) as relay, near(relay.port)() as session:
        with pytest.raises(MailRefusal) as caught:
            await post(session)
        relay.answers.clear()
        await post(session)

    refused = caught.value
    assert (refused.stage, refused.code, refused.enhanced) == (stage, code, enhanced)
    assert refused.message.endswith(f": {code} {enhanced}".rstrip())
    assert "@" not in refused.message
    assert refused.__cause__ is None
    assert classify(refused) == verdict
    assert (len(relay.received), len(relay.connections)) == (1, 1)


@pytest.mark.parametrize("stage", ["sender", "recipient", "data"])
async def test_a_connection_that_drops_is_no_answer(stage: str) -> None:
    """A relay that hangs up within a message has said nothing; the next one is carried."""
    async with serving(Relay(drops_at=stage)) as relay, near(relay.port)() as session:
        with pytest.raises(MailRefusal) as caught:
            await post(session)
        relay.drops_at = None
        await post(session)

    assert (caught.value.stage, caught.value.code, classify(caught.value)) == (
        "connect",
        None,
        "retry",
    )
    assert len(relay.received) == 1


@pytest.mark.parametrize("stage", ["sender", "recipient", "data"])
async def test_a_relay_that_falls_silent_is_left(stage: str) -> None:
    """A relay that does not answer is given its time and no more; the next message is carried."""
    relay = Relay(silent_at=stage)
    async with serving(relay), near(relay.port, seconds=2)() as session:
        with pytest.raises(MailRefusal) as caught:
            await post(session)
        relay.silent_at = None
        await post(session)

    assert caught.value.message == "the relay did not answer within 2 s"
    assert (caught.value.stage, classify(caught.value)) == ("connect", "retry")
    assert len(relay.received) == 1


async def test_answers_that_drip_in_do_not_prolong_the_time() -> None:
    """The time is for a message as a whole, not for each of a relay's lines."""
    lines = ["220 relay", "250 relay", *["250 fine"] * 100]
    async with reciting(*lines, pause=0.3) as port:
        refused = await refusal_of(near(port, seconds=0.5))

    assert refused.message == "the relay did not answer within 0.5 s"


async def test_an_unreachable_relay_is_reported() -> None:
    """A port where nobody listens refuses nothing for ever."""
    refused = await refusal_of(near(free_port()))

    assert (refused.stage, refused.code, classify(refused)) == ("connect", None, "retry")
    assert refused.message == "the relay cannot be reached, or closed the connection"


@pytest.mark.parametrize(
    ("lines", "code", "verdict"),
    [
        (["554 5.3.2 closed"], 554, "retry"),
        (["421 4.7.0 too many connections"], 421, "rate_limited"),
        (["220 relay", "502 5.5.1 what"], 502, "retry"),
        (["HTTP/1.1 400 Bad Request"], None, "retry"),
        (["220 relay", ""], None, "retry"),
    ],
)
async def test_a_relay_that_is_closed_refuses_no_message(
    lines: list[str], code: int | None, verdict: str
) -> None:
    """A reply before a message is begun is about the relay, not about the message."""
    async with reciting(*lines) as port:
        refused = await refusal_of(near(port))

    assert (refused.stage, refused.code, classify(refused)) == ("connect", code, verdict)


async def test_a_password_goes_over_tls_from_the_first_octet(
    served: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    """`smtps` encrypts at once, and logs in with what the address says, decoded."""
    async with serving(Relay(), implicit=served, auth_require_tls=False) as relay:
        carrier = transport(f"smtps://{LOGIN}127.0.0.1:{relay.port}", trust=trusting)
        async with carrier() as session:
            await post(session)

    assert relay.logins == [(b"us@er", b"p:/ss")]
    assert relay.received[0].encrypted


@pytest.mark.parametrize("scheme", ["smtp", "smtp+starttls"])
async def test_a_password_goes_after_starttls(
    scheme: str, served: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    """STARTTLS is used where it is offered, and comes before the login."""
    async with serving(Relay(), host=ANY_ADDRESS, starttls=served, auth_required=True) as relay:
        carrier = transport(f"{scheme}://{LOGIN}{ANY_ADDRESS}:{relay.port}", trust=trusting)
        async with carrier() as session:
            await post(session)

    assert relay.logins == [(b"us@er", b"p:/ss")]
    assert relay.received[0].encrypted


async def test_no_password_goes_without_tls() -> None:
    """A relay elsewhere that offers no TLS gets no password, and the operator a message."""
    async with serving(Relay(), host=ANY_ADDRESS, auth_require_tls=False) as relay:
        refused = await refusal_of(transport(f"smtp://{LOGIN}{ANY_ADDRESS}:{relay.port}"))

    assert relay.logins == []
    assert (refused.stage, classify(refused)) == ("login", "login")
    assert refused.message == "the relay offers no TLS, without which no password is sent"


async def test_this_machine_may_have_a_password_without_tls(served: ssl.SSLContext) -> None:
    """To this machine a password goes in the clear, also where its own certificate is offered."""
    async with serving(Relay(), starttls=served, auth_require_tls=False) as relay:
        carrier = transport(f"smtp://{LOGIN}127.0.0.1:{relay.port}")
        async with carrier() as session:
            await post(session)

    assert relay.logins == [(b"us@er", b"p:/ss")]
    assert not relay.received[0].encrypted


async def test_starttls_that_is_required_and_not_offered() -> None:
    """`smtp+starttls` sends nothing to a relay without it."""
    async with serving(Relay()) as relay:
        refused = await refusal_of(transport(f"smtp+starttls://127.0.0.1:{relay.port}"))

    assert relay.received == []
    assert refused.message == "the relay offers no STARTTLS, which its address asks for"


@pytest.mark.parametrize(
    ("scheme", "offer"),
    [("smtps", "implicit"), ("smtp+starttls", "starttls"), ("smtp", "starttls")],
)
async def test_a_certificate_that_nobody_vouches_for(
    scheme: str, offer: str, served: ssl.SSLContext
) -> None:
    """No mail goes to a relay whose certificate is not trusted."""
    async with serving(Relay(), host=ANY_ADDRESS, **{offer: served}) as relay:
        refused = await refusal_of(transport(f"{scheme}://{ANY_ADDRESS}:{relay.port}"))

    assert (refused.stage, refused.code, classify(refused)) == ("connect", None, "retry")
    assert refused.message == "the relay's certificate is not to be trusted"
    assert relay.received == []


async def test_tls_with_a_relay_that_speaks_none() -> None:
    """`smtps` on a port without TLS has a message of its own."""
    async with serving(Relay()) as relay:
        refused = await refusal_of(transport(f"smtps://127.0.0.1:{relay.port}"))

    assert refused.message == "the relay and this machine found no way to speak TLS"


async def test_a_wrong_password_is_a_matter_of_the_login() -> None:
    """A login that is refused is known as one, and no message is tried."""
    async with serving(Relay(), auth_require_tls=False) as relay:
        refused = await refusal_of(transport(f"smtp://us%40er:wrong@127.0.0.1:{relay.port}"))

    assert (refused.stage, refused.code, refused.enhanced) == ("login", 535, "5.7.8")
    assert classify(refused) == "login"
    assert "wrong" not in repr(refused)


async def test_a_relay_that_knows_no_login() -> None:
    """A relay that offers no AUTH is a matter of the login too."""
    async with serving(Relay(), auth_exclude_mechanism=["LOGIN", "PLAIN"]) as relay:
        refused = await refusal_of(transport(f"smtp://{LOGIN}127.0.0.1:{relay.port}"))

    assert (refused.stage, classify(refused)) == ("login", "login")


async def test_an_address_beyond_ascii_goes_by_smtputf8() -> None:
    """Recipient and Reply-To beyond ASCII arrive letter by letter."""
    message = notification(email="jos\u00e9@b\u00fccher.example", name="Jos\u00e9 \u2160")
    async with serving(Relay()) as relay, near(relay.port)() as session:
        await post(session, message, recipient="\u5f20@\u4f8b\u5b50.example")

    (received,) = relay.received
    parsed = message_from_string(received.octets.decode(), policy=policy.default)
    assert received.recipients == ["\u5f20@\u4f8b\u5b50.example"]
    assert "SMTPUTF8" in received.options
    assert (
        b"Reply-To: Jos\xc3\xa9 \xe2\x85\xa0 <jos\xc3\xa9@b\xc3\xbccher.example>" in received.octets
    )
    assert parsed["Reply-To"].addresses[0].addr_spec == "jos\u00e9@b\u00fccher.example"


async def test_an_answer_beyond_ascii_goes_by_smtputf8() -> None:
    """A Reply-To beyond ASCII alone is reason enough for SMTPUTF8 where it is offered."""
    message = notification(email="jos\u00e9@work.example.org")
    async with serving(Relay()) as relay, near(relay.port)() as session:
        await post(session, message)

    (received,) = relay.received
    assert "SMTPUTF8" in received.options
    assert b"Reply-To: Ann Lee <jos\xc3\xa9@work.example.org>\r\n" in received.octets


async def test_a_domain_beyond_ascii_goes_in_ascii() -> None:
    """If only the domain is beyond ASCII, any relay can carry it (RFC 5891)."""
    message = notification(email="ann@b\u00fccher.example")
    relay = Relay()
    async with serving(relay, enable_SMTPUTF8=False), near(relay.port)() as session:
        await post(session, message, recipient="owner@b\u00fccher.example")

    (received,) = relay.received
    assert received.recipients == ["owner@xn--bcher-kva.example"]
    assert b"Reply-To: Ann Lee <ann@xn--bcher-kva.example>\r\n" in received.octets
    assert received.octets.isascii()


async def test_a_relay_without_smtputf8_gets_no_such_recipient() -> None:
    """An address that the relay cannot carry is refused, and not held against the address."""
    async with serving(Relay(), enable_SMTPUTF8=False) as relay:
        refused = await refusal_of(near(relay.port), recipient="jos\u00e9@work.example.org")

    assert (refused.stage, refused.enhanced, classify(refused)) == ("recipient", "5.6.7", "refused")


async def test_a_notification_needs_no_smtputf8() -> None:
    """A Reply-To that cannot be carried is left out; its address is in the text."""
    message = notification(email="jos\u00e9@work.example.org")
    relay = Relay()
    async with serving(relay, enable_SMTPUTF8=False), near(relay.port)() as session:
        await post(session, message)

    (received,) = relay.received
    parsed = message_from_bytes(received.octets, policy=policy.default)
    assert received.octets.isascii()
    assert parsed["Reply-To"] is None
    assert isinstance(parsed, EmailMessage)
    text = parsed.get_body(("plain",))
    assert text is not None
    assert "jos\u00e9@work.example.org" in text.get_content()
    assert message["Reply-To"] is not None


@pytest.mark.parametrize("recipient", ["a@x.org, b@y.org", "a@x.org>\r\nRCPT TO:<b@y.org", ""])
async def test_an_envelope_is_for_one(recipient: str) -> None:
    """Only exactly one address is named to the relay."""
    async with serving(Relay()) as relay:
        refused = await refusal_of(near(relay.port), recipient=recipient)

    assert (refused.stage, classify(refused)) == ("recipient", "refused")
    assert relay.received == []


async def test_a_batch_that_is_cancelled_sends_nothing_more() -> None:
    """Cancelling ends the connection, and no half of a message arrives."""
    async with serving(Relay(silent_at="data")) as relay:

        async def run() -> None:
            async with near(relay.port)() as session:
                await post(session)

        task = asyncio.create_task(run())
        async with asyncio.timeout(60):
            await relay.fell_silent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert relay.received == []


async def test_a_message_keeps_its_message_id() -> None:
    """The same entry sent twice has the same Message-ID, so that receivers can tell."""
    envelope = make_envelope()
    async with serving(Relay()) as relay:
        for _ in range(2):
            async with AsyncExitStack() as stack:
                url = f"smtp://127.0.0.1:{relay.port}"
                session = await stack.enter_async_context(open_transport(url)())
                message = notification()
                message.replace_header("Message-ID", f"<{envelope.message_id}@journal.example>")
                await post(session, message)

    ids = [message_from_bytes(received.octets)["Message-ID"] for received in relay.received]
    assert ids == [f"<{envelope.message_id}@journal.example>"] * 2
