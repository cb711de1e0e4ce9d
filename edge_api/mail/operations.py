"""The operation of mail: events of mail providers.

They are authenticated by their signature (Standard Webhooks 1.0).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter

from edge_api.db.problems import Problem
from edge_api.leads.operations import REPLAYED
from edge_api.mail.suppressions import (
    REPORT_TYPES,
    EmailEvent,
    Feedback,
    Status,
)
from edge_api.net.signatures import SIGNATURE_HEADERS, is_signed
from edge_api.operation.model import (
    AnyOperation,
    Body,
    Operation,
    OperationRequest,
    OperationResult,
    Parameter,
    Schema,
    Service,
    SuccessResponse,
    check_body,
)
from edge_api.schema.paths import EMAIL_HOOK


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

OPERATIONS: tuple[AnyOperation, ...] = (
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
