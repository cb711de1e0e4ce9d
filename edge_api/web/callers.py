"""Whose request it is, as rate limits count it: worked out only where something is counted."""

from edge_api.api.service import Service
from edge_api.domain.addresses import client_address
from edge_api.web.request import Request


class Callers:
    """Finds the client's address, seen through trusted proxies only."""

    def __init__(self, service: Service) -> None:
        self._trusted = service.settings.trusted_proxies
        self._health = service.health

    def address_of(self, request: Request) -> str:
        """Return the address that stands for the client; note forwarding by a stranger."""
        caller = client_address(request.remote or "", request.headers, self._trusted)
        if caller.untrusted_forwarding:
            self._health.untrusted_forwarding = True
        return caller.key
