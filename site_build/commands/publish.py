"""`publish`: build whenever the content changes and whenever a scheduled post is due."""

import argparse
import os
import signal
from collections.abc import Mapping
from datetime import UTC, datetime
from types import FrameType

from rich.console import Console

from edge_api.schema.installed_code import InstalledCode
from site_build import arguments as options
from site_build.bridge.plugin import list_sources
from site_build.commands.build import add_target
from site_build.editions.edition import Order
from site_build.editions.publisher import (
    HeartbeatThread,
    News,
    Outdated,
    Prepared,
    Refused,
    Served,
    publish,
)
from site_build.faults import ContentError
from site_build.incremental.spread import count_processors
from site_build.making.recipe import SOURCES
from site_build.terminal import count, open_console, print_findings
from site_build.text import write_instant


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    options.add_content(parser, settings)
    add_target(parser, settings)
    options.add_judgement(parser)
    parser.add_argument(
        "--stay",
        action="store_true",
        help="keep running when the installed code changes (default: exit with status 75)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Publish until a signal ends it; SIGTERM, by which services are stopped, is a success.

    Returns 75 (EX_TEMPFAIL of sysexits.h) where other code is installed, for whoever starts it
    again. Raises KeyboardInterrupt for any other signal.
    """
    code = InstalledCode(*SOURCES)
    ending = _Ending()
    signal.signal(signal.SIGTERM, ending.hear)
    order = Order(
        content=arguments.content,
        output=arguments.output,
        site_url=arguments.site_url,
        now=datetime.now(UTC),
        jobs=arguments.jobs or count_processors(),
        strict=arguments.strict,
    )
    try:
        sources, tell = list_sources(order.content), _Chronicle(open_console(), order).tell
        with HeartbeatThread(order.output, code) as heart:
            publish(order, sources, tell, heart, stays=arguments.stay)
    except KeyboardInterrupt:
        if not ending.heard:
            raise
        return 0
    return os.EX_TEMPFAIL


class _Ending:
    """Remembers that SIGTERM came, and interrupts whatever goes on."""

    def __init__(self) -> None:
        self.heard = False

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        self.heard = True
        raise KeyboardInterrupt


class _Chronicle:
    """Prints what happens."""

    def __init__(self, console: Console, order: Order) -> None:
        self._console = console
        self._order = order

    def tell(self, news: News) -> None:
        match news:
            case Served(report):
                print_findings(self._console, self._order.content, report.findings)
                posts = count(report.posts, "post")
                self._console.print(f"{report.build_id} is served, with {posts}")
            case Prepared(report):
                instant = write_instant(report.built_for)
                self._console.print(f"{report.build_id} is ready for {instant}")
            case Refused(error):
                then = "and the build is tried again"
                if isinstance(error, ContentError):
                    print_findings(self._console, self._order.content, error.findings)
                    then = "until the content is mended"
                self._console.print(f"{error}; what is served stays, {then}")
            case Outdated():
                self._console.print("the installed code has changed; it runs after a new start")
        self._console.file.flush()
