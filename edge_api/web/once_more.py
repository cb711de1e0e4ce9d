"""How the same is answered once more to who asked for it: known again, and counted again."""

from dataclasses import dataclass

from edge_api.domain.access import Access
from edge_api.domain.actor import Actor
from edge_api.domain.limits import AUTHENTICATED, Limiter
from edge_api.store.plan import Store
from edge_api.web.wire import Wire, header_lines


@dataclass(slots=True)
class OnceMore:
    """The answer to a request with a credential, which only its holder gets again."""

    access: Access
    limiter: Limiter
    digest: str
    """Of the secret that was sent."""
    actor: Actor
    """Who held it, and was allowed to ask."""
    wire: Wire
    lines: bytes
    """Those of every answer."""
    store: Store
    stands_at: int | None
    """The version of the store that the answer stands on, if it stands on the store."""

    def __call__(self) -> tuple[Wire, bytes] | None:
        """Count the request and return its answer; `None` unless all is as it was.

        Raises Problem `too_many_requests`, and `unavailable` where nobody can vouch for the holder.
        """
        if self.stands_at is not None and self.stands_at != self.store.version():
            return None
        if self.access.recall(self.digest) != self.actor:
            return None
        quota = self.limiter.count(AUTHENTICATED, self.actor.holder)
        return self.wire, self.lines + header_lines(quota.headers.items() if quota else ())
