"""Every way in which a post can be seen: by people, feeds, crawlers, programs and agents.

A surface is a name and a function that returns what a visitor is given; a new one is one more line.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from edge_api.schema.paths import AUDIENCES, SEARCH_DATA
from tests.edge.edge_process import ServedEdge

SLUG, TAG, WORD = "zephyr-rising", "zephyrs", "zephyrword"
"""Text that only the scheduled post has."""

NEIGHBOUR = "calm-before"
"""The post before it, whose page leads on to it."""


@dataclass(frozen=True)
class Visitor:
    """A client that reads every surface of an edge."""

    edge: ServedEdge
    site_url: str
    key: str
    token: str

    def get(self, path: str, **headers: str) -> str:
        """Return what is served at a path, nothing where there is no such thing."""
        status, _, body = self.edge.get(path, headers)
        assert status in {200, 404}, (path, status, body)
        return body.decode() if status == 200 else ""

    def holds(self, path: str) -> bool:
        """Return whether there is something at a path."""
        return self.edge.get(path, {})[0] == HTTPStatus.OK

    def ask_api(self, path: str) -> str:
        """Return an answer of the API."""
        return self.get(f"{AUDIENCES['rest']}{path}", **{"X-API-Key": self.key})

    def ask_agent(self, method: str, **params: Any) -> str:
        """Return the result of an MCP request, nothing for an error."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2025-11-25",
        }
        status, _, body = self.edge.post(AUDIENCES["mcp"], json.dumps(message).encode(), headers)
        assert status == 200, (method, status, body)
        result = json.loads(body).get("result", {})
        return "" if result.get("isError") else json.dumps(result)

    def call(self, tool: str, **arguments: Any) -> str:
        """Return what a tool gives."""
        return self.ask_agent("tools/call", name=tool, arguments=arguments)


Reader = Callable[[Visitor], str]


def _page(path: str, **headers: str) -> Reader:
    return lambda visitor: visitor.get(path, **headers)


def _api(path: str) -> Reader:
    return lambda visitor: visitor.ask_api(path)


def _search(path: str, **headers: str) -> Reader:
    """Look at the results alone: the question comes back in every answer."""
    return lambda visitor: visitor.get(f"{path}?q={WORD}", **headers).replace(WORD, "")


def _tool(name: str, **arguments: Any) -> Reader:
    return lambda visitor: visitor.call(name, **arguments)


def _resource(visitor: Visitor) -> str:
    return visitor.ask_agent("resources/read", uri=f"{visitor.site_url}/journal/{SLUG}/")


def _completion(visitor: Visitor) -> str:
    return visitor.ask_agent(
        "completion/complete",
        ref={"type": "ref/resource", "uri": f"{visitor.site_url}/journal/{{slug}}/"},
        argument={"name": "slug", "value": SLUG[:4]},
    )


LISTS: dict[str, Reader] = {
    "home page": _page("/"),
    "journal": _page("/journal/"),
    "journal in Markdown": _page("/journal/index.md"),
    "archive": _page("/archive/"),
    "archive in Markdown": _page("/archive/index.md"),
    "page of a shared tag": _page("/tags/weather/"),
    "that page in Markdown": _page("/tags/weather/index.md"),
    "Atom feed": _page("/feed.xml"),
    "JSON feed": _page("/feed.json"),
    "Atom feed of a tag": _page("/tags/weather/feed.xml"),
    "JSON feed of a tag": _page("/tags/weather/feed.json"),
    "llms.txt": _page("/llms.txt"),
    "llms-full.txt": _page("/llms-full.txt"),
    "API list": _api("/posts"),
    "API list of a tag": _api("/posts?tag=weather"),
    "API list since a day": _api(f"/posts?since={quote('2026-01-01T00:00:00Z')}"),
    "MCP list_posts": _tool("list_posts"),
    "MCP resources": lambda visitor: visitor.ask_agent("resources/list"),
}
"""Those that name all posts, newest first."""

OTHERS: dict[str, Reader] = {
    "page": _page(f"/journal/{SLUG}/"),
    "twin": _page(f"/journal/{SLUG}/index.md"),
    "page negotiated as Markdown": _page(f"/journal/{SLUG}/", Accept="text/markdown"),
    "page of the post before": _page(f"/journal/{NEIGHBOUR}/"),
    "page of its own tag": _page(f"/tags/{TAG}/"),
    "list of tags": lambda visitor: visitor.get("/tags/").replace(TAG, SLUG),
    "sitemap": _page("/sitemap.xml"),
    "API post": _api(f"/posts/{SLUG}"),
    "API search": _api(f"/posts?q={WORD}"),
    "page of search": _search("/search"),
    "page of search in Markdown": _search("/search", Accept="text/markdown"),
    "search as data": _search(SEARCH_DATA),
    "social card": lambda visitor: SLUG if visitor.holds(f"/cards/{SLUG}.png") else "",
    "feed of its own tag": _page(f"/tags/{TAG}/feed.xml"),
    "MCP get_post": _tool("get_post", slug=SLUG),
    "MCP fetch": _tool("fetch", id=SLUG),
    "MCP search": _tool("search", query=WORD),
    "MCP resource": _resource,
    "MCP completion": _completion,
}

SURFACES: dict[str, Reader] = {**LISTS, **OTHERS}
