"""`signing-keys`: list and rotate the keys that access tokens are signed with."""

import argparse
import asyncio

from edge_api.commands import Subparsers
from edge_api.commands.listing import print_columns
from edge_api.commands.opened import opened, system_clock
from edge_api.commands.secret_key import secret_key
from edge_api.domain.oauth.signing import SigningKeys
from edge_api.settings import Settings


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command and its two parts."""
    parser = subparsers.add_parser("signing-keys", help="list and rotate the keys of tokens")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="list all keys, oldest first")
    actions.add_parser("rotate", help="publish a new key now, which signs from in an hour on")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Carry out one action. Returns 0; raises Problem."""
    asyncio.run(_act(arguments, settings))
    return 0


async def _act(arguments: argparse.Namespace, settings: Settings) -> None:
    async with opened(settings) as store:
        keys = SigningKeys(store, system_clock, secret_key(settings))
        if arguments.action == "rotate":
            print(await keys.rotate())
            return
        lines = [(row["id"], row["active_from"][:19] + "Z") for row in await keys.rows()]
        print_columns([("KEY", "SIGNS FROM"), *lines])
