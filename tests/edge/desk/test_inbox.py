"""The inbox: a row for each person, its boxes, its pages, and presses on many threads."""

from datetime import timedelta
from typing import Any

import pytest

from edge_api.auth.actor import system_clock
from edge_api.db.query import Insert
from edge_api.db.table import Row
from edge_api.db.tables import LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant
from edge_api.leads.input import dedupe_digest
from edge_api.leads.service import FIRST_SEARCHED
from edge_api.leads.threads import MAX_COUNTED_LEADS, MAX_FOUND_LEADS, PAGE_SIZE
from tests.edge.conftest import RunningEdge
from tests.edge.desk.conftest import LEAD, Browser, Response
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.each_engine
INBOX = "/desk/leads/"
MARK = "/desk/leads/mark/"
MORE = "More messages are like that, and pages end here."


def ago(**parts: float) -> str:
    """Return an instant before now, or behind it with negative parts."""
    return format_instant(system_clock() - timedelta(**parts))


def rows_of(shown: Response) -> list[str]:
    """Return the texts of the rows, without their buttons."""
    rows = []
    for row in shown.tree.css(".thread"):
        for each in row.css(".presses, .unseen"):
            each.decompose()
        rows.append(" ".join(row.text(separator=" ").split()))
    return rows


def names_of(shown: Response) -> list[str]:
    """Return the names of the rows."""
    return [each.text() for each in shown.tree.css(".thread .who bdi")]


async def store_leads(owner: Browser, *given: dict[str, Any]) -> list[Row]:
    """Store leads with the digests of their texts."""
    rows = [make_row(LEADS, {**LEAD, **each}) for each in given]
    for row in rows:
        row["dedupe_hash"] = dedupe_digest(row["email"], row["message"])
        row["remind_at"] = next(
            (e["at"] for e in given if e.get("id") == row["id"] and "at" in e), None
        )
    await owner.edge.service.store.run(Insert(LEADS, rows))
    return rows


async def remind(owner: Browser, lead: Row, **before: float) -> None:
    """Store a lead with a reminder."""
    row = {**make_row(LEADS, {**LEAD, **lead}), "remind_at": ago(**before)}
    await owner.edge.service.store.run(Insert(LEADS, [row]))


async def reply(owner: Browser, lead: Row, body: str, **before: float) -> None:
    """Store what the sender of a lead wrote back."""
    given = {"lead_id": lead["id"], "kind": "received", "email": lead["email"], "body": body}
    row = make_row(LEAD_MESSAGES, {**given, "created_at": ago(**before)})
    await owner.edge.service.store.run(Insert(LEAD_MESSAGES, [row]))


async def test_a_person_is_one_row(owner: Browser) -> None:
    """In any case of the address; equal texts are one message, sent several times."""
    ann = [
        {"email": "Ann@Example.org", "message": "Hello?", "created_at": ago(hours=n)}
        for n in (1, 2, 3)
    ]
    await store_leads(
        owner,
        *ann,
        {"email": "ann@example.org", "message": "Anybody?", "created_at": ago(hours=4)},
        {"name": "Bo", "email": "bo@example.org", "message": "One", "created_at": ago(hours=2)},
    )
    shown = await owner.get(INBOX)
    assert rows_of(shown) == ["Ann Lee Hello? 3 times 2 1 h", "Bo One 2 h"]
    assert "New 2" in shown.said
    assert shown.one("title").text().startswith("(2) Inbox")


