"""Members of a JSON Schema as rows for a reader: a name, a kind, a sentence.

Two levels below the top are written out; what lies deeper is left to the OpenAPI document.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from edge_api.api.reference.prose import Prose
from edge_api.api.reference.values import Field

Schema = Mapping[str, Any]
LEVELS: Final = 3
_COMPONENT: Final = "#/components/schemas/"
_CHOICES_MOST: Final = 12
_HUGE: Final = 10**18
"""A bound that only says that the number fits into the store."""


class Marks(NamedTuple):
    """What is said of a member that is always there, and of one that need not be."""

    there: str
    absent: str


SENT: Final = Marks("needed", "")
RECEIVED: Final = Marks("", "may be absent")


class Schemas:
    """Reads schemas; `components` are those that others refer to, by their names."""

    def __init__(self, components: Schema) -> None:
        self._components = components

    def fields(self, schema: Schema, marks: Marks, prefix: str = "") -> Iterator[Field]:
        """Yield the members of what `schema` describes, each before the members of its own."""
        owner = self._owner(schema)
        for name, member in owner.get("properties", {}).items():
            mark = marks.there if name in owner.get("required", ()) else marks.absent
            yield self.field(f"{prefix}{name}", member, mark)
            if prefix.count(".") < LEVELS - 1:
                step = "[]." if self._is_list(member) else "."
                yield from self.fields(member, marks, f"{prefix}{name}{step}")

    def example(self, schema: Schema) -> Any:
        """Return an example that the schema gives, its items, or its first choice; else `None`."""
        schema = self._resolve(schema)
        if schema.get("type") == "array":
            item = self.example(schema["items"])
            return None if item is None else [item]
        choices = schema.get("anyOf", ())
        return self.example(choices[0]) if choices else next(iter(schema.get("examples", ())), None)

    def is_deeper(self, schema: Schema, level: int = 1) -> bool:
        """Tell whether there are members below those that `fields` yields."""
        members = self._owner(schema).get("properties", {}).values()
        if level > LEVELS:
            return bool(members)
        return any(self.is_deeper(member, level + 1) for member in members)

    def field(self, name: str, schema: Schema, mark: str, place: str = "") -> Field:
        """Return the row of one member or parameter."""
        sentence = " ".join(filter(None, (schema.get("description", ""), *self._limits(schema))))
        return Field(name, self.kind(schema), mark, Prose(sentence), place)

    def kind(self, schema: Schema, within: frozenset[str] = frozenset()) -> str:
        """Return what a value is, in a word or a few; `within` are the references on the way."""
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
        return self._type(schema, within)

    def _type(self, schema: Schema, within: frozenset[str]) -> str:
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
        """Return the object whose members are meant: itself, an item, or the fullest choice."""
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

    def _is_list(self, schema: Schema) -> bool:
        return self._resolve(schema).get("type") == "array"

    def _limits(self, schema: Schema) -> Iterator[str]:
        """Yield sentences on what a value may be."""
        schema = _plain(self._resolve(schema))
        if choices := schema.get("enum"):
            shown = ", ".join(f"`{each}`" for each in choices[:_CHOICES_MOST])
            yield f"One of {shown}{' …' if len(choices) > _CHOICES_MOST else ''}."
        if "format" in schema:
            yield f"Format: {schema['format']}."
        if span := _span(schema):
            yield f"{span}."
        if schema.get("default") is not None:
            yield f"Default: `{_spell(schema['default'])}`."


def _spell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _plain(schema: Schema) -> Schema:
    """Return what a value that may be null is when it is not."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return {**choices[0], **schema} if len(choices) == 1 else schema


def _span(schema: Schema) -> str:
    """Return from what to what a number, a text or a list goes."""
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
