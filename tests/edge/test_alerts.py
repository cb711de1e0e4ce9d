"""Alerts: what breaks for real is told once, with what to do, and so is that it is over."""

import asyncio
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pyrage
import pytest

from edge_api.alerts import ALERT_SECONDS, STEADY_SECONDS
from edge_api.background import VERIFY_SECONDS
from edge_api.backup.verify import RETRY_SECONDS
from edge_api.schema.heartbeat import Heartbeat
from tests.drills.loss import await_replica
from tests.edge.certificates import write_certificate
from tests.edge.changed_product import copy_product
from tests.edge.edge_process import ROOT, Installation, ServedEdge, free_port, until
from tests.edge.mail.relays import Relay, serving
from tests.edge.postgresql import PostgreSQL
from tests.edge.small_builds import make_post, point_at, write_build
from tests.patience import patience
from tests.site_build.workbench import Workbench

pytestmark = [pytest.mark.one_engine, pytest.mark.size("ci")]

QUICK = "tests.edge.quick_alerts"
OWNER = "ann@example.org"
LEAD = json.dumps(
    {"name": "Eve", "email": "eve@example.org", "budget_tier": "x", "message": "hello"}
).encode()


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return an installation with a small build."""
    port = free_port()
    builds = tmp_path / "build"
    site_url = f"http://127.0.0.1:{port}"
    point_at(builds, write_build(builds, posts=[make_post("a")], site_url=site_url))
    for folder in ("content", "var"):
        (tmp_path / folder).mkdir()
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{tmp_path}/var/edge.db",
        "BUILD_DIR": str(builds),
        "OWNER_EMAIL": OWNER,
    }
    return Installation(tmp_path, settings)


@contextmanager
def running(installation: Installation, *words: str) -> Iterator[ServedEdge]:
    """Serve with short waits; its log goes to a file."""
    with (installation.folder / "log").open("a") as log:
        process = installation.start("serve", *words, module=QUICK, stderr=log)
        try:
            assert process.stdout is not None
            greeting = process.stdout.readline()
            assert greeting, (installation.folder / "log").read_text()
            yield ServedEdge(process, int(installation.settings["PORT"]), greeting)
        finally:
            process.terminate()
            process.communicate(timeout=patience())


@asynccontextmanager
async def watched(
    installation: Installation, relay: Relay
) -> AsyncIterator[tuple[ServedEdge, Installation]]:
    """Serve with a relay that the owner's mail goes to."""
    async with serving(relay):
        mailed = installation.changed(SMTP_URL=f"smtp://127.0.0.1:{relay.port}")
        with running(mailed) as edge:
            yield edge, mailed


def alerts_of(relay: Relay) -> list[EmailMessage]:
    """Return the alerts that arrived; other mail to the owner is no alert."""
    messages = [message_from_bytes(each.octets, policy=default) for each in relay.received]
    return [each for each in messages if "This is about http" in text_of(each)]


def text_of(message: Any) -> str:
    """Return the text of a message."""
    return str(message.get_body(("plain",)).get_content())


async def alerted(relay: Relay, count: int, *words: str) -> str:
    """Wait until so many alerts have come; return the subject and text of the last one."""
    await until(lambda: len(alerts_of(relay)) >= count, 120)
    last = alerts_of(relay)[count - 1]
    said = f"{last['Subject']}\n{text_of(last)}"
    for each in words:
        assert each in said, said
    assert last["To"] == OWNER
    return said


def named(relay: Relay, title: str) -> list[str]:
    """Return the checks that the subjects of all alerts name after a title."""
    pattern = re.compile(rf"\d+ {title}: ([^;]*)")
    found = (pattern.search(str(each["Subject"])) for each in alerts_of(relay))
    return [name for each in found if each for name in each[1].split(", ")]


async def stays(relay: Relay, count: int) -> None:
    """Check that several more looks find nothing to send."""
    await asyncio.sleep(4)
    assert len(alerts_of(relay)) == count, [str(each) for each in alerts_of(relay)]


