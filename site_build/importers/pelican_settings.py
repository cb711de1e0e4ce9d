"""Reads the settings of a Pelican site, without running them unless their owner allows it."""

import ast
import logging
import os
import posixpath
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from pprint import isreadable
from typing import Any

from pelican import settings as pelican_settings  # type: ignore[import-untyped]

from site_build.addresses import name_file
from site_build.importers.imported import Finding, UnreadableJournal, read_text, walk
from site_build.pelican_plugin.settings import DEFAULTS, IGNORED, REFUSED, read_file

_COMPUTED_FIX = "write its value there, or use --trust to run it"
_DEEPEST, _LONGEST = 3, 100_000
"""The most folders above a settings file, and the most characters of a value's `repr`."""
_UNSAFE = {
    r"(?:FILENAME|PATH)_METADATA|\w+_SUBSTITUTIONS": r"\)[*+{]|(?:(?:[*+]|\{\d*,)[^*+{']*){5}",
    r"\w+_(?:URL|SAVE_AS)|\w*FEED_\w+|PAGINATION_PATTERNS": r"\{[^}]*[:!](?!%)",
}
"""Patterns of settings' names, each with a pattern of values that are not safe to use.

A regular expression can take years if it repeats a group or has five repetitions; a format field
with a width or a conversion can fill the memory.
"""
_OMITTED = dict(REFUSED) | {
    name: reason
    for reason, names in {
        "the journal has the default theme; docs/themes.md says how to keep another": "THEME"
        " CSS_FILE THEME_TEMPLATES_OVERRIDES TEMPLATE_PAGES TEMPLATE_EXTENSIONS JINJA_ENVIRONMENT"
        " JINJA_FILTERS JINJA_GLOBALS JINJA_TESTS",
        "plugins are not installed; docs/themes.md says how to add one": "PLUGINS PLUGIN_PATHS"
        " PLUGIN_PATH",
        "Markdown is GitHub's; docs/themes.md says how to add extensions": "MARKDOWN MD_EXTENSIONS",
        "lists are those of the default theme": "DIRECT_TEMPLATES PAGINATED_TEMPLATES"
        " PAGINATED_DIRECT_TEMPLATES PAGINATION_PATTERNS DEFAULT_ORPHANS",
    }.items()
    for name in names.split()
}
"""Settings that are not taken over, each with the reason."""
_FOLLOWED = re.compile(
    "SITENAME|SITEURL|AUTHOR|TIMEZONE|LOCALE|MENUITEMS|I18N_.*|(?:ARTICLE|PAGE|STATIC|CACHE|OUTPUT)?"
    "_?PATHS?|.*_EXCLUDES|.*_METADATA|.*_SAVE_AS|(?:.*_)?FEED_(?!MAX).*|SLUGIFY_.*"
    "|.*_SUBSTITUTIONS|DEFAULT_(?:LANG|DATE|CATEGORY)|USE_FOLDER_AS_CATEGORY|.*_TRANSLATION_ID"
    "|DEBUG|BIND|PORT|PELICAN_CLASS|ARTICLE_PERMALINK_STRUCTURE|IGNORE_FILES|READERS|RELATIVE_URLS"
    "|LOG_FILTER|(?:ARTICLE|DRAFT|PAGE|TAGS?|CATEGOR(?:Y|IES)|AUTHORS?|.*ARCHIVES?|INDEX|STATIC)"
    "(?:_PAGE|_LANG)*_URL"
)
"""Settings that are neither copied nor reported: the importer applies them, or they only control
how Pelican runs."""


def read_settings(
    root: Path, *, trust: bool
) -> tuple[dict[str, Any], Path, dict[str, Any], list[Finding]]:
    """Return the settings with Pelican's defaults, the content folder, settings to keep, findings.

    A value that cannot be read without running the file becomes a finding; with `trust` the file
    is run. Raises UnreadableJournal, and BuildError for settings that fail.
    """
    texts = {
        path: text
        for name, path in walk(root)
        if path.suffix == ".py" and name.count("/") <= _DEEPEST
        # A file that assigns one of these names is a settings file.
        if re.search(
            r"(?m)^(SITENAME|SITEURL|(?:ARTICLE|PAGE)_(?:URL|SAVE_AS|PATHS))\s*[:=]",
            text := read_text(path),
        )
    }
    files = sorted(
        texts,
        key=lambda e: ("SITENAME" not in texts[e], len(e.parts), "conf" not in e.stem, e),
    )
    if not files:
        raise UnreadableJournal(
            f"{root} has no settings of Pelican, such as pelicanconf.py; name the folder that has"
        )
    folder, top, known = files[0].parent, root.resolve(), dict[str, Any]()
    # Files such as publishconf.py change some settings for the published site.
    published = (each for each in files[1:] if re.search("publish|prod|deploy|live", each.stem))
    for file in (files[0], *published):
        if file.parent == folder:
            known |= _run(file) if trust else _read(file, top, known)
    found = {name: value for name, value in known.items() if re.match("[A-Z][A-Z0-9_]*( |$)", name)}
    unsafe = {
        name: f"{name} cannot be followed safely: {str(value)[:80]}"
        for name, value in found.items()
        for names, unsafe_value in _UNSAFE.items()
        if re.fullmatch(names, name) and re.search(unsafe_value, str(value))
    }
    findings = [
        *(value for value in found.values() if isinstance(value, Finding)),
        *(Finding(files[0].name, 0, what, "compare the addresses") for what in unsafe.values()),
    ]
    found = {
        name: value
        for name, value in found.items()
        if name not in unsafe and not isinstance(value, Finding)
    }
    content = next(
        place
        for path in (str(found.get("PATH", "content")), "content", ".")
        for place in ((folder / path).resolve(), (top / path).resolve())
        if place.is_dir() and place.is_relative_to(top)
    )
    override = {"PATH": str(content), "THEME": DEFAULTS["THEME"], "LOCALE": ["C.UTF-8", "C"]}
    # Pelican's warnings concern only those who keep using Pelican.
    logging.getLogger("pelican.settings").setLevel(logging.ERROR)
    try:
        site = pelican_settings.configure_settings(
            pelican_settings.handle_deprecated_settings({**deepcopy(DEFAULTS), **found, **override})
        )
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise UnreadableJournal(f"the settings cannot be used: {error}; fix them") from error
    reasons = {
        name: _OMITTED.get(name, "" if isreadable(value) else "it is more than a plain value")
        for name, value in sorted(found.items())
        if not _FOLLOWED.fullmatch(name) and name not in IGNORED and value != DEFAULTS.get(name)
    }
    findings += [
        Finding(
            files[0].name, 0, f"{name} is not taken over: {reason}", "do without it, or copy it"
        )
        for name, reason in reasons.items()
        if reason
    ]
    kept = {name: found[name] for name, reason in reasons.items() if not reason}
    if name_file(str(site["TAG_URL"])) == site["TAG_SAVE_AS"]:
        kept |= {name: site[name] for name in ("TAG_URL", "TAG_SAVE_AS")}
    return site, content, kept, findings


