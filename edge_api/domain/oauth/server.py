"""The parts of one authorization server, put together."""

from dataclasses import dataclass

from edge_api.domain.actor import Clock
from edge_api.domain.oauth.bearers import Bearers
from edge_api.domain.oauth.clients import Clients
from edge_api.domain.oauth.consents import Consents
from edge_api.domain.oauth.documents import Fetch
from edge_api.domain.oauth.form_guard import FormGuard
from edge_api.domain.oauth.housekeeping import forget_expired, forget_grants, forget_strangers
from edge_api.domain.oauth.issuer import Issuer
from edge_api.domain.oauth.signing import SigningKeys
from edge_api.domain.oauth.token_endpoint import TokenEndpoint
from edge_api.store.plan import Store


@dataclass(frozen=True, slots=True)
class Ground:
    """What a server stands on."""

    store: Store
    clock: Clock
    site_url: str
    secret: bytes
    fetch: Fetch
    """How documents of clients are fetched."""
    redirect_schemes: tuple[str, ...] = ()
    """Private-use schemes that redirects may have."""


class OAuthServer:
    """One authorization server."""

    def __init__(self, ground: Ground) -> None:
        store, clock = ground.store, ground.clock
        self.issuer = Issuer(ground.site_url)
        self.clients = Clients(store, clock, ground.fetch, ground.redirect_schemes)
        self.keys = SigningKeys(store, clock, ground.secret)
        self.tokens = TokenEndpoint(self.issuer, store, clock, self.clients, self.keys)
        self.consents = Consents(self.issuer, store, clock, self.clients.find)
        self.guard = FormGuard(ground.secret)
        self.bearers = Bearers(self.issuer, store, self.keys)
        self._store = store
        self._clock = clock

    async def keep_house(self) -> None:
        """Rotate what has had its time and forget what nobody needs. Raises Problem."""
        await self.keys.tend()
        await forget_strangers(self._store, self._clock())
        await forget_expired(self._store, self._clock())

    async def sweep(self) -> None:
        """Forget grants that nobody uses: once in a while will do, for it looks at all of them."""
        await forget_grants(self._store, self._clock())
