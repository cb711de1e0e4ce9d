"""How a problem is spoken: the one place where it becomes a status, a body and headers."""

import logging

import orjson

from edge_api.api.reply import JSON, NO_STORE
from edge_api.schema.problems import Problem
from edge_api.web.headers import API_HEADERS
from edge_api.web.wire import Wire

_log = logging.getLogger(__name__)


def error_body(problem: Problem, *, administrative: bool = False) -> bytes:
    """Return the JSON of a problem: one member, and PostgREST's beside it where it is spoken."""
    if not administrative or problem.code == "unauthenticated":
        return orjson.dumps({"error": problem.sentence})
    return orjson.dumps(
        {
            "error": problem.sentence,
            "message": problem.sentence,
            "code": problem.sqlstate,
            "details": problem.details,
            "hint": problem.hint,
        }
    )


def error_answer(problem: Problem, *, administrative: bool = False) -> Wire:
    """Return the answer that tells the client of a problem."""
    headers = [
        ("Content-Type", JSON),
        ("Cache-Control", NO_STORE),
        *API_HEADERS,
        *problem.headers.items(),
    ]
    return Wire(problem.status, headers, error_body(problem, administrative=administrative))


def fault_answer(fault: BaseException) -> Wire:
    """Log a fault of ours with its trace, and return an answer that says nothing about it."""
    _log.error("internal error", exc_info=fault)
    return error_answer(Problem("internal"))
