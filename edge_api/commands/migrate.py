"""`migrate`: bring the store to the present schema; `serve` does the same at its start."""

import argparse
import asyncio

from edge_api.commands import Subparsers
from edge_api.commands.opened import opened
from edge_api.schema.database_address import show_database
from edge_api.settings import Settings


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    subparsers.add_parser("migrate", help="bring the store to the present schema")


def run(_arguments: argparse.Namespace, settings: Settings) -> int:
    """Open the store, which applies the steps that are missing. Returns 0."""
    asyncio.run(_migrate(settings))
    print(
        f"{settings.database_path or show_database(settings.database_url)} is at the present schema"
    )
    return 0


async def _migrate(settings: Settings) -> None:
    async with opened(settings, create=True):
        pass