async def test_boxes_have_their_people_and_their_numbers(owner: Browser) -> None:
    """Without a box: New; what is beyond an answer has a box once it was used."""
    for status in ("new", "contacted", "spam"):
        await owner.lead(name=status, email=f"{status}@x.org", status=status)
    await remind(owner, {"name": "later", "email": "later@x.org"}, days=-1)
    shown = await owner.get(INBOX)
    boxes = [each.text() for each in shown.tree.css(".inbox-line li:not(.only-narrow) a")]
    assert boxes[:5] == ["New 1", "Waiting 1", "Answered 1", "All 3", "Spam 1"]
    assert names_of(shown) == ["new"]
    assert "later, new" not in (await owner.get(f"{INBOX}?status=all")).said  # that is no news
    found = (await owner.get(f"{INBOX}?q=later@x.org")).tree.css(".inbox-line li a")
    # A search says how many it found, and no number of what it did not look at.
    assert [each.text() for each in found[2:6]] == ["New", "Waiting", "Answered", "All 1"]
    for box, name in (("waiting", "later"), ("contacted", "contacted"), ("spam", "spam")):
        assert names_of(await owner.get(f"{INBOX}?status={box}")) == [name]
    assert len(names_of(await owner.get(f"{INBOX}?status=all"))) == 3
    assert (await owner.get(f"{INBOX}?status=none")).status == 400
    await owner.lead(name="won", email="won@x.org", status="won")
    shown = await owner.get(f"{INBOX}?status=won")
    assert ("Won 1" in shown.said, "Lost" in shown.said) == (True, False)
    assert "later" in (await owner.get("/desk/leads.csv?status=waiting")).text
    assert "later" not in (await owner.get("/desk/leads.csv")).text


async def test_due_and_answered_threads_come_first(owner: Browser) -> None:
    """Once on all pages; an answer of somebody who is answered already is none of New."""
    first = await owner.lead(name="old", email="old@x.org", created_at=ago(days=90))
    await remind(owner, {"name": "due", "email": "due@x.org", "created_at": ago(days=50)}, hours=2)
    await owner.lead(name="fresh", email="fresh@x.org", created_at=ago(minutes=5))
    done = await owner.lead(name="done", email="done@x.org", status="contacted")
    await reply(owner, first, "I  wrote\n> Our words\nback", hours=1)
    await reply(owner, done, "Thanks", minutes=1)
    assert rows_of(await owner.get(INBOX)) == [
        "old I wrote back 2 1 h",
        "due Hello you 2 h",
        "fresh Hello you 5 min",
    ]
    assert names_of(await owner.get(f"{INBOX}?q=x.org")) == ["fresh", "due", "old", "done"]


async def test_a_reminder_hides_a_lead_whose_sender_replied(owner: Browser) -> None:
    """It waits until the reminder is due, though a reply alone brings a lead back into New."""
    lead = await owner.lead(name="later", remind_at=ago(days=-3))
    await reply(owner, lead, "I wrote back", hours=1)
    assert names_of(await owner.get(INBOX)) == []
    assert names_of(await owner.get(f"{INBOX}?status=waiting")) == ["later"]


@pytest.mark.parametrize("name", ["\u2800", "\u3164\u200b", "\u00a0 \u2003", "\u0301"])
async def test_an_invisible_name_is_replaced_by_the_address(owner: Browser, name: str) -> None:
    """And a text is on one line, with its links as their host."""
    text = "About \u201cA post\u201d (/journal/a-post/):\n\nsee  https://www.Example.com/a?b=c#d\n\tplease"
    await owner.lead(name=name, email="blank@x.org", message=text, created_at=ago(hours=1))
    shown = await owner.get(INBOX)
    assert rows_of(shown) == ["blank About \u201cA post\u201d: see Example.com please 1 h"]
    path = str(shown.one(".who").attributes["href"])
    assert (await owner.get(path)).one("title").text().endswith("blank")


@pytest.mark.parametrize("order", ["", "&order=oldest", "&q=x.org"])
async def test_pages_have_each_person_once(owner: Browser, order: str) -> None:
    """Also those whose leads are on both sides of an edge, of one instant, or many."""
    given = [
        {"name": f"n{n % 70}", "email": f"n{n % 70}@x.org", "created_at": ago(days=9)}
        for n in range(140)
    ]
    given += [{"name": "many", "email": "many@x.org", "created_at": ago(days=8)}] * 90
    given += [
        {"name": f"n{n}", "email": f"n{n}@x.org", "created_at": ago(days=7)} for n in range(9)
    ]
    await store_leads(owner, *given)
    seen, path = [], f"{INBOX}?status=new{order}"
    while path:
        shown = await owner.get(path)
        assert len(names_of(shown)) <= 50
        seen += names_of(shown)
        link = shown.tree.css_first("a[rel=next]")
        path = str(link.attributes["href"]) if link else ""
    assert sorted(seen) == sorted({*seen}) == sorted({each["name"] for each in given})
    assert (MORE in shown.said) == ("q=" in order)  # there are more than 200 messages
    assert names_of(await owner.get(f"{INBOX}?page=999{order}")) == names_of(shown)


