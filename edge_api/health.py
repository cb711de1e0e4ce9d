"""Readiness: checks of the store, builds, watcher and other parts, and of the machine."""

import asyncio
import json
import logging
import math
import shutil
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from ssl import SSLContext, cert_time_to_seconds, create_default_context
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from edge_api.auth.actor import Clock
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.db.types import format_instant
from edge_api.journal.builds import BuildManager
from edge_api.schema.heartbeat import BEAT_SECONDS, Heartbeat
from edge_api.schema.index import BUILD_LOCK, CURRENT_LINK, HELD_FILE, INDEX_FILE
from edge_api.schema.installed_code import InstalledCode, list_files
from edge_api.settings import Settings

_EXPIRY_DAYS: Final = 14
"""A certificate that expires in fewer days is reported: it should have been renewed before."""
_MIN_FREE_BYTES: Final = 512 << 20
_MIN_FREE_SHARE: Final = 0.1
_TIMEOUT_SECONDS: Final = 10.0


def name_unit() -> str:
    """Return how the units of this folder's journal begin, of which `deploy --name` makes more."""
    with suppress(OSError):  # this folder may have been removed
        named = f"fore-edge-{Path.cwd().name}"
        if Path("/etc/systemd/system", f"{named}.socket").exists():
            return named
    return "fore-edge"


def check_units(shown: str) -> Iterator[str]:
    """Yield a sentence for each installed unit that `systemctl show` does not call active."""
    for block in filter(None, shown.split("\n\n")):
        unit = dict(line.split("=", 1) for line in block.strip().splitlines())
        if unit.get("LoadState") == "loaded" and unit["ActiveState"] != "active":
            name = unit["Id"]
            yield f"{name} is {unit['ActiveState']}: journalctl -u {name} says why; then restart it"


def find_folders(settings: Settings) -> Mapping[str, Path]:
    """Return the folders whose disks must have room."""
    store = settings.database_path
    folders = {"build": settings.build_dir, **({"store": store.resolve().parent} if store else {})}
    return {name: folder for name, folder in folders.items() if folder.is_dir()}


def make_context() -> SSLContext:
    """Return a TLS context that accepts an expired certificate, so that its date can be read."""
    context = create_default_context()
    context.verify_flags |= 0x200000  # X509_V_FLAG_NO_CHECK_TIME of OpenSSL
    return context


