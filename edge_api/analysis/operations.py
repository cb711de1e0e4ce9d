"""The operation that analyses a document, as text or by its address."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_args

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    model_validator,
)

from edge_api.analysis.analyst import Analyst, RelatedEntry, read_origin
from edge_api.analysis.document import DocumentFormat
from edge_api.analysis.metrics import Keyword, Measures
from edge_api.analysis.report import (
    Examined,
    Grade,
    Job,
    Signal,
    Structure,
    SuggestionEntry,
    report,
)
from edge_api.db.problems import Problem
from edge_api.db.types import whole_float_to_int
from edge_api.operation.model import (
    AnyOperation,
    Body,
    Operation,
    OperationRequest,
    OperationResult,
    Service,
    SuccessResponse,
    Tool,
    ToolHints,
)
from edge_api.schema.credentials import publishes_with_enquiries
from edge_api.schema.paths import REST_PREFIX

PATH: Final = f"{REST_PREFIX}/analyze"
MAX_BODY: Final = 128 * 1024  # bytes: 100,000 characters, most of them ASCII
MAX_CONTENT: Final = 100_000  # characters
LIMIT: Final = "analyze"

_URL: Final = r"[Hh][Tt][Tt][Pp][Ss]?://[!-~]+"  # schemes ignore case (RFC 3986, section 3.1)
_LANGUAGE: Final = r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}"
_INPUTS: Final = ("text", "markdown", "html", "url")


def _matches(pattern: str, message: str) -> AfterValidator:
    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(message)
        return text

    return AfterValidator(check)


Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT, default_factory=str)]
_WHOLE: Final = BeforeValidator(whole_float_to_int)


class AnalyzeInput(BaseModel):
    """A document, and what is wanted to know of it."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [name]} for name in _INPUTS]}
    )

    text: Annotated[Content, Field(description="Plain text.")]
    markdown: Annotated[Content, Field(description="Markdown (CommonMark, with tables).")]
    html: Annotated[Content, Field(description="HTML, a whole page or a fragment.")]
    url: Annotated[
        Content,
        Field(
            max_length=2048,
            description="An address to read the document at; which ones are allowed is the "
            "operator's choice.",
            json_schema_extra={"pattern": f"^{_URL}$"},
        ),
        _matches(
            _URL,
            "must be an http or https address in ASCII, its host in the xn-- form and the rest "
            "percent-encoded",
        ),
    ]
    language: Annotated[
        Content,
        Field(
            min_length=2,
            max_length=35,
            description="The language as a BCP 47 tag; without it, as the page says, or guessed.",
            json_schema_extra={"pattern": f"^{_LANGUAGE}$"},
        ),
        _matches(_LANGUAGE, "must be a language tag such as en or de-CH (BCP 47)"),
    ]
    keywords: Annotated[
        int, Field(strict=True, ge=0, le=20, description="How many keywords to name."), _WHOLE
    ] = 10
    related: Annotated[
        int, Field(strict=True, ge=0, le=10, description="How many related posts to name."), _WHOLE
    ] = 5

    @model_validator(mode="after")
    def check_inputs(self) -> "AnalyzeInput":
        """Require exactly one of `text`, `markdown`, `html` and `url`."""
        given = [name for name in _INPUTS if name in self.model_fields_set]
        if len(given) != 1:
            named = " and ".join(given) or "none"
            raise ValueError(f"needs exactly one of {', '.join(_INPUTS)}; it has {named}")
        return self


class SignalEntries(BaseModel):
    """Every signal; one that has nothing to look at is skipped, and does not count."""

    semantic_html: Annotated[Signal, Field(description="Elements for what they mean.")]
    structured_data: Annotated[Signal, Field(description="JSON-LD.")]
    citability: Annotated[Signal, Field(description="What can be quoted.")]
    readability: Annotated[Signal, Field(description="How easy it reads.")]
    llms_txt: Annotated[Signal, Field(description="llms.txt.")]
    protocol_discovery: Annotated[Signal, Field(description="What programs find.")]


