"""Functions and filters for templates in the language of the journal, and their environment.

Templates of the site, of the edge's pages and of mails have the same functions and filters. Their
language is the variable `site_language`.

In templates of other themes and of operators an unknown name is noted with its place, and shown as
an empty text. Ours are rendered with Jinja's StrictUndefined, since there it is a defect.
"""

import json
from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from functools import lru_cache
from inspect import currentframe
from pathlib import Path
from traceback import walk_stack
from types import BuiltinMethodType, FunctionType, MappingProxyType, MethodType
from typing import Any, Final, NoReturn

from jinja2 import BaseLoader, ChainableUndefined, Environment, Undefined, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup, escape

from edge_api.schema.page_templates import CATALOGUE_FILE, TEMPLATES_FOLDER, read_notes
from edge_api.schema.sentences import (
    ENGLISH,
    Language,
    Sentence,
    counted,
    load_language,
    sentence,
    text_direction,
)

PLURAL_SAMPLES: Final = (0, 1, 2, 3, 5, 6, 7, 11, 20, 21, 100, 1_000_000)
"""Numbers that together take every plural form of every language."""


@lru_cache(maxsize=4)  # two builds, each under two paths
def read_language(build: Path) -> Language:
    """Return the language of a build; English if its notes name none."""
    file = build / TEMPLATES_FOLDER / CATALOGUE_FILE
    compiled = file.read_bytes() if file.is_file() else b""
    return load_language(read_notes(build).get("lang", ENGLISH.code), compiled)


PLAIN_TYPES: Final = (
    str,
    Markup,
    int,
    float,
    list,
    tuple,
    dict,
    MappingProxyType,
    range,
    date,
    datetime,
    timedelta,
)
"""Types of data whose public attributes the sandbox gives to templates, unless they change it."""
_JINJA_FIELDS: Final[Mapping[type, Collection[str]]] = {
    LoopContext: frozenset(
        [
            "index",
            "index0",
            "revindex",
            "revindex0",
            "first",
            "last",
            "length",
            "depth",
            "depth0",
            "previtem",
            "nextitem",
            "cycle",
            "changed",
        ]
    ),
    Macro: frozenset(["name", "arguments", "catch_kwargs", "catch_varargs", "caller"]),
    BlockReference: frozenset(["super"]),
    Cycler: frozenset(["current", "next", "reset"]),
}


class Sandbox(ImmutableSandboxedEnvironment):
    """A Jinja environment whose templates reach plain data and declared fields alone.

    A class declares the attributes that templates may read in `template_fields`. Anything else
    raises SecurityError.
    """

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether templates may read an attribute, whose value is given."""
        return super().is_safe_attribute(obj, attr, value) and (
            isinstance(obj, Namespace | Undefined)
            or any(isinstance(obj, plain) and hasattr(plain, attr) for plain in PLAIN_TYPES)
            # Members of a tuple are reached by their numbers too.
            or (isinstance(obj, tuple) and attr in getattr(obj, "_fields", ()))
            or attr in getattr(type(obj), "template_fields", _JINJA_FIELDS.get(type(obj), ()))
        )

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether templates may call a value: a safe method, a macro, a global function."""
        # Jinja wraps `str.format` in a function that reads attributes through the sandbox.
        method = getattr(obj, "__wrapped__", obj) if isinstance(obj, FunctionType) else obj
        return (
            isinstance(obj, Macro | BlockReference | LoopContext | Joiner | Undefined)
            or any(obj is each for each in self.globals.values())
            or (
                isinstance(method, MethodType | BuiltinMethodType)
                and self.is_safe_attribute(method.__self__, method.__name__, method)
            )
        )

    def unsafe_undefined(self, obj: Any, attribute: str) -> NoReturn:
        """Raise SecurityError, where Jinja returns a value that other themes show as nothing."""
        kind = type(obj).__name__
        raise SecurityError(f"templates may not read {attribute!r} of a value of type {kind!r}")


