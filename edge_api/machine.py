"""The machine that an edge runs on: its units, the room on its disks, and its certificate."""

import math
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from ssl import SSLContext, cert_time_to_seconds, create_default_context
from typing import Final
from urllib.parse import urlsplit

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
