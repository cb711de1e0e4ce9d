"""Alerts: the owner is told once that a check is bad for five minutes, and once that it is over.

Mail goes straight to the relay, and not through the outbox: no row can be written where the
database is away or the disk is full. For the same reason what was told is kept in memory, and in a
file beside the store where that can be written.
"""

import asyncio
import fcntl
import json
import logging
import os
import platform
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Literal
from urllib.parse import urlsplit
from uuid import uuid4

from edge_api.auth.actor import Clock
from edge_api.backup.files import replace_private
from edge_api.db.mail_addresses import parse_mailbox
from edge_api.db.types import format_instant
from edge_api.health import Health, PublishingMonitor
from edge_api.machine import MachineMonitor, name_unit
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
"""How long a check is bad, or good, before that is told: five minutes, of which a timer that runs
each five minutes may lack some seconds."""
_RECENT_SECONDS: Final = 900.0  # for so long an edge takes the last run of `doctor` into account
_MAIL_SECONDS: Final = 60.0
_NEEDS_STORE: Final = frozenset(("cdn", "mail", "mailbox", "newsletter", "secret_key", "webhooks"))
"""The checks that can say nothing while the store is away."""
_PASSING: Final = "shutdown"  # a check of a few seconds, of an end that somebody wanted
_UNIT: Final = name_unit()
_RESTART: Final = f"systemctl restart {_UNIT}"
_ADVICE: Final[Mapping[str, str]] = {
    "store": f"see that the database runs and its disk has room; {EDGE} doctor names the cause",
    "index": f"run {BUILD} build; what it prints says what to correct",
    "builds": f"{EDGE} doctor says what the bucket of BUILD_URL answered",
    "watcher": f"{_RESTART}-publish, or without systemd {BUILD} watch; its log says why it ended",
    "content": "correct these files; what readers see is their last good state",
    "code": f"{_RESTART}, or stop the edge and start it again",
    "disk": "delete old backups or other large files, or get a larger disk",
    "certificate": "then reload the proxy; systemctl status certbot.timer says why it was not done",
    "backup": f"journalctl -u {_UNIT}-backup says why, if a timer makes it",
    "archive": f"journalctl -u {_UNIT}-backup says why, if a timer makes it",
    "replica": f"the edge's log has what Litestream said; {EDGE} doctor says more",
    "proxies": "set TRUSTED_PROXIES to the address of your proxy",
}
"""What to do about a check whose own sentence, which is public, names no command."""

Source = Literal["edge", "doctor"]
_log: Final = logging.getLogger(__name__)


