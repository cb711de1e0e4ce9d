"""What `init` takes from a Pelican site: its content, its origin, and settings that fit here."""

import ast
import os
import re
from pathlib import Path
from typing import Any

from edge_api.schema.environment import read_origin
from site_build import default_settings
from site_build.cli.init import PelicanSite
from site_build.errors import BuildError
from site_build.pelican_plugin.settings import DEFAULTS, IGNORED, REFUSED, read_file

_FILES = ("publishconf.py", "pelicanconf.py")
"""Settings of a Pelican site; the first is of what is published, and imports the other."""
_REASONS = {
    "the journal has the default theme; docs/themes.md says how to keep another": "THEME CSS_FILE"
    " THEME_TEMPLATES_OVERRIDES TEMPLATE_PAGES TEMPLATE_EXTENSIONS JINJA_ENVIRONMENT",
    "plugins are not installed; docs/themes.md says how to add one": "PLUGINS PLUGIN_PATHS",
    "lists are those of the default theme": "DIRECT_TEMPLATES PAGINATED_TEMPLATES"
    " PAGINATION_PATTERNS DEFAULT_ORPHANS",
    "the theme has no such pages": "CATEGORY_URL CATEGORY_SAVE_AS",
}
_OURS = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Settings whose value stays that of `site_build/default_settings.py`, with the reason."""
_PLACES = {"PATH", "OUTPUT_PATH", "CACHE_PATH", "SITEURL", "PELICAN_CLASS", "DEBUG", "BIND", "PORT"}
"""Settings that say where things are and how Pelican runs, which has no place in a journal."""
_LISTS = {"TAGS", "ARCHIVES"}
"""Lists that the default theme has too."""
_ADDRESS = re.compile("_URL$|_SAVE_AS$|(^|_)FEED_")
_UNREAD = {".rst", ".html", ".htm", ".asc", ".adoc", ".org", ".ipynb"}
"""Suffixes of texts that Pelican or a plugin of it reads, and this build does not."""


def read_site(folder: Path) -> PelicanSite:
    """Read the settings of a site, which are a program of its owner; raises BuildError."""
    file = next((each for name in _FILES if (each := folder / name).is_file()), None)
    if file is None:
        raise BuildError(f"{folder} has no {' or '.join(_FILES)}; name the folder of the site")
    if os.geteuid() == 0 and (file.stat().st_uid or folder.stat().st_uid):
        raise BuildError(f"{file} is a program of another user: run this as that user, not as root")
    found, top = read_file(file.resolve()), folder.resolve()
    content = (top / found.get("PATH", ".")).resolve()
    if not content.is_dir() or top.is_relative_to(content):
        raise BuildError(f"PATH of {file} must be a folder within {folder}; move the content there")
    kept, omissions = _sort(found)
    origin = str(found.get("SITEURL", ""))
    try:
        origin = origin and read_origin(origin)
    except ValueError as error:
        omissions.append(f"SITEURL: {origin} {error}; write SITE_URL into .env")
        origin = ""
    pages = next(iter(found.get("PAGE_PATHS", ())), "pages")
    omissions += [
        f"{path.relative_to(content)}: only Markdown is read; it is copied as it is"
        for path in sorted(content.rglob("*"))
        if path.suffix in _UNREAD
    ]
    return PelicanSite(content, pages, origin, kept, omissions)


def _sort(found: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings to keep, and a sentence about each of the others."""
    ours, kept, omissions = vars(default_settings), {}, []
    # Where the site has Pelican's own addresses, these are written, so that they stay.
    implied = {name: DEFAULTS.get(name) for name in ours if _ADDRESS.search(name)}
    for name in _LISTS.intersection(map(str.upper, found.get("DIRECT_TEMPLATES", _LISTS))):
        implied[f"{name}_SAVE_AS"] = found.get(f"{name}_SAVE_AS", f"{name.lower()}.html")
        implied[f"{name}_URL"] = implied[f"{name}_SAVE_AS"]
    said = {name: value for name, value in implied.items() if value is not None} | found
    for name, value in sorted(said.items()):
        if name in _PLACES or value == ours.get(name, DEFAULTS.get(name)):
            continue
        reason = REFUSED.get(name) or _OURS.get(name) or (name in IGNORED and "it has no effect")
        if not reason and not _is_plain(value):
            reason = "it is more than a plain value; copy it by hand"
        if reason:
            omissions.append(f"{name}: {reason}")
        else:
            kept[name] = value
    return kept, omissions


def _is_plain(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False
