"""Rendering of the desk's pages, in the style of the site and the time zone of the journal."""

import re
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import jinja2
from markupsafe import Markup

from edge_api.db.problems import Problem
from edge_api.journal.builds import BuildManager, read_zone
from edge_api.operation.model import Service
from edge_api.schema.page_templates import (
    BASE_TEMPLATE,
    TEMPLATES_FOLDER,
    TITLE_PLACEHOLDER,
)

_PLAIN_HEAD: Final = (
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
)
"""The content of `<head>` while there is no build."""


@lru_cache(maxsize=2)
def _read_head_and_zone(build: Path) -> tuple[str, tzinfo]:
    """Return the `<head>` of a build's pages without its title, and the time zone of the journal.

    Raises OSError.
    """
    zone = read_zone(build)
    shell = (build / TEMPLATES_FOLDER / BASE_TEMPLATE).read_text(encoding="utf-8")
    found = re.search(r"(?is)<head\b[^>]*>(.*?)</head>", shell)
    return re.sub(r"(?is)<title\b[^>]*>.*?</title>", "", found[1]) if found else _PLAIN_HEAD, zone


def _find_head_and_zone(service: Service) -> tuple[str, tzinfo]:
    with suppress(OSError, Problem):  # there is no build, or it was deleted by hand
        return _read_head_and_zone(service[BuildManager].site().folder)
    return _PLAIN_HEAD, UTC


def local_now(service: Service) -> datetime:
    """Return the present instant in the time zone of the journal; without a build in UTC."""
    return service.clock().astimezone(_find_head_and_zone(service)[1])


def make_page(service: Service, template: str, title: str, **values: Any) -> bytes:
    """Return a page of the desk in the style of the site, or a plain one if there is no build.

    The desk is needed most when something is broken, so it uses nothing of the site but the
    `<head>`.
    """
    (head, zone), current = _find_head_and_zone(service), service[BuildManager].current
    _NOW.set(service.clock().astimezone(zone))
    given = {
        "head": Markup(head.replace(TITLE_PLACEHOLDER, escape(title))),  # noqa: S704  trusted: the build made it
        "journal": current.head.site_title
        if current
        else urlsplit(service.settings.site_url).netloc,
        "title": title,
        **values,
    }
    return _ENVIRONMENT.get_template(f"{template}.html").render(given).encode()


_NOW: ContextVar[datetime] = ContextVar("now")
"""The instant at which a page is made, in the time zone of the journal."""


_WEEK: Final = timedelta(days=7)


def format_age(at: str | None) -> str:
    """Format an instant for a list: `2 min`, `3 h`, `Thu`, `14 Nov`, `14 Nov 25`."""
    if not at:
        return ""
    now, then = _NOW.get(), _local(at)
    minutes, days = (now - then) // timedelta(minutes=1), now.date() - then.date()
    if -1 <= minutes < 60:  # noqa: PLR2004  the minutes of an hour
        return f"{minutes} min" if minutes > 0 else "now"
    if 0 < minutes < 24 * 60:
        return f"{minutes // 60} h"
    if not days:  # a reminder for later today
        return f"{then:%H:%M}"
    if -_WEEK < days < _WEEK:
        return f"{then:%a}"
    return f"{then:%-d %b}" if then.year == now.year else f"{then:%-d %b %y}"


def format_day(at: str) -> str:
    """Format the day of an instant for a sentence: `today`, `Tuesday`, `14 Nov`, `14 Nov 2025`."""
    today, then = _NOW.get().date(), _local(at).date()
    if timedelta() <= today - then < _WEEK:
        return f"{then:%A}" if then != today else "today"
    return f"{then:%-d %b}" if then.year == today.year else f"{then:%-d %b %Y}"


def _local(at: str) -> datetime:
    return datetime.fromisoformat(at).astimezone(_NOW.get().tzinfo)


def with_parameters(address: str, **given: object) -> str:
    """Return a desk address with the given parameters set, and without those of one page view."""
    path, _, query = address.partition("?")
    # The last three belong to one page view: to its notice, and to its ticked boxes.
    kept = [pair for pair in parse_qsl(query) if pair[0] not in (*given, "done", "sent", "pick")]
    kept += [(name, str(each)) for name, each in given.items() if each]
    return f"{path}{to_query(kept)}"


def to_query(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the query string with its question mark, or an empty string without pairs."""
    return f"?{urlencode(pairs)}" if pairs else ""


_ENVIRONMENT: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("edge_api.desk"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_ENVIRONMENT.filters.update(
    ago=format_age,
    minute=lambda at: f"{_local(at):%-d %b %Y, %H:%M %Z}" if at else "",
    since=format_day,
    urlquote=quote,
    grouped="{:,}".format,
    with_parameters=with_parameters,
)
