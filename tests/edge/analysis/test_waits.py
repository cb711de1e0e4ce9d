"""Benchmarks of requests beside documents that are analysed; no time is judged."""

from typing import Any

import pytest

from benchmarks.ground import PING
from benchmarks.parts.analyses import AT_ONCE, QUIET, Waits, describe, watch

pytestmark = pytest.mark.one_engine

DOCUMENTS = {"html of '`|<a '": {"html": "<a " * 20_000}, "words": {"text": "one two " * 9_000}}


async def test_others_are_timed_alone_and_beside_each_document(make_edge: Any) -> None:
    """Every document is sent on each connection, and others ask for every path meanwhile."""
    async with make_edge() as edge:
        waits = await watch(edge.url, (PING, "/"), DOCUMENTS, quiet_seconds=0.1)

    assert waits.statuses.total() == len(waits.analyses) == AT_ONCE * len(DOCUMENTS)
    assert {name for _, name in waits.others} == {QUIET, *DOCUMENTS}
    section = describe(waits)
    longest = max(time for time, name in waits.others if name != QUIET)
    assert section.reached["analyses"].value == longest


async def test_others_that_are_not_answered_end_the_run(make_edge: Any) -> None:
    """A wait for a refusal would mean nothing."""
    async with make_edge() as edge:
        with pytest.raises(SystemExit, match="answered 404 beside nothing"):
            await watch(edge.url, ("/nowhere",), DOCUMENTS, quiet_seconds=0.1)


def test_waits_without_documents_are_a_row_of_their_own() -> None:
    """Delays of the machine are not blamed on documents; a name's marks stay in its cell."""
    waits = Waits(others=[(900.0, QUIET), (1.0, QUIET), (2.0, "a`|b"), (7.0, "a`|b")])
    waits.analyses.append((300.0, "a`|b"))
    waits.statuses[200] += 1

    section = describe(waits)

    assert section.reached["analyses"].value == 7.0
    quiet, beside = section.grids[0].rows
    assert quiet[-2:] == ("900.0", "")
    assert beside[-2:] == ("7.0", r"```` a`\|b ````")
