"""The posts index, which a build writes for the edge, and the results of a search in it.

The build checks every record against these models before it writes; the edge checks again when
it opens a build. No other module declares these fields.
"""

from pathlib import Path
from typing import Final, NamedTuple

from pydantic import AnyHttpUrl, AwareDatetime, BaseModel, ConfigDict, Field

MAX_QUERY_LENGTH: Final = 1000  # characters of a search query; the rest is ignored


class SearchText(NamedTuple):
    """The text of a post, free of markup."""

    slug: str
    title: str
    description: str
    tags: str
    prose: str
    code: str
    """The blocks of code: searched like prose, but shown only if no prose matches."""


class TextSegment(NamedTuple):
    """A part of a text: a matched word, or the text between two of them."""

    text: str
    is_match: bool


Segments = tuple[TextSegment, ...]


class SearchHit(NamedTuple):
    """A post that was found."""

    slug: str
    title: Segments
    snippet: Segments
    """The best matching part of the text; the description if there is none."""


class SearchHits(NamedTuple):
    """One page of search results, best first."""

    total: int
    """The number of posts with all the words."""
    hits: tuple[SearchHit, ...]
    """If few posts have all the words, those with some of them follow."""
    suggestion: str | None = None
    """The query in a more frequent spelling, if hardly any post has the given one."""


INDEX_FORMAT = 2  # raised whenever a reader of the older format could misread the file

INDEX_FILE = "posts.json"
HELD_FILE = "held.json"
"""A file of a build: a sentence for each content file whose present version is not shown.

A sentence names the content file, its first fault and the fix, and is for the owner alone.
"""
NEWSLETTER_FILE = "newsletter.json"
"""A file of a build: what the heads of posts say of the newsletter; absent if they say nothing."""
INDEX_START, INDEX_SEPARATOR, INDEX_END = b'{"head":', b',"posts":[\n', b"]}\n"
"""The text before the head, between head and posts (one a line, with commas), and at the end."""
SITE_FOLDER = "site"
BUILD_LOCK = ".lock"
"""A file in a BUILD_DIR where builds are made; where they are copied to, it is absent."""
CURRENT_LINK = "current"
PREVIOUS_LINK = "previous"
"""Links in BUILD_DIR to `<build id>/`: the build that is served, and the one served before it."""


def point_link(build_dir: Path, link: str, name: str) -> None:
    """Let a link in BUILD_DIR name a build, in one step. Raises OSError."""
    partial = build_dir / f".{link}"
    partial.unlink(missing_ok=True)
    partial.symlink_to(name)
    partial.replace(build_dir / link)


SLUG_PATTERN: Final = r"[^\x00-,.\/:-@\[-\^`{-}\x7f-\xa9][^\x00-,\/:-@\[-\^`{-}\x7f-\xa9]{0,199}"
"""The pattern of a slug: letters, digits and `-_.~`, without a dot at the start.

It lists the refused characters, since not all JSON Schema validators know a class of letters.
"""


class PostSummary(BaseModel):
    """A post as lists carry it; it serves both published field sets at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slug: str = Field(
        min_length=1, max_length=200, pattern=f"^{SLUG_PATTERN}$", description="In its URL."
    )
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
    """The first line of the index, which identifies and describes the build."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = Field(ge=1)
    build_id: str = Field(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9-]+$")
    site_url: str
    site_title: str
    site_description: str
    built_for: AwareDatetime = Field(description="Posts published after this instant are absent.")
    count: int = Field(ge=0, description="How many posts follow.")
    moved: dict[str, str] = Field(
        default_factory=dict,
        description="Present paths of pages by former ones, which may have a query.",
    )
    renamed: dict[str, str] = Field(
        default_factory=dict, description="Present slugs of posts by their former ones."
    )
    is_bare: bool = Field(default=False, description="Whether pages answer without `.html` too.")
    post_path: str = Field("/journal/{slug}/", description="Form of the paths of posts.")
    tag_path: str = Field("/tags/{slug}/", description="Form of the paths of tags.")


class NewsletterNotes(BaseModel):
    """What the heads of posts say of the newsletter."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    kept_out: tuple[str, ...] = Field(default=(), description="Slugs of posts that are not mailed.")
    hidden: tuple[PostRecord, ...] = Field(
        default=(), description="Posts in no list that are mailed."
    )
    renamed: dict[str, str] = Field(
        default_factory=dict, description="Present slugs of hidden posts by their former ones."
    )
    languages: dict[str, str] = Field(
        default_factory=dict, description="BCP 47 tags of posts in another language, by slug."
    )
