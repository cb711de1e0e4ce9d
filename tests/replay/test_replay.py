"""Every recorded request is answered as it was recorded, on both engines."""

from pathlib import Path

import pytest

from tests.replay.coverage import missed_operations
from tests.replay.player import FEWEST, engine_for, play
from tests.replay.recording import ENGINES, FOLDER, differences, read_recording

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
