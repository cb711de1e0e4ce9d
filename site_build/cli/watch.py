"""`watch`: builds whenever the content changes, and whenever a scheduled post is due."""

import os
import signal
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

from click import Option
from rich.console import Console

from edge_api.schema.commands import Arguments
from edge_api.schema.installed_code import InstalledCode
from site_build.build.fingerprint import SOURCES
from site_build.cli.build import make_build_options
from site_build.cli.terminal import open_console, print_findings, relay_output, with_noun
from site_build.errors import BuildError, ContentError, Diagnostic, describe_held
from site_build.options import CONTENT, JOBS, OUTPUT, SITE_URL, STRICT, read_settings
from site_build.pelican_plugin.plugin import list_sources
from site_build.progress import Observer, Report
from site_build.releases.watcher import HeartbeatThread, ReleaseEvent, watch_and_publish
from site_build.text import write_instant
from site_build.writing.process import writing

PARAMS: Final = (
    *CONTENT,
    OUTPUT,
    SITE_URL,
    STRICT,
    JOBS,
    Option(
        ["--stay"],
        is_flag=True,
        help="keep running when the installed code changes (default: exit with status 75)",
    ),
)


def run(arguments: Arguments) -> int:
    """Build and publish until SIGTERM or SIGINT, then return 0.

    Returns 75 (EX_TEMPFAIL of sysexits.h) if the installed code changes, so that a service manager
    starts the watcher again.
    """
    code = InstalledCode(*SOURCES)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = make_build_options(arguments, Observer())
    with suppress(KeyboardInterrupt), relay_output():
        sources, printer = (
            list_sources(options.content),
            EventPrinter(open_console(), options.content),
        )
        writes = read_settings().get("WRITING") == "on"
        given = (options.content, options.output, options.site_url)
        with (
            HeartbeatThread(options.output, code) as heartbeat,
            writing(*given) if writes else nullcontext(),
        ):
            watch_and_publish(options, sources, printer, heartbeat, keeps_running=arguments.stay)
        return os.EX_TEMPFAIL
    return 0


class EventPrinter:
    """Prints the events of a watcher, and findings that the previous build did not have."""

    def __init__(self, console: Console, content: Path) -> None:
        self._console, self._content = console, content
        self._known = Counter[Diagnostic]()
        """Findings of the previous build, all moved to line 1 and column 1, with counts."""
        self._placed: set[Diagnostic] = set()
        """Findings of the previous build, with their places."""

    def __call__(self, event: ReleaseEvent) -> None:
        """Print one event."""
        match event:
            case ReleaseEvent("served", Report() as report):
                said = f"{with_noun(report.posts, 'post')}{self._compare(report.findings)}"
                self._console.print(f"{report.build_id} is served, with {said}")
                if report.held:
                    self._console.print(describe_held(report.held))
            case ReleaseEvent("prepared", Report() as report):
                self._console.print(
                    f"{report.build_id} is ready for {write_instant(report.built_for)}"
                )
            case ReleaseEvent(error=ContentError() as error):
                self._compare(error.findings)
                self._console.print(f"{error}; what is served stays, until the content is fixed")
            case ReleaseEvent(error=BuildError() as error):
                self._console.print(f"{error}; what is served stays, and the build is tried again")
            case _:
                self._console.print("the installed code has changed; it runs after a new start")

    def _compare(self, findings: tuple[Diagnostic, ...]) -> str:
        """Print new findings; return a text with the numbers of new, fixed and remaining ones.

        A finding that only moved within its file is not new.
        """
        unmatched = Counter(self._known)
        new: list[Diagnostic] = []
        # Findings that did not move come first: the others of a kind have moved, or are new.
        for each in sorted(findings, key=lambda each: each not in self._placed):
            kind = each._replace(line=1, column=1)
            new += [each] if unmatched[kind] < 1 else []
            unmatched[kind] -= 1
        unmatched, assumed = +unmatched, Counter[Diagnostic]()
        if any(each.severity == "error" for each in findings):
            # With errors, some checks do not run, so missing warnings count as still there.
            assumed = Counter(
                {each: n for each, n in unmatched.items() if each.severity == "warning"}
            )
        self._placed = {*findings}
        self._known = assumed + Counter(each._replace(line=1, column=1) for each in findings)
        print_findings(self._console, self._content, new)
        left = len(findings) - len(new)
        counts = {"new": len(new), "fixed": (unmatched - assumed).total(), "left": left}
        listed = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number)
        return f"; findings: {listed}" if listed else ""
