"""`tools/replay`: plays the walks, and compares them with the recording or records them anew."""

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.replay.coverage import missed_operations, missed_problems
from tests.replay.player import FEWEST, Performance, engine_for, play
from tests.replay.recording import ENGINES, FOLDER, Recording, differences, read_recording


def main(words: Sequence[str]) -> int:
    """Return the exit code: 1 where an answer differs, or where something was not reached."""
    options = _parser().parse_args(words)
    engines = ENGINES if options.engine is None or options.record else (options.engine,)
    with TemporaryDirectory(prefix="fore-edge-replay-") as folder:
        recording = Recording(FOLDER) if options.record else None
        found = {name: _play(name, Path(folder), options.only, recording) for name in engines}
    failed = False
    if recording and not options.only:
        recording.keep([walk for each in found.values() for walk in each.played])
    for name, performance in found.items():
        recorded = {
            walk: entries
            for walk, entries in read_recording(FOLDER, name).items()
            if options.only in walk
        }
        different = differences(recorded, performance.played)
        for difference in different:
            _say(f"{name}: {difference}")
        _say(f"{name}: {performance.count} pairs, {len(different)} differences")
        failed = failed or bool(different)
        if not options.only:
            failed = not _is_whole(performance) or failed
    return int(failed)


def _play(name: str, folder: Path, only: str, recording: Recording | None) -> Performance:
    started = time.monotonic()
    (folder / name).mkdir()
    with engine_for(name) as engine:
        saving = {"on_end": partial(recording.save, name)} if recording else {}
        performance = play(engine, folder / name, folder / "builds", only, **saving)
    _say(f"{name}: played in {time.monotonic() - started:.0f} s")
    return performance


def _is_whole(performance: Performance) -> bool:
    """Return whether enough was played, and every operation was reached; say what was not."""
    missed = missed_operations(performance.operations, performance.played)
    for operation in missed:
        _say(f"no walk succeeds with {operation}: add one to tests/replay/walks/")
    _say(f"problems that no walk meets: {', '.join(missed_problems(performance.played)) or 'none'}")
    return not missed and performance.count >= FEWEST


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tools/replay",
        description="Send the recorded requests to the edge on both engines, print each answer "
        "that differs from the recording, and exit with 1 if one does.",
        epilog="example: tools/replay --engine sqlite --only oauth",
    )
    parser.add_argument("--record", action="store_true", help="write the recording anew")
    parser.add_argument("--engine", choices=ENGINES, help="the only engine (default: both)")
    parser.add_argument("--only", default="", metavar="TEXT", help="walks with TEXT in their name")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
