"""The published patterns of query parameters against the parsers that they describe."""

import re
from collections.abc import Callable

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_api.admin.filters import OPERATORS, operators_for, parse_filter, parse_selection
from edge_api.admin.rows import filter_pattern, order_pattern, parse_order, selection_pattern
from edge_api.db.problems import Problem
from edge_api.db.table import Table
from edge_api.db.tables import ADMINISTRATIVE, LEADS
from edge_api.db.types import ColumnType
from tests.sizes import scaled

TABLES = st.sampled_from(list(ADMINISTRATIVE.values()))
COLUMNS = [(table, name) for table in ADMINISTRATIVE.values() for name in table.readable]
PIECES = {
    ColumnType.TEXT: ["a", "b c", '"', "\\", "*", "%", "\n", "\u00e9", "\0"],
    ColumnType.JSON: ["{}", "null"],
    ColumnType.INTEGER: ["0", "12", "-7", "+5", "9" * 18, "9" * 19, "1.5", "x", '"3"'],
    ColumnType.UUID: ["01989F3A-7c00-7000-8000-3d2b1c0a9f8e", "01989f3a", '"'],
    ColumnType.TIMESTAMP: [
        "2026-01-31T08:05:09Z",
        "2026-01-31 08:05:09.123456789+05:30",
        "2024-02-29",
        "2023-02-29",
        "1000-01-01T00:00+01",
        "1000-01-01",
        "9999-12-31T00:00-01",
        '"2026-01-31T08:05Z"',
        "2026-01-31T",
    ],
}
GLUE = ["", " ", ",", "(", ")", ".", "null", "NULL", "not_null", "not."]


def accepts(parse: Callable[[], object]) -> bool:
    """Return whether a parser takes the text."""
    try:
        parse()
    except Problem:
        return False
    return True


@st.composite
def filter_texts(draw: st.DrawFn, kind: ColumnType) -> str:
    """Draw what is a filter, or nearly one."""
    pieces = st.sampled_from(PIECES[kind] + GLUE)
    operator = draw(st.sampled_from([*OPERATORS, "like", "in", "xx"]))
    operand = "".join(draw(st.lists(pieces, max_size=6)))
    shape = draw(st.sampled_from(["{}", "({})", "({},{})", '("{}")', '("{}",{})']))
    prefix = draw(st.sampled_from(["", "not.", "not"]))
    return f"{prefix}{operator}.{shape.format(operand, draw(pieces))}"


def fits(pattern: str, text: str) -> bool:
    """Return whether a text fits the pattern, for Python and for a JSON Schema validator alike."""
    python = re.search(pattern.removesuffix("$") + r"\Z", text) is not None
    options = jsonschema_rs.FancyRegexOptions()
    schema = {"type": "string", "pattern": pattern}
    assert jsonschema_rs.is_valid(schema, text, pattern_options=options) == python
    return python


def escapes_in_a_typed_list(kind: ColumnType, text: str) -> bool:
    """Return whether a text is what the description leaves out: backslashes in quoted numbers."""
    return kind != ColumnType.TEXT and "\\" in text


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=1500))
@given(st.data())
def test_the_filter_pattern_is_what_the_parser_takes(data: st.DataObject) -> None:
    """A text fits the pattern of a column exactly when it is a filter of that column."""
    table, name = data.draw(st.sampled_from(COLUMNS))
    kind = table.columns[name].kind
    text = data.draw(filter_texts(kind) | st.text())
    if escapes_in_a_typed_list(kind, text):
        return

    assert fits(filter_pattern(table.columns[name].kind), text) == accepts(
        lambda: parse_filter(table, name, text)
    )


@pytest.mark.parametrize(
    ("table", "name"), COLUMNS, ids=lambda value: getattr(value, "name", value)
)
def test_every_text_of_the_pattern_is_a_filter(table: Table, name: str) -> None:
    """Texts drawn from the pattern alone are all taken, for each column of each table."""
    pattern = filter_pattern(table.columns[name].kind).removesuffix("$") + r"\Z"
    taken: list[str] = []

    @settings(max_examples=60, database=None)
    @given(st.from_regex(pattern, alphabet=st.characters(codec="utf-8")))
    def check(text: str) -> None:
        taken.append(parse_filter(table, name, text).operator)

    check()
    assert set(taken) <= set(operators_for(table.columns[name].kind))
    assert len(set(taken)) > 1 or len(operators_for(table.columns[name].kind)) == 1


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ('in.("x,",a)b")', False),
        ('in.("x",a)b")', False),
        ('in.("x,")', True),
        ('in.("x)")', True),
        ('in.("x"y,z)', True),
        ('in.("x)', True),
    ],
)
def test_pattern_and_parser_agree_on_quotes(text: str, *, taken: bool) -> None:
    """Pattern and parser agree on where a quoted element ends, also when nothing fits then."""
    assert fits(filter_pattern(ColumnType.TEXT), text) == taken
    assert accepts(lambda: parse_filter(LEADS, "name", text)) == taken


ELEMENTS = [*LEADS.columns, *GLUE, "*", "a:", ":", "::text", "::int", ".asc", ".desc", "desc"]


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=800))
@given(TABLES, st.lists(st.sampled_from(ELEMENTS), max_size=7).map("".join) | st.text())
def test_the_select_pattern_is_what_the_parser_takes(table: Table, text: str) -> None:
    """A text fits the pattern of `select` exactly when it is taken."""
    assert fits(selection_pattern(table), text) == accepts(lambda: parse_selection(table, text))


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=800))
@given(
    TABLES,
    st.lists(st.sampled_from([*ELEMENTS, ".nullsfirst", ".nullslast"]), max_size=7).map("".join)
    | st.text(),
)
def test_the_order_pattern_is_what_the_parser_takes(table: Table, text: str) -> None:
    """A text fits the pattern of `order` exactly when it is taken."""
    assert fits(order_pattern(table), text) == accepts(lambda: parse_order(table, text))
