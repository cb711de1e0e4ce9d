"""Detects the system that a folder or a file comes from, and reads it with its importer."""

import re
from importlib import import_module
from itertools import islice, product
from pathlib import Path
from typing import Final

from site_build.addresses import MARKDOWN_SUFFIXES
from site_build.importers.imported import READING_ERRORS, Imported, UnreadableJournal

SYSTEMS: Final = ("pelican", "hugo", "jekyll", "wordpress", "ghost", "substack", "markdown")
_MARKS: Final = (
    *(
        ("markdown", name, "")
        for name in ("astro.config.*", "*eleventy*.*js", "next.config.*", ".obsidian")
    ),
    ("markdown", "config.toml", r"(?m)^base_url\s*="),  # Zola
    *(("pelican", name, "") for name in ("pelicanconf.py", "publishconf.py")),
    *(
        ("pelican", name, r"(?m)^(SITENAME|ARTICLE_URL|ARTICLE_PATHS|PAGE_PATHS)\b[^=\n]*=")
        for name in ("*.py", "*/*.py")
    ),
    *(
        ("hugo", name, "")
        for name in (
            "hugo.toml",
            "hugo.y*ml",
            "hugo.json",
            "config/_default",
            "config.toml",
            "archetypes",
        )
    ),
    *(("hugo", f"config.{kind}", "(?i)baseurl") for kind in ("yaml", "yml", "json")),
    *(("jekyll", name, "") for name in ("_config.y*ml", "_config.toml", "_posts", "source/_posts")),
    ("substack", "posts.csv", "post_id"),
    ("wordpress", "*.xml", r"wordpress\.org/export/|wxr_version"),
    ("ghost", "*.json", r'"(db|data)"\s*:\s*[\[{]'),
    ("substack", "*.zip", r"\APK"),
)
"""Systems, each with a pattern of a file's name and one of its content; the surest first."""
_EXPORTS: Final = ("*.xml", "*.json", "*.zip")
_MOST_SEARCHED: Final = 200  # folders that are searched, and files that one pattern may find


def detect(path: Path) -> tuple[str, Path]:
    """Return the name of the system, of SYSTEMS, and the folder or file to read.

    Of a folder with a single export, that export is read; the site may be one folder down.
    Raises UnreadableJournal.
    """
    inner = [] if path.is_file() else sorted(path.glob("[!._]*/"))
    for folder, (name, pattern, content) in product((path, *islice(inner, _MOST_SEARCHED)), _MARKS):
        is_named = path.is_file() and pattern in _EXPORTS and path.match(pattern)
        files = [path] if is_named else islice(folder.glob(pattern), _MOST_SEARCHED)
        found = [each for each in files if _has_content(each, content)]
        if found and (pattern not in _EXPORTS or len(found) == 1):
            return name, found[0] if pattern in _EXPORTS else folder
    if any(True for suffix in (*MARKDOWN_SUFFIXES, ".mdx") for _ in path.rglob(f"*{suffix}")):
        return "markdown", path
    raise UnreadableJournal(
        f"{path} is no journal that can be read: it should be a folder with the settings of "
        "Pelican, Hugo or Jekyll or with Markdown, or one export of WordPress (.xml), "
        "Ghost (.json) or Substack (.zip); name one of these"
    )


def read_journal(path: Path, system: str | None = None, *, trust: bool = False) -> Imported:
    """Read the journal at `path` with the importer of `system`, or of the system that is detected.

    With `trust`, the settings of a Pelican site are run. Raises UnreadableJournal.
    """
    if not path.exists():
        raise UnreadableJournal(f"there is no {path}; check the path")
    name, root = (system, path) if system else detect(path)
    module = {"markdown": "markdown_folder"}.get(name, name)
    read = getattr(import_module(f"site_build.importers.{module}"), f"read_{module}")
    try:
        imported: Imported = read(root, **({"trust": True} if trust and name == "pelican" else {}))
    except READING_ERRORS as error:
        raise UnreadableJournal(
            f"{root.name} is no journal of {name}, or it is cut ({error!r}); export "
            "it again, or unpack it and name the folder"
        ) from None
    if not imported.texts:
        raise UnreadableJournal(f"{path} has no post and no page of {imported.system}")
    return imported


def _has_content(path: Path, pattern: str) -> bool:
    """Return whether the beginning of a file matches a pattern; an empty pattern always does."""
    if not pattern or not path.is_file():
        return not pattern
    with path.open("rb") as file:
        return re.search(pattern, file.read(65_536).decode("utf-8", "replace")) is not None
