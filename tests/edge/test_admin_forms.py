"""The forms of administrative answers: by Accept and Prefer, as CSV, and their Content-Range."""

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.admin.handlers import (
    CSV,
    SINGLE,
    applied_preferences,
    content_range,
    negotiate_media_type,
    only_row,
)
from edge_api.admin.rows import RowsPage
from edge_api.db.problems import Problem
from edge_api.operation.model import JSON
from edge_api.operation.sheets import to_csv


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
        ("application/vnd.pgrst.array+json", JSON),
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


@pytest.mark.parametrize(
    ("accept", "word"),
    [
        ("application/vnd.pgrst.object+json;nulls=stripped", "nulls=stripped"),
        ("application/vnd.pgrst.array+json; nulls=stripped", "nulls=stripped"),
        (
            'application/vnd.pgrst.plan+text; for="application/json"; options=analyze|verbose;',
            "application/vnd.pgrst.plan+text",
        ),
        ("text/csv, Application/Vnd.PGRST.plan+json", "application/vnd.pgrst.plan+json"),
        ("application/vnd.pgrst.object", "application/vnd.pgrst.object"),
    ],
)
def test_other_forms_of_the_dialect_are_refused(accept: str, word: str) -> None:
    """JSON in their place would be taken for them."""
    with pytest.raises(Problem, match=re.escape(f"Accept: {word} is not supported")):
        negotiate_media_type(accept)


@given(st.text())
def test_any_accept_chooses_a_form(accept: str) -> None:
    """For any Accept header one of the forms is chosen."""
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
        ("count=planned, count=exact", False),
        ("count=planned", False),
        ("count=estimated", False),
        ("discount=exact", False),
        ("count=exactly", False),
        ("return=representation", False),
    ],
)
def test_a_count_is_made_when_preferred(prefer: str | None, *, wanted: bool) -> None:
    """Only `count=exact` among the preferences makes a count."""
    assert ("count=exact" in applied_preferences(prefer, ["count=exact"])) == wanted


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
    assert only_row([{"id": 1}]) == {"id": 1}


@pytest.mark.parametrize("number", [0, 2])
def test_one_object_of_none_or_several_is_refused(number: int) -> None:
    """For a request of one object, none and several are errors that name the number."""
    with pytest.raises(Problem) as raised:
        only_row([{"id": 1}] * number)

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
    """Columns are in the requested order, also above no row at all."""
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
            assert cell.replace("'", "") == text.replace("'", "")
            assert text.startswith(("=", "+", "-", "@", "\t", "\r")) <= cell.startswith("'")


SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\u2212"
INVISIBLE = '"\ufeff\u00a0\u200b\u200d\u2060\u202e\u00ad\u3000\x01\x1f '
FORMULAS = [
    *(f"{sign}HYPERLINK(A1)" for sign in SIGNS),
    *(f"{sign}1+1" for sign in SIGNS),
    "=cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "+Sheet2!A1",
    "+'file:///etc/passwd'#$Sheet1.A1",
    "+Sheet1.A1",
    "+Sheet1 . A1",
    "+\uff33heet1\uff0e\uff211",
    "+$Sheet1.$A$1",
    "+'#Sheet2'.A1",
    "+Table1[col]",
    "+SUM\uff08A1\uff09",
    '+1+2+WEBSERVICE\u00a0("http://x")',
    '+HYPERLINK\u200b("x")',
    "-SUM\u2028(A1)",
    "+SUM\r(A1)",
    *(f"{character}=1+1" for character in INVISIBLE),
    *(f"{character}{character}@SUM(1)" for character in INVISIBLE),
    '"" =1+1',
]


def shown(sheet: str, separator: str) -> Iterator[str]:
    """Yield the cells as a program of that separator has them, without what nobody sees."""
    for line in csv.reader(io.StringIO(sheet, newline=""), delimiter=separator):
        yield from (cell.lstrip(f"{INVISIBLE}\t\r\n") for cell in line)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_is_a_formula_for_any_separator(separator: str, formula: str) -> None:
    """Wherever a text has it: first, behind a separator, on another line, behind a quote."""
    texts = [
        formula,
        f"a;{formula};b",
        f"a;;{formula}",
        f"a\t{formula}",
        f"a | {formula}",
        f";{formula}",
        f'a";"{formula}',
        f'";{formula}',
        f"a,{formula}",
    ]
    if formula not in {f"{sign}1+1" for sign in "+-\uff0b\uff0d\u2212"}:  # these are numbers
        texts += [f"a\n{formula}", f"a;\r\n{formula}"]
    for text in texts:
        rows: list[dict[str, Any]] = [
            {"a": text, "b": "plain", "c": text},
            {"a": 1, "b": text, "c": None},
        ]
        for cell in shown(to_csv(["a", "b", "c"], rows), separator):
            assert not cell.startswith(tuple(SIGNS)), (text, cell)
            assert not cell.startswith("|")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("sign", ["+1+", "-1-", "+ 1 -", "\uff0b1\uff0b"])
def test_no_cell_goes_on_in_the_next_as_a_formula(separator: str, sign: str) -> None:
    """With another separator, quotes around the cells between are a text in a formula."""
    rows: list[dict[str, Any]] = [
        {"id": 1, "a": f"Hello\n{sign}", "b": "web", "c": "&cmd|'/C calc'!A0\nI agree"},
        {"id": 2, "a": f"Hello\r\n{sign} ", "b": None, "c": '&HYPERLINK("x")'},
    ]
    for cell in shown(to_csv(["id", "a", "b", "c"], rows), separator):
        assert not cell.startswith(tuple(SIGNS)), cell


@pytest.mark.parametrize(
    "text",
    [
        "Dear all,\n\n- a shop\r\n- a blog; maybe a list\n-- \nAnn Lee\n+49 30 1234",
        "Two (2) things:\n- logo\n- re-design: 5 %, 3/4, \u20ac 500; e.g. a.b?\n\u2212 10 \u00b0C",
        "We pay 5 - 7 %; or 1+1 = 2, a=b; c-d | e",
        "if (a == b) { x = 1; y = 2; }",
        '"Quoted," she said; "and so on"',
        "| ".join("abc"),
        "https://example.org/?a=1;b=2",
        "mail me: ann@example.org; bo@example.org",
    ],
)
def test_honest_texts_have_no_apostrophe(text: str) -> None:
    """Lists, signatures, phone numbers, sums and code stay as they were typed."""
    assert to_csv(["x"], [{"x": text}]).count("'") == 0


@pytest.mark.parametrize(
    "piece",
    [
        "\t",
        ";",
        "; ",
        "|\n",
        "\n- ",
        "\n-a",
        "\u2028+",
        "\n+.",
        "\n-\u115f.",
        ".\u115f",
        ".\u3000a",
        '"',
        "\u200b",
        "-",
        "a (",
    ],
)
def test_hostile_cells_are_guarded_at_once(piece: str) -> None:
    """No mark needs more than one look along the text."""
    assert len(to_csv(["x"], [{"x": piece * 200_000}])) > 200_000
