"""Names that readers get: programs of the package's list, browsers, and programs of no list."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from pathlib import Path

import pytest
from crawleruseragents import CRAWLER_USER_AGENTS_DATA

from edge_api.stats.naming import plain_name
from tests.edge.stats.conftest import CHROME, POST, Counting
from tests.sizes import scaled

pytestmark = pytest.mark.one_engine

HERE = Path(__file__).parent
BROWSERS = (HERE / "browsers.txt").read_text(encoding="utf-8").splitlines()
"""Of browsers that people use."""
PROGRAMS = (HERE / "programs.txt").read_text(encoding="utf-8").splitlines()
"""Of programs that the list lacks."""
LISTED = [
    (agent, plain_name(each["pattern"]))
    for each in CRAWLER_USER_AGENTS_DATA
    for agent in each["instances"]
]
"""The instances of the list, with their names."""


async def send(counting: Counting, agents: Iterable[str]) -> None:
    """Send a request with each agent, on some connections at once, from differing networks."""
    numbered = enumerate(agents)

    async def send_some() -> None:
        for number, agent in numbered:
            address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            assert await counting.get(POST, agent, address) == 200

    await asyncio.gather(*(send_some() for _ in range(20)))


def found_of(views: Counter[tuple[str, ...]], wanted: Sequence[tuple[str, ...]]) -> float:
    """Return the share of readers that have what they should, by kind or by name."""
    given: Counter[tuple[str, ...]] = Counter()
    for (_, kind, agent), count in views.items():
        given[(agent,) if wanted[0][0] != "person" else (kind,)] += count
    return sum((Counter(wanted) & given).values()) / len(wanted)


@pytest.mark.size("test", grows=True)
async def test_listed_programs_get_their_names(counting: Counting) -> None:
    """99 of 100 instances of the list do; up to 100,000 requests, more than are told apart."""
    requests = list(islice(cycle(LISTED), scaled(test=len(LISTED), judge=100_000)))
    await send(counting, (agent for agent, _ in requests))
    share = found_of(await counting.views(), [(name,) for _, name in requests])
    assert share >= 0.99


async def test_browsers_are_people(counting: Counting) -> None:
    """Each of them."""
    await send(counting, BROWSERS)
    assert len(set(BROWSERS)) == 61
    assert await counting.views() == {(POST, "person", ""): 61}


async def test_a_name_of_a_device_makes_no_program(counting: Counting) -> None:
    """A phone by Cubot and a scanner are read on by people; a program there has its version."""
    android = CHROME.replace("Windows NT 10.0; Win64; x64", "Linux; Android 10; {}")
    people = "CUBOT X30", "CUBOT_X18_Plus Build/O11019", "en-us; CUBOT", "Scanner CT60 Build/1"
    programs = "SomeBot/1.0", "CUBOT X30; SomeBot/1.0", "K; compatible; AScan/2"
    await send(counting, [android.format(device) for device in people + programs])
    await send(counting, [f"{android.format('CUBOT X30')} SomeBot", "CUBOT X30"])
    assert await counting.views() == {
        (POST, "person", ""): len(people),
        (POST, "other_program", ""): len(programs) + 2,
    }


async def test_programs_of_no_list_are_no_people(counting: Counting) -> None:
    """Most of 200 that the list lacks, though they have no name; the share is printed."""
    await send(counting, PROGRAMS)
    views = await counting.views()
    people = views[POST, "person", ""]
    assert len(set(PROGRAMS)) == sum(views.values()) == 200
    assert people <= 10
    assert {agent for _, _, agent in views} == {""}
