"""Operations for people without an account: request a credential, and claim it once.

The members of the answers are those of the first version of the auth.md protocol for agents.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter

from edge_api.access.service import (
    CLAIM_REPEAT_WINDOW,
    AccessRequestInput,
    AccessRequests,
    RequestedType,
    read_access_form,
    request_schema,
    requested_type,
)
from edge_api.auth.keys import IssuedKey, KeyType
from edge_api.db.problems import Problem
from edge_api.operation.input import BODY as FORM_BODY
from edge_api.operation.input import FormErrors, FormFields, check_same_site, render_form_errors
from edge_api.operation.model import (
    HTML,
    NOINDEX,
    AnyOperation,
    Body,
    HtmlResult,
    Operation,
    OperationRequest,
    OperationResult,
    Service,
    SuccessResponse,
    output_schema,
    page,
)
from edge_api.schema.credentials import CREDENTIAL_SCOPES, Scope
from edge_api.schema.page_templates import ACCESS_FORM
from edge_api.schema.paths import (
    ACCESS_CLAIM_PATH,
    ACCESS_FORM_PATH,
    CLAIM_CREDENTIAL,
    REQUEST_ACCESS,
)
from edge_api.schema.sentences import sentence

_TAG: Final = "access"


class ClaimInput(BaseModel, strict=True, frozen=True):
    """What fetches a credential."""

    claim_token: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="What the registration was answered with.",
            examples=["fe_cl_..."],
        ),
    ]


class Registration(BaseModel, extra="forbid"):
    """A request that waits for a person."""

    registration_id: Annotated[str, Field(json_schema_extra={"format": "uuid"})]
    registration_type: Literal["anonymous"] = "anonymous"
    credential_type: RequestedType
    status: Literal["pending"] = "pending"
    scopes: Annotated[list[Scope], Field(description="The requested scopes.")]
    claim_token_expires: AwareDatetime
    claim_uri: Annotated[str, Field(description="The address to send the claim token to.")]
    next_step: Annotated[str, Field(description="What to do now, in a sentence.")]


class NewRegistration(Registration):
    """The same, right after it was filed."""

    claim_token: Annotated[str, Field(description="Shown this once: keep it secret.")]


class Credential(BaseModel, extra="forbid"):
    """A credential that was claimed."""

    credential: Annotated[str, Field(description="Kept nowhere: keep it secret.")]
    credential_type: KeyType
    credential_expires: Annotated[AwareDatetime | None, Field(description="`null`: never.")]
    scopes: Annotated[list[Scope], Field(description="What it may do.")]


class ClaimedCredentials(Credential):
    """The credential that was asked for, or the first of two: all are in `credentials`."""

    registration_id: Annotated[str, Field(json_schema_extra={"format": "uuid"})]
    registration_type: Literal["anonymous"] = "anonymous"
    status: Literal["claimed"] = "claimed"
    credentials: list[Credential]


async def redirect_to_form(
    service: Service, _request: OperationRequest[None, None]
) -> OperationResult:
    """Redirect a browser to the form for people, or to the contact page if that has none."""
    address = "/contact/#access" if service.settings.access_requests == "on" else "/contact/"
    return OperationResult(b"", status=303, headers={"Location": address}, media_type=HTML)


async def register(
    service: Service, request: OperationRequest[None, AccessRequestInput]
) -> OperationResult:
    """Store a request for a credential."""
    stored = await service[AccessRequests].submit(request.body, request.address)
    next_step = (
        "A person decides. Until then, send the claim token "
        f"to {CLAIM_CREDENTIAL} from time to time."
    )
    body = {**_registration(service, stored.row, next_step), "claim_token": stored.claim_token}
    headers = {} if stored.quota is None else dict(stored.quota.headers)
    return OperationResult(body, status=201, headers=headers)


async def claim(service: Service, request: OperationRequest[None, ClaimInput]) -> OperationResult:
    """Return the credential, or 202 while the request is pending."""
    row, keys = await service[AccessRequests].claim(request.body.claim_token)
    if keys:
        credentials = _credentials(keys)
        return OperationResult(
            {
                "registration_id": row["id"],
                "registration_type": "anonymous",
                "status": "claimed",
                **credentials[0],
                "credentials": credentials,
            }
        )
    next_step = "Nobody has decided yet: send the claim token again later."
    return OperationResult(
        _registration(service, row, next_step), status=202, headers={"Retry-After": "300"}
    )


def _registration(service: Service, row: dict[str, Any], next_step: str) -> dict[str, Any]:
    return {
        "registration_id": row["id"],
        "registration_type": "anonymous",
        "credential_type": requested_type(row),
        # A denied request with a filled-in honeypot also shows as pending, until it is claimed.
        "status": "pending",
        "scopes": row["scopes"].split(),
        "claim_token_expires": row["expires_at"],
        "claim_uri": f"{service.settings.site_url}{CLAIM_CREDENTIAL}",
        "next_step": next_step,
    }


def _credentials(keys: Sequence[IssuedKey]) -> list[dict[str, Any]]:
    return [
        {
            "credential": issued.secret,
            "credential_type": issued.row["type"],
            "credential_expires": issued.row["expires_at"],
            "scopes": [
                scope
                for scope in issued.row["scopes"].split()
                if scope in CREDENTIAL_SCOPES[issued.row["type"]]
            ],
        }
        for issued in keys
    ]


_ID: Final = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"
_PENDING_EXAMPLE: Final = {
    "registration_id": _ID,
    "registration_type": "anonymous",
    "credential_type": "api_key",
    "status": "pending",
    "scopes": ["posts:read"],
    "claim_token_expires": "2026-12-05T09:30:00.000000Z",
    "claim_uri": f"https://journal.example{CLAIM_CREDENTIAL}",
    "next_step": "Nobody has decided yet: send the claim token again later.",
}
_CREDENTIAL_EXAMPLE: Final = {
    "credential": "fe_sk_...",
    "credential_type": "api_key",
    "credential_expires": "2027-02-19T09:30:00.000000Z",
    "scopes": ["posts:read"],
}


async def submit_form(
    service: Service, request: OperationRequest[None, FormFields]
) -> OperationResult:
    """Store the request of the form and show its claim token, or show the form with errors."""
    try:
        await service.limiter.hit("leads_attempts", request.address)
        access_request = read_access_form(request.body)
        stored = await service[AccessRequests].submit(access_request, request.address)
    except (FormErrors, Problem) as error:
        return await render_form_errors(service, ACCESS_FORM, request, error)
    body = await service.pages.render(
        "access_requested",
        sentence("Your request is filed"),
        claim_token=stored.claim_token,
        claim_uri=f"{service.settings.site_url}{CLAIM_CREDENTIAL}",
        credential_type=requested_type(stored.row),
        expires=stored.row["expires_at"],
        action=ACCESS_CLAIM_PATH,
    )
    return HtmlResult(body)


async def claim_by_form(
    service: Service, request: OperationRequest[None, FormFields | None]
) -> OperationResult:
    """Show the credential of the claim token that was typed, or the form that takes one."""
    token, message, status = (request.body or {}).get("claim_token", "").strip(), "", 200
    keys: Sequence[IssuedKey] = ()
    if token:
        try:
            await service.limiter.hit("leads_attempts", request.address)
            _, keys = await service[AccessRequests].claim(token)
            message = (
                ""
                if keys
                else sentence("Nobody has decided yet. Come back later, with the same token.")
            )
        except Problem as problem:
            message, status = sentence("%(fault)s.", fault=problem.message), problem.status
    body = await service.pages.render(
        "access_claim",
        sentence("Your credential") if keys else sentence("Fetch your credential"),
        action=ACCESS_CLAIM_PATH,
        claim_token=token,
        said=message,
        credentials=_credentials(keys),
        site_url=service.settings.site_url,
    )
    return HtmlResult(body, status, NOINDEX)


FORMS: tuple[AnyOperation, ...] = (
    Operation(
        name="access_form",
        path=ACCESS_FORM_PATH,
        summary="The form that asks for access",
        tag="access",
        handler=redirect_to_form,
        responses=(SuccessResponse(303, "To the form"),),
        error_format="form",
    ),
    Operation(
        name="send_access_form",
        method="POST",
        path=ACCESS_FORM_PATH,
        summary="Ask for a credential by the form of the contact page",
        tag="access",
        handler=submit_form,
        body=FORM_BODY,
        responses=(SuccessResponse(200, "The claim token", media_types=(HTML,)),),
        error_format="form",
        check_sender=check_same_site,
        limits_by_address=True,
        returns_secret=True,
    ),
    Operation(
        name="claim_form",
        path=ACCESS_CLAIM_PATH,
        summary="The form that takes a claim token",
        tag="access",
        handler=claim_by_form,
        responses=(page(200, "The form"),),
        error_format="form",
    ),
    Operation(
        name="send_claim_form",
        method="POST",
        path=ACCESS_CLAIM_PATH,
        summary="Fetch a credential by a form",
        tag="access",
        handler=claim_by_form,
        body=FORM_BODY,
        responses=(page(200, "The credential"),),
        error_format="form",
        check_sender=check_same_site,
        limits_by_address=True,
        returns_secret=True,
    ),
)

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="access_request_form",
        path=REQUEST_ACCESS,
        summary="Redirect a browser to the form that requests a credential",
        tag=_TAG,
        handler=redirect_to_form,
        responses=(
            SuccessResponse(303, "Redirect to the form", headers={"Location": "The contact page."}),
        ),
    ),
    Operation(
        name="request_access",
        method="POST",
        path=REQUEST_ACCESS,
        summary="Ask for an API key, an access token, or both",
        description="""\