FAULTS = {
    "index": ("the build was made for another SITE_URL", "What to do: run "),
    "mail": ("mail was given up: ", "mail retry sends it again"),
    "backup": ("the newest backup is older than 2 days", " backup, which names"),
    "archive": ("the last archive failed", "cannot take a backup", " backup --all, which names"),
    "certificate": ("expires in 10 days: run certbot renew and reload the proxy",),
    "code": ("the installed code has changed", "What to do: systemctl restart fore-edge"),
}
"""Faults that one edge has at the same time, by check, with words that its alert must have."""


async def test_each_fault_is_alerted_once_and_its_end(
    installation: Installation, tmp_path: Path
) -> None:
    """A restart sends nothing again; ALERT_PING is called before and after, not meanwhile."""
    relay, now = Relay(), datetime.now(UTC)
    (tmp_path / "new").mkdir()
    old = write_certificate(tmp_path, now + timedelta(days=10, hours=1))
    new = write_certificate(tmp_path / "new", now + timedelta(days=60), "another")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(old[0].read_bytes() + new[0].read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*new)
    proxy = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", ssl=context)
    copy, _ = copy_product(tmp_path, installation.settings["DATABASE_URL"])
    builds = Path(installation.settings["BUILD_DIR"])
    async with proxy:
        url = f"https://localhost:{proxy.sockets[0].getsockname()[1]}"
        right = write_build(builds, "build-0002", posts=[make_post("a")], site_url=url)
        point_at(builds, right)
        with listening() as (address, requests):
            journal = installation.changed(
                SITE_URL=url,
                SSL_CERT_FILE=str(trusted),
                PYTHONPATH=f"{copy.parent}:{ROOT}",
                BACKUP_RECIPIENT=str(pyrage.x25519.Identity.generate().to_public()),
                ALERT_PING=f"{address}/ping",
                ALERT_URL=f"{address}/alerts",
            )
            async with watched(journal, relay) as (edge, mailed):
                for words in ([], ["--all"]):
                    assert mailed.run("backup", *words)[0] == 0
                await until(lambda: len(requests) > 2)
                assert {each[:2] for each in requests} == {("GET", "/ping")}
                await asyncio.to_thread(break_some, mailed, edge, relay)
                context.load_cert_chain(*old)
                wrong = write_build(
                    builds, "build-0003", posts=[make_post("a")], site_url="http://b"
                )
                point_at(builds, wrong)
                module = copy / "health.py"
                module.write_text(f"{module.read_text()}\n# Another version.\n")
                os.utime(module, (1, 1))
                await until(lambda: {*named(relay, "not well")} >= {*FAULTS}, 120)
                said = "".join(map(text_of, alerts_of(relay)))
                missing = {each for words in FAULTS.values() for each in words if each not in said}
                assert not missing, said
                pings = [each for each in requests if each[0] == "GET"]
                await asyncio.sleep(1.5)
                assert [each for each in requests if each[0] == "GET"] == pings
            async with watched(journal, relay) as (_, mailed):
                await until(lambda: "code" in named(relay, "well again"), 120)
                assert sorted(named(relay, "not well")) == sorted(FAULTS)
                for words in (["mail", "discard", "--all"], ["backup"], ["backup", "--all"]):
                    assert mailed.run(*words)[0] == 0
                context.load_cert_chain(*new)
                point_at(builds, right)
                await until(lambda: {*named(relay, "well again")} >= {*FAULTS}, 120)
                count = len(alerts_of(relay))
                await until(lambda: requests[-1][0] == "GET")
            assert sorted(named(relay, "not well")) == sorted(FAULTS)
            assert sorted(named(relay, "well again")) == sorted(FAULTS)
            assert len(texts_of(requests)) == count


def break_some(installation: Installation, edge: ServedEdge, relay: Relay) -> None:
    """Let a notice be refused, the last backup be old, and the next archive fail."""
    relay.answers["data"] = "554 5.7.1 no"
    headers = {"Content-Type": "application/json"}
    assert edge.post("/api/public/v1/leads", LEAD, headers)[0] == 201
    record = installation.folder / "var" / "edge.db-backup.json"
    members = json.loads(record.read_bytes())
    members["made_at"] = (datetime.now(UTC) - timedelta(days=3)).isoformat()
    record.write_text(json.dumps(members))
    backups = record.with_name("backups")
    kept = backups.rename(record.with_name("kept"))
    backups.write_text("no folder")
    assert installation.run("backup", "--all")[0] == 1
    backups.unlink()
    kept.rename(backups)
    assert edge.await_body("/api/public/v1/readiness", b"mail was given up")
    relay.answers.clear()


