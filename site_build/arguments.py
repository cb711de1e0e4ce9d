"""The commands' options: what they are called, what they default to, what may stand in them.

Settings come from the environment and from a `.env` file, which the environment overrides; an
option overrides both. Whatever is wrong is said in one sentence.
"""

import argparse
import os
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from dotenv import dotenv_values

from site_build.front_matter import parse_instant

MOST_JOBS = 64

_ORIGIN = "write it like https://journal.example, without a slash behind it"
_HOST = re.compile(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]")


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong and no more."""

    def error(self, message: str) -> NoReturn:
        """Print one sentence on standard error and end with status 2."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def read_settings() -> dict[str, str]:
    """Return the settings of the environment and of `.env`, empty ones left out."""
    file = dotenv_values(".env") if Path(".env").is_file() else {}
    return {name: value for name, value in {**file, **os.environ}.items() if value}


def make_parser(settings: Mapping[str, str]) -> Parser:
    """Return the parser of `python -m site_build`."""
    parser = Parser(prog="python -m site_build", description="Check, start and build the journal.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_check(commands.add_parser("check", help="list every defect of the content"), settings)
    _add_new(commands.add_parser("new", help="start a post as a draft"), settings)
    _add_build(commands.add_parser("build", help="build the site and its index"), settings)
    return parser


def _add_check(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    _add_content(parser, settings)
    _add_judgement(parser)
    _add_jobs(parser)


def _add_new(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    parser.add_argument("title", type=_read_title, metavar="TITLE", help="as people will read it")
    _add_content(parser, settings)
    parser.add_argument(
        "--date", type=_read_instant, default=None, metavar="INSTANT", help="UTC; default now"
    )
    parser.add_argument(
        "--tags", type=_read_tags, default=(), metavar='"A, B"', help="parted by commas"
    )


def _add_build(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    _add_content(parser, settings)
    output = settings.get("BUILD_DIR", "build")
    parser.add_argument(
        "--output", type=Path, default=output, metavar="DIR", help="BUILD_DIR, default build"
    )
    port = settings.get("PORT", "8000")
    parser.add_argument(
        "--site-url",
        type=_read_origin,
        default=settings.get("SITE_URL", f"http://127.0.0.1:{port}"),
        metavar="URL",
        help="SITE_URL, the origin under which the site is read",
    )
    _add_judgement(parser)
    _add_jobs(parser)


def _add_content(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    parser.add_argument(
        "--content",
        type=Path,
        default=settings.get("CONTENT_DIR", "content"),
        metavar="DIR",
        help="CONTENT_DIR, default content",
    )


def _add_judgement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strict", action="store_true", help="let warnings count as errors")
    parser.add_argument(
        "--now", type=_read_instant, default=None, metavar="INSTANT", help="UTC; default the clock"
    )


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs", type=_read_jobs, default=None, metavar="N", help="processes; default one a core"
    )


def _read_instant(text: str) -> datetime:
    try:
        return parse_instant(text)
    except ValueError as fault:
        raise ArgumentTypeError(f"the instant {fault}") from None


def _read_title(text: str) -> str:
    if not text.strip():
        raise ArgumentTypeError("the title is empty; write one")
    return _require_unicode(text)


def _require_unicode(text: str) -> str:
    """Refuse what the terminal sent in another encoding."""
    if not text.isascii() and text != text.encode("utf-8", "replace").decode():
        raise ArgumentTypeError("the text is not UTF-8; mend the terminal's encoding")
    return text


def _read_tags(text: str) -> tuple[str, ...]:
    return tuple(tag for part in _require_unicode(text).split(",") if (tag := part.strip()))


def _read_jobs(text: str) -> int:
    if not re.fullmatch("[0-9]{1,3}", text) or not 1 <= int(text) <= MOST_JOBS:
        raise ArgumentTypeError(f"{text!r} is no number of processes from 1 to {MOST_JOBS}")
    return int(text)


def _read_origin(text: str) -> str:
    """Return an origin: scheme, host and port alone, as every address of the site begins."""
    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no URL; {_ORIGIN}") from None
    host = parts.netloc.removesuffix(port)
    if parts.scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        raise ArgumentTypeError(f"{text!r} is no origin; {_ORIGIN}")
    if text != f"{parts.scheme}://{parts.netloc}":
        raise ArgumentTypeError(f"{text!r} says more than an origin; {_ORIGIN}")
    return text
