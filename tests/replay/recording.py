"""The recording: a file for each walk with a line for each request and its answer.

What answers of one operation and status have in common stands once, in `answers.json`: the headers,
and the shape of the body or what it says of an error. An answer that differs on PostgreSQL stands
in its line under `postgresql`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from tests.replay.telling import LONG, NOW

Json = dict[str, Any]
Played = Mapping[str, Sequence[Json]]
"""The entries of each walk, by its name."""

FOLDER = Path(__file__).parent / "recorded"
ANSWERS = "answers.json"
REQUEST = ("ask", "with", "sent", "bytes", "command")
"""Members of an entry that say what was sent; the others say what was answered."""
ENGINES = ("sqlite", "postgresql")
OTHER = ENGINES[1]


def read_recording(folder: Path, engine: str) -> dict[str, list[Json]]:
    """Return the recorded entries of every walk, as they are on an engine."""
    shared = _read_answers(folder / ANSWERS)
    return {
        path.stem: [
            _expand(json.loads(line), shared, engine)
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        for path in sorted(folder.glob("*.jsonl"))
    }


class Recording:
    """The recording as it is written: each walk is saved when it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._walks = {engine: read_recording(folder, engine) for engine in ENGINES}
        self._lock = Lock()

    def save(self, engine: str, name: str, entries: Sequence[Json]) -> None:
        """Write the entries of a walk on an engine; those of the others stay as they are."""
        kept = [{key: value for key, value in each.items() if key != NOW} for each in entries]
        with self._lock:
            self._walks[engine][name] = kept
            self._write()

    def keep(self, names: Sequence[str]) -> None:
        """Remove the walks that have other names: they are not there any more."""
        for engine, walks in self._walks.items():
            self._walks[engine] = {name: walks[name] for name in walks if name in names}
        self._write()

    def _write(self) -> None:
        answers: dict[str, list[Json]] = {}
        on_sqlite, on_postgres = (self._walks[engine] for engine in ENGINES)
        texts = {}
        for name in sorted({*on_sqlite, *on_postgres}):
            entries = on_sqlite.get(name, on_postgres.get(name, []))
            lines = [
                json.dumps(entry, ensure_ascii=False)
                for entry in _merge(entries, on_postgres.get(name, entries), answers)
            ]
            texts[f"{name}.jsonl"] = "\n".join([*lines, ""])
        self._folder.mkdir(exist_ok=True)
        for path in self._folder.iterdir():
            if path.name not in (ANSWERS, *texts):
                path.unlink()
        for name, text in {**texts, ANSWERS: _format_answers(answers)}.items():
            path = self._folder / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")


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
            found += [each for old, new in pairs if (each := _compare(old, new))]
            continue
        found += [f"not asked any more: {each}" for each in asked_then[first:last]]
        found += [f"not in the recording: {each}" for each in asked_now[begin:end]]
    return found


def _compare(old: Json, new: Json) -> str:
    members = [name for name in {**old, **new} if name != NOW and old.get(name) != new.get(name)]
    lines = [_request(new)]
    for name in members:
        lines += [f"  {name} was {_show(old.get(name))}", f"  {name} is  {_show(new.get(name))}"]
    if "digest" in members and NOW in new:
        lines.append(f"  the body is {new[NOW]}")
    return "\n".join(lines) if members else ""


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _request(entry: Json) -> str:
    return _show({name: entry[name] for name in REQUEST if name in entry})


def _read_answers(path: Path) -> dict[str, list[Json]]:
    """Return the answers by operation and status, with their headers."""
    if not path.exists():
        return {}
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    sets = {key: [told["headers"][name] for name in names] for key, names in told["sets"].items()}
    for each in (each for answers in told["answers"].values() for each in answers):
        if "shared" in each:
            each["shared"] = sets[each["shared"]]
    found: dict[str, list[Json]] = told["answers"]
    return found


def _format_answers(answers: Mapping[str, Sequence[Json]]) -> str:
    """Return the file: headers and sets of them by their digests, and a line for each answer."""
    headers: dict[str, str] = {}
    sets: dict[str, str] = {}
    lines: dict[str, str] = {}
    for name in sorted(answers):
        told = []
        for each in answers[name]:
            line = dict(each)
            if "shared" in each:
                keys = {_name(header): header for header in each["shared"]}
                headers |= {key: _show(header) for key, header in keys.items()}
                line["shared"] = _name(_show(each["shared"]))
                sets[line["shared"]] = _show([*keys])
            told.append(_show(line))
        lines[name] = "\n".join(["[", ",\n".join(f"   {each}" for each in told), "  ]"])
    parts = []
    for part, members in (("headers", headers), ("sets", sets), ("answers", lines)):
        told = [f"  {_show(key)}: {members[key]}" for key in sorted(members)]
        parts.append("\n".join([f" {_show(part)}: {{", ",\n".join(told), " }"]))
    return "\n".join(["{", ",\n".join(parts), "}", ""])


def _name(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:6]


def _name_answer(entry: Json) -> str:
    """Return the name of the operation that an entry asks for, with the status of its answer."""
    asked = entry.get("ask", "").partition("?")[0]
    if "command" in entry:
        asked = " ".join(["command", *entry["command"].split()[:2]])
    called = [
        found[1]
        for member in ("method", "name")
        if asked.endswith("/mcp")
        and (found := re.search(rf'"{member}": ?"([\w/]+)"', str(entry.get("sent", ""))))
    ]
    name = re.sub(r"<([a-z ]+) \d+>", r"<\1>", " ".join([asked or "bytes", *called]))
    return f"{name[:100]} {entry.get('status', 'none')}"


def _expand(entry: Json, shared: Mapping[str, Sequence[Json]], engine: str) -> Json:
    other = entry.pop(OTHER, None)
    if other is not None and engine == OTHER:
        request = {name: entry[name] for name in REQUEST if name in entry}
        entry = {**request, **other}
    if "answer" in entry:
        entry |= shared[_name_answer(entry)][entry.pop("answer")]
    return entry


def _merge(
    on_sqlite: Sequence[Json], on_postgres: Sequence[Json], answers: dict[str, list[Json]]
) -> list[Json]:
    merged = []
    others = on_postgres if len(on_postgres) == len(on_sqlite) else on_sqlite
    for entry, other in zip(on_sqlite, others, strict=True):
        line = _compact(entry, answers)
        if entry != other:
            told = _compact(other, answers).items()
            line[OTHER] = {name: value for name, value in told if name not in REQUEST}
        merged.append(line)
    return merged


def _compact(entry: Json, answers: dict[str, list[Json]]) -> Json:
    """Return the entry with the number of its answer among those of its operation and status."""
    names = {"shared", "shape"} & entry.keys()
    if len(_show(entry.get("body"))) > LONG or (
        entry.get("status", 0) >= 400 and isinstance(entry.get("body"), dict)
    ):
        names.add("body")
    if not names:
        return dict(entry)
    answer = {name: entry[name] for name in entry if name in names}
    known = answers.setdefault(_name_answer(entry), [])
    if answer not in known:
        known.append(answer)
    line = {name: value for name, value in entry.items() if name not in names}
    return {**line, "answer": known.index(answer)}
