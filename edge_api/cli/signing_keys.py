"""`signing-keys`: list and rotate the keys that access tokens are signed with."""

from edge_api.auth.actor import system_clock
from edge_api.auth.tokens import SigningKeys
from edge_api.backup.files import secret_key
from edge_api.cli import print_columns
from edge_api.open_store import command_store
from edge_api.schema.commands import Actions, Arguments
from edge_api.settings import Settings

ACTIONS: Actions = {
    "list": ("list all keys, oldest first", "", ()),
    "rotate": ("publish a new key, which signs tokens after an hour", "", ()),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0; raises Problem."""
    async with command_store(settings) as store:
        keys = SigningKeys(store, system_clock, secret_key(settings))
        if arguments.action == "rotate":
            print(await keys.rotate())
        else:
            lines = [(row["id"], row["active_from"][:19] + "Z") for row in await keys.rows()]
            print_columns([("KEY", "SIGNS FROM"), *lines])
    return 0
