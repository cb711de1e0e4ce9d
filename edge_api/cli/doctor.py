"""`doctor`: report what is wrong with this installation."""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import suppress

from edge_api.access.service import AccessDecisions
from edge_api.app import Assembly, assemble
from edge_api.auth.keys import Keys, key_state
from edge_api.backup.files import check_dotenv_permissions, is_exposed, secret_key_path
from edge_api.backup.replica import replica_errors
from edge_api.backup.verify import report
from edge_api.cli.serve import DEVELOPMENT_KEY_NAME, development_key_path
from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.lock_file import is_outdated
from edge_api.db.types import format_instant
from edge_api.health import Health
from edge_api.settings import Settings


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--deep",
        action="store_true",
        help="restore the replica into another file, and read the newest backup whole",
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print a sentence for each error. Returns 1 if there is one."""
    service_errors, service_notes = asyncio.run(_check_service(settings))
    backup_errors, notes = report(settings, deep=arguments.deep)
    errors = [*_check_files(settings), *service_errors, *replica_errors(settings), *backup_errors]
    for error in errors:
        print(f"- {error}")
    if not errors:
        print("nothing is wrong")
    for note in (*service_notes, *notes):
        print(note)
    return 1 if errors else 0


def _check_files(settings: Settings) -> Iterator[str]:
    """Yield the errors that can be found without opening the store."""
    if not settings.content_dir.is_dir():
        yield f"CONTENT_DIR: there is no folder {settings.content_dir}; make it or set another"
    if not (settings.build_dir / "current").exists():
        yield f"BUILD_DIR: {settings.build_dir} holds no build; run python -m site_build build"
    private = [development_key_path(settings)]
    if settings.database_path:
        private = [settings.database_path, secret_key_path(settings.database_path), *private]
    for path in filter(is_exposed, private):
        yield f"{path} can be read by others; run chmod 600 {path}"
    with suppress(OSError):  # an unreadable lock means an unreadable store: see below
        if settings.database_path and is_outdated(settings.database_path.resolve()):
            yield "the installed code has changed since the edge started: restart it"
    if error := check_dotenv_permissions():
        yield error
    if not settings.is_loopback and settings.site_url.startswith("http://"):
        yield "SITE_URL is http: put a proxy that speaks https before the service"


async def _check_service(settings: Settings) -> tuple[list[str], list[str]]:
    """Open the service's parts; return the errors of its readiness, and notes."""
    try:
        async with assemble(settings, create=False) as assembly:
            checks = (await assembly.service[Health].report())["checks"]
            failure = assembly.publishing.failure
            keys = [] if settings.is_loopback else await _development_keys(assembly)
            notes = await _pending_requests(assembly)
    except StoreRefusal as refusal:
        return [str(refusal)], []
    readiness_errors = [check["error"] for check in checks.values() if "error" in check]
    builds = [f"the watcher's last build failed: {failure}"] if failure else []
    return [*readiness_errors, *builds, *keys], notes


async def _pending_requests(assembly: Assembly) -> list[str]:
    decisions = AccessDecisions(assembly.service.store, assembly.service.clock)
    count = await decisions.count_pending()
    if not count:
        return []
    what = "1 request for access waits" if count == 1 else f"{count} requests for access wait"
    return [f"{what} for a decision; run python -m edge_api requests list"]


async def _development_keys(assembly: Assembly) -> list[str]:
    """Return an error for each valid key with every scope that was made for development."""
    service = assembly.service
    now = format_instant(service.clock())
    rows = await Keys(service.store, service.clock).all()
    return [
        f"a development key opens everything; run python -m edge_api keys revoke {row['id']}"
        for row in rows
        if row["name"] == DEVELOPMENT_KEY_NAME and key_state(row, now) in ("valid", "rotated")
    ]
