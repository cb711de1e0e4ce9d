"""What somebody sends to become a lead: its members, their checks, and its two encodings.

Strings only and no coercion; members that are not declared here are ignored.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)
from pydantic.json_schema import SkipJsonSchema

from edge_api.domain.form_faults import check_form, unfold
from edge_api.domain.lead_text import TextRule
from edge_api.schema.mailbox import fold_address
from edge_api.schema.tables import EMAIL_LONGEST

_NAME = TextRule(100)
_EMAIL = TextRule(EMAIL_LONGEST)
_BUDGET_TIER = TextRule(50)
_MESSAGE = TextRule(2000, lines=True)

HONEYPOT: Final = "_gotcha"
"""A member that no person sees in the form: what fills it in is a machine."""


def _check_email(text: str) -> str:
    address = _EMAIL.clean(text)
    fold_address(address)
    return address


class LeadInput(BaseModel):
    """An enquiry, as somebody sends it."""

    model_config = ConfigDict(strict=True, frozen=True)

    name: Annotated[
        str,
        AfterValidator(_NAME.clean),
        WithJsonSchema(_NAME.json_schema("Who asks.")),
        Field(examples=["Ann Lee"]),
    ]
    email: Annotated[
        str,
        AfterValidator(_check_email),
        WithJsonSchema(
            {
                "type": "string",
                "format": "email",
                "minLength": 3,
                "maxLength": EMAIL_LONGEST,
                "description": "Where an answer reaches them. White space around it is taken off.",
            }
        ),
        Field(examples=["ann.lee@example.org"]),
    ]
    budget_tier: Annotated[
        str,
        AfterValidator(_BUDGET_TIER.clean),
        WithJsonSchema(_BUDGET_TIER.json_schema("What they may spend, in any words.")),
        Field(examples=["5k-10k"]),
    ]
    message: Annotated[
        str,
        AfterValidator(_MESSAGE.clean),
        WithJsonSchema(_MESSAGE.json_schema("What they want; tabs and line feeds stay.")),
        Field(examples=["We would like to move our blog to a static site."]),
    ]
    consent: bool = Field(
        default=False, description="Whether they agreed to `consent_text`; the time is kept."
    )
    consent_text: (
        Annotated[
            str,
            AfterValidator(_MESSAGE.clean),
            WithJsonSchema(_MESSAGE.json_schema("What they agreed to, in the words they saw.")),
        ]
        | None
    ) = None
    trapped: SkipJsonSchema[Annotated[bool, BeforeValidator(bool)]] = Field(
        default=False, alias=HONEYPOT
    )

    def canonical(self) -> bytes:
        """Return what two inputs that ask for the same have in common, as JSON."""
        return orjson.dumps(self.model_dump(), option=orjson.OPT_SORT_KEYS)


_CHECKED: Final = MappingProxyType({"on": True, "true": True, "1": True})
"""What browsers and people send for a ticked box; anything else is not ticked."""


def read_form(fields: Mapping[str, str]) -> LeadInput:
    """Return what a posted form says; it sends each empty field as an empty text.

    Raises FormFaults.
    """
    given = unfold(fields)
    given["consent"] = _CHECKED.get(fields.get("consent", ""), False)
    if not fields.get("consent_text", ""):
        given["consent_text"] = None
    return check_form(LeadInput, given)
