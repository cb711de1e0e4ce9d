"""PostgreSQL's words, and that its patterns mean what patterns mean, for every letter there is."""

import sys
from collections.abc import AsyncIterator

import asyncpg
import pytest

from edge_api.admin.filters import OPERATORS
from edge_api.db import sql
from edge_api.db.postgres.connection import (
    POSTGRESQL,
    PostgresConnection,
    ilike_operands,
    like_operands,
)
from edge_api.db.query import Filter, Read, Update, fold, ilike
from edge_api.db.tables import LEADS
from tests.edge.postgresql import PostgreSQL

pytestmark = pytest.mark.size("test")

CHARACTERS = "".join(
    letter
    for letter in map(chr, range(1, sys.maxunicode + 1))
    if not "\ud800" <= letter <= "\udfff"  # surrogates are no letters
)
"""Every code point that a text may have."""


OPERANDS = "$1::text[], $2::bool[], $3::text[], $4::text[], $5::text[]"
OPERATION = POSTGRESQL.operations["ilike"].format(column='text COLLATE "C"').replace("?", "{}")
FITS = f"SELECT {OPERATION.format(*'kfop')} AS fits FROM unnest({OPERANDS}) AS q (text, k, f, o, p)"  # noqa: S608
"""Asks of many texts at once whether they fit a pattern each."""
LOCALES = [
    "LOCALE 'C' TEMPLATE template0",
    "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C' TEMPLATE template0",
]


@pytest.fixture(params=LOCALES, ids=["C", "C.UTF-8"])
async def session(
    request: pytest.FixtureRequest, postgresql: PostgreSQL
) -> AsyncIterator[PostgresConnection]:
    """Return a connection to a database that folds letters in its own way: ASCII, or all."""
    url = postgresql.url(postgresql.make_empty(request.param))
    opened = await asyncpg.connect(url)
    try:
        yield opened
    finally:
        opened.terminate()
        postgresql.drop(url)


def test_every_operator_has_its_sql() -> None:
    """The declared operators are those that the dialect has words for."""
    assert set(POSTGRESQL.operations) == {
        *OPERATORS,
        "search",
        "search_newest",
        "has",
        "has_wide",
        "has_key",
    }


def test_parameters_are_numbered_in_their_order() -> None:
    """Values, limit and offset are numbered in the order in which they are handed over."""
    where = (Filter("name", "eq", "a"), Filter("notes", "ilike", "k*", negated=True))
    read = sql.select_statement(Read(LEADS, ("id",), where, limit=3), POSTGRESQL)
    change = sql.update_statement(Update(LEADS, {"status": "won"}, where[:1]), POSTGRESQL)

    assert read.text == (
        'SELECT "id" FROM "leads" WHERE "name" = $1 AND NOT ('
        '(CASE WHEN $2 OR octet_length("notes") = length("notes") THEN "notes"'
        ' ELSE translate("notes", $3, $4) END) ILIKE $5) ORDER BY "id" ASC LIMIT $6 OFFSET $7'
    )
    assert list(read.parameters) == ["a", False, "\N{KELVIN SIGN}", "k", "k%", 3, 0]
    assert change.text.startswith('UPDATE "leads" SET "status" = $1 WHERE "name" = $2 RETURNING')


@pytest.mark.parametrize(
    ("pattern", "operand"),
    [
        ("a*b%c_", "a%b%c_"),
        (r"100\%\*", r"100\%\*"),
        (r"\\*", r"\\%"),
        (r"\\\*", r"\\\*"),
        ("", ""),
    ],
)
def test_a_pattern_has_one_wildcard_for_runs(pattern: str, operand: str) -> None:
    """A star is PostgreSQL's percent sign, unless a backslash makes it plain."""
    assert like_operands(pattern) == (operand,)


@pytest.mark.size("ci")
async def test_folding_is_the_same_for_every_letter(session: PostgresConnection) -> None:
    """The server folds what a pattern names as Python does, block by block through all of Unicode.

    In blocks, since a pattern's letters are sought one by one for each letter of a text.
    """
    blocks = [CHARACTERS[start : start + 512] for start in range(0, len(CHARACTERS), 512)]
    asked = [(block, *ilike_operands(escaped(block))) for block in blocks]
    found = await session.fetch(FITS, *map(list, zip(*asked, strict=True)))

    assert [row["fits"] for row in found] == [True] * len(blocks)


def escaped(text: str) -> str:
    """Return the pattern that only this text fits."""
    return "".join(f"\\{letter}" if letter in "*%_\\" else letter for letter in text)


async def test_each_letter_is_like_all_that_fold_to_it(session: PostgresConnection) -> None:
    """A pattern that names one letter is handed over with the others of its kind alone."""
    families: dict[str, list[str]] = {}
    for letter in CHARACTERS:
        if fold(letter) != letter:
            families.setdefault(fold(letter), [fold(letter)]).append(letter)
    asked = [
        (text, *ilike_operands(pattern))
        for family in families.values()
        for pattern in family
        for text in (*family, "#")
    ]
    found = await session.fetch(FITS, *map(list, zip(*asked, strict=True)))

    assert len(families) > 1000
    assert [row["fits"] for row in found] == [
        ilike(text, pattern) for text, _, _, _, pattern in asked
    ]
