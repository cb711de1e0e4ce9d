"""Values of credentials: scopes, rate limits, and the formats of secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from edge_api.schema.sentences import sentence

if TYPE_CHECKING:
    from limits import RateLimitItem

SecretKind = Literal[
    "api_key", "access_token", "client_secret", "refresh_token", "authorization_code", "claim_token"
]

PREFIXES: Mapping[SecretKind, str] = {
    "api_key": "fe_sk_",
    "access_token": "fe_mt_",
    "client_secret": "fe_cs_",
    "refresh_token": "fe_rt_",
    "authorization_code": "fe_ac_",
    "claim_token": "fe_cl_",
}
assert tuple(PREFIXES) == get_args(SecretKind)  # noqa: S101  one list, stated twice for the type

RANDOM_WIDTH = 43  # digits that 256 random bits take in base 62
CHECK_WIDTH = 6  # digits that the 32 bits of a CRC-32 take in base 62
SECRET_PATTERN = f"({'|'.join(PREFIXES.values())})[0-9A-Za-z]{{{RANDOM_WIDTH + CHECK_WIDTH}}}"
"""Finds any of them in a text; in the words that every dialect of regular expressions knows."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One limit: its windows, and their names in headers."""

    name: str
    items: "tuple[RateLimitItem, ...]"
    labels: tuple[str, ...]
    policy: str


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """The result of counting a hit."""

    allowed: bool
    """Whether every window had room; else the hit is counted in none."""
    windows: tuple[tuple[int, float], ...]
    """For each window the hits that are left, and the seconds until one more is."""


@dataclass(frozen=True, slots=True)
class WindowHits:
    """The hits that one edge counted in memory within one moving window."""

    seconds: int
    """The length of the window."""
    ages: tuple[float, ...]
    """The age of each hit in seconds, oldest first."""


def read_limit(name: str, rate: str) -> RateLimit | None:
    """Return the limit that a checked setting describes; `None` where it is switched off."""
    if rate == "0":
        return None
    from limits import parse_many  # noqa: PLC0415  slow to import, and most commands count nothing

    items = tuple(parse_many(rate))
    windows = [f"{i.multiples if i.multiples > 1 else ''}{i.GRANULARITY.name}" for i in items[1:]]
    labels = (name, *(f"{name}-{window}" for window in windows))
    policies = (
        f'"{label}";q={item.amount};w={item.get_expiry()}'
        for label, item in zip(labels, items, strict=True)
    )
    return RateLimit(name, items, labels, ", ".join(policies))


Scope = Literal[
    "posts:read",
    "leads:read",
    "leads:write",
    "admin:read",
    "admin:write",
    "mail:send",
    "metrics:read",
    "mcp",
]

SCOPES: Mapping[Scope, str] = {
    "posts:read": sentence("read the published posts, as everybody can on the site"),
    "leads:read": sentence("read all enquiries: names, addresses, messages"),
    "leads:write": sentence("send enquiries without being checked for spam"),
    "admin:read": sentence(
        "read all enquiries with your notes, the mail log and suppressed addresses"
    ),
    "admin:write": sentence("change and delete enquiries, the mail log and suppressed addresses"),
    "mail:send": sentence("answer enquiries by mail, in the name of the site"),
    "metrics:read": sentence("read figures of the service, without names"),
    "mcp": sentence("call the MCP endpoint, which opens nothing by itself"),
}
"""Each scope, and the sentence of what it opens, after "lets its holder"."""
assert tuple(SCOPES) == get_args(Scope)  # noqa: S101  one list, stated twice for the type

CREDENTIAL_SCOPES: Mapping[SecretKind, tuple[Scope, ...]] = {
    "api_key": tuple(scope for scope in SCOPES if scope != "mcp"),
    "access_token": ("posts:read", "leads:read", "leads:write", "admin:read", "mcp"),
}
"""The scopes that do something with each type of credential: at the REST API, and over MCP."""

DEFAULT_SCOPES: tuple[Scope, ...] = ("posts:read", "leads:read", "leads:write")
"""The default scopes of a key that the operator issues: the public, non-administrative API."""

HARMLESS_SCOPES: tuple[Scope, ...] = ("posts:read", "mcp")
"""The scopes of a stranger unless a person chooses more: they open nothing that is not public."""

UNVETTED_SCOPES: tuple[Scope, ...] = (*DEFAULT_SCOPES, "mcp")
"""The most that a person can be asked to grant to a client that the operator did not register."""
