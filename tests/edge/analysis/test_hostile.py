"""Documents that are made to keep the service busy: each is answered, and so is everybody else."""

import asyncio
from typing import Any

import orjson
import pytest

from tests.edge.analysis.hostile import documents
from tests.sizes import scaled

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test", grows=True)]

EACH = scaled(test=12, ci=1)
"""The step between the documents that are taken."""
PATH = "/api/public/v1/analyze"


async def test_every_hostile_document_is_answered(make_edge: Any) -> None:
    """200 or 503 and nothing else, while other requests are answered beside each of them.

    How long these wait is measured by `python -m benchmarks analyses`.
    """
    async with make_edge() as edge:
        for name, body in list(documents().items())[::EACH]:
            task = asyncio.create_task(post(edge, body))
            answered = await count_answers(edge, task)
            status, said = await task
            assert status in (200, 503), (name, said)
            assert answered > 0, name
        assert (await post(edge, {"text": "Still here."}))[0] == 200


async def post(edge: Any, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of the answer to a document."""
    data, headers = orjson.dumps(body), {"Content-Type": "application/json"}
    async with edge.ask("POST", PATH, data=data, headers=headers) as answer:
        if answer.status == 503:
            assert int(answer.headers["Retry-After"]) > 0
        return answer.status, await answer.json()


async def count_answers(edge: Any, task: asyncio.Task[Any]) -> int:
    """Return how many other requests were answered while a task ran; one at the least is sent."""
    answered = 0
    while not task.done() or not answered:
        async with edge.ask("GET", "/api/public/ping") as answer:
            assert answer.status == 200
            answered += 1
        await asyncio.sleep(0.02)
    return answered
