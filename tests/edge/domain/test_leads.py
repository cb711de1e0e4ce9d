import asyncio
import json
from typing import Any, Literal

import pytest

from edge_api.auth.actor import Actor
from edge_api.auth.rate_limits import Limiter
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Read, Store, Update
from edge_api.db.tables import IDEMPOTENCY_KEYS, LEADS
from edge_api.leads.input import LeadInput
from edge_api.leads.service import Leads, Sender
from tests.edge.store.samples import EMPTY

pytestmark = pytest.mark.each_engine

SECRET = b"of this service"
ADDRESS = "192.0.2.7"
ANYBODY = Sender(None, ADDRESS)
LONGEST_EMAIL = f"{'a' * 64}@{'b' * 60}.{'c' * 60}.{'d' * 60}.org"


def lead(message: str = "Hello", **changes: Any) -> LeadInput:
    """Return a lead with that message."""
    usual = {"name": "Ann Lee", "email": "ann@example.org", "budget_tier": "5k", "message": message}
    return LeadInput.model_validate({**usual, **changes})


async def stored(store: Store) -> list[dict[str, Any]]:
    """Return every stored lead, in order of creation."""
    (result,) = await store.run(Read(LEADS))
    return result.rows


async def refusal(leads: Leads, *arguments: Any) -> Problem:
    """Return the problem that a lead meets."""
    with pytest.raises(Problem) as caught:
        await leads.create(*arguments)
    return caught.value


@pytest.mark.parametrize("source", ["api", "form", "mcp"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"name": "\u00e9" * 100, "budget_tier": "\U0001f58b" * 50, "email": LONGEST_EMAIL},
        {"message": "e\u0301\t\n" * 500, "consent": True, "consent_text": "\u2028x" * 1000},
        {"message": "http://a.test " * 9, "name": "www.a.test", "_gotcha": "x"},
    ],
    ids=["plain", "long", "agreed", "trapped"],
)
async def test_a_stored_lead_passes_the_check_of_the_table(
    leads: Leads, store: Store, source: Literal["api", "form", "mcp"], given: dict[str, Any]
) -> None:
    """A row is not checked a second time, so that the first check must be as strict."""
    for _ in range(2):  # the second is a repeat
        await leads.create(lead(**given), Sender(None, ADDRESS, source))

    rows = await stored(store)
    assert len(rows) == 2
    assert [LEADS.new_row(row, "", str) for row in rows] == rows


async def test_a_lead_is_stored_whole(leads: Leads, store: Store) -> None:
    """With its time, where it came from, and what is thought of it."""
    created = await leads.create(lead(), ANYBODY)

    (row,) = await stored(store)
    assert len(row.pop("dedupe_hash")) == 64
    assert row == {
        **{name: value for name, value in EMPTY.items() if name != "dedupe_hash"},
        "id": created.row["id"],
        "name": "Ann Lee",
        "email": "ann@example.org",
        "budget_tier": "5k",
        "message": "Hello",
        "created_at": "2026-06-01T12:00:00.000000Z",
        "updated_at": "2026-06-01T12:00:00.000000Z",
    }


async def test_the_answer_has_both_published_shapes(leads: Leads) -> None:
    """The whole lead under `lead`, and flat without its message."""
    created = await leads.create(lead(), ANYBODY)

    answer = json.loads(created.body)
    whole = answer.pop("lead")
    assert whole == created.row
    assert set(whole) == {"id", "name", "email", "budget_tier", "message", "created_at"}
    assert answer == {name: value for name, value in whole.items() if name != "message"}


async def test_consent_is_kept_with_its_time(leads: Leads, store: Store) -> None:
    """A text that nobody agreed to is not kept."""
    await leads.create(lead(consent=True, consent_text="I agree."), ANYBODY)
    await leads.create(lead(consent=True), ANYBODY)
    await leads.create(lead(consent=False, consent_text="I agree."), ANYBODY)

    consents = [(row["consent_at"], row["consent_text"]) for row in await stored(store)]
    now = "2026-06-01T12:00:00.000000Z"
    assert sorted(consents, key=str) == sorted(
        [(now, "I agree."), (now, None), (None, None)], key=str
    )


async def test_the_source_of_a_lead_is_stored(leads: Leads, store: Store, holder: Actor) -> None:
    """Each lead has a source: the form, or MCP."""
    await leads.create(lead(), Sender(None, ADDRESS, "form"))
    await leads.create(lead(), Sender(holder, ADDRESS, "mcp"))

    assert sorted(row["source"] for row in await stored(store)) == ["form", "mcp"]


async def newest(leads: Leads, limit: int) -> list[Any]:
    """Return the leads of the list, which says how many they are."""
    listed = json.loads(await leads.recent(limit))
    assert listed["count"] == len(listed["leads"])
    rows: list[Any] = listed["leads"]
    return rows


