"""`build`: builds the site and the posts index, and switches to the new build."""

import gc
import sys
import time
from datetime import UTC, datetime
from typing import Final

from edge_api.schema.commands import Arguments
from site_build.cli.terminal import open_console, print_findings, with_noun
from site_build.errors import HELD_STATUS, BusyError, ContentError, describe_held
from site_build.options import (
    CONTENT,
    JOBS,
    NOW,
    OUTPUT,
    SITE_URL,
    STRICT,
    require_separate_folders,
)
from site_build.parallel import count_processors
from site_build.progress import Observer, Report
from site_build.releases.release import BuildOptions, build

BUSY_TIMEOUT_SECONDS = 10.0
"""Time that a build waits for another one in the same folder."""

PARAMS: Final = (*CONTENT, OUTPUT, SITE_URL, NOW, STRICT, JOBS)


def run(arguments: Arguments) -> int:
    """Build and print the outcome; return 3 if files have errors. Raises BuildError.

    Returns 1 for content that `--strict` refuses.
    """
    began = time.monotonic()
    console = open_console()
    # The process ends after the build, so memory need not be freed: garbage collection would take
    # a seventh of the time of a build after one edit. Frozen objects are skipped at the end too.
    gc.disable()
    try:
        with Observer(console) as observer:
            report = _build_in_turn(make_build_options(arguments, observer))
    except ContentError as refusal:
        print_findings(console, arguments.content, refusal.findings)
        sys.stderr.write(f"{refusal}\n")
        return refusal.exitcode
    finally:
        gc.freeze()
    print_findings(console, arguments.content, report.findings)
    console.print(
        f"{with_noun(report.posts, 'post')}, {with_noun(report.files, 'file')}, "
        f"{report.size / 1_000_000:.1f} MB in {time.monotonic() - began:.1f} s; "
        f"{report.hits:,} of {with_noun(report.sources, 'source')} from the cache"
    )
    if report.held:
        console.print(describe_held(report.held))
    return HELD_STATUS if report.held else 0


def _build_in_turn(options: BuildOptions) -> Report:
    """Build as soon as no other build runs; raises BusyError when that takes too long."""
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            return build(options)
        except BusyError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def make_build_options(arguments: Arguments, observer: Observer) -> BuildOptions:
    """Return build options from the arguments of a command; raises BuildError."""
    require_separate_folders(arguments.content, arguments.output)
    return BuildOptions(
        content=arguments.content,
        output=arguments.output,
        site_url=arguments.site_url,
        now=getattr(arguments, "now", None) or datetime.now(UTC),
        jobs=arguments.jobs or count_processors(),
        strict=arguments.strict,
        observer=observer,
    )
