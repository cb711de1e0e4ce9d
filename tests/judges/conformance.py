"""Runs the official conformance suite, and reads what it found."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.judges.node import CONFORMANCE, FOLDER, Outcome, run
from tools.judges import MODULES

# How the suite names the folder of a scenario: `<command>-<scenario>-<time>`.
_FOLDER = re.compile(r"(?:authorization-server-|server-)(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings of the suite in one scenario."""

    scenario: str
    checks: list[dict[str, Any]]

    @property
    def faults(self) -> list[str]:
        """The failed checks, each with the suite's own words."""
        return [
            f"{self.scenario}: {check['id']}: {check.get('errorMessage')}"
            for check in self.checks
            if check["status"] == "FAILURE"
        ]

    @property
    def holds(self) -> bool:
        """True if something was checked, and nothing failed."""
        return not self.faults and any(check["status"] == "SUCCESS" for check in self.checks)


def scored(revision: str) -> list[str]:
    """Return the scenarios that a revision asks of a server, as the suite has frozen them."""
    suite = MODULES / "@modelcontextprotocol" / "conformance"
    path = suite / "requirements" / f"{revision}.yaml"
    listed = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [str(name) for name in listed["server"]]


def verdicts(folder: Path) -> dict[str, Verdict]:
    """Return what a run left in a folder, by scenario."""
    found = {}
    for path in sorted(folder.rglob("checks.json")):
        named = _FOLDER.fullmatch(path.parent.name)
        assert named is not None, path
        found[named[1]] = Verdict(named[1], json.loads(path.read_text(encoding="utf-8")))
    return found


async def judge_server(
    url: str, revision: str, folder: Path, expected: str | None = None
) -> Outcome:
    """Run all that a revision asks of a server; `verdicts` reads the folder afterwards.

    `expected` is a file of failures that are expected; then any other, and any of them that passes
    after all, is a failure of the run.
    """
    options = ["--url", url, "--requirements", revision, "--output-dir", str(folder)]
    if expected is not None:
        options += ["--expected-failures", str(FOLDER / "expected" / expected)]
    return await run(CONFORMANCE, "server", *options, folder=folder)


def faults(found: Iterable[Verdict]) -> str:
    """Return all that failed, a line each."""
    return "\n".join(fault for verdict in found for fault in verdict.faults)
