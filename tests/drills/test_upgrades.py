"""A version is upgraded under load, again and again; nothing is lost, and readers hardly wait."""

import asyncio
import compileall
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout

from edge_api.auth.actor import system_clock
from edge_api.db.query import Filter, Read
from edge_api.db.sqlite.engine import open_store
from edge_api.db.tables import LEADS
from tests.drills.machines import quiet_port
from tests.edge.edge_process import ROOT, Installation
from tests.edge.ledger import Difference, compare
from tests.edge.load import LEAD, LIMITS, Writers
from tests.edge.load import LEADS as LEADS_PATH
from tests.patience import patience

FORMER = "8698c9d3"
"""The release before: a commit of this repository's history."""
UPGRADES = 20
"""Half of them from the release before, half from this one to one with a further step."""
BETWEEN = 20
"""Leads that are acknowledged before and after each upgrade, at the least."""
LIMIT_SECONDS = 2.0
"""The longest time for which readers may be refused."""
GOOD_STEP = "-- A table more.\n\nCREATE TABLE added (id TEXT PRIMARY KEY) STRICT;\n"
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


def start(at: Installation, code: Path, listening: socket.socket | None) -> "subprocess.Popen[str]":
    """Serve with the code in a folder, on its own socket or on one that stays."""
    command = f"exec {sys.executable} -m edge_api serve"
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


async def run_one(folder: Path, former: Path, new: Path, bad: Path | None, *, held: bool) -> float:
    """Upgrade one installation under load; return how long readers waited at most.

    With `held` the socket stays open meanwhile, as systemd's does. `bad` is tried first.
    """
    port = quiet_port()
    limits = {**dict.fromkeys(LIMITS, "0"), "PORT": str(port), "BUILD_DIR": f"{folder}/build"}
    at = Installation(folder, {**limits, "DATABASE_URL": f"sqlite:///{folder}/var/edge.db"})
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
        assert compare(writers.outcome, stored_leads(at.store)) == Difference()
        if held:
            assert writers.outcome.refused == 0
        return reader.longest
    finally:
        running.terminate()
        running.wait(patience())
        if listening:
            listening.close()


async def found_by_index(store: Path, *words: str) -> list[str]:
    """Return the names of the leads that the index of a store finds, word by word."""
    opened = await open_store(store, system_clock, create=False)
    try:
        reads = [Read(LEADS, where=(Filter("id", "search", (word,)),)) for word in words]
        return [row["name"] for result in await opened.run(*reads) for row in result.rows]
    finally:
        await opened.close()


@pytest.mark.size("ci")
async def test_the_release_before_takes_leads_beside_an_upgraded_store(
    former: Path, tmp_path: Path
) -> None:
    """Until it is restarted; they are found afterwards, with accents and without."""
    port = quiet_port()
    limits = {**dict.fromkeys(LIMITS, "0"), "PORT": str(port), "BUILD_DIR": f"{tmp_path}/build"}
    at = Installation(tmp_path, {**limits, "DATABASE_URL": f"sqlite:///{tmp_path}/var/edge.db"})
    url = f"http://127.0.0.1:{port}{LEADS_PATH}"
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
    assert await found_by_index(at.store, "zoe", "jurgen", "lukasz") == [
        "Zo\u00eb",
        "J\u00fcrgen",
        "\u0141ukasz",
    ]


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """Return a folder with the edge of the release before."""
    archive, folder = tmp_path / "former.tar", tmp_path / "former"
    command = ["git", "archive", "--output", os.fspath(archive), FORMER, "edge_api"]
    subprocess.run(command, cwd=ROOT, check=True)
    shutil.unpack_archive(archive, folder)
    return folder


@pytest.mark.size("judge")
async def test_upgrades_under_load_lose_nothing(
    former: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the release before and from this one; one of each with a step that fails."""
    this = copy_code(tmp_path / "this")
    new, bad = copy_code(tmp_path / "new", GOOD_STEP), copy_code(tmp_path / "bad", BAD_STEP)
    waits = []
    for number in range(UPGRADES):
        folder = tmp_path / str(number)
        folder.mkdir()
        first = number < 2
        is_held = bool(number % 2)
        old, to = (this, new) if is_held else (former, this)
        waits.append(await run_one(folder, old, to, bad if first else None, held=is_held))
    with capsys.disabled():
        print(  # noqa: T201  what a person wants of a drill
            f"\n{UPGRADES} upgrades: readers waited {max(waits[::2]):.2f} s at most from the "
            f"release before, {max(waits[1::2]):.2f} s from this one"
        )
    assert max(waits) <= LIMIT_SECONDS
