"""The product as an MCP server of the official SDK: tools, resources, prompts, announcements.

Loading this module loads the SDK, which takes long: nothing that starts the service imports it.
"""

from collections.abc import Sequence
from typing import Any, Final

from mcp.server import Server
from mcp.server.caching import CACHEABLE_METHODS, CacheableMethod, CacheHint

from edge_api.api.mcp.announcements import Announcements
from edge_api.api.mcp.completion import CompletionHandler
from edge_api.api.mcp.journal import Journal
from edge_api.api.mcp.operations import SENTENCE, server_name, site_title
from edge_api.api.mcp.prompts import PromptHandlers
from edge_api.api.mcp.resources import ResourceHandlers
from edge_api.api.mcp.toolbox import Toolbox
from edge_api.api.mcp.tools import ToolHandlers
from edge_api.api.operation import Operation
from edge_api.api.service import Service
from edge_api.api.utility import VERSION

FRESH_MS: Final = 60_000
"""How long a client may go on with what it has read. Whatever is read depends on its scopes, so
nobody else may be given it."""

_INSTRUCTIONS: Final = """\
A journal's posts, and the enquiries (leads) that reach its owner. Start with search, then fetch \
the text of a result by its id; list_posts pages through all posts, newest first, and narrows them \
by tag and date. Each post is a resource too, in Markdown, at the address of its page: cite that \
address. create_lead stores a real enquiry that a person will answer: ask before you call it. \
Tools are listed only as far as your token's scopes reach. All times are UTC."""


def make_server(service: Service, operations: Sequence[Operation]) -> Server[Any]:
    """Return the server over what is declared."""
    journal = Journal(service, operations)
    tools = ToolHandlers(service, Toolbox(operations))
    resources = ResourceHandlers(journal, service.settings.site_url)
    prompts = PromptHandlers(journal, resources)
    server: Server[Any] = Server(
        server_name(service.settings.site_url),
        version=VERSION,
        title=site_title(service),
        description=SENTENCE,
        instructions=_INSTRUCTIONS,
        website_url=f"{service.settings.site_url}/",
        cache_hints=_cache_hints(),
        get_tool_input_schema=_no_headers,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read,
        on_list_prompts=prompts.list_prompts,
        on_get_prompt=prompts.get,
        on_completion=CompletionHandler(journal, resources).complete,
        on_subscriptions_listen=Announcements(service, journal).listen,
    )
    server.middleware.clear()  # traces for an exporter that nobody installs; a fifth of each call
    return server


def _no_headers(_tool: str) -> None:
    """Say that no tool has arguments which headers repeat, so that the SDK looks for none."""


def _cache_hints() -> dict[CacheableMethod, CacheHint]:
    hint = CacheHint(ttl_ms=FRESH_MS, scope="private")
    hints: dict[Any, CacheHint] = dict.fromkeys(CACHEABLE_METHODS, hint)
    return hints
