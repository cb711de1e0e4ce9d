"""`serve`: the whole product in one process, or in several under a supervisor."""

import argparse
import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from edge_api.app import assemble
from edge_api.backup.private_file import complain_of_dotenv
from edge_api.cli.development_key import greet
from edge_api.cli.inherited_fds import Inheritance, add_option
from edge_api.cli.logs import configure_logging
from edge_api.cli.supervisor import Supervisor, work
from edge_api.db.email_address import MailFolder, parse_relay, read_relay
from edge_api.health import Health
from edge_api.http.server import (
    close_all,
    heed_signals,
    listen,
    raise_descriptor_limit,
    serve_until,
    start_on,
)
from edge_api.mail.messages import Refused
from edge_api.mail.transports import make_maildir
from edge_api.settings import SETTINGS, Settings

try:
    from uvloop import new_event_loop
except ImportError:  # it does not install everywhere; the stock loop does the same work
    from asyncio import new_event_loop  # type: ignore[assignment]

WORKERS_MOST: Final = 64
"""More cores than an edge was ever tried on; each worker has ten connections of the database."""
LOCAL_OWNER: Final = "owner@localhost"
"""Who is told of leads where mail only goes into a folder, and nobody is named."""

_log = logging.getLogger(__name__)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    host = "the address to listen on (default: 127.0.0.1)"
    parser.add_argument("--host", default="127.0.0.1", help=host)
    port = f"the port to listen on (default: the setting PORT, {SETTINGS['PORT'].default})"
    parser.add_argument("--port", type=_port, help=port)
    parser.add_argument(
        "--keep-mail",
        metavar="DIR",
        type=_maildir,
        help="put mail into this maildir where no SMTP_URL is set",
    )
    workers = "processes that serve; more than 1 needs PostgreSQL (default: 1)"
    parser.add_argument("--workers", type=int, default=1, help=workers)
    add_option(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until told to end. Returns 0, 1 when it could not start, 2 for wrong usage."""
    refusal = _refuse_workers(arguments.workers, settings)
    if refusal:
        sys.stderr.write(f"--workers: {refusal}\n")
        return 2
    inherited: Inheritance | None = arguments.inherited
    configure_logging(settings.log_format, inherited.number if inherited else None)
    raise_descriptor_limit()
    if inherited is None and (complaint := complain_of_dotenv()):
        _log.warning("%s", complaint)
    if arguments.workers > 1 and inherited is None:
        return asyncio.run(_supervise(arguments, settings))
    try:
        settings = _keep_mail(settings, arguments.keep_mail)
    except Refused as refused:
        sys.stderr.write(f"--keep-mail: {refused.sentence}\n")
        return 2
    serving = (
        work(inherited, arguments.host, settings) if inherited else _serve(arguments, settings)
    )
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(serving)


def _refuse_workers(count: int, settings: Settings) -> str:
    if count != 1 and settings.database_path is not None:
        return (
            "SQLite has one writer, so one process serves it; "
            "more than one worker needs PostgreSQL: set DATABASE_URL"
        )
    return "" if 1 <= count <= WORKERS_MOST else f"must be a number from 1 to {WORKERS_MOST}"


def _keep_mail(settings: Settings, relay: str | None) -> Settings:
    """Return the settings with a maildir for a relay, if they have none: mail is seen, not sent.

    The folder is made now, since whoever starts the service is told that mail lies there. Raises
    Refused.
    """
    if relay is None or settings.smtp_url is not None:
        return settings
    place = parse_relay(relay)
    assert isinstance(place, MailFolder)  # noqa: S101  the option takes nothing else
    make_maildir(place.path)
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


async def _supervise(arguments: argparse.Namespace, settings: Settings) -> int:
    """Open the sockets, which the workers inherit, and keep these; each reads the same words."""
    sockets = await _listen(arguments, settings)
    if not sockets:
        return 1
    try:
        return await Supervisor(sockets, sys.argv[1:]).run(arguments.workers)
    finally:
        close_all(sockets)


async def _listen(arguments: argparse.Namespace, settings: Settings) -> Sequence[socket.socket]:
    """Return the listening sockets; none, having said why, when there can be none."""
    host, port = arguments.host, arguments.port or settings.port
    try:
        return await listen(host, port)
    except OSError as error:
        sys.stderr.write(f"cannot listen on {host}:{port}: {_reason(error)}\n")
        return ()


async def _serve(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve in this process."""
    told = heed_signals()
    async with assemble(settings, alone=True) as assembly:
        sockets = await _listen(arguments, settings)
        if not sockets:
            return 1
        server = await start_on(assembly.app.handle, sockets)
        await greet(assembly, arguments.host, server.port)
        await serve_until(told, server, assembly.service[Health].start_draining)
    return 0


def _reason(error: OSError) -> str:
    """Return the system's words, which event loops wrap in their own; a name's fault has none."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else str(error.strerror)
