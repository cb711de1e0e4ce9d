"""What connects the build to Pelican's signals, and Pelican itself as pelicanconf.py asks for it.

Pelican does its usual round: settings, generators, contexts, templates, writer. Before it starts
the content is read and checked, and what its writer notes is made at the end.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pelican  # type: ignore[import-untyped]
from pelican.generators import (  # type: ignore[import-untyped]
    ArticlesGenerator,
    PagesGenerator,
    StaticGenerator,
)
from pelican.plugins import signals  # type: ignore[import-untyped]

from site_build.faults import BuildError, ContentError
from site_build.front_matter import parse_instant
from site_build.generators import Outputs, Pages, Posts
from site_build.production import Production, Style
from site_build.recipe import fingerprint_settings
from site_build.request import Place, Report, Request
from site_build.sight import watch
from site_build.site import Identity
from site_build.spread import count_processors
from site_build.writer import TaskWriter, find_production

_REPLACED = {ArticlesGenerator: Posts, PagesGenerator: Pages, StaticGenerator: Outputs}


def register() -> None:
    """Connect to Pelican's signals; Pelican calls this for each of its PLUGINS."""
    signals.get_writer.connect(_choose_writer)
    signals.generator_init.connect(_equip)


def _choose_writer(_: Any) -> type[TaskWriter]:
    return TaskWriter


def _equip(generator: Any) -> None:
    """Give a generator's templates `asset()`, and watch what they look up."""
    production = find_production(generator.settings)
    generator.env.globals["asset"] = production.assets.locate
    generator.env.context_class = watch(production.seen)


class Journal(pelican.Pelican):  # type: ignore[misc]
    """Pelican with this site's generators; `pelicanconf.py` names it as PELICAN_CLASS."""

    def run(self) -> None:
        """Read, check and build; raises BuildError, and never leaves half a file."""
        with plain_errors():
            self.settings["BUILD_PRODUCTION"] = self._read()
            super().run()

    @property
    def report(self) -> Report:
        """What the last run came to."""
        report = self.settings["BUILD_REPORT"]
        assert isinstance(report, Report)  # noqa: S101 - for the type checker
        return report

    def _read(self) -> Production:
        settings = self.settings
        request = settings.get("BUILD_REQUEST") or _make_request(settings)
        style = Style(
            Path(self.theme), fingerprint_settings(settings), settings["DEFAULT_PAGINATION"]
        )
        production = Production(request, _identify(settings), style)
        for finding in production.gathered.findings:
            logging.getLogger(pelican.__name__).warning("%s", finding)
        return production

    def _get_generator_classes(self) -> list[type]:
        return [_REPLACED.get(each, each) for each in super()._get_generator_classes()]


def _identify(settings: dict[str, Any]) -> Identity:
    return Identity(
        settings["SITEURL"],
        settings["SITENAME"],
        settings["SITESUBTITLE"],
        settings["AUTHOR"],
        settings["DEFAULT_LANG"],
    )


def _make_request(settings: dict[str, Any]) -> Request:
    """Return what plain `pelican` asks for: a build in its output folder, over the last one."""
    output, cache = Path(settings["OUTPUT_PATH"]), Path(settings["CACHE_PATH"])
    state = cache / f"output-{sha256(os.fsencode(output)).hexdigest()[:12]}"
    place = Place(output, state)
    now = settings["BUILD_NOW"]
    return Request(
        content=Path(settings["PATH"]),
        place=place,
        before=place,
        cache=cache / "cache.sqlite",
        now=parse_instant(now) if now else datetime.now(UTC),
        jobs=settings["BUILD_JOBS"] or count_processors(),
        strict=settings["BUILD_STRICT"],
    )


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say what the disk refuses in one sentence, and keep Pelican from showing a trace with it."""
    logger = logging.getLogger(pelican.__name__)
    logger.addFilter(_hide_trace)
    try:
        yield
    except ContentError as error:
        for finding in error.findings:
            logger.error("%s", finding)
        raise
    except OSError as error:
        raise BuildError(f"the build cannot go on: {error.strerror}: {error.filename}") from error


def _hide_trace(record: logging.LogRecord) -> bool:
    if record.exc_info and isinstance(record.exc_info[1], BuildError):
        record.exc_info = None
    return True
