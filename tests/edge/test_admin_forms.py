"""The forms of administrative answers: by Accept and Prefer, as CSV, and their Content-Range."""

import csv
import io
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.admin.filters import FORMULA_PREFIXES, to_csv
from edge_api.admin.rows import (
    CSV,
    SINGLE,
    RowsPage,
    content_range,
    negotiate_media_type,
    singleton,
    wants_count,
)
from edge_api.db.problems import Problem
from edge_api.operation.service import JSON


def page(rows: list[dict[str, Any]], offset: int = 0, total: int | None = None) -> RowsPage:
    """Return a page of rows."""
    return RowsPage(("id",), orjson.dumps(rows), len(rows), offset, total)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/json", JSON),
        ("text/csv", CSV),
        ("TEXT/CSV; charset=utf-8", CSV),
        ("application/vnd.pgrst.object+json", SINGLE),
        ("application/vnd.pgrst.object+json;nulls=stripped", SINGLE),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON),
        ("image/png", JSON),
        ("application/json, text/csv", JSON),
        ("application/json;q=0.5, text/csv", CSV),
        ("text/csv;q=0.5, */*;q=0.1", CSV),
        ("text/csv;q=0.1, */*", JSON),
        ("text/csv;q=0", JSON),
        ("text/csv;q=0.9, application/vnd.pgrst.object+json", SINGLE),
        ("text/*", JSON),
        ("application/*;q=0.2, text/csv;q=0.1", JSON),
        (",;,q=1,/", JSON),
        ("text/csv;q=x", JSON),
    ],
)
def test_the_form_follows_accept(accept: str | None, form: str) -> None:
    """The form that a client wants most is chosen; JSON is the answer to any other wish."""
    assert negotiate_media_type(accept) == form


@given(st.text())
def test_any_accept_chooses_a_form(accept: str) -> None:
    """Whatever an Accept header holds, one of the forms is chosen."""
    assert negotiate_media_type(accept) in {JSON, CSV, SINGLE}


@pytest.mark.parametrize(
    ("prefer", "wanted"),
    [
        (None, False),
        ("", False),
        ("count=exact", True),
        ("Count=Exact", True),
        ('count="exact"', True),
        ("return=minimal, count = exact", True),
        ("count=exact; x=1, handling=strict", True),
        ("count=planned", False),
        ("count=estimated", False),
        ("discount=exact", False),
        ("count=exactly", False),
        ("return=representation", False),
    ],
)
def test_a_count_is_made_when_preferred(prefer: str | None, *, wanted: bool) -> None:
    """Only `count=exact` among the preferences makes a count."""
    assert wants_count(prefer) == wanted


@pytest.mark.parametrize(
    ("given_page", "expected"),
    [
        (page([]), "*/*"),
        (page([], 7, 0), "*/0"),
        (page([], 100, 42), "*/42"),
        (page([{"id": 1}]), "0-0/*"),
        (page([{"id": 1}] * 3, 10), "10-12/*"),
        (page([{"id": 1}] * 3, 10, 42), "10-12/42"),
    ],
)
def test_content_range_says_which_rows(given_page: RowsPage, expected: str) -> None:
    """First and last row of the page and the total, as PostgREST writes them."""
    assert content_range(given_page) == expected


def test_one_object_is_the_only_row() -> None:
    """The only row stands for itself."""
    assert singleton([{"id": 1}]) == {"id": 1}


@pytest.mark.parametrize("number", [0, 2])
def test_one_object_of_none_or_several_is_refused(number: int) -> None:
    """Where one object is asked for, none and several are problems that name the number."""
    with pytest.raises(Problem) as raised:
        singleton([{"id": 1}] * number)

    assert (raised.value.status, raised.value.sqlstate) == (406, "PGRST116")
    assert raised.value.details == f"The result contains {number} rows"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain", "plain"),
        ("", '""'),
        (None, '""'),
        (7, "7"),
        (-7, "'-7"),
        ("a,b", '"a,b"'),
        ('a"b', '"a""b"'),
        ("a\nb", '"a\nb"'),
        (" a ", " a "),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@A1", "'@A1"),
        ("\tx", "'\tx"),
        ("\rx", '"\'\rx"'),
        ("a=1", "a=1"),
        ({"a": ["\u00e9", None]}, '"{""a"":[""\u00e9"",null]}"'),
        (["=x"], '"[""=x""]"'),
    ],
)
def test_a_cell_is_text_and_no_formula(value: Any, line: str) -> None:
    """A cell is quoted where RFC 4180 says so, and never begins like a formula."""
    assert to_csv(["x"], [{"x": value}]) == f"x\r\n{line}\r\n"


def test_an_empty_sheet_has_its_header() -> None:
    """Columns stand in the order asked for, also above no row at all."""
    assert to_csv(["b", "a"], []) == "b,a\r\n"


cells = st.none() | st.integers() | st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(st.lists(st.fixed_dictionaries({"a": cells, "b": cells}), max_size=5))
def test_csv_reads_back(rows: list[dict[str, Any]]) -> None:
    """A reader of CSV gets every cell back, apart from the apostrophe before a formula."""
    lines = list(csv.reader(io.StringIO(to_csv(["a", "b"], rows), newline="")))

    assert lines[0] == ["a", "b"]
    for line, row in zip(lines[1:], rows, strict=True):
        for name, cell in zip(("a", "b"), line, strict=True):
            text = "" if row[name] is None else str(row[name])
            assert cell == (f"'{text}" if text.startswith(FORMULA_PREFIXES) else text)
