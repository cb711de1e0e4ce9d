"""The consent page: a person allows or denies a client.

If the browser must not be redirected to the client, a page says why (RFC 6749, section 4.1.2.1).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import TypeAdapter

from edge_api.db.problems import Problem
from edge_api.oauth.consents import ConsentRequest, ErrorRedirect
from edge_api.oauth.operations import FormMembers
from edge_api.oauth.request import csp_source, display_host, is_local_redirect, is_nonce
from edge_api.oauth.server import OAuthServer
from edge_api.operation.input import form_pairs, key_owner
from edge_api.operation.model import (
    FORM,
    AnyOperation,
    Body,
    HtmlResult,
    Operation,
    OperationRequest,
    OperationResult,
    Parameter,
    Schema,
    Service,
    SuccessResponse,
    object_schema,
    page,
)
from edge_api.schema.credentials import (
    CONSENT_SCOPES,
    PUBLISH_WITH_ENQUIRIES,
    SCOPES,
    describe_choices,
)
from edge_api.schema.paths import AUDIENCES, AUTHORIZE
from edge_api.schema.sentences import sentence

_COOKIE_NAME: Final = "consent"
_RESOURCE_NAMES: Final[Mapping[str, str]] = {
    AUDIENCES["rest"]: sentence("the REST API"),
    AUDIENCES["mcp"]: sentence("the MCP endpoint"),
}


async def show_consent(service: Service, request: OperationRequest[None, None]) -> OperationResult:
    """Show the consent page, or redirect the browser to the client with an error."""
    try:
        consent = await service[OAuthServer].consents.read(request.pairs)
    except Problem as problem:
        return await _error_page(service, problem)
    if isinstance(consent, ErrorRedirect):
        if consent.is_trusted:
            return HtmlResult(b"", status=303, headers={"Location": consent.location})
        sentences = [
            sentence("The program asked for something that it cannot have. Nothing was granted.")
        ]
        link = (
            consent.location,
            sentence("Go back to %(host)s", host=display_host(consent.location)),
        )
        return await _notice(service, 403, sentences, link=link)
    nonce = _nonce(request) or service[OAuthServer].csrf.new_nonce()
    return await _consent_page(service, consent, nonce, [])


async def save_decision(
    service: Service, request: OperationRequest[None, FormMembers]
) -> OperationResult:
    """Store the person's decision, and redirect the browser to the client."""
    members = form_pairs(request.body)
    pairs = [  # the parameters of the authorization request
        (name, value)
        for name, value in members
        if name not in ("api_key", "granted", "decision", "seal")
    ]
    answer, consents = dict(members), service[OAuthServer].consents
    try:
        consent = await consents.read(pairs)
    except Problem as problem:
        return await _error_page(service, problem)
    if isinstance(consent, ErrorRedirect):
        return await _error_page(
            service,
            Problem(
                "forbidden", sentence("The form was changed: go back to the client and start again")
            ),
        )
    csrf, token = service[OAuthServer].csrf, answer.get("seal", "")
    if not csrf.is_valid(token, _nonce(request), pairs, service.clock()):
        message = sentence(
            "The form is too old, or cookies are switched off: go back to the client and try again"
        )
        return await _error_page(service, Problem("forbidden", message))
    chosen = [value for name, value in members if name == "granted"]
    try:
        if answer.get("decision") == "allow":
            owner = await key_owner(service, request, answer.get("api_key", "").strip())
            location = await consents.allow(consent, owner, chosen)
        else:
            location = await consents.deny(consent)
    except Problem as problem:
        if problem.code not in ("invalid", "unauthenticated", "forbidden"):
            raise
        await consents.audit_refusal(consent.client)
        return await _consent_page(
            service, consent, _nonce(request), chosen, sentence("%(fault)s.", fault=problem.message)
        )
    return HtmlResult(b"", status=303, headers={"Location": location})


async def _consent_page(
    service: Service, consent: ConsentRequest, nonce: str, chosen: Sequence[str], error: str = ""
) -> HtmlResult:
    """Return the consent page; after an error it shows the choices that were sent."""
    server = service[OAuthServer]
    csrf_token = server.csrf.make_token(nonce, consent.pairs, service.clock())
    body = await service.pages.render(
        "consent",
        sentence("Allow access"),
        action=AUTHORIZE,
        hidden=[*consent.pairs, ("seal", csrf_token)],
        client_name=consent.client.row["name"],
        client_id=consent.client.client_id,
        client_kind=consent.client.row["kind"],
        redirect_host=display_host(consent.redirect_uri),
        is_loopback=is_local_redirect(consent.redirect_uri),
        resource=_RESOURCE_NAMES.get(
            consent.resource.removeprefix(server.issuer.url),
            sentence("the REST API and the MCP endpoint"),
        ),
        scopes=[
            {
                "name": name,
                "description": text,
                "checked": name in (chosen if error else CONSENT_SCOPES),
            }
            for name, text in describe_choices(consent.scopes, SCOPES).items()
        ],
        fault=error,
    )
    # With SameSite=Strict, browsers would not send the cookie when they come from the client's
    # site: a second consent page would then replace the nonce of one that is still open.
    secure = "; Secure" if server.issuer.url.startswith("https:") else ""
    cookie = f"{_COOKIE_NAME}={nonce}; Path={AUTHORIZE}; HttpOnly; SameSite=Lax{secure}"
    return HtmlResult(
        body,
        status=400 if error else 200,
        headers={"Set-Cookie": cookie},
        form_action=(csp_source(consent.redirect_uri),),
    )


