"""`share`: a draft as a page at a secret address, for a while; what is shared; and its end."""

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from rich.console import Console

from edge_api.schema.environment import BUILD
from edge_api.schema.paths import SHARED
from edge_api.schema.shares import Share
from site_build import options
from site_build.build.builder import KnownContent
from site_build.build.fingerprint import fingerprint_code
from site_build.cli.serve import make_request
from site_build.cli.terminal import count, open_console, print_findings, print_table
from site_build.content.library import ContentLibrary
from site_build.errors import BuildError, ContentError, Diagnostic
from site_build.pelican_plugin.plugin import build_preview, read_dialect
from site_build.progress import Observer
from site_build.releases.shares import (
    find_shares,
    publish_only,
    revoke_share,
    word_expiry,
    write_share,
)
from site_build.site import Document
from site_build.text import write_instant

_DAYS = 7
_DIGITS = 12
"""Of a digest that `--list` prints, hexadecimal."""


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("slug", nargs="?", metavar="SLUG", help="slug of a draft or scheduled post")
    wanted.add_argument("--list", action="store_true", help="list what is shared now")
    wanted.add_argument(
        "--revoke", metavar="SLUG|DIGEST|all", help="end the shares of a slug, one share, or all"
    )
    parser.add_argument(
        "--days",
        type=options.read_share_days,
        default=_DAYS,
        metavar="N",
        help=f"share it for so many days, from 1 to 365 (default: {_DAYS})",
    )
    options.add(parser, settings, "content", "output", "site-url", "jobs")


def run(arguments: argparse.Namespace) -> int:
    """Share, list or revoke; return 1 for a draft with errors. Raises BuildError."""
    console, now = open_console(), datetime.now(UTC).replace(microsecond=0)
    shares = find_shares(arguments.output, now)
    if arguments.slug:
        try:
            _share(console, arguments, now)
        except ContentError as refusal:
            print_findings(console, arguments.content, refusal.findings)
            raise
    elif arguments.revoke:
        _revoke(console, arguments, shares)
    elif shares:
        print_table(console, [("SLUG", "MADE", "EXPIRES", "DIGEST"), *map(_word, shares)])
    else:
        console.print("nothing is shared")
    return 0


def _word(item: tuple[str, Share]) -> tuple[str, ...]:
    digest, share = item
    return share.slug, write_instant(share.made), write_instant(share.expires), digest[:_DIGITS]


def _share(console: Console, arguments: argparse.Namespace, now: datetime) -> None:
    with Observer(console if console.is_terminal else None) as observer:
        request = make_request(arguments, observer)
        dialect = read_dialect(arguments.content, arguments.site_url)
        library = ContentLibrary(request, fingerprint_code(), dialect)
        content = library.collect()
        draft = _find_draft(content.documents, library.list_errors(), arguments.slug, now)
        findings = [each for each in library.check(now) if each.path == draft.path]
        known = KnownContent(publish_only(content, draft, now), check=lambda: tuple(findings))
        build = build_preview(request, arguments.site_url, known)
        expires = now + timedelta(days=arguments.days)
        share = Share(slug=draft.slug, title=draft.title, made=now, expires=expires, files=())
        token = write_share(arguments.output, build, draft, share)
    print_findings(console, arguments.content, findings)
    console.print(f"{draft.title} is shared until {word_expiry(share)}, with all who know this:")
    console.print(f"  {arguments.site_url}{SHARED}{token}/")
    console.print(f"to end that: {BUILD} share --revoke {draft.slug}")


def _find_draft(
    documents: Sequence[Document], errors: tuple[Diagnostic, ...], slug: str, now: datetime
) -> Document:
    """Return the document that is not public yet; raises ContentError where files have errors."""
    found = [each for each in documents if each.slug == slug]
    for each in found:
        if any(error.path == each.path for error in errors):
            break
        if not each.is_public_at(now):
            return each
    else:
        if found:
            raise BuildError(
                f"{slug} is public already, at /{found[0].address}; share that address"
            )
    if errors:
        raise ContentError(errors)
    near = get_close_matches(slug, [each.slug for each in documents if not each.is_public_at(now)])
    fix = f"did you mean {near[0]!r}?" if near else f"`{BUILD} list drafts` names all drafts"
    raise BuildError(f"no draft has the slug {slug!r}; {fix}")


def _revoke(
    console: Console, arguments: argparse.Namespace, shares: Sequence[tuple[str, Share]]
) -> None:
    named = arguments.revoke
    ended = [
        digest
        for digest, share in shares
        if named in {"all", share.slug} or (len(named) >= _DIGITS and digest.startswith(named))
    ]
    if not ended and named != "all":
        raise BuildError(f"no share has the slug or digest {named!r}; --list names all shares")
    for digest in ended:
        revoke_share(arguments.output, digest)
    console.print(f"{count(len(ended), 'share')} revoked")
