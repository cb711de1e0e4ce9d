"""A version is upgraded under load, again and again; no lead is lost, and no notice given up."""

import asyncio
import compileall
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout

from edge_api.auth.actor import system_clock
from edge_api.db.query import Filter, Read
from edge_api.db.tables import LEADS, TABLES
from edge_api.open_store import open_store
from tests.drills.machines import quiet_port
from tests.edge.edge_process import ROOT, Installation, until
from tests.edge.ledger import Difference, compare
from tests.edge.load import LEAD, LIMITS, Writers
from tests.edge.load import LEADS as LEADS_PATH
from tests.patience import patience

FORMER = "f77b9c2a"
"""The release before, 1.0.1: a commit of this repository's history."""
UPGRADES = 20
"""All from the release before."""
FURTHER = 4
"""Upgrades from this version to one with a further step."""
BETWEEN = 20
"""Leads that are acknowledged before and after each upgrade, at the least."""
DONE = "the store is at the schema of this version: restart the edge and the watcher"
GOOD_STEP = "-- A table more.\n\nCREATE TABLE added (id TEXT PRIMARY KEY) STRICT;\n"
FILL = """
import asyncio, json, sys
from edge_api.auth.actor import system_clock
from edge_api.auth.tokens import SigningKeys
from edge_api.db.query import Insert, Read
from edge_api.db.tables import TABLES
from edge_api.open_store import open_store
from tests.edge.store.row_cases import minimal_values
from tests.edge.store.samples import make_row

async def fill():
    store = await open_store(sys.argv[1], system_clock)
    await SigningKeys(store, system_clock, sys.argv[2].encode()).rotate()  # and a row of audit_log
    for name, table in TABLES.items():
        (found,) = await store.run(Read(table))
        if not found.rows:
            await store.run(Insert(table, [make_row(table, minimal_values(name))]))
    results = await store.run(*(Read(table) for table in TABLES.values()))
    await store.close()
    print(json.dumps({name: each.rows for name, each in zip(TABLES, results)}, default=str))

asyncio.run(fill())
"""
"""Makes a store with a row in each table, by the code of any version, and prints all rows."""
BAD_STEP = "-- A step that fails.\n\nALTER TABLE missing ADD COLUMN more TEXT;\n"


@dataclass
class Reader:
    """Reads one page after the other, and knows the longest time without an answer."""

    url: str
    longest: float = 0.0

    async def read(self) -> None:
        """Read until cancelled."""
        answered = time.monotonic()
        async with ClientSession(timeout=ClientTimeout(total=patience())) as session:
            while True:
                try:
                    async with session.get(self.url, headers={"Connection": "close"}) as answer:
                        await answer.read()
                except ClientError:
                    await asyncio.sleep(0.01)
                    continue
                self.longest = max(self.longest, time.monotonic() - answered)
                answered = time.monotonic()


def copy_code(folder: Path, step: str = "") -> Path:
    """Return a folder with this version's edge, and with a further step of the schema.

    Its modules are compiled, as pip does at each installation: compiling them at the start takes
    half a second.
    """
    shutil.copytree(ROOT / "edge_api", folder / "edge_api")
    steps = folder / "edge_api" / "db" / "migrations"
    for engine in ("sqlite", "postgresql") if step else ():
        numbers = {int(each.name.split(".")[0][5:]) for each in steps.glob(f"step_*.{engine}.sql")}
        (steps / f"step_{max(numbers) + 1}.{engine}.sql").write_text(step)
    compileall.compile_dir(folder / "edge_api", quiet=1)
    return folder


def start(
    at: Installation, code: Path, listening: socket.socket | None, *words: str
) -> "subprocess.Popen[str]":
    """Serve with the code in a folder, on its own socket or on one that stays.

    With `words` another command is started than `serve`.
    """
    command = f"exec {sys.executable} -m edge_api {' '.join(words) or 'serve'}"
    if listening:
        passed = f"exec 3<&{listening.fileno()}; export LISTEN_FDS=1 LISTEN_PID=$$; "
        command = passed + command
    with (at.folder / "log").open("a") as log:
        return subprocess.Popen(
            ["/bin/bash", "-c", command],
            cwd=at.folder,
            env={**at.environment, "PYTHONPATH": os.fspath(code)},
            pass_fds=(listening.fileno(),) if listening else (),
            stdout=log,
            stderr=log,
            text=True,
        )


def end(running: "subprocess.Popen[str]") -> None:
    """End an edge, unless it has ended."""
    running.terminate()
    running.wait(patience())


