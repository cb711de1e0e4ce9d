"""`prompts/list` and `prompts/get`: what a person can start from, with the posts in it."""

from collections.abc import Mapping
from typing import Final

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
    TextResourceContents,
)

from edge_api.api.mcp.context import Context, actor_of, refuse, refuse_cursor
from edge_api.api.mcp.journal import Journal
from edge_api.api.mcp.resources import MARKDOWN, ResourceHandlers
from edge_api.api.tool import Json
from edge_api.domain.actor import Actor
from edge_api.schema.problems import Problem

DIGESTED: Final = 50
"""Posts that one digest is made of, the newest."""

SUMMARIZE: Final = Prompt(
    name="summarize_post",
    title="Summarize a post",
    description="Summarize one post of the journal: what it claims, on what grounds, for whom.",
    arguments=[
        PromptArgument(
            name="slug", description="The post's slug, as in its address.", required=True
        )
    ],
)
DIGEST: Final = Prompt(
    name="digest",
    title="Digest of recent posts",
    description="Say in a few paragraphs what the journal has published on a tag, or of late.",
    arguments=[
        PromptArgument(name="tag", description="Only posts with this tag.", required=False),
        PromptArgument(
            name="since",
            description="Only posts published at this instant (RFC 3339) or later.",
            required=False,
        ),
    ],
)
PROMPTS: Final = (SUMMARIZE, DIGEST)


class PromptHandlers:
    """Lists and fills in the prompts."""

    def __init__(self, journal: Journal, resources: ResourceHandlers) -> None:
        self._journal = journal
        self._resources = resources

    async def list_prompts(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        """List the prompts that the caller may use."""
        refuse_cursor(params)
        is_open = self._journal.is_open_to(actor_of(context))
        return ListPromptsResult(prompts=list(PROMPTS) if is_open else [])

    async def get(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """Fill in a prompt. Raises MCPError for bad arguments, Problem for a lacking scope."""
        prompt = next((item for item in PROMPTS if item.name == params.name), None)
        if prompt is None:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")
        actor = actor_of(context)
        self._journal.demand(actor)
        given = params.arguments or {}
        _check(prompt, given)
        try:
            messages = await self._fill(prompt, actor, given)
        except Problem as problem:
            refuse(problem, context)
        return GetPromptResult(description=prompt.description, messages=messages)

    async def _fill(
        self, prompt: Prompt, actor: Actor, given: Mapping[str, str]
    ) -> list[PromptMessage]:
        if prompt is SUMMARIZE:
            return await self._summarize(actor, given["slug"])
        return await self._digest(actor, given)

    async def _summarize(self, actor: Actor, slug: str) -> list[PromptMessage]:
        post = await self._journal.post(actor, slug)
        text = await self._resources.text(actor, post["url"])
        contents = TextResourceContents(uri=post["url"], mime_type=MARKDOWN, text=text)
        return [
            _say(
                f"Summarize the post \u201c{post['title']}\u201d in at most five sentences: what "
                "it claims, on what grounds, and for whom it matters. Cite its address."
            ),
            PromptMessage(role="user", content=EmbeddedResource(resource=contents)),
        ]

    async def _digest(self, actor: Actor, given: Mapping[str, str]) -> list[PromptMessage]:
        part = await self._journal.posts(actor, limit=DIGESTED, **given)
        about = f" on {given['tag']}" if "tag" in given else ""
        since = f" since {given['since']}" if "since" in given else ""
        if not part["posts"]:
            return [_say(f"Say that the journal has published nothing{about}{since}.")]
        return [
            _say(
                f"Say in a few paragraphs what the journal has published{about}{since}: what the "
                "posts have in common, and which to read first. Cite their addresses.\n\n"
                + "\n".join(_line(post) for post in part["posts"])
            )
        ]


def _check(prompt: Prompt, given: Mapping[str, str]) -> None:
    """Raise MCPError for an argument that is lacking, or that the prompt does not have."""
    arguments = {argument.name: argument for argument in prompt.arguments or ()}
    for name in given:
        if name not in arguments:
            raise MCPError(INVALID_PARAMS, f"{name}: is no argument of {prompt.name}")
    for name, argument in arguments.items():
        if argument.required and name not in given:
            raise MCPError(INVALID_PARAMS, f"{name}: is required")


def _say(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=TextContent(text=text))


def _line(post: Json) -> str:
    return f"- {post['published_at'][:10]} {post['title']} <{post['url']}>: {post['description']}"
