"""The contact page's form, for a browser without scripts: a form in, a page out.

The page is the built one, with the form in it rendered anew where it was not filled in well.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

import jinja2

from edge_api.api.reply import NO_STORE
from edge_api.api.service import Service
from edge_api.domain.lead_input import LeadFaults, read_form
from edge_api.domain.leads import Sender
from edge_api.schema.index import (
    FORM_CLOSING,
    FORM_FIELDS,
    FORM_OPENING,
    FORM_TEMPLATE,
    SITE_FOLDER,
)
from edge_api.schema.problems import Problem
from edge_api.web.body import read_bytes
from edge_api.web.callers import Callers
from edge_api.web.headers import PAGE_HEADERS, Headers
from edge_api.web.request import Request
from edge_api.web.wire import Wire

CONTACT: Final = "/contact/"
THANKS: Final = "/contact/thanks/"
CONTACT_FILE: Final = "contact/index.html"
FORM_MOST: Final = 64 * 1024
"""Bytes of a posted form; the fields together are a tenth of that."""
_FIELDS_MOST: Final = 50
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
Fields = Mapping[str, str]


class Contact:
    """Takes posted forms."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._callers = Callers(service)

    async def answer(self, request: Request) -> Wire:
        """Store the lead and lead on to the thanks, or show the form again with its faults.

        Raises Problem for what no person with a browser sends.
        """
        check_origin(request, self._service.settings.site_url)
        fields = await _fields(request)
        try:
            await self._take(fields, self._callers.address_of(request))
        except LeadFaults as faults:
            return await self._form(Problem("invalid"), fields, _told(faults))
        except Problem as problem:
            return await self._form(problem, fields, {"form": f"{problem.sentence}."})
        return self._answer(303, (("Location", THANKS),))

    async def _take(self, fields: Fields, address: str) -> None:
        if self._service.settings.leads_require_credential:
            raise Problem("forbidden", "This form is closed; write to us by the API with a key")
        self._service.limiter.hit("leads_attempts", address)
        await self._service.leads.create(read_form(fields), Sender(None, address, "form"))

    async def _form(self, problem: Problem, fields: Fields, faults: Fields) -> Wire:
        edition = self._service.shelf.edition()
        body = await asyncio.to_thread(_render, edition.folder, fields, faults)
        headers = (("Content-Type", "text/html; charset=utf-8"), *problem.headers.items())
        return self._answer(problem.status, headers, body)

    def _answer(self, status: int, headers: Headers, body: bytes = b"") -> Wire:
        return Wire(status, (*headers, ("Cache-Control", NO_STORE), *PAGE_HEADERS), body)


def check_origin(request: Request, site_url: str) -> None:
    """Refuse a form that another site sent. Raises Problem `forbidden`.

    A browser says so itself (Fetch Metadata, section 2.4), an older one names where it came from
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


async def _fields(request: Request) -> dict[str, str]:
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


def _told(faults: LeadFaults) -> dict[str, str]:
    """Return a sentence for each field at fault; what no field of the form shows is about all."""
    sentences = {name: f"{text[:1].upper()}{text[1:]}." for name, text in faults.by_field.items()}
    hidden = sentences.keys() - set(FORM_FIELDS)
    whole = {"form": " ".join(f"{name}: {sentences[name]}" for name in sorted(hidden))}
    return {**sentences, **(whole if hidden else {})}


def _render(folder: Path, fields: Fields, faults: Fields) -> bytes:
    """Return the contact page of a build with the form as it was filled in.

    Raises Problem `unavailable` when the build has no such page.
    """
    try:
        page = (folder / SITE_FOLDER / CONTACT_FILE).read_text(encoding="utf-8")
        source = (folder / FORM_TEMPLATE).read_text(encoding="utf-8")
    except OSError:
        sentence = "The form could not be taken, and its page cannot be shown: try again later"
        raise Problem("unavailable", sentence, headers={"Retry-After": "60"}) from None
    before, _, rest = page.partition(FORM_OPENING)
    _, _, after = rest.partition(FORM_CLOSING)
    form = _template(source).render(values=fields, faults=faults)
    return f"{before}{FORM_OPENING}\n{form}\n{FORM_CLOSING}{after}".encode()


@lru_cache(maxsize=2)
def _template(source: str) -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source)
