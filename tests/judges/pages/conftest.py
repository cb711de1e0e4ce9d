"""Two served journals, and what a browser notices on every kind of page of them.

How much is judged grows with the size of the run. Which pages there are is found out by `crawl.py`
and `places.py`, the largest of each kind is judged. What is not held against a page is in
tables, with its reason: EXCEPTIONS of `budgets.py` and `nu.py`, NOT_OURS of
`test_lighthouse_whole.py`, UNLISTED of `lighthouse.py`, RULES of `markup.mjs`. Each judge is shown
a page that is broken.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from tests.browser.conftest import chromium
from tests.judges.pages.places import places, strains
from tests.judges.pages.sample import write_sample
from tests.judges.pages.served import Served, serve
from tests.judges.pages.visit import JUDGED, PageVisit, look_at_all
from tests.own_journal import JUDGED_CONTENT
from tests.sizes import scaled
from tools import judges as installation

__all__ = ["chromium"]
STRAINS_MOST = scaled(test=2, ci=1000)
Outcome = TypeVar("Outcome")


def wait_for(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Run `work` to its end in a thread, whatever loop this one may have."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    """Have what `package-lock.json` names installed."""
    installation.prepare()


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return the product's own journal, or a small one where somebody else's is there."""
    with serve(JUDGED_CONTENT, tmp_path_factory.mktemp("journal")) as served:
        yield served


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return the journal of everything that strains a page."""
    folder = tmp_path_factory.mktemp("sample")
    with serve(write_sample(folder / "content"), folder) as served:
        yield served


@pytest.fixture(scope="session")
def visits(chromium: str, journal: Served, sample: Served) -> list[PageVisit]:
    """Return what was noticed on each page of both, in each variant that is judged."""
    return [
        visit
        for served, found in ((journal, places(journal)), (sample, strains(sample)[:STRAINS_MOST]))
        for visit in wait_for(look_at_all(chromium, served, found, JUDGED))
    ]
