"""`init`: make a journal in a folder, with content of its own or of another system's journal."""

import asyncio
import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from click import Argument, Choice, Option

from edge_api.schema.commands import PATH, Arguments
from site_build.cli import run as run_command
from site_build.cli.terminal import confirm, open_console
from site_build.errors import BuildError
from site_build.importers.detect import SYSTEMS
from site_build.importers.imported import Imported, UnreadableJournal
from site_build.importers.writer import fill_starter, write_journal
from site_build.text import write_instant

if TYPE_CHECKING:
    from site_build.importers.plan import Summary

_CONTENT = {
    "content/pages/about.md": "about.md",
    "content/pages/contact.md": "contact.md",
    "content/posts/the-first-post.md": "post.md",
}
"""What a journal of one's own begins with, and of which files of `starter/`."""

IMPORT: Final = (
    Option(
        ["--as", "system"],
        type=Choice(SYSTEMS),
        help="the system that it comes from (default: as its files say)",
    ),
    Option(
        ["--trust"],
        is_flag=True,
        help="run the settings of a Pelican site, which are a program of its owner's",
    ),
    Option(
        ["--fetch-pictures"],
        is_flag=True,
        help="fetch pictures that texts show from the old journal's own host, and that no file has",
    ),
    Option(["--yes"], is_flag=True, help="fetch them without asking"),
)
"""Options of commands that read a journal of another system."""
PARAMS: Final = (
    Argument(["folder"], type=PATH, metavar="DIR", help="folder of the journal"),
    Option(
        ["--from", "source"],
        type=PATH,
        metavar="PATH",
        help="take over the journal in this folder or export: Pelican, Hugo, Jekyll, WordPress, "
        "Ghost, Substack, or a folder of Markdown",
    ),
    Option(["--from-pelican"], type=PATH, hidden=True),
    *IMPORT,
    Option(["--run"], is_flag=True, help="run the journal afterwards"),
    *run_command.PARAMS,
)


def run(arguments: Arguments) -> int:
    """Make the journal and print what it has; raises BuildError, and leaves what is there."""
    folder, console = arguments.folder, open_console()
    source = arguments.source or arguments.from_pelican
    try:
        if source:
            from site_build.importers.report import describe  # noqa: PLC0415  as below

            arguments.system = "pelican" if arguments.from_pelican else arguments.system
            with TemporaryDirectory(prefix="fore-edge-pictures-") as pictures:
                _, summary, lines = import_journal(folder, source, arguments, Path(pictures))
            for line in [f"{folder} is a journal: {describe(summary)}", *lines]:
                console.print(line)
        else:
            console.print(f"{folder} is a journal: {', '.join(_start(folder))}")
    except OSError as error:
        raise BuildError(f"{error.filename or folder} cannot be used: {error.strerror}") from error
    if not arguments.run:
        console.print(f"next: cd {folder} && fore-edge run")
        return 0
    os.chdir(folder)
    return run_command.run(arguments)


def import_journal(
    folder: Path, source: Path, arguments: Arguments, pictures: Path
) -> tuple[Imported, "Summary", list[str]]:
    """Make a journal of one of another system; return that, what came over, and more to print.

    Pictures that are fetched are put into `pictures`. Raises BuildError and OSError.
    """
    # They take half a second, as they import Pelican.
    from site_build.importers import detect, plan, report  # noqa: PLC0415
    from site_build.importers.pictures import fetch_pictures  # noqa: PLC0415

    if folder.resolve().is_relative_to(source.resolve()):
        raise BuildError(
            f"{folder} is within {source}, which stays as it is; choose another folder"
        )
    try:
        imported = detect.read_journal(source, arguments.system, trust=arguments.trust)
        if arguments.fetch_pictures:
            agrees = partial(confirm, open_console(), is_agreed=arguments.yes)
            asyncio.run(fetch_pictures(imported, pictures, agrees))
        planned = plan.plan_journal(imported, _name(folder))
    except UnreadableJournal as refusal:
        raise BuildError(str(refusal)) from refusal
    summary, left = plan.compare(imported, planned), list[str]()

    def make_reports(digests: dict[str, str], kept: list[str]) -> dict[str, bytes]:
        left.extend(kept)
        return report.write_reports(imported, summary, digests, kept)

    write_journal(folder, planned.files, make_reports)
    more = len(summary.needing) - report.MOST
    lines = [
        *(f"needs you: {each}" for each in summary.needing[: report.MOST]),
        *([f"and {more:,} more"] if more > 0 else []),
        *(f"stays as you left it: {each}" for each in left[: report.MOST]),
        *([f"{len(imported.members):,} members are in members.csv"] if imported.members else []),
        *(
            [f"{len(imported.comments):,} comments are in comments.json"]
            if imported.comments
            else []
        ),
        f"what was left out and changed: {folder / report.MARKDOWN}",
    ]
    return imported, summary, lines


def _name(folder: Path) -> str:
    return folder.resolve().name.replace("-", " ").replace("_", " ").strip().capitalize()


def _start(folder: Path) -> list[str]:
    """Write a journal of one's own; return the names of its files."""
    title = _name(folder)
    files = {
        "pelicanconf.py": fill_starter(
            "settings.txt", settings=f"SITENAME = {title!r}\nAUTHOR = {title!r}"
        ),
        ".env": fill_starter("env.txt", origin="# SITE_URL=https://journal.example"),
        ".gitignore": fill_starter("gitignore.txt"),
    }
    now = write_instant(datetime.now(UTC))
    files |= {name: fill_starter(source, date=now) for name, source in _CONTENT.items()}
    write_journal(folder, files)
    return list(files)
