"""Chooses the settings of a journal that comes from another system, with its addresses."""

import re
from collections import Counter
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from site_build import default_settings
from site_build.addresses import SourceRules, name_file
from site_build.errors import BuildError
from site_build.importers.imported import Imported, Text
from site_build.pelican_plugin.settings import DEFAULTS, prepare_settings, read_dialect
from site_build.text import make_slug


def choose_settings(imported: Imported, name: str) -> tuple[dict[str, Any], SourceRules]:
    """Return the settings that differ from the defaults, and the rules for source files.

    Settings that the build refuses are left out, with findings. `name` replaces a missing title.
    """
    own = {
        "SITENAME": imported.title or name,
        "SITESUBTITLE": imported.description,
        "AUTHOR": imported.author or imported.title or name,
        "DEFAULT_LANG": re.split("[.@]", imported.lang)[0].replace("_", "-"),
        "TIMEZONE": imported.timezone,
    }
    settings: dict[str, Any] = {key: value for key, value in own.items() if value} | {
        key: value
        for key, value in imported.settings.items()
        # These name the folders of the old journal, which this one does not have.
        if not re.fullmatch(
            "(?:ARTICLE|PAGE|STATIC)_(?:PATHS|EXCLUDES)|(?:OUTPUT_)?PATH"
            "|(?:EXTRA_PATH|FILENAME)_METADATA|SLUGIFY_SOURCE",
            key,
        )
    }
    # A page of the old journal may be at the address that the page of a tag would have.
    tags = re.escape(str(settings.get("TAG_URL", "")).strip("/")).replace(r"\{slug\}", "[^/]+")
    if any(re.fullmatch(tags, text.address.strip("/")) for text in imported.texts):
        settings = {key: value for key, value in settings.items() if key[:4] != "TAG_"}
    zone = ZoneInfo(next(iter(available_timezones() & {str(settings.get("TIMEZONE"))}), "UTC"))
    for kind, prefix in (("post", "ARTICLE"), ("page", "PAGE")):
        pattern = find_address_pattern([text for text in imported.texts if text.kind == kind], zone)
        if pattern and f"{prefix}_URL" not in settings:
            settings |= {f"{prefix}_URL": pattern, f"{prefix}_SAVE_AS": name_file(pattern)}
    defaults = {key: value for key, value in vars(default_settings).items() if key.isupper()}
    while True:
        try:
            return settings, read_dialect(
                prepare_settings({**DEFAULTS, **defaults, **settings})
            ).rules
        except BuildError as refusal:
            # The message names one setting; the two for address and file are removed together.
            said = str(refusal).partition(": ")[2]
            prefix = re.sub("_(URL|SAVE_AS)$", "", said.partition(" ")[0])
            refused = settings.keys() & {prefix, f"{prefix}_URL", f"{prefix}_SAVE_AS"}
            if not refused:
                raise
            imported.note("", 0, f"the setting {said}", "write it into pelicanconf.py as it fits")
            settings = {key: value for key, value in settings.items() if key not in refused}


def find_address_pattern(texts: list[Text], zone: ZoneInfo) -> str:
    """Return the commonest address pattern; empty if less than a quarter of the texts have it."""
    patterns = Counter(_read_pattern(e, zone) for e in texts if e.address and "?" not in e.address)
    pattern, count = next(iter(patterns.most_common(1)), ("", 0))
    return pattern if count >= len(texts) / 4 else ""


def _read_pattern(text: Text, zone: ZoneInfo) -> str:
    """Return the pattern of a text's address, such as `{date:%Y}/{slug}.html`."""
    folder, _, last = re.sub("[{}].*", "", text.address).rstrip("/").rpartition("/")
    moment, category = localize(text.date, zone), make_slug(text.category)
    names = {f"{{date:%{sign}}}": f"{moment:%{sign}}" for sign in "Ymd"} if moment else {}
    names |= {"{category}": category} if category and text.kind == "post" else {}
    for name, value in names.items():
        # Only the first match, as a month comes before a day that may be the same number.
        folder = re.sub(rf"(?<![^/]){value}(?![^/])", name, folder, count=1)
    ending = ".html" if last.endswith(".html") else "/"
    return f"{folder}/{{slug}}{ending}".lstrip("/")


def localize(moment: datetime | None, zone: ZoneInfo) -> datetime | None:
    """Return an instant in local time; None also for the years 1 and 9999, which mean no date."""
    if moment is None or moment.year in {1, 9999}:
        return None
    local = moment.astimezone(zone) if moment.tzinfo else moment
    return datetime(*local.timetuple()[:6])  # noqa: DTZ001 - a plain datetime, which YAML can dump
