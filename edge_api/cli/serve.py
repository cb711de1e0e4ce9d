"""`serve`: run the edge in one process, or in several under a supervisor."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from errno import EADDRINUSE
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from click import IntRange, Option, UsageError

from edge_api.app import Assembly, assemble
from edge_api.auth.actor import Clock, system_clock
from edge_api.auth.desk_links import DeskLinks
from edge_api.auth.keys import Keys, NewKey
from edge_api.backup.files import check_dotenv_permissions, write_private
from edge_api.cli.demo import fill_store
from edge_api.cli.desk import print_link
from edge_api.cli.supervisor import INHERITED_OPTION, Supervisor
from edge_api.db.errors import StoreRefusal
from edge_api.db.mail_addresses import MaildirRelay, check_relay, parse_relay
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.health import Health
from edge_api.http.logs import configure_logging
from edge_api.http.server import (
    Server,
    handle_signals,
    listen,
    listen_privately,
    raise_descriptor_limit,
    serve_until,
    start_server,
)
from edge_api.journal.builds import BuildManager
from edge_api.mail.transports import MailRefusal, make_maildir
from edge_api.metrics import MULTIPROC_DIR_VARIABLE as METRICS_FOLDER_VARIABLE
from edge_api.metrics import make_private_app
from edge_api.oauth.server import OAuthServer
from edge_api.schema.commands import Arguments, discard_output, parameter_type
from edge_api.schema.credentials import SCOPES
from edge_api.settings import SETTINGS, Settings, find_mistakes, is_loopback

try:
    from uvloop import new_event_loop
except ImportError:  # uvloop is optional: asyncio's own event loop works as well
    from asyncio import new_event_loop  # type: ignore[assignment]

DEVELOPMENT_KEY_NAME: Final = "development"  # the name of the development key in the store
DEVELOPMENT_SCOPES: Final = tuple(name for name in SCOPES if name != "posts:publish")
"""The scopes of the development key: only a person gives the one that publishes."""
SYSTEMD: Final = Path("/run/systemd/system")  # exists where systemd runs (sd_booted(3))
CLOCK_CHECK_SECONDS: Final = 60.0  # the interval; it leaves time to set the clock after a boot
_log = logging.getLogger(__name__)


def _parse_inherited(text: str) -> tuple[int, ...]:
    """Parse the value of `INHERITED_OPTION`. Raises ValueError for fewer than four numbers."""
    number, prints_startup, control, first, *more = map(int, text.split(","))
    return number, prints_startup, control, first, *more


PARAMS: Final = (
    Option(["--host"], default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)"),
    Option(
        ["--port"],
        type=parameter_type(SETTINGS["PORT"].read),
        metavar="PORT",
        help=f"the port to listen on (default: the setting PORT, {SETTINGS['PORT'].default})",
    ),
    Option(
        ["--keep-mail"],
        metavar="DIR",
        type=parameter_type(lambda text: check_relay(f"maildir:{text}")),
        help="put mail into this maildir where no SMTP_URL is set",
    ),
    Option(
        ["--desk-link"],
        is_flag=True,
        help="print a link that signs in to the desk once, where only this machine can use it",
    ),
    Option(
        ["--workers"],
        type=IntRange(1, 64),  # each has ten connections to the database
        default=1,
        help="processes that serve; more than 1 needs PostgreSQL (default: 1)",
    ),
    Option([INHERITED_OPTION], type=parameter_type(_parse_inherited), hidden=True),
)


def run(arguments: Arguments, settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT. Returns 0, 1 if it cannot start, 2 for wrong usage."""
    if arguments.workers > 1 and settings.database_path is not None:
        raise UsageError(
            "--workers: SQLite has one writer, so one process serves it; "
            "more than one worker needs PostgreSQL: set DATABASE_URL."
        )
    inherited: tuple[int, ...] | None = arguments.inherited
    configure_logging(settings.log_format, inherited[0] if inherited else None)
    raise_descriptor_limit()
    if inherited is None:
        for sentence in filter(None, (check_dotenv_permissions(), *find_mistakes(settings))):
            _log.warning("%s", sentence)
    if arguments.workers > 1 and inherited is None:
        return asyncio.run(_supervise(arguments, settings))
    try:
        settings = _with_maildir(settings, arguments.keep_mail)
    except MailRefusal as refused:
        sys.stderr.write(f"--keep-mail: {refused.message}\n")
        return 2
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        if inherited:
            return runner.run(_serve_worker(inherited, arguments, settings))
        return runner.run(_serve(arguments, settings))


