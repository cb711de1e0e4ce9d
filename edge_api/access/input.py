"""The input of an access request, in two formats.

The second form is a registration of auth.md's first generation: its type is `anonymous`, and
`requested_credential_type` names the credential.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from edge_api.auth.keys import KeyType
from edge_api.db.tables import MAX_EMAIL_LENGTH
from edge_api.operation.input import HONEYPOT, TextRule, check_email, check_form, normalize_newlines
from edge_api.schema.credentials import DEFAULT_SCOPES, SCOPES, Scope

RequestedType = Literal["api_key", "access_token", "both"]
ANONYMOUS: Final = "anonymous"
UNNAMED_AGENT: Final = "An agent that gave no name"
UNSTATED_PURPOSE: Final = "Nothing was said about the purpose."

_NAME = TextRule(100)
_PURPOSE = TextRule(2000, multiline=True)


class AccessRequestInput(BaseModel, strict=True, frozen=True):
    """A request for a credential."""

    type: Literal["api_key", "access_token", "both", "anonymous"]
    requested_credential_type: RequestedType = "api_key"
    name: Annotated[str, AfterValidator(_NAME.clean)]
    email: Annotated[str, AfterValidator(check_email)] | None = None
    purpose: Annotated[str, AfterValidator(_PURPOSE.clean)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(SCOPES))] | None = None
    filled_honeypot: Annotated[bool, BeforeValidator(bool)] = Field(default=False, alias=HONEYPOT)

    @model_validator(mode="before")
    @classmethod
    def _add_defaults(cls, given: Any) -> Any:
        """Add the members that anonymous agents do not send."""
        if isinstance(given, Mapping) and given.get("type") == ANONYMOUS:
            return {"name": UNNAMED_AGENT, "purpose": UNSTATED_PURPOSE, **given}
        return given

    @property
    def credential_types(self) -> tuple[KeyType, ...]:
        """The requested credential, or one for each audience."""
        requested = self.requested_credential_type if self.type == ANONYMOUS else self.type
        return ("api_key", "access_token") if requested == "both" else (requested,)

    @property
    def requested_scopes(self) -> tuple[Scope, ...]:
        """The requested scopes; an access token needs `mcp`."""
        is_for_mcp = "access_token" in self.credential_types
        scopes = {*(self.scopes or DEFAULT_SCOPES), *(("mcp",) if is_for_mcp else ())}
        return tuple(scope for scope in SCOPES if scope in scopes)


def read_access_form(fields: Mapping[str, str]) -> AccessRequestInput:
    """Return the input of a posted form; empty fields count as missing. Raises FormErrors."""
    given = {name: text for name, text in normalize_newlines(fields).items() if name != "scopes"}
    return check_form(AccessRequestInput, {**given, "email": given.get("email") or None})


def request_schema() -> dict[str, Any]:
    """Return the JSON Schema of both forms."""
    members = {
        "name": _NAME.json_schema("Who asks: a person, or a program."),
        "purpose": _PURPOSE.json_schema("What it is for; tabs and line feeds stay."),
        "email": {
            "type": ["string", "null"],
            "format": "email",
            "minLength": 3,
            "maxLength": MAX_EMAIL_LENGTH,
            "description": "Where the person who decides may ask back.",
        },
        "scopes": {
            "type": ["array", "null"],
            "items": {"enum": list(SCOPES)},
            "minItems": 1,
            "maxItems": len(SCOPES),
            "description": "What the credential is to be able to do, or the default.",
        },
    }
    credential = {
        "enum": list(get_args(RequestedType)),
        "description": "For the REST API, for MCP, or one credential for each.",
    }
    return {
        "anyOf": [
            {
                "title": "In plain words",
                "type": "object",
                "required": ["type", "name", "purpose"],
                "properties": {"type": credential, **members},
            },
            {
                "title": "In the words of auth.md",
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {"const": ANONYMOUS},
                    "requested_credential_type": credential,
                    **members,
                },
            },
        ]
    }
