"""Asking the parser of administrative query strings, in brief."""

import pytest

from edge_api.admin.rows import ParsedQuery, parse_query
from edge_api.db.problems import Problem
from edge_api.db.tables import EMAIL_SEND_LOG, EMAIL_SEND_STATE, LEADS, SUPPRESSED_EMAILS

TABLES = {
    "leads": LEADS,
    "log": EMAIL_SEND_LOG,
    "state": EMAIL_SEND_STATE,
    "suppressed": SUPPRESSED_EMAILS,
}


def ask(table: str, *pairs: tuple[str, str]) -> ParsedQuery:
    """Return what decoded pairs ask."""
    return parse_query(TABLES[table], pairs)


def sqlstate_of(table: str, *pairs: tuple[str, str]) -> str:
    """Return the code of the problem that pairs give, which names something to fix."""
    with pytest.raises(Problem) as raised:
        ask(table, *pairs)
    assert (raised.value.code, raised.value.status) == ("invalid", 400)
    assert ": " in raised.value.message
    return raised.value.sqlstate
