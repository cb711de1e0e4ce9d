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
"""Most characters of a date: dateutil takes a time that grows with the square of the length."""
_DEFAULTS = (datetime(2001, 1, 1, 0), datetime(2002, 2, 2, 23))  # noqa: DTZ001 - only compared
"""Two values for each part that a text may lack: a part in which the readings differ is missing."""
_ZONES = {
    name: timezone(timedelta(hours=hours))
    for sign, hours in (("E", -5), ("C", -6), ("M", -7), ("P", -8))
    for name, hours in ((f"{sign}ST", hours), (f"{sign}DT", hours + 1))
}
"""Zones by the names of RFC 5322; the meaning of other names depends on the machine."""


def parse_instant(text: str) -> datetime:
    """Return the UTC instant of an option's date in ISO 8601; raises ValueError."""
    if not _ISO.fullmatch(text.strip()):
        raise ValueError(f"is {text[:40]!r}; write it as {DATE_FORMS}")
    return read_instant(text, UTC)


def read_instant(text: str, zone: tzinfo) -> datetime:
    """Return the UTC instant that a text names, in `zone` if the text has no zone.

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
    if moment := _parse(text):
        return moment
    text = text.strip()
    fixes = f"; write it as {DATE_FORMS}", ", which is not a date; fix the day or time"
    raise ValueError(f"is {text[:40]!r}{fixes[bool(_ISO.fullmatch(text))]}")


def write_moment(text: str) -> str:
    """Return a date in ISO 8601, with a zone only if the text has one; raises ValueError."""
    return read_moment(text).isoformat().replace("+00:00", "Z")


def explain_ambiguity(text: str) -> str:
    """Return a warning, with the fix, about a date that can be read in several ways; else empty."""
    if _parse(text) != _parse(text, UTC):
        return (
            f"is {text!r}, whose zone is not known, so it is read in the site's; "
            f"write an offset, as {write_moment(text)}+01:00"
        )
    # A date that begins with its year has only one order of its parts.
    choices = (False,) if re.match("[0-9]{8}|[0-9]{4}[^0-9]", text.strip()) else (False, True)
    readings = {_parse(text, dayfirst=day, yearfirst=year) for day in choices for year in choices}
    ambiguity = f"is {text!r}, which is read as {write_moment(text)}; write it in that form"
    return ambiguity if len(readings - {None}) > 1 else ""


def _parse(text: str, unknown_zone: tzinfo | None = None, **order: bool) -> date | datetime | None:
    """Return the day or instant that dateutil reads, or None if the text has no complete date.

    `unknown_zone` is the zone for names that are not in `_ZONES`, `order` has dateutil's options
    for the order of day, month and year.
    """
    text = " ".join(text.replace("_", " ").split())
    if len(text) > _LONGEST:
        return None

    def find_zone(name: str | None, seconds: int | None) -> tzinfo | int | None:
        return _ZONES.get(name, unknown_zone) if name and seconds is None else seconds

    try:
        if _ISO.fullmatch(text):  # many times as fast as dateutil
            instant = datetime.fromisoformat(text.upper())
            return instant if ":" in text else instant.date()
        readings: list[datetime] = [
            parse(text, default=each, tzinfos=find_zone, **order) for each in _DEFAULTS
        ]
    except Exception:  # noqa: BLE001 - dateutil raises whatever its parts raise
        return None
    if readings[0].date() != readings[1].date():  # the text lacks a year, month or day
        return None
    return readings[0] if readings[0].hour == readings[1].hour else readings[0].date()
