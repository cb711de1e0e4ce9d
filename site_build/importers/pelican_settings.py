"""The settings of a Pelican site, read without running them unless their owner says so."""

import ast
import os
import posixpath
import re
from copy import deepcopy
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from pelican.settings import (  # type: ignore[import-untyped]
    configure_settings,
    handle_deprecated_settings,
)

from site_build.addresses import name_file
from site_build.errors import BuildError
from site_build.importers.imported import Imported, UnreadableJournal, read_text, walk
from site_build.pelican_plugin.settings import DEFAULTS, IGNORED, REFUSED, read_file

_NAME = re.compile(
    r"^(SITENAME|SITEURL|(?:ARTICLE|PAGE)_(?:URL|SAVE_AS|PATHS)|DEFAULT_PAGINATION)\s*[:=]", re.M
)
"""Names that tell a file of settings from other programs."""
_DEEPEST = 3
"""Folders above such a file."""
_PUBLISHED = re.compile("publish|prod|deploy|live|release")
"""Names of files with what differs where the site is published."""
_LONGEST = 100_000
"""Characters of a value as Python writes it: a list of lists of lists must not fill the memory."""
_FORM = re.compile(r"(?:[^{}]|\{\w+\}|\{date:[^{}]{1,20}\})*")
"""An address with fields; other formats can fill the memory."""
_SLOW = re.compile(r"\)[*+{]|(?:[*+][^*+]*){7}")
"""In regular expressions that can take years: a group is repeated, or too much is."""
_FIELDS = {"slug", "date", "category", "lang", "author"}
"""What addresses of this journal may be made of."""
_UNREAD = object()

_REASONS = {
    "the journal has the default theme; docs/themes.md says how to keep another": "THEME CSS_FILE"
    " THEME_TEMPLATES_OVERRIDES TEMPLATE_PAGES TEMPLATE_EXTENSIONS JINJA_ENVIRONMENT JINJA_FILTERS"
    " JINJA_GLOBALS JINJA_TESTS",
    "plugins are not installed; docs/themes.md says how to add one": "PLUGINS PLUGIN_PATHS"
    " PLUGIN_PATH MARKDOWN MD_EXTENSIONS",
    "lists are those of the default theme": "DIRECT_TEMPLATES PAGINATED_TEMPLATES"
    " PAGINATED_DIRECT_TEMPLATES PAGINATION_PATTERNS DEFAULT_ORPHANS",
}
_OMITTED = {
    **REFUSED,
    **{name: reason for reason, names in _REASONS.items() for name in names.split()},
}
_FOLLOWED = re.compile(
    "SITENAME|SITEURL|AUTHOR|TIMEZONE|LOCALE|MENUITEMS|I18N_.*|(?:ARTICLE|PAGE|STATIC|CACHE|OUTPUT)?"
    "_?PATHS?|.*_EXCLUDES|.*_METADATA|.*_(?:URL|SAVE_AS)|(?:.*_)?FEED_(?!MAX).*|SLUGIFY_.*"
    "|.*_SUBSTITUTIONS|DEFAULT_(?:LANG|DATE|CATEGORY)|USE_FOLDER_AS_CATEGORY|.*_TRANSLATION_ID"
    "|DEBUG|BIND|PORT|PELICAN_CLASS|ARTICLE_PERMALINK_STRUCTURE|IGNORE_FILES|READERS|RELATIVE_URLS"
    "|LOG_FILTER"
)
"""What the importer has followed, and what says how Pelican runs."""


