"""The commands of the site build: `python -m site_build check | new | build`.

It wires options to what does the work, prints what came of it and turns it into an exit status:
0 when all is well, 1 when the content is not, 2 when the command was not understood.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from site_build.arguments import make_parser, read_settings
from site_build.check import check_content
from site_build.faults import BuildError
from site_build.scaffold import ScaffoldError, start_post
from site_build.spread import count_processors
from site_build.terminal import count, open_console, print_findings


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit status."""
    options = make_parser(read_settings()).parse_args(words)
    commands: dict[str, Callable[[Namespace], int]] = {"check": _check, "new": _new}
    try:
        return commands[options.command](options)
    except BuildError as refusal:
        return _refuse(str(refusal), refusal.exitcode)
    except KeyboardInterrupt:
        return 130


def _check(options: Namespace) -> int:
    now = options.now or datetime.now(UTC)
    try:
        report = check_content(options.content, now, options.jobs or count_processors())
    except OSError as refusal:
        return _refuse(f"the content folder {options.content} cannot be read: {refusal.strerror}")
    console = open_console()
    print_findings(console, options.content, report.findings)
    errors, warnings = report.count("error"), report.count("warning")
    console.print(
        f"{count(report.files, 'file')}: {count(errors, 'error')}, {count(warnings, 'warning')}"
    )
    return int(report.stops(strict=options.strict))


def _new(options: Namespace) -> int:
    date = options.date or datetime.now(UTC)
    try:
        path = start_post(options.content, options.title, date, options.tags)
    except ScaffoldError as refusal:
        return _refuse(str(refusal))
    open_console().print(f"{path} is started, as a draft")
    return 0


def _refuse(sentence: str, status: int = 2) -> int:
    sys.stderr.write(f"python -m site_build: {sentence}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
