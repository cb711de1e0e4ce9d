"""`list`: lists all documents, drafts, scheduled documents, or those not updated for long."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, get_args

from click import Argument, Choice, IntRange, Option
from rich.cells import cell_len

from edge_api.schema.commands import JSON, Arguments
from site_build.cli.check import find_dialect, read_sources
from site_build.cli.terminal import open_console, with_noun
from site_build.options import CONTENT, NOW
from site_build.site import UNDATED, Document
from site_build.text import shorten, write_instant

Selection = Literal["all", "drafts", "future", "stale"]


PARAMS: Final = (
    Argument(
        ["question"],
        type=Choice(get_args(Selection)),
        default="all",
        help="what to list (default: all)",
    ),
    *CONTENT,
    NOW,
    Option(
        ["--older-than"],
        type=IntRange(0, 99_999),
        default=365,
        metavar="DAYS",
        help="for stale: not updated for longer than this (default: 365)",
    ),
    JSON,
)


def run(arguments: Arguments) -> int:
    """Print the chosen documents; return 1 if files cannot be listed. Raises BuildError."""
    sources = [*read_sources(arguments.content, find_dialect(arguments.content).rules)]
    documents = [each for _, _, each, _ in sources if each]
    now = arguments.now or datetime.now(UTC)
    chosen = _choose(documents, arguments.question, now, timedelta(days=arguments.older_than))
    console = open_console()
    if arguments.json:
        facts = [
            {
                "slug": each.slug,
                "title": each.title,
                "kind": each.kind,
                "state": _name_state(each, now),
                "date": _write_date(each.published),
                "updated": _write_date(each.updated),
                "path": str(arguments.content / each.path),
            }
            for each in chosen
        ]
        console.print(json.dumps(facts, indent=2))
    elif chosen:
        lines = [("SLUG", "STATE", "TITLE", "DATE", "PATH")]
        for each in chosen:
            # For stale documents, the date of the last update is shown.
            instant = each.updated if arguments.question == "stale" else each.published
            day, path = _write_date(instant) or "-", str(arguments.content / each.path)
            lines.append((each.slug, _name_state(each, now), shorten(each.title, 50), day, path))
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = zip(line, widths, strict=True)
            padded = (cell + " " * (width - cell_len(cell)) for cell, width in cells)
            console.print("  ".join(padded).rstrip())
    else:
        console.print(
            {
                "all": "there are no posts and no pages",
                "drafts": "there are no drafts",
                "future": "nothing waits for its time",
                "stale": "nothing is stale",
            }[arguments.question]
        )
    console.file.flush()
    if unread := len(sources) - len(documents):
        sys.stderr.write(f"{with_noun(unread, 'file')} cannot be listed; run `check` to see why\n")
    return int(unread > 0)


def _name_state(document: Document, now: datetime) -> str:
    public = "hidden" if document.hidden else "published"
    return public if document.is_public_at(now) else "draft" if document.draft else "scheduled"


def _write_date(instant: datetime) -> str | None:
    """Return an instant in the form of front matter, or None for a page without a date."""
    return None if instant == UNDATED else write_instant(instant).removesuffix("T00:00:00Z")


def _choose(
    documents: Sequence[Document], question: Selection, now: datetime, age: timedelta
) -> list[Document]:
    """Return the documents that match `question` at `now` (UTC).

    All and drafts are sorted by path, future ones by their date, and stale ones, which are public
    and were not updated for longer than `age`, by their last update.
    """
    later = [each for each in documents if not each.draft and each.published > now]
    public = (each for each in documents if each.is_public_at(now))
    old = [each for each in public if now - each.updated > age and each.updated != UNDATED]
    return {
        "all": [*documents],
        "drafts": [each for each in documents if each.draft],
        "future": sorted(later, key=lambda each: (each.published, each.slug)),
        "stale": sorted(old, key=lambda each: (each.updated, each.slug)),
    }[question]