def read_settings(root: Path, imported: Imported, *, trust: bool) -> tuple[dict[str, Any], Path]:
    """Return a site's settings with Pelican's defaults, and the folder of its content.

    `imported.settings` gets those that stay. What cannot be read without running it becomes a
    finding; with `trust` it is run. Raises UnreadableJournal.
    """
    top = root.resolve()
    named = {
        path: set(_NAME.findall(read_text(path)))
        for name, path in walk(top)
        if path.suffix == ".py" and name.count("/") <= _DEEPEST
    }
    files = sorted(
        (path for path, names in named.items() if names),
        key=lambda path: (
            "SITENAME" not in named[path],
            len(path.parts),
            path.name != "pelicanconf.py",
            path,
        ),
    )
    if not files:
        raise UnreadableJournal(
            f"{root} has no settings of Pelican, such as pelicanconf.py; name the folder that has"
        )
    more = [path for path in files[1:] if _PUBLISHED.search(path.stem)]
    known: dict[str, Any] = {}
    places: dict[str, tuple[str, int]] = {}
    read: set[Path] = set()
    for file in (files[0], *(path for path in more if path.parent == files[0].parent)):
        if trust:
            known |= _run(file)
        elif file not in read:
            _read(file, top, known, places, read)
    found = {name: value for name, value in known.items() if name.isupper()}
    for name in [name for name, value in found.items() if value is _UNREAD]:
        fix = f"write the value of {name} into it, or use --trust to run it"
        imported.find(*places[name], f"{name} is computed, and was not read", fix)
        del found[name]
    paths = [found["PATH"]] if isinstance(found.get("PATH"), str) else ["content", "."]
    content = next(
        folder
        for path in (*paths, "content", ".")
        for folder in ((files[0].parent / path).resolve(), (top / path).resolve())
        if folder.is_dir() and folder.is_relative_to(top)
    )
    site = _complete(found, content, imported, places)
    kept = _keep_addresses(site)
    for name, value in sorted(found.items()):
        if _FOLLOWED.fullmatch(name) or name in IGNORED or value == DEFAULTS.get(name):
            continue
        if name not in _OMITTED and _is_plain(value):
            kept[name] = value
            continue
        reason = _OMITTED.get(name, "it is more than a plain value")
        fix = "do without it, or copy it by hand"
        imported.find(*places.get(name, ("", 0)), f"{name} is not taken over: {reason}", fix)
    imported.settings = kept
    return site, content


def _run(file: Path) -> dict[str, Any]:
    """Run settings, which are a program of their owner; raises UnreadableJournal."""
    if os.geteuid() == 0 and (file.stat().st_uid or file.parent.stat().st_uid):
        raise UnreadableJournal(
            f"{file} is a program of another user: run this as that user, not as root"
        )
    try:
        return read_file(file)
    except BuildError as error:
        raise UnreadableJournal(str(error)) from error


