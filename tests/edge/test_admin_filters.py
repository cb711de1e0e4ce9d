"""Filters of administrative reads: what each of them becomes, or which fault it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.admin.filters import parse_filter, split_list
from edge_api.db.problems import Problem
from edge_api.db.query import Filter
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from tests.edge.asking import ask, sqlstate_of

ID = "00000000-0000-4000-b000-000000000005"
FILTERS: list[tuple[str, str, str, Any]] = [
    # table, column, text, what the condition is
    ("leads", "name", "eq.Ada", ("eq", "Ada")),
    ("leads", "name", "eq.", ("eq", "")),
    ("leads", "name", "eq.null", ("eq", "null")),
    ("leads", "name", 'eq."Ada"', ("eq", '"Ada"')),
    ("leads", "name", "eq. Ada ", ("eq", " Ada ")),
    ("leads", "name", "eq.a.b.c", ("eq", "a.b.c")),
    ("leads", "name", "eq.not.eq.1", ("eq", "not.eq.1")),
    ("leads", "name", "eq.(1,2)", ("eq", "(1,2)")),
    ("leads", "name", "eq.*%_", ("eq", "*%_")),
    ("leads", "name", "eq.a\nb", ("eq", "a\nb")),
    ("leads", "name", "not.eq.Ada", ("eq", "Ada", True)),
    ("leads", "name", "neq.Ada", ("neq", "Ada")),
    ("leads", "name", "not.neq.Ada", ("neq", "Ada", True)),
    ("leads", "status", "gt.new", ("gt", "new")),
    ("leads", "status", "eq.no such status", ("eq", "no such status")),
    ("leads", "spam_score", "gte.10", ("gte", 10)),
    ("leads", "spam_score", "lt.-10", ("lt", -10)),
    ("leads", "spam_score", "lte.+10", ("lte", 10)),
    ("leads", "spam_score", "eq. 10 ", ("eq", 10)),
    ("leads", "spam_score", "eq.000000000000000010", ("eq", 10)),
    ("state", "id", "eq.1", ("eq", 1)),
    ("log", "id", f"eq.{ID.upper()}", ("eq", ID)),
    ("log", "created_at", "gt.2026-02-04", ("gt", "2026-02-04T00:00:00.000000Z")),
    ("log", "created_at", "gt.2026-02-04T12:00", ("gt", "2026-02-04T12:00:00.000000Z")),
    ("log", "created_at", "gt.2026-02-04 12:00:00", ("gt", "2026-02-04T12:00:00.000000Z")),
    ("log", "created_at", "gt.2026-02-04T12:00:00+02:00", ("gt", "2026-02-04T10:00:00.000000Z")),
    ("log", "created_at", "gt.2026-02-04t12:00:00.5z", ("gt", "2026-02-04T12:00:00.500000Z")),
    ("log", "created_at", "lt.9999-12-31", ("lt", "9999-12-31T00:00:00.000000Z")),
    ("log", "created_at", "eq.2024-02-29", ("eq", "2024-02-29T00:00:00.000000Z")),
    ("leads", "name", "like.*yx", ("like", "%yx")),
    ("leads", "name", "like.%yx", ("like", "%yx")),
    ("leads", "name", r"like.100\%", ("like", r"100\%")),
    ("leads", "name", r"like.a\*b*", ("like", r"a\*b%")),
    ("leads", "name", r"like.*\\", ("like", "%" + r"\\")),
    ("leads", "name", r"like.\\*", ("like", r"\\" + "%")),
    ("leads", "name", "not.ilike.x_", ("ilike", "x_", True)),
    ("leads", "name", "in.(a,b)", ("in", ("a", "b"))),
    ("leads", "name", "not.in.(a)", ("in", ("a",), True)),
    ("leads", "name", "in.()", ("in", ())),
    ("leads", "name", "in.(   )", ("in", ())),
    ("leads", "name", 'in.("")', ("in", ("",))),
    ("leads", "name", "in.(,)", ("in", ("", ""))),
    ("leads", "name", "in.(null)", ("in", ("null",))),
    ("leads", "name", "in.(  a, b ,c )  ", ("in", ("a", " b ", "c "))),
    ("leads", "name", 'in.("a,b","c(d)")', ("in", ("a,b", "c(d)"))),
    ("leads", "name", r'in.("a\"b","c\\d","\e")', ("in", ('a"b', r"c\d", "e"))),
    ("leads", "name", 'in.(")', ("in", ('"',))),
    ("leads", "name", r"in.(\)", ("in", ("\\",))),
    ("leads", "name", 'in.(Double"Quote"McGraw")', ("in", ('Double"Quote"McGraw"',))),
    ("leads", "name", 'in.("a"b,c)', ("in", ('"a"b', "c"))),
    ("leads", "name", 'in.("a,b)', ("in", ('"a', "b"))),
    ("leads", "name", 'in.("a)")', ("in", ("a)",))),
    ("leads", "name", 'in.(a "b,c")', ("in", ('a "b', 'c"'))),
    ("leads", "spam_score", 'in.(1, 2,"3" )', None),
    ("leads", "spam_score", 'in.(1, 2,"3")', ("in", (1, 2, 3))),
    ("log", "id", f"in.({ID})", ("in", (ID,))),
    ("log", "error_message", "is.null", ("is", None)),
    ("log", "error_message", "is.NULL", ("is", None)),
    ("log", "error_message", "is.not_null", ("is", None, True)),
    ("log", "error_message", "is.Not_Null", ("is", None, True)),
    ("log", "error_message", "not.is.null", ("is", None, True)),
    ("log", "error_message", "not.is.not_null", ("is", None, False)),
    ("log", "metadata", "is.null", ("is", None)),
]
FAULTS = [
    # table, name, text, PostgreSQL's or PostgREST's code
    ("leads", "nope", "eq.1", "42703"),
    ("leads", "dedupe_hash", "eq.1", "42703"),
    ("leads", "dedupe_hash", "is.null", "42703"),
    ("leads", "Name", "eq.1", "42703"),
    ("leads", "rowid", "eq.1", "42703"),
    ("leads", "oid", "eq.1", "42703"),
    ("leads", "_rowid_", "eq.1", "42703"),
    ("leads", '"name"', "eq.1", "PGRST100"),
    ("leads", "name--", "eq.1", "42703"),
    ("leads", "", "eq.1", "42703"),
    ("leads", "or", "(name.eq.1,name.eq.2)", "PGRST100"),
    ("leads", "and", "(name.eq.1,name.eq.2)", "PGRST100"),
    ("leads", "columns", "name", "PGRST100"),
    ("leads", "limit ", "1", "42703"),
    ("log", "metadata->>a", "eq.1", "PGRST100"),
    ("leads", "name", "", "PGRST100"),
    ("leads", "name", "Ada", "PGRST100"),
    ("leads", "name", "eq", "PGRST100"),
    ("leads", "name", "EQ.Ada", "PGRST100"),
    ("leads", "name", " eq.Ada", "PGRST100"),
    ("leads", "name", ".Ada", "PGRST100"),
    ("leads", "name", "not.Ada", "PGRST100"),
    ("leads", "name", "not.not.eq.Ada", "PGRST100"),
    ("leads", "name", "match.^x", "PGRST100"),
    ("leads", "name", "fts.x", "PGRST100"),
    ("leads", "name", "eq(any).{a,b}", "PGRST100"),
    ("leads", "name", "in.a,b", "PGRST100"),
    ("leads", "name", "in. (a)", "PGRST100"),
    ("leads", "name", "in.(", "PGRST100"),
    ("leads", "name", "in.)", "PGRST100"),
    ("leads", "name", "in.(a", "PGRST100"),
    ("leads", "name", "in.(a,", "PGRST100"),
    ("leads", "name", "in.(a)b", "PGRST100"),
    ("leads", "name", "in.(a))", "PGRST100"),
    ("leads", "name", 'in.("a")b)', "PGRST100"),
    ("leads", "name", "in.(x') OR ('1'='1)", "PGRST100"),
    ("leads", "name", "is.", "PGRST100"),
    ("leads", "name", "is.nil", "PGRST100"),
    ("leads", "name", "is.true", "PGRST100"),
    ("leads", "name", "is.null ", "PGRST100"),
    ("leads", "name", "eq.a\0b", "22021"),
    ("leads", "name", "like.a\0b", "22021"),
    ("leads", "name", "in.(a,b\0)", "22021"),
    ("leads", "name", "eq.\ud800", "22021"),
    ("leads", "name", "like.a\\", "22025"),
    ("leads", "name", "like.\\\\\\", "22025"),
    ("leads", "name", "not.ilike.*\\", "22025"),
    ("leads", "spam_score", "eq.ten", "22P02"),
    ("leads", "spam_score", "eq.", "22P02"),
    ("leads", "spam_score", "eq.1.0", "22P02"),
    ("leads", "spam_score", "eq.1e3", "22P02"),
    ("leads", "spam_score", "eq.1_000", "22P02"),
    ("leads", "spam_score", "eq.\u0661", "22P02"),
    ("leads", "spam_score", "eq.1\n", "22P02"),
    ("leads", "spam_score", "eq.1000000000000000000", "22P02"),
    ("leads", "spam_score", "eq.10 OR 1=1", "22P02"),
    ("leads", "spam_score", "in.( ,3)", "22P02"),
    ("leads", "spam_score", "in.(1,)", "22P02"),
    ("leads", "spam_score", "like.1*", "42883"),
    ("log", "id", "eq.5", "22P02"),
    ("log", "id", "eq.{00000000-0000-4000-b000-000000000005}", "22P02"),
    ("log", "id", "ilike.0*", "42883"),
    ("log", "created_at", "gt.yesterday-ish", "22007"),
    ("log", "created_at", "gt.2026-02-30", "22007"),
    ("log", "created_at", "gt.2026-13-01", "22007"),
    ("log", "created_at", "gt.2025-02-29", "22007"),
    ("log", "created_at", "gt.1900-02-29", "22007"),
    ("log", "created_at", "gt.2026-02-04T24:00", "22007"),
    ("log", "created_at", "gt.2026-02-04T12:00:60Z", "22007"),
    ("log", "created_at", "gt.2026-02-04T12:00:00 00:00", "22007"),
    ("log", "created_at", "gt.20260204", "22007"),
    ("log", "created_at", "gt.0000-01-01", "22007"),
    ("log", "created_at", "gt.9999-12-31T23:00-05:00", "22007"),
    ("log", "created_at", "gt.1000-01-01T00:00+05:00", "22007"),
    ("log", "created_at", "like.2026*", "42883"),
    ("log", "metadata", "eq.{}", "42883"),
    ("log", "metadata", "in.()", "42883"),
    ("log", "metadata", "like.*", "42883"),
]


@pytest.mark.parametrize(("table", "name", "text", "expected"), FILTERS)
def test_a_filter_becomes_a_condition(table: str, name: str, text: str, expected: Any) -> None:
    """A filter is its operator and its value, in the canonical form of the column's kind."""
    if expected is None:
        assert sqlstate_of(table, (name, text)) == "22P02"
        return
    operator, value, *negated = expected

    assert ask(table, (name, text)).read.where == (
        Filter(name, operator, value, bool(negated and negated[0])),
    )


