"""Options that several commands have: their names, their defaults, and what may stand in them.

Settings come from the environment and from a `.env` file, which the environment overrides; an
option overrides both. Whatever is wrong is said in one sentence.
"""

import argparse
import os
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from edge_api.schema import environment as origin
from edge_api.schema.environment import SettingsError, read_dotenv
from site_build.content.dates import parse_instant
from site_build.errors import BuildError


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong and no more."""

    def error(self, message: str) -> NoReturn:
        """Print one sentence on standard error and end with status 2."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def read_settings() -> dict[str, str]:
    """Return the settings of the environment and `.env` without empty ones; raises BuildError."""
    try:
        given = {**read_dotenv(Path(".env")), **os.environ}
    except SettingsError as error:
        raise BuildError(str(error)) from None
    return {name: value for name, value in given.items() if value}


def add(
    parser: argparse.ArgumentParser, settings: Mapping[str, str], *names: str, **changes: Any
) -> None:
    """Add options that several commands have, by their names; `changes` are argparse's words."""
    known: dict[str, dict[str, Any]] = {
        "content": {
            "type": read_folder,
            "default": settings.get("CONTENT_DIR") or _find_content(settings),
            "metavar": "DIR",
            "help": "folder of the content (default: CONTENT_DIR, the setting PATH, or content)",
        },
        "settings": {
            "type": Path,
            "metavar": "FILE",
            "help": "the site's settings (default: PELICAN_SETTINGS, or pelicanconf.py)",
        },
        "output": {
            "type": Path,
            "default": settings.get("BUILD_DIR", "build"),
            "metavar": "DIR",
            "help": "folder of the builds (default: BUILD_DIR, or build)",
        },
        "site-url": {
            "type": read_origin,
            "default": settings.get("SITE_URL", f"http://127.0.0.1:{settings.get('PORT', '8000')}"),
            "metavar": "URL",
            "help": "origin of the site (default: SITE_URL, or http://127.0.0.1:PORT)",
        },
        "now": {
            "type": read_instant,
            "metavar": "INSTANT",
            "help": "read the content as of this UTC time (default: now)",
        },
        "strict": {"action": "store_true", "help": "let warnings count as errors"},
        "jobs": {
            "type": read_jobs,
            "metavar": "N",
            "help": "processes (default: one for each core)",
        },
    }
    if "content" in names and not changes:  # what is read is read by the site's settings
        names += ("settings",)
    for name in names:
        parser.add_argument(f"--{name}", **known[name] | changes)


def choose_settings(words: Sequence[str]) -> None:
    """Let the file behind `--settings` be the site's, before a module reads where it is."""
    early = Parser(add_help=False, allow_abbrev=False)
    early.add_argument("--settings")
    if file := early.parse_known_args(words)[0].settings:
        os.environ["PELICAN_SETTINGS"] = file


def _find_content(settings: Mapping[str, str]) -> str:
    """Return PATH of the site's settings where they give it as plain text; they are not run."""
    named = os.environ.get("PELICAN_SETTINGS") or settings.get("PELICAN_SETTINGS")
    file, found = Path(named or "pelicanconf.py"), list[str]()
    with suppress(OSError, ValueError):
        found = re.findall(r"(?m)^PATH *= *[\"']([^\"'\n]+)[\"']", file.read_text(encoding="utf-8"))
    return os.path.relpath(file.parent / found[-1]) if found else "content"


def read_folder(text: str) -> Path:
    """Return a folder that is there."""
    path = Path(text)
    if not path.is_dir():
        raise ArgumentTypeError(f"there is no folder {text!r}; make it, or name another")
    return path


def require_apart(content: Path, output: Path) -> None:
    """Raise BuildError if the folder of builds lies in that of the content, or that in this."""
    first, second = content.resolve(), output.resolve()
    if first.is_relative_to(second) or second.is_relative_to(first):
        raise BuildError(f"{output} and {content} must lie apart; fix BUILD_DIR or CONTENT_DIR", 2)


def read_instant(text: str) -> datetime:
    """Return an instant in UTC."""
    try:
        return parse_instant(text)
    except ValueError as fault:
        raise ArgumentTypeError(f"the instant {fault}") from None


def read_title(text: str) -> str:
    """Return a title that says something."""
    if not text.strip():
        raise ArgumentTypeError("the title is empty; write one")
    return _require_unicode(text)


def _require_unicode(text: str) -> str:
    """Refuse what the terminal sent in another encoding."""
    if not text.isascii() and text != text.encode("utf-8", "replace").decode():
        raise ArgumentTypeError("the text is not UTF-8; fix the terminal's encoding")
    return text


def read_tags(text: str) -> tuple[str, ...]:
    """Return the names between the commas."""
    return tuple(tag for part in _require_unicode(text).split(",") if (tag := part.strip()))


def _read_number(noun: str, least: int, most: int, text: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", text) or not least <= int(text) <= most:
        raise ArgumentTypeError(f"{text!r} is no {noun} from {least} to {most}")
    return int(text)


read_jobs = partial(_read_number, "number of processes", 1, 64)
read_days = partial(_read_number, "number of days", 0, 99_999)
read_share_days = partial(_read_number, "number of days", 1, 365)
read_port = partial(_read_number, "port", 0, 65_535)
"""Port 0 is any free one."""


def read_origin(text: str) -> str:
    """Return an origin: scheme, host and port alone, as every address of the site begins."""
    try:
        return origin.read_origin(text)
    except ValueError as fault:
        raise ArgumentTypeError(f"{text!r} {fault}") from None
