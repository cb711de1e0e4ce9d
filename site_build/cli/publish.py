"""`publish`: build whenever the content changes and whenever a scheduled post is due."""

import argparse
import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType

from rich.console import Console

from edge_api.schema.installed_code import InstalledCode
from site_build import options
from site_build.build.fingerprint import SOURCES
from site_build.cli.build import make_order
from site_build.cli.terminal import count, open_console, print_findings
from site_build.errors import BuildError, ContentError, describe_held
from site_build.pelican_plugin.plugin import list_sources
from site_build.progress import Observer, Report
from site_build.releases.watcher import HeartbeatThread, ReleaseEvent, publish
from site_build.text import write_instant


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    options.add(parser, settings, "content", "output", "site-url", "strict", "jobs")
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
    ending = Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    order = make_order(arguments, Observer())
    tell = partial(_print_news, open_console(), order.content)
    try:
        sources = list_sources(order.content)
        with HeartbeatThread(order.output, code) as heart:
            publish(order, sources, tell, heart, stays=arguments.stay)
    except KeyboardInterrupt:
        if not ending.is_set():
            raise
        return 0
    return os.EX_TEMPFAIL


def _print_news(console: Console, content: Path, news: ReleaseEvent) -> None:
    match news:
        case ReleaseEvent("served", Report() as report):
            print_findings(console, content, report.findings)
            console.print(f"{report.build_id} is served, with {count(report.posts, 'post')}")
            if report.held:
                console.print(describe_held(report.held))
        case ReleaseEvent("prepared", Report() as report):
            console.print(f"{report.build_id} is ready for {write_instant(report.built_for)}")
        case ReleaseEvent(error=BuildError() as error):
            then = "and the build is tried again"
            if isinstance(error, ContentError):
                print_findings(console, content, error.findings)
                then = "until the content is fixed"
            console.print(f"{error}; what is served stays, {then}")
        case _:
            console.print("the installed code has changed; it runs after a new start")
    console.file.flush()
