"""Tells that something has changed on the disk, also when a whole folder was gone and is back.

A disk may tell too little, so it also says, again and again, that anything may have changed.
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


Changes = frozenset[str] | None
"""Paths that have changed, absolute; None where it is not known which."""


async def watch(places: Sequence[Path]) -> AsyncGenerator[Changes, None]:
    """Yield what has changed in these files and folders, and once a second that it is not known.

    So a change is seen also on a disk that tells of none. It goes on until it is closed.
    """
    while True:
        identities = _identify(places)
        present = [place for place, identity in zip(places, identities, strict=True) if identity]
        async with aclosing(_watch_these(present)) as changes:
            async for each in changes:
                is_other = _identify(places) != identities
                yield None if is_other else each
                if is_other:
                    break


async def _watch_these(places: Sequence[Path]) -> AsyncGenerator[Changes, None]:
    """Yield on each change, and now and then without one."""
    if not places:
        await asyncio.sleep(_GLANCE / 1000)
        yield None
        return
    try:
        notices = awatch(
            *places,
            debounce=_LONGEST_BURST,
            step=_CALM,
            rust_timeout=_GLANCE,
            yield_on_timeout=True,
        )
        async for notice in notices:
            yield frozenset(path for _, path in notice) or None
    except FileNotFoundError:  # It went away between the look and the watch.
        yield None


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
