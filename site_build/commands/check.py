"""`check`: every defect of the content, and nothing written."""

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from site_build import arguments as options
from site_build.incremental.spread import count_processors
from site_build.reading.check import check_content
from site_build.terminal import count, open_console, print_findings


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    options.add_content(parser, settings)
    options.add_instant(parser)
    options.add_judgement(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return 1 when they would stop a build."""
    now = arguments.now or datetime.now(UTC)
    try:
        report = check_content(arguments.content, now, arguments.jobs or count_processors())
    except OSError as refusal:
        sys.stderr.write(
            f"the content folder {arguments.content} cannot be read: {refusal.strerror}\n"
        )
        return 2
    console = open_console()
    print_findings(console, arguments.content, report.findings)
    errors, warnings = report.count("error"), report.count("warning")
    console.print(
        f"{count(report.files, 'file')}: {count(errors, 'error')}, {count(warnings, 'warning')}"
    )
    return int(report.stops(strict=arguments.strict))
