import re
from typing import Any
from unicodedata import normalize

import jsonschema
import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from edge_api.db.mail_addresses import normalize_address
from edge_api.db.problems import format_validation_error
from edge_api.leads.input import LeadInput, read_form
from edge_api.operation.input import FormErrors, TextRule

GOOD = {
    "name": "Ann Lee",
    "email": "ann@example.org",
    "budget_tier": "5k-10k",
    "message": "Hello",
}
BOUNDS = {"name": 100, "budget_tier": 50, "message": 2000}


def lead(**changes: Any) -> LeadInput:
    """Return a good lead with changes."""
    return LeadInput.model_validate({**GOOD, **changes})


def fault(body: Any) -> str:
    """Return the first error of a body, as clients get it."""
    with pytest.raises(ValidationError) as caught:
        LeadInput.model_validate(body)
    first = caught.value.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'body'}: {format_validation_error(first)}"


def is_taken(body: Any) -> bool:
    """Return whether a body passes."""
    try:
        LeadInput.model_validate(body)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("name", GOOD)
def test_every_field_is_needed(name: str) -> None:
    """The one that is missing is named."""
    assert fault({key: value for key, value in GOOD.items() if key != name}) == (
        f"{name}: is required"
    )


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", [1, 1.5, True, None, [], {}, ["Ann"]])
def test_strings_only(name: str, value: Any) -> None:
    """Nothing is turned into a string."""
    assert fault({**GOOD, name: value}) == f"{name}: must be a string"


@pytest.mark.parametrize("body", [None, 1, "x", [], [GOOD]])
def test_a_lead_is_an_object(body: Any) -> None:
    """Nothing else has members."""
    assert fault(body) == "body: must be an object"


@pytest.mark.parametrize(("name", "most"), BOUNDS.items())
def test_lengths_are_code_points_once_trimmed(name: str, most: int) -> None:
    """The least and the greatest pass, one beyond either does not."""
    for text in ("x", "x" * most, "\U0001f600" * most, f"  {'x' * most}\u3000"):
        assert getattr(lead(**{name: text}), name) == text.strip()
    for text in ("x" * (most + 1), "\U0001f600" * (most + 1)):
        assert (
            fault({**GOOD, name: text})
            == f"{name}: {most + 1:,} of {most:,} characters: shorten it by 1"
        )
    for text in ("", " ", "\u00a0\u2003"):
        assert fault({**GOOD, name: text}) == f"{name}: must not be empty"


def test_the_first_error_is_reported() -> None:
    """In the order of the published description."""
    assert fault({"name": "", "email": 1}) == "name: must not be empty"


def test_text_is_brought_to_nfc_before_it_is_measured() -> None:
    """A hundred letters with their accents apart are a hundred characters."""
    assert lead(name="e\u0301" * 100).name == "\u00e9" * 100


def test_text_that_outgrows_its_bound_under_nfc_stays_as_it_is() -> None:
    """U+0958 becomes two characters; who counted a hundred of them counted right."""
    assert lead(name="\u0958" * 50).name == "\u0915\u093c" * 50
    assert lead(name="\u0958" * 100).name == "\u0958" * 100


@pytest.mark.parametrize("name", ["name", "email", "budget_tier"])
@pytest.mark.parametrize("control", ["\x00", "\x07", "\t", "\n", "\r", "\x1b", "\x7f", "\x85"])
def test_control_characters_are_refused(name: str, control: str) -> None:
    """Inside, and at either end, where no trimming hides them."""
    for text in (f"a{control}b@x.org", f"{control}a@x.org", f"a@x.org{control}"):
        expected = "NUL" if control == "\x00" else "control characters"
        assert fault({**GOOD, name: text}) == f"{name}: must not contain {expected}"


def test_a_message_keeps_tabs_and_line_feeds() -> None:
    """No other control character; white space around it goes."""
    assert lead(message="\n\ta\n\tb\n").message == "a\n\tb"
    assert fault({**GOOD, "message": "a\vb"}) == "message: must not contain control characters"


