"""The pages of the reference, made from the declarations, and their Markdown.

There is an overview, and a page for each group. Operations are entries; members of JSON Schemas are
rows.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Any, Final

from limits import RateLimitItem, parse_many

from edge_api.auth.rate_limits import COUNTED_BY, NO_LIMIT
from edge_api.db.problems import PROBLEMS
from edge_api.operation.model import AnyOperation
from edge_api.operation.openapi import non_null_schema
from edge_api.operation.reference.languages import is_callable, make_call, make_examples
from edge_api.operation.reference.values import (
    Body,
    Code,
    Entry,
    Field,
    Prose,
    ReferencePage,
    ResponseEntry,
)
from edge_api.schema.credentials import SCOPES
from edge_api.schema.paths import AUDIENCES, DOCS, GROUPS, Group

Json = Mapping[str, Any]
MAX_DEPTH: Final = 3
_COMPONENTS: Final = "#/components/"
_MAX_CHOICES: Final = 12
_NO_BOUND: Final = 10**18  # a bound that only says that the number fits into the store
_FIRST_FAILURE: Final = 400

Marks = tuple[str, str]
"""The labels of required and of optional members."""
REQUEST: Final[Marks] = ("needed", "")
RESPONSE: Final[Marks] = ("", "may be absent")


class Entries:
    """Makes entries; `document` is the OpenAPI document of the same operations."""

    def __init__(self, document: Json, site_url: str, limits: Mapping[str, str]) -> None:
        """`limits` are the rates by name."""
        self._document = document
        self._tags: Sequence[Json] = document["tags"]
        self._site_url = site_url
        self._rates = limits

    def about(self, tag: str) -> str:
        """Return the document's description of a tag."""
        return next((each.get("description", "") for each in self._tags if each["name"] == tag), "")

    def make(self, operation: AnyOperation) -> Entry:
        """Return the entry of one operation."""
        entry = self._resolve(self._document["paths"][operation.path][operation.method.lower()])
        answers = [self._answer(*each) for each in entry["responses"].items()]
        responses = {str(success.status) for success in operation.responses}
        callable_ = is_callable(operation)
        return Entry(
            anchor=operation.name,
            method=operation.method,
            path=operation.path,
            summary=operation.summary,
            about=Prose(operation.description),
            access=Prose(" ".join(self._access(operation))),
            parameters=tuple(self._parameters(entry)),
            body=self._body(entry.get("requestBody", {}).get("content"), REQUEST),
            answers=tuple(each for each in answers if each.status in responses),
            problems=tuple(each for each in answers if each.status not in responses),
            examples=make_examples(make_call(operation, entry, self._site_url))
            if callable_
            else (),
            remark=Prose("" if callable_ else _remark(operation)),
        )

    def _resolve(self, entry: Json) -> Json:
        responses = {name: self._dereference(each) for name, each in entry["responses"].items()}
        parameters = [self._dereference(each) for each in entry.get("parameters", ())]
        return {**entry, "responses": responses, "parameters": parameters}

    def _dereference(self, value: Json) -> Json:
        """Return the component that a value refers to, with the value's own members."""
        if not value.get("$ref", "").startswith(_COMPONENTS):
            return value
        section, name = value["$ref"].removeprefix(_COMPONENTS).split("/")
        found: Json = self._document["components"][section][name]
        return {**found, **{key: each for key, each in value.items() if key != "$ref"}}

    def _access(self, operation: AnyOperation) -> Iterator[str]:
        yield _CREDENTIALS[operation.credential, operation.audience]
        if operation.scope:
            needed = "Scope" if operation.credential == "required" else "Its scope"
            yield f"{needed}: `{operation.scope}`."
        for name in operation.limits:
            if (rate := self._rates[name]) != NO_LIMIT:
                yield f"Limit `{name}`: {format_rate(rate)}."

    def _parameters(self, entry: Json) -> Iterator[Field]:
        for each in entry["parameters"]:
            schema = {**each["schema"], "description": each.get("description", "")}
            yield self._field(
                each["name"], schema, REQUEST[not each.get("required", False)], each["in"]
            )

    def _answer(self, status: str, response: Json) -> ResponseEntry:
        headers = response.get("headers", {})
        content = response.get("content") if int(status) < _FIRST_FAILURE else None
        return ResponseEntry(
            status=status,
            phrase=HTTPStatus(int(status)).phrase,
            description=Prose(response["description"]),
            headers={name: Prose(each["description"]) for name, each in headers.items()},
            body=self._body(content, RESPONSE),
        )

    def _body(self, content: Json | None, marks: Marks) -> Body | None:
        if not content:
            return None
        first = next(iter(content.values()))
        schema = first["schema"]
        example = None if marks is REQUEST else first.get("example", self._example(schema))
        text = json.dumps(example, ensure_ascii=False, indent=2)
        return Body(
            media_types=tuple(content),
            fields=tuple(self._fields(schema, marks)),
            example=None if example is None else Code("json", text),
        )

    def _fields(
        self, schema: Json, marks: Marks, depth: int = MAX_DEPTH, prefix: str = ""
    ) -> Iterator[Field]:
        """Yield the members of a schema in depth-first order, down to a depth."""
        parent = self._object_schema(schema)
        for name, member in parent.get("properties", {}).items():
            mark = marks[name not in parent.get("required", ())]
            yield self._field(f"{prefix}{name}", member, mark)
            if depth > 1:
                step = "[]." if self._dereference(member).get("type") == "array" else "."
                yield from self._fields(member, marks, depth - 1, f"{prefix}{name}{step}")

    def _example(self, schema: Json) -> Any:
        """Return an example of the schema, its items or its first choice; else `None`."""
        schema = self._dereference(schema)
        if schema.get("type") == "array":
            item = self._example(schema["items"])
            return None if item is None else [item]
        choices = schema.get("anyOf", ())
        return (
            self._example(choices[0]) if choices else next(iter(schema.get("examples", ())), None)
        )

    def _field(self, name: str, schema: Json, mark: str, place: str = "") -> Field:
        """Return the row of one member or parameter."""
        description = " ".join(filter(None, (schema.get("description", ""), *self._limits(schema))))
        return Field(name, self._type_name(schema), mark, Prose(description), place)

    def _type_name(self, schema: Json, seen: frozenset[str] = frozenset()) -> str:
        """Return the type of a value in words; `seen` are references, to detect cycles."""
        reference = schema.get("$ref", "")
        if reference in seen:
            return "value"
        schema, seen = self._dereference(schema), seen | {reference} if reference else seen
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices and "type" not in schema:
            return " or ".join(dict.fromkeys(self._type_name(each, seen) for each in choices))
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return "string" if all(isinstance(each, str) for each in schema["enum"]) else "value"
        type_name = schema.get("type", "any")
        if type_name == "array":
            return f"array of {self._type_name(schema.get('items', {}), seen)}"
        return " or ".join(type_name) if isinstance(type_name, list) else str(type_name)

    def _object_schema(self, schema: Json, seen: frozenset[str] = frozenset()) -> Json:
        """Return the object with the members: itself, an item, or the fullest choice."""
        reference = schema.get("$ref", "")
        if reference in seen:
            return {}
        schema, seen = self._dereference(schema), seen | {reference} if reference else seen
        if "properties" in schema:
            return schema
        if schema.get("type") == "array":
            return self._object_schema(schema.get("items", {}), seen)
        choices = schema.get("anyOf", schema.get("oneOf", ()))
        owners = [self._object_schema(each, seen) for each in choices]
        return max(owners, key=lambda each: len(each.get("properties", ())), default={})

    def _limits(self, schema: Json) -> Iterator[str]:
        schema = non_null_schema(self._dereference(schema))
        if choices := schema.get("enum"):
            shown = ", ".join(f"`{each}`" for each in choices[:_MAX_CHOICES])
            yield f"One of {shown}{' …' if len(choices) > _MAX_CHOICES else ''}."
        if "format" in schema:
            yield f"Format: {schema['format']}."
        if bounds := _format_bounds(schema):
            yield f"{bounds}."
        if schema.get("default") is not None:
            value = schema["default"]
            yield f"Default: `{value if isinstance(value, str) else json.dumps(value)}`."


