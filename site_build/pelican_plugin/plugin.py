"""The Pelican plugin: handlers of Pelican's signals, and the class `Journal` that runs Pelican.

The content is read and checked before Pelican runs. Pelican's writer only collects the files to
make, which are made last.
"""

import gc
import locale
import logging
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pelican  # type: ignore[import-untyped]
from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    StrictUndefined,
    Template,
    Undefined,
)
from jinja2.exceptions import TemplateSyntaxError
from markupsafe import Markup
from pelican.generators import (  # type: ignore[import-untyped]
    ArticlesGenerator,
    PagesGenerator,
    PelicanTemplateNotFound,
    StaticGenerator,
)
from pelican.log import console  # type: ignore[import-untyped]
from pelican.plugins import signals  # type: ignore[import-untyped]

from edge_api.schema.paths import SEARCH
from edge_api.schema.sentences import sentence
from edge_api.schema.template_language import add_language_features, note_unknown_names
from site_build.addresses import CONTACT
from site_build.build.assets import find_card, find_edge_picture, find_leads
from site_build.build.builder import KnownContent, SiteBuild
from site_build.build.edge_templates import read_budget_tiers
from site_build.build.fingerprint import HOUSE_THEME, Style, fingerprint_settings
from site_build.build.memory import BuildMemory, PreviewBuild, RevisedBuild
from site_build.build.targets import explain_syntax
from site_build.content.dates import parse_instant
from site_build.content.kept import KEPT_FOLDER, prune_sources
from site_build.errors import (
    DISK_FULL_FIX,
    HELD_STATUS,
    BuildError,
    ContentError,
    Diagnostic,
    describe_held,
    find_fix,
)
from site_build.images.card import choose_hue
from site_build.images.responsive import resolve
from site_build.parallel import count_processors
from site_build.pelican_plugin.generators import Outputs, Pages, Posts, TargetWriter, find_build
from site_build.pelican_plugin.settings import (
    OWN_CATALOGUES,
    SETTINGS_FILE,
    load_settings,
    prepare_settings,
    read_dialect,
    read_identity,
    warn,
)
from site_build.pelican_plugin.structured_data import StructuredData
from site_build.progress import Report, Request
from site_build.site import Identity, Site, read_policy
from site_build.template_objects import track_lookups


def register() -> None:
    """Connect to Pelican's signals; Pelican calls this for each of its PLUGINS."""
    signals.initialized.connect(_require_journal)
    signals.get_writer.connect(_choose_writer)
    signals.generator_init.connect(_set_up_templates)


def _require_journal(running: pelican.Pelican) -> None:
    """Exit if PELICAN_CLASS is not Journal: Pelican's own class has other rules for files."""
    if not isinstance(running, Journal):
        sys.exit(
            "PELICAN_CLASS is Pelican's own, which cannot build this site; set it as "
            f"{SETTINGS_FILE.name} does: PELICAN_CLASS = Journal"
        )


def _choose_writer(_: Any) -> type[TargetWriter]:
    return TargetWriter


def _set_up_templates(generator: Any) -> None:
    """Add our globals, values and templates to a generator, and track the names in templates."""
    build = find_build(generator.settings)
    assets, site = build.assets, build.site
    logo = assets.locate("icon.svg") if "icon.svg" in assets.published else ""
    lead_pictures = find_leads(site, build.content.image_set)
    card_finder = partial(find_card, build.font, lead_pictures)
    add_language_features(generator.env)
    generator.env.globals.update(
        site_language=site.identity.language,
        asset=assets.locate,
        embedded=assets.embed,
        structured_data=StructuredData(site.identity, card_finder, lead_pictures, logo),
        find_card=card_finder,
        choose_hue=choose_hue,
        addresses=site.identity.addresses,
    )
    generator.context.update(  # unlike globals, these are tracked: a change makes pages anew
        menu=_make_menu(site, generator.settings),
        portrait=_render_portrait(build),
        painting=_render_fore_edge(build),
        has_contact=any(each.address == CONTACT for each in site.pages),
    )
    if generator.env.undefined is Undefined:
        lenient = note_unknown_names(build.edge_templates.unknown)
        generator.env.undefined = StrictUndefined if build.is_default_theme else lenient
    if build.theme != HOUSE_THEME:
        # Another theme gets the templates that it and Pelican lack; these escape their values.
        house = FileSystemLoader(HOUSE_THEME / "templates")
        lent = frozenset(house.list_templates()) - frozenset(generator.env.list_templates())
        escapes = generator.env.autoescape
        generator.env.loader = ChoiceLoader([*filter(None, (generator.env.loader, house))])
        generator.env.autoescape = lambda name: name in lent or bool(escapes)
    generator.env.loader = _Utf8Loader([generator.env.loader])
    generator.env.context_class = track_lookups(build.looked_up)
    # A build uses the theme as it was at the start, and reads each template once.
    generator.env.auto_reload = False