@pytest.mark.parametrize("name", ["message", "consent_text"])
def test_every_line_end_becomes_a_line_feed(name: str) -> None:
    """CR LF, and CR alone; before lengths are measured, and before two bodies are compared."""
    sent = lead(**{name: "\r\na\r\n\r\nb\rc\n\rd\r"})

    assert getattr(sent, name) == "a\n\nb\nc\n\nd"
    assert sent.canonical() == lead(**{name: "a\n\nb\nc\n\nd"}).canonical()
    assert getattr(lead(**{name: "x\r\n" * 999 + "xx"}), name) == "x\n" * 999 + "xx"
    assert fault({**GOOD, name: "x\r\n" * 1000 + "x"}) == (
        f"{name}: 2,001 of 2,000 characters: shorten it by 1"
    )
    assert fault({**GOOD, name: "\r\n\r"}) == f"{name}: must not be empty"


INVISIBLE = [
    "\u00ad",
    "\u034f",
    "\u061c",
    "\u115f",
    "\u17b4",
    "\u180e",
    "\u200b",
    "\u200d",
    "\u202e",
    "\u2060",
    "\u2800",
    "\u3164",
    "\ufe0f",
    "\ufeff",
    "\uffa0",
    "\ufff9",
    "\U0001d173",
    "\U000e0001",
    "\U000e0041",
    "\U000e0100",
]


@pytest.mark.parametrize("name", ["name", "budget_tier", "message"])
def test_a_text_has_a_visible_character(name: str) -> None:
    """Invisible characters are no name by themselves; beside a letter or an emoji they stay."""
    for text in (*INVISIBLE, " ".join(INVISIBLE), "\u200b\u3000\u200b"):
        assert fault({**GOOD, name: text}) == f"{name}: must have a visible character"
    for text in ("\u200ba", "a\ufe0f", "\u2764\ufe0f", "\U0001f9d1\u200d\U0001f33e", "\u0e33", "."):
        assert getattr(lead(**{name: text}), name) == text


@pytest.mark.parametrize("name", GOOD)
def test_noncharacters_are_refused(name: str) -> None:
    """All 66, which Unicode keeps free of characters for ever (section 23.7)."""
    ends = [plane + end for plane in range(0, 0x110000, 0x10000) for end in (0xFFFE, 0xFFFF)]
    for code in (*range(0xFDD0, 0xFDF0), *ends):
        assert fault({**GOOD, name: f"a{chr(code)}@x.org"}) == (
            f"{name}: must not contain noncharacters, such as U+FFFF"
        )
    assert lead(name="\ufffd\ufdcf\ufdf0").name == "\ufffd\ufdcf\ufdf0"


def test_lone_surrogates_are_refused() -> None:
    """They are no Unicode text and no engine stores them."""
    assert fault({**GOOD, "name": "a\ud800"}) == (
        "name: must be valid Unicode, without lone surrogates"
    )


@pytest.mark.parametrize(
    "address",
    [
        "a@example.org",
        "Ann.Lee+tag@Example.ORG",
        "a@x.test",
        "a@x.invalid",
        "a@x.localhost",
        "a@x.arpa",
        "!#$%&'*+-/=?^_`{|}~@example.org",
        "\u00e9@ex\u00e4mple.org",
        "a@xn--bcher-kva.example",
        f"{'a' * 243}@example.org",
    ],
)
def test_an_address_is_kept_as_it_was_sent(address: str) -> None:
    """Test domains and 255 characters included; the pinned library allows it."""
    assert lead(email=f" {address} ").email == address


@pytest.mark.parametrize(
    "address",
    [
        "a",
        "a@",
        "@example.org",
        "a@localhost",
        "a@b..org",
        ".a@b.org",
        "a.@b.org",
        "a b@c.org",
        '"a b"@c.org',
        "a@[192.0.2.1]",
        "a@192.0.2.1",
        "a@b.org, c@d.org",
        "Ann <a@b.org>",
        "a@b.org\u2028Bcc: c@d.org",
        "a@-b.org",
        f"a@{'b' * 64}.org",
    ],
)
def test_an_invalid_address_is_refused(address: str) -> None:
    """In the words that the contract of the API gives."""
    assert fault({**GOOD, "email": address}) == "email: not a valid e-mail address"