@dataclass(frozen=True)
class Analysis:
    """The report on a document."""

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True)

    input: Annotated[Examined, Field(description="The document.")]
    score: Annotated[int, Field(ge=0, le=100, description="Over all signals.")]
    grade: Annotated[Grade, Field(description="The score as a letter.")]
    summary: Annotated[str, Field(description="The report in brief.")]
    metrics: Annotated[Measures, Field(description="Length and readability.")]
    structure: Annotated[Structure, Field(description="Its parts.")]
    keywords: Annotated[list[Keyword], Field(description="Best first.")]
    related: Annotated[list[RelatedEntry], Field(description="Nearest posts first.")]
    signals: Annotated[SignalEntries, Field(description="Each side of it.")]
    suggestions: Annotated[
        list[SuggestionEntry], Field(description="What gains most stands first.")
    ]


async def analyze(
    service: Service, request: OperationRequest[None, AnalyzeInput]
) -> OperationResult:
    """Analyse a document.

    Calls with a credential are rate-limited here, others by the endpoint. Raises Problem, such as
    `forbidden` for a foreign address from a credential that publishes and reads enquiries.
    """
    if request.actor is not None:
        await service.limiter.hit(LIMIT, request.actor.limit_key)
    given = request.body
    kind = next((kind for kind in get_args(DocumentFormat) if kind in given.model_fields_set), None)
    is_own = kind or read_origin(given.url) == read_origin(service.settings.site_url)
    if not is_own and request.actor and publishes_with_enquiries(request.actor.scopes):
        # An enquiry may tell an agent to send what it has read to such an address.
        raise Problem(
            "forbidden",
            "url: a credential that publishes and reads enquiries can analyze pages of this site "
            "alone; send the document itself, or use another credential",
        )
    job = Job(kind, getattr(given, kind)) if kind else given.url
    return OperationResult(
        await service[Analyst].analyze(job, given.language or None, given.keywords, given.related)
    )


_ABOUT = f"""\
Exactly one of `text`, `markdown`, `html` (1 to {MAX_CONTENT:,} characters) and `url`. The same
document always gets the same report, as long as the journal stays as it is; nothing of it is kept
or logged. Open without a credential, and rate-limited. A credential that publishes and reads
enquiries can name pages of this site alone. A body has at most {MAX_BODY // 1024} KiB.
A document that takes longer than five seconds, the wait for others included, is 503, and so is one
that comes while too many others wait."""

_REQUEST: Final = {
    "markdown": "# Fore-edges\n\nBinders painted on the fore-edge. Fan the pages."
    " The picture comes and goes.",
    "keywords": 2,
    "related": 0,
}


def _example() -> dict[str, Any]:
    """Return the answer to the example request."""
    answer = report(Job("markdown", str(_REQUEST["markdown"]), terms=2))
    return {**orjson.loads(orjson.dumps(answer)), "related": []}


OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="analyze",
        method="POST",
        path=PATH,
        summary="Analyse a document: measures, structure, keywords, and what to fix",
        description=_ABOUT,
        tag="analyze",
        credential="optional",
        limit=LIMIT,
        handler=analyze,
        body=Body(
            TypeAdapter(AnalyzeInput),
            AnalyzeInput.model_json_schema(),
            {
                "markdown": _REQUEST,
                "text": {"text": "One page, fanned a little. Then the picture shows."},
                "html": {"html": "<h1>Fanned</h1><p>The picture shows.", "language": "en"},
            },
            max_bytes=MAX_BODY,
        ),
        responses=(
            SuccessResponse(
                200,
                "The report",
                # Made on request, since reading its docstrings from the source takes 0.1 s.
                lambda: TypeAdapter(Analysis).json_schema(mode="serialization"),
                _example,
            ),
        ),
        problems=("forbidden", "fetch_failed", "unavailable"),
        tools=(
            Tool(
                name="analyze",
                title="Analyse a document",
                description="Measure a text, Markdown or HTML document, or a page of this site by "
                "its url: readability, structure, keywords, related posts of the journal, and what "
                "to fix so that people and language models can read and cite it. Give exactly one "
                "of text, markdown, html and url.",
                hints=ToolHints(
                    read_only=True, destructive=False, idempotent=True, open_world=True
                ),
            ),
        ),
    ),
)
