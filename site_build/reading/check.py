"""Checks a whole content folder: every defect of every file, before anything is built.

This is the door to `site_build.checks`; it opens files and starts processes, and prints nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from site_build.checks.cross import cross_check
from site_build.checks.examine import examine, study
from site_build.checks.ground import Facts, judge_pictures
from site_build.incremental.spread import spread
from site_build.markup.convert import HOUSE, Conversion, Dialect
from site_build.post import Document, Finding
from site_build.reading.document import read_document
from site_build.reading.folder import explain_refusal, list_content, measure_pictures, read_bytes

__all__ = ["Facts", "Inspection", "Report", "check_content", "cross_check", "examine", "inspect"]


class Inspection(NamedTuple):
    """What one source file gives by itself."""

    document: Document | None
    """None where errors forbid one."""
    facts: Facts | None
    findings: tuple[Finding, ...]
    conversion: Conversion | None = None
    """The text as HTML, where it was asked for and the text can be converted at all."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found."""

    files: int
    findings: tuple[Finding, ...]
    """Sorted by place."""

    def count(self, severity: str) -> int:
        """Return how many findings are of that severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def stops(self, *, strict: bool) -> bool:
        """Tell whether a build must not go on."""
        return bool(self.findings if strict else self.count("error"))


def check_content(folder: Path, now: datetime, jobs: int = 1, dialect: Dialect = HOUSE) -> Report:
    """Return every finding about the content in `folder` as readers would see it at `now` (UTC).

    Raises OSError when the folder itself cannot be read.
    """
    rules = dialect.rules
    listing = list_content(folder, rules)
    inspections = dict(spread(partial(inspect, folder, dialect=dialect), listing.sources, jobs))
    documents = []
    facts = {}
    findings = [*listing.findings]
    for _, inspection in sorted(inspections.items()):
        findings += inspection.findings
        if inspection.document and inspection.facts:
            documents.append(inspection.document)
            facts[inspection.document.path] = inspection.facts
    complete = len(documents) == len(listing.sources)
    findings += cross_check(documents, facts, listing.files, now, rules, complete=complete)
    album = measure_pictures(folder, listing.files, jobs)
    findings += judge_pictures(documents, facts, album, rules.list_paths(listing.files))
    return Report(len(listing.sources), tuple(sorted(findings)))


def inspect(
    folder: Path, path: str, dialect: Dialect = HOUSE, *, convert_too: bool = False
) -> Inspection:
    """Read and examine one source file; `convert_too` keeps its HTML."""
    try:
        raw = read_bytes(folder, path)
    except OSError as refusal:
        return Inspection(None, None, (explain_refusal(path, refusal),))
    document, findings = read_document(path, raw, dialect.rules)
    if document is None:
        return Inspection(None, None, tuple(findings))
    studied = study(document, dialect, convert_too=convert_too)
    return Inspection(document, studied.facts, tuple(findings), studied.conversion)
