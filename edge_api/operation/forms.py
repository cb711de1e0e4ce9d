"""Helpers for operations that take the forms of pages, for browsers without scripts."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, TypeAdapter

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.operation.input import FormErrors
from edge_api.operation.model import (
    FORM,
    Body,
    HtmlResult,
    OperationRequest,
    OperationResult,
    Service,
)
from edge_api.schema.page_templates import Form
from edge_api.schema.sentences import sentence

FormFields = dict[str, str]
"""The values that were entered, by field name."""


def _last_values(members: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one value for each name: the last one if a field is sent twice."""
    return {name: text[-1] if isinstance(text, list) else text for name, text in members.items()}


class FormFile(str):
    """A file that a browser sent: its name, with its bytes."""

    __slots__ = ("data",)
    data: bytes
    """More than the limit where the file is larger: its end was dropped."""


BODY: Final = Body(
    TypeAdapter(Annotated[FormFields, BeforeValidator(_last_values)]),
    {"type": "object", "additionalProperties": {"type": "string"}},
    max_bytes=128 * 1024,  # so large that a text far too long is answered with its error
    media_type=FORM,
)


def form_pairs(form: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the members of a decoded form as pairs."""
    return [
        (name, each)
        for name, value in form.items()
        for each in (value if isinstance(value, list) else [value])
    ]


def check_same_site(service: Service, headers: Mapping[str, str], _peer: str) -> None:
    """Reject a form of another site (Fetch Metadata, section 2.3). Raises Problem `forbidden`."""
    fetch_site = headers.get("Sec-Fetch-Site")
    if fetch_site is None:
        host, site_url = headers.get("Host", ""), service.settings.site_url
        origin = headers.get("Origin", site_url)  # programs send none
        is_same_site = origin in (site_url, f"http://{host}", f"https://{host}")
    else:
        is_same_site = fetch_site in ("same-origin", "none")
    if not is_same_site:
        raise Problem(
            "forbidden", sentence("This form was sent from another site: use the contact page")
        )


async def render_form_errors(
    service: Service,
    form: Form,
    request: OperationRequest[None, FormFields],
    error: FormErrors | Problem,
) -> OperationResult:
    """Return the page with the form as it was filled in, and its errors."""
    if isinstance(error, FormErrors):
        problem, sentences = (
            Problem("invalid"),
            _error_sentences(form, error, service.pages.translate),
        )
    else:
        problem, sentences = error, {"form": sentence("%(fault)s.", fault=error.message)}
    body = await service.pages.render_form(form, values=request.body, errors=sentences)
    return HtmlResult(body, problem.status, problem.headers)


def _error_sentences(form: Form, errors: FormErrors, say: Callable[[str], str]) -> dict[str, str]:
    found = {
        name: say(sentence("%(fault)s.", fault=f"{text[:1].upper()}{text[1:]}"))
        for name, text in zip(errors.by_field, map(say, errors.by_field.values()), strict=True)
    }
    # The form does not show these fields: their errors are shown for the form as a whole.
    hidden = found.keys() - set(form.fields)
    whole = {"form": " ".join(f"{name}: {found[name]}" for name in sorted(hidden))}
    return {**found, **(whole if hidden else {})}


async def key_owner(service: Service, request: OperationRequest[Any, Any], key: str) -> Actor:
    """Return the holder of the API key in a form. Raises Problem `invalid`."""
    if not key:
        raise Problem("invalid", sentence("Paste an API key: it says who you are"))
    try:
        owner = await service.authenticator.authenticate(key)
    except Problem as problem:
        if problem.code != "unauthenticated":
            raise
        await service.limiter.hit("failed_auth", request.address)
        raise Problem("invalid", sentence("This is not a valid API key")) from None
    if owner.type != "api_key":
        raise Problem("invalid", sentence("This is a token: paste an API key"))
    return owner


def redirect(address: str) -> OperationResult:
    """Return a redirect, which browsers follow with GET (RFC 9110, section 15.4.4)."""
    return HtmlResult(b"", 303, {"Location": address}, media_type="")