def make_environment(loader: BaseLoader | None, undefined: type[Undefined]) -> Environment:
    """Return the Jinja environment that renders the templates of the edge's pages.

    It is a sandbox, since a build may come from another machine: templates reach the values that
    they are given, change none, and nothing else of the process.
    """
    environment = Sandbox(
        loader=loader,
        undefined=undefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=translate,
    )
    add_language_features(environment)
    # Jinja's own `_` calls whatever a template has named `gettext`, past `is_safe_callable`.
    environment.globals["_"] = environment.globals["gettext"]
    return environment


def add_language_features(environment: Environment) -> None:
    """Add `{% trans %}`, `_()` and filters that follow `site_language` to an environment."""
    environment.add_extension("jinja2.ext.i18n")
    environment.install_gettext_callables(  # type: ignore[attr-defined]
        pass_context(lambda context, text: _language(context).catalogue.gettext(text)),
        pass_context(lambda context, *forms: _language(context).catalogue.ngettext(*forms)),
        newstyle=True,
    )
    environment.globals.update(
        site_language=ENGLISH, sentence=sentence, counted=counted, script_words=_script_words
    )
    environment.filters.update(
        say=translate,
        show_day=pass_context(
            lambda context, day: _insert_no_break_space(
                _language(context).format_day(
                    datetime.fromisoformat(day) if isinstance(day, str) else day
                )
            )
        ),
        show_short_day=pass_context(
            lambda context, day: _insert_no_break_space(_language(context).format_short_day(day))
        ),
        show_number=pass_context(lambda context, number: _language(context).format_number(number)),
        instant=pass_context(lambda context, instant: _language(context).instant(instant)),
        text_direction=text_direction,
        foreign=_mark_foreign,
    )


def _language(context: Context) -> Language:
    found = context.get("site_language")
    return found if isinstance(found, Language) else ENGLISH


@pass_context
def translate(context: Context, value: object) -> object:
    """Return a sentence in the language of a template, and any other value unchanged."""
    return _language(context).translate(value) if isinstance(value, Sentence) else value


def _insert_no_break_space(day: str) -> Markup:
    """Return a day with a no-break space after its number."""
    return Markup(str(escape(day)).replace(" ", "&nbsp;", 1))  # noqa: S704  escaped


@pass_context
def _mark_foreign(context: Context, code: str) -> Markup | str:
    """Return the attributes `lang` and `dir` of a foreign text; empty for the site's language."""
    direction = text_direction(code)
    is_own = code in {"", _language(context).code}
    return "" if is_own else Markup(' lang="{}" dir="{}"').format(code, direction)


@pass_context
def _script_words(context: Context, *sentences: Sentence) -> Markup | str:
    """Return the attribute `data-words` with a script's translated sentences; empty for English.

    A sentence with a plural is a list of pairs: each number of `PLURAL_SAMPLES`, and its form.
    """
    language = _language(context)
    words = {
        forms[-1]: [(number, language.find_translation(forms, number)) for number in PLURAL_SAMPLES]
        if forms[1:]
        else language.find_translation(forms, 1)
        for forms, *_ in (each.parts for each in sentences)
    }
    said = json.dumps(words, ensure_ascii=False)
    return Markup(' data-words="{}"').format(said) if language.compiled else ""


UnknownNames = dict[tuple[str, int, str], None]
"""File, line and message of each unknown name, as keys, so that each is there once."""


def note_unknown_names(found: UnknownNames) -> type[ChainableUndefined]:
    """Return a class for an environment's `undefined`, which notes in `found` each rendered name.

    Names that are only tested or looped over are not noted, since a site may omit settings.
    """

    class NotingUndefined(ChainableUndefined):
        __slots__ = ()

        def __str__(self) -> str:
            for frame, line in walk_stack(currentframe()):
                # Jinja sets this global for its tracebacks.
                if template := frame.f_globals.get("__jinja_template__"):
                    is_file = template.filename != "<template>"  # a text without a file
                    file = template.filename if is_file else template.name or ""
                    place = template.get_corresponding_lineno(line)
                    found[file, place, self._undefined_message] = None
                    break
            return ""

    return NotingUndefined
