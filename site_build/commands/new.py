"""`new`: a post is started as a draft."""

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from site_build import arguments as options
from site_build.reading.scaffold import ScaffoldError, start_post
from site_build.terminal import open_console


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    parser.add_argument("title", type=options.read_title, metavar="TITLE", help="title of the post")
    options.add_content(parser, settings)
    parser.add_argument(
        "--date",
        type=options.read_instant,
        metavar="INSTANT",
        help="date of the post, in UTC (default: now)",
    )
    parser.add_argument(
        "--tags", type=options.read_tags, default=(), metavar='"A, B"', help="comma-separated"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the file and print its path; return 2 when it cannot be."""
    date = arguments.date or datetime.now(UTC)
    try:
        path = start_post(arguments.content, arguments.title, date, arguments.tags)
    except ScaffoldError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    open_console().print(f"{path} is started, as a draft")
    return 0
