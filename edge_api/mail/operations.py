"""The operations of mail: the page that unsubscribes, and events of mail providers.

A GET of the unsubscribe page changes nothing, since programs fetch links to check them; a POST
needs nothing but the link, so that a mail program can send it (RFC 8058). Events are
authenticated by their signature (Standard Webhooks 1.0).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, Field, TypeAdapter

from edge_api.db.problems import Problem
from edge_api.leads.operations import REPLAYED
from edge_api.mail.suppressions import (
    REPORT_TYPES,
    EmailEvent,
    Feedback,
    Status,
    UnsubscribeLinks,
    is_suppressed,
    mask,
)
from edge_api.net.signatures import SIGNATURE_HEADERS, is_signed
from edge_api.operation.model import (
    AnyOperation,
    Body,
    Operation,
    OperationRequest,
    Parameter,
    Schema,
    SuccessResponse,
    check_body,
    page,
)
from edge_api.operation.service import NOINDEX, HtmlResult, OperationResult, Service
from edge_api.schema.page_templates import PageName
from edge_api.schema.paths import EMAIL_HOOK, UNSUBSCRIBE
from edge_api.schema.sentences import sentence


async def show_unsubscribe(
    service: Service, request: OperationRequest[None, None]
) -> OperationResult:
    """Show a confirmation, or a notice that this was done or cannot be."""
    try:
        address = await service[UnsubscribeLinks].subscriber(_token(request))
    except Problem as problem:
        return await _render_unknown_link(service, problem)
    if await is_suppressed(service.store, address):
        return await _render_done(service, address, sentence("Already unsubscribed"))
    return await _render_page(
        service,
        "unsubscribe",
        sentence("Unsubscribe"),
        action=f"{UNSUBSCRIBE}?{urlencode({'token': _token(request)})}",
        address=mask(address),
    )


async def unsubscribe(service: Service, request: OperationRequest[None, None]) -> OperationResult:
    """Unsubscribe at once; the sender and the body do not matter (RFC 8058)."""
    links, token = service[UnsubscribeLinks], _token(request)
    try:
        address = await links.subscriber(token)
        is_new = await links.unsubscribe(token)
    except Problem as problem:
        return await _render_unknown_link(service, problem)
    title = sentence("You are unsubscribed") if is_new else sentence("Already unsubscribed")
    try:
        return await _render_done(service, address, title)
    except Problem:  # the address is suppressed, but without a build no page can be rendered
        return HtmlResult(
            f"{title}.\n".encode(), headers=NOINDEX, media_type="text/plain; charset=utf-8"
        )


def _token(request: OperationRequest[Any, Any]) -> str:
    return dict(request.pairs).get("token", "")


async def _render_done(service: Service, address: str, title: str) -> HtmlResult:
    notice = sentence("Nothing more is mailed to %(address)s by this site.", address=mask(address))
    return await _render_page(service, "notice", title, sentences=[notice])


async def _render_unknown_link(service: Service, problem: Problem) -> HtmlResult:
    """Return the page for an unknown link. Raises any other problem."""
    if problem.code != "not_found":
        raise problem
    sentences = [
        sentence("This link is not known here, so nothing was changed."),
        sentence("It may have been cut off on its way: use the whole of the link in the mail."),
    ]
    return await _render_page(
        service,
        "notice",
        sentence("This link is not known"),
        status=problem.status,
        sentences=sentences,
    )


async def _render_page(
    service: Service, name: PageName, title: str, *, status: int = 200, **values: Any
) -> HtmlResult:
    body = await service.pages.render(name, title, **values)
    return HtmlResult(body, status=status, headers=NOINDEX)


class Event(BaseModel, strict=True, frozen=True):
    """An event of any type."""

    type: Annotated[str, Field(min_length=1, max_length=200)]
    data: dict[str, Any]


class Recorded(BaseModel, extra="forbid"):
    """What was recorded."""

    status: Annotated[Status, Field(description="As `email_send_log` has it.")]
    suppressed: Annotated[bool, Field(description="Whether nothing more is mailed there.")]


class Ignored(BaseModel, extra="forbid"):
    """What had no effect."""

    status: Literal["ignored"]
    sentence: Annotated[str, Field(description="Why.")]


def check_signature(service: Service, headers: Mapping[str, str], raw: bytes) -> None:
    """Check that one of our secrets signed a request. Raises `not_found`, `unauthenticated`."""
    secrets = service.settings.email_hook_secret
    if not secrets:
        raise Problem("not_found", "Nothing is taken here: EMAIL_HOOK_SECRET is not set")
    if not is_signed(secrets, headers, raw):
        raise Problem(
            "unauthenticated",
            "The signature is missing, wrong, or more than five minutes old or early",
            headers={"WWW-Authenticate": 'StandardWebhooks realm="email"'},
        )


async def handle_email_event(
    service: Service, request: OperationRequest[None, Event]
) -> OperationResult:
    """Log the outcome of a message; suppress its address after a bounce, complaint or request."""
    event: Event = request.body
    if event.type not in REPORT_TYPES:
        message = f"Events of type {event.type} are ignored; known are {', '.join(REPORT_TYPES)}"
        return OperationResult({"status": "ignored", "sentence": message}, status=202)
    known: EmailEvent = check_body(_EMAIL_EVENT, event.model_dump())
    answer, replayed = await service[Feedback].record(known, request.headers[SIGNATURE_HEADERS[0]])
    return OperationResult(answer, headers={REPLAYED: "true"} if replayed else {})


_EMAIL_EVENT: Final = TypeAdapter(EmailEvent)
_EVENT_SCHEMA: Final[Schema] = {
    "anyOf": [
        EmailEvent.model_json_schema(),
        {
            "type": "object",
            "description": "Any other event, which is ignored.",
            "required": ["type", "data"],
            "properties": {
                "type": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 200,
                    "not": {"enum": list(REPORT_TYPES)},
                },
                "data": {"type": "object"},
            },
        },
    ]
}
_HEADER_DESCRIPTIONS: Final = (
    "The id of the message, the same in each repetition.",
    "Seconds since 1970, within five minutes of now.",
    "`v1,` and the HMAC-SHA256 of id, timestamp and body; several stand apart by blanks.",
)

_TEXT: Final = {"type": "string", "minLength": 1}
_PARAMETERS: Final = (Parameter("token", "query", _TEXT, "The secret of the link.", required=True),)
_UNKNOWN_LINK: Final = page(404, "A page: nobody was given this link")

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="show_unsubscribe",
        path=UNSUBSCRIBE,
        summary="Ask whether to unsubscribe the address that a link belongs to",
        description="Nothing is changed: programs fetch links to look at them.",
        tag="mail",
        error_format="page",
        handler=show_unsubscribe,
        parameters=_PARAMETERS,
        responses=(page(200, "The question"), _UNKNOWN_LINK),
        problems=("unavailable",),
    ),
    Operation(
        name="unsubscribe",
        method="POST",
        path=UNSUBSCRIBE,
        summary="Unsubscribe the address that a link belongs to, at once (RFC 8058)",
        description=(
            "The link has all that is needed. A body is ignored, be it "
            "`List-Unsubscribe=One-Click` or another, in any media type. "
            "Repeating it changes nothing."
        ),
        tag="mail",
        error_format="page",
        handler=unsubscribe,
        parameters=_PARAMETERS,
        responses=(page(200, "Nothing more is mailed there", "text/plain"), _UNKNOWN_LINK),
        problems=("unavailable",),
    ),
    Operation(
        name="take_email_event",
        method="POST",
        path=EMAIL_HOOK,
        summary="Take a bounce, a complaint or a wish to unsubscribe from the mail service",
        description=(
            "Signed as Standard Webhooks 1.0 says, with the secret that the operator has set. "
            "A message whose id came before is answered as before, and has no second effect."
        ),
        tag="mail",
        handler=handle_email_event,
        parameters=tuple(
            Parameter(name, "header", _TEXT, description, required=True)
            for name, description in zip(SIGNATURE_HEADERS, _HEADER_DESCRIPTIONS, strict=True)
        ),
        body=Body(
            TypeAdapter(Event),
            _EVENT_SCHEMA,
            {
                "bounce": {
                    "type": "email.bounced",
                    "data": {"email": "ann@example.org", "bounce_type": "permanent"},
                },
                "complaint": {"type": "email.complained", "data": {"email": "ann@example.org"}},
            },
            verify_signature=check_signature,
        ),
        responses=(
            SuccessResponse(
                200,
                "It is logged, and the address suppressed where that is due",
                Recorded.model_json_schema(),
                {"status": "bounced", "suppressed": True},
                headers={REPLAYED: "`true` where the message came before."},
            ),
            SuccessResponse(
                202,
                "Nothing is made of events of this type",
                Ignored.model_json_schema(),
                {"status": "ignored", "sentence": "Events of type email.opened are ignored"},
            ),
        ),
        problems=("unauthenticated", "not_found", "unavailable"),
    ),
)
