"""`serve`: the whole product in one process."""

import argparse
import asyncio
import os
import sys
from dataclasses import replace
from typing import Final

from edge_api.commands import Subparsers
from edge_api.commands.assembly import Assembly, assemble
from edge_api.commands.clock import system_clock
from edge_api.commands.development_key import development_key, development_key_path
from edge_api.commands.logs import configure_logging
from edge_api.schema.relay_address import MailFolder, parse_relay, read_relay
from edge_api.settings import SETTINGS, Settings, is_loopback
from edge_api.web.server import heed_signals, serve_until, start

try:
    from uvloop import new_event_loop
except ImportError:  # it does not install everywhere; the stock loop does the same work
    from asyncio import new_event_loop  # type: ignore[assignment]

LOCAL_OWNER: Final = "owner@localhost"
"""Who is told of leads where mail only goes into a folder, and nobody is named."""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("serve", help="serve the journal and its API")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=_port, help="the port to listen on (default: PORT)")
    parser.add_argument(
        "--keep-mail",
        metavar="DIR",
        type=_maildir,
        help="put mail into this maildir where no SMTP_URL is set",
    )
    parser.add_argument("--workers", type=int, default=1, help="processes that serve: 1")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until told to end. Returns 0, or 1 when it could not start."""
    if arguments.workers != 1:
        sys.stderr.write(f"--workers: {_refuse_workers(settings)}\n")
        return 2
    configure_logging(settings.log_format)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_serve(arguments, _keep_mail(settings, arguments.keep_mail)))


def _refuse_workers(settings: Settings) -> str:
    if settings.database_path is None:
        return "one command serves with one process; start another edge on the same DATABASE_URL"
    return (
        "SQLite has one writer, and one process answers more than 40,000 reads a second; "
        "more than one worker needs PostgreSQL"
    )


def _keep_mail(settings: Settings, relay: str | None) -> Settings:
    """Return the settings with a maildir for a relay, if they have none: mail is seen, not sent."""
    if relay is None or settings.smtp_url is not None:
        return settings
    owner = settings.owner_email or LOCAL_OWNER
    sender = settings.mail_from or owner
    return replace(
        settings, smtp_url=relay, owner_email=owner, mail_from=sender, mail_dispatcher="on"
    )


def _maildir(text: str) -> str:
    try:
        return read_relay(f"maildir:{text}")
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no folder for mail") from None


def _port(text: str) -> int:
    try:
        return int(SETTINGS["PORT"].read(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


async def _serve(arguments: argparse.Namespace, settings: Settings) -> int:
    told = heed_signals()
    async with assemble(settings, alone=True) as assembly:
        try:
            port = arguments.port or settings.port
            server = await start(assembly.app.handle, arguments.host, port)
        except OSError as error:
            sys.stderr.write(f"cannot listen on {arguments.host}:{port}: {_reason(error)}\n")
            return 1
        await _greet(assembly, arguments.host, server.port)
        await serve_until(told, server, assembly.service.health.start_draining)
    return 0


def _reason(error: OSError) -> str:
    """Return the system's words, which event loops wrap in their own; a name's fault has none."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else str(error.strerror)


async def _greet(assembly: Assembly, host: str, port: int) -> None:
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
