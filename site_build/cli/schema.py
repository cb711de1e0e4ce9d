"""`schema`: prints the front matter as JSON Schema (2020-12), or settings of Visual Studio Code.

Its extension Front Matter CMS has forms and checks for the head of a Markdown file. Both outputs
are made from the models that read heads.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

from click import Argument, Choice, Option
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from edge_api.schema.commands import PATH, Arguments
from site_build.cli.terminal import open_console
from site_build.content.front_matter import PELICAN_KEYS, PageFrontMatter, PostFrontMatter
from site_build.content.head import DRAFT_KEYS, RESERVED_SLUGS
from site_build.options import CONTENT
from site_build.preview.server import DEFAULT_PORT
from site_build.site import Kind

Schema = dict[str, Any]

MODELS: dict[Kind, type[PageFrontMatter]] = {"post": PostFrontMatter, "page": PageFrontMatter}

_CONTROL_CHARACTERS = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\ufffe\uffff"
_TEXT_PATTERN = rf"^[^{_CONTROL_CHARACTERS}]*[^\s{_CONTROL_CHARACTERS}][^{_CONTROL_CHARACTERS}]*$"

_ANY_SCALAR = {"type": ["string", "number", "boolean"]}
"""Texts, and values that YAML reads as numbers or booleans, which are kept as they are written."""

_INSTANT_PATTERN = (
    r"^\s*(?:"
    # A day,
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|[12][0-9]))"
    # perhaps with a time
    r"(?:[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
    # and a zone,
    "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?"
    # or any other text that may be a date to dateutil.
    "|(?![0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:|$))(?=.*[0-9]).{6,60}"
    r")\s*$"
)


PARAMS: Final = (
    Argument(
        ["kind"],
        type=Choice(get_args(Kind)),
        default="post",
        help="kind of document (default: post)",
    ),
    Option(
        ["--content"],
        type=PATH,
        default=CONTENT[0].default,
        metavar="DIR",
        help=CONTENT[0].help,
    ),
    Option(["--settings"], is_flag=True, help="print the settings of Visual Studio Code instead"),
)


def run(arguments: Arguments) -> int:
    """Print the schema or the settings."""
    if arguments.settings:
        value = _describe_settings(Path(os.path.relpath(arguments.content)))
    else:
        value = describe_front_matter(arguments.kind)
    open_console().print(json.dumps(value, indent=2, ensure_ascii=False))
    return 0


class _Generator(GenerateJsonSchema):
    """Adds patterns of instants and texts that validators accept, which types alone do not have."""

    def datetime_schema(self, _schema: core_schema.DatetimeSchema) -> Schema:
        """Return the schema of an instant, which may be a number such as 20260301."""
        return {"type": ["string", "integer"], "pattern": _INSTANT_PATTERN, "minimum": 1_000_000}

    def str_schema(self, schema: core_schema.StringSchema) -> Schema:
        """Return the schema of a text; whitespace around it is removed before it is checked."""
        form = schema.get("pattern")
        if not isinstance(form, str):
            return {**_ANY_SCALAR, "pattern": _TEXT_PATTERN}
        longest = schema.get("max_length")
        limit = rf"(?!\s*\S{{{longest + 1}}})" if longest else ""
        return {**_ANY_SCALAR, "pattern": rf"^{limit}\s*{form.strip('^$')}\s*$"}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> Schema:
        """Return the schema of a status, whose words may be in any case."""
        words = "|".join(
            "".join(f"[{sign.upper()}{sign}]" for sign in str(word))
            for word in (*schema["expected"], "skip")
        )
        return {"type": "string", "pattern": rf"^\s*(?:{words})\s*$"}


def describe_front_matter(kind: Kind) -> Schema:
    """Return the schema of the front matter of a post or a page."""
    schema = MODELS[kind].model_json_schema(schema_generator=_Generator)
    required = {*schema["required"]} - {"slug"}  # by default it is made from the title
    properties = {
        name: each if name in required else _allow_empty(each)
        for name, each in schema["properties"].items()
    }
    reserved = "|".join(map(re.escape, sorted(RESERVED_SLUGS[kind])))
    properties["slug"]["not"] = {"type": "string", "pattern": rf"^\s*(?:{reserved})\s*$"}
    for name in ("tags", "aliases", "author"):  # a list, or a text that is split
        properties[name]["anyOf"].append(
            {"type": "array", "items": _ANY_SCALAR} if name == "author" else _ANY_SCALAR
        )
    # YAML reads `no`, the code of Norwegian, as false.
    properties["lang"]["anyOf"][0]["type"] = ["string", "boolean"]
    for alias, name in PELICAN_KEYS.items():
        properties[alias] = {**properties[name], "description": f"Another name for `{name}`."}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": f"The front matter of a {kind}",
        "type": "object",
        "required": sorted(required),
        "properties": {**properties, **dict.fromkeys(sorted(DRAFT_KEYS), False)},
        "allOf": [{"not": {"required": [alias, name]}} for alias, name in PELICAN_KEYS.items()],
    }


def _allow_empty(schema: Schema) -> Schema:
    """Return the schema for a key whose value may be left empty."""
    about: Schema = {name: schema[name] for name in ("title", "description") if name in schema}
    forms = schema.get("anyOf") or [
        {key: value for key, value in schema.items() if key not in {*about, "default"}}
    ]
    known = [form for form in forms if form != {"type": "null"}]
    return {**about, "anyOf": [*known, {"type": "null"}]}


def _describe_settings(content: Path) -> Schema:
    kinds: tuple[Kind, ...] = get_args(Kind)
    return {
        "frontMatter.content.pageFolders": [
            {
                "title": f"{kind.title()}s",
                "path": f"[[workspace]]/{(content / f'{kind}s').as_posix()}",
                "contentTypes": [kind],
            }
            for kind in kinds
        ],
        "frontMatter.content.draftField": {
            "name": "status",
            "type": "choice",
            "choices": ["draft", "hidden", "published"],
        },
        "frontMatter.preview.host": f"http://127.0.0.1:{DEFAULT_PORT}",
        "frontMatter.taxonomy.contentTypes": [
            {
                "name": kind,
                "pageBundle": False,
                "fields": [
                    _describe_field(name, MODELS[kind]) for name in PageFrontMatter.model_fields
                ],
            }
            for kind in kinds
        ],
    }


_FIELD_TYPES: Mapping[str, Schema] = {
    "status": {"type": "draft"},
    "tags": {"type": "tags"},
    "aliases": {"type": "list"},
    "date": {"type": "datetime", "isPublishDate": True},
    "updated": {"type": "datetime", "isPublishDate": False},
    "slug": {"type": "slug", "editable": True},
    "title": {"type": "string", "single": True},
}
"""Types of the extension's fields, by key; all others are texts of several lines."""


def _describe_field(name: str, model: type[PageFrontMatter]) -> Schema:
    field = model.model_fields[name]
    return {
        "name": name,
        "title": name.title(),
        "description": field.description,
        **_FIELD_TYPES.get(name, {"type": "string", "single": False}),
        "required": field.is_required() and name != "slug",
    }
