"""Measures everything beside its peers and writes a report: `python -m benchmarks --help`."""

import argparse
import importlib
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.ground import MINUTES, SIZES, Ground
from benchmarks.report import FILE, find_missed, gather, list_promises, write_report
from benchmarks.section import Section
from benchmarks.server import come_first

PARTS: Final = (
    "reading",
    "pages",
    "counting",
    "writing",
    "proxied",
    "rows",
    "waiting",
    "analyses",
    "tools",
    "desk",
    "searching",
    "starting",
    "workers",
    "capacity",
    "growth",
    "build",
    "editing",
    "memory",
)
_HERE: Final = Path(__file__).resolve().parent
_REPORT: Final = _HERE / "report"


def main() -> int:
    """Measure, report, and return the exit status."""
    options = _read_options()
    come_first()
    # A start is measured as it is where the code is installed: with bytecode that is kept.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with ExitStack() as stack:
        folder = options.ground or _make_ground(stack)
        folder.mkdir(parents=True, exist_ok=True)
        ground = Ground(folder, options.posts, options.minutes)
        asked = options.parts or PARTS
        sections = [each for part in asked if (each := _measure(part, ground))]
    is_whole = not options.parts and options.posts == SIZES
    write_report(options.report, sections, is_whole=is_whole)
    reached = gather(sections)
    for promise in list_promises(reached):
        print(promise)
    print(f"The report is in {options.report / FILE}.")
    missed = find_missed(reached, is_whole=is_whole)
    for line in missed:
        print(f"MISSED: {line.path}: {line.name}, {line.sense} {line.wanted:g}", file=sys.stderr)
    return 1 if missed or len(sections) < len(asked) else 0


def _make_ground(stack: ExitStack) -> Path:
    """Return a folder on the project's disk: where /tmp is memory, a sync costs nothing."""
    made = tempfile.TemporaryDirectory(prefix=".bench-", dir=_HERE.parent)
    return Path(stack.enter_context(made))


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the service and the build beside their peers, and write a report. "
        "Exit with 1 if a promise of benchmarks/table.py is missed. The machine should be idle. "
        "Each line that was measured is printed with what is promised, and with nine tenths of "
        "what it reached.",
        epilog="example: %(prog)s --report /tmp/report reading waiting",
    )
    known = f"what to measure (default: all): {', '.join(PARTS)}"
    parser.add_argument("parts", nargs="*", metavar="PART", help=known)
    report = "the folder to write the report to (default: benchmarks/report)"
    parser.add_argument("--report", type=Path, metavar="DIR", default=_REPORT, help=report)
    ground = "a folder to keep sites and stores in for the next run (default: none is kept)"
    parser.add_argument("--ground", type=Path, metavar="DIR", help=ground)
    sizes = ",".join(map(str, SIZES))
    posts = f"numbers of posts to measure with, in turn (default: {sizes})"
    parser.add_argument("--posts", type=_read_sizes, metavar="N,N", default=SIZES, help=posts)
    minutes = f"of mixed load in the part memory (default: {MINUTES:g})"
    parser.add_argument("--minutes", type=_read_minutes, metavar="N", default=MINUTES, help=minutes)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part called {', '.join(sorted(unknown))}")
    return options


def _read_sizes(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d{0,5}(,[1-9]\d{0,5})*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers, like 100,1000")
    return tuple(sorted({int(number) for number in text.split(",")}))


def _read_minutes(text: str) -> float:
    if not re.fullmatch(r"\d{1,3}(\.\d+)?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes, like 20 or 0.5")
    return float(text)


def _measure(part: str, ground: Ground) -> Section | None:
    """Return the section of a part; print why there is none, and let the other parts run."""
    began = time.monotonic()
    try:
        section: Section = importlib.import_module(f"benchmarks.parts.{part}").measure(ground)
    except (SystemExit, OSError, subprocess.SubprocessError) as error:
        print(f"NOT MEASURED: {part}: {error}", file=sys.stderr)
        return None
    print(f"The part {part} took {time.monotonic() - began:.0f} s.", flush=True)
    return section


if __name__ == "__main__":
    sys.exit(main())