def _run(file: Path) -> dict[str, Any]:
    """Return the settings of a file by running it; raises BuildError if it fails."""
    if os.geteuid() == 0 and (file.stat().st_uid or file.parent.stat().st_uid):
        raise UnreadableJournal(
            f"{file} is a program of another user: run this as that user, not as root"
        )
    return read_file(file)


def _read(file: Path, top: Path, known: dict[str, Any]) -> dict[str, Any]:
    """Add the settings that a file assigns to `known` and return it; raises UnreadableJournal.

    A value that is computed becomes a finding.
    """
    name = file.relative_to(top).as_posix()
    known[str(file)] = None  # Files that import each other are read once.
    try:
        tree = ast.parse(read_text(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableJournal(
            f"{name}:{getattr(error, 'lineno', 1)}: {error}; make it Python 3"
        ) from error
    unconditional = set(tree.body)
    for node in ast.walk(tree):  # statements outside of blocks come first
        is_unconditional = node in unconditional
        if isinstance(node, ast.ImportFrom) and is_unconditional:
            module = f"{(node.module or '').replace('.', '/')}.py"
            for folder in (file.parent, file.parent.parent, top):
                other = (folder / module).resolve()
                if other.is_relative_to(top) and other.is_file() and str(other) not in known:
                    _read(other, top, known)
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            continue
        assigned = (
            ast.BinOp(node.target, node.op, node.value)
            if isinstance(node, ast.AugAssign)
            else node.value
        )
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            key = ast.unparse(target)
            is_second = not is_unconditional and key in known
            try:
                known[key] = known[key] if is_second else _evaluate(assigned, known)
            except (KeyError, ValueError, TypeError, RecursionError, MemoryError):
                known[key] = Finding(
                    name, node.lineno, f"{key} is computed, and was not read", _COMPUTED_FIX
                )
            if is_second:
                known[f"{key} {node.lineno}"] = Finding(
                    name,
                    node.lineno,
                    f"a second value of {key}, under a condition, was not read",
                    _COMPUTED_FIX,
                )
    return known


def _evaluate(node: Any, known: dict[str, Any]) -> Any:
    """Return the value of an expression; raises an error for one without a safe evaluation."""
    read = _EVALUATORS.get(type(node), _EVALUATORS[ast.Constant])
    value = read(node, lambda part: _evaluate(part, known), known)
    # A list of lists that name other lists could fill the memory.
    if isinstance(value, Finding) or len(repr(value)) > _LONGEST:
        raise ValueError
    return value


# Functions that evaluate the allowed kinds of expressions, by node type.
_EVALUATORS: dict[type[ast.expr], Callable[[Any, Callable[[Any], Any], dict[str, Any]], Any]] = {
    ast.Constant: lambda node, _read, _known: ast.literal_eval(node),
    ast.Name: lambda node, _read, known: known[node.id],
    ast.List: lambda node, read, _: [read(each) for each in node.elts],
    ast.Tuple: lambda node, read, _: tuple(read(each) for each in node.elts),
    ast.Dict: lambda node, read, _: {
        read(key): read(value) for key, value in zip(node.keys, node.values, strict=True)
    },
    ast.JoinedStr: lambda node, read, _: "".join(
        str(read(each.value if isinstance(each, ast.FormattedValue) else each))
        for each in node.values
    ),
    ast.BinOp: lambda node, read, _: (
        read(node.left) + read(node.right)
        if isinstance(node.op, ast.Add)
        else ast.literal_eval(node)
    ),
    ast.Call: lambda node, read, _: (
        posixpath.join(*map(read, node.args))
        if (name := ast.unparse(node.func)) in {"os.path.join", "path.join"}
        # The default for an environment variable.
        else read(node.args[1])
        if name in {"os.environ.get", "os.getenv"} and len(node.args) > 1
        else ast.literal_eval(node)
    ),
}
