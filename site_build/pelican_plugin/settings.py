"""Pelican's settings as a build reads them; the lists in `docs/themes.md` follow these tables."""

import json
import os
import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

from pelican import settings as pelican_settings  # type: ignore[import-untyped]
from pelican.paginator import PaginationRule  # type: ignore[import-untyped]

from edge_api.schema.environment import SettingsError, read_variables
from edge_api.schema.sentences import Language, compile_catalogue, load_language
from site_build.addresses import (
    CONTACT_THANKS,
    DEFAULT_ADDRESSES,
    MISSING,
    Addresses,
    SourceRules,
    name_file,
)
from site_build.build.fingerprint import HOUSE_THEME
from site_build.content.front_matter import KEYS
from site_build.content.head import NEWSLETTER_KEY
from site_build.errors import BuildError
from site_build.markup.convert import WORDS, Converter, Dialect
from site_build.site import Identity
from site_build.template_objects import Article

try:
    _environment = read_variables(Path(".env"), os.environ)
except SettingsError:  # The commands report this error.
    _environment = dict(os.environ)
_default_file = Path("pelicanconf.py")
_found_file = (
    _default_file
    if _default_file.is_file()
    else Path(__file__).resolve().parents[2] / _default_file
)
SETTINGS_FILE = Path(_environment.get("PELICAN_SETTINGS") or _found_file).resolve()
"""The file that PELICAN_SETTINGS names, the one of the current folder, or the repository's."""
OWN_CATALOGUES = SETTINGS_FILE.parent / "locale"
"""The folder of the journal's own catalogues of translations, for any theme."""

_ATTRIBUTES = frozenset(
    ("template", "document", "settings", "metadata", "author", "authors", "date", "image_set")
)
"""The names that only instances of Article have, not the class."""
DEFAULTS: Mapping[str, Any] = pelican_settings.DEFAULT_CONFIG
REFUSED: Mapping[str, str] = {
    "READERS": "only Markdown is read",
    "RELATIVE_URLS": "links are absolute",
    "IGNORE_FILES": "names that begin with a dot are left out; ARTICLE_EXCLUDES names folders",
    "TYPOGRIFY": "quotes and dashes stay as they are written",
    "FORMATTED_FIELDS": "values of the front matter are plain text",
    "SUMMARY_MAX_LENGTH": "the summary of a post is its description",
    "SUMMARY_END_SUFFIX": "the summary of a post is its description",
    "DATE_FORMATS": "DEFAULT_DATE_FORMAT is for every language",
    "DEFAULT_DATE": "each post has a date of its own",
    "DEFAULT_METADATA": "each file has its own",
    "PATH_METADATA": "each file has its own; FILENAME_METADATA is read",
    "ARTICLE_PERMALINK_STRUCTURE": "ARTICLE_URL sets the address",
    "ARTICLE_ORDER_BY": "posts are listed by their dates",
    "PAGE_ORDER_BY": "pages are listed by their slugs",
    **{
        f"{kind}_{name}": f"a translation is a {noun} of its own"
        for name in ("LANG_URL", "LANG_SAVE_AS", "TRANSLATION_ID")
        for kind, noun in (("ARTICLE", "post"), ("PAGE", "page"))
    },
    "STATIC_URL": "EXTRA_PATH_METADATA gives a file another address",
    "STATIC_SAVE_AS": "EXTRA_PATH_METADATA gives a file another address",
    "STATIC_EXCLUDE_SOURCES": "sources are never published as files",
    "OUTPUT_SOURCES": "each page has its Markdown beside it already",
    "THEME_STATIC_DIR": "the theme's files are in theme/",
    "THEME_STATIC_PATHS": "the theme's files are those of its folder static/",
    "INTRASITE_LINK_REGEX": "links name files as {filename}, {static} or {attach}",
    **dict.fromkeys(
        (
            "SLUG_REGEX_SUBSTITUTIONS",
            "TAG_REGEX_SUBSTITUTIONS",
            "CATEGORY_REGEX_SUBSTITUTIONS",
            "AUTHOR_REGEX_SUBSTITUTIONS",
            "SLUGIFY_USE_UNICODE",
            "SLUGIFY_PRESERVE_CASE",
        ),
        "slugs are made of a-z, 0-9 and hyphens; `slug` may hold other letters",
    ),
}
"""Settings of Pelican that a build refuses, each with the rule that replaces it."""

