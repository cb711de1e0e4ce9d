"""`doctor`: what is wrong with this installation, in sentences."""

import argparse
import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path

from edge_api.commands import Subparsers
from edge_api.commands.assembly import Assembly, assemble
from edge_api.commands.development_key import DEVELOPMENT
from edge_api.domain.keys import Keys, state_of
from edge_api.schema.kinds import spell_instant
from edge_api.settings import Settings
from edge_api.store.refusal import StoreRefusal


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    subparsers.add_parser("doctor", help="say what is wrong with this installation")


def run(_arguments: argparse.Namespace, settings: Settings) -> int:
    """Print a sentence for each thing that is wrong. Returns 1 when there is one."""
    complaints = [*_files(settings), *asyncio.run(_parts(settings))]
    for complaint in complaints:
        print(f"- {complaint}")
    if not complaints:
        print("nothing is wrong")
    return 1 if complaints else 0


def _files(settings: Settings) -> Iterator[str]:
    """Look at what can be seen without opening anything."""
    if not settings.content_dir.is_dir():
        yield f"CONTENT_DIR: there is no folder {settings.content_dir}; make it or set another"
    if not (settings.build_dir / "current").exists():
        yield f"BUILD_DIR: {settings.build_dir} holds no build; run python -m site_build build"
    for path in _private_files(settings.database_path):
        if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield f"{path} can be read by others; run chmod 600 {path}"
    if not settings.is_loopback and settings.site_url.startswith("http://"):
        yield "SITE_URL is http: put a proxy that speaks https before the service"


def _private_files(database: Path) -> tuple[Path, ...]:
    return database, database.with_suffix(".key"), database.with_suffix(".dev-key")


async def _parts(settings: Settings) -> list[str]:
    """Open every part as the service would, and pass on what readiness says."""
    try:
        async with assemble(settings, create=False) as assembly:
            report = await assembly.service.health.report()
            keys = [] if settings.is_loopback else await _development_keys(assembly)
    except StoreRefusal as refusal:
        return [str(refusal)]
    return [*(check["error"] for check in report["checks"].values() if "error" in check), *keys]


async def _development_keys(assembly: Assembly) -> list[str]:
    """Find keys with every scope that were made while the site was this machine's alone."""
    service = assembly.service
    now = spell_instant(service.clock())
    rows = await Keys(service.store, service.clock).all()
    return [
        f"a development key opens everything; run python -m edge_api keys revoke {row['id']}"
        for row in rows
        if row["name"] == DEVELOPMENT and state_of(row, now) in ("valid", "rotated")
    ]
