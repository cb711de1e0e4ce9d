"""The MCP server of the official SDK: tools, resources, prompts, change notifications, and skills.

The skills of the current build come with their files and digests (SEP-2640).

The SDK takes long to load: nothing that starts the service may import this module.
"""

import asyncio
import logging
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final

import frontmatter
import orjson
import yaml
from mcp.server import Server
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    DiscoverResult,
    Icon,
    ListToolsResult,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from edge_api.db.problems import Problem
from edge_api.health import Health
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.posts import Entry, find_changes
from edge_api.mcp.operations import (
    REVISIONS,
    SERVER_DESCRIPTION,
    SKILLS_EXTENSION,
    Identity,
    identify,
    server_name,
)
from edge_api.mcp.resources import (
    DIGEST,
    SUMMARIZE,
    Context,
    JournalResources,
    actor_of,
    reject_cursor,
)
from edge_api.mcp.tools import BoundTool, bind_tools
from edge_api.operation.model import AnyOperation, Json, Service
from edge_api.outbox import log_errors
from edge_api.schema.environment import VERSION
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.paths import SKILLS
from edge_api.schema.site_policy import media_type

_log = logging.getLogger(__name__)


class ChangeNotifier:
    """Notifies subscribed clients of changed posts."""

    def __init__(self, service: Service, journal: JournalResources) -> None:
        self._service = service
        self._journal = journal
        self._bus = InMemorySubscriptionBus()
        self._handler = ListenHandler(self._bus)
        self._listeners = 0
        self._poll_task: asyncio.Task[None] | None = None

    async def listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one subscription until either side ends it."""
        if not self._journal.can_read(actor_of(context)):
            nothing = {"resources_list_changed": None, "resource_subscriptions": None}
            wanted = params.notifications.model_copy(update=nothing)
            params = params.model_copy(update={"notifications": wanted})
        # New builds are polled only while there is a subscription.
        self._listeners += 1
        if self._poll_task is None:
            self._poll_task = asyncio.create_task(self._poll())
        try:
            return await self._handler(context, params)
        finally:
            self._listeners -= 1
            if not self._listeners and self._poll_task is not None:
                self._poll_task.cancel()
                self._poll_task = None

    async def _poll(self) -> None:
        """Publish the changes of each new build; close the subscriptions when the service stops."""
        before = self._service[BuildManager].current
        while not self._service[Health].draining:
            await asyncio.sleep(0.5)
            now = self._service[BuildManager].current
            if now is not before:
                with log_errors(_log, "build", "a build could not be announced"):
                    for event in differences(before, now):
                        await self._bus.publish(event)
                before = now
        self._handler.close()


def differences(before: Build | None, now: Build | None) -> Iterator[ServerEvent]:
    """Yield the events for the differences of two builds."""
    old, new = _entries(before), _entries(now)
    if [each.summary for each in old.values()] != [each.summary for each in new.values()]:
        yield ResourcesListChanged()
    for slug in find_changes(old, new):
        entry = new.get(slug) or old[slug]
        yield ResourceUpdated(uri=orjson.loads(entry.summary)["url"])


def _entries(build: Build | None) -> Mapping[str, Entry]:
    return {entry.cursor.slug: entry for entry in build.posts.entries} if build else {}


CACHE_TTL_MS: Final = 60_000
"""The time for which clients may cache answers; those that depend on scopes are private."""
SKILL_SCHEME: Final = "skill://"
MAX_SKILL_FILES: Final = 512
MAX_SKILL_BYTES: Final = 16 * 2**20
"""The limits of one skill that every host accepts; larger ones are left out (SEP-2640, limits)."""
_SKILL_FILE: Final = "/SKILL.md"
FoundSkills = tuple[Mapping[str, Json], Mapping[str, bytes]]
"""The entries of skills, and the contents of their files, each by URI."""


class GetSkillParams(RequestParams):
    """The URI of the SKILL.md of a skill."""

    uri: Any = None


class Skills:
    """Answers requests for skills (SEP-2640): public files, for which the scope `mcp` suffices."""

    def __init__(self, journal: JournalResources) -> None:
        self._journal = journal
        self._hint = {"ttlMs": CACHE_TTL_MS, "cacheScope": "public"}

    async def list(self, _: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        """List every skill. Raises Problem `unavailable`."""
        reject_cursor(params)
        return {"skills": list((await self._read_build())[0].values()), **self._hint}

    async def get(self, _: Context, params: GetSkillParams) -> dict[str, Any]:
        """Return one skill. Raises MCPError for a missing or unknown URI, Problem `unavailable`."""
        entries, _files = await self._read_build()
        if not isinstance(params.uri, str):
            example = next(iter(entries), f"{SKILL_SCHEME}NAME{_SKILL_FILE}")
            raise MCPError(INVALID_PARAMS, f"`uri` is missing; give a text such as {example}")
        if params.uri not in entries:
            raise _unknown_skill(params.uri, entries)
        return {"skill": entries[params.uri], **self._hint}

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return the file of a skill, or the page, with this URI. Raises MCPError and Problem."""
        uri = str(params.uri)
        if not uri.startswith(SKILL_SCHEME):
            return await self._journal.read(context, params)
        entries, files = await self._read_build()
        if uri not in files:
            raise _unknown_skill(uri, entries)
        kind = media_type(uri).partition(";")[0]
        contents: TextResourceContents | BlobResourceContents
        try:
            contents = TextResourceContents(uri=uri, mime_type=kind, text=files[uri].decode())
        except UnicodeDecodeError:
            blob = b64encode(files[uri]).decode()
            contents = BlobResourceContents(uri=uri, mime_type=kind, blob=blob)
        return ReadResourceResult(contents=[contents], cache_scope="public")

    async def _read_build(self) -> FoundSkills:
        try:
            return await asyncio.to_thread(read_skills, self._journal.build)
        except OSError:
            raise Problem("unavailable", "The skills cannot be read now: ask again") from None


