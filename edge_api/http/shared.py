"""Shared drafts at `/shared/<token>/`, looked up on disk for each request: nothing is cached."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from aiohttp import web

from edge_api.http.admission import Admitted
from edge_api.http.headers import SHARED_HEADERS
from edge_api.http.request import Request
from edge_api.http.site import Site
from edge_api.http.static import answer_file, represent
from edge_api.operation.service import Service
from edge_api.schema.paths import SHARED
from edge_api.schema.shares import PAGE_FILE, locate_share, read_share
from edge_api.schema.site_policy import media_type


class SharedDrafts:
    """Serves what `share` has written; for all else, `site` answers as for any missing page."""

    def __init__(self, service: Service, site: Site) -> None:
        self._service, self._site = service, site

    async def answer(
        self, request: Request, path: Mapping[str, str], admitted: Admitted
    ) -> web.StreamResponse:
        """Return the answer to GET or HEAD. Raises Problem `too_many_requests` for guesses."""
        # Proxies replace the token in their logs where the address begins so, undecoded.
        name = path.get("file", PAGE_FILE) if request.rel_url.raw_path.startswith(SHARED) else ""
        if file := await asyncio.to_thread(self._find, path["token"], name):
            headers = (("Content-Type", media_type(name)), *SHARED_HEADERS)
            with suppress(OSError):  # it was revoked meanwhile
                found = await asyncio.to_thread(represent, file, None, "", 200, headers)
                return await answer_file(found, request)
        response = await self._site.answer(request)
        if response.status == HTTPStatus.NOT_FOUND:
            await self._service.limiter.hit("failed_auth", admitted.address)
        return response

    def _find(self, token: str, name: str) -> Path | None:
        """Return the file of this name if the token's share lists it."""
        folder = locate_share(self._service.settings.build_dir, token)
        share = read_share(folder, self._service.clock())
        return folder / name if share and name in share.files else None