@contextmanager
def a_full_disk(installation: Installation) -> Iterator[tuple[ServedEdge, Path]]:
    """Serve in a mount namespace whose `var` is a small disk; give its folder as seen from here."""
    var = installation.folder / "var"
    program = f"mount -t tmpfs -o size=24m tmpfs {var} && exec {sys.executable} -m {QUICK} serve"
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", program]
    with (installation.folder / "log").open("a") as log:
        process = subprocess.Popen(
            words,
            cwd=installation.folder,
            env=installation.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), (installation.folder / "log").read_text()
            edge = ServedEdge(process, int(installation.settings["PORT"]), "")
            yield edge, Path(f"/proc/{process.pid}/root{var}")
        finally:
            process.terminate()
            process.communicate(timeout=patience())


async def test_a_full_disk_is_alerted_though_no_row_can_be_written(
    installation: Installation,
) -> None:
    """The file of what was told cannot be written either; it is told once, and the end of it."""
    relay = Relay()
    async with serving(relay):
        mailed = installation.changed(SMTP_URL=f"smtp://127.0.0.1:{relay.port}")
        with a_full_disk(mailed) as (edge, var):
            filler = var / "filler"
            await alerted(relay, 1, "1 not well: disk", "are free on the disk of", "delete old")
            with pytest.raises(OSError, match="No space"):
                filler.write_bytes(b"x" * (32 << 20))
            edge.post("/api/public/v1/leads", LEAD, {"Content-Type": "application/json"})
            await alerted(
                relay, 2, "1 not well: store", "cannot be read or written", "Not well as before"
            )
            filler.unlink()
            await alerted(relay, 3, "1 well again: store")
            await stays(relay, 3)


@contextmanager
def a_replica_folder_away(folder: Path) -> Iterator[None]:
    """Put a file in the place of a folder meanwhile."""
    aside = folder.rename(folder.with_name("aside"))
    folder.write_text("no folder")
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


def spoil(replica: Path, result: Path, whole: dict[Path, bytes]) -> None:
    """Damage each file of a replica, and let its verification be due.

    Again and again: Litestream puts its files together, and makes up for what is gone.
    """
    for path in replica.rglob("*.ltx"):
        content = path.read_bytes()
        if not content.endswith(bytes(8)):
            whole[path] = content
            path.write_bytes(content[:-8] + bytes(8))
    members = json.loads(result.read_bytes())
    if not members["fault"]:
        yesterday = datetime.now(UTC) - timedelta(hours=30)
        result.write_text(json.dumps({**members, "at": yesterday.isoformat()}))


@pytest.mark.size("judge")
async def test_a_replica_that_is_damaged_or_away_is_alerted_and_soon_that_it_is_whole(
    installation: Installation, tmp_path: Path
) -> None:
    """Only a verification finds damage, which is repeated soon while it is bad."""
    relay, replica = Relay(), tmp_path / "replica"
    headers = {"Content-Type": "application/json"}
    replicated = installation.changed(
        LITESTREAM_REPLICA=f"file://{replica}", QUICK_VERIFICATION="on"
    )
    async with watched(replicated, relay) as (edge, mailed):
        await asyncio.to_thread(await_replica, mailed.store)
        result = mailed.store.with_name("edge.db-replica.json")
        await until(result.exists, 120)
        assert json.loads(result.read_bytes())["fault"] == ""
        whole: dict[Path, bytes] = {}
        for _ in range(round(patience(120))):
            if alerts_of(relay):
                break
            spoil(replica, result, whole)
            await asyncio.sleep(1)
        await alerted(relay, 1, "1 not well: replica", "cannot be restored", "start a new replica")
        for path in filter(Path.exists, whole):
            path.write_bytes(whole[path])
        await alerted(relay, 2, "1 well again: replica")
        with a_replica_folder_away(replica):
            await asyncio.to_thread(edge.post, "/api/public/v1/leads", LEAD, headers)
            await alerted(relay, 3, "replica of the store is", "behind", "the edge's log has")
        await alerted(relay, 4, "1 well again: replica")


