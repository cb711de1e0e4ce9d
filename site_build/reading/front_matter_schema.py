"""The front matter as JSON Schema (2020-12), for editors that know such schemas.

It is made from the models that read files. A schema sees one value at a time and no calendar, so
`check` still finds more: an `updated` before its `date`, a leap day in a common year, a tag without
a letter, a slug that another file has.
"""

import re
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from site_build.post import Kind
from site_build.reading.front_matter import ALIASES, PageFrontMatter, PostFrontMatter
from site_build.reading.head import DRAFT_KEYS, RESERVED_SLUGS

Schema = dict[str, Any]

MODELS: dict[Kind, type[PageFrontMatter]] = {"post": PostFrontMatter, "page": PageFrontMatter}

MADE_HERE = "Made by `python -m site_build schema`; write nothing into it by hand."

_CONTROL = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\ufffe\uffff"
_TEXT = rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$"

_DAY = (
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|[12][0-9]))"
)
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_ZONE = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_YAML_INSTANT = (
    r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])(?:[Tt]|[ \t]+)"
    r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+](?:[01]?[0-9]|2[0-3])(?::[0-5][0-9])?))?"
)
"""What YAML 1.1 itself takes for an instant (the type `timestamp` of its repository)."""

_INSTANT = rf"^\s*(?:{_DAY}(?:[Tt ]{_TIME}{_ZONE}?)?|{_YAML_INSTANT})\s*$"


class _Generator(GenerateJsonSchema):
    """Says of instants and texts what their validators take, which the types alone do not say."""

    def datetime_schema(self, _schema: core_schema.DatetimeSchema) -> Schema:
        """Return the form of an instant: YAML gives it as text where the editor reads YAML 1.2."""
        return {"type": "string", "pattern": _INSTANT}

    def str_schema(self, schema: core_schema.StringSchema) -> Schema:
        """Return the form of a text; whitespace around it is taken off before it is judged."""
        form = schema.get("pattern")
        if not isinstance(form, str):
            return {"type": "string", "pattern": _TEXT}
        longest = schema.get("max_length")
        limit = rf"(?!\s*\S{{{longest + 1}}})" if longest else ""
        return {"type": "string", "pattern": rf"^{limit}\s*{form.strip('^$')}\s*$"}


def describe_front_matter(kind: Kind) -> Schema:
    """Return the schema of the front matter of a post or a page."""
    model = MODELS[kind]
    schema = model.model_json_schema(schema_generator=_Generator)
    required = set(schema["required"])
    properties = {
        name: each if name in required else _allow_nothing(each)
        for name, each in schema["properties"].items()
    }
    properties["slug"]["not"] = {"pattern": _match_any(RESERVED_SLUGS[kind])}
    for alias, name in ALIASES.items():
        properties[alias] = {**properties[name], "description": f"Another name for `{name}`."}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "$comment": MADE_HERE,
        "title": f"The front matter of a {kind}",
        "type": "object",
        "required": sorted(required),
        "properties": {**properties, **dict.fromkeys(sorted(DRAFT_KEYS), False)},
        "allOf": [{"not": {"required": [alias, name]}} for alias, name in ALIASES.items()],
    }


def _allow_nothing(schema: Schema) -> Schema:
    """Return the schema for a key whose value may be left empty."""
    about: Schema = {name: schema[name] for name in ("title", "description") if name in schema}
    forms = schema.get("anyOf") or [
        {key: value for key, value in schema.items() if key not in {*about, "default"}}
    ]
    known = [form for form in forms if form != {"type": "null"}]
    return {**about, "anyOf": [*known, {"type": "null"}]}


def _match_any(words: frozenset[str]) -> str:
    return rf"^\s*(?:{'|'.join(map(re.escape, sorted(words)))})\s*$"