def test_an_address_has_255_characters_at_the_most() -> None:
    """The length is reported before the syntax is checked."""
    assert fault({**GOOD, "email": f"{'a' * 244}@example.org"}) == (
        "email: 256 of 255 characters: shorten it by 1"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [("A@B.Org", "a@b.org"), ("a@xn--bcher-kva.example", "a@b\u00fccher.example")],
)
def test_two_spellings_of_an_address_fold_to_one(one: str, other: str) -> None:
    """That is how repetitions and keys are recognized."""
    assert normalize_address(one) == normalize_address(other)


def test_unknown_members_are_ignored() -> None:
    """Also those that name columns of the table."""
    assert lead(status="won", id="x", nested={"a": 1}) == lead()


def test_consent_is_a_boolean_with_an_optional_text() -> None:
    """Nothing is coerced here either."""
    given = lead(consent=True, consent_text=" I agree. ")

    assert (given.consent, given.consent_text) == (True, "I agree.")
    assert (lead().consent, lead(consent_text=None).consent_text) == (False, None)
    assert fault({**GOOD, "consent": "true"}) == "consent: must be true or false"
    assert fault({**GOOD, "consent_text": ""}) == "consent_text: must not be empty"


@pytest.mark.parametrize(
    ("value", "filled_honeypot"),
    [("", False), (None, False), (False, False), ("x", True), (["x"], True), (1, True)],
)
def test_any_value_in_the_honeypot_is_detected(value: Any, *, filled_honeypot: bool) -> None:
    """It is never a fault: the sender must not learn of it."""
    assert lead(_gotcha=value).filled_honeypot is filled_honeypot


def test_the_honeypot_is_not_published() -> None:
    """Nobody who reads the description fills it in."""
    assert "gotcha" not in str(LeadInput.model_json_schema())


def test_two_bodies_that_ask_for_the_same_are_one() -> None:
    """Order, white space around texts and unknown members make no difference; values do."""
    shuffled = LeadInput.model_validate(dict(reversed([*GOOD.items(), ("x", 1)])))

    assert lead(name=" Ann Lee ").canonical() == shuffled.canonical()
    for change in ({"message": "Hello!"}, {"consent": True}, {"_gotcha": "x"}):
        assert lead(**change).canonical() != shuffled.canonical()


RULES = {
    "name": TextRule(100),
    "budget_tier": TextRule(50),
    "message": TextRule(2000, "lines"),
}
SCHEMAS = {name: rule.json_schema("") for name, rule in RULES.items()}
_EDGES = st.sampled_from(["", " ", "\n", "\t", "\r", "\x00", "\x85", "\u00a0", "\u2028", "\ufeff"])
_TEXTS = st.builds(
    lambda before, text, after: before + text + after, _EDGES, st.text(max_size=130), _EDGES
)


@given(name=st.sampled_from(sorted(RULES)), text=_TEXTS)
@example(name="name", text="x" * 100)
@example(name="name", text="x" * 101)
@example(name="name", text="\u0958" * 100)
@example(name="name", text="x\n")
@example(name="name", text="\n")
@example(name="message", text="\n")
@example(name="message", text="x\n")
@example(name="message", text="x" * 2000)
@example(name="message", text="x" * 2001)
@example(name="message", text="\r")
@example(name="message", text="a\r\nb")
@example(name="name", text="a\r\nb")
@example(name="name", text="\u200b")
@example(name="name", text="\u200ba")
@example(name="name", text="a\uffff")
def test_the_published_schema_accepts_what_the_code_accepts(name: str, text: str) -> None:
    """All but texts that are too long only until they are trimmed and composed.

    Beyond U+FFFF, no pattern names a range for every validator, so what is refused there is prose.
    """
    beyond = filter(lambda code: code > 0xFFFF, map(ord, text))
    assume(not any(code & 0xFFFE == 0xFFFE or code >> 12 == 0xE0 for code in beyond))
    assume(not re.search("[\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]", text))
    schema = SCHEMAS[name]
    assert schema["pattern"].isascii()
    pattern = schema["pattern"].removesuffix("$")  # Python's $ allows a newline behind it
    matches = re.search(f"{pattern}\\Z", text) is not None
    fits = len(text) <= schema["maxLength"]
    shorter = normalize("NFC", text.replace("\r\n", "\n").strip())
    if fits or len(shorter) > schema["maxLength"]:
        assert is_taken({**GOOD, name: text}) is (matches and fits)


