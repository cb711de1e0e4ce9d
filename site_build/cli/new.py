"""`new`: starts a post as a draft, a new file with a valid head. No file is overwritten."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import yaml
from click import Argument, Option

from edge_api.schema.commands import Arguments, parameter_type
from site_build.cli.check import find_dialect
from site_build.cli.terminal import open_console
from site_build.content.document import read_document
from site_build.content.edits import STARTED_COMMENT
from site_build.content.kept import find_slug
from site_build.content.sources import list_folder, read_bytes
from site_build.errors import BuildError
from site_build.options import CONTENT, INSTANT, read_tags, read_title
from site_build.text import fold, make_slug

_CHOOSE = "choose another title"


PARAMS: Final = (
    Argument(["title"], type=parameter_type(read_title), help="title of the post"),
    *CONTENT,
    Option(
        ["--date"],
        type=INSTANT,
        metavar="INSTANT",
        help="date of the post, in UTC (default: now)",
    ),
    Option(
        ["--tags"],
        type=parameter_type(read_tags),
        default="",
        metavar='"A, B"',
        help="comma-separated",
    ),
)


def run(arguments: Arguments) -> int:
    """Write the file and print its path. Raises BuildError."""
    path = start_post(
        arguments.content,
        arguments.title,
        arguments.date or datetime.now(UTC),
        arguments.tags,
        is_started=not arguments.date,
    )
    open_console().print(f"{path} is started, as a draft")
    return 0


def start_post(
    content: Path,
    title: str,
    date: datetime,
    tags: Sequence[str] = (),
    *,
    is_started: bool = False,
) -> Path:
    """Write a draft dated `date` (UTC) and return its path; raises BuildError and leaves no file.

    With `is_started`, the file notes that `post publish` is to replace the date.
    """
    title = " ".join(title.split())
    slug = make_slug(title) or f"post-{date:%Y-%m-%d}"
    rules = find_dialect(content).rules
    name = f"{next(iter(rules.posts), '') or 'posts'}/{slug}.md"
    dump = partial(yaml.safe_dump, allow_unicode=True, width=sys.maxsize)  # adds quotes if needed
    title_and_slug = dump({"title": title, "slug": slug}, default_flow_style=False, sort_keys=False)
    tag_line = dump({"tags": list(tags)}, default_flow_style=None)
    date_line = f"date: {date:%Y-%m-%dT%H:%M:%SZ}{STARTED_COMMENT if is_started else ''}\n"
    text = f"---\n{title_and_slug}{date_line}{tag_line}description:\nstatus: draft\n---\n\n"
    _, findings = read_document(name, text.encode(), rules)
    if faults := [finding.message for finding in findings if finding.severity == "error"]:
        raise BuildError("; ".join(faults), 2)
    try:
        for path in list_folder(content, rules).sources:
            raw = read_bytes(content, path)
            head_slug = find_slug(raw)  # without one the whole head is read, which takes longer
            found = None if head_slug else read_document(path, raw, rules)[0]
            is_taken = fold(found.slug if found else head_slug) == slug
            if is_taken and not rules.is_page(path):
                raise BuildError(f"{content / path} has the slug {slug} already; {_CHOOSE}", 2)
        (content / name).parent.mkdir(exist_ok=True)
        with (content / name).open("x", encoding="utf-8", newline="\n") as file:
            try:
                file.write(text)
            except OSError:
                (content / name).unlink()
                raise
    except FileExistsError:
        raise BuildError(f"{content / name} exists already; {_CHOOSE}", 2) from None
    except OSError as refusal:
        place = refusal.filename or content
        raise BuildError(f"{place} cannot be written or read: {refusal.strerror}", 2) from None
    return content / name