IGNORED = frozenset(
    {
        "CACHE_CONTENT",
        "CONTENT_CACHING_LAYER",
        "GZIP_CACHE",
        "LOAD_CONTENT_CACHE",
        "CHECK_MODIFIED_METHOD",
        "DELETE_OUTPUT_DIRECTORY",
        "OUTPUT_RETENTION",
        "DOCUTILS_SETTINGS",
        "PYGMENTS_RST_OPTIONS",
        "OUTPUT_SOURCES_EXTENSION",
        "DRAFT_URL",
        "DRAFT_SAVE_AS",
        "DRAFT_LANG_URL",
        "DRAFT_LANG_SAVE_AS",
        "DRAFT_PAGE_URL",
        "DRAFT_PAGE_SAVE_AS",
        "DRAFT_PAGE_LANG_URL",
        "DRAFT_PAGE_LANG_SAVE_AS",
        "STATIC_CREATE_LINKS",
        "STATIC_CHECK_IF_MODIFIED",
        "WITH_FUTURE_DATES",
        "TYPOGRIFY_IGNORE_TAGS",
        "TYPOGRIFY_OMIT_FILTERS",
        "TYPOGRIFY_DASHES",
    }
)
"""Settings of Pelican that have no effect here and change no page: a build warns of them."""

_EDGE_PAGES = {"404": MISSING, "contact_thanks": name_file(CONTACT_THANKS)}
"""Files of pages that the edge shows, made whether or not DIRECT_TEMPLATES names them."""
_FOR_OTHER_THEMES: Mapping[str, Any] = {
    "DIRECT_TEMPLATES": [
        "index",
        "journal",
        "tags",
        "categories",
        "authors",
        "archives",
        "404",
        "contact_thanks",
    ],
    "PAGINATED_TEMPLATES": dict.fromkeys(("index", "journal", "tag", "category", "author")),
}
"""Values that replace those of our default settings in journals with another theme."""


def load_settings(content: Path, site_url: str = "", **override: str) -> dict[str, Any]:
    """Return the journal's settings; raises BuildError for an invalid one."""
    override |= {"PATH": os.fspath(content.absolute()), "SITEURL": site_url}
    if not SETTINGS_FILE.is_file():
        raise BuildError(
            f"there is no settings file {SETTINGS_FILE}; run this in the folder of the journal, "
            "make one with fore-edge init, or fix PELICAN_SETTINGS"
        )
    sys.modules.pop("site_build.default_settings", None)  # It reads .env, which may have changed.
    return prepare_settings(
        read_file(SETTINGS_FILE, partial(pelican_settings.read_settings, override=override))
    )


def read_file(
    file: Path, read: Callable[[str], dict[str, Any]] = pelican_settings.get_settings_from_file
) -> dict[str, Any]:
    """Return the settings of a file, without Pelican's defaults unless `read` adds them.

    Raises BuildError, with the error of the file's own code.
    """
    with _imports_from(file.parent):
        try:
            return read(os.fspath(file))
        except SyntaxError as error:
            raise BuildError(f"{file.name}:{error.lineno}: {error.msg}") from error
        except BuildError:
            raise
        except (Exception, SystemExit) as error:  # A settings file is code and may raise anything.
            raise BuildError(f"{file.name}: {type(error).__name__}: {error}") from error


@contextmanager
def _imports_from(folder: Path) -> Iterator[None]:
    """Let a settings file import files beside it, as publishconf.py imports pelicanconf.py."""
    before, writes = sys.modules.pop("pelicanconf", None), sys.dont_write_bytecode
    # Compiled code would count as current if the file changes within a second at the same size.
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.fspath(folder))
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(os.fspath(folder))
        sys.modules.pop("pelicanconf", None)
        if before:
            sys.modules["pelicanconf"] = before


