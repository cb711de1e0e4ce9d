"""Finds out which system a folder or a file comes from, and reads it by that system's importer."""

import re
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Final

from site_build.importers.imported import Imported, UnreadableJournal

SYSTEMS: Final = ("pelican", "hugo", "jekyll", "wordpress", "ghost", "substack", "markdown")
_MODULES: Final = {"markdown": "markdown_folder"}
_EXPORTS: Final = (
    ("wordpress", "*.xml", r"wordpress\.org/export/|<wp:wxr_version"),
    ("ghost", "*.json", r'"(db|data|posts_tags)"\s*:\s*[\[{]'),
    ("substack", "*.zip", r"\APK"),
)
_SETTING: Final = r"(?m)^(SITENAME|ARTICLE_URL|ARTICLE_PATHS|PAGE_PATHS)\b[^=\n]*="
_MARKS: Final = (
    *(
        ("markdown", name, "")
        for name in ("astro.config.*", "*eleventy*.*js", "next.config.*", ".obsidian")
    ),
    ("markdown", "config.toml", r"(?m)^base_url\s*="),  # of Zola
    *(("pelican", name, "") for name in ("pelicanconf.py", "publishconf.py")),
    *(("pelican", name, _SETTING) for name in ("*.py", "*/*.py")),
    *(("hugo", name, "") for name in ("hugo.*", "config/_default", "config.toml", "archetypes")),
    *(("hugo", f"config.{kind}", "(?i)baseurl") for kind in ("yaml", "yml", "json")),
    *(("jekyll", name, "") for name in ("_config.y*ml", "_config.toml", "_posts", "source/_posts")),
    *_EXPORTS,
    ("substack", "posts.csv", "post_id"),
)
"""Systems by the names of their files, from the surest on, and what a file has to say."""
_TEXTS: Final = ("*.md", "*.markdown", "*.mdx", "*.mkd", "*.mdown")
_BEGINNING: Final = 65_536  # bytes in which an export says what it is
_MOST: Final = 200  # files of one name that are opened


def detect(path: Path) -> tuple[str, Path]:
    """Return the name of the system in SYSTEMS, and the folder or file to read.

    A folder that only holds an export is that export, and the site may be one folder down.
    Raises UnreadableJournal.
    """
    if not path.exists():
        raise UnreadableJournal(f"there is no {path}; name the folder or the export of the journal")
    if path.is_file():
        for name, pattern, says in _EXPORTS:
            if path.match(pattern) and _says(path, says):
                return name, path
        raise UnreadableJournal(
            f"{path} is no export of WordPress (.xml), Ghost (.json) or Substack (.zip); "
            "name one of these, or the folder of the journal"
        )
    inner = sorted(each for each in path.iterdir() if each.is_dir() and each.name[0] not in "._")
    for folder in (path, *islice(inner, _MOST)):
        if (found := _find_marks(folder)) is not None:
            return found
    if any(True for suffix in _TEXTS for _ in path.rglob(suffix)):
        return "markdown", path
    raise UnreadableJournal(
        f"{path} holds no journal: no settings of Pelican, Hugo or Jekyll, no export, "
        "and no Markdown; name another folder"
    )


def read_journal(path: Path, system: str = "", *, trust: bool = False) -> Imported:
    """Return what the importer of `system`, or of the system that is found, reads at `path`.

    With `trust`, the settings of a Pelican site are run. Raises UnreadableJournal.
    """
    name, root = detect(path) if not system else (system, path)
    module = import_module(f"site_build.importers.{_MODULES.get(name, name)}")
    options = {"trust": True} if trust and name == "pelican" else {}
    imported: Imported = getattr(module, f"read_{_MODULES.get(name, name)}")(root, **options)
    if not imported.texts:
        raise UnreadableJournal(f"{path} has no text that {imported.system} would publish")
    return imported


def _find_marks(folder: Path) -> tuple[str, Path] | None:
    for name, pattern, says in _MARKS:
        found = [each for each in islice(folder.glob(pattern), _MOST) if _says(each, says)]
        if (name, pattern, says) not in _EXPORTS and found:
            return name, folder
        if len(found) == 1:
            return name, found[0]
        if found:
            names = ", ".join(sorted(each.name for each in found))
            raise UnreadableJournal(f"{folder} holds several exports ({names}); name one of them")
    return None


def _says(path: Path, pattern: str) -> bool:
    """Return whether a file says at its beginning what a pattern looks for."""
    if not pattern:
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return re.search(pattern, file.read(_BEGINNING).decode("utf-8", "replace")) is not None
