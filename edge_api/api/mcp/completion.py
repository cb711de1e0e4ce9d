"""`completion/complete`: the slugs and tags that there are, for whoever types one."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    PromptReference,
)

from edge_api.api.mcp.context import Context, actor_of
from edge_api.api.mcp.journal import Journal
from edge_api.api.mcp.prompts import DIGEST, SUMMARIZE
from edge_api.api.mcp.resources import TAGS, ResourceHandlers

VALUES_MOST: Final = 100
"""The protocol's bound."""

Source = Callable[[], Iterable[str]]


class CompletionHandler:
    """Completes arguments of prompts and variables of templates."""

    def __init__(self, journal: Journal, resources: ResourceHandlers) -> None:
        self._journal = journal
        self._sources: Mapping[tuple[str, str], Source] = {
            (SUMMARIZE.name, "slug"): journal.slugs,
            (DIGEST.name, "tag"): journal.tags,
            (DIGEST.name, "since"): list,  # any instant will do
            (resources.post_template, "slug"): journal.slugs,
            (resources.tag_template, "tag"): lambda: journal.folders(TAGS),
        }

    async def complete(self, context: Context, params: CompleteRequestParams) -> CompleteResult:
        """Give the values that begin with what was typed, and then those that have it in them.

        Raises MCPError for what cannot be completed, Problem for a lacking scope.
        """
        self._journal.demand(actor_of(context))
        ref = params.ref
        name = ref.name if isinstance(ref, PromptReference) else ref.uri
        source = self._sources.get((name, params.argument.name))
        if source is None:
            raise MCPError(INVALID_PARAMS, "ref: has no such argument that could be completed")
        values = matching(source(), params.argument.value)
        some = values[:VALUES_MOST]
        return CompleteResult(
            completion=Completion(values=some, total=len(values), has_more=len(values) > len(some))
        )


def matching(values: Iterable[str], typed: str) -> list[str]:
    """Return the values that begin with what was typed, whatever its case, then the other hits."""
    wanted = typed.casefold()
    hits = [value for value in values if wanted in value.casefold()]
    return sorted(hits, key=lambda value: not value.casefold().startswith(wanted))
