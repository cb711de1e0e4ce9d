"""Values of credentials: scopes, rate limits, and the formats of secrets."""

from collections.abc import Collection, Iterable, Mapping
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
assert tuple(PREFIXES) == get_args(SecretKind)  # noqa: S101  the type repeats the keys

RANDOM_WIDTH = 43  # digits that 256 random bits take in base 62
CHECK_WIDTH = 6  # digits that the 32 bits of a CRC-32 take in base 62
SECRET_PATTERN = f"({'|'.join(PREFIXES.values())})[0-9A-Za-z]{{{RANDOM_WIDTH + CHECK_WIDTH}}}"
"""Finds any secret in a text; it uses only syntax that all regular expression dialects share."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A rate limit: its windows, their names in headers, and the header `RateLimit-Policy`."""

    name: str
    items: "tuple[RateLimitItem, ...]"
    labels: tuple[str, ...]
    policy: str


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """The result of counting a hit."""

    allowed: bool
    """Whether every window had room; otherwise no window counts the hit."""
    windows: tuple[tuple[int, float], ...]
    """The hits left in each window, and the seconds until one more is free."""


@dataclass(frozen=True, slots=True)
class WindowHits:
    """The hits that one edge counted in memory within one moving window."""

    seconds: int
    """The length of the window."""
    ages: tuple[float, ...]
    """The age of each hit in seconds, oldest first."""


def read_limit(name: str, rate: str) -> RateLimit | None:
    """Return the limit that a validated setting describes; `None` if it is switched off."""
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
    "posts:draft",
    "posts:publish",
    "leads:read",
    "leads:write",
    "admin:read",
    "admin:write",
    "mail:send",
    "subscribers:write",
    "stats:read",
    "metrics:read",
    "mcp",
]

SCOPES: Mapping[Scope, str] = {
    "posts:read": sentence("read the published posts, as everybody can on the site"),
    "posts:draft": sentence("read drafts and write drafts, which you publish or bin"),
    "posts:publish": sentence("publish, change and withdraw posts in your name"),
    "leads:read": sentence("read all enquiries: names, addresses, messages"),
    "leads:write": sentence("send enquiries without being checked for spam"),
    "admin:read": sentence(
        "read all enquiries with your notes, the mail log and suppressed addresses"
    ),
    "admin:write": sentence("change and delete enquiries, the mail log and suppressed addresses"),
    "mail:send": sentence("answer enquiries by mail, in the name of the site"),
    "subscribers:write": sentence("ask addresses by mail whether they want the newsletter"),
    "stats:read": sentence("read how many people and programs read the site, without names"),
    "metrics:read": sentence("read figures of the service, without names"),
    "mcp": sentence("call the MCP endpoint, which gives access to nothing by itself"),
}
"""Each scope, and its permission as the end of a sentence that begins "lets its holder"."""
assert tuple(SCOPES) == get_args(Scope)  # noqa: S101  the type repeats the keys

CREDENTIAL_SCOPES: Mapping[SecretKind, tuple[Scope, ...]] = {
    "api_key": tuple(scope for scope in SCOPES if scope != "mcp"),
    "access_token": (
        "posts:read",
        "posts:draft",
        "posts:publish",
        "leads:read",
        "leads:write",
        "admin:read",
        "stats:read",
        "mcp",
    ),
}
"""The scopes that have an effect on each type of credential: keys for REST, tokens for MCP."""

DEFAULT_SCOPES: tuple[Scope, ...] = ("posts:read", "leads:read", "leads:write")
"""The default scopes of a key that the operator issues: the public, non-administrative API."""

HARMLESS_SCOPES: tuple[Scope, ...] = ("posts:read", "mcp")
"""The scopes that an unknown client gets unless a person grants more: they open public data."""

CONSENT_SCOPES: tuple[Scope, ...] = (*HARMLESS_SCOPES, "posts:draft")
"""The scopes that are ticked beforehand on the consent page: a draft waits for the owner."""

UNVETTED_SCOPES: tuple[Scope, ...] = (*DEFAULT_SCOPES, "mcp")
"""The scopes of a client that the operator did not register, unless it asks for others."""

GRANTABLE_SCOPES: tuple[Scope, ...] = (*UNVETTED_SCOPES, "posts:draft")
"""The most that a person can be asked to grant to such a client: it never publishes."""

ENQUIRY_SCOPES: frozenset[Scope] = frozenset({"leads:read", "admin:read", "admin:write"})
"""The scopes that show enquiries: `admin:write` returns the rows that it changes."""

PUBLISH_WITH_ENQUIRIES = "publish-with-enquiries"
"""The word that a person adds to the scopes of a credential that publishes and reads enquiries."""
WHY_TOGETHER = sentence(
    "publish and read enquiries at once: an enquiry is a stranger's text, which an agent reads: it "
    "may tell the agent what to publish"
)


def describe_choices(names: Collection[str], texts: Mapping[Scope, str]) -> dict[str, str]:
    """Return the text of each scope that a person can tick, and of the word that they may need."""
    word = {PUBLISH_WITH_ENQUIRIES: WHY_TOGETHER} if publishes_with_enquiries(names) else {}
    return {name: text for name, text in texts.items() if name in names} | word


def publishes_with_enquiries(scopes: Collection[str]) -> bool:
    """Return whether a credential with these scopes publishes, and reads what strangers wrote."""
    return "posts:publish" in scopes and not ENQUIRY_SCOPES.isdisjoint(scopes)


def add_implied(names: Iterable[str]) -> frozenset[str]:
    """Return scopes with those that they imply: who may publish may write drafts."""
    scopes = frozenset(names)
    return scopes | {"posts:draft"} if "posts:publish" in scopes else scopes
