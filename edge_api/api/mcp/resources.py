"""`resources/list`, `resources/templates/list` and `resources/read`: pages in Markdown.

A resource's URI is the address of its page, so that what an agent cites a person can open.
"""

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from mcp_types import (
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from edge_api.api.mcp.context import Context, actor_of, refuse, refuse_cursor
from edge_api.api.mcp.journal import Journal
from edge_api.api.post_tools import next_cursor
from edge_api.api.tool import Json
from edge_api.domain.actor import Actor
from edge_api.schema.problems import Problem

MARKDOWN: Final = "text/markdown"
PAGE: Final = 50
"""Resources of one answer."""
POSTS: Final = "/journal/"
TAGS: Final = "/tags/"

_POST_PATH: Final = re.compile(rf"{POSTS}([^/]+)/")
_TAG_PATH: Final = re.compile(rf"{TAGS}[^/]+/")


class ResourceHandlers:
    """Lists and reads pages of a journal, whose origin is `site_url`."""

    def __init__(self, journal: Journal, site_url: str) -> None:
        self._journal = journal
        self._site_url = site_url
        self.post_template = f"{site_url}{POSTS}{{slug}}/"
        self.tag_template = f"{site_url}{TAGS}{{tag}}/"

    async def list_resources(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """List the posts, newest first, page by page."""
        actor = actor_of(context)
        if not self._journal.is_open_to(actor):
            return ListResourcesResult(resources=[])
        cursor = params.cursor if params else None
        try:
            part = await self._journal.posts(actor, limit=PAGE, cursor=cursor)
        except Problem as problem:
            refuse(problem, context)
        resources = [_describe(post) for post in part["posts"]]
        return ListResourcesResult(resources=resources, next_cursor=next_cursor(part))

    async def list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """List what can be read without being listed."""
        refuse_cursor(params)
        if not self._journal.is_open_to(actor_of(context)):
            return ListResourceTemplatesResult(resource_templates=[])
        return ListResourceTemplatesResult(resource_templates=self._templates())

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Give a page in Markdown. Raises MCPError for one that is not there, Problem."""
        uri = str(params.uri)
        try:
            text = await self.text(actor_of(context), uri)
        except Problem as problem:
            refuse(problem, context, is_resource=True)
        contents = TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)
        return ReadResourceResult(contents=[contents])

    async def text(self, actor: Actor, uri: str) -> str:
        """Return the Markdown of the page at `uri`. Raises Problem."""
        self._journal.demand(actor)
        path = self._path(uri)
        if post := _POST_PATH.fullmatch(path):
            return await self._post(actor, post[1], path)
        if _TAG_PATH.fullmatch(path):
            return await self._journal.markdown(path)
        raise Problem("not_found", f"No resource has this URI: see {self.post_template}")

    async def _post(self, actor: Actor, slug: str, path: str) -> str:
        """Return a post as its page's Markdown form has it, or as it was written."""
        post = await self._journal.post(actor, slug)
        try:
            return await self._journal.markdown(path)
        except Problem as problem:
            if problem.code != "not_found":
                raise
            return f"# {post['title']}\n\n{post['content']}\n"

    def _path(self, uri: str) -> str:
        """Return the decoded path of one of our addresses; of any other, nothing."""
        if not uri.startswith(f"{self._site_url}/"):
            return ""
        try:
            parts = urlsplit(uri)
        except ValueError:
            return ""
        return "" if parts.query or parts.fragment else unquote(parts.path)

    def _templates(self) -> list[ResourceTemplate]:
        return [
            ResourceTemplate(
                name="post",
                title="Post",
                uri_template=self.post_template,
                description="One post in Markdown, with its date, tags and address.",
                mime_type=MARKDOWN,
            ),
            ResourceTemplate(
                name="tag",
                title="Tag",
                uri_template=self.tag_template,
                description="The posts with one tag, newest first, as a list in Markdown.",
                mime_type=MARKDOWN,
            ),
        ]


def _describe(post: Json) -> Resource:
    return Resource(
        uri=post["url"],
        name=post["slug"],
        title=post["title"],
        description=post["description"] or None,
        mime_type=MARKDOWN,
        annotations=Annotations(last_modified=post["updatedAt"]),
    )
