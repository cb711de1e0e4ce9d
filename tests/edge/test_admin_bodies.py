"""The published schemas of administrative bodies against the code that takes the bodies."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from edge_api.admin.operations import OPERATIONS
from edge_api.admin.rows import Rows
from edge_api.auth.actor import OPERATOR
from edge_api.db.problems import Problem
from edge_api.db.table import Column, Table
from edge_api.db.tables import ADMINISTRATIVE, EMAIL_SEND_STATE
from edge_api.db.types import ColumnType
from edge_api.operation.model import AnyOperation
from edge_api.operation.openapi import openapi_document
from tests.edge.engines import ENGINES, open_store, placed
from tests.sizes import in_ci

pytestmark = pytest.mark.each_engine

DOCUMENT = openapi_document(OPERATIONS, "http://journal.test", "1.0.0", {})
WRITES = [operation for operation in OPERATIONS if operation.body is not None]
OPTIONS = jsonschema_rs.FancyRegexOptions()


def validator_of(operation: AnyOperation) -> jsonschema_rs.Validator:
    """Return a validator of the body as it is published."""
    entry = DOCUMENT["paths"][operation.path][operation.method.lower()]
    schema = entry["requestBody"]["content"]["application/json"]["schema"]
    whole = {**schema, "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(whole, pattern_options=OPTIONS)


VALIDATORS = {operation.name: validator_of(operation) for operation in WRITES}


def clock() -> datetime:
    """Return the instant of every write."""
    return datetime(2026, 6, 1, tzinfo=UTC)


class Writer:
    """A real store that takes bodies."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._store = self._runner.run(open_store(url, clock))
        self._rows = Rows(self._store, clock)

    def takes(self, operation: AnyOperation, value: Any) -> bool:
        """Return whether a body is accepted; a conflict is about the rows there are."""
        assert operation.body is not None
        try:
            body = operation.body.check.validate_python(value)
            self._runner.run(self._do(operation, body))
        except ValidationError:
            return False
        except Problem as problem:
            return problem.code == "conflict"
        return True

    async def _do(self, operation: AnyOperation, body: Any) -> None:
        table = ADMINISTRATIVE[operation.path.rpartition("/")[2]]
        match operation.method:
            case "POST":
                await self._rows.insert(table, body, OPERATOR)
            case "PATCH":
                await self._rows.update(table, body.match, body.values, OPERATOR)
            case "DELETE":
                await self._rows.delete(table, body.match, OPERATOR)

    def close(self) -> None:
        """Close the store and the loop."""
        self._runner.run(self._store.close())
        self._runner.close()


@pytest.fixture(scope="module", params=ENGINES)
def writer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Writer]:
    """Return a writer over an empty store."""
    with placed(request.param, request, tmp_path_factory.mktemp("bodies")) as url:
        opened = Writer(url)
        try:
            yield opened
        finally:
            opened.close()


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        1,
        2,
        -1,
        1.5,
        3.0,
        10**18,
        10**18 + 1,
        2**64 - 1,
        2**64,
        -(2**63),
        1e300,
        10**30,
        "",
        "x",
        "a\0b",
        [],
        {},
        ["a\0"],
    ]
)
LIKELY: dict[ColumnType, list[Any]] = {
    ColumnType.TEXT: [
        "a@b",
        "x" * 32,
        "x" * 50,
        "x" * 51,
        "x" * 255,
        "x" * 256,
        "x" * 2001,
        "\u00e9\n",
    ],
    ColumnType.INTEGER: [1, 10, 1000, 1001, 60_000, 60_001, -5],
    ColumnType.UUID: [
        "01989f3a-7c00-7000-8000-3d2b1c0a9f8e",
        "01989F3A-7C00-7000-8000-3D2B1C0A9F8E",
    ],
    ColumnType.TIMESTAMP: [
        "2026-01-31T08:05:09Z",
        "2026-02-30T00:00:00Z",
        "2026-01-31",
        "2026-01-31T8",
    ],
    ColumnType.JSON: [{"a": [1, None, "b"]}, {"a\0": 1}, {"a": {"b": "\0"}}, 1.5, "text", [[[]]]],
}


def values_of(column: Column) -> st.SearchStrategy[Any]:
    """Draw what a column takes, nearly takes or does not take."""
    likely: st.SearchStrategy[Any] = st.sampled_from(column.choices or LIKELY[column.kind])
    return likely | likely | st.lists(likely, max_size=3) | ODD


def objects_of(table: Table) -> st.SearchStrategy[Any]:
    """Draw what is nearly a row: mostly all required members, a few others, seldom odd ones."""
    required = {name: values_of(table.columns[name]) for name in required_of(table)}
    others = {
        name: values_of(column) for name, column in table.columns.items() if name not in required
    }
    named = st.fixed_dictionaries(required, optional=others)
    few = st.dictionaries(st.sampled_from([*table.columns, "nope"]), ODD, max_size=2)
    return named | few | few.flatmap(lambda more: named.map(lambda row: {**row, **more})) | ODD


def required_of(table: Table) -> list[str]:
    """Return the columns that an insert must bring."""
    return [name for name, column in table.columns.items() if column.required]


def bodies_of(operation: AnyOperation) -> st.SearchStrategy[Any]:
    """Draw what is nearly a body of the operation."""
    table = ADMINISTRATIVE[operation.path.rpartition("/")[2]]
    objects = objects_of(table)
    if operation.method == "POST":
        return objects | st.lists(objects, max_size=3)
    members = {"match": some_columns_of(table)}
    if operation.method == "PATCH":
        members["values"] = some_columns_of(table)
    return st.fixed_dictionaries(members, optional={"more": ODD}) | ODD


def some_columns_of(table: Table) -> st.SearchStrategy[Any]:
    """Draw an object that names a few columns, mostly with what they take."""
    chosen = st.lists(st.sampled_from(list(table.columns)), min_size=1, max_size=2, unique=True)
    named = chosen.flatmap(
        lambda names: st.fixed_dictionaries({n: values_of(table.columns[n]) for n in names})
    )
    return named | named | named | st.dictionaries(st.sampled_from(["nope"]), ODD)


@pytest.mark.size("quick", grows=True)
@pytest.mark.parametrize(
    "operation", [*WRITES[:3], *in_ci(*WRITES[3:])], ids=lambda operation: operation.name
)
def test_a_body_is_valid_exactly_when_it_is_taken(writer: Writer, operation: AnyOperation) -> None:
    """The schema and the code say the same of any body, for each write of each table."""
    verdicts: set[bool] = set()

    @settings(max_examples=250, database=None)
    @given(bodies_of(operation))
    def check(value: Any) -> None:
        valid = VALIDATORS[operation.name].is_valid(value)
        assert writer.takes(operation, value) == valid
        verdicts.add(valid)

    check()
    assert verdicts == {True, False}


@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)
def test_examples_are_taken(writer: Writer, operation: AnyOperation) -> None:
    """Each published example of a body is valid and taken."""
    assert operation.body is not None
    for value in operation.body.examples.values():
        assert VALIDATORS[operation.name].is_valid(value)
        assert writer.takes(operation, value)


def test_an_insert_is_bounded_in_its_schema() -> None:
    """A thousand rows are valid, one more is not."""
    validator = VALIDATORS[f"admin_insert_{EMAIL_SEND_STATE.name}"]

    assert validator.is_valid([{}] * 1000)
    assert not validator.is_valid([{}] * 1001)


def test_hidden_columns_are_in_no_schema() -> None:
    """No description of an administrative operation names a hidden column."""
    assert "dedupe_hash" not in str(DOCUMENT)