Open without a credential, and rate-limited apart from leads. A person reads the request and
decides; requests wait for 14 days at the longest. Members that are not named here are ignored.

An agent may also speak as auth.md's first generation has it: `{"type": "anonymous",
"requested_credential_type": "api_key"}`. What it says beside that helps the person who decides.""",
        tag=_TAG,
        limit="leads_attempts",
        success_limit="access_requests",
        handler=register,
        returns_secret=True,
        body=Body(
            TypeAdapter(AccessRequestInput),
            request_schema(),
            MappingProxyType(
                {
                    "plain": {
                        "type": "api_key",
                        "name": "Reading list",
                        "email": "ann.lee@example.org",
                        "purpose": "Show the newest posts on our intranet.",
                        "scopes": ["posts:read"],
                    },
                    "auth.md": {"type": "anonymous", "requested_credential_type": "access_token"},
                }
            ),
        ),
        responses=(
            SuccessResponse(
                201,
                "The request waits for a person",
                output_schema(NewRegistration),
                {**_PENDING_EXAMPLE, "claim_token": "fe_cl_..."},
                links=MappingProxyType(
                    {
                        "claim_credential": {
                            "operationId": "claim_credential",
                            "requestBody": {"claim_token": "$response.body#/claim_token"},
                            "description": "Answers 202 until a person has decided.",
                        }
                    }
                ),
            ),
        ),
        problems=("unavailable",),
    ),
    Operation(
        name="claim_credential",
        method="POST",
        path=CLAIM_CREDENTIAL,
        summary="Fetch the credential of an approved request",
        description="The credential is made by the first claim. For "
        f"{CLAIM_REPEAT_WINDOW.seconds // 60} minutes the same claim token gives it again, so that "
        "an answer that was lost can be repeated; after that it is 409.",
        tag=_TAG,
        limit="leads_attempts",
        handler=claim,
        returns_secret=True,
        body=Body(
            TypeAdapter(ClaimInput),
            ClaimInput.model_json_schema(),
            MappingProxyType({"token": {"claim_token": "fe_cl_..."}}),
        ),
        responses=(
            SuccessResponse(
                200,
                "The credential",
                output_schema(ClaimedCredentials),
                {
                    "registration_id": _ID,
                    "registration_type": "anonymous",
                    "status": "claimed",
                    **_CREDENTIAL_EXAMPLE,
                    "credentials": [_CREDENTIAL_EXAMPLE],
                },
            ),
            SuccessResponse(
                202,
                "Nobody has decided yet",
                output_schema(Registration),
                _PENDING_EXAMPLE,
                headers={"Retry-After": "Seconds after which to ask again."},
            ),
        ),
        problems=("not_found", "forbidden", "conflict", "unavailable"),
    ),
)
