"""Options that several commands have: their names, their defaults, and what may stand in them.

Settings come from the environment and from a `.env` file, which the environment overrides; an
option overrides both. Whatever is wrong is said in one sentence.
"""

import argparse
import os
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import NoReturn

from edge_api.schema import environment as origin
from edge_api.schema.environment import DotenvError, read_dotenv
from site_build.faults import BuildError
from site_build.reading.front_matter import parse_instant

MOST_JOBS = 64
HIGHEST_PORT = 65_535


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong and no more."""

    def error(self, message: str) -> NoReturn:
        """Print one sentence on standard error and end with status 2."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def read_settings() -> dict[str, str]:
    """Return the settings of the environment and of `.env`, empty ones left out.

    Raises BuildError when the file cannot be used.
    """
    try:
        given = {**read_dotenv(Path(".env")), **os.environ}
    except DotenvError as error:
        raise BuildError(str(error)) from None
    return {name: value for name, value in given.items() if value}


def add_content(
    parser: argparse.ArgumentParser, settings: Mapping[str, str], *, is_read: bool = True
) -> None:
    """Add `--content`; the folder has to be there where it `is_read` and not only named."""
    parser.add_argument(
        "--content",
        type=read_folder if is_read else Path,
        default=settings.get("CONTENT_DIR", "content"),
        metavar="DIR",
        help="folder of the content (default: CONTENT_DIR, or content)",
    )


def add_instant(parser: argparse.ArgumentParser) -> None:
    """Add `--now`: the instant for which the content is read."""
    parser.add_argument(
        "--now",
        type=read_instant,
        default=None,
        metavar="INSTANT",
        help="read the content as of this UTC time (default: now)",
    )


def add_judgement(parser: argparse.ArgumentParser) -> None:
    """Add `--strict` and `--jobs`: how the content is read and judged."""
    parser.add_argument("--strict", action="store_true", help="let warnings count as errors")
    parser.add_argument(
        "--jobs",
        type=read_jobs,
        default=None,
        metavar="N",
        help="processes (default: one for each core)",
    )


def read_folder(text: str) -> Path:
    """Return a folder that is there."""
    path = Path(text)
    if not path.is_dir():
        raise ArgumentTypeError(f"there is no folder {text!r}; make it, or name another")
    return path


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
        raise ArgumentTypeError("the text is not UTF-8; mend the terminal's encoding")
    return text


def read_tags(text: str) -> tuple[str, ...]:
    """Return the names between the commas."""
    return tuple(tag for part in _require_unicode(text).split(",") if (tag := part.strip()))


def read_jobs(text: str) -> int:
    """Return a number of processes."""
    if not re.fullmatch("[0-9]{1,3}", text) or not 1 <= int(text) <= MOST_JOBS:
        raise ArgumentTypeError(f"{text!r} is no number of processes from 1 to {MOST_JOBS}")
    return int(text)


def read_port(text: str) -> int:
    """Return a port to listen on; 0 is any free one."""
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > HIGHEST_PORT:
        raise ArgumentTypeError(f"{text!r} is no port from 0 to {HIGHEST_PORT}")
    return int(text)


def read_days(text: str) -> timedelta:
    """Return a number of days."""
    if not re.fullmatch("[0-9]{1,5}", text):
        raise ArgumentTypeError(f"{text!r} is no number of days from 0 to 99999")
    return timedelta(days=int(text))


def read_origin(text: str) -> str:
    """Return an origin: scheme, host and port alone, as every address of the site begins."""
    try:
        return origin.read_origin(text)
    except ValueError as fault:
        raise ArgumentTypeError(f"{text!r} {fault}") from None
