"""The authorization server by its identifier, and the resources that its tokens are for."""

from dataclasses import dataclass

from edge_api.schema.paths import DOORS, TOKEN, Door


@dataclass(frozen=True, slots=True)
class Issuer:
    """One server: its origin, without a slash behind it, is its identifier (RFC 8414, 2)."""

    url: str

    @property
    def resources(self) -> tuple[str, ...]:
        """Every resource that a token can be for (RFC 8707): the whole origin, or one door."""
        return (self.url, *(f"{self.url}{path}" for path in DOORS.values()))

    def within(self, resource: str) -> tuple[str, ...]:
        """Return what a token may be for under a grant for `resource`: itself, then its parts."""
        return self.resources if resource == self.url else (resource,)

    @property
    def audiences(self) -> tuple[str, ...]:
        """What a client may call the server in an assertion (RFC 7523, section 3)."""
        return (self.url, f"{self.url}{TOKEN}")

    def opens(self, resource: str, door: Door) -> bool:
        """Tell whether a token for `resource` is meant for the door."""
        return resource in (self.url, f"{self.url}{DOORS[door]}")
