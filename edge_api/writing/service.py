"""Hands requests to write to the watcher, through a spool, and waits for its answers."""

import asyncio
import time
from typing import Final, get_args

from edge_api.db.problems import OUTCOME_UNKNOWN, Code, Problem
from edge_api.schema.environment import BUILD
from edge_api.schema.writing import Spool, WriteAnswer, WriteRequest, locate_var
from edge_api.settings import Settings

_OFF: Final = "Writing is switched off here; WRITING=on switches it on where the watcher runs"
_NO_WATCHER: Final = f"The watcher is not running, so nothing was saved; start {BUILD} watch"
_POLL_SECONDS: Final = 0.01
_BEGIN_SECONDS: Final = 20.0
"""The longest wait until the watcher begins with a request."""
_END_SECONDS: Final = 60.0
"""The longest wait for an answer."""


class Writing:
    """The edge's end of the spool."""

    def __init__(self, settings: Settings) -> None:
        self._is_on = settings.writing == "on"
        self._spool = Spool(locate_var(settings.database_url, settings.build_dir))

    async def ask(self, request: WriteRequest) -> WriteAnswer:
        """Return what the watcher did. Raises Problem for what it refused, or if it is away."""
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
        answer = await self._wait(name)
        if answer.refusal:
            code: Code = answer.refusal
            assert code in get_args(Code)  # noqa: S101  both lists have these codes
            headers = {"ETag": f'"{answer.version}"'} if answer.version else {}
            findings = [each.model_dump() for each in answer.findings]
            raise Problem(code, answer.message, findings=findings, headers=headers)
        return answer

    async def _wait(self, name: str) -> WriteAnswer:
        began = time.monotonic()
        while (waited := time.monotonic() - began) < _END_SECONDS:
            await asyncio.sleep(_POLL_SECONDS)
            if answer := await asyncio.to_thread(self._spool.take, name):
                return answer
            is_late = waited > _BEGIN_SECONDS or not self._spool.is_watched()
            if is_late and self._spool.withdraw(name):
                raise Problem("unavailable", _NO_WATCHER)
        raise Problem(
            "unavailable",
            "It is not certain that this was done: read the post again before you go on",
            sqlstate=OUTCOME_UNKNOWN,
        )
