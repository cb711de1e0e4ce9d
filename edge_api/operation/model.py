"""Operations: their declarations, their requests and results, and the parts of the service.

Each is routed, checked, documented and made a tool from its declaration. Its handler gets no HTTP
message, but an `OperationRequest`, and returns an `OperationResult`.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from edge_api.auth.actor import Actor, Clock
from edge_api.auth.rate_limits import Limiter
from edge_api.db.problems import Code, Problem, format_validation_error
from edge_api.db.query import Store
from edge_api.schema.credentials import Scope
from edge_api.schema.page_templates import Form, PageName
from edge_api.schema.paths import Audience
from edge_api.settings import Settings

if TYPE_CHECKING:  # commands that check no credential do without joserfc
    from edge_api.auth.credentials import Authenticator
    from edge_api.operation.reference.pages import ReferencePage


JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A body that many responses share, with a strong ETag (RFC 9110, 8.8.3)."""

    body: bytes
    media_type: str = JSON
    cache_control: str = "public, max-age=300"
    headers: tuple[tuple[str, str], ...] = ()
    is_cached: bool = True
    """Whether responses with this object are cached: later requests get the same object."""
    varies: tuple[str, ...] = ()
    """Request headers that the representation depends on, for `Vary`."""
    etag: str = field(init=False)
    """Quoted; made from the body."""

    def __post_init__(self) -> None:
        """Compute the ETag."""
        object.__setattr__(self, "etag", f'"{sha256(self.body).hexdigest()[:24]}"')


FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
HTML: Final = "text/html; charset=utf-8"
MARKDOWN: Final = "text/markdown; charset=utf-8"

REVALIDATE: Final = "public, no-cache"
"""The Cache-Control of content that caches revalidate each time, so that changes show at once."""
NEGOTIATED: Final = "private, no-store"
"""The Cache-Control of content that depends on `Accept`, since many caches ignore `Vary`."""
NO_STORE = "no-store"
"""The Cache-Control of leads, administrative rows and tokens (RFC 9111, section 5.2.2.5)."""
NOINDEX: Final = {"X-Robots-Tag": "noindex, nofollow"}


@dataclass(slots=True)
class OperationResult:
    """The result of an operation: a Document, bytes, a generator of them, or a value for JSON."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON
    cache_control: str = NO_STORE


@dataclass(slots=True)
class HtmlResult(OperationResult):
    """A page for a person, or a redirect of the browser."""

    media_type: str = HTML
    is_private: bool = False
    """Whether it is for the owner alone: compressed, and its address sent to no other site."""
    form_action: tuple[str, ...] = ()
    """Allowed targets of the page's form besides its own origin; browsers apply it to redirects."""
    is_preview: bool = False
    """Whether it is a page of the site that is not published: its forms can be sent nowhere."""


def escape_markdown(text: str) -> str:
    """Return plain text escaped for Markdown."""
    return re.sub(r"([\\\[\]`*_<>#&|~])", r"\\\1", text)


@dataclass(frozen=True, slots=True)
class ApiDocuments:
    """The service's own documents, made from the declarations of its operations."""

    description: Document
    api_catalog: Document
    openapi: Callable[[str | None], Document]
    """Takes the slug of an existing post, for the examples."""
    reference: "Callable[[str | None], tuple[ReferencePage, ...]]"
    """The API reference for people; takes the same slug."""


class PageRenderer(Protocol):
    """Renders pages in the site's design for one request."""

    async def render(self, name: PageName, title: str, **values: Any) -> bytes:
        """Return a whole page. Raises Problem `unavailable` if the build has no template for it."""

    def translate(self, text: str) -> str:
        """Return a sentence in the language of the site; any other text as it is."""

    async def render_form(self, form: Form, **values: Any) -> bytes:
        """Return the contact page with one of its forms filled in. Raises as `render`."""


Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Service:
    """The dependencies of operations; `service[Leads]` is the part of that class."""

    settings: Settings
    clock: Clock
    store: Store
    authenticator: "Authenticator"
    """Checks credentials and their scopes."""
    limiter: Limiter
    documents: ApiDocuments
    pages: PageRenderer
    parts: Mapping[type[Any], Any]

    def __getitem__(self, kind: type[Part]) -> Part:
        """Return the part of exactly this class. Raises KeyError."""
        return cast("Part", self.parts[kind])


API_VERSION: Final = "1.0.0"
"""The version of the public API, which its OpenAPI document has."""
QueryModel = TypeVar("QueryModel")
"""The model of the query; `None` without one."""
BodyValue = TypeVar("BodyValue")
"""The type of the validated body; `None` without one."""
Model = TypeVar("Model", bound=BaseModel)
Json = dict[str, Any]


def output_schema(model: type[BaseModel]) -> Json:
    """Return the JSON Schema of a model's output."""
    return TypeAdapter(model).json_schema(mode="serialization")


