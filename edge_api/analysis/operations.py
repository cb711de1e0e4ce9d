"""The operation that analyses a document, as text or by its address."""

import re
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from edge_api.analysis.analyst import Analyst, RelatedEntry
from edge_api.analysis.document import FORMATS, DocumentFormat, Heading
from edge_api.analysis.metrics import Keyword
from edge_api.analysis.report import Grade, Job, Signal, SuggestionEntry
from edge_api.db.types import whole_float_to_int
from edge_api.operation.model import (
    AnyOperation,
    Body,
    Operation,
    OperationRequest,
    SuccessResponse,
    Tool,
    ToolHints,
)
from edge_api.operation.service import OperationResult, Service
from edge_api.schema.paths import PREFIX

PATH: Final = f"{PREFIX}/analyze"
MAX_BODY: Final = 128 * 1024  # bytes: 100,000 characters, most of them ASCII
MAX_CONTENT: Final = 100_000  # characters
MAX_URL_LENGTH: Final = 2048
LIMIT: Final = "analyze"

_URL: Final = r"[Hh][Tt][Tt][Pp][Ss]?://[!-~]+"  # a scheme has no case (RFC 3986, section 3.1)
_LANGUAGE: Final = r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}"
_INPUTS: Final = ("text", "markdown", "html", "url")


def _matches(pattern: str, message: str) -> AfterValidator:
    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(message)
        return text

    return AfterValidator(check)


_IS_URL: Final = _matches(
    _URL,
    "must be an http or https address in ASCII, its host in the xn-- form and the rest "
    "percent-encoded",
)
_IS_LANGUAGE: Final = _matches(_LANGUAGE, "must be a language tag such as en or de-CH (BCP 47)")


def _text(description: str, *, max_length: int = MAX_CONTENT, pattern: str = "") -> Any:
    """Return the schema of an optional member that must not be empty."""
    shape = {"pattern": f"^{pattern}$"} if pattern else {}
    bounds = {"type": "string", "minLength": 1, "maxLength": max_length}
    return WithJsonSchema({**bounds, **shape, "description": description})


Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT, default_factory=str)]
_WHOLE: Final = BeforeValidator(whole_float_to_int)


