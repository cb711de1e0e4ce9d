"""Measuring builders of sites, with few posts: no time is judged here."""

import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from benchmarks.build_race import Build, BuildRace, Phase, race_builds
from benchmarks.builders import BUILDERS, HUGO, OURS, PELICAN, STOCK, Builder
from benchmarks.cost import Cost, run
from benchmarks.parts.build import PROMISED, count_rounds, describe
from benchmarks.peers.environment import find_hugo
from benchmarks.race import EDGE
from benchmarks.report import FILE, find_missed, write_report
from benchmarks.table import TABLE

pytestmark = pytest.mark.size("test")

LOCK = Path("requirements/bench.txt")
POSTS = 3

COPY = """\
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
(folder / "made").mkdir(exist_ok=True)
for post in sorted((folder / "content").glob("*.md")){chosen}:
    page = folder / "made" / post.name
    {when}page.write_text(post.read_text())
"""
"""A builder of its own: every post becomes a page as it is."""


def copier(chosen: str = "", when: str = "") -> Builder:
    """Return a builder that copies posts; not all of them, or not always."""
    program = COPY.format(chosen=chosen, when=when)
    return Builder(
        EDGE, "yaml", "made", "{}.md", lambda folder: [sys.executable, "-c", program, str(folder)]
    )


def build_race(posts: int, **seconds: tuple[float, float]) -> BuildRace:
    """Return two rounds, in the second of which everything took thrice as long."""
    names = {"ours": EDGE, "pelican": PELICAN, "hugo": HUGO}
    return BuildRace(
        posts, {names[name]: [build(*each), build(*each, 3)] for name, each in seconds.items()}
    )


def build(cold: float, edited: float, slowness: int = 1) -> Build:
    """Return what one build took."""
    times = {Phase.COLD: cold * slowness, Phase.EDITED: edited * slowness}
    costs = {phase: Cost(time, 2 * time, 100.0 * slowness) for phase, time in times.items()}
    return Build(costs, 10, 1.5)


@pytest.fixture
def race() -> Callable[[int], BuildRace]:
    """Return a maker of races over so many posts: 4 x Pelican and 0.5 x Hugo cold."""
    return lambda posts: build_race(posts, ours=(2.0, 1.0), pelican=(8.0, 8.0), hugo=(1.0, 1.5))


@pytest.mark.size("ci")
def test_each_builder_is_measured_cold_and_after_an_edit(tmp_path: Path) -> None:
    """This project and stock Pelican build the same posts, in turn, and leave nothing behind."""
    held = race_builds([OURS, STOCK], POSTS, 1, tmp_path)

    assert list(held.builds) == [EDGE, PELICAN]
    for (made,) in held.builds.values():
        assert made.files >= POSTS
        assert made.mib > 0
        assert all(cost.seconds > 0 and cost.processor > 0 for cost in made.costs.values())
    assert list(tmp_path.iterdir()) == []


def test_every_round_starts_cold(tmp_path: Path) -> None:
    """A builder that kept what an earlier round made would not show the edit of the next."""
    held = race_builds([copier()], POSTS, 2, tmp_path)

    assert [made.files for made in held.builds[EDGE]] == [POSTS, POSTS]


@pytest.mark.parametrize(
    ("builder", "sentence"),
    [
        (copier(chosen="[1:]"), "left out 1 posts: "),
        (copier(when="page.exists() or "), "does not show what was added"),
    ],
)
def test_a_builder_that_does_not_do_its_work_ends_the_run(
    tmp_path: Path, builder: Builder, sentence: str
) -> None:
    """Neither one that leaves out a post nor one that is deaf to an edit gets a figure."""
    with pytest.raises(SystemExit, match=sentence):
        race_builds([builder], POSTS, 1, tmp_path)


def test_a_command_that_fails_ends_the_run() -> None:
    """With its status, after what it has said itself."""
    with pytest.raises(SystemExit, match="ended with 3"):
        run([sys.executable, "-c", "raise SystemExit(3)"])


def test_processor_time_and_memory_of_children_count() -> None:
    """The work of its children is a cost of the command."""
    child = "import time; kept = b'x' * 80_000_000\nwhile time.process_time() < 0.5: pass"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"

    cost = run([sys.executable, "-c", program])

    assert cost.processor >= 0.5
    assert cost.peak_mib >= 76 or sys.platform != "linux"


def test_a_ratio_is_of_each_round(race: Callable[[int], BuildRace]) -> None:
    """A slowdown of the machine for a while does not change it, by either measure."""
    reached = race(PROMISED).compare(Phase.COLD, PELICAN)

    assert list(reached.rounds) == [4.0, 4.0]
    assert reached.by_cost == 4.0


def test_lines_of_the_table_are_about_the_largest_size(
    race: Callable[[int], BuildRace],
) -> None:
    """Every line of the build is reached with 10,000 posts, and none with fewer."""
    few, most = describe([race(100)], ""), describe([race(100), race(PROMISED)], "")

    mine = ("cold build", "one edit", "build memory")
    lines = {line.name for line in TABLE if line.name.startswith(mine)}
    assert few.reached == {}
    assert set(most.reached) == lines
    assert most.reached["build memory"].value == 200.0
    missed = {line.name for line in find_missed(most.reached, is_whole=False)}
    assert missed == {f"one edit/{HUGO}", f"one edit/{PELICAN}"}


def test_the_report_shows_growth_by_both_measures(
    tmp_path: Path, race: Callable[[int], BuildRace]
) -> None:
    """Pictures by the clock and by processor time, and rounds that say how many they are."""
    write_report(tmp_path, [describe([race(100), race(1_000)], "In memory.")], is_whole=False)

    text = (tmp_path / FILE).read_text()
    assert "2 of 100, 2 of 1,000 posts" in text
    assert "| 1,000 | stock Pelican | 16.00 | 8.00, 24.00 | 4.00 x | 32.00 | 4.00 x | 300 |" in text
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        f"the-build-{phase}-by-{by}.svg"
        for phase in ("cold-build", "one-edit")
        for by in ("the-clock", "processor-time")
    }


def test_only_the_largest_size_has_one_round() -> None:
    """Builds of seconds are repeated, builds of minutes are not."""
    assert [count_rounds(posts) for posts in (100, 1_000, PROMISED)] == [3, 3, 1]


def test_builders_have_names_of_their_own() -> None:
    """Figures are kept by name, and this project is one of the builders."""
    assert {builder.name for builder in BUILDERS} == {EDGE, PELICAN, HUGO}


def test_hugo_itself_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program is found in its package; an environment without one is reported by its path."""
    monkeypatch.setenv("BENCH_VENV", str(tmp_path))
    (tmp_path / "installed").write_text(sha256(LOCK.read_bytes()).hexdigest())
    with pytest.raises(SystemExit, match=f"Hugo is not in {tmp_path}"):
        find_hugo()

    program = tmp_path / "lib" / "python3.11" / "site-packages" / "hugo" / "binaries" / "hugo"
    program.parent.mkdir(parents=True)
    program.touch()
    assert find_hugo() == program
