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
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
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


async def stays(relay: Relay, count: int) -> None:
    """Check that several more looks tell nothing."""
    await asyncio.sleep(5)
    assert len(alerts_of(relay)) == count, [str(each) for each in alerts_of(relay)]


async def test_the_wrong_site_url_is_alerted_once_and_its_end(installation: Installation) -> None:
    """The build is for another origin; a restart does not tell it again."""
    relay = Relay()
    builds = Path(installation.settings["BUILD_DIR"])
    right = (builds / "current").resolve()
    point_at(builds, write_build(builds, "build-0002", posts=[make_post("a")], site_url="http://b"))
    async with watched(installation, relay) as (_, mailed):
        await alerted(
            relay, 1, "not well: the build was made for another SITE_URL", "What to do: run"
        )
    with running(mailed.changed(SMTP_URL="")):
        await stays(relay, 1)
    async with watched(installation, relay):
        await stays(relay, 1)
        point_at(builds, right)
        await alerted(relay, 2, "well again: the build was made for another SITE_URL")
        await stays(relay, 2)


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
            await alerted(
                relay, 1, "are free on the disk of", "make room", "What to do: delete old"
            )
            with pytest.raises(OSError, match="No space"):
                filler.write_bytes(b"x" * (32 << 20))
            edge.post("/api/public/v1/leads", LEAD, {"Content-Type": "application/json"})
            await alerted(
                relay, 2, "not well: the store cannot be read or written", "Not well as before"
            )
            await stays(relay, 2)
            filler.unlink()
            await alerted(relay, 3, "well again: the store cannot be read or written")
            await stays(relay, 3)


async def test_an_old_and_a_failing_backup_are_alerted(installation: Installation) -> None:
    """The folder of backups cannot be used; then one works; then it grows old."""
    relay = Relay()
    async with watched(installation, relay) as (_, mailed):
        assert mailed.run("backup")[0] == 0
        backups = installation.folder / "var" / "backups"
        backups.rename(backups.with_name("aside"))
        backups.write_text("no folder")
        assert mailed.run("backup")[0] == 1
        await alerted(
            relay, 1, "the last backup failed", "What to do: journalctl -u fore-edge-backup"
        )
        backups.unlink()
        assert mailed.run("backup")[0] == 0
        await alerted(relay, 2, "well again: the last backup failed")
        record = installation.folder / "var" / "edge.db-backup.json"
        members = json.loads(record.read_bytes())
        assert members["count"] == 2
        members["made_at"] = (datetime.now(UTC) - timedelta(days=3)).isoformat()
        record.write_text(json.dumps(members))
        await alerted(relay, 3, "the newest backup is older than 2 days: let a timer run")
        assert mailed.run("backup")[0] == 0
        await alerted(relay, 4, "well again: ")
        key = str(pyrage.x25519.Identity.generate().to_public())
        keyed = mailed.changed(BACKUP_RECIPIENT=key)
        assert keyed.run("backup", "--all")[0] == 0
        assert keyed.run("backup", "--all", "--to", "/proc/none")[0] == 1
        await alerted(relay, 5, "the last archive failed, and the newest is of 20")
        assert keyed.run("backup", "--all")[0] == 0
        await alerted(relay, 6, "well again: the last archive failed")


async def test_a_certificate_of_ten_days_is_alerted(
    installation: Installation, tmp_path: Path
) -> None:
    """It is that of a real port, whose next certificate ends it."""
    relay, now = Relay(), datetime.now(UTC)
    (tmp_path / "new").mkdir()
    old = write_certificate(tmp_path, now + timedelta(days=10, hours=1))
    new = write_certificate(tmp_path / "new", now + timedelta(days=60), "another")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(old[0].read_bytes() + new[0].read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*old)
    proxy = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", ssl=context)
    async with proxy:
        url = f"https://localhost:{proxy.sockets[0].getsockname()[1]}"
        builds = Path(installation.settings["BUILD_DIR"])
        point_at(builds, write_build(builds, "build-0002", posts=[make_post("a")], site_url=url))
        encrypted = installation.changed(SITE_URL=url, SSL_CERT_FILE=str(trusted))
        async with watched(encrypted, relay):
            sentence = f"the certificate of {url} expires in 10 days: run certbot renew; where"
            await alerted(relay, 1, f"not well: {sentence}", "What to do: then reload the proxy")
            await stays(relay, 1)
            context.load_cert_chain(*new)
            await alerted(relay, 2, f"well again: {sentence}")


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