@pytest.mark.size("judge")
async def test_of_several_workers_one_sends_also_with_the_database_away(
    installation: Installation, tmp_path: Path
) -> None:
    """Workers are killed, and what replaces them sends nothing again, but that it is over."""
    relay, server = Relay(), PostgreSQL()
    builds = Path(installation.settings["BUILD_DIR"])
    right = (builds / "current").resolve()
    copy, _ = copy_product(tmp_path, installation.settings["DATABASE_URL"])
    module = copy / "alerts.py"
    for name in ("ALERT", "STEADY"):  # the workers are started by the name of the product
        text = re.sub(rf"({name}_SECONDS: Final) = .*", r"\1 = 2.0", module.read_text())
        module.write_text(text)
    try:
        workers = installation.changed(
            DATABASE_URL=server.make_store(),
            SECRET_KEY="s" * 40,
            SITE_URL=f"http://127.0.0.1:{installation.settings['PORT']}",
            PYTHONPATH=f"{copy.parent}:{ROOT}",
        )
        wrong = write_build(builds, "build-0002", posts=[make_post("a")], site_url="http://b")
        point_at(builds, wrong)
        async with serving(relay):
            mailed = workers.changed(SMTP_URL=f"smtp://127.0.0.1:{relay.port}")
            with running(mailed, "--workers", "2") as edge:
                await alerted(relay, 1, "1 not well: index")
                state = workers.folder / "var" / "alerts-edge.json"
                await until(lambda: json.loads(state.read_bytes())["sent"], 60)
                for worker in psutil.Process(edge.process.pid).children():
                    worker.kill()
                await stays(relay, 1)
                point_at(builds, right)
                await alerted(relay, 2, "1 well again: index")
                await asyncio.to_thread(server.end, signal.SIGQUIT)
                said = await alerted(relay, 3, "1 not well: store", "see that the database runs")
                assert "the state of mail cannot be read" not in said
                await asyncio.to_thread(server.start)
                await alerted(relay, 4, "1 well again: store")
                await stays(relay, 4)
    finally:
        server.remove()


@pytest.mark.size("judge")
async def test_faulty_content_and_a_killed_watcher_are_alerted(
    installation: Installation, tmp_path: Path
) -> None:
    """A real watcher holds a post back, and is killed; both are told with what to do."""
    relay = Relay()
    bench = Workbench(tmp_path / "content", tmp_path / "build2")
    bench.post("kept", text="Word.")
    site_url = f"http://127.0.0.1:{installation.settings['PORT']}"
    words = ["publish", "--content", bench.content, "--output", bench.output]
    command = [sys.executable, "-m", "site_build", *map(str, words), "--site-url", site_url]

    def start() -> subprocess.Popen[bytes]:
        out = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)

    watcher = start()
    try:
        await until((bench.output / "current").exists, 120)
        built = installation.changed(BUILD_DIR=str(bench.output), CONTENT_DIR=str(bench.content))
        async with watched(built, relay):
            faulty = bench.content / "posts" / "bad.md"
            faulty.write_text("---\ntitle: [\n---\n\nText.\n")
            await alerted(relay, 1, "1 not well: content", "bad.md", "What to do")
            watcher.kill()
            watcher.wait()
            beat = Heartbeat.read(bench.output)
            assert beat is not None
            killed = beat.model_copy(update={"at": beat.at - timedelta(minutes=2)})
            killed.write(bench.output)  # as it is two minutes later
            await alerted(relay, 2, "has not reported for more than a minute", "fore-edge-publish")
            faulty.unlink()
            watcher = start()
            await until(lambda: len(named(relay, "well again")) == 2, 120)
            assert {*named(relay, "well again")} == {"content", "watcher"}
    finally:
        watcher.kill()
        watcher.wait()


