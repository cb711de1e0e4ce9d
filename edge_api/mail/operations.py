"""Where other services tell this one what happened: `POST /api/public/hooks/email`.

No credential of ours is asked for: the signature says who sent it (Standard Webhooks 1.0).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, WithJsonSchema

from edge_api.db.email_address import fold_address
from edge_api.db.problems import Problem
from edge_api.db.tables import EMAIL_LONGEST
from edge_api.leads.operations import REPLAYED
from edge_api.mail.suppressions import REPORT_TYPES, Feedback, Report, ReportType, Status
from edge_api.net.signatures import SIGNED, is_signed
from edge_api.operation.model import (
    AnyOperation,
    Body,
    Operation,
    OperationRequest,
    Parameter,
    Schema,
    SuccessResponse,
    check_body,
)
from edge_api.operation.result import OperationResult
from edge_api.operation.service import Service
from edge_api.schema.paths import EMAIL_HOOK

_CHALLENGE: Final = MappingProxyType({"WWW-Authenticate": 'StandardWebhooks realm="email"'})


def _check_address(text: str) -> str:
    """Return an address that is one. Raises ValueError."""
    address = text.strip()
    fold_address(address)
    return address


class Event(BaseModel, strict=True, frozen=True):
    """An event of any type."""

    type: Annotated[str, Field(min_length=1, max_length=200)]
    data: dict[str, Any]


class EmailFacts(BaseModel, strict=True, frozen=True):
    """What came of one message."""

    email: Annotated[
        str,
        AfterValidator(_check_address),
        WithJsonSchema({"type": "string", "format": "email", "maxLength": EMAIL_LONGEST}),
        Field(description="Whom it was sent to."),
    ]
    message_id: Annotated[
        str | None,
        Field(max_length=998, description="As `Message-ID` has it, or without its domain."),
    ] = None
    bounce_type: Annotated[
        Literal["permanent", "transient"] | None,
        Field(description="Of a bounce; left out, it is permanent."),
    ] = None


class EmailEvent(BaseModel, strict=True, frozen=True):
    """An event that has an effect."""

    type: ReportType
    data: EmailFacts


class Taken(BaseModel, extra="forbid"):
    """What was written down."""

    status: Annotated[Status, Field(description="As `email_send_log` has it.")]
    suppressed: Annotated[bool, Field(description="Whether nothing more is mailed there.")]


class Ignored(BaseModel, extra="forbid"):
    """What had no effect."""

    status: Literal["ignored"]
    sentence: Annotated[str, Field(description="Why.")]


def check_signature(service: Service, headers: Mapping[str, str], raw: bytes) -> None:
    """Let a message pass that one of the secrets has signed within five minutes of now.

    Raises Problem `not_found` where there is no secret, and `unauthenticated`.
    """
    secrets = service.settings.email_hook_secret
    if not secrets:
        raise Problem("not_found", "Nothing is taken here: EMAIL_HOOK_SECRET is not set")
    if not is_signed(secrets, headers, raw):
        sentence = "The signature is missing, wrong, or more than five minutes old or early"
        raise Problem("unauthenticated", sentence, headers=_CHALLENGE)


async def take_email_event(
    service: Service, request: OperationRequest[None, Event]
) -> OperationResult:
    """Log what came of a message, and mail nothing more where nothing arrives or is wanted."""
    event = request.body
    if event.type not in REPORT_TYPES:
        sentence = f"Of {event.type} nothing is made here; known are {', '.join(REPORT_TYPES)}"
        return OperationResult({"status": "ignored", "sentence": sentence}, status=202)
    known: EmailEvent = check_body(_EMAIL_EVENT, event.model_dump())
    facts = known.data
    is_transient = known.type == "email.bounced" and facts.bounce_type == "transient"
    report = Report(known.type, facts.email, facts.message_id, is_transient)
    answer, replayed = await service[Feedback].take(report, request.headers[SIGNED[0]])
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
_EXAMPLES: Final[Mapping[str, Any]] = {
    "bounce": {
        "type": "email.bounced",
        "data": {"email": "ann@example.org", "bounce_type": "permanent"},
    },
    "complaint": {"type": "email.complained", "data": {"email": "ann@example.org"}},
}
_SENTENCES: Final = (
    "The id of the message, the same in each repetition.",
    "Seconds since 1970, within five minutes of now.",
    "`v1,` and the HMAC-SHA256 of id, timestamp and body; several stand apart by blanks.",
)

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
        handler=take_email_event,
        parameters=tuple(
            Parameter(name, "header", {"type": "string", "minLength": 1}, sentence, required=True)
            for name, sentence in zip(SIGNED, _SENTENCES, strict=True)
        ),
        body=Body(TypeAdapter(Event), _EVENT_SCHEMA, _EXAMPLES, verify_signature=check_signature),
        responses=(
            SuccessResponse(
                200,
                "It is logged, and the address suppressed where that is due",
                Taken.model_json_schema(),
                {"status": "bounced", "suppressed": True},
                headers={REPLAYED: "`true` where the message came before."},
            ),
            SuccessResponse(
                202,
                "Nothing is made of events of this type",
                Ignored.model_json_schema(),
                {"status": "ignored", "sentence": "Of email.opened nothing is made here"},
            ),
        ),
        problems=("unauthenticated", "not_found", "unavailable"),
    ),
)
