"""Alerts mail the owner once when a check has been bad for five minutes, and once when it passes.

Mail goes straight to the relay, and not through the outbox: no row can be written where the
database is away or the disk is full. For the same reason what was sent is kept in memory, and in a
file beside the store or, where that cannot be written, in one that lies in memory too.
"""

import asyncio
import fcntl
import json
import logging
import os
import platform
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final, Literal
from uuid import uuid4

from edge_api.auth.actor import Clock
from edge_api.backup.files import replace_private
from edge_api.backup.verify import PARTS, read_result
from edge_api.db.mail_addresses import parse_mailbox
from edge_api.db.types import format_instant
from edge_api.health import Health, MachineMonitor, PublishingMonitor, name_unit
from edge_api.mail.clean_text import one_line
from edge_api.mail.messages import MESSAGE_POLICY, header_address, header_subject
from edge_api.mail.transports import MailRefusal, open_transport
from edge_api.schema.environment import BUILD, EDGE
from edge_api.schema.writing import locate_var
from edge_api.settings import Settings
from edge_api.webhooks.dispatcher import make_sender

ALERT_SECONDS: Final = 60.0
"""The interval at which an edge looks at its checks."""
STEADY_SECONDS: Final = 285.0
"""How long a check is bad, or good, before an edge says so: five minutes, less a turn's delay."""
DOCTOR_SECONDS: Final = 200.0
"""The same for `doctor`: two runs of its timer in a row are further apart, whatever they take."""
_RECENT_SECONDS: Final = 900.0  # for so long an edge takes the last run of `doctor` into account
_MAIL_SECONDS: Final = 60.0
_NEEDS_STORE: Final = frozenset(("cdn", "mail", "mailbox", "newsletter", "secret_key", "webhooks"))
"""The checks that can say nothing while the store is away."""
_UNIT: Final = name_unit()
_RESTART: Final = f"systemctl restart {_UNIT}"
_ADVICE: Final[Mapping[str, str]] = {
    "store": f"see that the database runs and its disk has room; {EDGE} doctor names the cause",
    "index": f"run {BUILD} build; what it prints says what to correct",
    "builds": f"{EDGE} doctor says what the bucket of BUILD_URL answered",
    "watcher": f"{_RESTART}-publish, or without systemd {BUILD} watch; its log says why it ended",
    "content": "correct these files; what readers see is their last good state",
    "code": f"{_RESTART}, or stop the edge and start it again",
    "backup": f"run {EDGE} backup, which names what is in its way; journalctl -u {_UNIT}-backup "
    "has what a timer's said",
    "archive": f"run {EDGE} backup --all, which names what is in its way; journalctl -u "
    f"{_UNIT}-backup has what a timer's said",
    "replica": f"the edge's log has what Litestream said; {EDGE} doctor says more",
    "proxies": "set TRUSTED_PROXIES to the address of your proxy",
}
"""What to do about a check whose own sentence, which is public, names no command."""

Source = Literal["edge", "doctor"]
_log: Final = logging.getLogger(__name__)


