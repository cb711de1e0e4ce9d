"""When alerts are sent: by a clock of the test, over a real relay, with what is kept in between."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from edge_api.alerts import DOCTOR_SECONDS, Alerts, Source
from edge_api.schema.environment import SettingsError
from edge_api.settings import read_settings
from tests.edge.edge_process import ROOT, free_port
from tests.edge.mail.relays import Relay, serving
from tests.patience import patience

pytestmark = pytest.mark.one_engine

RELAY = "the relay cannot be reached"


class Watch:
    """One journal whose checks the test makes up, and the mail that its owner gets."""

    def __init__(self, folder: Path, relay: Relay, source: Source = "edge") -> None:
        self.now = datetime(2026, 6, 1, tzinfo=UTC)
        self.folder, self.relay, self.source = folder, relay, source
        self.port = relay.port
        self.start()

    def start(self) -> None:
        """Begin anew, as after a restart."""
        settings = {
            "SITE_URL": "https://journal.example",
            "DATABASE_URL": f"sqlite:///{self.folder}/var/edge.db",
            "BUILD_DIR": f"{self.folder}/build",
            "OWNER_EMAIL": "ann@example.org",
            "SMTP_URL": f"smtp://127.0.0.1:{self.port}",
        }
        self.alerts = Alerts(read_settings(settings, None), lambda: self.now, self.source)

    def restart(self) -> None:
        """Let the process end, and another one begin."""
        self.alerts.close()
        self.start()

    async def look(
        self,
        found: Mapping[str, str],
        seconds: int = 60,
        times: int = 1,
        unknown: frozenset[str] | None = frozenset(),
    ) -> bool:
        """Look so often, and wait so long after each look; return whether all was well at last."""
        for _ in range(times):
            is_well = await self.alerts.report(found, unknown)
            self.now += timedelta(seconds=seconds)
        return is_well

    @property
    def subjects(self) -> list[str]:
        """The subjects of the mail that came."""
        messages = [message_from_bytes(each.octets, policy=default) for each in self.relay.received]
        return [str(each["Subject"]).removeprefix("journal.example: ") for each in messages]

    @property
    def text(self) -> str:
        """The text of the last message."""
        message = message_from_bytes(self.relay.received[-1].octets, policy=default)
        body = message.get_body(("plain",))
        assert body is not None
        return str(body.get_content()).replace("\r\n", "\n")


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncIterator[Watch]:
    """Return an edge's alerts."""
    (tmp_path / "var").mkdir()
    async with serving(Relay()) as relay:
        watch = Watch(tmp_path, relay)
        yield watch
        watch.alerts.close()


async def test_a_fault_is_sent_after_five_minutes_and_its_end_too(watch: Watch) -> None:
    """The end has the name alone: no fault and no order stand below "well again"."""
    fault = {"index": "the build was made for another SITE_URL", "proxies": "untrusted"}
    await watch.look(fault, times=5)
    assert watch.subjects == []
    await watch.look(fault)
    assert watch.subjects == ["2 not well: index, proxies"]
    assert "- index: the build was made for another SITE_URL\n  What to do: run " in watch.text
    assert await watch.look({}, times=5) is False
    assert await watch.look({}) is True
    assert watch.subjects[1:] == ["2 well again: index, proxies"]
    assert "Well again:\n\n- index\n- proxies\n\nThis is about" in watch.text


async def test_what_is_bad_for_four_minutes_of_five_is_bad(watch: Watch) -> None:
    """A minute does not end it, and the moment in which it is good is not called bad."""
    for _ in range(4):
        await watch.look({"watcher": "away"}, times=4)
        await watch.look({})
    assert watch.subjects == ["1 not well: watcher"]
    await watch.look({}, times=6)
    assert watch.subjects[1:] == ["1 well again: watcher"]


async def test_one_bad_look_is_no_alert(watch: Watch) -> None:
    """Nor are two that are further apart than it has to be good."""
    for _ in range(3):
        await watch.look({"watcher": "away"})
        await watch.look({}, times=6)
    assert watch.subjects == []


async def test_a_second_fault_names_the_first(watch: Watch) -> None:
    """Both can be over in one message, in which another one begins."""
    await watch.look({"index": "a"}, times=6)
    await watch.look({"index": "a", "disk": "b"}, times=6)
    assert watch.subjects[1:] == ["1 not well: disk"]
    assert "Not well as before:\n\n- index: a" in watch.text
    await watch.look({"store": "c"}, times=6, unknown=frozenset(("disk",)))
    assert watch.subjects[2:] == ["1 not well: store; 1 well again: index"]
    assert "Not well as before:\n\n- disk\n" in watch.text