def upgrade(at: Installation, code: Path) -> tuple[int, str]:
    """Run `upgrade` of the code in a folder; return its status and what it says."""
    ended = subprocess.run(
        [sys.executable, "-m", "edge_api", "upgrade"],
        cwd=at.folder,
        env={**at.environment, "PYTHONPATH": os.fspath(code)},
        check=False,
        capture_output=True,
        text=True,
        timeout=patience(),
    )
    return ended.returncode, ended.stdout + ended.stderr


def stored_leads(store: Path) -> dict[str, list[str]]:
    """Return the ids of all leads by their message, which is the idempotency key."""
    found: dict[str, list[str]] = defaultdict(list)
    with closing(sqlite3.connect(store)) as connection:
        for message, row in connection.execute("SELECT message, id FROM leads"):
            found[message].append(row)
    return found


def installed(folder: Path, port: int, url: str = "") -> Installation:
    """Return an installation whose owner has mail in a folder."""
    settings = {
        **dict.fromkeys(LIMITS, "0"),
        "PORT": str(port),
        "BUILD_DIR": f"{folder}/build",
        "SMTP_URL": f"maildir:{folder}/mail",
        "OWNER_EMAIL": "owner@keepers.net",
        "SECRET_KEY": "s" * 40,
        "DATABASE_URL": url or f"sqlite:///{folder}/var/edge.db",
    }
    return Installation(folder, settings)


