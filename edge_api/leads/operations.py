"""The operations on leads: creating and listing them, and the form of the contact page."""

from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field, TypeAdapter

from edge_api.auth.actor import Actor
from edge_api.db.problems import OUTCOME_UNKNOWN, Problem
from edge_api.db.tables import LEADS
from edge_api.db.types import parse_integer
from edge_api.leads.input import LeadInput, read_form
from edge_api.leads.service import CreatedLead, Leads, Sender
from edge_api.operation.input import BODY as FORM_BODY
from edge_api.operation.input import (
    FormErrors,
    FormFields,
    check_same_site,
    redirect,
    render_form_errors,
)
from edge_api.operation.model import (
    ADDITIVE,
    AnyOperation,
    Body,
    HeaderArgument,
    Operation,
    OperationRequest,
    OperationResult,
    Service,
    SuccessResponse,
    Tool,
    output_schema,
)
from edge_api.operation.negotiation import prefers_json
from edge_api.schema.page_templates import CONTACT_FORM
from edge_api.schema.sentences import sentence
from edge_api.stats.counter import Stats

PATH: Final = "/api/public/v1/leads"
IDEMPOTENCY_KEY: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
CONTACT: Final = "/contact/"


class LeadSummary(BaseModel, extra="forbid"):
    """A lead without its message."""

    id: Annotated[str, Field(description="A UUID.", json_schema_extra={"format": "uuid"})]
    name: Annotated[str, Field(description="Who wrote.")]
    email: Annotated[str, Field(description="An e-mail address, unless stored by hand.")]
    budget_tier: Annotated[str, Field(description="What they may spend.")]
    created_at: Annotated[AwareDatetime, Field(description="When it was stored.")]


class Lead(LeadSummary):
    """An enquiry that somebody sent."""

    message: Annotated[str, Field(description="What they want.")]


class LeadCreated(LeadSummary):
    """A lead that was taken, in both published shapes: whole under `lead`, and flat."""

    lead: Annotated[Lead, Field(description="The same, whole.")]


class RecentLeads(BaseModel, extra="forbid"):
    """The newest leads, newest first."""

    leads: Annotated[list[Lead], Field(description="Newest first.")]
    count: Annotated[int, Field(ge=0, description="How many leads are in this answer.")]


class RecentQuery(BaseModel):
    """How many leads to list."""

    limit: Annotated[
        int,
        Field(ge=1, le=200, description="How many leads to list at the most.", examples=[20]),
        BeforeValidator(parse_integer),
    ] = 50


async def create_lead(
    service: Service, request: OperationRequest[None, LeadInput]
) -> OperationResult:
    """Store a lead and answer once it is durable."""
    sender = Sender(request.actor, request.address, "mcp" if request.audience == "mcp" else "api")
    created = await service[Leads].create(
        request.body, sender, request.headers.get(IDEMPOTENCY_KEY)
    )
    return lead_response(created, request.actor)


def lead_response(created: CreatedLead, actor: Actor | None) -> OperationResult:
    """Return the answer to the sender of a lead; it has `Location` if they may read the lead."""
    headers = {}
    if actor and "admin:read" in actor.scopes and actor.may_use(LEADS.name):
        headers["Location"] = f"/api/public/v1/admin/leads?id=eq.{created.row['id']}"
    if created.replayed:
        headers[REPLAYED] = "true"
    if created.quota is not None:
        headers.update(created.quota.headers)
    return OperationResult(created.body, status=201, headers=headers)


async def list_leads(
    service: Service, request: OperationRequest[RecentQuery, None]
) -> OperationResult:
    """List the newest leads that are not spam."""
    return OperationResult(await service[Leads].recent(request.query.limit))


# Idempotency-Key is documented in prose: OpenAPI would combine a parameter with every example body.
_OPEN = "Open without a credential, and rate-limited then; a credential that is sent must be valid."
_ABOUT_CREATION = f"""\
{_OPEN} Strings
are trimmed and brought to Unicode's form NFC; members that are not named here are ignored. The
answer comes once the lead is kept for good.

The request header `{IDEMPOTENCY_KEY}` (1 to 255 visible ASCII characters, such as a new UUID)
makes sending again safe: for 24 hours the same key with the same body gives the first answer
again, with `{REPLAYED}: true`. With another body it is 422; while the first request is still
running, 409 after five seconds. A key belongs to the credential, or without one to the address
of the client and the lead's e-mail address."""

_INPUT_EXAMPLE = {
    name: field.examples[0] for name, field in LeadInput.model_fields.items() if field.examples
}
_SUMMARY_EXAMPLE = {
    "id": "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b",
    **{name: text for name, text in _INPUT_EXAMPLE.items() if name != "message"},
    "created_at": "2026-11-20T09:30:00.000000Z",
}
_LEAD_EXAMPLE = {**_SUMMARY_EXAMPLE, "message": _INPUT_EXAMPLE["message"]}