def _render_portrait(build: SiteBuild) -> Markup:
    """Return HTML of AUTHOR_PICTURE or the picture of the page `about`; raises BuildError."""
    given, images = build.site.identity.portrait, build.content.image_set
    if given and given not in {*images.pictures, *build.content.files}:  # `files` has damaged ones
        raise BuildError(f"AUTHOR_PICTURE is {given!r}; name a picture of the content folder")
    of_about = (resolve(e.path, e.image) for e in build.site.pages if e.slug == "about" and e.image)
    path = given or next(of_about, "")
    address = quote(build.content.files.get(path, path))
    image = f'<img src="/{address}" alt="" width="96">' if path in images.pictures else ""
    return Markup(images.make_responsive(image, "", ""))  # noqa: S704


def _render_fore_edge(build: SiteBuild) -> Markup:
    """Return HTML of the image on the fore-edge, or of two for day and night; raises BuildError."""
    given, images = build.site.identity.edge_image, build.content.image_set
    if given and not (given in images.pictures and images.pictures[given].still):
        raise BuildError(
            f"EDGE_IMAGE is {given!r}; name a picture of the content folder, "
            "no drawing and nothing that moves"
        )
    image = '<img{} src="/edge/{}"{} alt="" width="{}" height="1200">'.format
    if find_edge_picture(build.site, images):
        return Markup(image("", "picture.webp", "", 480))  # noqa: S704
    day = image(' class="day"', "day.svg", "", 224)
    # Loaded lazily, since by day it is not shown.
    night = image(' class="night"', "night.svg", ' loading="lazy"', 224)
    return Markup(day + night)  # noqa: S704


def _make_menu(site: Site, settings: dict[str, Any]) -> list[tuple[str, str]]:
    """Return labels and links of the menu: lists, About and Contact, MENUITEMS, and the search."""
    lists, say = site.identity.addresses, site.identity.language.translate
    found = {page.slug: page.address for page in site.pages}
    entries = (
        (sentence("Journal"), lists.journal),
        (sentence("Tags"), lists.tags),
        (sentence("Archive"), lists.archive),
        (sentence("About"), found.get("about")),
        (sentence("Contact"), found.get("contact")),
    )
    links = [(say(label), f"/{address}") for label, address in entries if address is not None]
    return [*links, *(settings.get("MENUITEMS") or ()), (say(sentence("Search")), SEARCH)]


class _Utf8Loader(ChoiceLoader):
    """Reports a template that is not UTF-8 as a syntax error, with its line."""

    def load(self, environment: Environment, name: str, *more: Any) -> Template:
        try:
            return super().load(environment, name, *more)
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise TemplateSyntaxError("save this as UTF-8, which it is not", line, name) from error


