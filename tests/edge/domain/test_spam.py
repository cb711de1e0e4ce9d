import pytest

from edge_api.auth.actor import OPERATOR
from edge_api.db.query import Read, Store
from edge_api.db.tables import LEADS
from edge_api.leads.input import (
    HIDDEN_FROM,
    SUSPECT_FROM,
    LeadInput,
    dedupe_digest,
    read_form,
    score_spam,
    start_message,
)
from edge_api.leads.service import Leads, Sender
from edge_api.operation.input import FormErrors
from tests.edge.domain.honest_enquiries import SPAM, enquiries, make_lead


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
        ("PLEASE CALL ME BACK ON MONDAY", ("shouting",)),
        ("BUY NOW, BUY CHEAP, BUY HERE", ("shouting", "call_to_buy")),
        ("(Slots/betting)", ("wares",)),
        ("CAS\u0130NO and bett\u0131ng", ("wares",)),
        ("cas\u0131no and CAS\u0130NO", ()),
        ("\u041a\u0410\u0417\u0418\u041d\u041e: \u0421\u0442\u0430\u0432\u043a\u0438", ("wares",)),
        ("That makes 5% profit for us", ("call_to_buy",)),
        ("\u013b\u016b\u0146aug is a name, and \u0416\u043c\u0438 a verb", ("call_to_buy",)),
    ],
)
def test_spam_signs_have_names(message: str, reasons: tuple[str, ...]) -> None:
    """Ordinary enquiries have none, whatever language they are in."""
    score, found = score_spam(lead(message))

    assert tuple(found) == reasons
    assert (score > 0) is bool(reasons)


@pytest.mark.parametrize(
    ("title", "start"),
    [
        ("The first edge", "About \u201cThe first edge\u201d (/a/):"),
        ("The <main> element", "About \u201cThe <main> element\u201d (/a/):"),
        ("Why <b> is dead", "About /a/:"),
        ("Leaving www.example.org", "About /a/:"),
        ("The \u0440\u0430ypal letters", "About /a/:"),
        ("x" * 500, f"About \u201c{'x' * 200}\u201d (/a/):"),
    ],
)
def test_the_start_of_a_message_is_no_sign(title: str, start: str) -> None:
    """A title that would be one is left out: its reader has not written it."""
    assert start_message(title, "/a/") == start
    form = {"name": "Ann", "email": "ann@example.org", "budget_tier": "5k"}
    assert read_form({**form, "message": f"{start}\r\n\r\nHello"}).message.endswith("Hello")
    with pytest.raises(FormErrors, match="message: must not be empty"):
        read_form({**form, "message": f"{start}\r\n\r\n"})
    assert score_spam(lead(f"{start}\n\nHello"))[0] == 0


def test_a_start_is_known_as_the_form_says_it() -> None:
    """Any other text is a message, however long the search for a start could be."""

    def say(text: str) -> str:
        return text.replace("About ", "\u300c").replace(":", "\u300d\u306b\u3064\u3044\u3066\uff1a")

    form = {"name": "Ann", "email": "ann@example.org", "budget_tier": "5k"}
    with pytest.raises(FormErrors, match="message: must not be empty"):
        read_form({**form, "message": f"{say('About /a/:')}\r\n\r\n"}, say)
    for text in ("Please explain and/or:", "About love and/or:", say("About /a/ and b:")):
        assert read_form({**form, "message": text}, say).message == text
    for text in ("/" * 100_000, "About \u201c" + "\u201d (/" * 40_000):
        with pytest.raises(FormErrors, match=r"message: .* shorten it by"):
            read_form({**form, "message": text})


def test_a_link_in_the_name_is_a_strong_sign() -> None:
    """Nobody is called so."""
    score, reasons = score_spam(lead(name="Visit www.example.org"))

    assert reasons == ["link_in_name"]
    assert score > score_spam(lead("www.example.org"))[0]


def test_a_budget_is_judged_like_a_name() -> None:
    """A form offers tiers to choose from, which have neither links nor markup."""
    assert score_spam(lead(budget_tier="www.example.org"))[1] == ["link_in_name"]
    assert score_spam(lead(budget_tier="<b>5k</b>"))[1] == ["markup"]


def test_the_honeypot_is_the_strongest_sign() -> None:
    """It alone outweighs any other."""
    score, reasons = score_spam(lead(_gotcha="x"))

    assert reasons == ["honeypot"]
    assert score > score_spam(lead(name="www.x.org"))[0]


def test_the_scores_of_spam_signs_add_up() -> None:
    """Markup and mixed scripts weigh 1 alone, and 2 beside another sign."""
    mixed = "your \u0440\u0430ypal account"

    assert [score_spam(lead(text))[0] for text in ("www.x.org", "<b>x</b>", mixed)] == [1, 1, 1]
    assert score_spam(lead("<b>www.example.org</b>")) == (3, ["link", "markup"])
    assert score_spam(lead(f"www.x.org {mixed}")) == (3, ["link", "mixed_scripts"])


def test_case_spacing_and_compatibility_forms_make_no_other_message() -> None:
    """A repeat is known although it is dressed up."""
    plain = dedupe_digest("ann@example.org", "Buy this now")

    assert dedupe_digest("Ann@Example.org", "  BUY \n\t this\u3000now ") == plain
    assert dedupe_digest("ann@example.org", "\uff22uy this now") == plain


def test_another_message_or_sender_is_no_repeat() -> None:
    """Only both together are."""
    digests = {dedupe_digest(*each) for each in (("a@b.co", "a"), ("a@b.co", "b"), ("x@y.co", "a"))}

    assert len(digests) == 3


@pytest.mark.parametrize("piece", ["<a ", "<a x=", "[url", "http://", "\u0430b", "A", "<"])
def test_hostile_messages_are_judged_at_once(piece: str) -> None:
    """No sign needs more than one look along the message."""
    score_spam(lead((piece * 2000)[:2000]))


def test_no_honest_enquiry_is_hidden() -> None:
    """500 of them, in fifteen languages, with links, prices, quotes, code and signatures."""
    found = [(score_spam(lead), lead.message) for lead in enquiries(500)]

    assert len({message for _, message in found}) > 450
    assert [each for each in found if each[0][0] >= HIDDEN_FROM] == []
    assert sum(score < SUSPECT_FROM for (score, _), _ in found) > 250


def test_most_plain_spam_is_hidden() -> None:
    """Lines that name wares and urge to buy them; those that do not do both stay."""
    hidden = [text for text in SPAM if score_spam(make_lead(text))[0] >= HIDDEN_FROM]

    assert SPAM[0] in hidden
    assert len(hidden) >= len(SPAM) - 2


@pytest.mark.each_engine
@pytest.mark.parametrize("has_credential", [False, True])
async def test_only_a_high_score_hides(leads: Leads, store: Store, *, has_credential: bool) -> None:
    """From three on a lead is marked and stays; a repeat hides nothing; a credential is trusted."""
    actor = OPERATOR if has_credential else None
    texts = {
        "link": "Our site is https://a.example, and so are https://b.example and https://c.example",
        "hidden": SPAM[0],
    }
    for text in (*texts.values(), texts["link"]):
        await leads.create(make_lead(text), Sender(actor, "192.0.2.1", "api"))
    (found,) = await store.run(Read(LEADS))

    rows = {(row["message"] == SPAM[0], row["status"], row["spam_score"]) for row in found.rows}
    if has_credential:
        assert rows == {(False, "new", 0), (True, "new", 0)}
    else:
        assert rows == {(False, "new", 4), (False, "new", 7), (True, "spam", 10)}
