"""The command `stats`: a sentence and lists, JSON, CSV, and wrong values."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from edge_api.__main__ import main
from edge_api.auth.actor import system_clock
from edge_api.open_store import command_store
from edge_api.settings import read_settings
from tests.edge.stats.figures import DAYS, FIGURES, FIRST, VIEWS, fill

pytestmark = pytest.mark.one_engine
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a way to run `stats`, which returns its status and what it prints."""
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/edge.db")
    monkeypatch.setenv("BUILD_DIR", str(tmp_path / "no-build"))
    assert main(["migrate"]) == 0

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["stats", *words])
        return status, *capsys.readouterr()

    return run


async def count(folder: Path) -> None:
    """Store counts that end today."""
    settings = read_settings({"DATABASE_URL": f"sqlite:///{folder}/edge.db"}, dotenv=None)
    async with command_store(settings) as store:
        await fill(store, VIEWS, FIGURES, system_clock().date())


def test_a_sentence_and_lists_are_printed(run: Run, tmp_path: Path) -> None:
    """What nobody opened is in no list."""
    assert run() == (0, "Nobody read you this week.\n", "")
    asyncio.run(count(tmp_path))
    status, said, _ = run("--limit", "2")
    assert status == 0
    assert said.startswith(
        "214 people read you this week, 38 more than last.\n\n"
        "PAGE                  OPENED  BY OTHERS\n"
        "/                     31      0\n"
        f"{FIRST}  30      7\n\n"
        "KIND"
    )
    assert "GPTBot   AI crawlers   40" in said
    since = str(system_clock().date() - timedelta(days=14))
    _, said, _ = run("--since", since, "--path", FIRST)
    assert said.startswith(f"{FIRST} was opened 80 times from {since} to ")


def test_programs_read_json_and_csv(run: Run, tmp_path: Path) -> None:
    """The members of the API, and every count."""
    asyncio.run(count(tmp_path))
    found = json.loads(run("--json")[1])
    assert (found["visitors"], found["pages"][0]["views"]) == (214, 31)
    lines = run("--csv")[1].splitlines()
    assert lines[0] == "day,figure,name,kind,agent,count"
    assert len(lines) == 1 + sum(1 <= ago <= 7 for ago in DAYS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since", "soon"), "since: must be a day such as 2026-11-30\n"),
        (("--limit", "many"), "limit: is not an integer\n"),
        (("--until", "2000-01-01", "--since", "2000-01-02"), "since: must not be after `until`\n"),
    ],
)
def test_a_wrong_value_is_named(run: Run, words: tuple[str, ...], said: str) -> None:
    """With what to write instead."""
    assert run(*words) == (2, "", said)
