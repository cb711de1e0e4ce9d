"""Tells that something has changed on the disk, also when a whole folder was gone and is back.

What has changed is for others to find out: a look at all files is quick, and misses nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

from watchfiles import awatch

_CALM = 10
"""Milliseconds without a change after which a burst of changes is over."""

_LONGEST_BURST = 100
"""Milliseconds after which it is taken for over in any case."""

_GLANCE = 1000
"""Milliseconds between two looks whether the folders are still the ones that are watched."""


async def watch(places: Sequence[Path]) -> AsyncGenerator[None, None]:
    """Yield when something in these files and folders may have changed, and once a second at least.

    So a change is seen also on a disk that tells of none. It goes on until it is closed.
    """
    while True:
        identities = _identify(places)
        present = [place for place, identity in zip(places, identities, strict=True) if identity]
        async with aclosing(_watch_these(present)) as changes:
            async for _ in changes:
                yield
                if _identify(places) != identities:
                    break


async def _watch_these(places: Sequence[Path]) -> AsyncGenerator[None, None]:
    """Yield on each change, and now and then without one."""
    if not places:
        await asyncio.sleep(_GLANCE / 1000)
        yield
        return
    try:
        notices = awatch(
            *places,
            debounce=_LONGEST_BURST,
            step=_CALM,
            rust_timeout=_GLANCE,
            yield_on_timeout=True,
        )
        async for _ in notices:
            yield
    except FileNotFoundError:  # It went away between the look and the watch.
        yield


def _identify(places: Sequence[Path]) -> list[tuple[int, int] | None]:
    """Return which folder stands at each place, None where there is none."""
    found: list[tuple[int, int] | None] = []
    for place in places:
        try:
            status = place.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino))
    return found