async def test_two_runs_of_doctor_are_enough(watch: Watch) -> None:
    """Each begins as its timer says, however long it takes: both are within ten minutes."""
    timer = (ROOT / "deploy" / "fore-edge-doctor.timer").read_text("utf-8")
    seconds = int(timer.partition("OnUnitActiveSec=")[2].partition("s\n")[0])
    assert DOCTOR_SECONDS + 30 <= seconds < 600 / 2 - 30
    doctor = Watch(watch.folder, watch.relay, "doctor")
    await doctor.look({"relay": RELAY}, seconds)
    assert watch.subjects == []
    await doctor.look({"relay": "it answers 421"}, seconds)
    assert watch.subjects == ["1 not well: relay"]  # by its name, whatever it says
    await doctor.look({}, seconds)
    await doctor.look({"relay": RELAY}, seconds)
    await doctor.look({}, seconds)
    assert len(watch.subjects) == 1
    await doctor.look({}, seconds)
    assert watch.subjects[1:] == ["1 well again: relay"]
    doctor.alerts.close()


async def test_a_fault_of_the_relay_does_not_come_over_it(watch: Watch) -> None:
    """Once it takes mail the fault is over; what is bad besides is sent then."""
    watch.alerts.close()
    watch.port = free_port()
    watch.start()
    await watch.look({"relay": RELAY, "index": "a"}, times=10)
    watch.port = watch.relay.port
    watch.restart()
    await watch.look({"index": "a"})
    assert watch.subjects == ["1 not well: index"]
    assert "relay" not in watch.text
    await watch.look({"index": "a"}, times=10)
    assert len(watch.subjects) == 1


async def test_what_was_sent_is_kept_in_memory_where_the_disk_takes_nothing(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of `doctor` remember the first one, and an edge that starts again ends its alert."""
    memory = watch.folder / "run"
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(memory))
    (watch.folder / "var").rmdir()
    (watch.folder / "var").write_text("no folder")
    for _ in range(7):
        await watch.look({"disk": "full"})
        watch.restart()
    assert watch.subjects == ["1 not well: disk"]
    assert len(list(memory.iterdir())) == 1
    (watch.folder / "var").unlink()
    (watch.folder / "var").mkdir()
    await watch.look({}, times=6)
    assert watch.subjects[1:] == ["1 well again: disk"]
    assert json.loads((watch.folder / "var" / "alerts-edge.json").read_bytes())["spells"] == {}


async def test_memory_that_another_user_made_is_not_used(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody may make a folder there."""
    foreign = watch.folder / "run" if os.getuid() == 0 else Path("/")
    if os.getuid() == 0:
        foreign.mkdir()
        os.chown(foreign, 1, 1)
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(foreign))
    (watch.folder / "var").rmdir()
    (watch.folder / "var").write_text("no folder")
    await watch.look({"disk": "full"}, times=6)
    assert watch.subjects == ["1 not well: disk"]
    assert not list(foreign.glob("*.json"))


@pytest.mark.size("test")
def test_on_a_full_disk_the_edge_ends_with_a_sentence(tmp_path: Path) -> None:
    """The file of its lock can be made, and not be written."""
    fill = f"mount -t tmpfs -o size=16k tmpfs {tmp_path} && cd {tmp_path} && : >edge.db-lock"
    fill += "; head -c 20k /dev/zero >filler 2>/dev/null"
    serve = f"{sys.executable} -m edge_api serve"
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", f"{fill}; {serve}"]
    ended = subprocess.run(
        command,
        env={"PYTHONPATH": str(ROOT), "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db"},
        check=False,
        capture_output=True,
        text=True,
        timeout=patience(),
    )
    sentence = "edge.db-lock cannot be written (No space left on device): "
    assert ended.stderr.startswith(f"{tmp_path}/{sentence}")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    "url", ["alerts.example", "http://alerts.example/x", "https://a b", "ftp://a"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """Both settings say what they must be like; `lenient` leaves out what is wrong alone."""
    given = {"ALERT_URL": url, "ALERT_PING": url, "OWNER_EMAIL": "ann@example.org"}
    with pytest.raises(SettingsError) as refused:
        read_settings(given, None)
    sentence = "must be like https://alerts.example/topic, in ASCII and without a #"
    assert refused.value.errors == [f"ALERT_URL: {sentence}", f"ALERT_PING: {sentence}"]
    lenient = read_settings(given, None, lenient=True)
    assert (lenient.alert_url, lenient.owner_email) == (None, "ann@example.org")