def prepare_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Check the settings and add what a build needs; raises BuildError."""
    for name in sorted({*REFUSED, *IGNORED} & settings.keys()):
        if settings[name] == DEFAULTS.get(name) or (
            not settings[name]
            and re.search("LANG_|DRAFT_|_ID$", name)  # switched off, as it is here
        ):
            continue
        if name in REFUSED:
            _refuse(name, f"has no effect here: {REFUSED[name]}; take it out")
        warn(f"{SETTINGS_FILE.name}: {name} has no effect here")
    settings["DEFAULT_LANG"] = str(settings["DEFAULT_LANG"]).replace("_", "-")
    settings.setdefault("SITESUBTITLE", "")
    settings.setdefault("AUTHOR", settings["SITENAME"])
    settings.setdefault("PAGE_TEMPLATES", {})
    for name, file in _EDGE_PAGES.items():
        settings.setdefault(f"{name.upper()}_SAVE_AS", file)
        settings.setdefault(f"{name.upper()}_URL", file.removesuffix("index.html"))
    settings["DIRECT_TEMPLATES"] = list(
        dict.fromkeys([*settings["DIRECT_TEMPLATES"], *_EDGE_PAGES])
    )
    default_settings = sys.modules.get("site_build.default_settings")
    is_own = Path(settings["THEME"]).resolve() == HOUSE_THEME
    usual = {
        name: getattr(default_settings, name, None) for name in _FOR_OTHER_THEMES if not is_own
    }
    settings |= {name: _FOR_OTHER_THEMES[name] for name in usual if settings[name] == usual[name]}
    if is_own and settings["CATEGORY_SAVE_AS"] == "categories/{slug}/index.html":
        settings["CATEGORY_SAVE_AS"] = ""  # our theme shows no categories
    # A journal always has these pages: without an address in the settings, they get a default one.
    for name, url in (
        ("ARTICLE", DEFAULT_ADDRESSES.post),
        ("PAGE", DEFAULT_ADDRESSES.page),
        ("INDEX", ""),
    ):
        if not settings[f"{name}_SAVE_AS"] or (url and not settings[f"{name}_URL"]):
            settings |= {f"{name}_URL": url, f"{name}_SAVE_AS": name_file(url)}
            warn(f"{SETTINGS_FILE.name}: {name}_SAVE_AS cannot be empty: it stands at /{url}")
    return settings


def read_rules(settings: Mapping[str, Any]) -> SourceRules:
    """Return the rules for source files that the settings give; raises BuildError."""
    zone = settings.get("TIMEZONE", "UTC")
    try:
        ZoneInfo(zone)
    except (OSError, KeyError, ValueError):
        _refuse("TIMEZONE", f"is {zone!r}, which is no time zone; write one such as Europe/Rome")
    new_paths = {}
    for source, metadata in settings["EXTRA_PATH_METADATA"].items():
        if set(metadata) != {"path"}:
            _refuse("EXTRA_PATH_METADATA", f"says more of {source!r} than its `path`; take it out")
        new_paths[source] = str(metadata["path"])
    # The first two are keys of the default theme, the third is read by the edge.
    extra = ("featured", "layout", NEWSLETTER_KEY, *settings.get("FRONT_MATTER_EXTRA", ()))
    if taken := [
        name
        for name in extra
        if name.lower() in KEYS or hasattr(Article, name) or name in _ATTRIBUTES
    ]:
        _refuse("FRONT_MATTER_EXTRA", f"has {taken[0]!r}, a name that is taken; choose another")
    try:
        re.compile(settings["FILENAME_METADATA"])
    except re.error as error:
        _refuse("FILENAME_METADATA", f"is no regular expression: {error}")
    # Pelican excludes the folders of posts from those of pages, and vice versa.
    kinds = ("ARTICLE", "PAGE", "STATIC")
    posts, pages, files = (_list_folders(settings[f"{kind}_PATHS"]) for kind in kinds)
    not_posts, not_pages, not_files = (
        tuple(set(_list_folders(settings[f"{kind}_EXCLUDES"])) - {*posts, *pages}) for kind in kinds
    )
    return SourceRules(
        _read_addresses(settings),
        posts,
        pages,
        files,
        not_posts,
        not_pages,
        not_files,
        tuple(sorted(new_paths.items())),
        extra,
        settings["DEFAULT_CATEGORY"],
        settings["USE_FOLDER_AS_CATEGORY"],
        settings["FILENAME_METADATA"],
        settings["SLUGIFY_SOURCE"],
        zone,
        settings["AUTHOR"],
        settings["DEFAULT_LANG"],
    )


def read_dialect(settings: Mapping[str, Any]) -> Dialect:
    """Return the dialect of texts, with the extensions that MARKDOWN names; raises BuildError."""
    given, url, rules = settings["MARKDOWN"], str(settings["SITEURL"]), read_rules(settings)
    language = _read_language(settings)
    translations = (
        tuple((str(each), language.translate(each)) for each in WORDS) if language.compiled else ()
    )
    if given == DEFAULTS["MARKDOWN"]:
        return Dialect(url, rules=rules, translations=translations)
    options = given.get("extension_configs", {})
    names = dict.fromkeys([*given.get("extensions", []), *options])
    try:
        dialect = Dialect(url, tuple(names), json.dumps(options), rules, translations)
        Converter(dialect)
    except (TypeError, ImportError, AttributeError, KeyError, ValueError) as error:
        raise BuildError(f"MARKDOWN of {SETTINGS_FILE.name} cannot be used: {error}") from error
    return dialect


def read_identity(settings: Mapping[str, Any]) -> Identity:
    """Return the site's names, language and addresses; raises BuildError."""
    if not str(settings["SITEURL"]).startswith(("http://", "https://")):
        _refuse(
            "SITEURL",
            f"is {settings['SITEURL']!r}; write the origin of the site, as https://example.org",
        )
    return Identity(
        settings["SITEURL"],
        settings["SITENAME"],
        settings["SITESUBTITLE"],
        settings["AUTHOR"],
        settings["DEFAULT_LANG"],
        _read_addresses(settings),
        settings.get("AUTHOR_PICTURE") or "",
        str(settings.get("EDGE_IMAGE") or "").removeprefix("/"),
        _read_language(settings),
        settings.get("TIMEZONE", "UTC"),
    )


