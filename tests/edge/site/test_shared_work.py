"""Work that many ask for at once is done once."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from edge_api.db.caches import SingleFlight
from edge_api.http import site as site_module
from tests.edge.edge_process import until
from tests.edge.site.conftest import RawClient

ASKING = 8


async def test_many_get_one_outcome() -> None:
    """All callers while it is under way get the same; later ones begin anew."""
    work, gate = SingleFlight[object](), asyncio.Event()

    async def make() -> object:
        await gate.wait()
        return object()

    asked = [asyncio.create_task(work.run("a", make)) for _ in range(ASKING)]
    other = asyncio.create_task(work.run("b", make))
    await asyncio.sleep(0)
    gate.set()
    outcomes = set(await asyncio.gather(*asked))

    assert len(outcomes) == 1
    assert outcomes.isdisjoint({await other, await work.run("a", make)})


async def test_a_cancelled_waiter_stops_nobody_else() -> None:
    """The first who asked goes away, and the second still gets the outcome."""
    work, gate = SingleFlight[str](), asyncio.Event()

    async def make() -> str:
        await gate.wait()
        return "made"

    first, second = (asyncio.create_task(work.run("a", make)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    gate.set()

    assert await second == "made"
    assert first.cancelled()


async def test_a_failure_reaches_all_waiting_and_is_not_kept() -> None:
    """All waiting callers get the error, and the next one begins anew."""
    work = SingleFlight[str]()

    async def fail() -> str:
        raise OSError("gone")

    async def make() -> str:
        return "made"

    asked = [asyncio.create_task(work.run("a", fail)) for _ in range(ASKING)]
    for each in asked:
        with pytest.raises(OSError, match="gone"):
            await each
    assert await work.run("a", make) == "made"


class Workers(ThreadPoolExecutor):
    """Threads of a loop, held until the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        """Take work, as `asyncio.to_thread` wraps it."""
        return super().submit(self._wait, fn, *args, **more)

    def _wait(self, work: Callable[..., Any], *args: Any, **more: Any) -> Any:
        self.gate.wait()
        return work(*args, **more)


@pytest.mark.parametrize(
    ("path", "accepted", "heavy"),
    [("/journal/a/", "text/html", "represent"), ("/journal/b/", "text/markdown", "PathSuggester")],
)
async def test_first_requests_at_once_make_ready_once(
    raw: RawClient, path: str, accepted: str, heavy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form of a file is read once, and the known paths are cut into trigrams once."""
    waiting, run = 0, SingleFlight.run
    made, original = list[object](), getattr(site_module, heavy)

    def make(*given: Any) -> Any:
        made.append(heavy)
        return original(*given)

    async def count(work: SingleFlight[Any], *given: Any) -> Any:
        nonlocal waiting
        waiting += 1
        return await run(work, *given)

    monkeypatch.setattr(SingleFlight, "run", count)
    monkeypatch.setattr(site_module, heavy, make)
    workers = Workers()
    asyncio.get_running_loop().set_default_executor(workers)
    asked = [asyncio.create_task(raw.send(path, f"Accept: {accepted}")) for _ in range(ASKING)]
    await until(lambda: waiting == ASKING)
    workers.gate.set()
    answers = await asyncio.gather(*asked)

    assert len({answer.body for answer in answers}) == 1
    assert len(made) == 1