def _unknown_skill(uri: str, entries: Mapping[str, Json]) -> MCPError:
    known = ", ".join(entries) or "none"
    return MCPError(INVALID_PARAMS, f"No skill has the URI {uri[:200]}; there are {known}")


def read_skills(build: Build) -> FoundSkills:
    """Return the skills of a build. Raises OSError."""
    site, names = build.folder / SITE_FOLDER, {file.name for file in build.files.values()}
    found = {
        f"{SKILL_SCHEME}{name.removeprefix(SKILLS)}": (site / name).read_bytes()
        for name in sorted(names)
        if name.startswith(SKILLS)
    }
    described = {uri: _describe_skill(uri, found) for uri in found if uri.endswith(_SKILL_FILE)}
    entries = {uri: entry for uri, entry in described.items() if entry is not None}
    listed = {file["uri"] for entry in entries.values() for file in entry["resources"]}
    return entries, {uri: found[uri] for uri in listed}


def _describe_skill(uri: str, found: Mapping[str, bytes]) -> Json | None:
    """Return the entry of the skill with this SKILL.md; `None` if hosts would refuse it."""
    folder = uri.removesuffix(_SKILL_FILE)
    contents = {each: found[each] for each in found if each.startswith(f"{folder}/")}
    files = [
        {"uri": each, "digest": f"sha256:{sha256(content).hexdigest()}", "size": len(content)}
        for each, content in contents.items()
    ]
    try:
        head = frontmatter.loads(found[uri].decode()).metadata
        head = orjson.loads(orjson.dumps(head, option=orjson.OPT_NON_STR_KEYS))
    except (yaml.YAMLError, TypeError, ValueError):
        return None
    is_named = head.get("name") == folder.rpartition("/")[2] and head.get("description")
    is_small = len(files) <= MAX_SKILL_FILES and sum(map(len, contents.values())) <= MAX_SKILL_BYTES
    return {"uri": uri, "frontmatter": head, "resources": files} if is_named and is_small else None


_INSTRUCTIONS: Final = """\
A journal's posts, and the enquiries (leads) that reach its owner. Start with search, then fetch \
the text of a result by its id; list_posts pages through all posts, newest first, and narrows them \
by tag and date. Each post is a resource too, in Markdown, at the address of its page: cite that \
address. create_lead stores a real enquiry that a person will answer: ask before you call it. \
Tools are listed only as far as your token's scopes reach. All times are UTC."""


async def discover(server: Server[Any], context: Context, _: RequestParams) -> DiscoverResult:
    """Return what the server supports, with all revisions of MCP; the SDK names only the newest."""
    return DiscoverResult(
        supported_versions=list(REVISIONS),
        capabilities=server.get_capabilities(protocol_version=context.protocol_version),
        instructions=server.instructions,
    )