def _with_maildir(settings: Settings, relay: str | None) -> Settings:
    """Return the settings with a maildir as relay, if they have no relay. Raises MailRefusal."""
    if relay is None or settings.smtp_url is not None:
        return settings
    maildir = parse_relay(relay)
    assert isinstance(maildir, MaildirRelay)  # noqa: S101  the option takes nothing else
    make_maildir(maildir.path)
    owner = settings.owner_email or "owner@localhost"
    return replace(
        settings,
        smtp_url=relay,
        owner_email=owner,
        mail_from=settings.mail_from or owner,
        mail_dispatcher="on",
    )


async def _supervise(arguments: Arguments, settings: Settings) -> int:
    """Open the sockets, and run the workers with the same command line."""
    with TemporaryDirectory(prefix="fore-edge-metrics-") as folder:
        async with _open_sockets(arguments, settings) as sockets:
            if settings.metrics == "on":
                os.environ[METRICS_FOLDER_VARIABLE] = folder
            return await Supervisor(sockets, sys.argv[1:]).run(arguments.workers)


@asynccontextmanager
async def _open_sockets(
    arguments: Arguments, settings: Settings
) -> AsyncIterator[list[socket.socket]]:
    """Open the listening sockets, the one of METRICS_SOCKET last. Raises StoreRefusal."""
    host, port, address = arguments.host, arguments.port or settings.port, settings.metrics_socket
    about, setting, fix = f"cannot listen on {host}:{port}", "PORT", "set --host"
    with ExitStack() as stack:
        try:
            sockets = await listen(host, port)
            for each in sockets:
                stack.callback(each.close)
            if address:
                about, setting = f"METRICS_SOCKET: cannot listen on {address}", "METRICS_SOCKET"
                fix = "make its folder, and let this user write there"
                sockets.append(listen_privately(address))
        except OSError as error:
            # Event loops change the system's message; a failed name lookup has no errno above 0.
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror
            fix = "end what listens there (ss -lnp names it)" if number == EADDRINUSE else fix
            raise StoreRefusal(f"{about}: {reason}; {fix}, or set another {setting}") from None
        if isinstance(address, Path):
            stack.callback(address.unlink, missing_ok=True)
        yield sockets


async def _start(assembly: Assembly, sockets: Sequence[socket.socket]) -> list[Server]:
    """Serve on sockets; return the servers, the one of METRICS_SOCKET last if it is set."""
    service, app = assembly.service, assembly.app
    with suppress(Problem):  # the store itself logs that it is unavailable
        if check := await service[Health].extra_checks["secret_key"]():
            _log.warning("%s", check.message)
        else:  # make a signing key, by which later starts check the secret key
            await service[OAuthServer].keys.signing_key()
    count = len(sockets) - (service.settings.metrics_socket is not None)
    servers = [await start_server(app.handle, sockets[:count], app.reject_malformed)]
    for private in sockets[count:]:
        app = make_private_app(service)
        servers.append(await start_server(app.handle, [private], app.reject_malformed))
    return servers


async def _serve(arguments: Arguments, settings: Settings) -> int:
    ending = handle_signals()
    if settings.demo == "on":
        filling = asyncio.create_task(fill_store(settings))
        signalled = asyncio.create_task(ending.wait())
        signalled.add_done_callback(lambda _: filling.cancel())
        await asyncio.wait([filling])
        signalled.cancel()
        if filling.cancelled():
            return 0
        filling.result()
    async with (
        assemble(settings, exclusive=True) as assembly,
        _open_sockets(arguments, settings) as sockets,
    ):
        servers = await _start(assembly, sockets)
        await print_startup(assembly, arguments, servers[0].port)
        health = assembly.service[Health]
        watching = asyncio.create_task(watch_clock(health.warnings))
        await serve_until(ending, servers, health.start_draining)
        watching.cancel()
    return 0


async def watch_clock(warnings: dict[str, str]) -> None:
    """Warn in `warnings`, and once in the log, while the clock is not synchronised."""
    while True:
        await asyncio.sleep(CLOCK_CHECK_SECONDS)
        error = await asyncio.to_thread(clock_error)
        if error and not warnings.get("clock"):
            _log.warning("%s", error)
        warnings["clock"] = error


def clock_error() -> str:
    """Return an error if systemd says that the clock is not synchronised, else an empty text."""
    is_off = (
        run_systemd_command("timedatectl", "show", "-p", "NTPSynchronized", "--value").strip()
        == "no"
    )
    return "the clock is not synchronised: run timedatectl set-ntp true" if is_off else ""


