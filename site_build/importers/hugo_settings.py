"""Settings of Hugo, which stand in one file or in many, in three languages."""

import json
import re
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Any

from site_build.importers import heads
from site_build.importers.imported import UnreadableJournal, read_text

_READERS = {
    ".toml": heads.read_toml,
    ".yaml": heads.read_yaml,
    ".yml": heads.read_yaml,
    ".json": heads.read_json,
}


def read_settings(sources: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the settings of each language, that of the journal first; names in lower case."""
    settings: dict[str, Any] = {}
    names = r"(hugo|config|config/(_default|production)/(.*/)?[^/]+)\.(toml|ya?ml|json)"
    found = [each for each in sources if re.fullmatch(names, each)]
    if not found:
        raise UnreadableJournal("no settings of Hugo here; name the folder with hugo.toml")
    for name in sorted(found, key=lambda each: ("/" in each, each)):
        part, _, lang = PurePosixPath(name).stem.lower().partition(".")
        try:
            values = lower_names(_READERS[PurePosixPath(name).suffix](read_text(sources[name])))
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
        code: _merge(settings, languages[code])
        for code in sorted(
            languages,
            key=lambda each: (each != default, str(languages[each].get("weight", 0)).zfill(9)),
        )
    }


def _merge(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    """Return two tables as one, of which the second goes before the first."""
    inner = {
        key: _merge(as_table(low.get(key)), each) for key, each in high.items() if as_table(each)
    }
    return {**low, **high, **inner}


def lower_names(value: Any) -> Any:
    """Return values with all names in lower case: Hugo reads them in any."""
    return json.loads(
        json.dumps(value, default=str),
        object_pairs_hook=lambda pairs: {name.lower(): each for name, each in pairs},
    )


def as_table(value: Any) -> dict[str, Any]:
    """Return a table, empty in place of anything else."""
    return value if isinstance(value, dict) else {}


def pick(value: Any, names: Collection[str] = ("name",)) -> str:
    """Return a text: of a list the first, of a table the first of these names that it has."""
    if isinstance(value, dict):
        value = next(filter(None, map(value.get, names)), "")
    elif isinstance(value, list):
        value = next(iter(value), "")
    return pick(value, names) if isinstance(value, dict | list) else str(value or "")
