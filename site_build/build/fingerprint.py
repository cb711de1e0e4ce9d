"""The site's style, and digests of the code, libraries, theme and settings that make pages.

These digests are in the keys of kept results, so that after a change of any of them everything is
made again. This module knows nothing of content.
"""

import hashlib
import json
import sys
import unicodedata
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from edge_api.schema.installed_code import add_files
from site_build.markup.convert import DEFAULT_DIALECT, Dialect
from site_build.site import Policy

if TYPE_CHECKING:
    from jinja2 import Template

_PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = (_PACKAGE, _PACKAGE.parent / "edge_api" / "schema")
"""The folders of this program's own code."""

_NOT_IN_PAGES = {
    "PATH",
    "OUTPUT_PATH",
    "CACHE_PATH",
    "THEME",
    "PLUGIN_PATHS",
    "DEBUG",
    "PORT",
    "BIND",
}
"""Settings that no page depends on: they name folders, or say how to run Pelican."""

_INSTALLED_THEME = _PACKAGE / "theme"
HOUSE_THEME = _INSTALLED_THEME if _INSTALLED_THEME.is_dir() else _PACKAGE.parent / "theme"
"""The default theme, beside the package in the repository; other themes borrow from it."""


@dataclass(frozen=True, slots=True)
class Style:
    """Everything besides the code that decides what the site looks like."""

    theme: Path
    overrides: Sequence[Path]
    """Folders whose templates replace those of the theme."""
    settings: str
    """Digest of the settings."""
    page_size: int
    """Number of posts on one page of a list."""
    policy: Policy = field(default_factory=Policy)
    budget_tiers: Sequence[str] = ()
    dialect: Dialect = DEFAULT_DIALECT
    settings_text: str = ""
    """The settings as text: a file that they name is published, even if only drafts use it."""
    rebuild_key: str = ""
    """A part of every page's key; a new value has every page made again."""


def is_fallback_template(template: "Template") -> bool:
    """Return whether a template comes from the default theme."""
    return HOUSE_THEME in Path(str(template.filename)).parents


@cache
def fingerprint_code() -> str:
    """Return the digest of this program's own sources and of the releases of all libraries.

    It includes Python's minor version, and the versions of zlib and Unicode. A patch release does
    not count: it would rebuild every page. It is computed once: the process runs what it has
    loaded, even if the files change.
    """
    # Folders such as `jinja2-3.1.6.dist-info`; reading the files in them would take much longer.
    libraries = sorted(each.name for folder in sys.path for each in Path(folder).glob("*-info"))
    python = sys.implementation.cache_tag, zlib.ZLIB_RUNTIME_VERSION, unicodedata.unidata_version
    digest = hashlib.blake2b(f"{python} {libraries}".encode(), digest_size=20)
    for folder in SOURCES:
        add_files(digest, folder, list_sources(folder))
    return digest.hexdigest()


def list_sources(folder: Path) -> list[Path]:
    """Return the Python files below a folder, and the Markdown files that they read, sorted."""
    return sorted(path for path in folder.rglob("*") if path.suffix in {".md", ".py"})


def fingerprint_theme(folders: Iterable[Path]) -> str:
    """Return the digest of all files of the theme, and of folders that replace its templates."""
    digest = hashlib.blake2b(digest_size=20)
    for folder in folders:
        add_files(digest, folder, sorted(path for path in folder.rglob("*") if path.is_file()))
    return digest.hexdigest()


def fingerprint_settings(settings: Mapping[str, object]) -> str:
    """Return the digest of the settings that are plain values."""
    # A value that JSON cannot hold, such as a function, counts by its type only.
    plain = {
        name: value
        for name, value in sorted(settings.items())
        if name not in _NOT_IN_PAGES and not name.startswith("BUILD_")
    }
    written = json.dumps(
        plain,
        default=lambda value: f"{type(value).__module__}.{type(value).__qualname__}",
        sort_keys=True,
    )
    return hashlib.blake2b(written.encode(), digest_size=20).hexdigest()
