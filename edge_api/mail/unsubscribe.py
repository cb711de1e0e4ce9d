"""The page behind the link in mail, and the one POST that ends it (RFC 8058).

Programs that fetch links to look whether they are harmless change nothing; whoever posts need send
nothing but the link, so that a mail program can do it by itself.
"""

from typing import Any, Final
from urllib.parse import urlencode

from edge_api.db.problems import Problem
from edge_api.mail.suppressions import UnsubscribeLinks
from edge_api.operation.model import (
    AnyOperation,
    Operation,
    OperationRequest,
    Parameter,
    SuccessResponse,
)
from edge_api.operation.result import HTML, OperationResult, Page
from edge_api.operation.service import Service
from edge_api.schema.edge_pages import PageName
from edge_api.schema.paths import UNSUBSCRIBE

_HEADERS: Final = {"X-Robots-Tag": "noindex, nofollow"}
_PLAIN: Final = "text/plain; charset=utf-8"
_NOTHING_MORE: Final = "Nothing more is mailed to {address} by this site."


async def show(service: Service, request: OperationRequest[None, None]) -> OperationResult:
    """Ask whether to unsubscribe, or say that this was done or cannot be."""
    try:
        subscriber = await service[UnsubscribeLinks].look(_token(request))
    except Problem as problem:
        return await _refuse(service, problem)
    if subscriber.is_suppressed:
        return await _say_done(service, subscriber.masked, "Already unsubscribed")
    action = f"{UNSUBSCRIBE}?{urlencode({'token': _token(request)})}"
    return await _page(
        service, "unsubscribe", "Unsubscribe", action=action, address=subscriber.masked
    )


async def unsubscribe(service: Service, request: OperationRequest[None, None]) -> OperationResult:
    """Unsubscribe at once, whoever posts and whatever the body says."""
    links, token = service[UnsubscribeLinks], _token(request)
    try:
        subscriber = await links.look(token)
        is_new = await links.unsubscribe(token)
    except Problem as problem:
        return await _refuse(service, problem)
    title = "You are unsubscribed" if is_new else "Already unsubscribed"
    try:
        return await _say_done(service, subscriber.masked, title)
    except Problem:  # it was done, though no build is there to say so in the look of the site
        return Page(f"{title}.\n".encode(), headers=_HEADERS, media_type=_PLAIN)


def _token(request: OperationRequest[Any, Any]) -> str:
    return dict(request.pairs).get("token", "")


async def _say_done(service: Service, masked: str, title: str) -> Page:
    sentences = [_NOTHING_MORE.format(address=masked)]
    return await _page(service, "notice", title, sentences=sentences)


async def _refuse(service: Service, problem: Problem) -> Page:
    """Return the page of a link that nobody was given. Raises any other problem."""
    if problem.code != "not_found":
        raise problem
    sentences = [
        "This link is not known here, so nothing was changed.",
        "It may have been cut off on its way: use the whole of the link in the mail.",
    ]
    return await _page(
        service, "notice", "This link is not known", status=problem.status, sentences=sentences
    )


async def _page(
    service: Service, name: PageName, title: str, *, status: int = 200, **values: Any
) -> Page:
    body = await service.pages.render(name, title, **values)
    return Page(body, status=status, headers=_HEADERS)


_PARAMETERS: Final = (
    Parameter(
        "token",
        "query",
        {"type": "string", "minLength": 1},
        "The secret of the link.",
        required=True,
    ),
)
_HTML: Final = (HTML.partition(";")[0],)
_UNKNOWN: Final = SuccessResponse(
    404, "A page: nobody was given this link", {"type": "string"}, media_types=_HTML
)

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="show_unsubscribe",
        path=UNSUBSCRIBE,
        summary="Ask whether to unsubscribe the address that a link belongs to",
        description="Nothing is changed: programs fetch links to look at them.",
        tag="mail",
        error_format="page",
        handler=show,
        parameters=_PARAMETERS,
        responses=(
            SuccessResponse(200, "The question", {"type": "string"}, media_types=_HTML),
            _UNKNOWN,
        ),
        problems=("unavailable",),
    ),
    Operation(
        name="unsubscribe",
        method="POST",
        path=UNSUBSCRIBE,
        summary="Unsubscribe the address that a link belongs to, at once (RFC 8058)",
        description=(
            "The link says all. A body is not looked at, be it `List-Unsubscribe=One-Click` or "
            "another, in whatever media type. Again is as good as once."
        ),
        tag="mail",
        error_format="page",
        handler=unsubscribe,
        parameters=_PARAMETERS,
        responses=(
            SuccessResponse(
                200,
                "Nothing more is mailed there",
                {"type": "string"},
                media_types=(*_HTML, "text/plain"),
            ),
            _UNKNOWN,
        ),
        problems=("unavailable",),
    ),
)