def run_systemd_command(*command: str) -> str:
    """Return the output of a command of systemd; empty if systemd does not run or answer."""
    with suppress(OSError, subprocess.TimeoutExpired):
        if SYSTEMD.is_dir():
            return subprocess.run(  # noqa: S603
                command, check=False, capture_output=True, text=True, timeout=10
            ).stdout
    return ""


async def _serve_worker(
    inherited: tuple[int, ...], arguments: Arguments, settings: Settings
) -> int:
    """Serve on the inherited sockets until SIGTERM or retirement. Returns 2 if there are none."""
    try:
        _, prints_startup, *descriptors = inherited
        for each in descriptors:
            os.set_inheritable(each, False)  # noqa: FBT003  it takes no keyword
        control, *sockets = (socket.socket(fileno=each) for each in descriptors)
        reader, writer = await asyncio.open_connection(sock=control)
    except OSError:
        sys.stderr.write("--inherited: only the supervisor of --workers gives it\n")
        return 2
    ending = handle_signals()
    async with assemble(settings, exclusive=True) as assembly:
        error = str((await assembly.service[Health].report()).get("error", ""))
        writer.write(f"{' '.join(error.splitlines())}\n".encode())
        if await _read_control(reader, 1):
            servers = await _start(assembly, sockets)
            if prints_startup:
                await print_startup(assembly, arguments, servers[0].port)
            retiring = asyncio.create_task(_stop_when_retired(reader, servers[0], ending))
            await serve_until(ending, servers, assembly.service[Health].start_draining)
            retiring.cancel()
    writer.close()
    return 0


async def _read_control(reader: asyncio.StreamReader, size: int = -1) -> bytes:
    """Return the bytes that the supervisor sends; none once it has closed its end or died."""
    with suppress(OSError):
        return await reader.read(size)
    return b""


async def _stop_when_retired(
    reader: asyncio.StreamReader, server: Server, ending: asyncio.Event
) -> None:
    """Stop accepting connections when the supervisor retires this worker.

    Accepted connections get the whole time for draining, while the next supervisor can already use
    the port.
    """
    await _read_control(reader)
    server.stop_accepting()
    ending.set()


async def print_startup(assembly: Assembly, arguments: Arguments, port: int) -> None:
    """Print the address, and the development key if only this machine can use it."""
    service, host = assembly.service, arguments.host
    # On this machine both are one address, which is printed once.
    try:
        print(
            "serving",
            " on ".join(dict.fromkeys((service.settings.site_url, f"http://{host}:{port}"))),
            flush=True,
        )
    except OSError as error:  # a full disk, or a pipe that nobody reads
        _log.warning("the standard output cannot be written (%s): it is dropped", error.strerror)
        discard_output()
    if service.settings.is_loopback and not is_loopback(host):
        print(
            f"only requests to {service.settings.site_url} are answered: set SITE_URL to the "
            "address that readers use",
            flush=True,
        )
    if port != (wanted := arguments.port or service.settings.port):
        print(f"PORT {wanted} has no effect: the socket of systemd is on {port}", flush=True)
    if service.settings.smtp_url:
        relay = parse_relay(service.settings.smtp_url)
        if isinstance(relay, MaildirRelay):
            print(f"mail is not sent: it is in {relay.path.resolve()}/new", flush=True)
    if service[BuildManager].error:
        print(f"the journal: {service[BuildManager].error}", flush=True)
    if service.settings.is_loopback and is_loopback(host):
        key = await development_key(
            service.store, development_key_path(service.settings), system_clock
        )
        print(f"development key (all but posts:publish, this machine only): {key}", flush=True)
        if arguments.desk_link and service.settings.desk == "on":
            await print_link(service[DeskLinks])


def development_key_path(settings: Settings) -> Path:
    """Return the path of the file with the development key."""
    path = settings.database_path
    return path.with_suffix(".dev-key") if path else Path("var/edge.dev-key")


async def development_key(store: Store, path: Path, clock: Clock) -> str:
    """Return the valid key in the file at `path`, or issue a key and store it there."""
    keys, stored = Keys(store, clock), _read_key(path)
    if stored and await keys.allows(stored, frozenset(DEVELOPMENT_SCOPES)):
        return stored
    issued = await keys.issue(NewKey(DEVELOPMENT_KEY_NAME, scopes=DEVELOPMENT_SCOPES))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    write_private(draft, f"{issued.secret}\n".encode("ascii"))
    draft.replace(path)  # a rename: the file is never half written or public
    return issued.secret


def _read_key(path: Path) -> str:
    """Return the key in a file, which is made private; an empty text if there is no file."""
    if not path.exists():
        return ""
    path.chmod(0o600)
    return path.read_text(encoding="ascii", errors="replace").strip()