def run_of(at: Installation, code: Path, *words: str) -> str:
    """Run Python with the edge in a folder; return what it prints."""
    environment = {**at.environment, "PYTHONPATH": os.fspath(code)}
    command = [sys.executable, *words]
    ended = subprocess.run(
        command, cwd=at.folder, env=environment, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def query(at: Installation, text: str) -> list[str]:
    """Return the only column of a query of the store's file."""
    with closing(sqlite3.connect(at.store)) as connection, connection:
        return [value for (value,) in connection.execute(text)]


async def send_notices(at: Installation, code: Path) -> tuple[int, set[str]]:
    """Send what waits; return the number of notices in the log, and what became of them.

    After 20 notices a summary of the others waits for ten minutes, which nobody waits for here: the
    log has one of these as sent, and the others as suppressed.
    """
    query(at, "UPDATE email_outbox SET due_at = created_at")
    query(at, "UPDATE email_send_state SET batch_size = 1000, send_delay_ms = 0")
    sending = start(at, code, None, "mail", "run")
    try:
        await until(lambda: not query(at, "SELECT id FROM email_outbox WHERE dead_at IS NULL"))
    finally:
        end(sending)
    assert query(at, "SELECT id FROM email_outbox") == []
    found = Counter(query(at, "SELECT status FROM email_send_log"))
    assert found.pop("pending") == found.total()
    return found.total(), {*found}


async def run_one(
    folder: Path, former: Path, new: Path, bad: Path | None, *, held: bool
) -> tuple[float, int]:
    """Upgrade one installation under load; return how long readers waited at most, and the leads.

    With `held` the socket stays open meanwhile, as systemd's does. `bad` is tried first.
    """
    at = installed(folder, port := quiet_port())
    listening = socket.create_server(("127.0.0.1", port), backlog=1024) if held else None
    origin = f"http://127.0.0.1:{port}"
    running = start(at, former, listening)
    try:
        async with Writers([origin]) as writers:
            await writers.acknowledge_more(BETWEEN)
            reader = Reader(f"{origin}/api/public/ping")
            reading = asyncio.create_task(reader.read())
            if bad:
                status, said = await asyncio.to_thread(upgrade, at, bad)
                assert status == 1, said
                assert "the store stays as it is" in said
                await writers.acknowledge_more(BETWEEN)
            status, said = await asyncio.to_thread(upgrade, at, new)
            assert status == 0, said
            running.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(running.wait, patience()) == 0
            running = start(at, new, listening)
            await writers.acknowledge_more(BETWEEN)
            reading.cancel()
        stored = stored_leads(at.store)
        assert compare(writers.outcome, stored) == Difference()
        if held:
            assert writers.outcome.refused == 0
        await asyncio.to_thread(end, running)
        assert await send_notices(at, new) == (len(stored), {"sent", "suppressed"})
        return reader.longest, len(stored)
    finally:
        end(running)
        if listening:
            listening.close()


async def found_by_index(at: Installation, *words: str) -> list[str]:
    """Return the names of the leads that the index of a store finds, word by word."""
    opened = await open_store(at.settings["DATABASE_URL"], system_clock, create=False)
    try:
        reads = [Read(LEADS, where=(Filter("id", "search", (word,)),)) for word in words]
        return [row["name"] for result in await opened.run(*reads) for row in result.rows]
    finally:
        await opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Installation:
    """Return an installation without a store, on each engine."""
    (tmp_path / "var").mkdir()
    if request.param == "sqlite":
        return installed(tmp_path, quiet_port())
    server = request.getfixturevalue("postgresql")
    return installed(tmp_path, quiet_port(), server.url(server.make_empty()))


@pytest.mark.size("ci")
async def test_the_release_before_takes_leads_beside_an_upgraded_store(
    former: Path, at: Installation
) -> None:
    """Until it is restarted; they are found afterwards, with accents and without."""
    url = f"http://127.0.0.1:{at.settings['PORT']}{LEADS_PATH}"
    running = start(at, former, None)
    try:
        async with Writers([url.removesuffix(LEADS_PATH)], number=1) as writers:
            await writers.acknowledge_more(1)
        async with ClientSession() as session:

            async def send(name: str) -> int:
                async with session.post(url, json={**LEAD, "name": name, "message": name}) as sent:
                    return sent.status

            assert await send("Zo\u00eb") == 201
            status, said = await asyncio.to_thread(upgrade, at, ROOT)
            assert status == 0, said
            assert await send("J\u00fcrgen") == 201
            assert await send("\u0141ukasz") == 201
    finally:
        running.terminate()
        running.wait(patience())
    assert await found_by_index(at, "zoe", "jurgen", "lukasz") == [
        "Zo\u00eb",
        "J\u00fcrgen",
        "\u0141ukasz",
    ]


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """Return a folder with the edge of the release before."""
    archive, folder = tmp_path / "former.tar", tmp_path / "former"
    parts = ("edge_api", "tests/edge/store/row_cases.py", "tests/edge/store/samples.py")
    command = ["git", "archive", "--output", os.fspath(archive), FORMER, *parts]
    subprocess.run(command, cwd=ROOT, check=True)
    shutil.unpack_archive(archive, folder)
    compileall.compile_dir(folder / "edge_api", quiet=1)
    return folder


async def read_rows(at: Installation) -> dict[str, list[dict[str, object]]]:
    """Return all rows of a store at the schema of this version, as JSON has them."""
    store = await open_store(at.settings["DATABASE_URL"], system_clock, create=False)
    try:
        results = await store.run(*(Read(table) for table in TABLES.values()))
    finally:
        await store.close()
    rows = {name: each.rows for name, each in zip(TABLES, results, strict=True)}
    return dict(json.loads(json.dumps(rows, default=str)))


@pytest.mark.size("ci")
async def test_rows_of_the_release_before_are_upgraded_and_come_back(
    former: Path, at: Installation
) -> None:
    """One in each table; a store in a file goes back to that release by its own `restore`."""
    where = (at.settings["DATABASE_URL"], at.settings["SECRET_KEY"])
    before = json.loads(run_of(at, former, "-c", FILL, *where))
    assert [name for name, rows in before.items() if len(rows) != 1] == []

    status, said = await asyncio.to_thread(upgrade, at, ROOT)
    assert (status, said.splitlines()[-1]) == (0, DONE), said
    after = await read_rows(at)
    for name, (row,) in before.items():
        (found,) = after[name]
        assert {column: found[column] for column in row} == row, name
        added = TABLES[name].columns.keys() - row.keys()
        assert {column: found[column] for column in added} == {
            column: TABLES[name].columns[column].default for column in added
        }
    assert [name for name, rows in after.items() if rows and name not in before] == []
    if at.settings["DATABASE_URL"].startswith("sqlite"):
        backup = said.partition(": ")[0]
        run_of(at, former, "-m", "edge_api", "restore", backup, "--force")
        listed = run_of(at, former, "-m", "edge_api", "leads", "list")
        assert before["leads"][0]["email"] in listed
        status, said = await asyncio.to_thread(upgrade, at, ROOT)
        assert (status, await read_rows(at)) == (0, after), said


@pytest.mark.size("judge")
async def test_upgrades_under_load_lose_nothing(
    former: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the release before and from this one; of each the first has a step that fails before."""
    this = copy_code(tmp_path / "this")
    new, bad = copy_code(tmp_path / "new", GOOD_STEP), copy_code(tmp_path / "bad", BAD_STEP)
    waits, leads = [], 0
    for number in range(UPGRADES + FURTHER):
        folder = tmp_path / str(number)
        folder.mkdir()
        old, to = (former, this) if number < UPGRADES else (this, new)
        fails = bad if number in (0, UPGRADES) else None
        wait, stored = await run_one(folder, old, to, fails, held=bool(number % 2))
        waits.append(wait)
        leads += stored
    with capsys.disabled():
        print(  # noqa: T201  what a person wants of a drill
            f"\n{UPGRADES} upgrades from the release before and {FURTHER} from this one: "
            f"of {leads:,} leads 0 lost, of their notices 0 given up; "
            f"readers waited {median(waits):.2f} s, and {max(waits):.2f} s at most"
        )