class AnalyzeInput(BaseModel):
    """A document, and what is wanted to know of it."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [name]} for name in _INPUTS]}
    )

    text: Annotated[Content, _text("Plain text.")]
    markdown: Annotated[Content, _text("Markdown (CommonMark, with tables).")]
    html: Annotated[Content, _text("HTML, a whole page or a fragment.")]
    url: Annotated[
        str,
        Field(min_length=1, max_length=MAX_URL_LENGTH, default_factory=str),
        _IS_URL,
        _text(
            "An address to read the document at; which ones are allowed is the operator's choice.",
            max_length=MAX_URL_LENGTH,
            pattern=_URL,
        ),
    ]
    language: Annotated[
        str,
        Field(min_length=2, max_length=35, default_factory=str),
        _IS_LANGUAGE,
        _text(
            "The language as a BCP 47 tag; without it, as the page says, or guessed.",
            max_length=35,
            pattern=_LANGUAGE,
        ),
    ]
    keywords: Annotated[
        int, Field(strict=True, ge=0, le=20, description="How many keywords to name."), _WHOLE
    ] = 10
    related: Annotated[
        int, Field(strict=True, ge=0, le=10, description="How many related posts to name."), _WHOLE
    ] = 5

    @model_validator(mode="after")
    def check_inputs(self) -> "AnalyzeInput":
        """Require exactly one of the four."""
        given = [name for name in _INPUTS if name in self.model_fields_set]
        if len(given) != 1:
            named = " and ".join(given) or "none"
            raise ValueError(f"needs exactly one of {', '.join(_INPUTS)}; it has {named}")
        return self


class Examined(BaseModel):
    """What was analysed."""

    kind: DocumentFormat
    characters: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(description="Of the document in UTF-8, in hexadecimal.")]
    url: Annotated[
        str | None, Field(description="Where it stands, after redirects, without a fragment.")
    ]


class Measures(BaseModel):
    """How much there is of the text, and how hard it is to read; code does not count."""

    words: int
    sentences: int
    paragraphs: int
    reading_minutes: Annotated[int, Field(ge=1, description="By the rule that posts have.")]
    avg_sentence_words: float
    lix: Annotated[
        float | None,
        Field(
            description="Below 40 easy, from 60 on hard; "
            "for languages that put spaces between words."
        ),
    ]
    flesch_reading_ease: Annotated[
        float | None, Field(description="From 60 on easy, below 30 hard; English and German only.")
    ]
    language: Annotated[str, Field(description="A BCP 47 tag; `und` where it is unknown.")]


class LinkCounts(BaseModel):
    """Links."""

    total: int
    external: Annotated[int, Field(description="To another host.")]
    without_text: int


class ImageCounts(BaseModel):
    """Images."""

    total: int
    without_alt: int


class Structure(BaseModel):
    """What the document is made of."""

    title: str | None
    description: str | None
    headings: Annotated[list[Heading], Field(description="The first 100.")]
    links: LinkCounts
    images: ImageCounts
    json_ld_types: list[str]


class SignalEntries(BaseModel):
    """Every signal; one that has nothing to look at is skipped, and does not count."""

    semantic_html: Signal
    structured_data: Signal
    citability: Signal
    readability: Signal
    llms_txt: Signal
    protocol_discovery: Signal


class Analysis(BaseModel):
    """The report on a document."""

    input: Examined
    score: Annotated[int, Field(ge=0, le=100)]
    grade: Grade
    summary: str
    metrics: Measures
    structure: Structure
    keywords: list[Keyword]
    related: list[RelatedEntry]
    signals: SignalEntries
    suggestions: Annotated[
        list[SuggestionEntry], Field(description="What gains most stands first.")
    ]


async def analyze(
    service: Service, request: OperationRequest[None, AnalyzeInput]
) -> OperationResult:
    """Analyse a document; tool calls are rate-limited here, REST requests by the endpoint."""
    if request.actor is not None:
        await service.limiter.hit(LIMIT, request.actor.limit_key)
    given = request.body
    kind = next((kind for kind in FORMATS if kind in given.model_fields_set), None)
    job = Job(kind, getattr(given, kind)) if kind else given.url
    language = given.language or None
    report = await service[Analyst].analyze(job, language, given.keywords, given.related)
    return OperationResult(report)


_ABOUT = f"""\
Exactly one of `text`, `markdown`, `html` (1 to {MAX_CONTENT:,} characters) and `url`. The same
document always gets the same report, as long as the journal stays as it is; nothing of it is kept
or logged. Open without a credential, and rate-limited. A body has at most {MAX_BODY // 1024} KiB.
A document that takes longer than five seconds, the wait for others included, is 503, and so is one
that comes while too many others wait."""

_TOOL = Tool(
    name="analyze",
    title="Analyse a document",
    description="Measure a text, Markdown or HTML document, or a page of this site by its url: "
    "readability, structure, keywords, related posts of the journal, and what to fix so that "
    "people and language models can read and cite it. Give exactly one of text, markdown, html "
    "and url.",
    hints=ToolHints(read_only=True, destructive=False, idempotent=True, open_world=True),
)

_SKIPPED: Final[dict[str, Any]] = {
    "score": None,
    "status": "skipped",
    "summary": "Nothing here that could be looked at.",
    "findings": [],
}
_EXAMPLE: Final = {
    "input": {
        "kind": "markdown",
        "characters": 90,
        "sha256": "5fc7726a6063e231ca41f8c8d3a676faaa1b8bad281c5e882573597c31af927f",
        "url": None,
    },
    "score": 82,
    "grade": "B",
    "summary": "14 words in en, 1 minute to read: 82 of 100, grade B. "
    "Most is to be gained in citability.",
    "metrics": {
        "words": 14,
        "sentences": 4,
        "paragraphs": 1,
        "reading_minutes": 1,
        "avg_sentence_words": 3.5,
        "lix": 39.2,
        "flesch_reading_ease": 106.6,
        "language": "en",
    },
    "structure": {
        "title": "Fore-edges",
        "description": None,
        "headings": [{"level": 1, "text": "Fore-edges"}],
        "links": {"total": 0, "external": 0, "without_text": 0},
        "images": {"total": 0, "without_alt": 0},
        "json_ld_types": [],
    },
    "keywords": [
        {"term": "fore-edges", "count": 1, "score": 1.0},
        {"term": "binders", "count": 1, "score": 0.5},
    ],
    "related": [],
    "signals": {
        "semantic_html": {
            "score": 100,
            "status": "pass",
            "summary": "2 of 2 checks pass.",
            "findings": [],
        },
        "structured_data": _SKIPPED,
        "citability": {
            "score": 50,
            "status": "warn",
            "summary": "1 of 2 checks pass.",
            "findings": ["the text has 14 words"],
        },
        "readability": {
            "score": 100,
            "status": "pass",
            "summary": "2 of 2 checks pass.",
            "findings": [],
        },
        "llms_txt": _SKIPPED,
        "protocol_discovery": _SKIPPED,
    },
    "suggestions": [
        {
            "code": "substance",
            "severity": "fail",
            "message": "Say more: from 300 words on, an answer can quote a text in its context.",
        }
    ],
}

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="analyze",
        method="POST",
        path=PATH,
        summary="Analyse a document: measures, structure, keywords, and what to fix",
        description=_ABOUT,
        tag="analyze",
        limit=LIMIT,
        handler=analyze,
        body=Body(
            TypeAdapter(AnalyzeInput),
            AnalyzeInput.model_json_schema(),
            {
                "markdown": {
                    "markdown": "# Fore-edges\n\nBinders painted on the fore-edge. Fan the pages."
                    " The picture comes and goes.",
                    "keywords": 2,
                    "related": 0,
                },
                "text": {"text": "One page, fanned a little. Then the picture shows."},
                "html": {"html": "<h1>Fanned</h1><p>The picture shows.", "language": "en"},
            },
            max_bytes=MAX_BODY,
        ),
        responses=(
            SuccessResponse(
                200, "The report", TypeAdapter(Analysis).json_schema(mode="serialization"), _EXAMPLE
            ),
        ),
        problems=("forbidden", "fetch_failed", "unavailable"),
        tools=(_TOOL,),
    ),
)