class Alerts:
    """Sends the owner what one source has found, by mail and to ALERT_URL.

    Of several processes on one machine the one that holds a lock sends.
    """

    def __init__(self, settings: Settings, clock: Clock, source: Source) -> None:
        self.settings, self._clock = settings, clock
        self._path = _locate_state(settings, source)
        self._steady = timedelta(seconds=STEADY_SECONDS if source == "edge" else DOCTOR_SECONDS)
        self.sender = make_sender(settings)
        self._lock: IO[bytes] | None = None
        self._state: dict[str, Any] = {}
        self._not_before: dict[str, datetime] = {}

    def close(self) -> None:
        """Let another process send."""
        if self._lock is not None:
            self._lock.close()

    async def report(
        self, found: Mapping[str, str], unknown: AbstractSet[str] | None = frozenset()
    ) -> bool:
        """Take the errors by check, and send what changed; return whether all is well.

        The checks `unknown` stay as they were; with `None` all but those found do. False too if
        another process sends.
        """
        try:
            self._lock = self._lock or _open_lock(self._path)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # where there can be no lock, each process sends
        self._state = self._state or _read_state(self._path)
        bad, sent, failure = self._find_steady(found, unknown), self._state["sent"], ""
        settings, now = self.settings, self._clock()
        ways = {"mail": settings.smtp_url and settings.owner_email, "url": settings.alert_url}
        for way in filter(ways.get, ways):
            before = sent.get(way, [])
            # A fault that could not be sent so far, and may be over, is not sent as a present one.
            after = [name for name in bad if name in found or name in before]
            if {*after} == {*before} or now < self._not_before.get(way, now):
                continue
            subject, text = self._write(found, after, before)
            if error := await (
                self._mail(subject, text)
                if way == "mail"
                else self._post(subject, failure and f"By mail this was not sent: {failure}", text)
            ):
                self._not_before[way] = now + timedelta(seconds=STEADY_SECONDS)
                failure = error
                _log.warning("alert: %s", error)
            else:
                sent[way] = after
        await asyncio.to_thread(_write_state, self._path, json.dumps(self._state).encode())
        return not self._state["spells"]

    def _find_steady(
        self, found: Mapping[str, str], unknown: AbstractSet[str] | None
    ) -> Sequence[str]:
        """Return the checks that are bad, and were not good again, for long enough.

        A spell is the instant at which a check turned bad, the one at which it was good again, and
        whether it is steady. It goes on until the check is good for as long: what is bad for four
        minutes of each five is bad.
        """
        now, spells = self._clock(), self._state["spells"]
        for name in sorted({*found} if unknown is None else {*spells, *found} - unknown):
            since, good, is_steady = spells.get(name) or (format_instant(now), "", False)
            good = "" if name in found else good or format_instant(now)
            # Absolute: a clock that was set back must not silence it.
            is_over = abs(now - datetime.fromisoformat(good or since)) >= self._steady
            spells[name] = since, good, is_steady or (is_over and not good)
            if good and is_over:
                del spells[name]
        return [name for name, (_, _, is_steady) in spells.items() if is_steady]

    async def _post(self, *parts: str) -> str:
        """Post a text to ALERT_URL; return why it was not taken, or an empty text."""
        body = json.dumps({"text": "\n\n".join(filter(None, parts))}).encode()
        result = await self.sender.post(self.settings.alert_url or "", body, {})
        return "" if result.is_delivered else f"ALERT_URL: {result.message}"

    def _write(
        self, found: Mapping[str, str], after: Sequence[str], before: Sequence[str]
    ) -> tuple[str, str]:
        """Return subject and text of a message; what is over is in it by name alone."""
        parts = {
            "not well": [name for name in after if name not in before],
            "well again": [name for name in before if name not in after],
            "not well as before": [name for name in after if name in before],
        }
        counts = [
            f"{len(names)} {title}: {', '.join(names)}"
            for title, names in parts.items()
            if names and title != "not well as before"
        ]
        texts = {
            name: f": {text}" + (f"\n  What to do: {_ADVICE[name]}" if name in _ADVICE else "")
            for name, text in found.items()
        }
        lists = [
            f"{title.capitalize()}:\n\n" + "\n".join(f"- {n}{texts.get(n, '')}" for n in names)
            for title, names in parts.items()
            if names
        ]
        about = (
            f"This is about {self.settings.site_url} on the machine {platform.node()}, at "
            f"{self._clock().astimezone(UTC):%Y-%m-%d %H:%M} UTC. "
            f"There {EDGE} doctor lists all that is wrong, and what to do.\n"
        )
        # Names of files may hold bytes that are no text.
        text = "\n\n".join((*lists, about)).encode(errors="replace").decode()
        return one_line(f"{self.settings.site_host}: {'; '.join(counts)}"), text

    async def _mail(self, subject: str, text: str) -> str:
        """Hand a message to the relay; return why it was not taken, or an empty text."""
        settings, message = self.settings, EmailMessage(policy=MESSAGE_POLICY)
        sender = parse_mailbox(settings.mail_from or settings.owner_email or "")
        headers = {
            "From": header_address(sender),
            "To": header_address(parse_mailbox(settings.owner_email or "")),
            "Subject": header_subject(subject),
            "Date": self._clock().astimezone(UTC),
            "Message-ID": f"<{uuid4()}@{sender.domain.encode('idna').decode()}>",
            "Auto-Submitted": "auto-generated",
        }
        for name, value in headers.items():
            message[name] = value
        message.set_content(text, cte="quoted-printable")
        try:
            async with (
                asyncio.timeout(_MAIL_SECONDS),
                open_transport(settings.smtp_url or "")() as session,
            ):
                await session.send(sender.address, settings.owner_email or "", message)
        except Exception as error:  # noqa: BLE001  ALERT_URL must get it nevertheless
            unexpected = f"{type(error).__name__} while the relay was given a message"
            return f"SMTP_URL: {error.message if isinstance(error, MailRefusal) else unexpected}"
        return ""