def _format_bounds(schema: Json) -> str:
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        minimum, maximum = schema.get(low), schema.get(high)
        if maximum is not None and maximum >= _NO_BOUND:
            continue
        if minimum is not None and maximum is not None:
            return f"{minimum} to {maximum}{unit}"
        if maximum is not None:
            return f"At most {maximum}{unit}"
        if minimum is not None and not (unit and minimum <= 1):
            return f"At least {minimum}{unit}"
    return ""


_CREDENTIALS: Final = {
    ("none", "rest"): "No credential is needed.",
    ("optional", "rest"): "No credential is needed; one that is sent must be valid.",
    ("required", "rest"): "Needs an API key, or an access token for the REST API.",
    ("required", "mcp"): "Needs an access token for the MCP endpoint.",
}


def format_rate(rate: str) -> str:
    """Return a rate for readers: `5 in 10 minutes, 20 a day`."""
    if rate == NO_LIMIT:
        return "no limit"
    return ", ".join(f"{item.amount} {_format_window(item)}" for item in parse_many(rate))


def _format_window(item: RateLimitItem) -> str:
    unit = item.GRANULARITY.name
    if item.multiples > 1:
        return f"in {item.multiples} {unit}s"
    return f"{'an' if unit == 'hour' else 'a'} {unit}"


def _remark(operation: AnyOperation) -> str:
    if operation.body is not None and operation.body.verify_signature is not None:
        return "The mail service calls this, and signs what it sends."
    return "For a person at a browser; programs have no use for it."


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
    return ReferencePage(
        path=DOCS,
        name="Overview",
        title="API",
        description="How to call it: addresses, credentials, errors, limits.",
        prose=Prose(text),
    )


def _problems() -> str:
    kinds = sorted(PROBLEMS.values(), key=lambda kind: kind.status)
    rows = groupby(kinds, key=lambda kind: kind.status)
    return "\n".join(
        f"| {status} | {'; '.join(kind.message for kind in group)} |" for status, group in rows
    )
