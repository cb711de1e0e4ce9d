"""The posts index, which a build hands to the edge, and what a search in it asks and finds.

The build checks every record against these models before it writes; the edge checks again when
it opens a build. Nobody else declares these fields.
"""

from typing import Final, NamedTuple

from pydantic import AnyHttpUrl, AwareDatetime, BaseModel, ConfigDict, Field

WORDS_LONGEST: Final = 1000
"""Characters of what somebody looks for; the rest is not looked at."""


class SearchText(NamedTuple):
    """The text of a post, free of markup."""

    slug: str
    title: str
    description: str
    tags: str
    prose: str
    code: str
    """What stands in blocks of code: looked through like prose, but shown only for want of that."""


class TextSegment(NamedTuple):
    """A piece of a text, which is a word that was looked for, or lies between two such."""

    text: str
    is_match: bool


Segments = tuple[TextSegment, ...]


class Finding(NamedTuple):
    """A post that was found."""

    slug: str
    title: Segments
    snippet: Segments
    """The place in the text that shows best why; the description where the text has none."""


class Findings(NamedTuple):
    """A part of what was found, best first."""

    total: int
    """How many posts have all the words."""
    findings: tuple[Finding, ...]
    """Where few posts have all the words, those that come nearest follow."""
    suggestion: str | None = None
    """What was asked in a more frequent spelling, where hardly any post has the given one."""


INDEX_FORMAT = 2
"""Raised whenever a reader of the older format could misread the file."""

INDEX_FILE = "posts.json"
INDEX_OPENING, INDEX_MIDDLE, INDEX_CLOSING = b'{"head":', b',"posts":[\n', b"]}\n"
"""What stands before the head, between it and the posts (a line each, with a comma), and last."""
SITE_FOLDER = "site"
BUILD_LOCK = ".lock"
"""What a build leaves in BUILD_DIR where it was made, and not where a build was copied to."""
CURRENT_LINK = "current"
"""`BUILD_DIR/current` points at `BUILD_DIR/<build id>/`: site, index, and the edge's templates."""


class PostSummary(BaseModel):
    """A post as lists carry it; it serves both published field sets at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slug: str = Field(min_length=1, max_length=200, pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str = Field(min_length=1, description="Plain text.")
    description: str = Field(description="One or two sentences of plain text.")
    excerpt: str = Field(description="The description, unless the post sets its own.")
    publishedAt: AwareDatetime = Field(description="UTC instant of publication (RFC 3339).")
    published_at: AwareDatetime = Field(description="The same instant as `publishedAt`.")
    updatedAt: AwareDatetime = Field(description="UTC instant of the last stated revision.")
    readingMinutes: int = Field(ge=1, description="Whole minutes that the post takes to read.")
    tags: tuple[str, ...] = Field(description="Tag names, in the author's order.")
    url: AnyHttpUrl = Field(description="Where a person reads the post.")


class PostRecord(PostSummary):
    """A whole post: the summary with its Markdown and its sanitised HTML."""

    model_config = ConfigDict(title="Post")

    content: str = Field(description="The Markdown as written, without front matter.")
    content_html: str = Field(description="The same as HTML, reduced to an allow-list.")


class IndexHead(BaseModel):
    """The first line of the index: which build it is and what it was made for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = Field(ge=1)
    build_id: str = Field(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9-]+$")
    site_url: str
    site_title: str
    site_description: str
    built_for: AwareDatetime = Field(description="Posts published after this instant are absent.")
    count: int = Field(ge=0, description="How many posts follow.")
    moved: dict[str, str] = Field(
        default_factory=dict, description="Present paths of pages by their former ones."
    )
    renamed: dict[str, str] = Field(
        default_factory=dict, description="Present slugs of posts by their former ones."
    )
    is_bare: bool = Field(default=False, description="Whether pages answer without `.html` too.")
    post_path: str = Field("/journal/{slug}/", description="Form of the paths of posts.")
    tag_path: str = Field("/tags/{slug}/", description="Form of the paths of tags.")
