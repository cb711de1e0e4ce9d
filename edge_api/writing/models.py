"""Bodies of requests to write, and of their answers."""

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, Field

from edge_api.schema.writing import (
    MAX_PICTURE_BYTES,
    MAX_TEXT_BYTES,
    Finding,
    Source,
    SourceSummary,
)

_Slug = Annotated[str, Field(max_length=200)]  # the watcher says in words what is wrong with one
_Markdown = Annotated[
    str,
    Field(
        max_length=MAX_TEXT_BYTES,
        description="The whole Markdown file. It begins with front matter (`title`, `tags`, "
        "`description`), or with a heading that becomes the title.",
        examples=["# Two winters\n\nThe store has stood for two winters.\n"],
    ),
]


class Text(BaseModel, extra="forbid"):
    """A text to check."""

    markdown: _Markdown
    slug: Annotated[
        _Slug | None, Field(description="The post that it is a version of, if there is one.")
    ] = None


class Draft(BaseModel, extra="forbid"):
    """A draft to store."""

    markdown: _Markdown
    slug: Annotated[
        _Slug | None,
        Field(description="Its name in the address; without it, made of the title."),
    ] = None


class Picture(BaseModel, extra="forbid"):
    """A picture to add."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="The file's name.")]
    data: Annotated[
        str,
        Field(
            max_length=MAX_PICTURE_BYTES * 4 // 3 + 4,
            description="A JPEG, PNG, GIF or WebP of at most 20 MB, in base64.",
        ),
    ]


class Publication(BaseModel, extra="forbid"):
    """When to publish."""

    at: Annotated[
        AwareDatetime | None, Field(description="A later instant (RFC 3339); without it, now.")
    ] = None


class Findings(BaseModel, extra="forbid"):
    """Defects of a text."""

    findings: Annotated[list[Finding], Field(description="Sorted by line; empty if all is well.")]


class SourceAnswer(Findings):
    """A source, with what was found in it."""

    source: Annotated[Source, Field(description="As it is stored now.")]


class Sources(BaseModel, extra="forbid"):
    """Sources that are not simply published."""

    sources: Annotated[
        list[SourceSummary],
        Field(description="Drafts by credentials, then other drafts and scheduled posts."),
    ]


class StoredPicture(BaseModel, extra="forbid"):
    """A picture that was stored."""

    path: Annotated[str, Field(description="How a text names it.", examples=["/images/store.jpg"])]