async def _error_page(service: Service, problem: Problem) -> HtmlResult:
    """Return a page for an error that must not be reported to the client by a redirect."""
    if problem.code not in ("invalid", "forbidden"):
        raise problem
    sentences = [
        sentence("%(fault)s.", fault=problem.message),
        sentence("Nothing was granted. The program that sent you here has to fix this."),
    ]
    return await _notice(service, problem.status, sentences)


async def _notice(
    service: Service, status: int, sentences: Sequence[str], **more: Any
) -> HtmlResult:
    body = await service.pages.render(
        "notice", sentence("This cannot be allowed"), sentences=sentences, **more
    )
    return HtmlResult(body, status=status)


def _nonce(request: OperationRequest[None, Any]) -> str:
    """Return the nonce in the consent cookie, or `""` (RFC 6265, section 5.4)."""
    pairs = (part.strip().partition("=") for part in request.headers.get("Cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == _COOKIE_NAME and is_nonce(value)), "")


def _parameter(name: str, description: str, schema: Schema | None = None) -> Parameter:
    required = name in ("client_id", "response_type", "code_challenge")
    text = {"type": "string", "minLength": 1} if required else {"type": "string"}
    return Parameter(name, "query", schema or text, description, required=required)


_PARAMETERS: Final = (
    _parameter("response_type", "Codes alone.", {"const": "code"}),
    _parameter("client_id", "A registered client, or the URL of the document of one."),
    _parameter(
        "redirect_uri",
        "One that the client registered; on a loopback address, any port. "
        "May be left out by a client that registered one alone.",
    ),
    _parameter("code_challenge", "The SHA-256 digest of a verifier, in base64url (RFC 7636)."),
    _parameter("code_challenge_method", "S256.", {"const": "S256"}),
    _parameter("scope", "What the client wants to do; left out, all that it may be granted."),
    _parameter("state", "Comes back unchanged."),
    _parameter("resource", "What the token is to be for (RFC 8707)."),
)
_UNCHANGED: Final = "Unchanged from the authorization request."
_ANSWER_FORM: Final = object_schema(
    {
        "client_id": {"type": "string", "minLength": 1, "description": _UNCHANGED},
        "redirect_uri": {"type": "string", "minLength": 1, "description": _UNCHANGED},
        "decision": {"enum": ["allow", "deny"]},
        "api_key": {"type": "string", "description": "Who allows it."},
        "granted": {"type": "array", "items": {"enum": [*SCOPES, PUBLISH_WITH_ENQUIRIES]}},
        "seal": {"type": "string", "minLength": 1, "description": "Proof that the form was shown."},
    },
    "decision",
    "seal",
    "client_id",
)
_RESPONSES: Final = (
    page(200, "The question"),
    SuccessResponse(
        303, "On to the client, with a code or an error", headers={"Location": "The redirect URI."}
    ),
    page(400, "A page that says what is wrong"),
    page(403, "No redirect: client or form could not be verified"),
)

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="oauth_authorize",
        path=AUTHORIZE,
        summary="Ask a person whether a client may act in their name (OAuth 2.1, section 4.1.1)",
        tag="oauth",
        error_format="page",
        limit="token",
        handler=show_consent,
        parameters=_PARAMETERS,
        responses=_RESPONSES,
        problems=("unavailable",),
    ),
    Operation(
        name="oauth_consent",
        method="POST",
        path=AUTHORIZE,
        summary="What the person decided: the form of the page comes here",
        tag="oauth",
        error_format="page",
        limit="token",
        handler=save_decision,
        body=Body(
            TypeAdapter(FormMembers),
            _ANSWER_FORM,
            {
                "answer": {
                    "decision": "deny",
                    "seal": "as the page has it",
                    "client_id": "unchanged from the authorization request",
                    "redirect_uri": "unchanged from the authorization request",
                }
            },
            media_type=FORM,
        ),
        responses=_RESPONSES[1:],
        problems=("unavailable",),
    ),
)
