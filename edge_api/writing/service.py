"""Hands requests to write to the watcher, through a spool, and waits for its answers."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from edge_api.auth.actor import ANYONE, Actor, Clock, audit_entry
from edge_api.db.problems import OUTCOME_UNKNOWN, Problem
from edge_api.db.query import Query, Store
from edge_api.journal.site_files import INDEX_HTML
from edge_api.schema.environment import BUILD
from edge_api.schema.writing import (
    UNCERTAIN,
    Operation,
    Spool,
    WriteAnswer,
    WriteRequest,
    locate_var,
)
from edge_api.settings import Settings

_log = logging.getLogger(__name__)
Purge = Callable[[datetime, Iterable[str]], tuple[Query, ...]]
"""Returns the query that has a CDN forget paths."""
AUDITED: Final[frozenset[Operation]] = frozenset(
    {"save", "picture", "publish", "withdraw", "bin", "share"}
)
"""The operations that change something, or show it to others."""
_OFF: Final = "Writing is switched off here; WRITING=on in .env switches it on, after a restart"
_NO_WATCHER: Final = f"No watcher that can write runs, so nothing was saved; start {BUILD} watch"
_POLL_SECONDS: Final = 0.01
_BEGIN_SECONDS: Final = 20.0
"""The longest wait until the watcher begins with a request."""
_END_SECONDS: Final = 60.0
"""The longest wait for an answer."""


class Writing:
    """The edge's end of the spool; it audits what the watcher wrote."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, purge: Purge) -> None:
        """`purge` is called for the paths of withdrawn posts."""
        self._purge = purge
        self._is_on = settings.writing == "on"
        self._spool = Spool(locate_var(settings.database_url, settings.build_dir))
        self._store = store
        self._clock = clock

    def is_withdrawn(self, path: str) -> bool:
        """Return whether a path is that of a post that was withdrawn, in a build or not."""
        withdrawn = self._spool.list_withdrawn() if self._is_on else frozenset()
        name = path[1:]
        return not withdrawn.isdisjoint((name, f"{name}.html", f"{name.rstrip('/')}/index.html"))

    async def ask(self, request: WriteRequest, actor: Actor | None = None) -> WriteAnswer:
        """Return what the watcher did, for an actor; without one, for the owner or the author.

        Raises Problem for what it refused, or if it is away.
        """
        actor = actor or replace(ANYONE, name=request.author or "owner")
        # A caller that goes away stops neither the watcher nor the entry about what it did.
        return await asyncio.shield(asyncio.create_task(self._ask(request, actor)))

    async def _ask(self, request: WriteRequest, actor: Actor) -> WriteAnswer:
        if not self._is_on:
            raise Problem("unavailable", _OFF)
        if not await asyncio.to_thread(self._spool.is_watched):
            raise Problem("unavailable", _NO_WATCHER)
        try:
            name = await asyncio.to_thread(self._spool.put, request)
        except OSError as error:
            raise Problem(
                "unavailable", f"The request cannot be stored: {error.strerror}; free some space"
            ) from error
        answer = WriteAnswer(version="unknown")  # as the audit log has it if nothing comes back
        try:
            answer = await self._wait(name)
        finally:  # also where nothing came back, since it may have been done
            # The owner's own saves come every two seconds, and their versions are kept.
            is_own_save = request.operation == "save" and not request.author
            if request.operation in AUDITED and not answer.refusal and not is_own_save:
                await self._audit(request, answer, actor)
        if answer.refusal:
            raise Problem(
                answer.refusal,
                answer.message,
                findings=[each.model_dump() for each in answer.findings],
                headers={"ETag": f'"{answer.version}"'} if answer.version else {},
            )
        return answer

    async def _audit(self, request: WriteRequest, answer: WriteAnswer, actor: Actor) -> None:
        """Store who wrote what, after the write: one that was done is never answered as failed.

        A CDN forgets the addresses of a post that was withdrawn, which answer 410 without a build.
        """
        verb = "schedule" if request.at else request.operation
        slug = answer.source.slug if answer.source else request.slug or answer.path
        now = self._clock()
        named = filter(None, (slug, answer.version or request.base))
        entry = audit_entry(actor, verb, "posts", 1, now, *named)
        is_withdrawal = request.operation == "withdraw"
        files = self._spool.list_withdrawn() if is_withdrawal else frozenset()
        ends = ("", INDEX_HTML, ".html")
        paths = {f"/{name}".removesuffix(end) for name in files for end in ends}
        try:
            await self._store.run(entry, *self._purge(now, paths))
        except Problem as problem:
            _log.error("not in the audit log: %s: %s", dict(entry.rows[0]), problem.message)

    async def _wait(self, name: str) -> WriteAnswer:
        began = time.monotonic()
        while (waited := time.monotonic() - began) < _END_SECONDS:
            await asyncio.sleep(_POLL_SECONDS)
            if answer := await asyncio.to_thread(self._spool.take, name):
                return answer
            is_watched = self._spool.is_watched()
            if (waited > _BEGIN_SECONDS or not is_watched) and self._spool.withdraw(name):
                return WriteAnswer(refusal="unavailable", message=_NO_WATCHER)
            if not is_watched:  # it was killed at its work, or has answered before it ended
                if answer := await asyncio.to_thread(self._spool.take, name):
                    return answer
                break
        raise Problem("unavailable", UNCERTAIN, sqlstate=OUTCOME_UNKNOWN)