@contextmanager
def listening() -> Iterator[tuple[str, list[tuple[str, str, Any]]]]:
    """Give the address of a server, and its list of requests: method, path and decoded body."""
    requests: list[tuple[str, str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append((self.command, self.path, json.loads(body) if body else None))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = answer  # noqa: N815  names of the library

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()


def texts_of(requests: list[tuple[str, str, Any]]) -> list[str]:
    """Return the texts that were posted."""
    return [body["text"] for method, _, body in requests if method == "POST"]


async def doctor(installation: Installation) -> None:
    """Run it as its timer does, and wait for as long as two runs are apart."""
    process = installation.start("doctor", "--alert", module=QUICK)
    await asyncio.to_thread(process.communicate, timeout=patience(120))
    await asyncio.sleep(1)


async def test_doctor_alerts_of_what_no_edge_can(installation: Installation) -> None:
    """The relay is down, then the edge; then settings are wrong, and those that are right serve."""
    relay, address = Relay(), f"http://0.0.0.0:{installation.settings['PORT']}"
    builds = Path(installation.settings["BUILD_DIR"])
    point_at(builds, write_build(builds, "build-0002", posts=[make_post("a")], site_url=address))
    assert installation.run("migrate")[0] == 0
    with listening() as (url, requests):
        smtp_url = f"smtp://127.0.0.1:{free_port()}"
        broken = installation.changed(SMTP_URL=smtp_url, ALERT_URL=f"{url}/topic?a=1")
        await doctor(broken)
        assert requests == []
        await doctor(broken)
        (said,) = texts_of(requests)
        assert "1 not well: relay" in said
        port = smtp_url.rpartition(":")[2]
        assert f"- relay: SMTP_URL: 127.0.0.1, port {port}: the relay cannot be reached" in said
        assert "By mail this was not sent: SMTP_URL: " in said
        assert requests[0][:2] == ("POST", "/topic?a=1")
        async with serving(relay):
            smtp_url = f"smtp://127.0.0.1:{relay.port}"
            mended = broken.changed(SMTP_URL=smtp_url)
            for _ in range(2):
                await doctor(mended)
            assert "1 well again: relay" in texts_of(requests)[1]
            assert len(requests) == 2
            assert alerts_of(relay) == []
            mailed = installation.changed(SMTP_URL=smtp_url, SITE_URL=address)
            for _ in range(2):
                await doctor(mailed)
            await alerted(
                relay, 1, "2 not well: address, https", f"{address} is not answered by an edge"
            )
            (installation.folder / ".env").write_text("no setting\n")
            faulty = mailed.changed(RATE_LEADS="often")
            for _ in range(2):
                await doctor(faulty)
            await alerted(relay, 2, "1 not well: settings", ".env, line 1: write it like")
            (installation.folder / ".env").unlink()
            with running(mailed):
                for _ in range(2):
                    await doctor(mailed)
            await alerted(relay, 3, "2 well again: ", "- address\r\n", "- settings\r\n")


def test_doctor_says_that_a_broken_relay_alerts_nobody(installation: Installation) -> None:
    """That is a note, and no error, where mail is set and others reach the site."""
    sentence = "without ALERT_URL nobody hears of it when the relay of mail is broken"
    assert installation.run("migrate")[0] == 0
    mailed = installation.changed(SMTP_URL=f"maildir:{installation.folder}/mail")
    near, far = mailed.changed(), mailed.changed(SITE_URL="https://journal.invalid")
    assert sentence not in near.run("doctor")[1]
    assert sentence in json.loads(far.run("doctor", "--json")[1])["notes"]
    second = far.changed(ALERT_URL="https://alerts.example/x")
    assert sentence not in second.run("doctor")[1]


def test_the_waits_add_up_to_less_than_ten_minutes() -> None:
    """A fault that only a verification sees is mended, verified, looked at twice, and steady."""
    waits = RETRY_SECONDS, VERIFY_SECONDS, 2 * ALERT_SECONDS, STEADY_SECONDS
    assert sum(waits) < 600