@dataclass(slots=True)
class MachineMonitor:
    """Reads the certificate at intervals, and measures the disks when asked."""

    settings: Settings
    expiry: str = ""
    """The `notAfter` of the certificate when it was last read; empty before."""

    def refresh(self) -> None:
        """Read the certificate that the public address shows; `doctor` reports why it cannot."""
        origin = urlsplit(self.settings.site_url)
        address = origin.hostname or "", origin.port or 443
        if origin.scheme == "https":
            with (
                suppress(OSError),
                socket.create_connection(address, _TIMEOUT_SECONDS) as plain,
                make_context().wrap_socket(plain, server_hostname=address[0]) as encrypted,
            ):
                self.expiry = str((encrypted.getpeercert() or {})["notAfter"])

    def find_errors(self) -> dict[str, str]:
        """Return the errors by the name of their check.

        A share of a disk counts only where others reach the site: a laptop's may be fuller.
        """
        disks, errors, is_near = {}, {}, self.settings.is_loopback
        for folder in find_folders(self.settings).values():
            usage = shutil.disk_usage(folder)
            is_low = not is_near and usage.free < usage.total * _MIN_FREE_SHARE
            if is_low or usage.free < _MIN_FREE_BYTES:
                share = f"{usage.free >> 20} MB ({usage.free * 100 // usage.total} %) are free"
                disks[folder.stat().st_dev] = f"{share} on the disk of {folder}"
        if disks:
            errors["disk"] = (
                f"{'; '.join(disks.values())}: delete old backups or other large files, or get a "
                "larger disk"
            )
        seconds = cert_time_to_seconds(self.expiry) if self.expiry else math.inf
        if (days := (seconds - time.time()) // 86400) < _EXPIRY_DAYS:
            date = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
            when = f"expires in {days:.0f} days" if days >= 0 else f"expired on {date}"
            about = f"the certificate of {self.settings.site_url}"
            advice = "run certbot renew and reload the proxy (Caddy does so itself: see its log)"
            errors["certificate"] = f"{about} {when}: {advice}"
        return errors


_log = logging.getLogger(__name__)

State = Literal["pass", "warn", "fail"]
SEVERITY: tuple[State, ...] = ("pass", "warn", "fail")
_UNTRUSTED: Final = "forwarding headers come from a peer not in TRUSTED_PROXIES"


LOG_SECONDS: Final = 30.0  # the interval at which changes of the checks are logged
CHECK_TIMEOUT_SECONDS: Final = 1.0
"""The time limit of one check: a load balancer waits for the report."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    state: State
    message: str = ""
    """The error; empty if there is none."""
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the check as readiness publishes it."""
        error = {"error": self.message} if self.message else {}
        return {"status": self.state, **error, **self.facts}


HealthCheck = Callable[[], Awaitable[Check | None]]
"""Checks one part; returns `None` where there is no such part."""


@dataclass(slots=True)
class Health:
    """Checks the parts on request; stores only what others have reported."""

    store: Store
    builds: BuildManager
    clock: Clock
    version: str
    extra_checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    """Checks of further parts, by name."""
    draining: bool = False
    """Whether the process is shutting down and only finishes the requests in progress."""
    untrusted_forwarding: bool = False
    """Whether a peer that is not a trusted proxy sent forwarding headers."""
    warnings: dict[str, str] = field(default_factory=dict)
    """The last warning of each other part, by check; empty once the part works again."""
    _logged_messages: dict[str, str] = field(default_factory=dict)

    def start_draining(self) -> None:
        """Report from now on that the process is shutting down."""
        self.draining = True

    async def report(self) -> dict[str, Any]:
        """Return the whole report; `ready` says whether requests should come here."""
        store, extra = await asyncio.gather(self._store(), self._extra_checks())
        checks = {
            "store": store,
            "index": self._index(),
            "shutdown": Check("fail", "shutting down") if self.draining else Check("pass"),
            "proxies": Check("warn", _UNTRUSTED) if self.untrusted_forwarding else Check("pass"),
            **extra,
            **{name: Check("warn", text) for name, text in self.warnings.items() if text},
        }
        status = max((check.state for check in checks.values()), key=SEVERITY.index)
        failing = [check.message for check in checks.values() if check.state == "fail"]
        return {
            "status": status,
            "ready": not failing,
            "version": self.version,
            "time": format_instant(self.clock()),
            "checks": {name: check.as_json() for name, check in checks.items()},
            **({"error": f"Not ready: {'; '.join(failing)}"} if failing else {}),
        }

    async def log_changes(self) -> None:
        """Log each check that begins to fail or passes again; store and builds log their own."""
        if (await self._store()).state != "pass":  # other checks would fail too
            return
        proxies = _UNTRUSTED if self.untrusted_forwarding else ""
        found = {name: each.message for name, each in (await self._extra_checks()).items()}
        for name, message in {"proxies": proxies, **found}.items():
            if message and not self._logged_messages.get(name):
                _log.warning("check %s: %s", name, message)
            elif self._logged_messages.get(name) and not message:
                _log.info("check %s passes again", name)
            self._logged_messages[name] = message

    async def _store(self) -> Check:
        try:
            await self.store.probe()
        except Problem:
            return Check("fail", "the store cannot be read or written")
        return Check("pass")

    async def _extra_checks(self) -> dict[str, Check]:
        found = await asyncio.gather(*map(_run_check, self.extra_checks.values()))
        return {name: check for name, check in zip(self.extra_checks, found, strict=True) if check}

    def _index(self) -> Check:
        build, error = self.builds.current, self.builds.error
        if build is None:
            return Check("fail", error)
        facts = {"build_id": build.head.build_id, "posts": build.head.count}
        if build.head.site_url != self.builds.site_url:
            return Check("fail", "the build was made for another SITE_URL", facts)
        return Check("warn" if error else "pass", error, facts)


async def _run_check(check: HealthCheck) -> Check | None:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            return await check()
    except TimeoutError:
        return Check("warn", "the check timed out")


@dataclass(slots=True)
class PublishingMonitor:
    """Checks watcher, content and code at intervals; readiness reports the last results."""

    build_dir: Path
    content_dir: Path
    clock: Clock
    installed: InstalledCode
    is_fetched: bool = False
    """Whether builds come from a bucket: there is neither content nor watcher here."""
    failure: str = ""
    """The error of the watcher's last build, for the operator alone: it may name paths."""
    held: list[str] = field(default_factory=list)
    """Errors of source files whose present text the build does not show, for the owner alone."""
    _watcher: Check = field(default_factory=lambda: Check("pass"))
    _code: Check = field(default_factory=lambda: Check("pass"))

    async def refresh(self) -> None:
        """Check the watcher's heartbeat, the content and the installed code."""
        await asyncio.to_thread(self._refresh)

    async def watcher(self) -> Check:
        """Return the last check of the watcher, or without a watcher that of the content."""
        return self._watcher

    async def code(self) -> Check:
        """Return the last check that this process runs the installed code."""
        return self._code

    async def content(self) -> Check | None:
        """Return a warning while the build does not show the present text of all source files."""
        count = len(self.held)
        files = "1 file of the content has" if count == 1 else f"{count} files of the content have"
        return Check("warn", f"{files} errors: run doctor to list them") if count else None

    def _refresh(self) -> None:
        self._code, self._watcher = _warn(self._check_code()), self._check_watcher()
        found: list[str] = []
        with suppress(OSError, ValueError):
            found = json.loads((self.build_dir / CURRENT_LINK / HELD_FILE).read_bytes())
        before, self.held = self.held, [f"not shown as it is: {each}" for each in found]
        for each in (each for each in self.held if each not in before):
            _log.warning("%s", each)

    def _check_code(self) -> Iterator[str]:
        try:
            self.installed.check()
        except OSError as error:
            yield f"the installed code cannot be read ({error.strerror})"
        if self.installed.has_changed:
            yield "the installed code has changed since this edge started: restart it"

    def _check_watcher(self) -> Check:
        if self.is_fetched:
            return Check("pass")
        try:
            beat = Heartbeat.read(self.build_dir)
        except (OSError, ValueError):
            return _warn(["the watcher's heartbeat cannot be read: restart the watcher"])
        self.failure = beat.failure if beat else ""
        try:
            return _warn(self._check_heartbeat(beat) if beat else self._check_content())
        except OSError as error:
            return _warn([f"CONTENT_DIR cannot be read ({error.strerror})"])

    def _check_heartbeat(self, beat: Heartbeat) -> Iterator[str]:
        # Absolute: a clock that was set back makes a dead watcher's heartbeat come from the future.
        if abs((self.clock() - beat.at).total_seconds()) > 3 * BEAT_SECONDS:
            yield "the watcher has not reported for more than a minute: start it again"
        elif (beat.at - beat.active_at).total_seconds() > 10 * 60:
            yield "the watcher's build has run for more than ten minutes: restart the watcher"
        if beat.failure:
            yield "the watcher's builds fail: its log and doctor say why"
        if beat.code_changed:
            yield "the installed code has changed since the watcher started: restart the watcher"

    def _check_content(self) -> Iterator[str]:
        """Warn of content newer than the build, for a watcher that writes no heartbeat."""
        if not (self.build_dir / BUILD_LOCK).exists():
            return
        try:
            built = (self.build_dir / CURRENT_LINK / INDEX_FILE).stat().st_mtime_ns
        except OSError:  # the check of the index reports a missing build
            return
        if any(found.st_mtime_ns > built for _, found in list_files(self.content_dir)):
            yield (
                "the content has changed since the served build was made: "
                "restart the watcher, or build again"
            )


def _warn(sentences: Iterator[str] | list[str]) -> Check:
    message = "; ".join(sentences)
    return Check("warn" if message else "pass", message)
