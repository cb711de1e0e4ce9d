"""The pages of the API reference: an overview, and a page for each group of operations.

A template writes the Markdown of a page, which is served as it is and as HTML that markdown-it
makes of it; `is_page` is set for the HTML. Loaded when the reference is first
requested: an edge starts without a renderer.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from typing import Any, ClassVar, Final

from limits import parse_many
from markdown_it import MarkdownIt
from markupsafe import Markup
from pygments import highlight
from pygments.lexers import get_lexer_by_name

from edge_api.auth.rate_limits import COUNTED_BY, NO_LIMIT
from edge_api.db.problems import PROBLEMS
from edge_api.operation.model import AnyOperation
from edge_api.operation.openapi import non_null_schema
from edge_api.operation.reference.samples import TEMPLATES, make_samples
from edge_api.schema.credentials import SCOPES
from edge_api.schema.highlighting import CodeFormatter
from edge_api.schema.paths import AUDIENCES, DOCS, GROUPS

Json = Mapping[str, Any]
DocumentedMember = tuple[str, str, str, str]
"""A parameter or a member: its name (`owner.name` for a member of a member), a word that says
whether it is required, its type and its description."""

MAX_DEPTH: Final = 3
_COMPONENTS_PREFIX: Final = "#/components/"
_MAX_CHOICES: Final = 12

_find_lexer = cache(get_lexer_by_name)
_FORMATTER: Final = CodeFormatter(nowrap=True)


@dataclass(frozen=True, slots=True)
class ReferencePage:
    """One page of the reference."""

    template_fields: ClassVar = frozenset(
        ["path", "name", "title", "description", "markdown", "html", "entries", "prose"]
    )
    path: str
    name: str  # shown in the list of pages
    title: str
    description: str
    _write: Callable[..., str]
    """Returns the text in Markdown; with `is_page`, the text that HTML is made from."""

    entries = ()  # for templates of builds before 1.0.2, which loop over it below `prose.html`

    @property
    def prose(self) -> "ReferencePage":
        """The page, for templates of builds before 1.0.2."""
        return self

    @property
    def markdown(self) -> str:
        """The page as a text in Markdown."""
        return f"# {self.title}\n\n{self.description}\n\n{self._write(is_page=False)}\n"

    @property
    def html(self) -> Markup:
        """The text below title and description."""
        return Markup(_MARKDOWN.render(self._write(is_page=True)))  # noqa: S704  ours alone


def _render_fence(_: Any, tokens: Any, index: int, *_rest: Any) -> str:
    token = tokens[index]
    html = highlight(token.content, _find_lexer(token.info or "text"), _FORMATTER)
    return f'<div class="highlight"><pre tabindex="0"><code>{html}</code></pre></div>\n'


def _set_attributes(state: Any) -> None:
    """Add anchors to sections, and `scope` to the header cells of columns and rows."""
    for index, token in enumerate(state.tokens):
        if token.type == "heading_open" and token.tag == "h2":
            title = state.tokens[index + 1].content.lower()
            token.attrSet("id", re.sub("[^a-z0-9]+", "-", title).strip("-"))
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        elif token.type == "td_open" and state.tokens[index - 1].type == "tr_open":
            token.tag = state.tokens[index + 2].tag = "th"
            token.attrSet("scope", "row")


_MARKDOWN: Final = MarkdownIt("commonmark").enable("table")
_MARKDOWN.core.ruler.push("attributes", _set_attributes)
_MARKDOWN.add_render_rule("fence", _render_fence)


def make_pages(
    operations: Sequence[AnyOperation], document: Json, site_url: str, limits: Mapping[str, str]
) -> tuple[ReferencePage, ...]:
    """Return every page, the overview first.

    `document` is the OpenAPI document of the same operations; `limits` are the rates by name.
    """
    schemas = _Schemas(document)
    about = {tag["name"]: tag.get("description", "") for tag in document["tags"]}
    shared = {
        "site_url": site_url,
        "rates": {name: format_rate(rate) for name, rate in limits.items()},
        "schemas": schemas,
    }
    description = "How to call it: addresses, credentials, errors, limits."
    write = partial(_write, "overview.md", shared)
    pages = [ReferencePage(DOCS, "Overview", "API", description, write)]
    for slug, group in GROUPS.items():
        written = []
        for operation in (each for tag in group.tags for each in operations if each.tag == tag):
            entry = schemas.resolve_entry(operation)
            samples = make_samples(operation, entry["parameters"], site_url)
            written.append((operation, entry, samples))
        values = {
            **shared,
            "about": [about.get(tag, "") for tag in group.tags],
            "operations": written,
        }
        path, title = f"{DOCS}{slug}/", f"API: {group.name}"
        write = partial(_write, "operations.md", values)
        pages.append(ReferencePage(path, group.name, title, group.description, write))
    return tuple(pages)


def _write(template: str, values: Mapping[str, Any], *, is_page: bool) -> str:
    text = TEMPLATES.get_template(template).render(values, is_page=is_page)
    return re.sub("\n{3,}", "\n\n", text).strip()


def format_rate(rate: str) -> str:
    """Return a rate for readers: `5 in 10 minutes, 20 a day`."""
    texts = []
    for item in parse_many(rate) if rate != NO_LIMIT else ():
        unit = item.GRANULARITY.name
        window = f"in {item.multiples} {unit}s" if item.multiples > 1 else f"a {unit}"
        texts.append(f"{item.amount} {window.replace('a hour', 'an hour')}")
    return ", ".join(texts) or "no limit"


class _Schemas:
    """Reads the entries of operations, and JSON Schemas, of an OpenAPI document."""

    def __init__(self, document: Json) -> None:
        self._document = document

    def resolve_entry(self, operation: AnyOperation) -> Json:
        """Return the entry of an operation, its parameters and responses without references."""
        entry = self._document["paths"][operation.path][operation.method.lower()]
        parameters = [self._dereference(each) for each in entry.get("parameters", ())]
        responses = {name: self._dereference(each) for name, each in entry["responses"].items()}
        return {**entry, "parameters": parameters, "responses": responses}

    def _dereference(self, value: Json) -> Json:
        """Return the component that a value refers to, with the value's own members."""
        if not value.get("$ref", "").startswith(_COMPONENTS_PREFIX):
            return value
        section, name = value["$ref"].removeprefix(_COMPONENTS_PREFIX).split("/")
        found: Json = self._document["components"][section][name]
        return {**found, **{key: each for key, each in value.items() if key != "$ref"}}

    def list_parameters(self, parameters: Sequence[Json]) -> Iterator[DocumentedMember]:
        """Yield the rows of parameters."""
        for each in parameters:
            schema = {**each["schema"], "description": each.get("description", "")}
            mark = "needed" if each.get("required") else ""
            yield self._make_row(each["name"], mark, schema, f", in the {each['in']}")

    def list_members(
        self, schema: Json, marks: tuple[str, str], depth: int = MAX_DEPTH, prefix: str = ""
    ) -> Iterator[DocumentedMember]:
        """Yield the rows of members, depth first; `marks` are words for required and optional."""
        parent = self._find_object(schema)
        for name, member in parent.get("properties", {}).items():
            mark = marks[name not in parent.get("required", ())]
            yield self._make_row(f"{prefix}{name}", mark, member)
            if depth > 1:
                step = "[]." if self._dereference(member).get("type") == "array" else "."
                yield from self.list_members(member, marks, depth - 1, f"{prefix}{name}{step}")

    def _make_row(self, name: str, mark: str, schema: Json, place: str = "") -> DocumentedMember:
        texts = filter(None, (schema.get("description"), *self._list_bounds(schema)))
        return name, mark, f"{self._name_type(schema)}{place}", " ".join(texts)

    def _find_object(self, schema: Json) -> Json:
        """Return the schema with the members: itself, its items, or its largest alternative."""
        schema = self._dereference(schema)
        if "properties" in schema:
            return schema
        if schema.get("type") == "array":
            return self._find_object(schema.get("items", {}))
        owners = map(self._find_object, schema.get("anyOf", schema.get("oneOf", ())))
        return max(owners, key=lambda each: len(each.get("properties", ())), default={})

    def find_example(self, schema: Json) -> Any:
        """Return an example of a schema, of its first alternative or of its items; else `None`."""
        schema = self._dereference(schema)
        schema = self._dereference(next(iter(schema.get("anyOf", ())), schema))
        if schema.get("type") == "array":
            return [item] if (item := self.find_example(schema["items"])) is not None else None
        return next(iter(schema.get("examples", ())), None)

    def _name_type(self, schema: Json) -> str:
        """Return the type of a value in words."""
        schema = self._dereference(schema)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices and "type" not in schema:
            return " or ".join(dict.fromkeys(map(self._name_type, choices)))
        if "const" in schema:
            return json.dumps(schema["const"])
        kind = schema.get("type", "string" if "enum" in schema else "any")
        if kind == "array":
            return f"array of {self._name_type(schema.get('items', {}))}"
        return kind if isinstance(kind, str) else " or ".join(kind)

    def _list_bounds(self, schema: Json) -> Iterator[str]:
        schema = non_null_schema(self._dereference(schema))
        if choices := schema.get("enum"):
            shown = ", ".join(f"`{each}`" for each in choices[:_MAX_CHOICES])
            yield f"One of {shown}{' …' if len(choices) > _MAX_CHOICES else ''}."
        if "format" in schema:
            yield f"Format: {schema['format']}."
        for low, high, unit in (
            ("minimum", "maximum", ""),
            ("minLength", "maxLength", " characters"),
            ("minItems", "maxItems", " items"),
        ):
            minimum, maximum = schema.get(low), schema.get(high)
            # A greater bound only says that the number fits into the store.
            if maximum is not None and maximum < 10**18:
                yield f"{'At most' if minimum is None else f'{minimum} to'} {maximum}{unit}."
            elif maximum is None and minimum is not None and not (unit and minimum <= 1):
                yield f"At least {minimum}{unit}."
        if (value := schema.get("default")) is not None:
            yield f"Default: `{value if isinstance(value, str) else json.dumps(value)}`."


TEMPLATES.globals |= {
    "credentials": {
        ("none", "rest"): "No credential is needed.",
        ("optional", "rest"): "No credential is needed; one that is sent must be valid.",
        ("required", "rest"): "Needs an API key, or an access token for the REST API.",
        ("required", "mcp"): "Needs an access token for the MCP endpoint.",
    },
    "docs": DOCS,
    "groups": GROUPS,
    "scopes": SCOPES,
    "counted_by": COUNTED_BY,
    "mcp": AUDIENCES["mcp"],
    "problems": PROBLEMS,
    "phrases": {str(each.value): each.phrase for each in HTTPStatus},
}
TEMPLATES.filters["json"] = partial(json.dumps, ensure_ascii=False, indent=2)
