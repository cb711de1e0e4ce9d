"""The journal as an agent reads it: posts by the operations of REST, pages as their Markdown.

The protocol is not known here.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.site_files import TWIN
from edge_api.mcp.tools import Input, make_ask, operation_inputs, perform
from edge_api.operation.model import AnyOperation, Json, authorise
from edge_api.operation.service import Service
from edge_api.schema.credentials import Scope
from edge_api.schema.index import SITE_FOLDER

SCOPE: Final[Scope] = "posts:read"


def find_slug(form: str, path: str) -> str:
    """Return what stands for `{slug}` in a path of the form; empty for a path of another."""
    part = {"slug": "(?P<slug>[^/]+)"}
    named = re.sub(r"\\{(\w+)\\}", lambda found: part.get(found[1], "[^/]+"), re.escape(form))
    found = re.fullmatch(named, path)
    return found["slug"] if found else ""


class Journal:
    """What the current build has for an actor."""

    def __init__(self, service: Service, operations: Iterable[AnyOperation]) -> None:
        by_name = {operation.name: operation for operation in operations}
        self._service = service
        self._list, self._get = _bind(by_name["list_posts"]), _bind(by_name["get_post"])
        self._tags: WeakKeyDictionary[Build, tuple[str, ...]] = WeakKeyDictionary()

    @property
    def build(self) -> Build:
        """The current build. Raises Problem `unavailable` while there is none."""
        return self._service[BuildManager].build()

    def is_open_to(self, actor: Actor) -> bool:
        """Tell whether the actor may read posts."""
        return SCOPE in actor.scopes

    def demand(self, actor: Actor) -> None:
        """Raise Problem `insufficient_scope` unless the actor may read posts."""
        self._service.access.authorise(actor, SCOPE, "mcp")

    async def posts(self, actor: Actor, **question: Any) -> Json:
        """Return a part of the list, as REST answers it. Raises Problem."""
        return await self._ask(self._list, actor, question)

    async def post(self, actor: Actor, slug: str) -> Json:
        """Return a post, as REST answers it. Raises Problem."""
        return await self._ask(self._get, actor, {"slug": slug})

    async def markdown(self, path: str) -> str:
        """Return the Markdown form of the page at `path`. Raises Problem `not_found`."""
        build = self.build
        twin = f"{path}{TWIN}" if path.endswith("/") else f"{path.removesuffix('.html')}.md"
        file = build.files.get(twin)
        if file is None:
            raise Problem("not_found", "No page has this address")
        where = build.folder / SITE_FOLDER / file.name
        try:
            return await asyncio.to_thread(where.read_text, encoding="utf-8")
        except OSError:
            raise Problem("unavailable", "The page cannot be read now: ask again") from None

    def slugs(self) -> list[str]:
        """Return the slug of every post, newest first."""
        return [entry.place.slug for entry in self.build.posts.entries]

    def tags(self) -> tuple[str, ...]:
        """Return the name of every tag, in the order of the alphabet."""
        build = self.build
        if build not in self._tags:
            summaries = (orjson.loads(entry.summary) for entry in build.posts.entries)
            names = {tag for summary in summaries for tag in summary["tags"]}
            self._tags[build] = tuple(sorted(names, key=str.casefold))
        return self._tags[build]

    def tag_slugs(self) -> list[str]:
        """Return the slug of each tag, sorted."""
        form = self.build.head.tag_path
        return sorted(filter(None, (find_slug(form, path) for path in self.build.files)))

    async def _ask(self, bound: "_Bound", actor: Actor, given: Mapping[str, Any]) -> Json:
        operation, inputs = bound
        authorise(operation, self._service.access, actor, "mcp")
        answer: Json = await perform(
            operation, self._service, make_ask(operation, inputs, given, actor)
        )
        return answer


_Bound = tuple[AnyOperation, Mapping[str, Input]]
"""An operation, and what it takes by name."""


def _bind(operation: AnyOperation) -> _Bound:
    return operation, {item.name: item for item in operation_inputs(operation)}
