"""Serialization of problems: status, body and headers in each error format."""

import logging
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from edge_api.db.problems import Problem
from edge_api.http.headers import API_HEADERS, PAGE_HEADERS
from edge_api.http.response import PreparedResponse
from edge_api.operation.model import ErrorFormat
from edge_api.operation.negotiation import prefers_markdown
from edge_api.operation.service import HTML, JSON, MARKDOWN, NO_STORE, PageRenderer, escape

_log = logging.getLogger(__name__)
_TITLE: Final = "This did not work"


def _postgrest(problem: Problem) -> dict[str, str | None]:
    """Return the members of PostgREST's errors too, unless the credential is invalid."""
    if problem.code == "unauthenticated":
        return {"error": problem.message}
    return {
        "error": problem.message,
        "message": problem.message,
        "code": problem.sqlstate,
        "details": problem.details,
        "hint": problem.hint,
    }


def _oauth(problem: Problem) -> dict[str, str]:
    """Return the members of RFC 6749, section 5.2, in the characters that it allows."""
    description = re.sub(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]", "'", problem.message)
    return {"error": problem.oauth, "error_description": description}


def jsonrpc_error(problem: Problem, request_id: str | int | None = None) -> dict[str, Any]:
    """Return the answer of JSON-RPC 2.0, section 5, to a request with that id, if it is known."""
    is_ours = problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    error = {"code": -32603 if is_ours else -32600, "message": problem.message}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


_MEMBERS: Mapping[ErrorFormat, Callable[[Problem], Mapping[str, Any]]] = {
    "postgrest": _postgrest,
    "oauth": _oauth,
    "jsonrpc": jsonrpc_error,
}


def error_response(problem: Problem, error_format: ErrorFormat = "plain") -> PreparedResponse:
    """Return the answer that reports a problem to the client."""
    headers = [
        ("Content-Type", JSON),
        ("Cache-Control", NO_STORE),
        *API_HEADERS,
        *problem.headers.items(),
    ]
    members = _MEMBERS.get(error_format)
    body = orjson.dumps(members(problem) if members else {"error": problem.message})
    return PreparedResponse(problem.status, headers, body)


def report_internal_error(error: BaseException) -> Problem:
    """Log an unexpected exception with its trace; return a problem without details."""
    _log.error("internal error", exc_info=error)
    return Problem("internal")


async def error_page(pages: PageRenderer, problem: Problem, accepted: str = "") -> PreparedResponse:
    """Return the error as a page, as Markdown if `accepted` prefers that, or else as JSON."""
    media_type = MARKDOWN if prefers_markdown(accepted) else HTML
    try:
        if media_type == MARKDOWN:
            body = f"# {_TITLE}\n\n{escape(problem.message)}.\n".encode()
        else:
            body = await pages.render("notice", _TITLE, sentences=[f"{problem.message}."])
    except Problem:
        return error_response(problem)
    own = (("Content-Type", media_type), *problem.headers.items(), ("Vary", "Accept"))
    return PreparedResponse(
        problem.status, (*own, ("Cache-Control", NO_STORE), *PAGE_HEADERS), body
    )
