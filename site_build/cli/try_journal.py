"""`try`: shows a journal of another system as it would be here, and leaves its folder alone."""

import os
import signal
import subprocess
import sys
import time
import webbrowser
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from socket import create_server
from tempfile import TemporaryDirectory
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from click import Argument, IntRange, Option

from edge_api.schema.commands import PATH, Arguments
from site_build.cli.init import IMPORT_OPTIONS, import_journal
from site_build.cli.terminal import open_console
from site_build.errors import BuildError
from site_build.importers.writer import MOST_LISTED
from site_build.parallel import count_processors
from site_build.progress import Observer

PARAMS = (
    Argument(["source"], type=PATH, metavar="PATH", help="the journal: a folder, or an export"),
    *IMPORT_OPTIONS,
    Option(["--keep"], type=PATH, metavar="DIR", help="make it the journal in this new folder"),
    Option(
        ["--port"],
        type=IntRange(0, 65_535),
        default=0,
        metavar="P",
        help="port of this machine (default: a free one)",
    ),
    Option(["--no-browser"], is_flag=True, help="do not open it in the browser"),
)


def run(arguments: Arguments) -> int:
    """Show the journal until a signal ends it. Raises BuildError."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit())
    with TemporaryDirectory(prefix="fore-edge-try-") as place:
        folder = (
            arguments.keep or Path(place, arguments.source.resolve().stem or "journal")
        ).absolute()
        if os.path.lexists(folder):
            raise BuildError(f"{folder} is there already; choose a new folder")
        # Set before that file exists, since modules that are imported later read the variable.
        os.environ["PELICAN_SETTINGS"] = str(folder / "pelicanconf.py")
        try:
            return _show(folder, arguments)
        except OSError as error:
            raise BuildError(
                f"{error.filename or f'port {arguments.port}'} cannot be used: "
                f"{os.strerror(error.errno or 0)}"
            ) from error


def _show(folder: Path, arguments: Arguments) -> int:
    """Import, build and serve the journal, and print a summary; return the server's status."""
    from site_build.releases.release import (  # noqa: PLC0415  slow: imports Pelican
        BuildOptions,
        build,
    )

    console = open_console()
    with create_server(("127.0.0.1", arguments.port)) as probe:
        origin = f"http://127.0.0.1:{probe.getsockname()[1]}"
    summary, lines = import_journal(folder, arguments.source, arguments)
    os.chdir(folder)
    with Observer(console) as observer:
        options = BuildOptions(
            content=Path("content"),
            output=Path("build"),
            site_url=origin,
            now=datetime.now(UTC),
            jobs=count_processors(),
            observer=observer,
        )
        held = {each.path for each in build(options).held}
    with subprocess.Popen(  # noqa: S603  a fixed command
        (sys.executable, "-m", "edge_api", "serve", "--port", origin.rpartition(":")[2]),
        # The environment is left out, since it may have settings of another journal.
        env={"SITE_URL": origin, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as edge:
        try:
            while not _answers(f"{origin}/"):
                if edge.poll() is not None:
                    raise BuildError(f"nothing can be served at {origin}; choose another port")
                time.sleep(0.1)
            missing = [e for e in summary.addresses if not _answers(f"{origin}/{e.lstrip('/')}")]
            shown = summary._replace(
                posts=summary.posts - len(held),
                missing=missing,
                needing=sorted(held.union(summary.needing)),
            )
            then = (
                f"run: cd {folder} && fore-edge run"
                if arguments.keep
                else "it is gone; --keep DIR keeps it"
            )
            lines = [
                str(shown),
                *lines[1:],
                *(f"nothing answers: {each}" for each in missing[:MOST_LISTED]),
                f"it is at {origin}/ until you press Ctrl-C; then {then}",
            ]
            console.print("\n".join(lines))
            if not arguments.no_browser:
                webbrowser.open(origin)
            return edge.wait()
        finally:
            edge.terminate()


def _answers(url: str) -> bool:
    """Return whether a URL answers with status 200, after redirects."""
    with suppress(OSError):  # every answer that is not 200 raises one
        request = Request(quote(url, safe="/:?=&+,;@!~"), method="HEAD")  # noqa: S310  our server
        return bool(build_opener(ProxyHandler({})).open(request, timeout=10))  # without a proxy
    return False