def test_the_published_bounds_are_those_of_the_specification() -> None:
    """The schema has them as its standard keywords."""
    properties = LeadInput.model_json_schema()["properties"]

    bounds = {name: (properties[name]["minLength"], properties[name]["maxLength"]) for name in GOOD}
    assert bounds == {
        "name": (1, 100),
        "email": (3, 255),
        "budget_tier": (1, 50),
        "message": (1, 2000),
    }


def test_the_published_schema_is_a_valid_one() -> None:
    """And its own example passes it."""
    schema = LeadInput.model_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(GOOD, schema)

    assert schema["required"] == ["name", "email", "budget_tier", "message"]


def test_trimming_takes_linear_time() -> None:
    """The largest body that is let in, all white space but for its ends, is measured at once."""
    with pytest.raises(ValidationError):
        lead(message="x" + " " * 64_000 + "x")


FORM = {**GOOD, "_gotcha": "", "consent_text": ""}


def test_a_form_and_json_give_the_same_lead() -> None:
    """Line breaks come as CR LF, what is left empty comes as an empty text."""
    assert read_form({**FORM, "message": "a\r\nb"}) == lead(message="a\nb")
    assert read_form({**FORM, "_gotcha": "x"}).filled_honeypot


@pytest.mark.parametrize(
    ("sent", "consent"), [("on", True), ("true", True), ("1", True), ("", False), ("no", False)]
)
def test_a_box_is_ticked_or_not(sent: str, *, consent: bool) -> None:
    """A browser sends `on`, or nothing at all."""
    assert read_form({**FORM, "consent": sent}).consent is consent
    assert not read_form(FORM).consent


def test_every_error_of_a_form_is_reported_at_once() -> None:
    """A sentence for each field, for the page that is shown again."""
    with pytest.raises(FormErrors) as caught:
        read_form({"name": " ", "email": "x", "message": "a\x00", "consent_text": "x" * 2001})

    assert caught.value.by_field == {
        "name": "must not be empty",
        "email": "not a valid e-mail address",
        "budget_tier": "is required",
        "message": "must not contain NUL",
        "consent_text": "2,001 of 2,000 characters: shorten it by 1",
    }
    assert str(caught.value).startswith("name: must not be empty; email: not a valid")


@given(
    st.from_regex(r"[A-Za-z0-9_+.\-]{0,66}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9.\-]{0,20}(?:\.[a-z]{1,4})?", fullmatch=True),
)
@example("a", "xn--caf-dma.example")
@example("A.b+c", "Example.ORG")
@example("a" * 65, "example.org")
@example("a", "b" * 64 + ".org")
@example(".a", "example.org")
@example("a", "1.2.3.4")
@example("a", "localhost")
def test_plain_addresses_are_judged_as_all_others(local: str, domain: str) -> None:
    """The short way for plain addresses gives what the library gives for the whole address."""
    address = f"{local}@{domain}"
    try:
        expected = validate_email(address, check_deliverability=False).normalized.lower()
    except EmailNotValidError:
        with pytest.raises(ValueError, match="not a valid e-mail address"):
            normalize_address(address)
    else:
        assert normalize_address(address) == expected
