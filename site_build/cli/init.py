"""`init`: make a journal in a folder, with content of its own or that of a Pelican site."""

import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

from click import Argument, Option

from edge_api.schema.commands import FOLDER, PATH, Arguments
from site_build.addresses import SUFFIXES
from site_build.cli import run as run_command
from site_build.cli.terminal import open_console
from site_build.errors import BuildError
from site_build.text import write_instant

_STARTER = Path(__file__).resolve().parents[1] / "starter"
_FILES = {"pelicanconf.py": "settings.txt", ".env": "env.txt", ".gitignore": "gitignore.txt"}
_CONTENT = {
    "content/pages/about.md": "about.md",
    "content/pages/contact.md": "contact.md",
    "content/posts/the-first-post.md": "post.md",
}
"""What is made, and of which files of `starter/`."""


class PelicanSite(NamedTuple):
    """What is taken from a site, and sentences about what is not."""

    content: Path
    pages: str
    """The folder of pages within it."""
    origin: str
    settings: Mapping[str, object]
    omissions: list[str]


PARAMS: Final = (
    Argument(["folder"], type=PATH, metavar="DIR", help="folder of the journal"),
    Option(
        ["--from-pelican"],
        type=FOLDER,
        metavar="DIR",
        help="take content and settings of the Pelican site in this folder",
    ),
    Option(["--run"], is_flag=True, help="run the journal afterwards"),
    *run_command.PARAMS,
)


def run(arguments: Arguments) -> int:
    """Make the journal and print what it has; raises BuildError, and leaves what is there."""
    folder, source = arguments.folder, arguments.from_pelican
    site = None
    if source:
        from site_build.cli.from_pelican import read_site  # noqa: PLC0415  it takes half a second

        site = read_site(source)
    try:
        made = _make(folder, site)
    except OSError as error:
        raise BuildError(f"{error.filename or folder} cannot be used: {error.strerror}") from error
    console = open_console()
    console.print(f"{folder} is a journal: {', '.join(made)}")
    if site:
        console.print(f"taken over: {', '.join(site.settings)}")
        for sentence in site.omissions:
            console.print(f"not taken over: {sentence}")
    if not arguments.run:
        console.print(f"next: cd {folder} && fore-edge run")
        return 0
    os.chdir(folder)
    return run_command.run(arguments)


def _make(folder: Path, site: PelicanSite | None) -> list[str]:
    """Write all files; return their names. Raises BuildError and OSError."""
    files = _FILES | ({} if site else _CONTENT)
    if site and folder.resolve().is_relative_to(site.content):
        raise BuildError(f"{folder} is within the content of the site; choose another folder")
    if site and not any(each.suffix in SUFFIXES for each in site.content.rglob("contact.*")):
        files[f"content/{site.pages}/contact.md"] = "contact.md"
    names = ["content", *files] if site else list(files)
    if taken := [name for name in names if os.path.lexists(folder / name)]:
        raise BuildError(
            f"{folder} already has {', '.join(taken)}; choose another folder, or move them away"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if site:
        ignored = shutil.ignore_patterns(".*", "__pycache__")
        shutil.copytree(site.content, folder / "content", ignore=ignored)
    title = folder.resolve().name.replace("-", " ").replace("_", " ").strip().capitalize()
    settings = site.settings if site else {"SITENAME": title, "AUTHOR": title}
    origin = site.origin if site else ""
    values = {
        "settings": "\n".join(f"{name} = {value!r}" for name, value in settings.items()),
        "origin": f"SITE_URL={origin}" if origin else "# SITE_URL=https://journal.example",
        "date": write_instant(datetime.now(UTC)),
    }
    for name, source in files.items():
        text = Template((_STARTER / source).read_text(encoding="utf-8"))
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        flags, mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if name == ".env" else 0o666
        with os.fdopen(os.open(path, flags, mode), "w", encoding="utf-8") as file:
            file.write(text.substitute(values))
    return names
