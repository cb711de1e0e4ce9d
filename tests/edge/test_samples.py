"""Examples in the documents: any table has them, whatever its columns are."""

from typing import Annotated

import pytest
from pydantic import Field

from edge_api.admin.schemas import match_sample, new_row_sample, stored_row_sample, values_sample
from edge_api.db.table import RowModel, Table
from edge_api.db.tables import ADMINISTRATIVE
from edge_api.db.types import Integer, NewId, Now, Text, Uuid


class PlainRow(RowModel):
    """A row without nullable and without enumerated columns."""

    id: NewId
    code: Text
    created_at: Now


class BoundedRow(RowModel):
    """A row whose columns have bounds that no fixed example meets."""

    id: NewId
    digest: Annotated[Text, Field(min_length=64, max_length=64)]
    code: Annotated[Text, Field(max_length=2)]
    level: Annotated[Integer, Field(ge=3, le=7)]
    debt: Annotated[Integer, Field(ge=-9, le=-5)]


class KeyRow(RowModel):
    """A row that is a key and nothing else."""

    id: Uuid


@pytest.mark.parametrize("row", [PlainRow, BoundedRow])
def test_a_table_without_nullable_and_enumerated_columns_has_examples(row: type[RowModel]) -> None:
    """Each example is what the table takes."""
    table = Table("examples", row, "Examples.", personal=None)
    values = values_sample(table)

    assert values
    assert table.key not in values
    assert table.new_values(values, "2026-01-31T08:05:09.000000Z")
    assert stored_row_sample(table).keys() == table.columns.keys()
    assert new_row_sample(table).items() <= stored_row_sample(table).items()
    assert match_sample(table).keys() == {"id"}


def test_a_row_that_is_a_key_alone_has_no_new_values() -> None:
    """There is nothing to change in it."""
    assert values_sample(Table("examples", KeyRow, "Examples.", personal=None)) == {}


def test_examples_prefer_what_every_row_can_be_given() -> None:
    """An enumerated column, or else a nullable one: a unique value is given to one row alone."""
    assert {name: list(values_sample(table)) for name, table in ADMINISTRATIVE.items()} == {
        "leads": ["status"],
        "email_send_log": ["status"],
        "email_send_state": ["retry_after_until"],
        "email_unsubscribe_tokens": ["used_at"],
        "suppressed_emails": ["reason"],
    }
