"""The front matter as JSON Schema (2020-12), and where Visual Studio Code looks for it.

Its extension Front Matter CMS has forms and checks for the head of a Markdown file; what it knows
of a key is made from the same models that read files. Nothing that somebody else wrote is changed.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from site_build.faults import BuildError
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


FOLDER = Path(".vscode")
_SETTINGS = "settings.json"
_TYPES = "frontMatter.taxonomy.contentTypes"

Settings = dict[str, Any]


class SettingsError(BuildError):
    """Settings that somebody wrote stand in the way; nothing was written."""

    exitcode = 2


def write_editor_files(folder: Path, content: Path, preview: str) -> list[Path]:
    """Write schemas and settings below `folder`; return the files that are new or changed.

    `content` is as seen from `folder`, `preview` the origin of the preview. Raises SettingsError.
    """
    home = folder / FOLDER
    texts = {home / f"{kind}.schema.json": describe_front_matter(kind) for kind in get_args(Kind)}
    for path in texts:
        _require_own(path)
    settings = home / _SETTINGS
    texts[settings] = _merge(settings, describe_settings(content, preview))
    changed = {path: _dump(value) for path, value in texts.items() if _read(path) != _dump(value)}
    try:
        home.mkdir(parents=True, exist_ok=True)
        for path, text in changed.items():
            partial = path.with_name(f".{path.name}.part")
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
    except OSError as error:
        raise SettingsError(f"{error.filename} cannot be written: {error.strerror}") from error
    return list(changed)


def describe_settings(content: Path, preview: str) -> Settings:
    """Return the settings of Front Matter CMS for this content."""
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
            "choices": ["draft", "published"],
        },
        "frontMatter.preview.host": preview,
        _TYPES: [_describe_type(kind) for kind in kinds],
    }


def _describe_type(kind: Kind) -> Settings:
    model = MODELS[kind]
    return {
        "name": kind,
        "pageBundle": False,
        "fields": [_describe_field(name, model) for name in model.model_fields],
    }


def _describe_field(name: str, model: type[PageFrontMatter]) -> Settings:
    field = model.model_fields[name]
    about = {"name": name, "title": name.title(), "description": field.description}
    return {**about, **_choose_form(name, model), "required": field.is_required()}


def _choose_form(name: str, model: type[PageFrontMatter]) -> Settings:
    """Return how the extension lets a key be filled in: by what its model takes."""
    schema = model.model_json_schema()["properties"][name]
    forms = [schema, *schema.get("anyOf", ())]
    if name == "status":
        return {"type": "draft"}
    if name == "tags":
        return {"type": "tags"}
    if name == "aliases":
        return {"type": "list"}
    if any(form.get("format") == "date-time" for form in forms):
        return {"type": "datetime", "isPublishDate": name == "date"}
    if name == "slug":
        return {"type": "slug", "editable": True}
    return {"type": "string", "single": name == "title"}


def _merge(path: Path, ours: Settings) -> Settings:
    """Return the settings that are there and ours; raises SettingsError where they differ."""
    theirs = _load(path)
    for name, value in ours.items():
        if theirs.get(name, value) != value:
            raise SettingsError(
                f"{path} has a {name} of its own, so nothing was written; take that out, or "
                "copy what you like from what `schema --settings` prints"
            )
    return {**theirs, **ours}


def _load(path: Path) -> Settings:
    text = _read(path)
    if text is None or not text.strip():
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise SettingsError(
            f"{path} holds comments or is no JSON, so nothing was written; copy what you like "
            "from what `schema --settings` prints"
        )
    return value


def _require_own(path: Path) -> None:
    text = _read(path)
    if text is not None and MADE_HERE not in text:
        raise SettingsError(f"{path} was not made here, so nothing was written; move it away")


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read; mend or move it ({error})") from None


def _dump(value: Mapping[str, Any]) -> str:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n"


def relate(content: Path, folder: Path) -> Path:
    """Return the content folder as seen from `folder`; raises SettingsError outside of it."""
    relative = os.path.relpath(content, folder)
    if relative.startswith(os.pardir):
        raise SettingsError(f"{content} does not lie below this folder; open the one that has it")
    return Path(relative)
