"""`serve`: a preview of the content as it is in hand, drafts and scheduled posts included."""

import argparse
import asyncio
import signal
import sys
import webbrowser
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from socket import socket

from rich.console import Console

from site_build import options
from site_build.cli.build import watch_progress
from site_build.cli.terminal import count, open_console
from site_build.parallel import count_processors
from site_build.pelican_plugin.plugin import list_sources, read_dialect
from site_build.preview.server import DEFAULT_PORT, Preview, is_loopback, listen, name_origin, serve
from site_build.preview.session import PreviewSession, Problem, State, list_problems
from site_build.progress import Request

_FOLDER = ".preview"
_EVERYTHING = datetime.max.replace(tzinfo=UTC)
"""The instant for which a preview is made: by then, every post has appeared."""


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    options.add_content(parser, settings)
    options.add_output(parser, settings, "folder that keeps a cache of the preview")
    parser.add_argument(
        "--port",
        type=options.read_port,
        default=DEFAULT_PORT,
        metavar="P",
        help=f"port (default: {DEFAULT_PORT}; 0 = pick a free one)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="H",
        help="address (default: 127.0.0.1, this machine alone)",
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    options.add_jobs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the preview until a signal ends it, which is a success. Raises BuildError."""
    console = open_console()
    with closing(listen(arguments.host, arguments.port)) as listening:
        origin = name_origin(listening)
        if not is_loopback(listening):
            sys.stderr.write("other machines can reach this preview, and read drafts in it\n")
        sources = list_sources(arguments.content)
        with watch_progress(console) as observer:
            dialect = read_dialect(arguments.content, origin)
            folder = arguments.output / _FOLDER
            request = Request(
                content=arguments.content,
                site_folder=folder / "site",
                state=folder,
                before=folder,
                cache=folder / "cache.sqlite",
                now=_EVERYTHING,
                jobs=arguments.jobs or count_processors(),
                observer=observer,
            )
            stage = PreviewSession(request, dialect, sources[1:])
        chronicle = _Chronicle(console, arguments.content)
        chronicle.tell(stage.state)
        posts = count(len(stage.state.documents), "document")
        console.print(f"{posts} at {origin}/; Ctrl-C ends the preview")
        console.file.flush()
        preview = Preview(stage, arguments.content, arguments.host, chronicle.tell)
        if arguments.open:
            webbrowser.open(origin)
        asyncio.run(_serve_until_told(preview, listening, sources))
    return 0


async def _serve_until_told(preview: Preview, listening: socket, sources: list[Path]) -> None:
    ending, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ending.set)
    await serve(preview, listening, sources, ending)


@dataclass(slots=True)
class _Chronicle:
    """Prints what keeps the site from being built, once."""

    console: Console
    content: Path
    told: list[Problem] = field(default_factory=list)

    def tell(self, state: State) -> None:
        troubles = list_problems(state, "", self.content)
        if troubles == self.told:
            return
        for trouble in troubles:
            self.console.print(f"{trouble.place or 'error'}  {trouble.message}")
        if self.told and not troubles:
            self.console.print("all errors are fixed")
        self.told = troubles
        self.console.file.flush()
