"""Operations as entries of the reference, with members of JSON Schemas as rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from limits import RateLimitItem, parse_many

from edge_api.auth.rate_limits import NO_LIMIT
from edge_api.operation.model import AnyOperation
from edge_api.operation.reference.languages import is_callable, make_call, make_examples
from edge_api.operation.reference.values import Body, Code, Entry, Field, Prose, ResponseEntry

Schema = Mapping[str, Any]
LEVELS: Final = 3
_COMPONENT: Final = "#/components/schemas/"
_CHOICES_MOST: Final = 12
_HUGE: Final = 10**18  # a bound that only says that the number fits into the store


class Marks(NamedTuple):
    """The marks of members that are required, and of those that are not."""

    there: str
    absent: str


SENT: Final = Marks("needed", "")
RECEIVED: Final = Marks("", "may be absent")


class Schemas:
    """Reads schemas; `components` are those that others refer to."""

    def __init__(self, components: Schema) -> None:
        self._components = components

    def fields(self, schema: Schema, marks: Marks, prefix: str = "") -> Iterator[Field]:
        """Yield the members of a schema, each before its own members."""
        owner = self._owner(schema)
        for name, member in owner.get("properties", {}).items():
            mark = marks.there if name in owner.get("required", ()) else marks.absent
            yield self.field(f"{prefix}{name}", member, mark)
            if prefix.count(".") < LEVELS - 1:
                step = "[]." if self._resolve(member).get("type") == "array" else "."
                yield from self.fields(member, marks, f"{prefix}{name}{step}")

    def example(self, schema: Schema) -> Any:
        """Return an example of the schema, its items or its first choice; else `None`."""
        schema = self._resolve(schema)
        if schema.get("type") == "array":
            item = self.example(schema["items"])
            return None if item is None else [item]
        choices = schema.get("anyOf", ())
        return self.example(choices[0]) if choices else next(iter(schema.get("examples", ())), None)

    def is_truncated(self, schema: Schema, level: int = 1) -> bool:
        """Return whether there are members below those of `fields`."""
        members = self._owner(schema).get("properties", {}).values()
        if level > LEVELS:
            return bool(members)
        return any(self.is_truncated(member, level + 1) for member in members)

    def field(self, name: str, schema: Schema, mark: str, place: str = "") -> Field:
        """Return the row of one member or parameter."""
        description = " ".join(filter(None, (schema.get("description", ""), *self._limits(schema))))
        return Field(name, self.kind(schema), mark, Prose(description), place)

    def kind(self, schema: Schema, within: frozenset[str] = frozenset()) -> str:
        """Return the type of a value in words; `within` are the references on the way."""
        reference = schema.get("$ref", "")
        if reference in within:
            return "value"
        schema, within = self._resolve(schema), within | {reference} if reference else within
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices and "type" not in schema:
            return " or ".join(dict.fromkeys(self.kind(each, within) for each in choices))
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return "string" if all(isinstance(each, str) for each in schema["enum"]) else "value"
        kind = schema.get("type", "any")
        if kind == "array":
            return f"array of {self.kind(schema.get('items', {}), within)}"
        return " or ".join(kind) if isinstance(kind, list) else str(kind)

    def _resolve(self, schema: Schema) -> Schema:
        reference = schema.get("$ref", "")
        if not reference.startswith(_COMPONENT):
            return schema
        found: Schema = self._components[reference.removeprefix(_COMPONENT)]
        return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}

    def _owner(self, schema: Schema, within: frozenset[str] = frozenset()) -> Schema:
        """Return the object with the members: itself, an item, or the fullest choice."""
        reference = schema.get("$ref", "")
        if reference in within:
            return {}
        schema, within = self._resolve(schema), within | {reference} if reference else within
        if "properties" in schema:
            return schema
        if schema.get("type") == "array":
            return self._owner(schema.get("items", {}), within)
        choices = schema.get("anyOf", schema.get("oneOf", ()))
        owners = [self._owner(each, within) for each in choices]
        return max(owners, key=lambda each: len(each.get("properties", ())), default={})

    def _limits(self, schema: Schema) -> Iterator[str]:
        schema = _plain(self._resolve(schema))
        if choices := schema.get("enum"):
            shown = ", ".join(f"`{each}`" for each in choices[:_CHOICES_MOST])
            yield f"One of {shown}{' …' if len(choices) > _CHOICES_MOST else ''}."
        if "format" in schema:
            yield f"Format: {schema['format']}."
        if span := _span(schema):
            yield f"{span}."
        if schema.get("default") is not None:
            value = schema["default"]
            yield f"Default: `{value if isinstance(value, str) else json.dumps(value)}`."


def _plain(schema: Schema) -> Schema:
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return {**choices[0], **schema} if len(choices) == 1 else schema


def _span(schema: Schema) -> str:
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        least, most = schema.get(low), schema.get(high)
        if most is not None and most >= _HUGE:
            continue
        if least is not None and most is not None:
            return f"{least} to {most}{unit}"
        if most is not None:
            return f"At most {most}{unit}"
        if least is not None and not (unit and least <= 1):
            return f"At least {least}{unit}"
    return ""


Json = Mapping[str, Any]
_FIRST_FAILURE: Final = 400


class Entries:
    """Makes entries; `document` is the OpenAPI document of the same operations."""

    def __init__(self, document: Json, site_url: str, limits: Mapping[str, str]) -> None:
        """Take the rate limits too, by their names."""
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
            body=self._body(entry.get("requestBody", {}).get("content"), SENT),
            answers=tuple(each for each in answers if each.status in responses),
            problems=tuple(each for each in answers if each.status not in responses),
            examples=make_examples(make_call(operation, entry, self._site_url))
            if callable_
            else (),
            remark=Prose("" if callable_ else _remark(operation)),
        )

    def _resolve(self, entry: Json) -> Json:
        responses = {name: self._referred(each) for name, each in entry["responses"].items()}
        parameters = [self._referred(each) for each in entry.get("parameters", ())]
        return {**entry, "responses": responses, "parameters": parameters}

    def _referred(self, value: Json) -> Json:
        if "$ref" not in value:
            return value
        _, _, kind, name = value["$ref"].split("/")
        found: Json = self._document["components"][kind][name]
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
            mark = SENT.there if each.get("required", False) else SENT.absent
            yield self._schemas.field(each["name"], schema, mark, each["in"])

    def _answer(self, status: str, response: Json) -> ResponseEntry:
        headers = response.get("headers", {})
        content = response.get("content") if int(status) < _FIRST_FAILURE else None
        return ResponseEntry(
            status=status,
            phrase=HTTPStatus(int(status)).phrase,
            description=Prose(response["description"]),
            headers={name: Prose(each["description"]) for name, each in headers.items()},
            body=self._body(content, RECEIVED),
        )

    def _body(self, content: Json | None, marks: Marks) -> Body | None:
        if not content:
            return None
        first = next(iter(content.values()))
        schema = first["schema"]
        example = None if marks is SENT else first.get("example", self._schemas.example(schema))
        text = json.dumps(example, ensure_ascii=False, indent=2)
        return Body(
            media_types=tuple(content),
            fields=tuple(self._schemas.fields(schema, marks)),
            is_truncated=self._schemas.is_truncated(schema),
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
