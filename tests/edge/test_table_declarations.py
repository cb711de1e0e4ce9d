"""A table says whose personal data it holds and how its rows end, or it is no table."""

from typing import Any

import pytest

from edge_api.db.table import IrreversibleChange, PersonalData, Retention, RowModel, Table
from edge_api.db.tables import LEADS, TABLES, tables_by_name
from edge_api.db.types import Integer, NewId, Now, Text
from edge_api.settings import Settings

COMPLETE: dict[str, Any] = {
    "personal": PersonalData(("email",)),
    "retention": Retention("created_at", "retain_leads_days"),
    "on_restore": "compared",
}


class SubscriberRow(RowModel):
    """A row with an e-mail address."""

    id: NewId
    email: Text
    created_at: Now


class NumberedRow(RowModel):
    """A row whose key is a number."""

    id: Integer
    email: Text
    created_at: Now


def declare(row: type[RowModel] = SubscriberRow, **declared: Any) -> Table:
    """Declare a table of such rows."""
    return Table("subscribers", row, "People who read by mail.", **declared)


def test_a_table_without_a_declaration_is_refused() -> None:
    """Personal data has no default: a new table has to declare it."""
    with pytest.raises(TypeError, match="'personal'"):
        declare()


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"personal": None}, "email is an e-mail address, so its rows are personal data"),
        ({"retention": None}, "how long they are kept"),
        ({"on_restore": None}, "what a restore does with them"),
        ({"personal": PersonalData(("created_at",))}, "email is an e-mail address"),
        ({"personal": PersonalData(("e_mail",))}, "no such column: e_mail"),
        ({"personal": PersonalData(("email",), withheld_columns=frozenset({"token"}))}, "token"),
        (
            {"personal": PersonalData(("email",), cleared_columns=("notes",), kept_reason="kept")},
            "notes",
        ),
        ({"personal": PersonalData(("email",), mailed_column="address")}, "address"),
        ({"retention": Retention("made_at", "retain_leads_days")}, "made_at"),
        ({"retention": Retention(cascade_from=("lead_id", "leads"))}, "lead_id"),
        ({"irreversible_changes": (IrreversibleChange(("left_at",)),)}, "left_at"),
    ],
)
def test_a_declaration_that_leaves_rows_unknown_is_refused(
    declared: dict[str, Any], message: str
) -> None:
    """The error names the table, what is wrong and what to declare."""
    with pytest.raises(ValueError, match=f"^subscribers: .*{message}"):
        declare(**{**COMPLETE, **declared})


@pytest.mark.parametrize("name", ["email", "recipient_email", "e_mail", "mail", "email_address"])
def test_a_column_with_an_address_is_known_by_its_name(name: str) -> None:
    """Not only by the name that the other tables give it."""
    row = type("NamedRow", (RowModel,), {"__annotations__": {"id": NewId, name: Text}})

    with pytest.raises(ValueError, match=f"{name} is an e-mail address"):
        declare(row, personal=None)


def test_a_complete_declaration_is_taken() -> None:
    """And tables are known by their names, in their order."""
    subscribers = declare(**COMPLETE)

    assert list(tables_by_name(LEADS, subscribers)) == ["leads", "subscribers"]


@pytest.mark.parametrize(
    "declared",
    [
        {"personal": PersonalData(("email",), through=("leads",))},
        {"retention": Retention(cascade_from=("email", "leads"))},
    ],
)
def test_a_parent_must_come_first(declared: dict[str, Any]) -> None:
    """Else the rows that lead to it would not have been found when they are needed."""
    child = declare(**{**COMPLETE, **declared})
    tables_by_name(LEADS, child)

    with pytest.raises(ValueError, match=r"^subscribers: leads must be declared before it"):
        tables_by_name(child, LEADS)


def test_a_parent_is_known_by_a_uuid() -> None:
    """A number is found in any text: an erasure would take rows of others."""
    parent = Table("people", NumberedRow, "People.", **COMPLETE)
    child = declare(**{**COMPLETE, "personal": PersonalData(("email",), through=("people",))})

    with pytest.raises(ValueError, match="a UUID as its key"):
        tables_by_name(parent, child)


@pytest.mark.parametrize("given", [{"since": "created_at"}, {"setting": "retain_leads_days"}])
def test_half_a_retention_is_refused(given: dict[str, Any]) -> None:
    """It would delete nothing, and look as if it did."""
    with pytest.raises(ValueError, match="since and setting together"):
        Retention(**given)


def test_every_retention_names_a_setting() -> None:
    """One that does not exist would end the edge at its start."""
    rules = [table.retention for table in TABLES.values() if table.retention]
    named = {rule.setting for rule in rules if rule.setting}

    assert named == {name for name in Settings.__dataclass_fields__ if name.startswith("retain_")}
