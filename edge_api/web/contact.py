"""The contact page's forms: for a lead, and for access to the API.

Sent by a browser a lead is answered with a page, by its script with JSON. Both are one door: the
same fields, limits and judgement, and the same source of the lead.
"""

from typing import Final

from edge_api.api.leads import IDEMPOTENCY_KEY, reply_with
from edge_api.api.service import Service
from edge_api.domain.access_order import read_access_form
from edge_api.domain.access_requests import Filed, requested_type
from edge_api.domain.form_faults import FormFaults
from edge_api.domain.lead_input import read_form
from edge_api.domain.leads import Created, Sender
from edge_api.schema.edge_pages import ACCESS_FORM, CONTACT_FORM
from edge_api.schema.paths import CLAIM_CREDENTIAL
from edge_api.schema.problems import Problem
from edge_api.web.callers import Callers
from edge_api.web.endpoint import encode
from edge_api.web.fields import prefers_json, whole_list
from edge_api.web.forms import Fields, FormDesk, answer_page, lead_on
from edge_api.web.pages import EdgePages
from edge_api.web.request import Request
from edge_api.web.wire import Wire

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

    async def answer(self, request: Request) -> Wire:
        """Store the lead and answer in the form that is wanted.

        Raises Problem for what no person with a browser sends, and where JSON is wanted, for
        whatever else is wrong.
        """
        fields = await self._desk.read(request)
        if prefers_json(whole_list(request.headers, "Accept") or ""):
            return await self._answer_script(request, fields)
        return await self._answer_person(request, fields)

    async def _answer_person(self, request: Request, fields: Fields) -> Wire:
        """Lead on to the thanks, or show the form again with its faults."""
        try:
            await self._take(request, fields)
        except (FormFaults, Problem) as fault:
            return await self._desk.give_back(fields, fault)
        return lead_on(THANKS)

    async def _answer_script(self, request: Request, fields: Fields) -> Wire:
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
        return await self._service.leads.create(read_form(fields), sender, key)


class AccessForm:
    """Takes the form that asks for access, which needs no scripts."""

    def __init__(self, service: Service, pages: EdgePages) -> None:
        self._service = service
        self._pages = pages
        self._callers = Callers(service)
        self._desk = FormDesk(ACCESS_FORM, pages, service.settings.site_url)

    async def answer(self, request: Request) -> Wire:
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
        return await self._service.access_requests.file(read_access_form(fields), address)

    async def _show(self, filed: Filed) -> bytes:
        return await self._pages.render(
            "access_requested",
            "Your request is filed",
            claim_token=filed.claim_token,
            claim_uri=f"{self._service.settings.site_url}{CLAIM_CREDENTIAL}",
            credential_type=requested_type(filed.row),
            expires=filed.row["expires_at"][:_DAY],
        )