class Journal(pelican.Pelican):  # type: ignore[misc]
    """Pelican with this site's generators; `pelicanconf.py` names it as PELICAN_CLASS."""

    def run(self) -> None:
        """Build for the command `pelican`; raises BuildError, also if it held back faulty files."""
        logging.getLogger(pelican.__name__).addFilter(_hide_traceback)
        request = make_request(self.settings)
        with explain_disk_errors(Path(self.settings["OUTPUT_PATH"])):
            try:
                report = self.build(request, BuildMemory())
            except ContentError as error:
                _log_findings(error.findings)
                raise
            prune_sources(request.state / KEPT_FOLDER, [request.state])
            _log_findings(report.findings)
        if report.held:
            raise BuildError(describe_held(report.held), HELD_STATUS)

    def build(self, request: Request, memory: BuildMemory) -> Report:
        """Build the site of a request; raises BuildError and OSError."""
        identity, style = self.describe()
        build = memory.begin(request, identity, style)
        request.state.mkdir(parents=True, exist_ok=True)
        self.execute(build, request.state)
        memory.keep(build)
        return build.report

    def describe(self) -> tuple[Identity, Style]:
        """Return the identity and the style of the site, from the settings; raises BuildError."""
        settings = prepare_settings(self.settings)
        policy = read_policy(settings)
        # Templates take a boolean: the text "false" would be true to them.
        settings["LEADS_REQUIRE_CREDENTIAL"] = policy.leads_need_credential
        settings["ACCESS_REQUESTS"] = policy.has_access_form
        settings["NEWSLETTER"] = policy.has_newsletter
        identity = read_identity(settings)
        sources = SETTINGS_FILE.read_bytes() + identity.language.compiled
        return identity, Style(
            Path(self.theme),
            [Path(folder) for folder in settings["THEME_TEMPLATES_OVERRIDES"]],
            fingerprint_settings(settings) + sha256(sources).hexdigest(),
            settings["DEFAULT_PAGINATION"],
            policy,
            read_budget_tiers(settings),
            read_dialect(settings),
            str(settings),
            # No cache key covers changes that plugins make, so with plugins each page is made anew.
            str(datetime.now(UTC)) if len(self.plugins) > 1 else "",
        )

    def execute(self, build: SiteBuild, place: Path | None = None) -> None:
        """Run Pelican, which writes into a folder below `place`; raises BuildError and OSError."""
        self.settings["BUILD_PRODUCTION"] = build
        try:
            # Plugins write into this folder, and so never into a site that is served.
            with TemporaryDirectory(dir=place) as folder:
                self.output_path = self.settings["OUTPUT_PATH"] = folder
                if not isinstance(build, RevisedBuild):
                    super().run()
                build.finish(Path(folder))
        except TemplateSyntaxError as error:
            raise explain_syntax(error) from error
        except PelicanTemplateNotFound as error:
            raise BuildError(f"the theme lacks a template: {error}") from error

    def init_plugins(self) -> None:
        """Load the settings' plugins and this one, and warn of those that cannot be loaded."""
        wanted = self.settings["PLUGINS"]
        super().init_plugins()
        known = [name.removeprefix("pelican.plugins.") for name in self.settings["PLUGINS"]]
        lacking = [
            each
            for each in wanted or ()
            if isinstance(each, str) and each.removeprefix("pelican.plugins.") not in known
        ]
        if lacking:
            warn(
                f"PLUGINS names {', '.join(lacking)}, which cannot be loaded: what it makes is "
                "missing, and its marks in texts stay; install it, or take it out"
            )
        if signals.article_generator_preread.receivers or signals.page_generator_preread.receivers:
            warn(
                "a plugin waits for *_generator_preread, which is never sent: files are read before"
            )
        if __name__ not in known:
            self.plugins.append(sys.modules[__name__])
            register()

    def _get_generator_classes(self) -> list[type]:
        """Return the generators, ours in place of Pelican's; the one that makes files is last."""
        ours = {ArticlesGenerator: Posts, PagesGenerator: Pages, StaticGenerator: Outputs}
        found = [ours.get(each, each) for each in super()._get_generator_classes()]
        return sorted(found, key=lambda each: each is Outputs)


