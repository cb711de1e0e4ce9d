"""Plans carried out on a connection. It begins and ends nothing."""

from collections.abc import Sequence

import asyncpg

from edge_api.schema.table import Row, Table
from edge_api.store import sql
from edge_api.store.decoding import decode
from edge_api.store.faults import changed_meanwhile, too_many
from edge_api.store.plan import Delete, Insert, Outcome, Plan, Read, Update
from edge_api.store.postgres.connection import Connection
from edge_api.store.postgres.dialect import POSTGRESQL
from edge_api.store.postgres.faults import violation


async def carry_out(connection: Connection, plans: Sequence[Plan]) -> list[Outcome]:
    """Carry out plans in their order and return an outcome for each.

    Raises Problem `invalid` or `conflict`, and `faults.EngineError` where the engine cannot.
    """
    outcomes: list[Outcome] = []
    for plan in plans:
        outcomes.append(await _carry_out_one(connection, plan, outcomes))
    return outcomes


async def _carry_out_one(connection: Connection, plan: Plan, earlier: Sequence[Outcome]) -> Outcome:
    match plan:
        case Read():
            return await _read(connection, plan)
        case Insert():
            return await _insert(connection, plan, [len(outcome.rows) for outcome in earlier])
        case Update():
            return await _update(connection, plan)
        case Delete():
            await _refuse_more_than_allowed(connection, plan)
            statement = sql.delete_rows(plan, POSTGRESQL)
            return Outcome(await _changed(connection, plan.table, statement))


async def _read(connection: Connection, plan: Read) -> Outcome:
    names = plan.columns or tuple(plan.table.columns)
    rows = await _fetch(connection, plan.table, names, sql.read_rows(plan, POSTGRESQL))
    if not plan.counted:
        return Outcome(rows)
    return Outcome(rows, await _number(connection, sql.count_rows(plan, POSTGRESQL)))


async def _insert(connection: Connection, plan: Insert, affected: Sequence[int]) -> Outcome:
    """Store the rows in one trip to the server, however many."""
    names = tuple(plan.table.columns)
    text = sql.insert_row(plan.table, POSTGRESQL)
    records = sql.insert_parameters(plan, affected)
    try:
        if len(records) == 1:
            await connection.fetch(text, *records[0])
        elif records:
            await connection.executemany(text, records)
    except asyncpg.IntegrityConstraintViolationError as error:
        rows = [dict(zip(names, record, strict=True)) for record in records]
        raise violation(error, plan.table, rows) from None
    return Outcome(decode(plan.table, names, records))


async def _update(connection: Connection, plan: Update) -> Outcome:
    await _refuse_more_than_allowed(connection, plan)
    try:
        rows = await _changed(connection, plan.table, sql.update_rows(plan, POSTGRESQL))
    except asyncpg.IntegrityConstraintViolationError as error:
        raise violation(error, plan.table, [dict(plan.values)]) from None
    if len(rows) < plan.at_least:
        raise changed_meanwhile()
    return Outcome(rows)


async def _refuse_more_than_allowed(connection: Connection, plan: Update | Delete) -> None:
    """Count before anything is changed: undoing a million changes costs as much as making them."""
    most = plan.at_most
    if most is None:
        return
    if await _number(connection, sql.count_matches(plan, most, POSTGRESQL)) > most:
        raise too_many(most)


async def _changed(connection: Connection, table: Table, statement: sql.Statement) -> list[Row]:
    """Return the rows that a change gives back, by key: PostgreSQL leaves their order open."""
    rows = await _fetch(connection, table, tuple(table.columns), statement)
    return sorted(rows, key=lambda row: row[table.key])


async def _number(connection: Connection, statement: sql.Statement) -> int:
    return int(await connection.fetchval(statement.text, *statement.parameters))


async def _fetch(
    connection: Connection, table: Table, names: Sequence[str], statement: sql.Statement
) -> list[Row]:
    records = await connection.fetch(statement.text, *statement.parameters)
    return decode(table, names, records)
