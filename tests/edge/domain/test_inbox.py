"""Leads as their owner finds them: by status and by words, in either order, a page at a time."""

import random

import pytest

from edge_api.db.query import Delete, Filter, Insert, Read, Store, Update, fold_accents
from edge_api.db.table import Row
from edge_api.db.tables import LEADS
from edge_api.leads import service as inbox
from edge_api.leads.service import LeadQuery, find_leads
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.each_engine
WORDS = [
    "ann",
    "zoë",
    "straße",
    "ÉCOLE",
    "naïve",
    '"quoted"',
    "100%",
    "under_score",
    "per*cent",
    "don't",
    "ИМЯ",
    "東京都",
    "a-b",
    "M\u00fcller",
    "\u0130pek",
    "Mu\u0308nch",
    "Lef\u00e8vre",
    "\u0141ukasz",
    "\ub300\ud55c\ubbfc\uad6d",
]


def make(chance: random.Random, number: int) -> Row:
    """Return a lead of random words."""
    return make_row(
        LEADS,
        {
            "name": " ".join(chance.choices(WORDS, k=2)),
            "email": f"{chance.choice(('ann', 'bo'))}{number}@example.org",
            "message": " ".join(chance.choices(WORDS, k=6)),
            "budget_tier": "b",
            "status": chance.choice(("new", "won", "spam")),
            "created_at": f"2026-01-01T{number // 60 % 24:02}:{number % 60:02}:00.{number:06}Z",
        },
    )


def expected(rows: list[Row], query: LeadQuery, statuses: tuple[str, ...]) -> list[str]:
    """Return the ids that a plain loop finds."""
    words = fold_accents(query.search).split()
    found = [
        row
        for row in sorted(rows, key=lambda row: (row["created_at"], row["id"]))
        if row["status"] in statuses
        and all(
            w in fold_accents(f"{row['name']}\n{row['email']}\n{row['message']}") for w in words
        )
    ]
    ids = [row["id"] for row in (found if query.oldest_first else found[::-1])]
    return ids[: query.limit]


@pytest.mark.parametrize("first", [1, 250], ids=["by the index", "by reading"])
async def test_a_search_finds_what_a_loop_finds(
    store: Store, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Any part of a word, whatever its case, after rows were changed and deleted too."""
    monkeypatch.setattr(inbox, "FIRST_SEARCHED", first)
    chance = random.Random(7)  # noqa: S311  no secret
    rows = [make(chance, number) for number in range(120)]
    await store.run(Insert(LEADS, rows))
    for row in chance.sample(rows, 30):
        text = {"message": " ".join(chance.choices(WORDS, k=4)), "name": "Renamed"}
        await store.run(Update(LEADS, text, (Filter("id", "eq", row["id"]),)))
    await store.run(Delete(LEADS, (Filter("id", "in", tuple(row["id"] for row in rows[:20])),)))
    (left,) = await store.run(Read(LEADS))
    for _ in range(150):
        word = chance.choice([*WORDS, "renamed", "example.org", "nothing"])
        start = chance.randrange(len(word))
        part = word[start : start + chance.randint(1, 8)]
        statuses = chance.choice((("new", "won", "spam"), ("new",), ("won", "spam")))
        query = LeadQuery(
            search=chance.choice((part, part.upper(), f"{part} ann")),
            where=(Filter("status", "in", statuses),),
            oldest_first=chance.random() < 0.5,
            limit=chance.choice((7, 14)),
        )
        found = await find_leads(store, query)
        wanted = expected(left.rows, query, statuses)
        if first > 1 or all(map(str.isascii, query.search)):  # engines fold some letters otherwise
            assert [row["id"] for row in found] == wanted, query


async def test_an_erased_lead_leaves_nothing_in_the_index(store: Store) -> None:
    """Its words are found no more, and a rewritten store has no piece of them."""
    row = make_row(
        LEADS, {"name": "n", "email": "e@x.org", "budget_tier": "b", "message": "zyzzyva quetzal"}
    )
    await store.run(Insert(LEADS, [row]))
    search = Filter("id", "search", ("zyzzyva",))
    (found,) = await store.run(Read(LEADS, where=(search,)))
    assert [each["id"] for each in found.rows] == [row["id"]]
    await store.run(Delete(LEADS, (Filter("id", "eq", row["id"]),)))
    (found,) = await store.run(Read(LEADS, where=(search,)))
    assert found.rows == []
    assert await store.scrub(full=True)


@pytest.mark.parametrize("first", [1, 250], ids=["by the index", "by reading"])
@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ("M\u00fcller", "muller"),
        ("Muller", "M\u00fcller"),
        ("Mu\u0308ller", "MULLER"),
        ("\u0130pek", "Ipek"),
        ("I\u015f\u0131k", "isik"),
        ("Lef\u00e8vre", "lefevre"),
        ("Fern\u00e1ndez", "Fernandez"),
        ("Nguy\u1ec5n", "nguyen"),
        ("\u0141\u00f3d\u017a", "lodz"),
        ("S\u00f8ren", "Soren"),
        ("Stra\u00dfe", "strasse"),
        ("STRASSE", "stra\u00dfe"),
        ("\u0395\u03bb\u03ad\u03bd\u03b7", "\u03b5\u03bb\u03b5\u03bd\u03b7"),
        ("\u0410\u043b\u0451\u043d\u0430", "\u0430\u043b\u0435\u043d\u0430"),
        ("\u4eac\u90fd\u5e02", "\u4eac\u90fd\u5e02"),
        ("\u304c\u304e\u3050", "\u304c\u304e\u3050"),
        ("\ub300\ud55c\ubbfc\uad6d", "\ub300\ud55c\ubbfc"),
    ],
)
async def test_a_search_folds_accents(
    store: Store, monkeypatch: pytest.MonkeyPatch, first: int, stored: str, typed: str
) -> None:
    """A name is found with an English keyboard, and one without accents by somebody who types them.

    Also after the row has got the name later, and no more once it has another.
    """
    monkeypatch.setattr(inbox, "FIRST_SEARCHED", first)
    row = make_row(LEADS, {"name": stored, "email": "a@b.co", "budget_tier": "b", "message": "m"})
    others = [make(random.Random(1), number) for number in range(9)]  # noqa: S311  no secret
    await store.run(Insert(LEADS, [{**row, "name": "x"}, *others]))
    await store.run(Update(LEADS, {"name": stored}, (Filter("id", "eq", row["id"]),)))

    found = await find_leads(store, LeadQuery(typed, limit=1000))
    assert row["id"] in {each["id"] for each in found}

    await store.run(Update(LEADS, {"name": "y"}, (Filter("id", "eq", row["id"]),)))
    found = await find_leads(store, LeadQuery(typed, limit=1000))
    assert row["id"] not in {each["id"] for each in found}


async def test_other_kana_are_other_letters(store: Store) -> None:
    """The marks of voiced kana are no accents."""
    row = make_row(
        LEADS, {"name": "\u304c\u304e\u3050", "email": "a@b.co", "budget_tier": "b", "message": "m"}
    )
    await store.run(Insert(LEADS, [row]))

    assert await find_leads(store, LeadQuery("\u304b\u304d\u304f")) == []
