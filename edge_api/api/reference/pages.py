"""The pages of the reference: an overview, and a page for each group of operations."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Any, Final

from edge_api.api.operation import Operation
from edge_api.api.reference.entries import Entries, spell_rate
from edge_api.api.reference.prose import Prose
from edge_api.api.reference.values import Page
from edge_api.domain.limits import COUNTED
from edge_api.schema.paths import DOCS, DOORS, GROUPS, Group
from edge_api.schema.problems import PROBLEMS
from edge_api.schema.scopes import SCOPES

Json = Mapping[str, Any]


_OVERVIEW: Final = Group("Overview", "How to call it: addresses, credentials, errors, limits.", ())


def make_pages(
    operations: Sequence[Operation], document: Json, site_url: str, limits: Mapping[str, str]
) -> tuple[Page, ...]:
    """Return every page, the overview first; `document` is the OpenAPI document of `operations`.

    `limits` are rates by the names of limits, as the settings spell them.
    """
    entries = Entries(document, site_url, limits)
    return (
        _overview(site_url, limits),
        *(_page(slug, group, operations, entries) for slug, group in GROUPS.items()),
    )


def _page(slug: str, group: Group, operations: Sequence[Operation], entries: Entries) -> Page:
    chosen = [operation for tag in group.tags for operation in operations if operation.tag == tag]
    return Page(
        path=f"{DOCS}{slug}/",
        name=group.name,
        title=f"API: {group.name}",
        description=group.sentence,
        prose=Prose("\n\n".join(filter(None, map(entries.about, group.tags)))),
        entries=tuple(entries.make(operation) for operation in chosen),
    )


def _overview(site_url: str, limits: Mapping[str, str]) -> Page:
    source = files(__package__).joinpath("overview.md").read_text(encoding="utf-8")
    rows = {
        "pages": "\n".join(
            f"- [{group.name}]({DOCS}{slug}/): {group.sentence}" for slug, group in GROUPS.items()
        ),
        "scopes": "\n".join(f"| `{name}` | {sentence} |" for name, sentence in SCOPES.items()),
        "problems": _problems(),
        "limits": "\n".join(
            f"| {name} | {spell_rate(limits[name])} | {counted} |"
            for name, counted in COUNTED.items()
        ),
    }
    text = Template(source).safe_substitute(rows, site=site_url, mcp=DOORS["mcp"])
    return Page(DOCS, _OVERVIEW.name, "API", _OVERVIEW.sentence, Prose(text))


def _problems() -> str:
    """Return a row for each status: what a client reads with it."""
    kinds = sorted(PROBLEMS.values(), key=lambda kind: kind.status)
    rows = groupby(kinds, key=lambda kind: kind.status)
    return "\n".join(
        f"| {status} | {'; '.join(kind.sentence for kind in group)} |" for status, group in rows
    )