async def test_a_replica_that_is_away_is_alerted(
    installation: Installation, tmp_path: Path
) -> None:
    """What is committed meanwhile is not replicated; once it is back, that is made up for."""
    relay, replica = Relay(), tmp_path / "replica"
    headers = {"Content-Type": "application/json"}
    replicated = installation.changed(LITESTREAM_REPLICA=f"file://{replica}")
    async with watched(replicated, relay) as (edge, mailed):
        await asyncio.to_thread(await_replica, mailed.store)
        with a_replica_folder_away(replica):
            await asyncio.to_thread(edge.post, "/api/public/v1/leads", LEAD, headers)
            await alerted(relay, 1, "the replica of the store is", "behind", "the edge's log has")
        await alerted(relay, 2, "well again: the replica of the store is")


async def test_a_damaged_replica_is_alerted_and_soon_that_it_is_whole(
    installation: Installation, tmp_path: Path
) -> None:
    """Only a verification finds it, which is repeated soon while it is bad."""
    relay, replica = Relay(), tmp_path / "replica"
    replicated = installation.changed(
        LITESTREAM_REPLICA=f"file://{replica}", QUICK_VERIFICATION="on"
    )
    async with watched(replicated, relay) as (_, mailed):
        await asyncio.to_thread(await_replica, mailed.store)
        result = mailed.store.with_name("edge.db-replica.json")
        await until(result.exists, 120)
        members = json.loads(result.read_bytes())
        assert members["fault"] == ""
        whole = {path: path.read_bytes() for path in replica.rglob("*.ltx")}
        for path, content in whole.items():
            path.write_bytes(content[:-8] + bytes(8))
        yesterday = datetime.now(UTC) - timedelta(hours=30)
        result.write_text(json.dumps({**members, "at": yesterday.isoformat()}))
        await alerted(relay, 1, "not well: the replica cannot be restored")
        for path, content in whole.items():
            path.write_bytes(content)
        await alerted(relay, 2, "well again: the replica cannot be restored")


async def test_mail_that_was_given_up_is_alerted_by_mail(installation: Installation) -> None:
    """The relay refuses the notice of a lead, and then takes the alert."""
    relay = Relay(answers={"data": "554 5.7.1 no"})
    async with watched(installation, relay) as (edge, mailed):
        headers = {"Content-Type": "application/json"}
        assert edge.post("/api/public/v1/leads", LEAD, headers)[0] == 201
        state = "/api/public/v1/readiness", b"mail was given up"
        assert await asyncio.to_thread(edge.await_body, *state)
        relay.answers.clear()
        await alerted(relay, 1, "mail was given up", "mail retry sends it again")
        assert mailed.run("mail", "discard", "--all")[0] == 0
        await alerted(relay, 2, "well again: mail was given up")


async def test_a_database_that_is_away_is_alerted(installation: Installation) -> None:
    """No row can be written; of two edges on the machine one tells, and no other check of it."""
    relay, server = Relay(), PostgreSQL()
    site_url = f"http://127.0.0.1:{installation.settings['PORT']}"
    try:
        stored = installation.changed(
            DATABASE_URL=server.make_store(), SECRET_KEY="s" * 40, SITE_URL=site_url
        )
        another = str(free_port())
        async with watched(stored, relay) as (_, mailed), AsyncExitStack() as stack:
            stack.enter_context(running(mailed.changed(PORT=another)))
            await asyncio.sleep(2)
            await asyncio.to_thread(server.end, signal.SIGQUIT)
            said = await alerted(relay, 1, "the store cannot be read or written", "database runs")
            assert "the state of mail cannot be read" not in said
            await stays(relay, 1)
            await asyncio.to_thread(server.start)
            await alerted(relay, 2, "well again: the store cannot be read or written")
            await stays(relay, 2)
    finally:
        server.remove()