def _locate_state(settings: Settings, source: Source) -> Path:
    return locate_var(settings.database_url, settings.build_dir) / f"alerts-{source}.json"


def _list_places(path: Path) -> Sequence[Path]:
    """Return where a state is kept: its path, and a file in memory if the disk takes nothing."""
    spare = Path(os.environ.get("RUNTIME_DIRECTORY") or f"/dev/shm/fore-edge-{os.getuid()}")  # noqa: S108
    with suppress(OSError):
        spare.mkdir(mode=0o700, exist_ok=True)
        if spare.lstat().st_uid == os.getuid():  # everybody may make one there
            return path, spare / f"{sha256(bytes(path.resolve())).hexdigest()[:16]}.json"
    return (path,)


def _read_state(path: Path) -> dict[str, Any]:
    """Return the spells by check, and the checks that were sent each way."""
    with suppress(OSError, ValueError, TypeError):
        kept = filter(Path.exists, _list_places(path))
        newest = max(kept, key=lambda each: each.stat().st_mtime)
        return {"spells": {}, "sent": {}, **json.loads(newest.read_bytes())}
    return {"spells": {}, "sent": {}}


def _write_state(path: Path, state: bytes) -> None:
    """Keep a state for the next process, which would send all of it again."""
    for each in _list_places(path):
        try:
            replace_private(each, state)
            break
        except OSError as error:
            _log.warning("alerts: %s cannot be written: %s", each, error.strerror)


def _open_lock(state: Path, mode: str = "wb") -> IO[bytes]:
    return open(state.with_suffix(".lock"), mode, opener=partial(os.open, mode=0o600))


def is_alerted_by_edge(settings: Settings) -> bool:
    """Return whether an edge runs on this machine that sends what its own checks find."""
    try:
        # Not made here: root, who may run `doctor`, would own it.
        with _open_lock(_locate_state(settings, "edge"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


async def look(
    alerts: Alerts, health: Health, publishing: PublishingMonitor, machine: MachineMonitor
) -> None:
    """Look at all checks of an edge once; call ALERT_PING if nothing is wrong."""
    checks = (await health.report())["checks"]
    del checks["shutdown"]  # a check of a few seconds, of an end that somebody wanted
    await asyncio.to_thread(machine.refresh)
    errors = {
        **{name: str(each["error"]) for name, each in checks.items() if "error" in each},
        **machine.find_errors(),
    }
    # Readiness is public and names neither files nor causes; mail to the owner does.
    causes = {
        "content": publishing.held,
        "watcher": [publishing.failure],
        **{
            part: [result.detail or result.failure]
            for part in PARTS
            if (result := read_result(alerts.settings, part))
        },
    }
    found = {
        name: "\n  ".join(filter(None, (error, *causes.get(name, ()))))
        for name, error in errors.items()
        if error
    }
    is_well = await alerts.report(found, _NEEDS_STORE if "store" in found else frozenset())
    by_doctor = _locate_state(alerts.settings, "doctor")
    with suppress(OSError):
        if time.time() - by_doctor.stat().st_mtime < _RECENT_SECONDS:
            is_well = is_well and not _read_state(by_doctor)["spells"]
    if is_well and alerts.settings.alert_ping:
        called = await alerts.sender.send("GET", alerts.settings.alert_ping, None, {})
        if not called.is_delivered:
            _log.warning("ALERT_PING: %s", called.message)
