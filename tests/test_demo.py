"""A demonstration: made, built, filled and served as `make run DEMO=1` does it, and left alone."""

import asyncio
import fcntl
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from email import message_from_bytes
from email.utils import getaddresses
from hashlib import sha256
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest

from edge_api.cli.demo import fill_store
from edge_api.mail.queue import undeliverable_reason
from edge_api.schema.environment import SettingsError
from edge_api.settings import read_settings
from tests.content.workshop import find_free_port, plain_environment
from tests.patience import patience

pytestmark = pytest.mark.size("test")

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = {
    "DATABASE_URL": "sqlite:///var/edge.db",
    "SMTP_URL": "smtp://relay.invalid:25",
    "OWNER_EMAIL": "somebody@relay.invalid",
    "ALERT_URL": "https://alerts.invalid/",
    "CONTENT_DIR": "content",
    "BUILD_DIR": "build",
}
"""Settings of a real journal in the environment, which must not reach a demonstration."""
SCREENS = {
    "": ("people wait for an answer", "1 in spam", "1 request for access", "could not be sent"),
    "leads/": ("Petra Novak", "Captain Joos", "Spam 1"),
    "leads/?status=spam": ("Growth Team",),
    "posts/": ("Where the eels go", "Scheduled", "reads in 30 days"),
    "posts/where-the-eels-go/": ("They come up as threads of glass",),
    "posts/new/": ("Publish",),
    "newsletter/": ("25 subscribers", "Ice on the pond", "1 bounced", "Three breads"),
    "newsletter/subscribers/": ("kim@second-thoughts.example",),
    "stats/": ("people read you this week", "mill-forum.example", "Feedly"),
    "settings/": ("Audit",),
    "audit/": ("was answered", "A mailing was released", "A webhook was added"),
    "mail/": ("confirmation of a subscription", "not sent within 24 hours"),
    "access/": ("Reading assistant of the library",),
    "webhooks/": ("https://bell.saltby.example/mill",),
    "replies/": ("Visits", "Flour"),
    "suppressed/": ("ada@old-lighthouse.example",),
    "tables/": ("leads",),
}
"""The paths of screens below /desk/, and what they say."""


def fore_edge(*words: str) -> list[str]:
    """Return the command line of `fore-edge`, which is not installed here."""
    program = "import sys; from site_build.__main__ import fore_edge; sys.exit(fore_edge())"
    return [sys.executable, "-c", program, *words]