async def test_of_several_workers_one_tells(installation: Installation, tmp_path: Path) -> None:
    """Workers are killed, and what replaces them does not tell it again, but that it is over."""
    relay, server = Relay(), PostgreSQL()
    builds = Path(installation.settings["BUILD_DIR"])
    right = (builds / "current").resolve()
    site_url = f"http://127.0.0.1:{installation.settings['PORT']}"
    copy, _ = copy_product(tmp_path, installation.settings["DATABASE_URL"])
    module = copy / "alerts.py"
    for name in ("ALERT", "STEADY"):  # the workers are started by the name of the product
        text = re.sub(rf"({name}_SECONDS: Final) = .*", r"\1 = 2.0", module.read_text())
        module.write_text(text)
    try:
        workers = installation.changed(
            DATABASE_URL=server.make_store(),
            SECRET_KEY="s" * 40,
            SITE_URL=site_url,
            PYTHONPATH=f"{copy.parent}:{ROOT}",
        )
        wrong = write_build(builds, "build-0002", posts=[make_post("a")], site_url="http://b")
        point_at(builds, wrong)
        async with serving(relay):
            mailed = workers.changed(SMTP_URL=f"smtp://127.0.0.1:{relay.port}")
            with running(mailed, "--workers", "2") as edge:
                await alerted(relay, 1, "not well: the build was made for another SITE_URL")
                state = workers.folder / "var" / "alerts-edge.json"
                await until(lambda: json.loads(state.read_bytes())["sent"], 60)
                for worker in psutil.Process(edge.process.pid).children():
                    worker.kill()
                await stays(relay, 1)
                point_at(builds, right)
                await alerted(relay, 2, "well again: the build was made for another SITE_URL")
                await stays(relay, 2)
    finally:
        server.remove()


async def test_changed_code_is_alerted(installation: Installation, tmp_path: Path) -> None:
    """An upgrade without a restart; the restart ends it."""
    relay = Relay()
    copy, _ = copy_product(tmp_path, installation.settings["DATABASE_URL"])
    changed = installation.changed(PYTHONPATH=f"{copy.parent}:{ROOT}")
    async with watched(changed, relay):
        await asyncio.sleep(1)
        module = copy / "health.py"
        module.write_text(f"{module.read_text()}\n# Another version.\n")
        os.utime(module, (1, 1))
        await alerted(relay, 1, "the installed code has changed", "systemctl restart fore-edge")
    async with watched(changed, relay):
        await alerted(relay, 2, "well again: the installed code has changed")


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
            await alerted(relay, 1, "1 file of the content has errors", "bad.md", "What to do")
            faulty.unlink()
            await alerted(relay, 2, "well again: 1 file of the content has errors")
            watcher.kill()
            watcher.wait()
            await alerted(relay, 3, "has not reported for more than a minute", "fore-edge-publish")
            watcher = start()
            await alerted(relay, 4, "well again: the watcher has not reported")
            await stays(relay, 4)
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
    await asyncio.sleep(3)


async def test_an_edge_that_is_down_is_alerted_by_doctor(installation: Installation) -> None:
    """Nobody else can: two runs find it, and two find that it is up again."""
    relay, address = Relay(), f"http://0.0.0.0:{installation.settings['PORT']}"
    builds = Path(installation.settings["BUILD_DIR"])
    point_at(builds, write_build(builds, "build-0002", posts=[make_post("a")], site_url=address))
    assert installation.run("migrate")[0] == 0
    async with serving(relay):
        smtp_url = f"smtp://127.0.0.1:{relay.port}"
        mailed = installation.changed(SMTP_URL=smtp_url, SITE_URL=address)
        await doctor(mailed)
        assert alerts_of(relay) == []
        await doctor(mailed)
        await alerted(relay, 1, f"{address} is not answered by an edge")
        await doctor(mailed)
        assert len(alerts_of(relay)) == 1
        with running(mailed):
            await doctor(mailed)
            await doctor(mailed)
        await alerted(relay, 2, "Well again:", f"{address} is not answered by an edge")