class Alerts:
    """Tells the owner what one source has found, by mail and to ALERT_URL.

    Of several processes on one machine the one that holds a lock tells.
    """

    def __init__(self, settings: Settings, clock: Clock, source: Source) -> None:
        self.settings, self._clock = settings, clock
        self._path = _locate_state(settings, source)
        self._sender = make_sender(settings)
        self._lock: IO[bytes] | None = None
        self._state: dict[str, Any] = {}
        self._not_before: dict[str, datetime] = {}

    def close(self) -> None:
        """Let another process tell."""
        if self._lock is not None:
            self._lock.close()

    async def report(
        self, found: Mapping[str, str], unknown: AbstractSet[str] = frozenset()
    ) -> bool:
        """Take the errors by check, and tell what changed; return whether all is well.

        The checks `unknown` stay as they were. False too if another process tells.
        """
        if self._lock is None:
            try:
                lock = _open_lock(self._path)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = lock
            except BlockingIOError:
                lock.close()
                return False
            except OSError:
                pass  # where there can be no lock, each process tells
        self._state = self._state or _read_state(self._path)
        alerts, sent, failure = self._find_steady(found, unknown), self._state["sent"], ""
        settings, now = self.settings, self._clock()
        ways = {"mail": settings.smtp_url and settings.owner_email, "url": settings.alert_url}
        for way in [each for each, is_set in ways.items() if is_set]:
            before = sent.get(way, {})
            if alerts.keys() == before.keys() or now < self._not_before.get(way, now):
                continue
            if error := await self._tell(way, alerts, before, failure):
                self._not_before[way] = now + timedelta(seconds=STEADY_SECONDS)
                failure = error
                _log.warning("alert: %s", error)
            else:
                sent[way] = {**alerts}
        try:  # so that the next process does not tell it again
            state = json.dumps(self._state).encode()
            await asyncio.to_thread(replace_private, self._path, state)
        except OSError as error:
            _log.warning("alerts: %s cannot be written: %s", self._path, error.strerror)
        return not alerts and not found

    def _find_steady(self, found: Mapping[str, str], unknown: AbstractSet[str]) -> dict[str, str]:
        """Return the errors of checks that are bad, and were not good again, for long enough."""
        now, alerts, changing = self._clock(), self._state["alerts"], self._state["changing"]
        for name in {*changing, *alerts, *found} - unknown:
            if (name in found) == (name in alerts):
                changing.pop(name, None)
            else:
                since = datetime.fromisoformat(changing.setdefault(name, format_instant(now)))
                # Absolute: a clock that was set back must not silence it.
                if abs((now - since).total_seconds()) < STEADY_SECONDS:
                    continue
                del changing[name]
                alerts.pop(name, None)
            if name in found:
                alerts[name] = found[name]
        return dict(alerts)

    async def ping(self) -> None:
        """Request ALERT_PING, so that a watch outside knows that all is well."""
        if self.settings.alert_ping:
            result = await self._sender.send("GET", self.settings.alert_ping, None, {})
            if not result.is_delivered:
                _log.warning("ALERT_PING: %s", result.message)

    async def _tell(
        self, way: str, bad: Mapping[str, str], before: Mapping[str, str], failure: str
    ) -> str:
        """Send a message about what changed; return why it was not sent, or an empty text."""
        subject, text = self._write(bad, before)
        if way == "mail":
            return await self._mail(subject, text)
        lines = (subject, failure and f"By mail this was not sent: {failure}", text)
        body = json.dumps({"text": "\n\n".join(filter(None, lines))}).encode()
        result = await self._sender.post(self.settings.alert_url or "", body, {})
        return "" if result.is_delivered else f"ALERT_URL: {result.message}"

    def _write(self, bad: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, str]:
        """Return subject and text of a message."""
        parts = {
            "Not well": [_explain(name, bad[name]) for name in bad if name not in before],
            "Well again": [before[name] for name in before if name not in bad],
            "Not well as before": [_explain(name, bad[name]) for name in bad if name in before],
        }
        title, (first, *more) = next((title, each) for title, each in parts.items() if each)
        rest = f" (and {len(more)} more)" if more else ""
        site = self.settings.site_url
        subject = f"{urlsplit(site).hostname}: {title.lower()}: {first.splitlines()[0]}{rest}"
        lists = [
            f"{title}:\n\n" + "\n".join(f"- {each}" for each in texts)
            for title, texts in parts.items()
            if texts
        ]
        about = (
            f"This is about {site} on the machine {platform.node()}, at "
            f"{self._clock().astimezone(UTC):%Y-%m-%d %H:%M} UTC. "
            f"There {EDGE} doctor lists all that is wrong, and what to do."
        )
        # Names of files may hold bytes that are no text.
        text = "\n\n".join((*lists, about)).encode(errors="replace").decode()
        return one_line(subject), f"{text}\n"

    async def _mail(self, subject: str, text: str) -> str:
        """Hand a message to the relay; return why it was not taken, or an empty text."""
        settings, message = self.settings, EmailMessage(policy=MESSAGE_POLICY)
        sender = parse_mailbox(settings.mail_from or settings.owner_email or "")
        message["From"] = header_address(sender)
        message["To"] = header_address(parse_mailbox(settings.owner_email or ""))
        message["Subject"] = header_subject(subject)
        message["Date"] = self._clock().astimezone(UTC)
        message["Message-ID"] = f"<{uuid4()}@{sender.domain.encode('idna').decode()}>"
        message["Auto-Submitted"] = "auto-generated"
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


def _explain(name: str, text: str) -> str:
    return f"{text}\n  What to do: {_ADVICE[name]}" if name in _ADVICE else text


def _locate_state(settings: Settings, source: Source) -> Path:
    return locate_var(settings.database_url, settings.build_dir) / f"alerts-{source}.json"


def _read_state(path: Path) -> dict[str, Any]:
    """Return the alerts, since when other checks are changing, and what each way was told."""
    empty: dict[str, Any] = {"alerts": {}, "changing": {}, "sent": {}}
    with suppress(OSError, ValueError, TypeError):
        return {**empty, **json.loads(path.read_bytes())}
    return empty


def _open_lock(state: Path, mode: str = "wb") -> IO[bytes]:
    return open(state.with_suffix(".lock"), mode, opener=partial(os.open, mode=0o600))


def is_alerted_by_edge(settings: Settings) -> bool:
    """Return whether an edge runs on this machine that tells what its own checks find."""
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
    errors = {name: str(each["error"]) for name, each in checks.items() if "error" in each}
    errors.pop(_PASSING, None)
    await asyncio.to_thread(machine.refresh)
    errors.update(machine.find_errors())
    # Readiness is public and names neither files nor causes; mail to the owner does.
    causes = {"content": publishing.held, "watcher": [publishing.failure]}
    found = {
        name: "\n  ".join(filter(None, (error, *causes.get(name, ()))))
        for name, error in errors.items()
        if error
    }
    is_well = await alerts.report(found, _NEEDS_STORE if "store" in found else frozenset())
    by_doctor = _locate_state(alerts.settings, "doctor")
    with suppress(OSError):
        if time.time() - by_doctor.stat().st_mtime < _RECENT_SECONDS:
            by_it = _read_state(by_doctor)
            is_well = is_well and not by_it["alerts"] and not by_it["changing"]
    if is_well:
        await alerts.ping()
