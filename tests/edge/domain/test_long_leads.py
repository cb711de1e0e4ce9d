"""A message that is too long for one lead: cut where it reads well, stored as two that are one."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.db.problems import Problem
from edge_api.db.query import Read, Store
from edge_api.db.table import Row
from edge_api.db.tables import LEADS
from edge_api.leads.input import LongLead, read_form, split_message
from edge_api.leads.service import Leads, Sender
from edge_api.operation.input import FormErrors

FORM = {"name": "Ann", "email": "ann@example.org", "budget_tier": "5k"}
ANYBODY = Sender(None, "192.0.2.1", "form")
OFFER = "or send up to 4,000 characters as two messages"


def faults(message: str, **more: str) -> dict[str, str]:
    """Return what is wrong with a form of that message."""
    with pytest.raises(FormErrors) as raised:
        read_form({**FORM, "message": message, **more})
    return dict(raised.value.by_field)


async def stored(store: Store) -> list[Row]:
    """Return the leads as they are stored, in the order of time."""
    (result,) = await store.run(Read(LEADS))
    return sorted(result.rows, key=lambda row: row["created_at"])


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("a" * 1500 + "\n\n" + "b. " * 300, "a"),
        ("a b. " * 320 + "\n" + "c d. " * 300, "b."),
        ("One sentence. " * 200, "sentence."),
        ("word " * 500, "word"),
        ("\u4e00\u4e8c\u4e09\u3002" * 600, "\u3002"),
        ("x" * 4000, "x"),
    ],
)
def test_a_message_is_cut_where_it_reads_best(text: str, ends: str) -> None:
    """Behind a paragraph, else a line, a sentence, a word; nothing but white space is lost."""
    first, second = split_message(text)

    assert max(len(first), len(second)) <= 2000
    assert first.endswith(ends)
    assert "".join(f"{first} {second}".split()) == "".join(text.split())


@pytest.mark.parametrize(
    "cluster",
    [
        "\U0001f469\u200d\U0001f4bb",
        "\U0001f44d\U0001f3fd",
        "\u2764\ufe0f",
        "x\u0323\u0307",
        "\u0e17\u0e35\u0e48",
    ],
)
def test_no_grapheme_is_cut(cluster: str) -> None:
    """Emoji of several code points, and letters with marks."""
    text = cluster * (3900 // len(cluster))
    first, second = split_message(text)

    assert first == cluster * (len(first) // len(cluster))
    assert first + second == text


@given(
    st.text(st.characters(codec="utf-8", categories=["L", "M", "N", "P", "Zs", "So"]), min_size=20)
)
def test_any_text_of_two_messages_fits(piece: str) -> None:
    """For any characters; a part is never empty or too long."""
    text = unicodedata.normalize("NFC", f"a{piece * 300}"[:3999].strip() + "z")
    if 2000 < len(text) <= 4000:
        first, second = split_message(text)
        assert 0 < len(first) <= 2000
        assert 0 < len(second) <= 2000


@pytest.mark.parametrize(
    ("message", "more", "sentence"),
    [
        ("x" * 3600, {}, "3,600 of 2,000 characters: shorten it by 1,600"),
        ("x" * 4000 + " " * 50, {}, "4,000 of 2,000 characters: shorten it by 2,000"),
        (" \r\n" + "\U0001f58b" * 2001 + " ", {}, "2,001 of 2,000 characters: shorten it by 1"),
        ("e\u0301" * 2001, {}, "2,001 of 2,000 characters: shorten it by 1"),
        ("a\r\n" * 1001, {}, "2,001 of 2,000 characters: shorten it by 1"),
    ],
)
def test_too_long_says_by_how_much_and_what_to_do(
    message: str, more: dict[str, str], sentence: str
) -> None:
    """In code points of the trimmed text, composed, a line break being one."""
    assert faults(message, **more) == {"message": sentence, "rest": OFFER}


@pytest.mark.parametrize("more", [{}, {"rest": "second"}, {"name": " "}])
def test_a_text_longer_than_two_messages_cannot_be_split(more: dict[str, str]) -> None:
    """It is counted against what two hold, whichever button was pressed."""
    found = faults("\u0436" * 13_200, **more)
    assert found["message"] == "13,200 of 4,000 characters: shorten it by 9,200"
    assert "rest" not in found


def test_a_name_at_fault_beside_white_space_offers_nothing() -> None:
    """The message is not too long once it is trimmed."""
    assert faults(f"Hello{' ' * 3000}", name=" ").keys() == {"name"}


def test_other_errors_are_reported_with_the_length() -> None:
    """A short message is not split, and a control character is still refused."""
    assert faults("x" * 3600, name=" ").keys() == {"name", "message", "rest"}
    assert faults("x" * 3600, rest="second", name=" ").keys() == {"name", "rest"}
    assert faults("Hello", name=" ").keys() == {"name"}
    assert "control" in faults(f"{'x' * 3600}\x07", rest="second")["message"]
    assert read_form({**FORM, "message": "x" * 1999, "rest": "second"}).message == "x" * 1999


@pytest.mark.each_engine
async def test_a_long_message_is_two_leads_that_know_of_each_other(
    leads: Leads, store: Store
) -> None:
    """In one transaction; the answer is that of the first, and a second press stores none."""
    form = {**FORM, "message": f"{'Brief. ' * 280}\r\n\r\n{'More. ' * 200}", "rest": "second"}
    created = [await leads.create(read_form(form), ANYBODY, "k-1") for _ in range(2)]

    first, second = await stored(store)
    assert (first["other_part"], second["other_part"]) == (second["id"], first["id"])
    assert (first["message"][-6:], second["message"][:5]) == ("Brief.", "More.")
    assert {each.row["id"] for each in created} == {first["id"]}
    assert created[1].replayed
    same = ("name", "email", "budget_tier", "source", "status", "spam_score", "consent_at")
    assert [first[name] for name in same] == [second[name] for name in same]
    assert "other_part" not in LEADS.readable
    with pytest.raises(Problem, match="another body"):
        await leads.create(read_form({**form, "name": "Bo"}), ANYBODY, "k-1")
    assert len(await stored(store)) == 2


@pytest.mark.each_engine
async def test_the_spam_score_is_of_both_parts(leads: Leads, store: Store) -> None:
    """Spam with all its signs in the one part is spam in both."""
    spam = "buy backlinks, casino https://a.b https://c.d https://e.f click now!!! "
    form = {**FORM, "message": f"{'Hello. ' * 280} {spam * 3}", "rest": "second"}
    lead = read_form(form)
    assert isinstance(lead, LongLead)
    await leads.create(lead, ANYBODY)

    assert [row["status"] for row in await stored(store)] == ["spam", "spam"]
