"""Dates as authors write them: read in every form that dateutil reads, and written in one form."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from dateutil.parser import parse  # type: ignore[import-untyped]

DATE_FORMS = "2026-03-01 or 2026-03-01T09:30:00Z"

_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_LONGEST = 60
"""Characters; dateutil takes a time with the square of what is longer."""
_DEFAULTS = (datetime(2001, 1, 1, 0), datetime(2002, 2, 2, 23))  # noqa: DTZ001 - only compared
_ZONES = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
"""Hours that RFC 5322 gives to names of zones; what others mean depends on the machine."""


_UNKNOWN = timezone(timedelta(0), "unknown")
"""Of a date that names another zone."""


def _find_zone(name: str | None, seconds: int | None) -> tzinfo | None:
    if seconds is not None:
        return timezone(timedelta(seconds=seconds))
    known = _ZONES.get(name or "")
    return timezone(timedelta(hours=known)) if known else _UNKNOWN if name else None


def parse_instant(text: str) -> datetime:
    """Return the UTC instant of a date in ISO 8601, as options have it; raises ValueError."""
    if not _ISO.fullmatch(text.strip()):
        raise ValueError(f"is {text[:40]!r}; write it as {DATE_FORMS}")
    return read_instant(text, UTC)


def read_instant(text: str, zone: tzinfo) -> datetime:
    """Return the UTC instant that a text names, in `zone` where it names none.

    Raises ValueError with the fix.
    """
    moment = read_moment(text)
    instant = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    try:
        return (instant if instant.tzinfo else instant.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999; fix the year") from None


def read_moment(text: str) -> date | datetime:
    """Return the day or the instant that a text names; raises ValueError with the fix."""
    text = " ".join(text.replace("_", " ").split())
    if _ISO.fullmatch(text):
        try:
            instant = datetime.fromisoformat(text.upper())
        except ValueError:
            fault = f"is {text!r}, which is on no calendar; fix the day or time"
            raise ValueError(fault) from None
        return instant if ":" in text else instant.date()
    moment = _guess(text)
    if isinstance(moment, datetime) and moment.tzinfo is _UNKNOWN:
        return moment.replace(tzinfo=None)
    if moment:
        return moment
    raise ValueError(f"is {text[:40]!r}; write it as {DATE_FORMS}")


def write_moment(text: str) -> str:
    """Return the one form of a date, without a zone where it has none; raises ValueError."""
    return read_moment(text).isoformat().replace("+00:00", "Z")


def explain_doubt(text: str) -> str:
    """Return how a date was read that can be read in several ways, with the fix; else nothing."""
    text = " ".join(text.replace("_", " ").split())
    if _ISO.fullmatch(text):
        return ""
    if getattr(_guess(text), "tzinfo", None) is _UNKNOWN:
        return (
            f"is {text!r}, whose zone is not known, so it is read in the site's; "
            f"write an offset, as {write_moment(text)}+01:00"
        )
    readings = {
        _guess(text, dayfirst=day, yearfirst=year)
        for day in (False, True)
        for year in (False, True)
    } - {None}
    if len(readings) == 1 or re.match("[0-9]{8}|[0-9]{4}[^0-9]", text):
        return ""
    return f"is {text!r}, which is read as {write_moment(text)}; write it in that form"


def _guess(text: str, **order: bool) -> date | datetime | None:
    """Return what dateutil reads, or None where that is no whole day."""
    if len(text) > _LONGEST:
        return None
    try:
        first, second = (
            parse(text, default=each, tzinfos=_find_zone, **order) for each in _DEFAULTS
        )
    except Exception:  # noqa: BLE001 - dateutil raises whatever its parts raise
        return None
    if first.date() != second.date():  # what the text lacks was taken from the defaults
        return None
    whole: datetime = first
    return whole if first.hour == second.hour else whole.date()