def _read(
    file: Path,
    top: Path,
    known: dict[str, Any],
    places: dict[str, tuple[str, int]],
    read: set[Path],
) -> None:
    """Add what a file assigns to `known`, with the places; raises UnreadableJournal."""
    read.add(file)
    name = file.relative_to(top).as_posix()
    try:
        tree = ast.parse(read_text(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"{name}:{getattr(error, 'lineno', None) or 1}"
        raise UnreadableJournal(
            f"{where}: {error}; make it settings that Python 3 reads"
        ) from error
    for node in [
        each for top in tree.body for each in (top.body if isinstance(top, ast.Try) else [top])
    ]:
        if isinstance(node, ast.ImportFrom) and node.module:
            module = f"{node.module.replace('.', '/')}.py"
            for folder in (file.parent, *file.parents[1 : node.level], top):
                other = (folder / module).resolve()
                if other.is_file() and other.is_relative_to(top) and other not in read:
                    _read(other, top, known, places, read)
        # What stands under a condition is noted, since nobody knows here whether it holds.
        for each in ast.walk(node) if isinstance(node, ast.If) else (node,):
            if not isinstance(each, ast.Assign | ast.AnnAssign | ast.AugAssign):
                continue
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for target in (target for target in targets if isinstance(target, ast.Name)):
                value = each.value if each is node else None
                if isinstance(each, ast.AugAssign) and value:
                    value = ast.BinOp(ast.Name(target.id), each.op, value)
                known[target.id] = _evaluate(value, known)
                places[target.id] = (name, each.lineno)


def _evaluate(expression: ast.expr | None, known: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the value of an expression of literals and known names, or `_UNREAD`."""

    def read(node: ast.expr | None) -> Any:  # noqa: ANN401
        match node:
            case ast.Name(id=name):
                return known[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return read(left) + read(right)
            case ast.Call(func=ast.Attribute(attr="join"), args=parts) if "path.join" in (
                ast.unparse(node.func)
            ):
                return posixpath.join(*map(read, parts))
            case ast.List(elts=parts):
                return [read(part) for part in parts]
            case ast.Tuple(elts=parts):
                return tuple(read(part) for part in parts)
            case ast.Dict(keys=keys, values=values):
                return {read(key): read(value) for key, value in zip(keys, values, strict=True)}
            case None:
                raise KeyError
            case _:
                return ast.literal_eval(node)

    try:
        value = read(expression)
        return value if len(repr(value)) < _LONGEST else _UNREAD
    except (KeyError, ValueError, TypeError, RecursionError, MemoryError):
        return _UNREAD


def _complete(
    found: dict[str, Any], content: Path, imported: Imported, places: dict[str, tuple[str, int]]
) -> dict[str, Any]:
    """Return settings with Pelican's own in place of what cannot be used."""
    usable = dict(found)
    for name, value in found.items():
        if re.search("_(?:URL|SAVE_AS)$|FEED_(?:ALL_)?(?:ATOM|RSS)$", name):
            is_safe = bool(_FORM.fullmatch(str(value)))
        elif re.fullmatch("(?:FILENAME|PATH)_METADATA|.*_SUBSTITUTIONS", name):
            patterns = [value] if isinstance(value, str) else [each[0] for each in value or ()]
            is_safe = not any(map(_is_slow, patterns))
        elif name == "TIMEZONE":
            is_safe = value in available_timezones()
        else:
            continue
        if not is_safe:
            fault = f"{name} cannot be followed, and Pelican's own was: {str(value)[:100]}"
            imported.find(*places.get(name, ("", 0)), fault, "compare the addresses")
            del usable[name]
    ours = {
        **{"PATH": str(content), "THEME": DEFAULTS["THEME"], "LOCALE": ["C.UTF-8", "C"]},
        **{"MARKDOWN": {}, "PLUGINS": [], "JINJA_ENVIRONMENT": {}},
    }
    try:
        return dict(
            configure_settings(handle_deprecated_settings({**deepcopy(DEFAULTS), **usable, **ours}))
        )
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise UnreadableJournal(f"the settings cannot be used: {error}; fix them") from error


def _is_slow(pattern: object) -> bool:
    """Return whether a regular expression is none, or one that can take years."""
    try:
        re.compile(str(pattern))
    except re.error:
        return True
    return bool(_SLOW.search(str(pattern)))


def _keep_addresses(site: dict[str, Any]) -> dict[str, object]:
    """Return the settings of addresses that this journal can have too, Pelican's own among them."""
    kept: dict[str, object] = {}
    for kind in ("ARTICLE", "PAGE", "TAG"):
        url, file = (str(site[f"{kind}_{part}"]).lstrip("/") for part in ("URL", "SAVE_AS"))
        url = re.sub(r"(^|/)index\.html$", r"\1", url)
        fields = re.findall(r"\{(\w+)", url)
        if fields.count("slug") == 1 and name_file(url) == file and set(fields) <= _FIELDS:
            kept |= {f"{kind}_URL": url, f"{kind}_SAVE_AS": file}
    for name in ("TAGS", "ARCHIVES"):
        file = site.get(f"{name}_SAVE_AS", f"{name.lower()}.html")
        if file and name.lower() in site["DIRECT_TEMPLATES"]:
            kept |= {f"{name}_URL": file.removesuffix("index.html"), f"{name}_SAVE_AS": file}
    return kept


def _is_plain(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, RecursionError):
        return False
