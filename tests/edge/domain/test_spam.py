import pytest

from edge_api.leads.service import (
    LeadInput,
    dedupe_digest,
    read_form,
    score_spam,
    start_message,
)
from edge_api.operation.input import FormErrors


def lead(message: str = "Hello", **changes: str) -> LeadInput:
    """Return a lead with that message."""
    usual = {"name": "Ann Lee", "email": "ann@example.org", "budget_tier": "5k", "message": message}
    return LeadInput.model_validate({**usual, **changes})


@pytest.mark.parametrize(
    ("message", "reasons"),
    [
        ("We would like a site. Could you call on Monday?", ()),
        ("a<b and c>d, and x[1] = 2", ()),
        ("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440: hello, world", ()),
        ("Gr\u00fc\u00dfe aus K\u00f6ln, \u0393\u03b5\u03b9\u03ac", ()),
        ("PLEASE CALL", ()),
        ("Our site is https://example.org", ("link",)),
        ("Our site is www.example.org", ("link",)),
        ("http://a.test http://b.test http://c.test", ("link", "many_links")),
        ('<a href="x">x</a>', ("markup",)),
        ("<B>x</B>", ("markup",)),
        ("[URL=x]x[/url]", ("markup",)),
        ("[link=x]", ("markup",)),
        ("your \u0440\u0430ypal account", ("mixed_scripts",)),
        ("BUY NOW, BUY CHEAP, BUY HERE", ("shouting",)),
    ],
)
def test_signs_are_told_by_name(message: str, reasons: tuple[str, ...]) -> None:
    """Ordinary enquiries have none, whatever language they are in."""
    score, found = score_spam(lead(message))

    assert tuple(found) == reasons
    assert (score > 0) is bool(reasons)


@pytest.mark.parametrize(
    ("title", "start"),
    [
        ("The first edge", "About \u201cThe first edge\u201d (/a/):\n\n"),
        ("The <main> element", "About \u201cThe <main> element\u201d (/a/):\n\n"),
        ("Why <b> is dead", "About /a/:\n\n"),
        ("Leaving www.example.org", "About /a/:\n\n"),
        ("The \u0440\u0430ypal letters", "About /a/:\n\n"),
        ("x" * 500, f"About \u201c{'x' * 200}\u201d (/a/):\n\n"),
    ],
)
def test_the_start_of_a_message_is_no_sign(title: str, start: str) -> None:
    """A title that would be one is left out: its reader has not written it."""
    assert start_message(title, "/a/") == start
    form = {"name": "Ann", "email": "ann@example.org", "budget_tier": "5k"}
    assert read_form({**form, "message": f"{start}\r\nHello"}).message.endswith("Hello")
    with pytest.raises(FormErrors, match="message: must not be empty"):
        read_form({**form, "message": start.replace("\n", "\r\n")})
    assert score_spam(lead(f"{start}Hello"))[0] == 0


def test_a_link_in_the_name_is_a_strong_sign() -> None:
    """Nobody is called so."""
    score, reasons = score_spam(lead(name="Visit www.example.org"))

    assert reasons == ["link_in_name"]
    assert score > score_spam(lead("www.example.org"))[0]


def test_the_honeypot_is_the_strongest_sign() -> None:
    """It alone outweighs any other."""
    score, reasons = score_spam(lead(_gotcha="x"))

    assert reasons == ["honeypot"]
    assert score > score_spam(lead(name="www.x.org"))[0]


def test_signs_add_up() -> None:
    """Markup beside a link is worse than either."""
    link, markup = score_spam(lead("www.example.org"))[0], score_spam(lead("<b>x</b>"))[0]

    assert score_spam(lead("<b>www.example.org</b>")) == (link + markup, ["link", "markup"])


def test_case_spacing_and_compatibility_forms_make_no_other_message() -> None:
    """A repeat is known although it is dressed up."""
    plain = dedupe_digest(lead("Buy this now"))

    assert dedupe_digest(lead("  BUY \n\t this\u3000now ", email="Ann@Example.org")) == plain
    assert dedupe_digest(lead("\uff22uy this now")) == plain


def test_another_message_or_sender_is_no_repeat() -> None:
    """Only both together are."""
    digests = {
        dedupe_digest(lead("a")),
        dedupe_digest(lead("b")),
        dedupe_digest(lead("a", email="x@y.org")),
    }

    assert len(digests) == 3


@pytest.mark.parametrize("piece", ["<a ", "<a x=", "[url", "http://", "\u0430b", "A", "<"])
def test_hostile_messages_are_judged_at_once(piece: str) -> None:
    """No sign needs more than one look along the message."""
    score_spam(lead((piece * 2000)[:2000]))