async def test_a_broken_relay_is_alerted_at_alert_url(installation: Installation) -> None:
    """`doctor --alert` finds it twice, as its timer starts it; the end is told by mail as well."""
    relay = Relay()
    with listening() as (address, requests):
        broken = installation.changed(
            SMTP_URL=f"smtp://127.0.0.1:{free_port()}", ALERT_URL=f"{address}/topic?a=1"
        )
        assert broken.run("migrate")[0] == 0

        await doctor(broken)
        assert requests == []
        await doctor(broken)
        (said,) = texts_of(requests)
        port = broken.settings["SMTP_URL"].rpartition(":")[2]
        assert f"127.0.0.1, port {port}: the relay cannot be reached" in said
        assert "By mail this was not sent: SMTP_URL: " in said
        assert requests[0][:2] == ("POST", "/topic?a=1")
        await doctor(broken)
        assert len(requests) == 1
        async with serving(relay):
            mended = broken.changed(SMTP_URL=f"smtp://127.0.0.1:{relay.port}")
            for _ in range(2):
                await doctor(mended)
        assert "well again: SMTP_URL: 127.0.0.1" in texts_of(requests)[1]
        assert len(requests) == 2


async def test_alert_ping_is_called_while_all_is_well(installation: Installation) -> None:
    """It is a GET; it stops with the first fault, and goes on when that is over."""
    builds = Path(installation.settings["BUILD_DIR"])
    right = (builds / "current").resolve()
    with listening() as (address, requests):
        pinged = installation.changed(ALERT_PING=f"{address}/ping", ALERT_URL=f"{address}/told")
        with running(pinged):
            await until(lambda: len(requests) > 2)
            assert {each[:2] for each in requests} == {("GET", "/ping")}
            wrong = write_build(builds, "build-0002", posts=[make_post("a")], site_url="http://b")
            point_at(builds, wrong)
            await until(lambda: len(texts_of(requests)) == 1)
            count = len(requests)
            await asyncio.sleep(1.5)
            assert len(requests) == count
            point_at(builds, right)
            await until(lambda: len(texts_of(requests)) == 2)
            await until(lambda: requests[-1][0] == "GET")


def test_doctor_says_that_a_broken_relay_alerts_nobody(installation: Installation) -> None:
    """That is a note, and no error, where mail is set and others reach the site."""
    sentence = "without ALERT_URL nobody is told when the relay of mail is broken"
    assert installation.run("migrate")[0] == 0
    mailed = installation.changed(SMTP_URL=f"maildir:{installation.folder}/mail")
    near, far = mailed.changed(), mailed.changed(SITE_URL="https://journal.invalid")
    assert sentence not in near.run("doctor")[1]
    assert sentence in json.loads(far.run("doctor", "--json")[1])["notes"]
    second = far.changed(ALERT_URL="https://alerts.example/x")
    assert sentence not in second.run("doctor")[1]


@pytest.mark.parametrize(
    "url", ["alerts.example", "http://alerts.example/x", "https://a b", "ftp://a"]
)
def test_an_address_that_is_none_is_refused(installation: Installation, url: str) -> None:
    """Both settings say what they must be like."""
    for name in ("ALERT_URL", "ALERT_PING"):
        code, _, complained = installation.changed(**{name: url}).run("settings")
        assert code == 2
        assert f"{name}: must be like https://alerts.example/topic" in complained


def test_the_waits_add_up_to_less_than_ten_minutes() -> None:
    """A fault that only a verification sees is mended, verified, looked at twice, and steady."""
    waits = RETRY_SECONDS, VERIFY_SECONDS, 2 * ALERT_SECONDS, STEADY_SECONDS
    assert sum(waits) < 600