async def test_pages_end_and_say_so(owner: Browser) -> None:
    """A box is listed as far as one bounded read goes, a search as far as it is read whole."""
    given = [
        {"name": f"n{n}", "email": f"n{n}@x.org", "created_at": ago(hours=n)} for n in range(1001)
    ]
    await store_leads(owner, *given)
    for query, last in (("", 20), ("q=x.org&", 4)):
        shown = await owner.get(f"{INBOX}?{query}page=999")
        assert MORE in shown.said
        before = await owner.get(f"{INBOX}?{query}page={last - 1}")
        assert "pages end here" not in before.said
        assert str(before.one("a[rel=next]").attributes["href"]).endswith(f"page={last}")
    assert "All 200+" in shown.said  # as many as a search lists
    assert "New 1,000+" in (await owner.get(INBOX)).said
    assert (
        "of 1,000+"
        in (await owner.get(str(shown.one(".who").attributes["href"]).partition("?")[0])).said
    )


async def test_a_search_has_a_next_page_though_its_first_read_fills_one(owner: Browser) -> None:
    """Of the newest messages, which are read first, as many fit as a page has; older ones too."""
    given = [
        {
            "name": f"n{n}",
            "email": f"n{n}@x.org",
            "message": "blue" if n % 5 == 0 or n >= FIRST_SEARCHED else "red",
            "created_at": ago(hours=n),
        }
        for n in range(FIRST_SEARCHED + 10)
    ]
    await store_leads(owner, *given)
    shown = await owner.get(f"{INBOX}?q=blue")

    assert len(names_of(shown)) == FIRST_SEARCHED // 5 == PAGE_SIZE
    assert "All 60" in shown.said
    following = await owner.get(str(shown.one("a[rel=next]").attributes["href"]))
    assert names_of(following) == [f"n{n}" for n in range(FIRST_SEARCHED, FIRST_SEARCHED + 10)]


async def test_a_press_is_about_the_whole_thread(owner: Browser) -> None:
    """All that waits of the person, in one change; what is settled stays so."""
    for status in ("new", "new", "won", "spam"):
        last = await owner.lead(status=status, message=status, email="a@x.org")
    other = await owner.lead(email="b@x.org")
    shown = await owner.get(INBOX)
    ids = [str(each.attributes["value"]) for each in shown.tree.css("[name=id]")]
    assert len(ids) == 2
    done = await owner.post(
        MARK, id=[each for each in ids if each != other["id"]], status="contacted"
    )
    statuses = sorted(row["status"] for row in await owner.rows(LEADS))
    assert statuses == ["contacted", "contacted", "new", "spam", "won"]
    await owner.post(f"/desk/audit/{done.to.rpartition('=')[2]}/undo/")
    assert sorted(row["status"] for row in await owner.rows(LEADS)).count("new") == 3

    await owner.post(MARK, one=f"{last['id']} new")
    assert "spam" not in {row["status"] for row in await owner.rows(LEADS)}
    (won,) = [row for row in await owner.rows(LEADS) if row["status"] == "won"]
    await owner.post(MARK, id=won["id"], status="contacted")
    assert "won" in {row["status"] for row in await owner.rows(LEADS)}