def digest(folder: Path) -> dict[str, str]:
    """Return a digest of each file below a folder."""
    return {
        str(each.relative_to(folder)): sha256(each.read_bytes()).hexdigest()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


@dataclass(frozen=True)
class Demo:
    """A demonstration that runs, and a browser that is signed in at its desk."""

    checkout: Path
    before: dict[str, str]
    """The digests of the checkout's own store and content, before it began."""
    environment: dict[str, str]
    url: str
    browser: OpenerDirector

    @property
    def folder(self) -> Path:
        """The folder of the demonstration."""
        return self.checkout / "demo"

    def get(self, path: str) -> str:
        """Return a page, which must be there."""
        with self.browser.open(f"{self.url}{path}", timeout=patience()) as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Return a demonstration in a checkout that has a store of its own."""
    checkout, port = tmp_path_factory.mktemp("checkout"), find_free_port()
    for name in ("edge_api", "site_build", "theme", "pelicanconf.py"):
        (checkout / name).symlink_to(ROOT / name)
    for name in ("content/posts/mine.md", "var/edge.db", "var/edge.key"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("mine\n")
    (checkout / ".venv").symlink_to(sys.prefix)
    shutil.copytree(ROOT / "tools", checkout / "tools")
    before = {name: each for name, each in digest(checkout).items() if name[:3] in ("con", "var")}
    environment = {**plain_environment(), "PORT": str(port), "HOME": str(checkout)}
    log = checkout / "run.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [checkout / "tools/run"],
            env={**environment, **ELSEWHERE, "DEMO": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + patience()
        while not (
            found := re.search(r"^desk .*(http\S+)(/desk/link/\S+)$", log.read_text(), re.MULTILINE)
        ):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        origin = {"Origin": found[1], "Sec-Fetch-Site": "same-origin"}
        link = f"{found[1]}{found[2]}"
        with browser.open(link, timeout=patience()) as page:
            hidden = re.findall(r'type="hidden" name="(.*?)" value="(.*?)"', page.read().decode())
        request = Request(link, urlencode(hidden).encode(), origin)  # noqa: S310
        browser.open(request, timeout=patience()).close()
        environment["PYTHONPATH"] = str(ROOT)
        yield Demo(checkout, before, environment, found[1], browser)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience(10))
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("path", SCREENS)
def test_every_screen_of_the_desk_has_something_to_show(demo: Demo, path: str) -> None:
    """Each is there, says that this is a demonstration, and has rows."""
    page, deadline = demo.get(f"/desk/{path}"), time.monotonic() + patience(30)
    # The first build is announced, and its mailing made, a moment after the edge answers.
    while (missing := [words for words in SCREENS[path] if words not in page]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.2)
        page = demo.get(f"/desk/{path}")

    assert missing == []
    assert "Demo: The Tide Mill" in page or path.startswith("posts/")


def test_a_thread_has_both_sides(demo: Demo) -> None:
    """What somebody asked, the answer by mail, and the reply to it."""
    path = re.findall(r"/desk/leads/[0-9a-f-]{36}/", demo.get("/desk/leads/"))[0]
    page = demo.get(path)

    for words in ("I teach a class", "Two halves of a class", "Here are three days"):
        assert words in page
    assert "not verified" not in page


def test_the_site_says_what_it_is_and_finds_its_posts(demo: Demo) -> None:
    """Each page has its name; the search finds a post, and the painted edge is there."""
    home = demo.get("/")

    assert "Demo: The Tide Mill" in home
    assert "/edge/day.svg" in home
    assert "What the heron knows" in demo.get("/search/?q=ringed+bird")
    # An older post begins so, and the home page has the beginning of the newest one alone.
    assert "Everybody" not in home
    assert "belongs to nobody" in demo.get("/about/")


def test_all_addresses_are_made_up_and_no_mail_went_out(demo: Demo) -> None:
    """Each address in the store and in mails is below .example; all mail is in the maildir."""
    with closing(sqlite3.connect(f"file:{demo.folder}/var/edge.db?mode=ro", uri=True)) as store:
        tables = store.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '% VIRTUAL %'"
        )
        rows = [row for (name,) in tables for row in store.execute(f'SELECT * FROM "{name}"')]  # noqa: S608
        ((sent,),) = store.execute("SELECT count(*) FROM email_send_log WHERE status = 'sent'")
    mails = [
        message_from_bytes(each.read_bytes()) for each in (demo.folder / "var/mail/new").iterdir()
    ]
    headers = [
        str(mail[name]) for mail in mails for name in ("From", "To", "Reply-To") if mail[name]
    ]
    addresses = {address for _, address in getaddresses(headers)}
    addresses |= set(
        re.findall(
            r"[\w.+-]+@[\w.-]*[a-z]",
            "\n".join(
                value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                for row in rows
                for value in row
                if isinstance(value, str | bytes)
            ),
        )
    )

    assert 100 < sent <= len(mails)  # the folder is read last
    assert len(addresses) > 30
    assert {each for each in addresses if not each.endswith(".example")} == set()


def test_doctor_finds_nothing_wrong(demo: Demo) -> None:
    """Nor does readiness."""
    ended = subprocess.run(
        fore_edge("doctor"),
        cwd=demo.folder,
        env={**demo.environment, **ELSEWHERE},
        check=False,
        capture_output=True,
        text=True,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "nothing is wrong" in ended.stdout
    assert json.loads(demo.get("/api/public/v1/readiness"))["status"] == "pass"


def test_the_content_has_no_finding(demo: Demo) -> None:
    """The texts are an example, so the strict check passes."""
    command = [sys.executable, "-m", "site_build", "check", "--strict"]
    ended = subprocess.run(
        command, cwd=demo.folder, env=demo.environment, check=False, capture_output=True, text=True
    )

    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout


def test_the_journal_of_the_checkout_stays_as_it_is(demo: Demo) -> None:
    """Store and content are the same to the byte, and nothing has come beside them."""
    now = {name: each for name, each in digest(demo.checkout).items() if name[:3] in ("con", "var")}

    assert now == demo.before
    assert not (demo.checkout / "build").exists()
    planned = subprocess.run(
        [shutil.which("make") or "", "--dry-run", "run", "DEMO=1"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "site_build build" not in planned


def test_no_demonstration_is_made_where_something_is(demo: Demo) -> None:
    """An existing folder, a journal or not, is refused and left alone; so are two sources."""
    before = digest(demo.folder / "content")
    (empty := demo.checkout / "empty").mkdir(exist_ok=True)
    for words, fault in (
        ((str(demo.folder), "--demo"), "is there already; choose a new folder"),
        ((str(empty), "--demo"), "is there already; choose a new folder"),
        (("new", "--demo", "--from", str(demo.folder)), "Give at most one of --from, --demo."),
    ):
        ended = subprocess.run(
            fore_edge("init", *words),
            cwd=demo.checkout,
            env=demo.environment,
            check=False,
            capture_output=True,
            text=True,
        )
        assert ended.returncode
        assert fault in ended.stderr
        assert "Traceback" not in ended.stderr
    assert digest(demo.folder / "content") == before
    assert list(empty.iterdir()) == []
    assert not (demo.checkout / "new").exists()


def test_the_environment_does_not_reach_a_demonstration(tmp_path: Path) -> None:
    """Its `.env` alone counts, but for PORT; elsewhere DEMO in the environment does nothing."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("DEMO=on\nSMTP_URL=maildir:var/mail\nOWNER_EMAIL=a@b.example\n")
    settings = read_settings({**ELSEWHERE, "PORT": "9000", "DEMO": "off"}, dotenv)

    assert (settings.demo, settings.port, settings.owner_email) == ("on", 9000, "a@b.example")
    assert (settings.smtp_url, settings.alert_url) == ("maildir:var/mail", None)
    dotenv.write_text("OWNER_EMAIL=a@b.example\n")
    assert read_settings({"DEMO": "on"}, dotenv).demo == "off"


def test_a_demonstration_sends_no_mail(tmp_path: Path) -> None:
    """With a relay it does not start."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("DEMO=on\nSMTP_URL=smtp://relay.invalid\nOWNER_EMAIL=a@b.example\n")

    with pytest.raises(SettingsError, match="DEMO: on needs SMTP_URL=maildir:var/mail"):
        read_settings({}, dotenv)


def test_a_store_that_is_there_is_not_filled(tmp_path: Path) -> None:
    """Whatever is in it, and whatever build is served."""
    dotenv, store = tmp_path / ".env", tmp_path / "edge.db"
    store.write_bytes(b"mine")
    (tmp_path / "build/current").mkdir(parents=True)
    dotenv.write_text(
        f"DEMO=on\nSMTP_URL=maildir:{tmp_path}/mail\nOWNER_EMAIL=a@b.example\n"
        f"DATABASE_URL=sqlite:///{store}\nBUILD_DIR={tmp_path}/build\n"
    )
    before = digest(tmp_path)
    asyncio.run(fill_store(read_settings({}, dotenv)))

    assert digest(tmp_path) == before


def test_a_store_is_made_once_and_whole(demo: Demo, tmp_path: Path) -> None:
    """A start that is killed or ended makes none, a second one is refused, and the next has all."""
    var, folder = tmp_path / "var", demo.folder
    left = var / ".demo-killed"
    shutil.copytree(folder / "build", tmp_path / "build", symlinks=True)
    shutil.copy(folder / ".env", tmp_path)
    environment = {**demo.environment, "PORT": str(find_free_port())}

    @contextmanager
    def start() -> Iterator["subprocess.Popen[str]"]:
        with subprocess.Popen(
            fore_edge("serve"), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait_until_filling(process: "subprocess.Popen[str]") -> Path:
        deadline = time.monotonic() + patience()
        while not (found := [e for e in var.glob(".demo-*/edge.db") if e.parent != left]):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return found[0].parent

    with start() as killed:
        started = wait_until_filling(killed)
        killed.kill()
    started.rename(left)
    lock = os.open(var, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with start() as second:
        assert "another process makes the demonstration's store" in second.communicate()[1]
    assert second.returncode
    assert left.is_dir()
    os.close(lock)
    with start() as ended:
        wait_until_filling(ended)
        ended.terminate()
        assert ended.wait(patience()) == 0
    assert [each.name for each in var.iterdir() if each.name != "mail"] == []
    with start() as whole:
        deadline = time.monotonic() + patience()
        while not (var / "edge.db").exists():
            assert whole.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        whole.terminate()
        whole.communicate()
    with closing(sqlite3.connect(var / "edge.db")) as store:
        ((count,),) = store.execute("SELECT count(*) FROM leads")
    assert count > 5
    assert not list(var.glob(".demo-*"))


def test_a_folder_demo_that_is_another_journal_stays(tmp_path: Path) -> None:
    """`make run DEMO=1` refuses it, `make clean` leaves it, and DEMO=0 asks for none."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/run", tmp_path / "tools")
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/.env").write_text("SITE_URL=https://journal.example\n")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    python = tmp_path / ".venv/bin/python"
    python.write_text('#!/bin/sh\necho "$PWD $*" >>"${0%/.venv/*}/started"\n')
    python.chmod(0o755)

    def run(*command: str, wanted: str = "1") -> "subprocess.CompletedProcess[str]":
        environment = {**plain_environment(), "DEMO": wanted}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
        )

    refused = run("tools/run")
    assert refused.returncode == 1
    assert "demo is no demonstration (its .env is without DEMO=on): move it away" in refused.stderr
    assert not (tmp_path / "started").exists()
    assert run("tools/run", wanted="0").returncode == 0
    started = (tmp_path / "started").read_text().splitlines()
    assert {each.split()[0] for each in started} == {str(tmp_path)}
    assert "site_build build" in run("make", "--dry-run", "run", wanted="0").stdout
    assert run("make", "clean").returncode == 0
    assert (tmp_path / "demo/.env").exists()
    (tmp_path / "demo/.env").write_text("DEMO=on\n")
    assert run("make", "clean").returncode == 0
    assert not (tmp_path / "demo").exists()


def test_only_a_demonstration_mails_people_below_example() -> None:
    """Its people are there; other reserved domains get nothing there either."""
    assert undeliverable_reason("ann@a.example", is_demo=True) is None
    assert undeliverable_reason("ann@a.example") is not None
    assert undeliverable_reason("ann@a.invalid", is_demo=True) is not None
