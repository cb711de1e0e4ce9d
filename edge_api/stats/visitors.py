"""The memory of one process for one day: keyed hashes of visitors, which midnight throws away."""

from collections import defaultdict
from hashlib import blake2b
from secrets import token_bytes
from typing import Final

from edge_api.db.stats_tables import OTHER, Kind
from edge_api.db.tables import Origin

NAMED_FROM: Final = 5
"""The networks of a day from which a referrer or source is named: one alone may be a person."""
MAX_VISITORS: Final = 100_000
"""The most people of a day; of each other kind of readers a tenth as many."""
MAX_NAMES: Final = 2000  # referrers and sources that are watched until they have networks enough
MAX_AGENT_ROWS: Final = 10_000  # rows with the name of a program; the names are the package's
MAX_NOTES: Final = 10_000


class DayMemory:
    """The hashes of one day, and their salt, which is deleted with them."""

    def __init__(self) -> None:
        self.notes: dict[int, tuple[Origin, str | None]] = {}
        """Where visitors of the contact page came from: the class, and the page of this site."""
        self._salt = token_bytes(32)
        self._seen: dict[Kind, set[int]] = defaultdict(set)
        self._named: dict[int, set[int]] = {}
        self._rows: set[tuple[str, Kind, str]] = set()

    def hash_visitor(self, address: str, agent: str = "") -> int:
        """Return the hash of a visitor, or without `agent` that of a network.

        `address` is a key of rate limits. It is cut to a /24, or to a /48 of IPv6.
        """
        groups = address.replace("::", ":0:0:0:").split(":")  # the third may be a zero left out
        cut = address.rpartition(".")[0] or ":".join(groups[:3])
        return self._hash(f"{cut} {agent}")

    def _hash(self, text: str) -> int:
        encoded = text.encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(encoded, key=self._salt, digest_size=8).digest())

    def is_new(self, kind: Kind, visitor: int) -> bool:
        """Note a visitor, and return whether this is the first visit of the day."""
        seen, most = self._seen[kind], MAX_VISITORS // (1 if kind == "person" else 10)
        if visitor in seen or len(seen) >= most:
            return False
        seen.add(visitor)
        return True

    def name_figure(self, figure: str, name: str, network: int | None) -> str:
        """Return the name under which a referrer or source counts: its own, or `other`."""
        watched = self._hash(f"{figure} {name}")
        known = len(self._named) < MAX_NAMES or watched in self._named
        networks = self._named.setdefault(watched, set()) if known and name else set()
        if network is not None and len(networks) < NAMED_FROM:
            networks.add(network)
        return name if len(networks) >= NAMED_FROM else OTHER

    def name_agent(self, path: str, kind: Kind, agent: str) -> str:
        """Return the name under which a program counts: its own, or `other` over the bound."""
        row = path, kind, agent
        if agent and len(self._rows) < MAX_AGENT_ROWS:
            self._rows.add(row)
        return agent if not agent or row in self._rows else OTHER

    def note(self, visitor: int, origin: Origin, page: str | None) -> None:
        """Note where a visitor of the contact page came from."""
        if visitor in self.notes or len(self.notes) < MAX_NOTES:
            self.notes[visitor] = origin, page
