"""Settings of Hugo, from TOML, YAML and JSON files, and the paths that they give to texts."""

import json
import posixpath
import re
import unicodedata
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from site_build.importers import heads
from site_build.importers.imported import UnreadableJournal, read_text


def read_settings(sources: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the settings of each language, that of the journal first; names in lower case."""
    settings: dict[str, Any] = {}
    found = [
        each
        for each in sources
        if re.fullmatch(
            r"(hugo|config|config/(_default|production)/(.*/)?[^/]+)\.(toml|ya?ml|json)", each
        )
    ]
    if not found:
        raise UnreadableJournal("no settings of Hugo here; name the folder with hugo.toml")
    for name in sorted(found, key=lambda each: ("/" in each, each)):
        part, _, lang = PurePosixPath(name).stem.lower().partition(".")
        read = getattr(heads, f"read_{PurePosixPath(name).suffix[1:].replace('yml', 'yaml')}")
        try:
            values = lower_names(read(read_text(sources[name])))
        except heads.HeadError as fault:
            raise UnreadableJournal(f"{name}: {fault}; fix it and try again") from fault
        if part not in {"config", "hugo", "languages" if lang else ""}:
            values = {part: values}
        settings = _merge(settings, {"languages": {lang: values}} if lang else as_table(values))
    default = str(settings.get("defaultcontentlanguage") or "en").lower()
    languages = {
        code: as_table(values)
        for code, values in as_table(settings.get("languages")).items()
        if not heads.read_flag(as_table(values).get("disabled"))
    } or {default: {}}
    return {
        code: site | {"params": as_table(site.get("params"))}
        for code in sorted(
            languages,
            key=lambda each: (each != default, str(languages[each].get("weight", 0)).zfill(9)),
        )
        for site in [_merge(settings, languages[code])]
    }


def _merge(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    """Return two tables merged; values of `high` replace those of `low`."""
    inner = {
        key: _merge(as_table(low.get(key)), each) for key, each in high.items() if as_table(each)
    }
    return {**low, **high, **inner}


def lower_names(value: Any) -> Any:
    """Return values with all names in lower case, since Hugo ignores the case of names."""
    return json.loads(
        json.dumps(value, default=str),
        object_pairs_hook=lambda pairs: {name.lower(): each for name, each in pairs},
    )


def as_table(value: Any) -> dict[str, Any]:
    """Return a table as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as the only member of one."""
    return value if isinstance(value, list) else [value]


def as_tables(value: Any) -> list[dict[str, Any]]:
    """Return the members of a list, or a single value, as tables."""
    return list(map(as_table, as_list(value)))


def find_path(
    head: dict[str, Any], folder: str, name: str, date: datetime | None, site: dict[str, Any]
) -> str:
    """Return a text's path below the home of its language, without a slash in front."""
    section, slug = folder.partition("/")[0], str(head.get("slug") or "")
    forms, url = as_table(site.get("permalinks")), str(head.get("url") or "")
    patterns = (
        url,
        as_table(forms.get("page" if name else "section")).get(section.lower()),
        forms.get(section.lower()) if name else "",
    )
    # Hugo reads a plus in such a path as a blank.
    title, chosen = (urlize(each.replace("+", " "), site) for each in (head["title"], slug))
    when = date or datetime(1, 1, 1, tzinfo=UTC)
    values = {
        "title": title,
        "slug": chosen or title,
        **dict.fromkeys(("filename", "contentbasename"), name),
        **dict.fromkeys(("slugorfilename", "slugorcontentbasename"), chosen or name),
        "section": section,
        "sections": folder,
        "sections[1:]": folder.partition("/")[2],
        "sections[last]": folder.rpartition("/")[2],
        "sections[:1]": section,
        "year": str(when.year),
        "month": f"{when:%m}",
        "monthname": f"{when:%B}",
        "day": f"{when:%d}",
        "yearday": f"{when:%j}",
        "weekday": f"{when:%w}",
        "weekdayname": f"{when:%A}",
    }
    path = re.sub(
        r":(\w+(?:\[.*?\])?)",
        lambda found: values.get(found[1].lower(), found[0]),
        next(
            (each for each in patterns if each and isinstance(each, str)),
            posixpath.join(folder, slug or name),
        ),
    )
    path = path if url else urlize(path, site)
    is_ugly = as_table(site.get("uglyurls")).get(section, site.get("uglyurls"))
    ending = ".html" if heads.read_flag(is_ugly) and name and not url else "/"
    return re.sub(
        "/+",
        "/",
        path if re.search(r"\.\w+$" if url else r"\.html?$", path) else path.rstrip("/") + ending,
    ).lstrip("/")


def urlize(text: str, site: dict[str, Any]) -> str:
    """Return a path as Hugo writes it: any letter, few marks, and hyphens for blanks."""
    plain = heads.read_flag(site.get("removepathaccents"))
    kept = "".join(
        each
        for each in unicodedata.normalize("NFD" if plain else "NFC", text)
        if each.isspace()
        or each in "./\\_#+~-@"
        or unicodedata.category(each)[0] in ("LN" if plain else "LMN")
    )
    path = re.sub(r"\s+", "-", re.sub(r"(?<=-)\s+|\s+(?=-)", "", kept.strip()))
    return path if heads.read_flag(site.get("disablepathtolower")) else path.lower()
