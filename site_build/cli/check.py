"""`check`: every defect of the content, and nothing written but the cache of the builds."""

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from site_build import options
from site_build.build.fingerprint import fingerprint_code
from site_build.cache import locate_cache
from site_build.cli.terminal import count, open_console, print_findings
from site_build.content.library import check_content
from site_build.errors import BuildError
from site_build.markup.convert import Dialect
from site_build.parallel import count_processors


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    options.add(parser, settings, "content", "output", "now", "strict", "jobs")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return 1 when they would stop a build."""
    now = arguments.now or datetime.now(UTC)
    try:
        jobs = arguments.jobs or count_processors()
        content, cache = arguments.content, locate_cache(arguments.output)
        dialect = find_dialect(content)
        files, findings = check_content(content, now, jobs, dialect, cache, fingerprint_code())
    except BuildError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    console = open_console()
    print_findings(console, arguments.content, findings)
    errors = sum(each.severity == "error" for each in findings)
    warnings = count(len(findings) - errors, "warning")
    console.print(f"{count(files, 'file')}: {count(errors, 'error')}, {warnings}")
    return int(bool(findings if arguments.strict else errors))


def find_dialect(content: Path) -> Dialect:
    """Return how the site's settings have texts read; raises BuildError."""
    if not content.is_dir():
        return Dialect()  # Whoever reads the folder says that it is not there.
    from site_build.pelican_plugin import settings  # noqa: PLC0415  it takes half a second

    return settings.read_dialect(settings.load_settings(content))
