"""The recording: a file for each walk with a line for each request and its answer.

What answers of one operation and status have in common is once in `answers.json`: the headers,
and the shape of the body, a long body, or what it says of an error. Its number stays when its text
changes, so that no line changes with it. An answer that differs on PostgreSQL is in its line
under `postgresql`.
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
NUMBER = "answer"
"""The member of a recorded entry with the number of its answer: it is not compared."""
_IGNORED = (NOW, NUMBER)
_LONG_BODY = re.compile(r"\b\d+ characters, [0-9a-f]{16}")
Answers = dict[str, dict[int, Json]]
"""The answers by operation and status, and then by number."""


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
        with self._lock:
            former = self._walks[engine].get(name, [])
            numbers = {
                _request(entry): entry[NUMBER] for entry in reversed(former) if NUMBER in entry
            }
            asked = [*map(_request, former)]
            kept = []
            for at, entry in enumerate(entries):
                line = {key: value for key, value in entry.items() if key != NOW}
                request = _request(entry)
                # That of the same request at this place, or elsewhere in the walk.
                known = former[at].get(NUMBER) if asked[at : at + 1] == [request] else None
                number = numbers.get(request) if known is None else known
                kept.append(line if number is None else {**line, NUMBER: number})
            self._walks[engine][name] = kept
            self._write()

    def keep(self, names: Sequence[str]) -> None:
        """Remove the walks that have other names: they are not there any more."""
        for engine, walks in self._walks.items():
            self._walks[engine] = {name: walks[name] for name in walks if name in names}
        self._write()

    def _last(self) -> Mapping[str, int]:
        """Return the highest number that an answer of each operation and status has had."""
        last: dict[str, int] = {}
        for entry in (e for walks in self._walks.values() for each in walks.values() for e in each):
            name = _name_answer(entry)
            last[name] = max(last.get(name, -1), entry.get(NUMBER, -1))
        return last

    def _write(self) -> None:
        answers: Answers = {}
        last = self._last()
        on_sqlite, on_postgres = (self._walks[engine] for engine in ENGINES)
        texts = {}
        for name in sorted({*on_sqlite, *on_postgres}):
            entries = on_sqlite.get(name, on_postgres.get(name, []))
            lines = [
                json.dumps(entry, ensure_ascii=False)
                for entry in _merge(entries, on_postgres.get(name, entries), answers, last)
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
    members = [
        name for name in {**old, **new} if name not in _IGNORED and old.get(name) != new.get(name)
    ]
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


def _read_answers(path: Path) -> Answers:
    """Return the answers by operation and status, with their headers."""
    if not path.exists():
        return {}
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    sets = {
        key: [stored["headers"][name] for name in names] for key, names in stored["sets"].items()
    }
    for each in (each for answers in stored["answers"].values() for each in answers.values()):
        if "shared" in each:
            each["shared"] = sets[each["shared"]]
    return {
        name: {int(number): each for number, each in answers.items()}
        for name, answers in stored["answers"].items()
    }


def _format_answers(answers: Answers) -> str:
    """Return the file: headers and sets of them by their digests, and a line for each answer."""
    headers: dict[str, str] = {}
    sets: dict[str, str] = {}
    lines: dict[str, str] = {}
    for name in sorted(answers):
        rows = []
        for number, each in sorted(answers[name].items()):
            line = dict(each)
            if "shared" in each:
                keys = {_name(header): header for header in each["shared"]}
                headers |= {key: _show(header) for key, header in keys.items()}
                line["shared"] = _name(_show(each["shared"]))
                sets[line["shared"]] = _show([*keys])
            rows.append(f'   "{number}": {_show(line)}')
        lines[name] = "\n".join(["{", ",\n".join(rows), "  }"])
    parts = []
    for part, members in (("headers", headers), ("sets", sets), ("answers", lines)):
        rows = [f"  {_show(key)}: {members[key]}" for key in sorted(members)]
        parts.append("\n".join([f" {_show(part)}: {{", ",\n".join(rows), " }"]))
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


def _expand(entry: Json, shared: Answers, engine: str) -> Json:
    other = entry.pop(OTHER, None)
    if other is not None and engine == OTHER:
        request = {name: entry[name] for name in REQUEST if name in entry}
        entry = {**request, **other}
    if NUMBER in entry:
        entry |= shared[_name_answer(entry)][entry[NUMBER]]
    return entry


def _merge(
    on_sqlite: Sequence[Json],
    on_postgres: Sequence[Json],
    answers: Answers,
    last: Mapping[str, int],
) -> list[Json]:
    merged = []
    others = on_postgres if len(on_postgres) == len(on_sqlite) else on_sqlite
    for entry, other in zip(on_sqlite, others, strict=True):
        line = _compact(entry, answers, last)
        if any(entry.get(name) != other.get(name) for name in {*entry, *other} - {NUMBER}):
            compact = _compact(other, answers, last).items()
            line[OTHER] = {name: value for name, value in compact if name not in REQUEST}
        merged.append(line)
    return merged


def _compact(entry: Json, answers: Answers, last: Mapping[str, int]) -> Json:
    """Return the entry with the number of its answer among those of its operation and status.

    A new answer has the number that the request's former one had, or one after `last`.
    """
    names = {"shared", "shape"} & entry.keys()
    body = _show(entry.get("body"))
    is_error = entry.get("status", 0) >= 400 and isinstance(entry.get("body"), dict)
    if is_error or len(body) > LONG or _LONG_BODY.search(body):
        names.add("body")
    line = {name: value for name, value in entry.items() if name not in {*names, NUMBER}}
    if not names:
        return line
    answer = {name: entry[name] for name in entry if name in names}
    name = _name_answer(entry)
    known = answers.setdefault(name, {})
    found = next((number for number, each in known.items() if each == answer), None)
    if found is None:
        found = entry.get(NUMBER, -1)
        if found < 0 or found in known:
            found = max(last.get(name, -1), *known, -1) + 1
        known[found] = answer
    return {**line, NUMBER: found}
