"""MCP resources, which are pages in Markdown, and prompts.

The URI of a resource is the address of its page, which a person can open. Posts are read by the
operations of the REST API.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, cast
from urllib.parse import unquote, urlsplit

import orjson
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Annotations,
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.http.static import markdown_alternate
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.operations import next_cursor
from edge_api.mcp.tools import make_request, operation_inputs, run_operation
from edge_api.operation.model import AnyOperation, Json, Service, authorise
from edge_api.schema.credentials import Scope
from edge_api.schema.index import SITE_FOLDER

SCOPE: Final[Scope] = "posts:read"


def find_slug(template: str, path: str) -> str:
    """Return the slug in a path that matches the template, or `""`."""
    group = {"slug": "(?P<slug>[^/]+)"}
    regex = re.sub(r"\\{(\w+)\\}", lambda found: group.get(found[1], "[^/]+"), re.escape(template))
    found = re.fullmatch(regex, path)
    return found["slug"] if found and template else ""


Context = ServerRequestContext[Any, Any]

NOT_FOUND = -32002  # the code of a missing resource up to 2025-11-25; later it is INVALID_PARAMS


def actor_of(context: Context) -> Actor:
    """Return the actor of a request."""
    caller: Any = context.request
    return cast("Actor", caller.actor)


def reject_cursor(params: PaginatedRequestParams | None) -> None:
    """Raise MCPError for a cursor: the list has one page."""
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "cursor: no answer gave this one")


def raise_error(problem: Problem, context: Context, *, is_resource: bool = False) -> NoReturn:
    """Raise MCPError for a client error, else the problem."""
    if problem.code == "not_found" and is_resource:
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(INVALID_PARAMS if is_modern else NOT_FOUND, problem.message) from None
    if problem.code in ("invalid", "not_found"):
        raise MCPError(INVALID_PARAMS, problem.message) from None
    raise problem


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

MARKDOWN: Final = "text/markdown"
PAGE_SIZE: Final = 50  # resources in one answer


class JournalResources:
    """Reads the current build for an actor; answers requests for resources and prompts."""

    def __init__(self, service: Service, operations: Iterable[AnyOperation]) -> None:
        by_name = {operation.name: operation for operation in operations}
        self._service = service
        self._list, self._get = by_name["list_posts"], by_name["get_post"]
        self._site_url = service.settings.site_url

    @property
    def build(self) -> Build:
        """The current build. Raises Problem `unavailable` if there is none."""
        return self._service[BuildManager].build()

    def can_read(self, actor: Actor) -> bool:
        """Return whether the actor may read posts."""
        return SCOPE in actor.scopes

    def require_scope(self, actor: Actor) -> None:
        """Raise Problem `insufficient_scope` unless the actor may read posts."""
        self._service.authenticator.authorise(actor, SCOPE, "mcp")

    async def markdown(self, path: str) -> str:
        """Return the Markdown form of the page at `path`. Raises Problem `not_found`."""
        build = self.build
        page = build.files.get(path)
        file = markdown_alternate(build.files, page) if page else None
        if file is None:
            raise Problem("not_found", "No page has this address")
        file_path = build.folder / SITE_FOLDER / file.name
        try:
            return await asyncio.to_thread(file_path.read_text, encoding="utf-8")
        except OSError:
            raise Problem("unavailable", "The page cannot be read now: ask again") from None

    def slugs(self) -> list[str]:
        """Return the slug of every post, newest first."""
        return [entry.cursor.slug for entry in self.build.posts.entries]

    def tags(self) -> list[str]:
        """Return the name of every tag in alphabetical order."""
        summaries = (orjson.loads(entry.summary) for entry in self.build.posts.entries)
        return sorted({tag for each in summaries for tag in each["tags"]}, key=str.casefold)

    def tag_slugs(self) -> list[str]:
        """Return the slug of each tag, sorted."""
        template = self.build.head.tag_path
        return sorted(filter(None, (find_slug(template, path) for path in self.build.files)))

    async def _call(self, operation: AnyOperation, actor: Actor, given: Mapping[str, Any]) -> Json:
        """Call an operation of the REST API; return its answer. Raises Problem."""
        authorise(operation, self._service.authenticator, actor, "mcp")
        inputs = {item.name: item for item in operation_inputs(operation)}
        request = make_request(operation, inputs, given, actor)
        answer: Json = await run_operation(operation, self._service, request)
        return answer

    @property
    def post_template(self) -> str:
        """The URI template of posts (RFC 6570)."""
        return f"{self._site_url}{self.build.head.post_path}"

    @property
    def tag_template(self) -> str:
        """The URI template of tags (RFC 6570)."""
        path = self.build.head.tag_path.replace("{slug}", "{tag}")
        return f"{self._site_url}{path}"

    async def list_resources(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """List the posts, newest first, page by page."""
        actor = actor_of(context)
        if not self.can_read(actor):
            return ListResourcesResult(resources=[])
        cursor = params.cursor if params else None
        try:
            page = await self._call(self._list, actor, {"limit": PAGE_SIZE, "cursor": cursor})
        except Problem as problem:
            raise_error(problem, context)
        resources = [
            Resource(
                uri=post["url"],
                name=post["slug"],
                title=post["title"],
                description=post["description"] or None,
                mime_type=MARKDOWN,
                annotations=Annotations(last_modified=post["updatedAt"]),
            )
            for post in page["posts"]
        ]
        return ListResourcesResult(resources=resources, next_cursor=next_cursor(page))

    async def list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """List the templates of posts and tags."""
        reject_cursor(params)
        if not self.can_read(actor_of(context)):
            return ListResourceTemplatesResult(resource_templates=[])
        templates = [
            ResourceTemplate(
                name=name,
                title=name.title(),
                uri_template=template,
                description=description,
                mime_type=MARKDOWN,
            )
            for name, template, description in (
                (
                    "post",
                    self.post_template,
                    "One post in Markdown, with its date, tags and address.",
                ),
                (
                    "tag",
                    self.tag_template,
                    "The posts with one tag, newest first, as a list in Markdown.",
                ),
            )
            if name == "post" or self.build.head.tag_path
        ]
        return ListResourceTemplatesResult(resource_templates=templates)

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return a page in Markdown. Raises MCPError if it is missing, and Problem."""
        uri = str(params.uri)
        try:
            text = await self.text(actor_of(context), uri)
        except Problem as problem:
            raise_error(problem, context, is_resource=True)
        contents = TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)
        return ReadResourceResult(contents=[contents])

    async def text(self, actor: Actor, uri: str) -> str:
        """Return the Markdown of the page at `uri`. Raises Problem."""
        self.require_scope(actor)
        path = self._site_path(uri)
        head = self.build.head
        if slug := find_slug(head.post_path, path):
            return await self._post_markdown(actor, slug, path)
        if find_slug(head.tag_path, path):
            return await self.markdown(path)
        raise Problem("not_found", f"No resource has this URI: see {self.post_template}")

    async def _post_markdown(self, actor: Actor, slug: str, path: str) -> str:
        """Return the Markdown of a post's page; if it has none, Markdown made from the post."""
        post = await self._call(self._get, actor, {"slug": slug})
        try:
            return await self.markdown(path)
        except Problem as problem:
            if problem.code != "not_found":
                raise
            return f"# {post['title']}\n\n{post['content']}\n"

    def _site_path(self, uri: str) -> str:
        """Return the decoded path of a URI of this site, else `""`."""
        if not uri.startswith(f"{self._site_url}/"):
            return ""
        try:
            parts = urlsplit(uri)
        except ValueError:
            return ""
        return "" if parts.query or parts.fragment else unquote(parts.path)

    async def list_prompts(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        """List the prompts that the caller may use."""
        reject_cursor(params)
        can_read = self.can_read(actor_of(context))
        return ListPromptsResult(prompts=list(PROMPTS) if can_read else [])

    async def get_prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """Fill in a prompt. Raises MCPError for wrong arguments, Problem without the scope."""
        prompt = next((item for item in PROMPTS if item.name == params.name), None)
        if prompt is None:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")
        actor = actor_of(context)
        self.require_scope(actor)
        given = params.arguments or {}
        _check_arguments(prompt, given)
        try:
            if prompt is SUMMARIZE:
                messages = await self._summarize(actor, given["slug"])
            else:
                messages = await self._digest(actor, given)
        except Problem as problem:
            raise_error(problem, context)
        return GetPromptResult(description=prompt.description, messages=messages)

    async def _summarize(self, actor: Actor, slug: str) -> list[PromptMessage]:
        post = await self._call(self._get, actor, {"slug": slug})
        text = await self.text(actor, post["url"])
        contents = TextResourceContents(uri=post["url"], mime_type=MARKDOWN, text=text)
        return [
            _user_message(
                f"Summarize the post \u201c{post['title']}\u201d in at most five sentences: what "
                "it claims, on what grounds, and for whom it matters. Cite its address."
            ),
            PromptMessage(role="user", content=EmbeddedResource(resource=contents)),
        ]

    async def _digest(self, actor: Actor, given: Mapping[str, str]) -> list[PromptMessage]:
        page = await self._call(self._list, actor, {"limit": 50, **given})
        about = f" on {given['tag']}" if "tag" in given else ""
        since = f" since {given['since']}" if "since" in given else ""
        if not page["posts"]:
            return [_user_message(f"Say that the journal has published nothing{about}{since}.")]
        return [
            _user_message(
                f"Say in a few paragraphs what the journal has published{about}{since}: what the "
                "posts have in common, and which to read first. Cite their addresses.\n\n"
                + "\n".join(
                    f"- {post['published_at'][:10]} {post['title']} <{post['url']}>: "
                    f"{post['description']}"
                    for post in page["posts"]
                )
            )
        ]


def _check_arguments(prompt: Prompt, given: Mapping[str, str]) -> None:
    arguments = {argument.name: argument for argument in prompt.arguments or ()}
    for name in given:
        if name not in arguments:
            raise MCPError(INVALID_PARAMS, f"{name}: is no argument of {prompt.name}")
    for name, argument in arguments.items():
        if argument.required and name not in given:
            raise MCPError(INVALID_PARAMS, f"{name}: is required")


def _user_message(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=TextContent(text=text))