def object_schema(members: Mapping[str, Any], *required: str, **more: Any) -> Json:
    """Return the JSON Schema of an object with these members; `more` are further keywords."""
    return {"type": "object", "required": list(required), "properties": {**members}, **more}


@dataclass(frozen=True, slots=True)
class ToolHints:
    """MCP's annotations of a tool; all four are always sent."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    """Whether it contacts other systems."""


READ_ONLY: Final = ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False)
ADDITIVE: Final = ToolHints(read_only=False, destructive=False, idempotent=False, open_world=False)


@dataclass(frozen=True, slots=True)
class HeaderArgument:
    """An argument of a tool that is a header in REST."""

    header: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """One operation or several as an MCP tool.

    `arguments` maps names of the tool's arguments to the operation's names; `None` offers all.
    """

    name: str
    """At most 128 letters, digits, underscores, hyphens and dots."""
    title: str
    description: str
    hints: ToolHints = READ_ONLY
    arguments: Mapping[str, str] | None = None
    defaults: Mapping[str, int | str] = field(default_factory=lambda: MappingProxyType({}))
    """Default values, by the operation's name of the argument."""
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    """Schemas in place of the operation's own, by the operation's name of the argument."""
    required: tuple[str, ...] = ()
    """Arguments that a tool requires though its operation does not, by the operation's name."""
    headers: Mapping[str, HeaderArgument] = field(default_factory=lambda: MappingProxyType({}))
    discriminator: str = ""
    """The argument that selects the operation, by the last segment of its path."""
    to_result: Callable[[Any], Any] = lambda answer: answer
    """Converts the answer's JSON to the result."""
    scope: Scope | None = None
    """The required scope if it differs from the operation's."""
    output: Mapping[str, Any] | None = None
    """The JSON Schema of the result; without it, that of the operation's first success."""


Schema = Mapping[str, Any]
"""A JSON Schema (2020-12), as OpenAPI 3.1 takes it."""
Method = Literal["GET", "POST", "PATCH", "DELETE"]
ErrorFormat = Literal["plain", "postgrest", "oauth", "jsonrpc", "writing", "page", "form"]
"""`plain`: one member, `error`. `postgrest`: PostgREST's members beside it. `oauth`: RFC 6749, 5.2.
`jsonrpc`: JSON-RPC 2.0, section 5.1. `writing`: `plain`, and `findings` about a text. `page`: an
HTML page in the look of the site. `form`: `plain` for a client that prefers JSON, else `page`;
errors in fields are shown in the form itself."""

MAX_BODY_BYTES = 64 * 1024  # bytes of a body unless an operation says otherwise


def component_ref(name: str, schema: Schema) -> Schema:
    """Return a reference to a component of this name, with its definition in `$defs`."""
    return {"$ref": f"#/$defs/{name}", "$defs": {name: schema}}


@dataclass(slots=True)
class OperationRequest(Generic[QueryModel, BodyValue]):
    """One request to an operation; not frozen, which would double its cost."""

    actor: Actor | None
    """The caller; `None` where no credential was sent and none is needed."""
    address: str
    """The client's IPv4 address or IPv6 /64 network; empty if no rate limit is by address."""
    path: Mapping[str, str]
    query: QueryModel
    """An instance of the operation's query model."""
    pairs: Sequence[tuple[str, str]]
    """Every query parameter, decoded, in order; for operations whose parameters are columns."""
    body: BodyValue
    """The body, validated by `Body.check`."""
    headers: Mapping[str, str]
    """Request headers; names may be in any case."""
    audience: Audience = "rest"
    """Whether it is a REST request or a call of an MCP tool."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that no query model declares: in the path, in a header, or named by a column."""

    name: str
    location: Literal["path", "query", "header"]
    schema: Schema
    description: str
    required: bool = False
    example: Any = None
    component: str = ""
    """The parameter's name among the components of the OpenAPI document; empty if used once."""


@dataclass(frozen=True, slots=True)
class Body(Generic[BodyValue]):
    """The body that an operation takes."""

    check: TypeAdapter[BodyValue]
    """Validates decoded JSON, or a decoded form, in which repeated fields are lists."""
    schema: Schema
    examples: Mapping[str, Any] = field(default_factory=dict)
    max_bytes: int = MAX_BODY_BYTES
    """The most bytes; more is Problem `too_large`."""
    media_type: Literal["application/json", "application/x-www-form-urlencoded"] = JSON
    requires_media_type: bool = True
    """Whether a missing Content-Type is refused; another type always is."""
    refuses_inexact_numbers: bool = False
    """Whether JSON with a number that cannot be stored exactly is refused."""
    verify_signature: Callable[[Service, Mapping[str, str], bytes], None] | None = None
    """Checks the signature of the bytes with the headers, before parsing; raises Problem."""
    limit_files: Callable[[Service, Mapping[str, str]], Awaitable[int]] | None = None
    """Returns, by the headers, the most bytes of a file in a multipart form; `None`: no files."""


