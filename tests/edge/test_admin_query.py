"""The query string of administrative reads but for filters: order, select, page, and any text."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.admin.filters import SelectItem, apply_selection
from edge_api.admin.rows import MAX_OFFSET, ParsedQuery, parse_query
from edge_api.db.problems import Problem
from edge_api.db.query import Order
from edge_api.db.tables import ADMINISTRATIVE, LEADS
from tests.edge.asking import ask, sqlstate_of

ORDERS = [
    ("name", (Order("name", descending=False, nulls_first=False),)),
    ("name.asc", (Order("name", descending=False, nulls_first=False),)),
    ("name.desc", (Order("name", descending=True, nulls_first=True),)),
    ("notes.nullsfirst", (Order("notes", descending=False, nulls_first=True),)),
    ("notes.desc.nullslast", (Order("notes", descending=True, nulls_first=False),)),
    ("notes.asc.nullslast, id.desc ", (Order("notes"), Order("id", True, True))),  # noqa: FBT003
]
SELECTIONS = [
    ("id", [("id", "id", None)]),
    ("name,id", [("name", "name", None), ("id", "id", None)]),
    (" name , id ", [("name", "name", None), ("id", "id", None)]),
    ("n:name", [("n", "name", None)]),
    ("spam_score::text", [("spam_score", "spam_score", "text")]),
    ("points:spam_score::int", [("points", "spam_score", "int")]),
    ("name::text", [("name", "name", "text")]),
    ("created_at::text", [("created_at", "created_at", "text")]),
    ("spam_reasons::text", [("spam_reasons", "spam_reasons", "text")]),
]


@pytest.mark.parametrize(("text", "expected"), ORDERS)
def test_order_follows_postgresql(text: str, expected: tuple[Order, ...]) -> None:
    """NULLs are last ascending and first descending unless the client says otherwise."""
    assert ask("leads", ("order", text)).read.order == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PGRST100"),
        ("name,", "PGRST100"),
        (",name", "PGRST100"),
        ("name.ac", "PGRST100"),
        ("name.DESC", "PGRST100"),
        ("name.asc.nullslasttt", "PGRST100"),
        ("name.nullsfirst.asc", "PGRST100"),
        ("name.asc.desc", "PGRST100"),
        ("name;DROP TABLE leads", "42703"),
        ("(CASE WHEN 1=1 THEN name END)", "PGRST100"),
        ("name COLLATE NOCASE", "42703"),
        ("1", "42703"),
        ("dedupe_hash", "42703"),
        ("rowid.desc", "42703"),
        ("spam_reasons", "42883"),
    ],
)
def test_a_faulty_order_is_named(text: str, code: str) -> None:
    """An order by what is no readable column, or in no known direction, is refused."""
    assert sqlstate_of("leads", ("order", text)) == code


@pytest.mark.parametrize(("text", "expected"), SELECTIONS)
def test_select_names_the_members_of_a_row(text: str, expected: list[Any]) -> None:
    """Each element of `select` is a member of the answer, and only its columns are read."""
    question = ask("leads", ("select", text))

    assert list(question.selection) == [SelectItem(*element) for element in expected]
    assert set(question.read.columns) == {column for _, column, _ in expected}


@pytest.mark.parametrize("pairs", [[], [("select", "")], [("select", "  ")], [("select", "*")]])
def test_everything_readable_is_selected_by_default(pairs: list[tuple[str, str]]) -> None:
    """Without a `select`, or with a blank one, all columns come but the hidden ones."""
    question = ask("leads", *pairs)

    assert question.read.columns == LEADS.readable
    assert "dedupe_hash" not in question.read.columns


def test_select_reads_a_column_once() -> None:
    """A column that is selected twice is read once and shown under both names."""
    question = ask("leads", ("select", "*,n:name"))

    assert question.read.columns == LEADS.readable
    assert question.selection[-1] == SelectItem("n", "name")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nope", "42703"),
        ("dedupe_hash", "42703"),
        ("x:dedupe_hash", "42703"),
        ("dedupe_hash::text", "42703"),
        ("rowid", "42703"),
        ("sql from sqlite_master--", "42703"),
        ("count", "PGRST100"),
        ("metadata->>a", "PGRST100"),
        ("id,", "PGRST100"),
        (",id", "PGRST100"),
        ("id,,name", "PGRST100"),
        ("leads(*)", "PGRST100"),
        ("name.upper()", "PGRST100"),
        ("a:b:name", "PGRST100"),
        ("1a:name", "PGRST100"),
        (":name", "PGRST100"),
        ("::text", "PGRST100"),
        ("name:", "PGRST100"),
        ("name::", "42704"),
        ("name::fakecolumntype", "42704"),
        ("name::TEXT", "42704"),
        ("name::text::int", "PGRST100"),
        ("name::int", "42846"),
        ("created_at::int", "42846"),
        ("spam_reasons::int", "42846"),
    ],
)
def test_a_faulty_select_is_named(text: str, code: str) -> None:
    """An element that is no readable column, or a cast that cannot be, is refused."""
    assert sqlstate_of("leads", ("select", text)) == code


def test_presented_rows_keep_the_order_and_the_casts() -> None:
    """Rows are shown with the members asked for, in that order; NULL stays NULL in a cast."""
    pairs = [("select", "s:spam_score::text,notes::text,spam_reasons::text,name")]
    selection = parse_query(LEADS, pairs).selection
    row = {"spam_score": 10, "notes": None, "spam_reasons": {"a": ["\u00e9", 1]}, "name": "Ada"}

    assert [list(shown.items()) for shown in apply_selection([row], selection)] == [
        [("s", "10"), ("notes", None), ("spam_reasons", '{"a":["\u00e9",1]}'), ("name", "Ada")]
    ]


@pytest.mark.parametrize(
    ("pairs", "limit", "offset"),
    [
        ([], 100, 0),
        ([("limit", "1")], 1, 0),
        ([("limit", "1000"), ("offset", "0")], 1000, 0),
        ([("limit", "007")], 7, 0),
        ([("offset", "12")], 100, 12),
        ([("offset", "0000000000000000000000012")], 100, 12),
        ([("offset", "9" * 5000)], 100, MAX_OFFSET),
    ],
)
def test_limit_and_offset(pairs: list[tuple[str, str]], limit: int, offset: int) -> None:
    """A page is a hundred rows from the first on unless the client says otherwise."""
    read = ask("leads", *pairs).read

    assert (read.limit, read.offset) == (limit, offset)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("limit", "0", "from 1 to 1000"),
        ("limit", "1001", "from 1 to 1000"),
        ("limit", "-1", "from 1 to 1000"),
        ("limit", "9" * 5000, "from 1 to 1000"),
        ("limit", "abc", "an integer"),
        ("limit", "", "an integer"),
        ("limit", "1.0", "an integer"),
        ("limit", "+1", "an integer"),
        ("limit", " 1", "an integer"),
        ("limit", "\u0661", "an integer"),
        ("limit", "1\n", "an integer"),
        ("offset", "-4", "0 or more"),
        ("offset", "-" + "9" * 5000, "0 or more"),
        ("offset", "1;DROP", "an integer"),
    ],
)
def test_a_bad_page_says_the_bound(name: str, text: str, words: str) -> None:
    """A limit or an offset out of its bounds is refused in words that say them."""
    with pytest.raises(Problem, match=f"^{name}: must be .*{words}"):
        ask("leads", (name, text))


def test_a_column_is_ordered_by_once() -> None:
    """Later terms of a column change nothing, and engines refuse thousands of them."""
    order = ask("leads", ("order", ",".join(["name.desc", "id", *["name"] * 3000]))).read.order

    assert order == (Order("name", descending=True, nulls_first=True), Order("id"))


def test_a_member_is_selected_once() -> None:
    """The last of two members with one name counts, in the place of the first."""
    chosen = ask("leads", ("select", "name,email,name:message,*,*")).selection

    assert [output.name for output in chosen][:2] == ["name", "email"]
    assert len({output.name for output in chosen}) == len(chosen)


@pytest.mark.parametrize(
    ("pairs", "code"),
    [([("select", ",".join(["*"] * 201))], "54011"), ([("name", "eq.a")] * 101, "54001")],
)
def test_too_many_elements_and_filters_are_refused(pairs: list[tuple[str, str]], code: str) -> None:
    """So many elements and filters and no more, before anything is worked out."""
    assert sqlstate_of("leads", *pairs) == code
    ask("leads", *([("select", ",".join(["*"] * 200))] if code == "54011" else pairs[1:]))


@pytest.mark.parametrize("name", ["select", "order", "limit", "offset"])
def test_a_repeated_reserved_parameter_is_refused(name: str) -> None:
    """A repeated select, order, limit or offset is refused: one of them would be passed over."""
    text = {"select": "id", "order": "id"}.get(name, "1")

    assert sqlstate_of("leads", (name, text), (name, text)) == "PGRST100"


@given(
    table=st.sampled_from(list(ADMINISTRATIVE.values())),
    pairs=st.lists(
        st.tuples(
            st.text() | st.sampled_from(["select", "order", "limit", "offset", "name", "id"]),
            st.text()
            | st.from_regex(r"(not\.)?(eq|like|in|is)\.[(\"\\,)a ]*", fullmatch=True)
            | st.from_regex(r"[a-z_:*, .()]*", fullmatch=True),
        ),
        max_size=4,
    ),
)
def test_any_pairs_give_a_plan_or_a_problem(table: Any, pairs: list[tuple[str, str]]) -> None:
    """For any parameters the parser returns a plan or raises a Problem."""
    question: ParsedQuery | None = None
    with contextlib.suppress(Problem):
        question = parse_query(table, pairs)

    if question is not None:
        assert set(question.read.columns) <= set(table.readable)
        assert {item.column for item in question.read.where} <= set(table.readable)
