"""Forms that a browser without scripts posts, the contact page's among them.

What is in a form is not known here.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from edge_api.access.input import read_access_form
from edge_api.access.service import AccessRequests, Filed, requested_type
from edge_api.db.problems import Problem
from edge_api.http.body import read_bytes
from edge_api.http.endpoint import encode
from edge_api.http.errors import error_answer
from edge_api.http.headers import PAGE_HEADERS
from edge_api.http.pages import EdgePages
from edge_api.http.request import Callers, Request, whole_list
from edge_api.http.response import PreparedResponse
from edge_api.leads.input import FormFaults, read_form
from edge_api.leads.operations import IDEMPOTENCY_KEY, reply_with
from edge_api.leads.service import Created, Leads, Sender
from edge_api.operation.negotiation import prefers_json, prefers_markdown
from edge_api.operation.result import FORM, HTML, MARKDOWN, NO_STORE, escape
from edge_api.operation.service import Pages, Service
from edge_api.schema.edge_pages import ACCESS_FORM, CONTACT_FORM, Form
from edge_api.schema.paths import CLAIM_CREDENTIAL
from edge_api.schema.site_policy import Headers

FORM_MOST: Final = 64 * 1024
"""Bytes of a posted form; the fields together are a tenth of that."""
_FIELDS_MOST: Final = 50
Fields = Mapping[str, str]
_TITLE: Final = "This did not work"


class FormDesk:
    """Takes one form of the contact page, and gives it back with its faults."""

    def __init__(self, form: Form, pages: EdgePages, site_url: str) -> None:
        self._form = form
        self._pages = pages
        self._site_url = site_url

    async def read(self, request: Request) -> dict[str, str]:
        """Return the fields. Raises Problem for what no person with a browser sends."""
        check_origin(request, self._site_url)
        if request.content_type != FORM:
            raise Problem("unsupported_media_type", f"Send the form as {FORM}")
        return _decode(await read_bytes(request, FORM_MOST))

    async def give_back(self, fields: Fields, fault: FormFaults | Problem) -> PreparedResponse:
        """Return the page with the form as it was filled in, and what is wrong with it."""
        if isinstance(fault, FormFaults):
            problem, told = Problem("invalid"), self._tell(fault)
        else:
            problem, told = fault, {"form": f"{fault.sentence}."}
        body = await self._pages.refill(self._form, values=fields, faults=told)
        return answer_page(body, problem.status, tuple(problem.headers.items()))

    def _tell(self, faults: FormFaults) -> dict[str, str]:
        """Return a sentence for each field; what no field of the form shows is about all."""
        sentences = {
            name: f"{text[:1].upper()}{text[1:]}." for name, text in faults.by_field.items()
        }
        hidden = sentences.keys() - set(self._form.fields)
        whole = {"form": " ".join(f"{name}: {sentences[name]}" for name in sorted(hidden))}
        return {**sentences, **(whole if hidden else {})}


def answer_page(
    body: bytes, status: int = 200, headers: Headers = (), media_type: str = HTML
) -> PreparedResponse:
    """Return a page that is one person's."""
    return PreparedResponse(status, (("Content-Type", media_type), *headers, *_ALWAYS), body)


def lead_on(address: str) -> PreparedResponse:
    """Return what sends a browser on to another page with GET (RFC 9110, section 15.4.4)."""
    return PreparedResponse(303, (("Location", address), *_ALWAYS))


_ALWAYS: Final[Headers] = (("Cache-Control", NO_STORE), *PAGE_HEADERS)


def check_origin(request: Request, site_url: str) -> None:
    """Refuse a form that another site sent. Raises Problem `forbidden`.

    A browser says so itself (Fetch Metadata, section 2.3), an older one names where it came from
    (Fetch, section 3.2); what is no browser says neither, and acts for nobody but itself.
    """
    came_from = request.headers.get("Sec-Fetch-Site")
    if came_from is None:
        origin = request.headers.get("Origin", site_url)
        is_own = origin in (site_url, f"http://{request.host}", f"https://{request.host}")
    else:
        is_own = came_from in ("same-origin", "none")
    if not is_own:
        raise Problem("forbidden", "This form was sent from another site: use the contact page")


