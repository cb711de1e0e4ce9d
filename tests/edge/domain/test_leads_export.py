"""`leads export`: all leads as CSV, at a terminal."""

import asyncio
import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from edge_api.__main__ import main
from edge_api.db.query import Insert
from edge_api.db.tables import LEADS
from edge_api.open_store import command_store
from edge_api.settings import read_settings
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.one_engine
COUNT = 1001


@pytest.fixture(autouse=True)
def _filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Make a store with the leads, which the commands find."""
    environment = {"DATABASE_URL": f"sqlite:///{tmp_path}/edge.db"}
    monkeypatch.setenv("DATABASE_URL", environment["DATABASE_URL"])
    assert main(["migrate"]) == 0
    asyncio.run(fill(environment))
    capsys.readouterr()


async def fill(environment: Mapping[str, str]) -> None:
    """Store many leads of one instant, a spam lead, and one that a spreadsheet could run."""
    rows = [{"name": f"n{number:04}"} for number in range(COUNT - 2)]
    rows += [{"name": "spammer", "status": "spam"}, {"name": "=1+1", "message": "Zo\u00eb\nasks"}]
    common = {"email": "a@b.co", "budget_tier": "b", "message": "m", "created_at": "2026-01-01"}
    async with command_store(read_settings(environment)) as store:
        await store.run(Insert(LEADS, [make_row(LEADS, {**common, **row}) for row in rows]))


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ((), COUNT),
        (("--status", "spam"), 1),
        (("--status", "spam", "--status", "new"), COUNT),
        (("--search", "zoe ASKS"), 1),
        (("--search", "n09"), 99),
        (("--status", "won"), 0),
    ],
)
def test_all_leads_are_exported(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], count: int
) -> None:
    """Each once, newest first, under a line of names; with options, those that they choose."""
    assert main(["leads", "export", *words]) == 0

    sheet = csv.DictReader(io.StringIO(capsys.readouterr().out, newline=""))
    rows = list(sheet)
    assert sheet.fieldnames == list(LEADS.readable)
    keys = [row["id"] for row in rows]
    assert (len(keys), keys) == (count, sorted(set(keys), reverse=True))
    if count == COUNT:
        assert "'=1+1" in {row["name"] for row in rows}


def test_leads_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """One or several, with status and notes, as the page for operators says."""
    assert main(["leads", "export", "--search", "n000"]) == 0
    ids = [row["id"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out, newline=""))]

    assert main(["leads", "mark", ids[0], "--status", "contacted", "--notes", "Called."]) == 0
    assert capsys.readouterr().out == "1 lead changed\n"
    assert main(["leads", "mark", *ids[:3], "--status", "won"]) == 0
    assert capsys.readouterr().out == "3 leads changed\n"


@pytest.mark.parametrize("missing", ["123", "01978f3a-0000-7000-8000-000000000000"])
def test_an_id_of_no_lead_is_named(capsys: pytest.CaptureFixture[str], missing: str) -> None:
    """With the command that lists the ids; the other leads are marked."""
    assert main(["leads", "export", "--search", "n0001"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out, newline=""))
    said = f"There is no lead {missing}: `leads list` shows their ids"
    for words in (["show", missing], ["mark", missing, row["id"], "--status", "won"]):
        assert main(["leads", *words]) != 0
        assert said in capsys.readouterr().err
    assert main(["leads", "show", row["id"].upper()]) == 0
    assert "status: won" in capsys.readouterr().out
    assert main(["leads", "mark", missing, "--status", "lost"]) != 0
    assert said in capsys.readouterr().err
    assert main(["audit", "--undo", missing]) != 0
    assert "or the id is none that `audit --ids` shows" in capsys.readouterr().err
