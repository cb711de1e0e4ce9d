"""`check`: every defect of the content, and nothing written but the cache of the builds."""

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from site_build import options
from site_build.build.fingerprint import HOUSE_THEME, fingerprint_code
from site_build.cache import locate_cache
from site_build.cli.terminal import open_console, print_findings, total
from site_build.content.library import ContentLibrary
from site_build.errors import BuildError, Diagnostic
from site_build.markup.convert import Dialect
from site_build.parallel import count_processors
from site_build.progress import Request


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    options.add(parser, settings, "content", "output", "now", "strict", "jobs")
    about = "list all findings, not the first ten of each kind"
    parser.add_argument("--all", action="store_true", help=about)
    about = "show how dates, tags and keys can be fixed, ask, and write it; then check"
    parser.add_argument("--fix", action="store_true", help=about)
    parser.add_argument("--yes", action="store_true", help="write what --fix shows without asking")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return 1 when they would stop a build."""
    now, is_fixed = arguments.now or datetime.now(UTC), True
    try:
        jobs = arguments.jobs or count_processors()
        content, cache = arguments.content, locate_cache(arguments.output)
        request = Request(content, cache.parent, cache.parent, cache.parent, cache, now, jobs)
        console, dialect = open_console(), find_dialect(content)
        if arguments.fix:
            from site_build.cli.fix import fix_content  # noqa: PLC0415  few need it

            is_fixed = fix_content(console, content, dialect.rules, is_agreed=arguments.yes)
        library = ContentLibrary(request, fingerprint_code(), dialect)
        findings = library.check(now)
        if all(each.severity == "warning" for each in findings):
            findings += _check_templates(request, library)
    except BuildError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    print_findings(console, arguments.content, findings, every=arguments.all)
    console.print(total(findings, library.count))
    fails = any(arguments.strict or each.severity == "error" for each in findings)
    return int(fails or not is_fixed)


def find_dialect(content: Path) -> Dialect:
    """Return how the site's settings have texts read; raises BuildError."""
    if not content.is_dir():
        return Dialect()  # Whoever reads the folder says that it is not there.
    from site_build.pelican_plugin import settings  # noqa: PLC0415  it takes half a second

    return settings.read_dialect(settings.load_settings(content))


def _check_templates(request: Request, library: ContentLibrary) -> tuple[Diagnostic, ...]:
    """Return findings about templates that are not ours; raises BuildError for one that fails."""
    from site_build.build.builder import KnownContent  # noqa: PLC0415  likewise
    from site_build.pelican_plugin import plugin, settings  # noqa: PLC0415  likewise

    values = settings.load_settings(request.content)
    if Path(values["THEME"]).resolve() == HOUSE_THEME and not values["THEME_TEMPLATES_OVERRIDES"]:
        return ()
    # Nobody sees these pages: any origin will do, and posts need not be related, which takes long.
    build = plugin.build_preview(
        request, "http://127.0.0.1", KnownContent(library.collect(), related={})
    )
    build.find_unknown_names()
    return build.findings