def _decode(raw: bytes) -> dict[str, str]:
    """Return the fields of a form; of one that stands twice, the last. Raises Problem `invalid`."""
    try:
        text = raw.decode("ascii")
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MOST
        )
    except ValueError:
        raise Problem("invalid", "The form is not valid: send it again from the page") from None
    return dict(pairs)


async def error_page(pages: Pages, problem: Problem, accepted: str = "") -> PreparedResponse:
    """Return the page that tells of a problem; without a build that has one, as JSON.

    It is Markdown for whoever prefers that by `accepted`, the field `Accept`.
    """
    headers = (*problem.headers.items(), ("Vary", "Accept"))
    if prefers_markdown(accepted):
        text = f"# {_TITLE}\n\n{escape(problem.sentence)}.\n"
        return answer_page(text.encode(), problem.status, headers, MARKDOWN)
    sentences = [f"{problem.sentence}."]
    try:
        body = await pages.render("notice", _TITLE, sentences=sentences)
    except Problem:
        return error_answer(problem)
    return answer_page(body, problem.status, headers)


CONTACT: Final = "/contact/"
THANKS: Final = "/contact/thanks/"
ACCESS: Final = "/contact/access/"
_DAY: Final = len("2026-12-05")


class Contact:
    """Takes the form that sends a lead."""

    def __init__(self, service: Service, pages: EdgePages) -> None:
        self._service = service
        self._callers = Callers(service)
        self._desk = FormDesk(CONTACT_FORM, pages, service.settings.site_url)

    async def answer(self, request: Request) -> PreparedResponse:
        """Store the lead and answer in the form that is wanted.

        Raises Problem for what no person with a browser sends, and where JSON is wanted, for
        whatever else is wrong.
        """
        fields = await self._desk.read(request)
        if prefers_json(whole_list(request.headers, "Accept") or ""):
            return await self._answer_script(request, fields)
        return await self._answer_person(request, fields)

    async def _answer_person(self, request: Request, fields: Fields) -> PreparedResponse:
        """Lead on to the thanks, or show the form again with its faults."""
        try:
            await self._take(request, fields)
        except (FormFaults, Problem) as fault:
            return await self._desk.give_back(fields, fault)
        return lead_on(THANKS)

    async def _answer_script(self, request: Request, fields: Fields) -> PreparedResponse:
        """Answer as the API does, but that an Error names every fault of the form at once."""
        try:
            return encode(reply_with(await self._take(request, fields)))
        except FormFaults as faults:
            raise Problem("invalid", str(faults)) from None

    async def _take(self, request: Request, fields: Fields) -> Created:
        if self._service.settings.leads_require_credential:
            raise Problem("forbidden", "This form is closed; write to us by the API with a key")
        address = self._callers.address_of(request)
        await self._service.limiter.hit("leads_attempts", address)
        sender = Sender(None, address, "form")
        key = request.headers.get(IDEMPOTENCY_KEY)
        return await self._service[Leads].create(read_form(fields), sender, key)


class AccessForm:
    """Takes the form that asks for access, which needs no scripts."""

    def __init__(self, service: Service, pages: EdgePages) -> None:
        self._service = service
        self._pages = pages
        self._callers = Callers(service)
        self._desk = FormDesk(ACCESS_FORM, pages, service.settings.site_url)

    async def answer(self, request: Request) -> PreparedResponse:
        """File the request and show its claim token, or show the form again with its faults.

        Raises Problem for what no person with a browser sends.
        """
        fields = await self._desk.read(request)
        try:
            filed = await self._take(fields, self._callers.address_of(request))
        except (FormFaults, Problem) as fault:
            return await self._desk.give_back(fields, fault)
        return answer_page(await self._show(filed))

    async def _take(self, fields: Fields, address: str) -> Filed:
        await self._service.limiter.hit("leads_attempts", address)
        return await self._service[AccessRequests].file(read_access_form(fields), address)

    async def _show(self, filed: Filed) -> bytes:
        return await self._pages.render(
            "access_requested",
            "Your request is filed",
            claim_token=filed.claim_token,
            claim_uri=f"{self._service.settings.site_url}{CLAIM_CREDENTIAL}",
            credential_type=requested_type(filed.row),
            expires=filed.row["expires_at"][:_DAY],
        )
