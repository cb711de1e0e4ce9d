"""The recording: a file for each walk with a line for each request and its answer.

Sets of headers that many answers share stand once, in `headers.json`. An answer that differs on
PostgreSQL stands in its line under `postgresql`.
"""

import json
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Played = Mapping[str, Sequence[Json]]
"""The entries of each walk, by its name."""

FOLDER = Path(__file__).parent / "recorded"
HEADERS = "headers.json"
REQUEST = ("ask", "with", "sent", "bytes", "command")
"""Members of an entry that say what was sent; the others say what was answered."""
OTHER = "postgresql"


def read_recording(folder: Path, engine: str) -> dict[str, list[Json]]:
    """Return the recorded entries of every walk, as they are on an engine."""
    shared = _read_headers(folder / HEADERS)
    return {
        path.stem: [
            _expand(json.loads(line), shared, engine)
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        for path in sorted(folder.glob("*.jsonl"))
    }


def write_recording(folder: Path, on_sqlite: Played, on_postgres: Played) -> None:
    """Write the entries of all walks; remove those of walks that are not there any more."""
    sets: list[list[str]] = []
    for path in folder.glob("*.jsonl"):
        path.unlink()
    folder.mkdir(exist_ok=True)
    for name in sorted(on_sqlite):
        lines = [
            json.dumps(entry, ensure_ascii=False)
            for entry in _merge(on_sqlite[name], on_postgres.get(name, ()), sets)
        ]
        text = "\n".join([*lines, ""])
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    _write_headers(folder / HEADERS, sets)


def differences(recorded: Played, played: Played) -> list[str]:
    """Return a sentence for each difference: the request, what was answered and what is now."""
    found = []
    for name in sorted({*recorded, *played}):
        was, now = recorded.get(name, ()), played.get(name, ())
        found += [f"{name}: {each}" for each in _differences(was, now)]
    return found


def _differences(was: Sequence[Json], now: Sequence[Json]) -> list[str]:
    found = []
    asked_then, asked_now = ([_request(entry) for entry in each] for each in (was, now))
    matcher = SequenceMatcher(None, asked_then, asked_now, autojunk=False)
    for verb, first, last, begin, end in matcher.get_opcodes():
        if verb == "equal":
            pairs = zip(was[first:last], now[begin:end], strict=True)
            found += [_compare(old, new) for old, new in pairs if old != new]
            continue
        found += [f"not asked any more: {each}" for each in asked_then[first:last]]
        found += [f"not in the recording: {each}" for each in asked_now[begin:end]]
    return found


def _compare(old: Json, new: Json) -> str:
    members = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    lines = [_request(new)]
    for name in members:
        lines += [f"  {name} was {_show(old.get(name))}", f"  {name} is  {_show(new.get(name))}"]
    return "\n".join(lines)


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _request(entry: Json) -> str:
    return _show({name: entry[name] for name in REQUEST if name in entry})


def _read_headers(path: Path) -> list[list[str]]:
    """Return the sets of headers; the file has each header once, and sets of their numbers."""
    told: dict[str, list[Any]] = json.loads(path.read_text(encoding="utf-8"))
    return [[told["headers"][number] for number in numbers] for numbers in told["sets"]]


def _write_headers(path: Path, sets: Sequence[list[str]]) -> None:
    headers = list(dict.fromkeys(header for each in sets for header in each))
    lines = ",\n  ".join(json.dumps(header) for header in headers)
    rows = ",\n  ".join(json.dumps([headers.index(header) for header in each]) for each in sets)
    text = f'{{\n "headers": [\n  {lines}\n ],\n "sets": [\n  {rows}\n ]\n}}\n'
    path.write_text(text, encoding="utf-8")


def _expand(entry: Json, shared: Sequence[list[str]], engine: str) -> Json:
    other = entry.pop(OTHER, None)
    if other is not None and engine == OTHER:
        request = {name: entry[name] for name in REQUEST if name in entry}
        entry = {**request, **other}
    if "shared" in entry:
        entry["shared"] = shared[entry["shared"]]
    return entry


def _merge(
    on_sqlite: Sequence[Json], on_postgres: Sequence[Json], shared: list[list[str]]
) -> list[Json]:
    merged = []
    others = on_postgres if len(on_postgres) == len(on_sqlite) else on_sqlite
    for entry, other in zip(on_sqlite, others, strict=True):
        line = _compact(entry, shared)
        if entry != other:
            told = {name: value for name, value in other.items() if name not in REQUEST}
            line[OTHER] = _compact(told, shared)
        merged.append(line)
    return merged


def _compact(entry: Json, shared: list[list[str]]) -> Json:
    if "shared" not in entry:
        return dict(entry)
    if entry["shared"] not in shared:
        shared.append(entry["shared"])
    return {**entry, "shared": shared.index(entry["shared"])}