@pytest.mark.parametrize(("table", "name", "text", "code"), FAULTS)
def test_a_faulty_filter_is_named(table: str, name: str, text: str, code: str) -> None:
    """A filter that cannot be understood is refused with the dialect's code, never passed over."""
    assert sqlstate_of(table, (name, text)) == code


def test_the_fault_names_the_column_and_the_fix() -> None:
    """The sentence of a fault begins with the column, and a lost plus sign is explained."""
    with pytest.raises(Problem) as raised:
        parse_filter(EMAIL_SEND_LOG, "created_at", "gt.2026-02-04T12:00:00 00:00")

    assert raised.value.message.startswith("created_at: is not an instant")
    assert raised.value.hint == "In a query string a plus sign is written %2B"


def test_an_unknown_column_lists_those_that_are_known_and_no_hidden_one() -> None:
    """The error lists the columns that there are, without hidden ones."""
    with pytest.raises(Problem, match="budget_tier") as raised:
        parse_filter(LEADS, "buget", "eq.1")

    assert "dedupe_hash" not in raised.value.message


def test_filters_are_kept_in_their_order_and_all_of_them() -> None:
    """Filters on one column do not replace each other."""
    read = ask("leads", ("name", "eq.a"), ("status", "eq.new"), ("name", "eq.b")).read

    assert [(item.column, item.value) for item in read.where] == [
        ("name", "a"),
        ("status", "new"),
        ("name", "b"),
    ]


@given(st.lists(st.text(alphabet='ab,()"\\ '), min_size=1, max_size=5))
def test_quoted_elements_survive_a_list(elements: list[str]) -> None:
    """Any texts, quoted and escaped as the dialect says, come out of a list as they went in."""
    escaped = (text.replace("\\", r"\\").replace('"', r"\"") for text in elements)
    written = ",".join(f'"{text}"' for text in escaped)

    assert split_list(f"({written})") == tuple(elements)
