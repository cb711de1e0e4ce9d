import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.load import Figure
from benchmarks.peers import FASTAPI, HELLO
from benchmarks.race import EDGE, Race
from benchmarks.report import FILE, find_missed, gather, list_promises, write_report
from benchmarks.section import Grid, Reached, Section, compare
from benchmarks.table import TABLE

POST = f"post/{HELLO}"
MEMORY = "memory, 1,000 posts"


def figure(per_second: float, cpu_us: float = 50.0) -> Figure:
    """Return what a server reached in one round."""
    return Figure(per_second, 1.0, 4.0, 3000, cpu_us, 90.0)


@pytest.fixture
def race() -> Race:
    """Return three rounds, in the second of which both servers were slowed."""
    ours = [figure(1200), figure(300), figure(1200)]
    theirs = [figure(1000), figure(200), figure(1100)]
    return Race("One post & its <list>", {EDGE: ours, HELLO: theirs})


def test_a_ratio_is_the_median_of_the_rounds(race: Race) -> None:
    """A slowdown of both for a while does not change it."""
    assert Reached(race.speeds(HELLO)).value == pytest.approx(1.2)


def test_names_of_lines_are_unique() -> None:
    """A measurement belongs to one line."""
    names = [line.name for line in TABLE]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "value", "is_missed"),
    [(POST, 0.65, False), (POST, 0.64, True), (MEMORY, 200.0, False), (MEMORY, 200.5, True)],
)
def test_a_line_is_missed_on_the_wrong_side(name: str, value: float, *, is_missed: bool) -> None:
    """At least and at most, the bound itself included."""
    missed = find_missed({name: Reached([value], [value])}, is_whole=False)
    assert [line.name for line in missed] == ([name] if is_missed else [])


def test_a_promise_by_processor_time_is_held_to_it() -> None:
    """Speeds that others have spoilt do not count; a figure that is missing does not keep it."""
    kept, slower = Reached([0.1], [0.7]), Reached([0.7], [0.1])

    assert find_missed({POST: kept}, is_whole=False) == []
    for reached in (slower, Reached([0.7])):
        assert [line.name for line in find_missed({POST: reached}, is_whole=False)] == [POST]


def test_each_measured_line_is_printed_with_what_may_be_promised() -> None:
    """Nine tenths of it, on the side that the line is about."""
    reached = {POST: Reached([0.5], [0.8, 0.9, 1.0]), MEMORY: Reached([90.0])}

    post, memory = list_promises(reached)
    assert post == (
        f"{POST}: 0.9 x {HELLO} by CPU time (0.8, 0.9, 1); 0.5 by the clock; at least 0.65; "
        "to be promised: 0.81"
    )
    assert memory == f"{MEMORY}: 90 MiB (90); at most 200; to be promised: 100"


def test_no_memory_is_no_kept_promise() -> None:
    """Where the system hides the memory of processes, or they had ended, it was not measured."""
    (missed,) = find_missed({MEMORY: Reached([0.0])}, is_whole=False)
    assert missed.name == MEMORY


def test_a_whole_run_misses_what_it_has_not_measured() -> None:
    """Every promise has to be looked at, but for those that are only reported."""
    missed = {line.name for line in find_missed({}, is_whole=True)}
    assert missed == {line.name for line in TABLE if line.wanted is not None}


def test_every_line_has_a_section_that_measures_it() -> None:
    """Each name is in the part that reaches it, or is made there of its peers."""
    parts = "".join(path.read_text() for path in Path("benchmarks/parts").glob("*.py"))
    for line in TABLE:
        stem = re.split(r"[/,]", line.name)[0]
        assert re.search(rf"""["\s({{]{stem}[",/=]""", parts), line.name


def test_a_report_has_the_table_the_races_and_their_plots(tmp_path: Path, race: Race) -> None:
    """The verdict is beside each line, and each plot is well-formed and named in the text."""
    section = Section(
        "Posts",
        "How.",
        (race,),
        (Grid("Sizes", ("posts", "MiB"), [("100", "90")]),),
        {
            POST: compare(race, HELLO),
            f"post/{FASTAPI}": Reached([2.0], [2.0]),
            f"proxied lead/{FASTAPI}": Reached([0.4], [0.5]),
        },
    )
    write_report(tmp_path, [section], is_whole=False)

    text = (tmp_path / FILE).read_text()
    assert re.search(r"\| at least 0.65 \| 1 x aiohttp hello-world by CPU time \|.*\| yes \|", text)
    assert "| at least 3 | 2 x FastAPI by CPU time | 2 | 2 by the clock | **no** |" in text
    assert "| reported | 0.5 x FastAPI by CPU time | 0.5 | 0.4 by the clock |  |" in text
    assert "| 100 | 90 |" in text
    (plot,) = re.findall(r"!\[.*\]\((.*\.svg)\)", text)
    drawn = ET.fromstring((tmp_path / plot).read_text())  # noqa: S314  our own
    assert "1,200 /s" in "".join(drawn.itertext())


def test_sections_that_race_for_the_same_have_plots_of_their_own(
    tmp_path: Path, race: Race
) -> None:
    """Otherwise the second plot would be in both places."""
    slower = Race(race.title, {EDGE: [figure(77)], HELLO: [figure(70)]})
    sections = [Section("Posts", "How.", (race,)), Section("Workers", "How.", (slower,))]
    write_report(tmp_path, sections, is_whole=False)

    plots = re.findall(r"!\[.*\]\((.*\.svg)\)", (tmp_path / FILE).read_text())
    shown = [(tmp_path / plot).read_text() for plot in plots]
    assert ["1,200 /s" in plot for plot in shown] == [True, False]
    assert ["77 /s" in plot for plot in shown] == [False, True]


def test_results_of_several_sections_are_merged(race: Race) -> None:
    """By the names of the lines."""
    one, other = (Section("x", "", reached={name: Reached([1.0])}) for name in (POST, MEMORY))
    assert set(gather([one, other])) == {POST, MEMORY}
    assert race.costs(HELLO) == [1.0, 1.0, 1.0]
