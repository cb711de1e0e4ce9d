"""What an editor is told of the front matter, in the folder where Visual Studio Code looks for it.

Its extension Front Matter CMS has forms and checks for the head of a Markdown file; what it knows
of a key is made from the same models that read files. Nothing that somebody else wrote is changed.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from site_build.faults import BuildError
from site_build.post import Kind
from site_build.reading.front_matter import PageFrontMatter
from site_build.reading.front_matter_schema import MADE_HERE, MODELS, describe_front_matter

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
