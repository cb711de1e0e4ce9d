"""Says what an import left out and changed: for people in Markdown, for programs in JSON."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from site_build.importers.imported import Finding, Imported
from site_build.importers.plan import Summary
from site_build.importers.writer import REPORT

MARKDOWN: Final = "import-report.md"
MOST: Final = 10
"""Places of one kind that are listed for people."""


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
    counts = summary._asdict() | {
        "members": len(imported.members),
        "comments": len(imported.comments),
    }
    data = {
        "system": imported.system,
        **counts,
        "kept": kept,
        "findings": [asdict(each) for each in imported.findings],
        "digests": digests,
    }
    lines = [f"# What came over from {imported.system}", "", f"{describe(summary)}.", ""]
    lines += [
        f"- {len(value) if isinstance(value, list) else value:,} {name}"
        for name, value in counts.items()
    ]
    for kind, heading in (("left out", "Left out"), ("changed", "Changed")):
        groups = defaultdict[tuple[str, str], list[Finding]](list)
        for each in imported.findings:
            if each.kind == kind:
                groups[re.sub("`[^`]*`|'[^']*'|[0-9]+", "…", each.what), each.fix].append(each)
        lines += ["", f"## {heading}"] if groups else []
        for (what, fix), found in sorted(groups.items()):
            lines += ["", f"{what[:1].upper()}{what[1:]} ({len(found):,}); {fix}:", ""]
            places = (
                f"`{e.source}{f':{e.line}' if e.line else ''}`: " if e.source else "" for e in found
            )
            lines += [f"- {place}{e.what}" for place, e in zip(places, found[:MOST], strict=False)]
            lines += [f"- and {len(found) - MOST:,} more, in {REPORT}"] if len(found) > MOST else []
    for heading, names in (
        ("Addresses that nothing answers", summary.missing),
        ("Files that you changed or removed, and that stayed so", kept),
    ):
        lines += ["", f"## {heading}", "", *(f"- `{name}`" for name in names)] if names else []
    return {
        MARKDOWN: ("\n".join(lines) + "\n").encode(),
        REPORT: json.dumps(data, ensure_ascii=False, indent=1).encode(),
    }