async def test_the_newest_leads_come_first(leads: Leads, clock: Any, holder: Actor) -> None:
    """As many as are asked for, and only what is published."""
    for number in range(4):
        await leads.create(lead(str(number)), Sender(holder, ADDRESS))
        clock.move(microseconds=1)

    listed = await newest(leads, 3)
    assert [row["message"] for row in listed] == ["3", "2", "1"]
    assert list(listed[0]) == ["id", "name", "email", "budget_tier", "message", "created_at"]


async def test_a_list_is_read_once_while_nothing_changes(
    watched: Any, store: Store, clock: Any, limiter: Limiter, holder: Actor
) -> None:
    """Any change is seen by the next request, whoever makes it."""
    leads = Leads(watched, clock, limiter, SECRET)
    created = await leads.create(lead(), Sender(holder, ADDRESS))
    watched.runs = 0
    for _ in range(100):
        assert len(await newest(leads, 50)) == 1
    assert watched.runs == 1
    await leads.recent(51)
    assert watched.runs == 2

    await store.run(Delete(LEADS, (Filter("id", "eq", created.row["id"]),)))
    assert await newest(leads, 50) == []


async def test_the_honeypot_gets_the_usual_answer(leads: Leads, store: Store) -> None:
    """Stored as spam, out of the list; the sender sees the usual."""
    plain = await leads.create(lead(), ANYBODY)
    filled_honeypot = await leads.create(lead(_gotcha="x"), ANYBODY)

    assert json.loads(plain.body).keys() == json.loads(filled_honeypot.body).keys()
    rows = {row["id"]: row for row in await stored(store)}
    assert rows[filled_honeypot.row["id"]]["status"] == "spam"
    assert "honeypot" in rows[filled_honeypot.row["id"]]["spam_reasons"]
    assert [row["id"] for row in await newest(leads, 10)] == [plain.row["id"]]


async def test_a_doubtful_lead_is_marked_and_listed(leads: Leads, store: Store) -> None:
    """Only the trap makes a lead spam."""
    await leads.create(lead("http://a.test http://b.test http://c.test"), ANYBODY)

    (row,) = await stored(store)
    assert (row["status"], row["spam_reasons"]) == ("new", ["link", "many_links"])
    assert row["spam_score"] == 4
    assert len(await newest(leads, 10)) == 1


async def test_of_two_concurrent_leads_one_is_a_repetition(leads: Leads, store: Store) -> None:
    """The same lead sent twice at the same moment is marked once, whichever comes first."""
    await asyncio.gather(*(leads.create(lead(), ANYBODY) for _ in range(5)))

    marks = [row["spam_reasons"] for row in await stored(store)]
    assert sorted(map(str, marks)) == ["None", *["['repeated']"] * 4]


async def test_a_repeat_is_stored_and_marked(leads: Leads, store: Store, clock: Any) -> None:
    """Within 24 hours; a day later the same message is a new one."""
    await leads.create(lead(), ANYBODY)
    clock.move(hours=24)
    await leads.create(lead(" HELLO "), ANYBODY)
    clock.move(hours=24, seconds=1)
    await leads.create(lead(), ANYBODY)

    rows = sorted(await stored(store), key=lambda row: str(row["created_at"]))
    assert [row["spam_reasons"] for row in rows] == [None, ["repeated"], None]


async def test_leads_with_a_credential_are_never_spam(
    leads: Leads, store: Store, holder: Actor
) -> None:
    """Neither trap nor score apply."""
    for _ in range(2):
        await leads.create(lead("http://a.test " * 9, _gotcha="x"), Sender(holder, ADDRESS))

    assert [
        (row["status"], row["spam_score"], row["spam_reasons"]) for row in await stored(store)
    ] == [("new", 0, None)] * 2


async def test_the_rate_limits_of_leads_are_enforced(
    leads: Leads, store: Store, clock: Any
) -> None:
    """For one address without a credential; each answer says what is left."""
    first = await leads.create(lead("0"), ANYBODY)
    assert first.quota is not None
    assert first.quota.headers["RateLimit"] == '"leads";r=4;t=600, "leads-day";r=19;t=86400'
    for number in range(1, 5):
        await leads.create(lead(str(number)), ANYBODY)
    problem = await refusal(leads, lead("5"), ANYBODY)
    assert (problem.code, problem.headers["Retry-After"]) == ("too_many_requests", "600")
    await leads.create(lead("5"), Sender(None, "192.0.2.8"))

    taken = 5
    for _ in range(20):
        clock.move(minutes=10)
        for number in range(5):
            try:
                await leads.create(lead(str(number)), ANYBODY)
                taken += 1
            except Problem:
                break
    assert taken == 20
    assert len(await stored(store)) == 21


async def test_leads_with_a_credential_have_no_limit_of_leads(leads: Leads, holder: Actor) -> None:
    """Requests with a credential have a limit of their own."""
    for number in range(30):
        created = await leads.create(lead(str(number)), Sender(holder, ADDRESS))
        assert created.quota is None