def _read_language(settings: Mapping[str, Any]) -> Language:
    """Return the language; the journal's translations override the theme's; raises BuildError."""
    theme, code = Path(settings["THEME"]), str(settings["DEFAULT_LANG"])
    folders = (OWN_CATALOGUES, theme / "locale", theme / "translations", HOUSE_THEME / "locale")
    try:
        return load_language(code, compile_catalogue(code, folders))
    except ValueError as error:
        raise BuildError(str(error)) from error


def _read_addresses(settings: Mapping[str, Any]) -> Addresses:
    """Return the addresses that the settings give to each kind of page; raises BuildError."""
    lists = {}
    for name in settings["DIRECT_TEMPLATES"]:
        file = settings.get(f"{name.upper()}_SAVE_AS", f"{name}.html")
        url = settings.get(f"{name.upper()}_URL", file)
        if file and name not in _EDGE_PAGES:  # A list without a file is not made.
            lists[name] = url if name_file(url) == file else file.removesuffix("index.html")
    return Addresses(
        post=_read_pattern(settings, "ARTICLE"),
        page=_read_pattern(settings, "PAGE"),
        tag=_read_pattern(settings, "TAG"),
        journal=lists.pop("journal", None),
        tags=lists.pop("tags", None),
        archive=lists.pop("archives", None),
        category=_read_pattern(settings, "CATEGORY"),
        author=_read_pattern(settings, "AUTHOR"),
        lists=tuple(lists.values()),
        # Further pages of a list have a Markdown alternate only at these addresses.
        has_leaves=settings["PAGINATION_PATTERNS"][1:]
        == [PaginationRule(2, "{url}page/{number}/", "{base_name}/page/{number}/index.html")],
        has_form="contact" in settings["PAGE_TEMPLATES"],
    )


def _read_pattern(settings: Mapping[str, Any], kind: str) -> str:
    """Return the address pattern of a kind; empty if it has no pages. Raises BuildError."""
    url, file = settings[f"{kind}_URL"], settings[f"{kind}_SAVE_AS"]
    if not (file and url) and kind in {"TAG", "CATEGORY", "AUTHOR"}:
        return ""
    url = url.removesuffix("index.html") if url.endswith("/index.html") else url.removeprefix("/")
    if url.count("{slug}") != 1:
        _refuse(f"{kind}_URL", f"is {url!r}; write {{slug}} in it once, to tell them apart")
    if url.startswith(("api/", "docs/", ".well-known/", "search")) or ".." in url.split("/"):
        _refuse(f"{kind}_URL", f"is {url!r}, where the edge answers; choose another")
    try:
        Addresses(post=url).locate("post", "slug")
    except (KeyError, IndexError, ValueError) as error:
        fields = "{slug}, {date:%Y}, {category}, {author} and {lang}"
        _refuse(f"{kind}_URL", f"cannot be filled in ({error}); it may hold {fields}")
    if name_file(url) != file:
        _refuse(f"{kind}_SAVE_AS", f"is {file!r}, and {kind}_URL needs {name_file(url)!r}")
    return str(url)


def _list_folders(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple("" if path in {"", "."} else posixpath.normpath(path).strip("/") for path in paths)


def _refuse(name: str, fault: str) -> NoReturn:
    raise BuildError(f"{SETTINGS_FILE.name}: {name} {fault}")


@cache
def warn(sentence: str) -> None:
    """Write a warning to standard error once, however often the settings are read."""
    sys.stderr.write(f"warning: {sentence}\n")
