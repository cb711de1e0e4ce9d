"""Commands and leads beside Litestream, which is stopped and continued at random.

Every restore of the replica has to be whole, and the last has every acknowledged lead.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from edge_api.backup.replica import fetch_replica
from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.copying import verify_copy
from edge_api.db.sqlite.processes import replicator_lock_path
from edge_api.settings import read_settings
from tests.drills.loss import Writers, await_replica, ids, installation_in, post
from tests.edge.edge_process import Installation, ServedEdge
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

COMMANDS = scaled(test=8, ci=24, judge=300)
RESTORES = scaled(test=1, ci=3, judge=30)
SEED = 20
STOPPED_LEADS = 20
IDLE = 1.5
"""Seconds in which Litestream looks at the log once more by itself, which it does every second.

Only after that does it take a log that somebody cut for one that it cut itself.
"""
ROUNDS = 5
"""Times at the most that a planted fault may have its effect: the machine may be too busy."""
PAUSE = 0.05
"""Seconds between two leads of a client: the log grows as fast as on a busy day, not faster."""


@dataclass
class Found:
    """The findings of a drill."""

    acknowledged: set[str] = field(default_factory=set)
    whole: int = 0
    """Restores that are whole."""
    damaged: list[str] = field(default_factory=list)
    """The refusal of each restore that is not."""
    lost: set[str] = field(default_factory=set)
    """Leads that a restore lacks, though they were acknowledged before the replica caught up."""
    refused: int = 0
    """Commands that found the store locked, since Litestream was stopped as it held the lock."""


class Locked(Exception):  # noqa: N818  the drill's doing, no fault
    """A command was refused because the store is locked."""


class Commands:
    """A process that runs commands, and the keys that it has issued."""

    def __init__(self, process: "subprocess.Popen[str]", random: Random) -> None:
        self._process = process
        self._random = random
        self._keys: list[str] = []

    def run_any(self) -> None:
        """Run a command at random; keys are issued, listed and revoked most of all."""
        names = ("issue", "issue", "list", "revoke", "export", "audit", "requests")
        name = self._random.choice(names)
        if name == "issue" or not self._keys:
            issued = self.run("keys", "issue", "--name", "drill", "--json")
            self._keys.append(str(json.loads(issued)["id"]))
        elif name == "revoke":
            self.run("keys", "revoke", self._keys.pop())
        elif name == "list":
            self.run("keys", "list")
        elif name == "export":
            self.run("privacy", "export", "ann@example.org")
        elif name == "audit":
            self.run("audit")
        else:
            self.run("requests", "list")

    def run(self, *words: str) -> str:
        """Run one command, which has to succeed; return what it says."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(words)}\n")
        self._process.stdin.flush()
        code, said = json.loads(self._process.stdout.readline())
        if code and "is locked by another process" in said:
            raise Locked(said)
        assert code == 0, said
        return str(said)


@contextmanager
def commands_in(installation: Installation, *fault: str) -> Iterator[Commands]:
    """Have commands run in a process of their own meanwhile."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.drills.commands", *fault],
        cwd=installation.folder,
        env=installation.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Commands(process, Random(SEED))  # noqa: S311  a drill that can be repeated
        finally:
            process.kill()


def drill(folder: Path, commands: int, restores: int, *fault: str) -> Found:
    """Serve, write, run commands and restore; at the end, end the edge and restore once more.

    The first restore that is damaged before the commands ends the drill.
    """
    installation = installation_in(
        folder, LITESTREAM_REPLICA=f"file://{folder}/replica", SECRET_KEY="k" * 40
    )
    found, random = Found(), Random(SEED)  # noqa: S311  a drill that can be repeated
    with installation.serving() as edge, commands_in(installation, *fault) as running:
        await_replica(installation.store)
        for _ in range(ROUNDS if fault else 1):
            found.acknowledged |= write_while_stopped(installation.store, edge, running)
            check(installation, found)
            if found.damaged:
                return found
        writers = Writers(edge, PAUSE)
        writers.start()
        try:
            for number in range(restores):
                for _ in range(commands * (number + 1) // restores - commands * number // restores):
                    try:
                        with stopped_at_random(installation.store, random):
                            running.run_any()
                    except Locked:
                        found.refused += 1
                found.acknowledged |= set(writers.acknowledged.values())
                check(installation, found)
        finally:
            writers.stop()
        edge.end(signal.SIGTERM)
    found.acknowledged |= set(writers.acknowledged.values())
    restore(installation, found)
    return found


def write_while_stopped(store: Path, edge: ServedEdge, running: Commands) -> set[str]:
    """Run a command between two leads while Litestream is stopped; return the leads.

    Litestream has read the log to its end and nobody else writes, so that it holds no lock on it.
    """
    leads = {post(edge, str(uuid4())) for _ in range(STOPPED_LEADS)}
    await_replica(store)
    time.sleep(IDLE)
    with stopped(store):
        leads |= {post(edge, str(uuid4())) for _ in range(STOPPED_LEADS)}
        running.run("keys", "list")
        return leads | {post(edge, str(uuid4()))}


def check(installation: Installation, found: Found) -> None:
    """Restore what the replica has when it has caught up."""
    await_replica(installation.store)
    restore(installation, found)


@contextmanager
def stopped_at_random(store: Path, random: Random) -> Iterator[None]:
    """Stop Litestream meanwhile, three times in four; in most of these when it has caught up."""
    if random.random() < 1 / 4:
        yield
        return
    if random.random() < 2 / 3:
        await_replica(store)
    with stopped(store):
        time.sleep(random.uniform(0, 0.2))
        yield
        time.sleep(random.uniform(0, 0.2))


@contextmanager
def stopped(store: Path) -> Iterator[None]:
    """Stop Litestream meanwhile."""
    process = int(replicator_lock_path(store).read_text())
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def restore(installation: Installation, found: Found) -> None:
    """Restore the replica into another file, and look for the acknowledged leads in it."""
    draft = installation.folder / "draft.db"
    draft.unlink(missing_ok=True)
    try:
        fetch_replica(read_settings(installation.settings, None), draft, None)
        verify_copy(draft)
    except StoreRefusal as refusal:
        found.damaged.append(str(refusal))
        return
    found.whole += 1
    found.lost |= found.acknowledged - ids(draft)


@pytest.mark.size("test", grows=True)
def test_every_restore_of_the_replica_is_whole(tmp_path: Path) -> None:
    """Commands open and close the store beside the edge, and leave the replica whole."""
    found = drill(tmp_path, COMMANDS, RESTORES)

    assert found.damaged == []
    assert found.whole == RESTORES + 2
    assert len(found.acknowledged) >= 40
    assert found.lost == set()
    assert found.refused <= 1 + COMMANDS // 20


def test_a_command_that_truncates_the_log_is_caught(tmp_path: Path) -> None:
    """With that fault planted the same drill finds a restore that is damaged."""
    assert drill(tmp_path, 0, 0, "truncate").damaged