async def test_repetitions_do_not_count(leads: Leads, store: Store) -> None:
    """A client that lost its answers gets them all again, even when nothing is left."""
    bodies = {(await leads.create(lead(str(n)), ANYBODY, f"key-{n}")).body for n in range(5)}
    again = [await leads.create(lead(str(n)), ANYBODY, f"key-{n}") for n in range(5) for _ in "ab"]

    assert {created.body for created in again} == bodies
    assert all(created.replayed for created in again)
    assert again[0].row == json.loads(again[0].body)["lead"]
    assert again[0].quota is not None
    assert again[0].quota.headers["RateLimit"].startswith('"leads";r=0;')
    assert len(await stored(store)) == 5


async def test_an_idempotency_mismatch_does_not_count(leads: Leads) -> None:
    """Nothing that is refused does."""
    await leads.create(lead("a"), ANYBODY, "key")
    for _ in range(10):
        assert (await refusal(leads, lead("b"), ANYBODY, "key")).code == "idempotency_mismatch"

    created = await leads.create(lead("c"), ANYBODY)
    assert created.quota is not None
    assert created.quota.headers["RateLimit"].startswith('"leads";r=3;')


@pytest.mark.parametrize("key", [None, "key"])
async def test_a_lead_that_was_not_stored_does_not_count(
    store: Store, watched: Any, clock: Any, limiter: Limiter, key: str | None
) -> None:
    """503 as often as it takes, then all five still go in."""
    leads = Leads(watched, clock, limiter, SECRET)
    watched.read_only = True
    for _ in range(20):
        assert (await refusal(leads, lead(), ANYBODY, key)).code == "unavailable"
    watched.read_only = False

    for number in range(5):
        await leads.create(lead(str(number)), ANYBODY, key and f"{key}-{number}")
    assert len(await stored(store)) == 5


async def test_a_credential_does_not_help_a_store_that_cannot_write(
    watched: Any, clock: Any, limiter: Limiter, holder: Actor
) -> None:
    """Nothing is acknowledged."""
    watched.read_only = True
    leads = Leads(watched, clock, limiter, SECRET)

    problem = await refusal(leads, lead(), Sender(holder, ADDRESS), "key")
    assert (problem.code, dict(problem.headers)) == ("unavailable", {"Retry-After": "1"})


async def test_lead_and_key_are_one_transaction(leads: Leads, store: Store, holder: Actor) -> None:
    """A lead that cannot be stored leaves no key behind, and the reverse."""
    sender = Sender(holder, ADDRESS)
    created = await leads.create(lead(), sender, "key")
    (kept,) = (await store.run(Read(IDEMPOTENCY_KEYS)))[0].rows
    assert kept["response"].encode() == created.body
    copy = {**(await stored(store))[0]}

    with pytest.raises(Problem):
        await store.run(Insert(IDEMPOTENCY_KEYS, [{**kept, "id": "0" * 64}]), Insert(LEADS, [copy]))
    assert len((await store.run(Read(IDEMPOTENCY_KEYS)))[0].rows) == 1


async def test_fifty_at_once_with_one_key_are_one_lead(leads: Leads, store: Store) -> None:
    """All get the same bytes, one of them as new; one is counted."""
    created = await asyncio.gather(*(leads.create(lead(), ANYBODY, "key") for _ in range(50)))

    assert len({each.body for each in created}) == 1
    assert sorted(each.replayed for each in created) == [False] + [True] * 49
    assert len(await stored(store)) == 1
    assert created[0].quota is not None
    assert created[0].quota.headers["RateLimit"].startswith('"leads";r=4;')


async def test_an_idempotency_key_belongs_to_its_sender(
    leads: Leads, store: Store, holder: Actor
) -> None:
    """Another credential, another address and another person use the same word freely."""
    other = Actor("01981a2b-0000-7e5f-8a6b-7c8d9e0f1a2b", "other", "api_key", frozenset())
    for sender in (ANYBODY, Sender(None, "192.0.2.8"), Sender(holder, ADDRESS), Sender(other, "x")):
        await leads.create(lead(str(sender)), sender, "key")
    await leads.create(lead(email="zoe@example.org"), ANYBODY, "key")
    again = await leads.create(lead(str(ANYBODY)), ANYBODY, "key")

    assert again.replayed
    assert len(await stored(store)) == 5


async def test_one_person_may_spell_their_address_differently(leads: Leads) -> None:
    """It is the same key then, and another body."""
    await leads.create(lead(), ANYBODY, "key")

    problem = await refusal(leads, lead(email="ANN@example.org"), ANYBODY, "key")
    assert problem.code == "idempotency_mismatch"


async def test_an_idempotent_answer_does_not_change_with_the_lead(
    leads: Leads, store: Store, holder: Actor
) -> None:
    """The first answer comes again, bytes and all."""
    sender = Sender(holder, ADDRESS)
    created = await leads.create(lead(), sender, "key")
    where = (Filter("id", "eq", created.row["id"]),)
    await store.run(Update(LEADS, {"name": "Zoe"}, where))

    assert (await leads.create(lead(), sender, "key")).body == created.body