async def test_messages_that_came_meanwhile_stay_new(owner: Browser) -> None:
    """A page that was open for an hour marks what it showed, and says so if that is nothing."""
    old = await owner.lead(created_at=ago(days=1))
    seen = str((await owner.get(INBOX)).one("[name=seen]").attributes["value"])
    new = await owner.lead(message="wait", created_at=ago(seconds=-5))
    await owner.post(MARK, one=f"{old['id']} contacted", seen=seen)
    rows = {row["id"]: row["status"] for row in await owner.rows(LEADS)}
    assert rows == {old["id"]: "contacted", new["id"]: "new"}

    other = await owner.lead(name="Bo", email="bo@x.org", created_at=ago(days=1))
    await reply(owner, other, "One more thing", seconds=-5)
    late = await owner.post(MARK, one=f"{other['id']} contacted", seen=seen, back=f"{INBOX}?q=bo")
    assert (late.status, "wrote again meanwhile" in late.said) == (409, True)
    assert {row["id"]: row["status"] for row in await owner.rows(LEADS)}[other["id"]] == "new"
    for wrong in ("", "x", "9" * 40, "2026-13-40T00:00:00Z"):
        assert (await owner.post(MARK, one=f"{old['id']} new", seen=wrong)).status == 303


async def test_an_empty_box_says_why(owner: Browser) -> None:
    """Nobody has written, all are answered, or nothing is like that."""
    nobody = await owner.get(INBOX)
    assert "Nobody has written yet. Your form is at /contact/." in nobody.said
    lead = await owner.lead(created_at=ago())
    assert "Nothing is here. Show All" in (await owner.get(f"{INBOX}?status=waiting")).said
    await owner.post(MARK, one=f"{lead['id']} contacted")
    assert "All answered. 1 this month." in (await owner.get(INBOX)).said
    shown = await owner.get(f"{INBOX}?status=new&q=<b>no")
    assert "No message has \u201c<b>no\u201d here. Search All" in shown.said
    assert "Search Spam" in (await owner.get(f"{INBOX}?q=<b>no")).said


async def test_all_of_a_page_are_ticked_by_one_press(owner: Browser) -> None:
    """Once: neither the page after the change nor another box has them ticked."""
    for number in range(3):
        await owner.lead(name=f"n{number}", email=f"{number}@x.org", status="spam")
    await owner.lead()
    shown = await owner.get(f"{INBOX}?status=spam&pick=all")
    picked = [str(each.attributes["value"]) for each in shown.tree.css("[name=id][checked]")]
    assert len(picked) == 3
    back = str(shown.one("form.inbox [name=back]").attributes["value"])
    assert back == f"{INBOX}?status=spam"
    await owner.post(MARK, id=picked, status="lost", back=back)
    assert sorted(row["status"] for row in await owner.rows(LEADS)) == ["lost"] * 3 + ["new"]
    links = {str(each.attributes["href"]) for each in shown.tree.css(".inbox-line a")}
    assert {each for each in links if "pick=" in each} == {f"{INBOX}?status=spam&pick=all"}
    picking = await owner.get(f"{INBOX}?select=1")
    assert "is-picking" in picking.text
    first = [each.text() for each in picking.tree.css(".inbox-line a")[:2]]
    assert first == ["Done ticking", "Tick all"]  # in view on a phone


async def test_a_read_only_key_sees_no_buttons(edge: RunningEdge) -> None:
    """Neither boxes nor buttons; mail that came back is not shown to a key for leads alone."""
    browser = await Browser(edge).sign_in(await edge.key("admin:read", tables=("leads",)))
    await browser.lead()
    shown = await browser.get(INBOX)
    assert shown.tree.css("main form button, [type=checkbox]") == []


async def test_a_search_says_that_more_may_follow_only_where_it_was_cut(owner: Browser) -> None:
    """It stops at 200 messages, whoever sent them; a full box has nothing to do with it."""
    many = {"name": "many", "email": "many@x.org", "message": "blue"}
    given = [{**many, "created_at": ago(hours=number)} for number in range(MAX_FOUND_LEADS)]
    given += [
        {"name": f"n{number}", "message": "red", "created_at": ago(hours=300 + number)}
        for number in range(MAX_COUNTED_LEADS)
    ]
    given[-1]["message"] = "unmistakable blue"
    await store_leads(owner, *given)

    cut, whole = [await owner.get(f"{INBOX}?q={word}") for word in ("blue", "unmistakable")]

    assert (names_of(cut), "All 1+" in cut.said, MORE in cut.said) == (["many"], True, True)
    assert (names_of(whole), "All 1+" in whole.said, MORE in whole.said) == (
        [f"n{MAX_COUNTED_LEADS - 1}"],
        False,
        False,
    )
