"""A process that builds as a watcher does, with a memory, and from nothing, for lines of JSON.

A line has the instant, the folder of builds and, for the memory, the paths that have changed. The
answer says how the build was made and its name, or the error that stopped it; then its findings,
and how many files it held back.
"""

import json
import sys
from datetime import datetime
from pathlib import Path

from site_build.build.builder import SiteBuild
from site_build.build.memory import BuildMemory, RevisedBuild
from site_build.errors import BuildError
from site_build.releases.release import BuildOptions, build

MADE: list[str] = []
"""The kind of each build, in their order."""


class Memory(BuildMemory):
    """A memory that notes how its builds are made."""

    def keep(self, build: SiteBuild) -> None:
        """Keep a finished build."""
        MADE.append("revised" if isinstance(build, RevisedBuild) else "whole")
        super().keep(build)


def main() -> None:
    """Answer each line."""
    memory = Memory()
    for line in sys.stdin:
        asked = json.loads(line)
        order = BuildOptions(
            Path(asked["content"]),
            Path(asked["output"]),
            "https://journal.test",
            datetime.fromisoformat(asked["now"]),
            1,
            asked["strict"],
        )
        if asked["changed"] is not None:
            memory.note(asked["changed"])
        given = memory if asked["remembers"] else Memory()
        try:
            report = build(order, given, is_ahead=asked["ahead"])
        except BuildError as error:
            answer = ["refused", str(error), [], 0]
        else:
            found = [each for each in report.findings if "in the previous build" not in each[-1]]
            answer = [MADE[-1], report.build_id, found, len(report.held)]
        print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