def run_pelican(request: Request, site_url: str, memory: BuildMemory) -> Report:
    """Build a request with the settings of `pelicanconf.py`; raises BuildError and OSError.

    Call it inside of `quiet_pelican`.
    """
    if not request.content.is_dir():
        raise BuildError(f"the content folder {request.content} is not there; make it")
    return open_journal(request, site_url).build(request, memory)


def open_journal(request: Request, site_url: str) -> Journal:
    """Return Pelican with the settings of `pelicanconf.py`; raises BuildError."""
    journal = Journal(
        load_settings(request.content, site_url, OUTPUT_PATH=os.fspath(request.site_folder))
    )
    if request.cache:
        with suppress(OSError):
            request.cache.parent.mkdir(parents=True, exist_ok=True)
    # Templates are kept compiled beside the cache: compiling takes longer than all the rest.
    if request.cache and os.access(request.cache.parent, os.W_OK):
        kept = FileSystemBytecodeCache(os.fspath(request.cache.parent))
        # A new dictionary, since Pelican keeps the settings module's own one between runs.
        journal.settings["JINJA_ENVIRONMENT"] = {
            **journal.settings["JINJA_ENVIRONMENT"],
            "bytecode_cache": kept,
        }
    return journal


def list_sources(content: Path) -> list[Path]:
    """Return the files and folders that a build is made from; raises BuildError."""
    settings = load_settings(content)
    templates = map(Path, settings["THEME_TEMPLATES_OVERRIDES"])
    sources = [content, SETTINGS_FILE, Path(settings["THEME"]), *templates]
    return [*sources, OWN_CATALOGUES] if OWN_CATALOGUES.is_dir() else sources


@contextmanager
def quiet_pelican() -> Iterator[None]:
    """Run Pelican without its messages, since the caller reports, then restore the locale.

    The garbage collector is off: nearly all objects of a build are needed until its end.
    """
    before, console.quiet = locale.setlocale(locale.LC_ALL), True
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        console.quiet = False
        locale.setlocale(locale.LC_ALL, before)


def _log_findings(findings: Iterable[Diagnostic]) -> None:
    logger = logging.getLogger(pelican.__name__)
    for finding in findings:
        logger.log(logging.getLevelNamesMapping()[finding.severity.upper()], "%s", finding)


def make_request(settings: dict[str, Any]) -> Request:
    """Return the request of the command `pelican`, which writes over its last output."""
    output, cache = Path(settings["OUTPUT_PATH"]), Path(settings["CACHE_PATH"])
    state = cache / f"output-{sha256(os.fsencode(output)).hexdigest()[:12]}"
    now = settings.get("BUILD_NOW")
    return Request(
        content=Path(settings["PATH"]),
        site_folder=output,
        state=state,
        previous_state=state,
        cache=cache / "cache.sqlite",
        now=parse_instant(now) if now else datetime.now(UTC),
        jobs=settings.get("BUILD_JOBS") or count_processors(),
        strict=settings.get("BUILD_STRICT", False),
        kept_sources=state / KEPT_FOLDER,
    )


@contextmanager
def explain_disk_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the disk into a BuildError with the path, or else `folder`, and a fix."""
    try:
        yield
    except sqlite3.Error as error:  # of the manifest: a cache that fails goes on in memory
        raise BuildError(f"the build cannot go on: {error}: {folder}; {DISK_FULL_FIX}") from error
    except OSError as error:
        raise BuildError(
            f"the build cannot go on: {error.strerror}: {error.filename or folder}; "
            f"{find_fix(error)}"
        ) from error


def _hide_traceback(record: logging.LogRecord) -> bool:
    """Drop the traceback of a BuildError from Pelican's log: the message is enough."""
    if record.exc_info and isinstance(record.exc_info[1], BuildError):
        record.exc_info = None
    return True


def build_preview(request: Request, site_url: str, known: KnownContent) -> PreviewBuild:
    """Return a preview of content that was read already; raises BuildError."""
    with explain_disk_errors(request.state), quiet_pelican():
        journal = open_journal(request, site_url)
        made = PreviewBuild(request, *journal.describe(), known)
        journal.execute(made)
    return made
