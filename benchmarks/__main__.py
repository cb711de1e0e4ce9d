"""Measures everything and writes the report; ends with 1 when a line of the table is missed.

`python -m benchmarks [--report FOLDER] [--ground FOLDER] [--posts SIZES] [PART ...]`
"""

import argparse
import importlib
import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.ground import SIZES, Ground
from benchmarks.report import FILE, find_missed, gather, write_report
from benchmarks.section import Section
from benchmarks.server import come_first

PARTS: Final = (
    "reading",
    "pages",
    "writing",
    "proxied",
    "rows",
    "waiting",
    "analyses",
    "tools",
    "workers",
    "growth",
    "build",
)
_HERE: Final = Path(__file__).resolve().parent
_REPORT: Final = _HERE / "report"


def main() -> int:
    """Measure, report, and return the exit status."""
    options = _read_options()
    come_first()
    with ExitStack() as stack:
        folder = options.ground or _make_ground(stack)
        folder.mkdir(parents=True, exist_ok=True)
        ground = Ground(folder, options.posts)
        sections = [_measure(part, ground) for part in options.parts or PARTS]
    is_whole = not options.parts and options.posts == SIZES
    write_report(options.report, sections, is_whole=is_whole)
    print(f"The report is in {options.report / FILE}.")
    missed = find_missed(gather(sections), is_whole=is_whole)
    for line in missed:
        print(f"MISSED: {line.path}: {line.name}, {line.sense} {line.wanted:g}", file=sys.stderr)
    return 1 if missed else 0


def _make_ground(stack: ExitStack) -> Path:
    """Return a folder on the project's disk: where /tmp is memory, a sync costs nothing."""
    made = tempfile.TemporaryDirectory(prefix=".bench-", dir=_HERE.parent)
    return Path(stack.enter_context(made))


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--report", type=Path, default=_REPORT, help="the folder of the report")
    parser.add_argument("--ground", type=Path, help="keep what is prepared, for another run")
    parser.add_argument(
        "--posts", type=_read_sizes, default=SIZES, help="sizes to grow through (100,1000,10000)"
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part called {', '.join(sorted(unknown))}")
    return options


def _read_sizes(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d{0,5}(,[1-9]\d{0,5})*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers, like 100,1000")
    return tuple(sorted({int(number) for number in text.split(",")}))


def _measure(part: str, ground: Ground) -> Section:
    section: Section = importlib.import_module(f"benchmarks.parts.{part}").measure(ground)
    return section


if __name__ == "__main__":
    sys.exit(main())
