"""`serve`: serves a preview of the content, drafts and scheduled posts included."""

import asyncio
import signal
import sys
import webbrowser
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from socket import socket
from typing import Final

from click import IntRange, Option
from rich.console import Console

from edge_api.schema.commands import PATH, Arguments
from site_build.cli.terminal import open_console, relay_output, with_noun
from site_build.options import CONTENT, JOBS, OUTPUT, require_separate_folders
from site_build.parallel import count_processors
from site_build.pelican_plugin.plugin import list_sources
from site_build.pelican_plugin.settings import load_settings, read_dialect
from site_build.preview.server import DEFAULT_PORT, Preview, listen, name_origin
from site_build.preview.session import PreviewSession, Problem, State, list_problems
from site_build.progress import Observer, Request

PARAMS: Final = (
    *CONTENT,
    Option(
        ["--output"],
        type=PATH,
        default=OUTPUT.default,
        metavar="DIR",
        help="folder that keeps a cache of the preview (default: BUILD_DIR, or build)",
    ),
    Option(
        ["--port"],
        type=IntRange(0, 65_535),
        default=DEFAULT_PORT,
        metavar="P",
        help=f"port (default: {DEFAULT_PORT}; 0 = pick a free one)",
    ),
    Option(
        ["--host"],
        default="127.0.0.1",
        metavar="H",
        help="address (default: 127.0.0.1, this machine alone)",
    ),
    Option(["--open"], is_flag=True, help="open it in the browser"),
    JOBS,
)


def run(arguments: Arguments) -> int:
    """Serve the preview until a signal ends it, then return 0. Raises BuildError."""
    with relay_output(), closing(listen(arguments.host, arguments.port)) as listening:
        console, origin = open_console(), name_origin(listening)
        if not ip_address(listening.getsockname()[0]).is_loopback:
            sys.stderr.write("other machines can reach this preview, and read drafts in it\n")
        sources = list_sources(arguments.content)
        with Observer(console) as observer:
            dialect = read_dialect(load_settings(arguments.content, origin))
            session = PreviewSession(make_request(arguments, observer), dialect, sources[1:])
        report = _make_reporter(console, arguments.content)
        report(session.state)
        documents = with_noun(len(session.state.documents), "document")
        console.print(f"{documents} at {origin}/; Ctrl-C ends the preview")
        preview = Preview(session, arguments.content, arguments.host, report)
        if arguments.open:
            webbrowser.open(origin)
        asyncio.run(_serve_until_signal(preview, listening, sources))
    return 0


def make_request(arguments: Arguments, observer: Observer | None = None) -> Request:
    """Return the request of a preview, with a cache in the output folder. Raises BuildError."""
    require_separate_folders(arguments.content, arguments.output)
    folder = arguments.output / ".preview"
    return Request(
        content=arguments.content,
        site_folder=folder / "site",
        state=folder,
        previous_state=folder,
        cache=folder / "cache.sqlite",
        now=datetime.max.replace(tzinfo=UTC),  # By then, every post has appeared.
        jobs=arguments.jobs or count_processors(),
        observer=observer or Observer(),
    )


async def _serve_until_signal(preview: Preview, listening: socket, sources: list[Path]) -> None:
    ending, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ending.set)
    await preview.serve(listening, sources, ending)


def _make_reporter(console: Console, content: Path) -> Callable[[State], None]:
    """Return a function that prints the problems of a state if they are new."""
    reported: list[Problem] = []

    def report(state: State) -> None:
        problems = list_problems(state, "", content)
        if problems == reported:
            return
        for problem in problems:
            console.print(f"{problem.place or 'error'}  {problem.message}")
        if reported and not problems:
            console.print("all errors are fixed")
        reported[:] = problems

    return report
