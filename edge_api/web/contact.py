"""The contact page's form, for a browser without scripts: a form in, a page out."""

from typing import Final

from edge_api.api.service import Service
from edge_api.domain.form_faults import FormFaults
from edge_api.domain.lead_input import read_form
from edge_api.domain.leads import Sender
from edge_api.schema.edge_pages import CONTACT_FORM
from edge_api.schema.problems import Problem
from edge_api.web.callers import Callers
from edge_api.web.forms import Fields, FormDesk, lead_on
from edge_api.web.pages import EdgePages
from edge_api.web.request import Request
from edge_api.web.wire import Wire

CONTACT: Final = "/contact/"
THANKS: Final = "/contact/thanks/"


class Contact:
    """Takes posted forms."""

    def __init__(self, service: Service, pages: EdgePages) -> None:
        self._service = service
        self._callers = Callers(service)
        self._desk = FormDesk(CONTACT_FORM, pages, service.settings.site_url)

    async def answer(self, request: Request) -> Wire:
        """Store the lead and lead on to the thanks, or show the form again with its faults.

        Raises Problem for what no person with a browser sends.
        """
        fields = await self._desk.read(request)
        try:
            await self._take(fields, self._callers.address_of(request))
        except (FormFaults, Problem) as fault:
            return await self._desk.give_back(fields, fault)
        return lead_on(THANKS)

    async def _take(self, fields: Fields, address: str) -> None:
        if self._service.settings.leads_require_credential:
            raise Problem("forbidden", "This form is closed; write to us by the API with a key")
        self._service.limiter.hit("leads_attempts", address)
        await self._service.leads.create(read_form(fields), Sender(None, address, "form"))
