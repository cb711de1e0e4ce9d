"""`check`: lists every defect of the content; `--fix` corrects those with one right answer."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Final

from click import Argument, Option, UsageError, types
from rich.console import Console
from rich.text import Text

from edge_api.schema.commands import Arguments
from site_build.addresses import SourceRules
from site_build.build.fingerprint import HOUSE_THEME, fingerprint_code
from site_build.cache import locate_cache
from site_build.cli.terminal import confirm, open_console, print_findings, summarize, with_noun
from site_build.content.document import read_document
from site_build.content.edits import fix_head, rewrite
from site_build.content.library import ContentLibrary
from site_build.content.sources import list_folder, read_bytes
from site_build.errors import BuildError, Diagnostic
from site_build.markup.convert import Dialect
from site_build.options import CONTENT, JOBS, NOW, OUTPUT, STRICT
from site_build.parallel import count_processors
from site_build.progress import Request
from site_build.site import Document
from site_build.text import shorten

PARAMS: Final = (
    Argument(
        ["files"],
        type=types.Path(exists=True, path_type=Path),
        nargs=-1,
        required=False,
        help="list findings about these files alone (default: all files)",
    ),
    *CONTENT,
    OUTPUT,
    NOW,
    STRICT,
    JOBS,
    Option(["--all"], is_flag=True, help="list all findings, not the first ten of each kind"),
    Option(
        ["--fix"],
        is_flag=True,
        help="show how dates, tags and keys can be fixed, ask, and write it; then check",
    ),
    Option(["--yes"], is_flag=True, help="write what --fix shows without asking"),
)


def run(arguments: Arguments) -> int:
    """Print the findings; return 1 if they would stop a build, 2 if the content is unreadable."""
    if arguments.yes and not arguments.fix:
        raise UsageError("--yes belongs to --fix, which it lets write without asking.")
    now, is_fixed = arguments.now or datetime.now(UTC), True
    try:
        content, cache = arguments.content, locate_cache(arguments.output)
        request = Request(
            content=content,
            site_folder=cache.parent,
            state=cache.parent,
            previous_state=cache.parent,
            cache=cache,
            now=now,
            jobs=arguments.jobs or count_processors(),
        )
        console, dialect = open_console(), find_dialect(content)
        if arguments.fix:
            is_fixed = _fix(console, content, dialect.rules, assume_yes=arguments.yes)
        library = ContentLibrary(request, fingerprint_code(), dialect)
        findings = library.check(now)
        if all(each.severity == "warning" for each in findings):
            findings += _check_templates(request, library)
    except BuildError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    files = {each.resolve() for each in arguments.files}
    shown = [e for e in findings if not files or (content / e.path).resolve() in files]
    print_findings(console, content, shown, sys.maxsize if arguments.all else 10)
    console.print(summarize(findings, library.count))
    return int(
        not is_fixed or any(arguments.strict or each.severity == "error" for each in findings)
    )


def _fix(console: Console, content: Path, rules: SourceRules, *, assume_yes: bool) -> bool:
    """Show corrections and, if that is confirmed, write them; return whether all were written.

    A file that cannot be written is reported, and the others are written. Raises BuildError.
    """
    edits = (
        (path, raw, fix_head(path, raw, rules)) for path, raw, *_ in read_sources(content, rules)
    )
    changes = [(path, raw, fixed) for path, raw, fixed in edits if fixed != raw]
    if not changes:
        console.print("nothing has a form that can be fixed for you")
        return True
    for path, raw, fixed in changes:
        name = str(content / path)
        for line in unified_diff(
            raw.decode().splitlines(), fixed.decode().splitlines(), name, name, lineterm="", n=1
        ):
            shown = shorten(line.expandtabs(), sys.maxsize - 1)  # removes control characters
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
            console.print(Text(shown, colour))
    files, written = with_noun(len(changes), "file"), 0
    if not assume_yes and not confirm(console, f"Change {files} so?"):
        console.print(f"nothing is written; {files} can be fixed: check --fix --yes writes them")
        return False
    for path, raw, fixed in changes:
        try:
            rewrite(content, path, raw, fixed)
            written += 1
        except BuildError as refusal:
            sys.stderr.write(f"{refusal}\n")
    console.print(f"{with_noun(written, 'file')} changed")
    return written == len(changes)


def find_dialect(content: Path) -> Dialect:
    """Return the Markdown dialect that the site's settings define; raises BuildError."""
    if not content.is_dir():
        return Dialect()  # The caller reads the folder and reports that it is missing.
    from site_build.pelican_plugin import settings  # noqa: PLC0415  slow to import

    return settings.read_dialect(settings.load_settings(content))


Source = tuple[str, bytes, Document | None, list[Diagnostic]]
"""A source file's path, its bytes, its document, and findings about it."""


def read_sources(content: Path, rules: SourceRules) -> Iterator[Source]:
    """Yield every source file, without bytes if it cannot be read.

    Raises BuildError if the folder cannot be read.
    """
    for path in list_folder(content, rules).sources:
        raw = b""
        with suppress(OSError):
            raw = read_bytes(content, path)
        yield path, raw, *read_document(path, raw, rules)


def _check_templates(request: Request, library: ContentLibrary) -> tuple[Diagnostic, ...]:
    """Return findings about the site's own templates; raises BuildError if one fails."""
    from site_build.build.builder import KnownContent  # noqa: PLC0415  slow to import
    from site_build.pelican_plugin import plugin, settings  # noqa: PLC0415  slow to import

    values = settings.load_settings(request.content)
    if Path(values["THEME"]).resolve() == HOUSE_THEME and not values["THEME_TEMPLATES_OVERRIDES"]:
        return ()
    # Nobody sees these pages, so any origin will do, and related posts need not be found.
    build = plugin.build_preview(
        request, "http://127.0.0.1", KnownContent(library.collect(), related={})
    )
    build.find_unknown_names()
    return build.findings
