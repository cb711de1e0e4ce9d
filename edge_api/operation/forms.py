"""The forms of the contact page as operations, for browsers without scripts."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, TypeAdapter

from edge_api.db.problems import Problem
from edge_api.operation.input import FormFaults
from edge_api.operation.model import Body, OperationRequest
from edge_api.operation.result import FORM, HtmlResult, OperationResult
from edge_api.operation.service import Service
from edge_api.schema.page_templates import Form

FormFields = dict[str, str]
"""What was typed, by the name of the field."""


def _last_of_each(members: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one text for each name: of a field that is sent twice, the last."""
    return {name: text[-1] if isinstance(text, list) else text for name, text in members.items()}


BODY: Final = Body(
    TypeAdapter(Annotated[FormFields, BeforeValidator(_last_of_each)]),
    {"type": "object", "additionalProperties": {"type": "string"}},
    media_type=FORM,
)


def check_own_form(service: Service, headers: Mapping[str, str], _peer: str) -> None:
    """Refuse a form of another site (Fetch Metadata, section 2.3). Raises Problem `forbidden`."""
    came_from = headers.get("Sec-Fetch-Site")
    if came_from is None:
        host, site_url = headers.get("Host", ""), service.settings.site_url
        origin = headers.get("Origin", site_url)  # programs send none
        is_own = origin in (site_url, f"http://{host}", f"https://{host}")
    else:
        is_own = came_from in ("same-origin", "none")
    if not is_own:
        raise Problem("forbidden", "This form was sent from another site: use the contact page")


async def render_form_errors(
    service: Service,
    form: Form,
    request: OperationRequest[None, FormFields],
    fault: FormFaults | Problem,
) -> OperationResult:
    """Return the page with the form as it was filled in, and what is wrong with it."""
    if isinstance(fault, FormFaults):
        problem, sentences = Problem("invalid"), _sentences(form, fault)
    else:
        problem, sentences = fault, {"form": f"{fault.message}."}
    body = await service.pages.render_form(form, values=request.body, faults=sentences)
    return HtmlResult(body, problem.status, problem.headers)


def _sentences(form: Form, faults: FormFaults) -> dict[str, str]:
    found = {name: f"{text[:1].upper()}{text[1:]}." for name, text in faults.by_field.items()}
    hidden = found.keys() - set(form.fields)
    whole = {"form": " ".join(f"{name}: {found[name]}" for name in sorted(hidden))}
    return {**found, **(whole if hidden else {})}


def redirect(address: str) -> OperationResult:
    """Send the browser to another page with GET (RFC 9110, section 15.4.4)."""
    return HtmlResult(b"", 303, {"Location": address}, media_type="")