@dataclass(frozen=True, slots=True)
class SuccessResponse:
    """One success response of an operation."""

    status: int
    description: str
    schema: Schema | Callable[[], Schema] | None = None
    """The schema of the JSON body, or a function that returns it when documents are made; `None`
    where there is no body."""
    example: Any = None
    """A value, or a function that returns it when documents are made."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """A sentence about each header, by its name."""
    media_types: tuple[str, ...] = (JSON,)
    links: Mapping[str, Any] = field(default_factory=dict)
    """OpenAPI links to operations that take something of this answer."""
    component: str = ""
    """The response's name among the components of the OpenAPI document; empty if used once."""


ETAG: Final = MappingProxyType({"ETag": "Validator of this answer; send it as If-None-Match."})
NOT_MODIFIED: Final = SuccessResponse(
    304, "Not modified since the validator that was sent", headers=ETAG, component="Unchanged"
)


def cacheable(description: str, schema: Schema, **more: Any) -> tuple[SuccessResponse, ...]:
    """Return the responses of a document with a validator: 200 and 304."""
    return SuccessResponse(200, description, schema, **more), NOT_MODIFIED


def page(status: int, description: str, *others: str) -> SuccessResponse:
    """Return the response with a page for people, or with a text of another media type."""
    types = (HTML.partition(";")[0], *others)
    return SuccessResponse(status, description, {"type": "string"}, media_types=types)


@dataclass(frozen=True, slots=True)
class Operation(Generic[QueryModel, BodyValue]):
    """The declaration of one operation of the service."""

    name: str
    """The `operationId`: lower case with underscores."""
    path: str
    """The path from the root of the origin, with variable parts in braces."""
    summary: str
    handler: Callable[
        [Service, OperationRequest[QueryModel, BodyValue]], Awaitable[OperationResult]
    ]
    responses: tuple[SuccessResponse, ...]
    method: Method = "GET"
    description: str = ""
    tag: str = "utility"
    credential: Literal["none", "optional", "required"] = "none"
    """`optional`: a credential may be left out; if one is sent, it must be valid with the scope."""
    scope: Scope | None = None
    limit: str = ""
    """The rate limit that each call without a credential counts against; see `auth.rate_limits`."""
    success_limit: str = ""
    """The rate limit that each success counts against, besides `limit`."""
    parameters: tuple[Parameter, ...] = ()
    query: type[QueryModel] | None = None
    body: Body[BodyValue] | None = None
    problems: tuple[Code, ...] = ()
    """Its problems besides those that its credential, limit and body can cause."""
    returns_secret: bool = False
    """Whether an answer has a secret, so that it must not be compressed (BREACH)."""
    cancel_on_disconnect: bool = False
    """Whether it is cancelled when its client disconnects: for expensive reads."""
    error_format: ErrorFormat = "plain"
    """The form of error answers."""
    check_query_names: Callable[[Iterable[str]], None] | None = None
    """Raises Problem for unknown query parameters; with `None` these are ignored."""
    check_sender: Callable[[Service, Mapping[str, str], str], None] | None = None
    """Checks the headers and the peer's address before the credential is read; raises Problem."""
    limits_by_address: bool = False
    """Whether the handler itself applies rate limits by the client's address."""
    check_actor: Callable[[Actor], None] | None = None
    """Checks the actor before its scope; raises Problem."""
    audience: Audience = "rest"
    """The API whose credentials it accepts: for MCP, access tokens only."""
    tools: tuple[Tool, ...] = ()
    """The MCP tools that call it."""

    @property
    def limits(self) -> tuple[str, ...]:
        """The names of the rate limits of a caller without a credential."""
        return tuple(filter(None, (self.success_limit, self.limit)))

    @property
    def is_page(self) -> bool:
        """Whether it is for browsers: no script of another origin may call it."""
        return self.error_format in ("page", "form")


AnyOperation: TypeAlias = Operation[Any, Any]


def authorise(
    operation: AnyOperation, access: "Authenticator", actor: Actor, audience: Audience = "rest"
) -> None:
    """Raise Problem unless the actor may call the operation."""
    if operation.check_actor is not None:
        operation.check_actor(actor)
    if operation.scope is not None:
        access.authorise(actor, operation.scope, audience)


def check_query(model: type[Model], given: Mapping[str, str]) -> Model:
    """Return the validated query. Raises Problem `invalid` that names the invalid parameter."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Problem("invalid", f"{first['loc'][0]}: {format_validation_error(first)}") from None


def check_body(check: TypeAdapter[Any], value: Any) -> Any:
    """Return the validated body. Raises Problem `invalid` that names the invalid member."""
    try:
        return check.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "body"
        raise Problem(
            "invalid", f"{where}: {format_validation_error(first)}", sqlstate="PGRST102"
        ) from None
