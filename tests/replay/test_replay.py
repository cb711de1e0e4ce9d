"""Every recorded request is answered as it was recorded, on both engines."""

from pathlib import Path

import pytest

from tests.replay.coverage import missed_operations
from tests.replay.player import FEWEST, engine_for, play
from tests.replay.recording import ANSWERS, ENGINES, FOLDER, Recording, differences, read_recording
from tests.replay.telling import tell_digest

pytestmark = pytest.mark.size("ci")


@pytest.mark.parametrize("name", ENGINES)
def test_answers_are_as_recorded(name: str, tmp_path: Path) -> None:
    """No answer differs, enough was asked, and every documented operation was reached."""
    (tmp_path / "play").mkdir()
    with engine_for(name) as engine:
        performance = play(engine, tmp_path / "play", tmp_path / "builds")
    found = differences(read_recording(FOLDER, name), performance.played)

    if found:
        pytest.fail("\n".join([*found, "See CONTRIBUTING.md, tools/replay"]), pytrace=False)
    assert performance.count >= FEWEST
    assert missed_operations(performance.operations, performance.played) == []


def test_a_different_answer_is_noticed() -> None:
    """So is a request that is not sent any more, a new one, and a play of nothing."""
    recorded = read_recording(FOLDER, "sqlite")
    name, entries = next(iter(recorded.items()))
    first = {**entries[0], "status": 599}

    assert differences(recorded, recorded) == []
    (found,) = differences(recorded, {**recorded, name: [first, *entries[1:]]})
    assert "status is  599" in found
    assert len(differences(recorded, {**recorded, name: entries[1:]})) == 1
    assert len(differences({**recorded, name: entries[1:]}, recorded)) == 1
    assert len(differences(recorded, {})) == sum(map(len, recorded.values())) >= FEWEST


def test_a_walk_is_saved_when_it_ends(tmp_path: Path) -> None:
    """Shared parts are stored once; differences on PostgreSQL are in its line."""
    first = {"ask": "GET /a", "status": 200, "shared": ["X: 1"], "shape": ["text"], "digest": "d"}
    other = {**first, "digest": "e", "now": "the body"}
    recording = Recording(tmp_path)
    recording.save("sqlite", "one", [first, other])
    recording.save("postgresql", "one", [first, {**other, "status": 404}])
    recording.save("sqlite", "two", [first])

    on_sqlite = {"one": [first, other], "two": [first]}
    on_postgres = {**on_sqlite, "one": [first, {**other, "status": 404}]}
    assert differences(read_recording(tmp_path, "sqlite"), on_sqlite) == []
    assert differences(read_recording(tmp_path, "postgresql"), on_postgres) == []
    assert (tmp_path / ANSWERS).read_text().count('"shape"') == 2
    assert '"digest": "d", "answer": 0}' in (tmp_path / "two.jsonl").read_text()
    lines = (tmp_path / "two.jsonl").read_text()
    for name, entries in on_sqlite.items():
        wider = [{**each, "shape": ["text", "null"]} for each in entries]
        recording.save("sqlite", name, wider)
        recording.save("postgresql", name, wider)
    assert (tmp_path / "two.jsonl").read_text() == lines
    assert '"null"' in (tmp_path / ANSWERS).read_text()
    Recording(tmp_path).keep(["two"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [ANSWERS, "two.jsonl"]


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("application/json", '[{"a": 1}]', '[{"a": 1, "b": null}]'),
        ("text/csv", "a\r\n1\r\n", "a,b\r\n1,\r\n"),
    ],
)
def test_a_new_column_changes_shapes_alone(kind: str, before: str, after: str) -> None:
    """A value that is not empty is another body."""
    old, new = tell_digest(kind, before), tell_digest(kind, after)

    assert old["shape"] != new["shape"]
    assert old["digest"] == new["digest"]
    assert tell_digest(kind, before.replace("1", "2"))["digest"] != old["digest"]