async def submit_form(
    service: Service, request: OperationRequest[None, FormFields]
) -> OperationResult:
    """Store the lead and redirect to a page of thanks, or show the form again; scripts get JSON."""
    for_script = prefers_json(request.headers.get("Accept", ""))
    try:
        created = await _create(service, request)
    except (FormErrors, Problem) as error:
        if not for_script:
            return await render_form_errors(service, CONTACT_FORM, request, error)
        if isinstance(error, FormErrors):
            translated = {
                name: service.pages.translate(text) for name, text in error.by_field.items()
            }
            raise Problem("invalid", str(FormErrors(translated))) from None
        error.message = service.pages.translate(error.message)
        raise
    return lead_response(created, None) if for_script else redirect("/contact/thanks/")


async def _create(service: Service, request: OperationRequest[None, FormFields]) -> CreatedLead:
    if service.settings.leads_require_credential:
        raise Problem(
            "forbidden", sentence("This form is closed; write to us by the API with a key")
        )
    await service.limiter.hit("leads_attempts", request.address)
    origin = service[Stats].find_origin(request.address, request.headers)
    lead, sender = (
        read_form(request.body, service.pages.translate),
        Sender(None, request.address, "form", origin),
    )
    # The same form sent twice, or again after an error, is one lead; another text is another lead.
    key = request.headers.get(IDEMPOTENCY_KEY) or sha256(lead.canonical()).hexdigest()
    try:
        return await service[Leads].create(lead, sender, key)
    except Problem as problem:
        if problem.code == "in_progress" or problem.sqlstate == OUTCOME_UNKNOWN:
            raise Problem(
                problem.code,
                sentence(
                    "It is not certain that your message arrived; send it again as it is: it is "
                    "taken once, however often it is sent"
                ),
                headers=problem.headers,
            ) from problem
        raise


FORMS: tuple[AnyOperation, ...] = (
    Operation(
        name="contact_form",
        method="POST",
        path=CONTACT,
        summary="Send a lead by the form of the contact page",
        tag="leads",
        handler=submit_form,
        body=FORM_BODY,
        responses=(SuccessResponse(303, "To the thanks"),),
        error_format="form",
        check_sender=check_same_site,
        limits_by_address=True,
    ),
)

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="create_lead",
        method="POST",
        path=PATH,
        summary="Create a lead",
        description=_ABOUT_CREATION,
        tag="leads",
        credential="optional",
        scope="leads:write",
        limit="leads_attempts",
        success_limit="leads",
        handler=create_lead,
        body=Body(
            TypeAdapter(LeadInput),
            LeadInput.model_json_schema(),
            MappingProxyType({"enquiry": _INPUT_EXAMPLE}),
        ),
        responses=(
            SuccessResponse(
                201,
                "The lead is kept",
                output_schema(LeadCreated),
                {"lead": _LEAD_EXAMPLE, **_SUMMARY_EXAMPLE},
                headers=MappingProxyType(
                    {
                        "Location": "Where to read the lead; only for a credential that may.",
                        REPLAYED: "`true` when the lead was created by an earlier request.",
                    }
                ),
                links=MappingProxyType(
                    {
                        "list_leads": {
                            "operationId": "list_leads",
                            "description": "The new lead stands first, "
                            "unless a newer one has come.",
                        }
                    }
                ),
            ),
        ),
        problems=("in_progress", "idempotency_mismatch"),
        tools=(
            Tool(
                name="create_lead",
                title="Create a lead",
                description="Store an enquiry of a person who wants to be answered, with their "
                "consent. It reaches the owner of the site and cannot be taken back.",
                hints=ADDITIVE,
                headers=MappingProxyType(
                    {
                        "idempotency_key": HeaderArgument(
                            IDEMPOTENCY_KEY,
                            {
                                "type": "string",
                                "minLength": 1,
                                "maxLength": 255,
                                "pattern": "^[!-~]+$",
                                "description": "Such as a new UUID: for 24 hours the same key "
                                "with the same lead creates nothing again.",
                            },
                        )
                    }
                ),
            ),
        ),
    ),
    Operation(
        name="list_leads",
        path=PATH,
        summary="List recent leads, newest first",
        description="Leads that were recognized as spam are left out.",
        tag="leads",
        credential="required",
        scope="leads:read",
        handler=list_leads,
        cancel_on_disconnect=True,
        query=RecentQuery,
        responses=(
            SuccessResponse(
                200,
                "The newest leads",
                output_schema(RecentLeads),
                {"leads": [_LEAD_EXAMPLE], "count": 1},
            ),
        ),
        tools=(
            Tool(
                name="list_leads",
                title="List recent leads",
                description="List the newest enquiries, newest first, with names, addresses and "
                "messages. What was recognized as spam is left out.",
            ),
        ),
    ),
)


def with_credential(operation: AnyOperation) -> AnyOperation:
    """Return `create_lead` with a required credential, for LEADS_REQUIRE_CREDENTIAL."""
    about = operation.description.removeprefix(_OPEN).lstrip()
    return replace(operation, credential="required", limit="", success_limit="", description=about)
