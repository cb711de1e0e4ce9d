"""What whoever starts the edge at a terminal is told: where to look, and with which key."""

from edge_api.commands.assembly import Assembly
from edge_api.commands.development_key import development_key, development_key_path
from edge_api.commands.opened import system_clock
from edge_api.schema.relay_address import MailFolder, parse_relay
from edge_api.settings import is_loopback


async def greet(assembly: Assembly, host: str, port: int) -> None:
    """Tell the person at the terminal where to look, and with which key.

    A key with every scope is only made where this machine alone can use it.
    """
    service = assembly.service
    print(f"serving {service.settings.site_url} on http://{host}:{port}", flush=True)
    if service.settings.smtp_url:
        relay = parse_relay(service.settings.smtp_url)
        if isinstance(relay, MailFolder):
            print(f"mail is not sent: it lies in {relay.path}/new", flush=True)
    if service.shelf.trouble:
        print(f"the journal: {service.shelf.trouble}", flush=True)
    if service.settings.is_loopback and is_loopback(host):
        path = development_key_path(service.settings)
        key = await development_key(service.store, path, system_clock)
        print(f"development key (all scopes, this machine only): {key}", flush=True)
