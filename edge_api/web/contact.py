"""The contact page's form, for a browser without scripts: a form in, a page out.

The page is the built one, with the form in it rendered anew where it was not filled in well.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

import jinja2
from aiohttp.web_request import BaseRequest

from edge_api.api.service import Service
from edge_api.domain.edition import Edition
from edge_api.domain.lead_input import LeadFaults, read_form
from edge_api.domain.leads import Sender
from edge_api.schema.index import FORM_TEMPLATE, SITE_FOLDER
from edge_api.schema.problems import Problem
from edge_api.web.body import read_bytes
from edge_api.web.callers import Callers
from edge_api.web.headers import SITE_HEADERS, transport
from edge_api.web.wire import Wire

CONTACT: Final = "/contact/"
THANKS: Final = "/contact/thanks/"
FORM_MOST: Final = 64 * 1024
"""Bytes of a posted form; the fields together are a tenth of that."""
_FIELDS_MOST: Final = 50
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_OPENING, _CLOSING = "<!-- contact form -->", "<!-- end of contact form -->"
"""What stands around the form in the built page."""


class Contact:
    """Takes posted forms."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._callers = Callers(service)
        self._always = transport(service.settings.site_url)

    async def answer(self, request: BaseRequest) -> Wire:
        """Store the lead and lead on to the thanks, or show the form again with its faults.

        Raises Problem for what no person with a browser sends.
        """
        check_origin(request, self._service.settings.site_url)
        fields = await _fields(request)
        try:
            await self._take(fields, self._callers.address_of(request))
        except LeadFaults as faults:
            return self._form(400, fields, faults.by_field)
        except Problem as problem:
            retry = [(name, text) for name, text in problem.headers.items()]
            return self._form(problem.status, fields, {"form": f"{problem.sentence}."}, retry)
        return Wire(303, [("Location", THANKS), ("Cache-Control", "no-store"), *self._always])

    async def _take(self, fields: Mapping[str, str], address: str) -> None:
        if self._service.settings.leads_require_credential:
            raise Problem("forbidden", "This form is closed; write to us by the API with a key")
        self._service.limiter.hit("leads_attempts", address)
        await self._service.leads.create(read_form(fields), Sender(None, address, "form"))

    def _form(
        self,
        status: int,
        fields: Mapping[str, str],
        faults: Mapping[str, str],
        more: list[tuple[str, str]] | None = None,
    ) -> Wire:
        headers = [
            ("Content-Type", "text/html; charset=utf-8"),
            ("Cache-Control", "no-store"),
            *SITE_HEADERS,
            *self._always,
            *(more or []),
        ]
        return Wire(status, headers, _render(self._service.shelf.edition(), fields, faults))


def check_origin(request: BaseRequest, site_url: str) -> None:
    """Refuse a form that another site sent. Raises Problem `forbidden`.

    Browsers say where a form came from (Fetch Metadata; RFC 6454, section 7); others say nothing.
    """
    came_from = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin", site_url)
    own = {site_url, f"{request.scheme}://{request.host}"}
    if came_from not in ("same-origin", "none") or origin not in own:
        raise Problem("forbidden", "This form was sent from another site: use the contact page")


async def _fields(request: BaseRequest) -> dict[str, str]:
    if request.content_type != _FORM_TYPE:
        raise Problem("unsupported_media_type", f"Send the form as {_FORM_TYPE}")
    raw = await read_bytes(request, FORM_MOST)
    try:
        text = raw.decode("ascii")
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MOST
        )
    except ValueError:
        raise Problem("invalid", "The form is not valid: send it again from the page") from None
    return dict(pairs)


def _render(edition: Edition, fields: Mapping[str, str], faults: Mapping[str, str]) -> bytes:
    """Return the contact page of the edition with the form as it was filled in."""
    page = _read(edition.folder / SITE_FOLDER / "contact" / "index.html")
    before, _, rest = page.partition(_OPENING)
    _, _, after = rest.partition(_CLOSING)
    form = _template(edition.folder / FORM_TEMPLATE).render(values=fields, faults=faults)
    return f"{before}{_OPENING}\n{form}\n{_CLOSING}{after}".encode()


@lru_cache(maxsize=2)
def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise Problem("unavailable", "The contact page cannot be read now") from None


@lru_cache(maxsize=2)
def _template(path: Path) -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_read(path))
