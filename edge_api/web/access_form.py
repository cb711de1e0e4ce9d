"""The contact page's form that asks for access, for a browser without scripts.

What comes of it is a page with the claim token, which is shown that once.
"""

from typing import Final

from edge_api.api.service import Service
from edge_api.domain.access_order import read_access_form
from edge_api.domain.access_requests import Filed, requested_type
from edge_api.domain.form_faults import FormFaults
from edge_api.schema.edge_pages import ACCESS_FORM
from edge_api.schema.paths import CLAIM_CREDENTIAL
from edge_api.schema.problems import Problem
from edge_api.web.callers import Callers
from edge_api.web.forms import Fields, FormDesk, answer_page
from edge_api.web.pages import EdgePages
from edge_api.web.request import Request
from edge_api.web.wire import Wire

ACCESS: Final = "/contact/access/"
_DAY: Final = len("2026-12-05")


class AccessForm:
    """Takes posted forms."""

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
