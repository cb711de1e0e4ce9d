"""Options that several commands share: their names, defaults and valid values.

Settings come from the environment and from a `.env` file, which the environment overrides; an
option overrides both. Every error is one sentence.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from click import IntRange, Option

from edge_api.schema.commands import FOLDER, PATH, parameter_type
from edge_api.schema.environment import MAX_PORT, SettingsError, read_origin, read_variables
from site_build.content.dates import parse_instant
from site_build.errors import BuildError


def read_settings() -> dict[str, str]:
    """Return the settings of the environment and `.env` without empty ones; raises BuildError."""
    try:
        given = read_variables(Path(".env"), os.environ)
    except SettingsError as error:
        raise BuildError(str(error)) from None
    return {name: value for name, value in given.items() if value}


def find_content() -> str:
    """Return CONTENT_DIR, else PATH of the site's settings, which are not run, else `content`."""
    settings = read_settings()
    if given := settings.get("CONTENT_DIR"):
        return given
    named = settings.get("PELICAN_SETTINGS")
    file, found = Path(named or "pelicanconf.py"), list[str]()
    with suppress(OSError, ValueError):
        found = re.findall(r"(?m)^PATH *= *[\"']([^\"'\n]+)[\"']", file.read_text(encoding="utf-8"))
    return os.path.relpath(file.parent / found[-1]) if found else "content"


def _find_origin() -> str:
    settings = read_settings()
    with suppress(ValueError):
        return settings.get("SITE_URL") or read_origin(
            f"http://127.0.0.1:{settings.get('PORT', '8000')}"
        )
    raise BuildError(f"PORT: must be a port from 1 to {MAX_PORT}", 2)


def apply_settings_option(arguments: Sequence[str]) -> None:
    """Set PELICAN_SETTINGS to the file of the option `--settings`, before a module reads it."""
    if found := re.findall(r"\0--settings[=\0]([^\0]+)", "\0".join(["", *arguments])):
        os.environ["PELICAN_SETTINGS"] = found[-1]


def require_separate_folders(content: Path, output: Path) -> None:
    """Raise BuildError if the folder of content contains that of builds, or the reverse."""
    first, second = content.resolve(), output.resolve()
    if first.is_relative_to(second) or second.is_relative_to(first):
        raise BuildError(f"{output} and {content} must lie apart; fix BUILD_DIR or CONTENT_DIR", 2)


def read_title(text: str) -> str:
    """Return a title; raises ValueError for an empty one."""
    if not text.strip():
        raise ValueError("the title is empty; write one")
    return _require_unicode(text)


def _require_unicode(text: str) -> str:
    """Return a text; raises ValueError if the terminal sent it in another encoding."""
    if not text.isascii() and text != text.encode("utf-8", "replace").decode():
        raise ValueError("the text is not UTF-8; fix the terminal's encoding")
    return text


def read_tags(text: str) -> tuple[str, ...]:
    """Return the tags of a comma-separated list; raises ValueError for text that is not UTF-8."""
    return tuple(tag for part in _require_unicode(text).split(",") if (tag := part.strip()))


INSTANT: Final = parameter_type(parse_instant, "the instant ")
OUTPUT: Final = Option(
    ["--output"],
    type=PATH,
    default=lambda: read_settings().get("BUILD_DIR", "build"),
    metavar="DIR",
    help="folder of the builds (default: BUILD_DIR, or build)",
)
CONTENT: Final = (
    Option(
        ["--content"],
        type=FOLDER,
        default=find_content,
        metavar="DIR",
        help="folder of the content (default: CONTENT_DIR, the setting PATH, or content)",
    ),
    Option(
        ["--settings"],
        type=PATH,
        metavar="FILE",
        help="the site's settings (default: PELICAN_SETTINGS, or pelicanconf.py)",
    ),
)
SITE_URL: Final = Option(
    ["--site-url"],
    type=parameter_type(read_origin),
    default=_find_origin,
    metavar="URL",
    help="origin of the site (default: SITE_URL, or http://127.0.0.1:PORT)",
)
NOW: Final = Option(
    ["--now"],
    type=INSTANT,
    metavar="INSTANT",
    help="read the content as of this UTC time (default: now)",
)
STRICT: Final = Option(["--strict"], is_flag=True, help="let warnings count as errors")
JOBS: Final = Option(
    ["--jobs"],
    type=IntRange(1, 64),
    metavar="N",
    help="processes (default: one for each core)",
)