def make_server(service: Service, operations: Sequence[AnyOperation]) -> Callable[[], Server[Any]]:
    """Return a function that returns the server, with the title and icon of the current build.

    A new server is made when one of these changes; it keeps the subscriptions.
    """
    journal = JournalResources(service, operations)
    tools = ToolHandlers(service, bind_tools(operations))
    hint = CacheHint(ttl_ms=CACHE_TTL_MS, scope="private")
    hints: dict[Any, CacheHint] = dict.fromkeys(CACHEABLE_METHODS, hint)
    skills = Skills(journal)
    notifier = ChangeNotifier(service, journal)

    @lru_cache(maxsize=1)
    def make(site: Identity) -> Server[Any]:
        server: Server[Any] = Server(
            server_name(site.site_url),
            version=VERSION,
            title=site.title,
            description=SERVER_DESCRIPTION,
            instructions=_INSTRUCTIONS,
            website_url=f"{site.site_url}/",
            icons=[Icon.model_validate(each) for each in site.icons] or None,
            cache_hints=hints,
            get_tool_input_schema=lambda _tool: None,
            on_list_tools=tools.list_tools,
            on_call_tool=tools.call,
            on_list_resources=journal.list_resources,
            on_list_resource_templates=journal.list_templates,
            on_read_resource=skills.read,
            on_list_prompts=journal.list_prompts,
            on_get_prompt=journal.get_prompt,
            on_completion=partial(complete, journal),
            on_subscriptions_listen=notifier.listen,
        )
        server.extensions[SKILLS_EXTENSION] = {}
        server.add_request_handler("skills/list", PaginatedRequestParams, skills.list)
        server.add_request_handler("skills/get", GetSkillParams, skills.get)
        server.add_request_handler("server/discover", RequestParams, partial(discover, server))
        server.middleware.clear()  # tracing, which nobody exports, takes a fifth of a call
        return server

    return lambda: make(identify(service))


async def complete(
    journal: JournalResources, context: Context, params: CompleteRequestParams
) -> CompleteResult:
    """Complete an argument of a prompt, or a variable of a template: return the matching values.

    The best come first. Raises MCPError and Problem.
    """
    journal.require_scope(actor_of(context))
    sources: Mapping[tuple[str, str], Callable[[], Iterable[str]]] = {
        (SUMMARIZE.name, "slug"): journal.slugs,
        (DIGEST.name, "tag"): journal.tags,
        (DIGEST.name, "since"): list,  # no suggestions: any instant is valid
        (journal.post_template, "slug"): journal.slugs,
        (journal.tag_template, "tag"): journal.tag_slugs,
    }
    ref = params.ref
    name = ref.name if isinstance(ref, PromptReference) else ref.uri
    source = sources.get((name, params.argument.name))
    if source is None:
        raise MCPError(INVALID_PARAMS, "ref: has no such argument that could be completed")
    values = matching(source(), params.argument.value)
    some = values[:100]  # the protocol's limit
    return CompleteResult(
        completion=Completion(values=some, total=len(values), has_more=len(values) > len(some))
    )


def matching(values: Iterable[str], typed: str) -> list[str]:
    """Return the values that begin with the typed text, in any case, then other matches."""
    wanted = typed.casefold()
    hits = [value for value in values if wanted in value.casefold()]
    return sorted(hits, key=lambda value: not value.casefold().startswith(wanted))


class ToolHandlers:
    """Lists and calls tools."""

    def __init__(self, service: Service, tools: Mapping[str, BoundTool]) -> None:
        self._service = service
        self._tools = tools
        self._listed = {
            name: Tool(
                name=name,
                title=bound.tool.title,
                description=bound.tool.description,
                input_schema=bound.input_schema,
                output_schema=bound.output_schema,
                annotations=ToolAnnotations(
                    title=bound.tool.title,
                    read_only_hint=bound.tool.hints.read_only,
                    destructive_hint=bound.tool.hints.destructive,
                    idempotent_hint=bound.tool.hints.idempotent,
                    open_world_hint=bound.tool.hints.open_world,
                ),
            )
            for name, bound in tools.items()
        }

    async def list_tools(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """List the tools that the caller may call."""
        reject_cursor(params)
        allowed = (None, *actor_of(context).scopes)
        listed = [self._listed[name] for name, tool in self._tools.items() if tool.scope in allowed]
        return ListToolsResult(tools=listed)

    async def call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool; errors in its arguments become results. Raises MCPError and Problem."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        try:
            result = await tool.call(self._service, actor_of(context), params.arguments or {})
        except Problem as problem:
            # Other arguments would not fix these: they are for the client, not for the model.
            if problem.code in ("unauthenticated", "insufficient_scope"):
                raise
            given = {"error": problem.message, "findings": problem.findings}
            return CallToolResult(
                content=[TextContent(text=problem.message)],
                structured_content=given if problem.findings else None,
                is_error=True,
            )
        text = TextContent(text=orjson.dumps(result).decode())
        return CallToolResult(content=[text], structured_content=result)
