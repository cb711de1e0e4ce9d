"""A page of the reference as Markdown, from the same values as the page in HTML."""

from collections.abc import Iterator, Sequence

from edge_api.api.reference.values import Answer, Body, Entry, Field, Page
from edge_api.schema.paths import DOCS, OPENAPI


def write_markdown(page: Page, site_url: str) -> str:
    """Return the whole text of a page."""
    blocks = [f"# {page.title}", page.description, page.prose.markdown.strip()]
    if page.entries:
        blocks += [f"Part of [the API's reference]({site_url}{DOCS}index.md).", _contents(page)]
    for entry in page.entries:
        blocks += _entry(entry)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _contents(page: Page) -> str:
    return "\n".join(
        f"- [{entry.summary}](#{entry.anchor}): {entry.method} `{entry.path}`"
        for entry in page.entries
    )


def _entry(entry: Entry) -> Iterator[str]:
    yield f'<a id="{entry.anchor}"></a>\n\n## {entry.summary}'
    yield f"```http\n{entry.method} {entry.path}\n```"
    yield entry.about.markdown
    yield entry.access.markdown
    if entry.parameters:
        yield "### Parameters"
        yield _table(("Name", "In", "Kind", "What"), map(_parameter, entry.parameters))
    if entry.body:
        yield "### Body"
        yield from _body(entry.body)
    yield "### Answers"
    for answer in entry.answers:
        yield from _answer(answer)
    if entry.problems:
        yield "### Errors"
        rows = ((each.status, each.phrase, each.sentence.markdown) for each in entry.problems)
        yield _table(("Status", "", "Why"), rows)
    if entry.examples:
        yield "### Example"
    for example in entry.examples:
        yield f"{example.label}:"
        yield example.code.markdown
    yield entry.remark.markdown


def _answer(answer: Answer) -> Iterator[str]:
    yield f"**{answer.status} {answer.phrase}**: {answer.sentence.markdown}"
    if answer.headers:
        yield "\n".join(f"- `{name}`: {each.markdown}" for name, each in answer.headers.items())
    if answer.body:
        yield from _body(answer.body)


def _body(body: Body) -> Iterator[str]:
    yield " or ".join(f"`{each}`" for each in body.media_types)
    if body.fields:
        yield _table(("Member", "Kind", "What"), map(_member, body.fields))
    if body.is_deeper:
        yield f"What lies deeper stands in [openapi.json]({OPENAPI})."
    if body.example:
        yield body.example.markdown


def _parameter(field: Field) -> Sequence[str]:
    return f"`{field.name}`{_mark(field)}", field.place, field.kind, field.sentence.markdown


def _member(field: Field) -> Sequence[str]:
    return f"`{field.name}`{_mark(field)}", field.kind, field.sentence.markdown


def _mark(field: Field) -> str:
    return f", {field.mark}" if field.mark else ""


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")
