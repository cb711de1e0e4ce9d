"""Says what an import left out and changed: for people in Markdown, for programs in JSON."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final, NamedTuple

from site_build.importers.imported import Finding, Imported
from site_build.importers.writer import REPORT

MARKDOWN: Final = "import-report.md"
MOST: Final = 10
"""Places of one kind that are listed for people."""


class Summary(NamedTuple):
    """What came over, of how much."""

    posts: int
    found: int
    """Posts, those that were left out among them."""
    drafts: int
    pages: int
    answered: int
    addresses: int
    """Old addresses of what was public."""
    missing: list[str]
    """Those that nothing answers."""
    needing: list[str]
    """Files of the old journal that were changed or left out."""


def describe(summary: Summary) -> str:
    """Return the one line that says how much came over."""
    return (
        f"{summary.posts:,} of {summary.found:,} posts · {summary.answered:,} of "
        f"{summary.addresses:,} old addresses answer · {len(summary.needing):,} files need you"
    )


def write_reports(
    imported: Imported, summary: Summary, digests: Mapping[str, str], kept: Sequence[str]
) -> dict[str, bytes]:
    """Return both reports by name; `digests` are those of what was written, `kept` what was not."""
    counts = {
        "drafts": summary.drafts,
        "pages": summary.pages,
        "members": len(imported.members),
        "comments": len(imported.comments),
    }
    lines = [f"# What came over from {imported.system}", "", f"{describe(summary)}.", ""]
    lines += [f"- {number:,} {name}" for name, number in counts.items() if number]
    groups = defaultdict[tuple[str, str], list[Finding]](list)
    for each in imported.findings:
        groups[each.kind, each.fix].append(each)
    # What is missing comes first.
    for (kind, fix), found in sorted(groups.items(), reverse=True):
        lines += ["", f"## {len(found):,} {kind}: {fix}", ""]
        places = (f"`{e.source}{f':{e.line}' if e.line else ''}`: " * bool(e.source) for e in found)
        lines += [f"- {place}{e.what}" for place, e in zip(places, found[:MOST], strict=False)]
        lines += [f"- and {len(found) - MOST:,} more, in {REPORT}"] if found[MOST:] else []
    for heading, names in (
        ("Addresses that nothing answers", summary.missing),
        ("Files that you changed or removed, and that stayed so", kept),
    ):
        lines += ["", f"## {heading}", "", *(f"- `{name}`" for name in names)] if names else []
    data = {
        "system": imported.system,
        **summary._asdict(),
        **counts,
        "kept": kept,
        "findings": [asdict(each) for each in imported.findings],
        "digests": digests,
    }
    return {
        MARKDOWN: ("\n".join(lines) + "\n").encode(errors="replace"),
        REPORT: json.dumps(data, ensure_ascii=False, indent=1).encode(errors="replace"),
    }
