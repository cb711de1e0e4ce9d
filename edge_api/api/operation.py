"""What an operation is: one declaration that routes, checks, documents and describes it.

An operation that is not declared is not served. It never sees an HTTP message: what reaches it is
an `Ask` of checked values, what leaves it is a `Reply`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter

from edge_api.api.reply import JSON, Reply
from edge_api.api.service import Service
from edge_api.api.tool import Tool
from edge_api.domain.actor import Actor
from edge_api.schema.paths import Door
from edge_api.schema.problems import Code
from edge_api.schema.scopes import Scope

Schema = Mapping[str, Any]
"""A JSON Schema (2020-12), as OpenAPI 3.1 takes it."""
Method = Literal["GET", "POST", "PATCH", "DELETE"]
Dialect = Literal["plain", "postgrest", "oauth", "jsonrpc", "page"]
"""`plain`: one member, `error`. `postgrest`: its members beside it. `oauth`: RFC 6749, 5.2.
`jsonrpc`: JSON-RPC 2.0, section 5.1. `page`: to a person at a browser, in the look of the site."""

BODY_MOST = 64 * 1024
"""Bytes of a body unless an operation says otherwise."""


@dataclass(slots=True)
class Ask:
    """One request, as far as an operation may know it.

    Not frozen, like Reply: one is made for each request, and freezing costs as much as making it.
    """

    actor: Actor | None
    """`None` where no credential was sent and none is needed."""
    address: str
    """The client's network address, as rate limits count it: an IPv4 address or an IPv6 /64.

    Empty where nothing is counted by it: with a credential, and without a limit.
    """
    path: Mapping[str, str] = field(default_factory=dict)
    query: Any = None
    """An instance of the operation's query model."""
    pairs: Sequence[tuple[str, str]] = ()
    """Every query parameter, decoded, in order; for operations whose names are columns."""
    body: Any = None
    """What the operation's body adapter made of the JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Request headers; look up by any case."""
    door: Door = "rest"
    """By which door it came: as a request of its own, or as a call of an MCP tool."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that no query model declares: in the path, in a header, or named by a column."""

    name: str
    place: Literal["path", "query", "header"]
    schema: Schema
    sentence: str
    required: bool = False
    example: Any = None
    component: str = ""
    """Its name among the components of the OpenAPI document; empty where it is used once."""


@dataclass(frozen=True, slots=True)
class Body:
    """The body an operation takes."""

    check: TypeAdapter[Any]
    """Makes the value of `Ask.body` of the JSON, or of a form's members: a text for each name, or
    a list of texts where it stands more than once. Its faults become Problem `invalid`."""
    schema: Schema
    examples: Mapping[str, Any] = field(default_factory=dict)
    most: int = BODY_MOST
    """Bytes; more is Problem `too_large`."""
    media_type: Literal["application/json", "application/x-www-form-urlencoded"] = JSON
    media_type_needed: bool = True
    """Whether a missing Content-Type is refused; another type always is."""
    vouch: Callable[[Service, Mapping[str, str], bytes], None] | None = None
    """Takes the headers and the bytes as they came, and raises Problem unless they show who sent
    them: for a body that is signed, which nobody reads before."""


@dataclass(frozen=True, slots=True)
class Success:
    """One way in which an operation succeeds."""

    status: int
    sentence: str
    schema: Schema | None = None
    """Of the JSON body; `None` where there is none."""
    example: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header name to a sentence about it."""
    media_types: tuple[str, ...] = (JSON,)
    links: Mapping[str, Any] = field(default_factory=dict)
    """OpenAPI links to operations that take something of this answer."""


ETAG: Final = MappingProxyType({"ETag": "Validator of this answer; send it as If-None-Match."})
UNCHANGED: Final = Success(304, "Not modified since the validator that was sent", headers=ETAG)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that the service does."""

    name: str
    """The `operationId`: lower case with underscores."""
    method: Method
    path: str
    """From the root of the origin; a variable part in braces."""
    summary: str
    do: Callable[[Service, Ask], Awaitable[Reply]]
    successes: tuple[Success, ...]
    description: str = ""
    tag: str = "utility"
    credential: Literal["none", "optional", "required"] = "none"
    """`optional`: one that is sent must be valid and have the scope; sending none is fine."""
    scope: Scope | None = None
    limit: str = ""
    """The rate limit that each call without a credential counts against; see `domain.limits`."""
    success_limit: str = ""
    """The one that each success counts against beside it."""
    parameters: tuple[Parameter, ...] = ()
    query: type[BaseModel] | None = None
    body: Body | None = None
    problems: tuple[Code, ...] = ()
    """Beyond those that credential, limit and body bring by themselves."""
    hands_out_secrets: bool = False
    """Whether an answer has a secret beside what the client sent: it is never compressed, since its
    length would tell of the secret (BREACH)."""
    ends_with_client: bool = False
    """Whether it stops when its client goes away: for what costs much and changes nothing."""
    dialect: Dialect = "plain"
    """In which words errors are told."""
    check_names: Callable[[Iterable[str]], None] | None = None
    """Takes the names of the query's parameters before the body is read, and raises Problem for
    one that the operation does not take. `None`: unknown parameters are ignored."""
    admit: Callable[[Actor], None] | None = None
    """A check of the actor before the scope is looked at; raises Problem."""
    door: Door = "rest"
    """Which credentials it takes: at MCP's door, access tokens only."""
    tools: tuple[Tool, ...] = ()
    """What the MCP endpoint makes of it."""

    @property
    def limits(self) -> tuple[str, ...]:
        """The names of the rate limits that hold for a caller without a credential."""
        return tuple(filter(None, (self.success_limit, self.limit)))

    @property
    def is_page(self) -> bool:
        """Tell whether it is for browsers alone: no script of another origin may call it."""
        return self.dialect == "page"
