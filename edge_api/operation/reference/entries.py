"""Operations as entries of the reference, with members of JSON Schemas as rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from limits import RateLimitItem, parse_many

from edge_api.auth.rate_limits import NO_LIMIT
from edge_api.operation.model import AnyOperation
from edge_api.operation.openapi import non_null_schema
from edge_api.operation.reference.languages import is_callable, make_call, make_examples
from edge_api.operation.reference.values import Body, Code, Entry, Field, Prose, ResponseEntry

Schema = Mapping[str, Any]
MAX_DEPTH: Final = 3
_COMPONENT: Final = "#/components/schemas/"
_MAX_CHOICES: Final = 12
_NO_BOUND: Final = 10**18  # a bound that only says that the number fits into the store


class Marks(NamedTuple):
    """The labels of required and of optional members."""

    required: str
    optional: str


REQUEST: Final = Marks("needed", "")
RESPONSE: Final = Marks("", "may be absent")


class Schemas:
    """Reads schemas; `components` are those that others refer to."""

    def __init__(self, components: Schema) -> None:
        self._components = components

    def fields(
        self, schema: Schema, marks: Marks, depth: int = MAX_DEPTH, prefix: str = ""
    ) -> Iterator[Field]:
        """Yield the members of a schema in depth-first order, down to a depth."""
        parent = self._object_schema(schema)
        for name, member in parent.get("properties", {}).items():
            mark = marks.required if name in parent.get("required", ()) else marks.optional
            yield self.field(f"{prefix}{name}", member, mark)
            if depth > 1:
                step = "[]." if self._resolve(member).get("type") == "array" else "."
                yield from self.fields(member, marks, depth - 1, f"{prefix}{name}{step}")

    def example(self, schema: Schema) -> Any:
        """Return an example of the schema, its items or its first choice; else `None`."""
        schema = self._resolve(schema)
        if schema.get("type") == "array":
            item = self.example(schema["items"])
            return None if item is None else [item]
        choices = schema.get("anyOf", ())
        return self.example(choices[0]) if choices else next(iter(schema.get("examples", ())), None)

    def field(self, name: str, schema: Schema, mark: str, place: str = "") -> Field:
        """Return the row of one member or parameter."""
        description = " ".join(filter(None, (schema.get("description", ""), *self._limits(schema))))
        return Field(name, self.type_name(schema), mark, Prose(description), place)

    def type_name(self, schema: Schema, seen: frozenset[str] = frozenset()) -> str:
        """Return the type of a value in words; `seen` are references, to detect cycles."""
        reference = schema.get("$ref", "")
        if reference in seen:
            return "value"
        schema, seen = self._resolve(schema), seen | {reference} if reference else seen
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices and "type" not in schema:
            return " or ".join(dict.fromkeys(self.type_name(each, seen) for each in choices))
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return "string" if all(isinstance(each, str) for each in schema["enum"]) else "value"
        type_name = schema.get("type", "any")
        if type_name == "array":
            return f"array of {self.type_name(schema.get('items', {}), seen)}"
        return " or ".join(type_name) if isinstance(type_name, list) else str(type_name)

    def _resolve(self, schema: Schema) -> Schema:
        reference = schema.get("$ref", "")
        if not reference.startswith(_COMPONENT):
            return schema
        found: Schema = self._components[reference.removeprefix(_COMPONENT)]
        return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}

    def _object_schema(self, schema: Schema, seen: frozenset[str] = frozenset()) -> Schema:
        """Return the object with the members: itself, an item, or the fullest choice."""
        reference = schema.get("$ref", "")
        if reference in seen:
            return {}
        schema, seen = self._resolve(schema), seen | {reference} if reference else seen
        if "properties" in schema:
            return schema
        if schema.get("type") == "array":
            return self._object_schema(schema.get("items", {}), seen)
        choices = schema.get("anyOf", schema.get("oneOf", ()))
        owners = [self._object_schema(each, seen) for each in choices]
        return max(owners, key=lambda each: len(each.get("properties", ())), default={})

    def _limits(self, schema: Schema) -> Iterator[str]:
        schema = non_null_schema(self._resolve(schema))
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


def _format_bounds(schema: Schema) -> str:
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


Json = Mapping[str, Any]
_FIRST_FAILURE: Final = 400


class Entries:
    """Makes entries; `document` is the OpenAPI document of the same operations."""

    def __init__(self, document: Json, site_url: str, limits: Mapping[str, str]) -> None:
        """`limits` are the rates by name."""
        self._document = document
        self._tags: Sequence[Json] = document["tags"]
        self._schemas = Schemas(document["components"]["schemas"])
        self._site_url = site_url
        self._limits = limits

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
        responses = {name: self._deref(each) for name, each in entry["responses"].items()}
        parameters = [self._deref(each) for each in entry.get("parameters", ())]
        return {**entry, "responses": responses, "parameters": parameters}

    def _deref(self, value: Json) -> Json:
        if "$ref" not in value:
            return value
        _, _, section, name = value["$ref"].split("/")
        found: Json = self._document["components"][section][name]
        return found

    def _access(self, operation: AnyOperation) -> Iterator[str]:
        yield _CREDENTIALS[operation.credential, operation.audience]
        if operation.scope:
            needed = "Scope" if operation.credential == "required" else "Its scope"
            yield f"{needed}: `{operation.scope}`."
        for name in operation.limits:
            if (rate := self._limits[name]) != NO_LIMIT:
                yield f"Limit `{name}`: {format_rate(rate)}."

    def _parameters(self, entry: Json) -> Iterator[Field]:
        for each in entry["parameters"]:
            schema = {**each["schema"], "description": each.get("description", "")}
            mark = REQUEST.required if each.get("required", False) else REQUEST.optional
            yield self._schemas.field(each["name"], schema, mark, each["in"])

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
        example = None if marks is REQUEST else first.get("example", self._schemas.example(schema))
        text = json.dumps(example, ensure_ascii=False, indent=2)
        fields = tuple(self._schemas.fields(schema, marks))
        deeper = self._schemas.fields(schema, marks, MAX_DEPTH + 1)
        return Body(
            media_types=tuple(content),
            fields=fields,
            is_truncated=sum(1 for _ in deeper) > len(fields),
            example=None if example is None else Code("json", text),
        )


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
