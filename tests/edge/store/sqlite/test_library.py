"""Private names of libraries that are used all the same: an upgrade may remove them."""

import aiosqlite
import pytest
from email_validator import syntax

from edge_api.db.mail_addresses import normalize_address
from edge_api.db.types import MAX_EMAIL_LENGTH


@pytest.mark.one_engine
async def test_aiosqlite_runs_a_function_in_its_thread() -> None:
    """`db/sqlite/connection.py` relies on three private attributes of `aiosqlite.Connection`."""
    async with aiosqlite.connect(":memory:") as connection:
        names = ("_execute", "_conn", "_thread")
        missing = [name for name in names if not hasattr(connection, name)]
        assert not missing, (
            f"aiosqlite {aiosqlite.__version__} has no Connection.{', '.join(missing)}: "
            "edge_api/db/sqlite/connection.py needs another way to run a function in its thread"
        )
        assert await connection._execute(lambda: 5) == 5  # type: ignore[no-untyped-call]  # noqa: SLF001
        assert connection._thread.is_alive()  # noqa: SLF001


def test_the_bound_of_an_address_can_be_raised() -> None:
    """`db/mail_addresses.py` sets `syntax.EMAIL_MAX_LENGTH`, which is not documented."""
    assert hasattr(syntax, "EMAIL_MAX_LENGTH"), "email-validator has no syntax.EMAIL_MAX_LENGTH"
    labels = ".".join(["d" * 60] * 3)
    address = f"{'a' * (MAX_EMAIL_LENGTH - len(labels) - 9)}@{labels}.example"

    assert len(address) == MAX_EMAIL_LENGTH
    assert normalize_address(address) == address
