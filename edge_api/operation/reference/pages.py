"""The pages of the reference, as values and as Markdown: an overview and one for each group."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Any, Final

from edge_api.auth.rate_limits import COUNTED_BY
from edge_api.db.problems import PROBLEMS
from edge_api.operation.model import AnyOperation
from edge_api.operation.reference.entries import Entries, format_rate
from edge_api.operation.reference.values import (
    Body,
    Entry,
    Field,
    Prose,
    ReferencePage,
    ResponseEntry,
)
from edge_api.schema.credentials import SCOPES
from edge_api.schema.paths import AUDIENCES, DOCS, GROUPS, OPENAPI, Group


def write_markdown(page: ReferencePage, site_url: str) -> str:
    """Return the text of a page."""
    blocks = [f"# {page.title}", page.description, page.prose.markdown.strip()]
    if page.entries:
        lines = (
            f"- [{each.summary}](#{each.anchor}): {each.method} `{each.path}`"
            for each in page.entries
        )
        blocks += [f"Part of [the API's reference]({site_url}{DOCS}index.md).", "\n".join(lines)]
    for entry in page.entries:
        blocks += _entry(entry)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _entry(entry: Entry) -> Iterator[str]:
    yield f'<a id="{entry.anchor}"></a>\n\n## {entry.summary}'
    yield f"```http\n{entry.method} {entry.path}\n```"
    yield entry.about.markdown
    yield entry.access.markdown
    if entry.parameters:
        yield "### Parameters"
        fields = ((_label(each), each.place, *_kind(each)) for each in entry.parameters)
        yield _table(("Name", "In", "Kind", "What"), fields)
    if entry.body:
        yield "### Body"
        yield from _body(entry.body)
    yield "### Answers"
    for answer in entry.answers:
        yield from _answer(answer)
    if entry.problems:
        yield "### Errors"
        rows = ((each.status, each.phrase, each.description.markdown) for each in entry.problems)
        yield _table(("Status", "", "Why"), rows)
    if entry.examples:
        yield "### Example"
    for example in entry.examples:
        yield f"{example.label}:"
        yield example.code.markdown
    yield entry.remark.markdown


def _answer(answer: ResponseEntry) -> Iterator[str]:
    yield f"**{answer.status} {answer.phrase}**: {answer.description.markdown}"
    if answer.headers:
        yield "\n".join(f"- `{name}`: {each.markdown}" for name, each in answer.headers.items())
    if answer.body:
        yield from _body(answer.body)


def _body(body: Body) -> Iterator[str]:
    yield " or ".join(f"`{each}`" for each in body.media_types)
    if body.fields:
        yield _table(
            ("Member", "Kind", "What"), ((_label(each), *_kind(each)) for each in body.fields)
        )
    if body.is_truncated:
        yield f"Deeper members are in [openapi.json]({OPENAPI})."
    if body.example:
        yield body.example.markdown


def _label(field: Field) -> str:
    return f"`{field.name}`, {field.mark}" if field.mark else f"`{field.name}`"


def _kind(field: Field) -> tuple[str, str]:
    return field.kind, field.description.markdown


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    cells = ([text.replace("\n", " ").replace("|", "\\|") for text in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


Json = Mapping[str, Any]


_OVERVIEW: Final = Group("Overview", "How to call it: addresses, credentials, errors, limits.", ())


def make_pages(
    operations: Sequence[AnyOperation], document: Json, site_url: str, limits: Mapping[str, str]
) -> tuple[ReferencePage, ...]:
    """Return every page, the overview first, from the OpenAPI document and the rates."""
    entries = Entries(document, site_url, limits)
    return (
        _overview(site_url, limits),
        *(_page(slug, group, operations, entries) for slug, group in GROUPS.items()),
    )


def _page(
    slug: str, group: Group, operations: Sequence[AnyOperation], entries: Entries
) -> ReferencePage:
    chosen = [operation for tag in group.tags for operation in operations if operation.tag == tag]
    return ReferencePage(
        path=f"{DOCS}{slug}/",
        name=group.name,
        title=f"API: {group.name}",
        description=group.description,
        prose=Prose("\n\n".join(filter(None, map(entries.about, group.tags)))),
        entries=tuple(entries.make(operation) for operation in chosen),
    )


def _overview(site_url: str, limits: Mapping[str, str]) -> ReferencePage:
    source = files(__package__).joinpath("overview.md").read_text(encoding="utf-8")
    rows = {
        "pages": "\n".join(
            f"- [{group.name}]({DOCS}{slug}/): {group.description}"
            for slug, group in GROUPS.items()
        ),
        "scopes": "\n".join(
            f"| `{name}` | {description} |" for name, description in SCOPES.items()
        ),
        "problems": _problems(),
        "limits": "\n".join(
            f"| {name} | {format_rate(limits[name])} | {counted} |"
            for name, counted in COUNTED_BY.items()
        ),
    }
    text = Template(source).safe_substitute(rows, site=site_url, mcp=AUDIENCES["mcp"])
    return ReferencePage(DOCS, _OVERVIEW.name, "API", _OVERVIEW.description, Prose(text))


def _problems() -> str:
    kinds = sorted(PROBLEMS.values(), key=lambda kind: kind.status)
    rows = groupby(kinds, key=lambda kind: kind.status)
    return "\n".join(
        f"| {status} | {'; '.join(kind.message for kind in group)} |" for status, group in rows
    )
