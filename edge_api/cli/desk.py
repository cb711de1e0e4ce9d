"""`desk`: print a link that signs in to the owner's pages."""

from edge_api.auth.actor import system_clock
from edge_api.auth.desk_links import DeskLinks
from edge_api.backup.files import secret_key
from edge_api.db.problems import Problem
from edge_api.open_store import command_store
from edge_api.schema.commands import Actions, Arguments
from edge_api.settings import Settings


async def print_link(links: DeskLinks) -> None:
    """Print a new link. Raises Problem."""
    print(f"desk (works once, for 15 minutes): {await links.create()}", flush=True)


ACTIONS: Actions = {"link": ("print a link that works once, for 15 minutes", "", ())}


async def run(_arguments: Arguments, settings: Settings) -> int:
    """Print a link. Returns 0; raises Problem."""
    if settings.desk == "off":
        raise Problem("invalid", "DESK is off: set it to on, and restart the edge")
    async with command_store(settings) as store:
        links = DeskLinks(store, system_clock, secret_key(settings), settings.site_url)
        await print_link(links)
    return 0
