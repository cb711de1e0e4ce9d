"""`init`: makes a journal in a folder, with first texts or the content of another system."""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from click import Argument, Choice, Option, UsageError

from edge_api.schema.commands import PATH, Arguments
from site_build.cli import run as run_command
from site_build.cli.terminal import confirm, open_console
from site_build.errors import BuildError
from site_build.importers.detect import SYSTEMS, read_journal
from site_build.importers.writer import (
    MOST_LISTED,
    READABLE_REPORT,
    STARTER,
    Summary,
    fill_starter,
    write_journal,
)
from site_build.text import write_instant

IMPORT_OPTIONS: Final = (
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
        ["--from", "--from-pelican", "source"],
        type=PATH,
        metavar="PATH",
        help="take over the journal in this folder or export: Pelican, Hugo, Jekyll, WordPress, "
        "Ghost, Substack, or a folder of Markdown",
    ),
    *IMPORT_OPTIONS,
    Option(["--demo"], is_flag=True, help="make a demonstration, with made-up texts and people"),
    Option(["--run"], is_flag=True, help="run the journal afterwards"),
    *run_command.PARAMS,
)


def run(arguments: Arguments) -> int:
    """Make the journal and print its files; raises BuildError. No file is overwritten."""
    folder, source, console = arguments.folder, arguments.source, open_console()
    if source and arguments.demo:
        raise UsageError("Give at most one of --from, --demo.")
    write = _write_demo if arguments.demo else _write_new_journal
    try:
        lines = import_journal(folder, source, arguments)[-1] if source else write(folder)
    except OSError as error:
        raise BuildError(f"{error.filename or folder} cannot be used: {error.strerror}") from error
    console.print("\n".join(lines))
    if not arguments.run:
        console.print(f"next: cd {folder} && fore-edge run")
        return 0
    os.chdir(folder)
    return run_command.run(arguments)


def import_journal(folder: Path, source: Path, arguments: Arguments) -> tuple[Summary, list[str]]:
    """Make a journal from one of another system; return a summary, and lines to print.

    Raises BuildError and OSError.
    """
    # These imports take half a second, since they load Pelican and aiohttp.
    from site_build.importers.pictures import fetch_pictures  # noqa: PLC0415
    from site_build.importers.plan import plan_journal, summarize  # noqa: PLC0415

    if folder.resolve().is_relative_to(source.resolve()):
        raise BuildError(
            f"{folder} is within {source}, which stays as it is; choose another folder"
        )
    with TemporaryDirectory(prefix="fore-edge-pictures-") as pictures:
        imported = read_journal(source, arguments.system, trust=arguments.trust)
        if arguments.fetch_pictures:
            agrees = partial(confirm, open_console(), assume_yes=arguments.yes)
            asyncio.run(fetch_pictures(imported, Path(pictures), agrees))
        planned = plan_journal(imported, _name_journal(folder))
        summary = summarize(imported, planned)
        kept = write_journal(folder, planned.files, (imported, summary))
    lines = [f"{folder} is a journal, from {imported.system}: {summary}"]
    for names, what in ((summary.needing, "needs you"), (kept, "stays as you left it")):
        more = [f"{len(names) - MOST_LISTED:,} more"] if names[MOST_LISTED:] else []
        lines += [f"{what}: {each}" for each in (*names[:MOST_LISTED], *more)]
    private = {"members.csv": imported.members, "comments.json": imported.comments}
    return summary, [
        *lines,
        *(
            f"{len(e):,} {name.partition('.')[0]} are in {folder / name}"
            for name, e in private.items()
            if e
        ),
        f"what was left out and changed: {folder / READABLE_REPORT}",
    ]


def _name_journal(folder: Path) -> str:
    """Return a name for the journal in a folder, from the folder's own name."""
    return folder.resolve().name.replace("-", " ").replace("_", " ").strip().capitalize()


def _write_new_journal(folder: Path) -> list[str]:
    """Write a new journal; return lines to print."""
    title, now = _name_journal(folder), write_instant(datetime.now(UTC))
    files = {
        "pelicanconf.py": fill_starter(
            "settings.txt", settings=f"SITENAME = {title!r}\nAUTHOR = {title!r}"
        ),
        ".env": fill_starter("env.txt", origin="# SITE_URL=https://journal.example"),
        ".gitignore": fill_starter("gitignore.txt"),
        "content/pages/about.md": fill_starter("about.md", date=now),
        "content/pages/contact.md": fill_starter("contact.md", date=now),
        "content/posts/the-first-post.md": fill_starter("post.md", date=now),
    }
    write_journal(folder, files)
    return [f"{folder} is a journal: {', '.join(files)}"]


def _write_demo(folder: Path) -> list[str]:
    """Write a demonstration, whose last post is of yesterday; return lines to print."""
    if os.path.lexists(folder):
        raise BuildError(f"{folder} is there already; choose a new folder for the demonstration")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    days = {f"ago_{each}": write_instant(now - timedelta(days=each)) for each in range(40)}
    days["ahead_3"] = write_instant(now + timedelta(days=3))
    names = [each.relative_to(STARTER).as_posix() for each in (STARTER / "demo").rglob("*.*")]
    files = {name.removeprefix("demo/"): fill_starter(name, **days) for name in names}
    settings = files.pop("settings.txt").decode()
    files["pelicanconf.py"] = fill_starter("settings.txt", settings=settings)
    files |= {".env": files.pop("env.txt"), ".gitignore": fill_starter("gitignore.txt")}
    write_journal(folder, files)
    return [f"{folder} is a demonstration: {len(files)} files; its people come with the first run"]
