"""Whether the service can do its work: names and states only, for anybody to read."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from edge_api.domain.actor import Clock
from edge_api.domain.edition import Shelf
from edge_api.schema.kinds import spell_instant
from edge_api.schema.problems import Problem
from edge_api.store.plan import Store

State = Literal["pass", "warn", "fail"]
_WORSE: tuple[State, ...] = ("pass", "warn", "fail")


LOOK_SECONDS: Final = 1.0
"""How long a look at a part may take: who asks wants to know where to send the next request."""


@dataclass(frozen=True, slots=True)
class Check:
    """What one look at one part found."""

    state: State
    sentence: str = ""
    """What is wrong; empty where nothing is."""
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the check as readiness publishes it."""
        said = {"error": self.sentence} if self.sentence else {}
        return {"status": self.state, **said, **self.facts}


Look = Callable[[], Awaitable[Check | None]]
"""Looks at one part; `None` where there is no such part."""


@dataclass(slots=True)
class Health:
    """Looks at the parts when asked; remembers only what others have noticed."""

    store: Store
    shelf: Shelf
    clock: Clock
    version: str
    others: Mapping[str, Look] = field(default_factory=dict)
    """What looks at parts that are told of here by their names alone."""
    draining: bool = False
    """The process has been told to end and finishes what is under way."""
    untrusted_forwarding: bool = False
    """A peer that is no trusted proxy sent forwarding headers."""

    def start_draining(self) -> None:
        """Say from now on that requests should go elsewhere."""
        self.draining = True

    async def report(self) -> dict[str, Any]:
        """Return the whole report; `ready` says whether requests should come here."""
        store, others = await asyncio.gather(self._store(), self._others())
        checks = {
            "store": store,
            "index": self._index(),
            "shutdown": self._shutdown(),
            "proxies": self._proxies(),
            **others,
        }
        status = max((check.state for check in checks.values()), key=_WORSE.index)
        failing = [check.sentence for check in checks.values() if check.state == "fail"]
        return {
            "status": status,
            "ready": not failing,
            "version": self.version,
            "time": spell_instant(self.clock()),
            "checks": {name: check.as_json() for name, check in checks.items()},
            **({"error": f"Not ready: {'; '.join(failing)}"} if failing else {}),
        }

    async def _store(self) -> Check:
        try:
            await self.store.probe()
        except Problem:
            return Check("fail", "the store cannot be read or written")
        return Check("pass")

    async def _others(self) -> dict[str, Check]:
        found = await asyncio.gather(*map(_look, self.others.values()))
        return {name: check for name, check in zip(self.others, found, strict=True) if check}

    def _index(self) -> Check:
        edition, trouble = self.shelf.current, self.shelf.trouble
        if edition is None:
            return Check("fail", trouble or "no build is loaded")
        facts = {"build_id": edition.build_id, "posts": edition.count}
        if edition.site_url != self.shelf.site_url:
            return Check("fail", "the build was made for another SITE_URL", facts)
        return Check("warn" if trouble else "pass", trouble, facts)

    def _shutdown(self) -> Check:
        return Check("fail", "shutting down") if self.draining else Check("pass")

    def _proxies(self) -> Check:
        if self.untrusted_forwarding:
            return Check("warn", "forwarding headers come from a peer not in TRUSTED_PROXIES")
        return Check("pass")


async def _look(look: Look) -> Check | None:
    """Return what a look finds, or that it finds nothing in time, as where a network is cut."""
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await look()
    except TimeoutError:
        return Check("warn", "how this stands cannot be found out in time")
