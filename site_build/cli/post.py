"""`post`: a draft is published or scheduled, or a post is withdrawn, by an edit of its head."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from edge_api.schema.environment import BUILD
from edge_api.schema.installed_code import Heartbeat
from site_build import options
from site_build.cli.check import find_dialect
from site_build.cli.terminal import count, open_console, print_findings
from site_build.content.document import read_document
from site_build.content.edits import change_line, read_line, rewrite
from site_build.content.sources import list_folder, read_bytes
from site_build.errors import BuildError
from site_build.site import Document
from site_build.text import write_instant

_ACTIONS = {
    "publish": ("take the draft mark out of a post, and date it now unless it has a date", ""),
    "schedule": ("let a post appear by itself at an instant", " 2027-03-01T07:00:00Z"),
    "withdraw": ("make a post a draft again, which takes it off the site", ""),
}
"""What each does, and what an example says after the slug."""


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, (summary, more) in _ACTIONS.items():
        action = actions.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example: %(prog)s a-first-post{more}",
        )
        action.add_argument("slug", metavar="SLUG", help="slug of the post")
        if name == "schedule":
            action.add_argument(
                "instant",
                type=options.read_instant,
                metavar="INSTANT",
                help="when it appears, in UTC unless it has a zone",
            )
        options.add(action, settings, "content", "output")


def run(arguments: argparse.Namespace) -> int:
    """Change the post and print what readers will see; return 1 where it has faults.

    Raises BuildError for a slug that no post has, or more than one.
    """
    content, slug, action = arguments.content, arguments.slug, arguments.action
    console, now = open_console(), datetime.now(UTC).replace(microsecond=0)
    path, raw, before = find_post(content, slug)
    place, is_draft = content / path, action == "withdraw"
    instant = arguments.instant if action == "schedule" else now
    date = f"{instant:%Y-%m-%dT%H:%M:%SZ}"
    if action == "schedule" and instant <= now:
        raise BuildError(f"{date} is past; `post publish {slug}` publishes it now", 2)
    states = {"publish": before.is_public_at(now), "withdraw": before.draft} if before else {}
    if states.get(action):
        console.print(
            f"{place} is {'a draft' if is_draft else 'published'} already; nothing is changed"
        )
        return 0
    changed = change_line(raw, "status", "draft" if is_draft else None)
    is_coming = action == "schedule" or (before and before.published > now)
    if not is_draft and (is_coming or not read_line(raw, "date")):
        changed = change_line(changed, "date", date)
    after, findings = read_document(path, changed, find_dialect(content).rules)
    if after is None and (before or not is_draft):
        print_findings(console, content, findings)
        sys.stderr.write(f"nothing is changed: fix {place} before readers see it\n")
        return 1
    if after and (after.draft, after.slug) != (is_draft, slug):
        raise BuildError(f"{place} has a head that cannot be changed line by line; edit it")
    rewrite(content, path, raw, changed)
    watched = False
    with suppress(OSError, ValueError):
        beat = Heartbeat.read(arguments.output)
        watched = beat is not None and now - beat.at < timedelta(minutes=1)
    soon = "within seconds, since a watcher runs" if watched else f"after {BUILD} build"
    says = f"a draft again; readers see it no longer {soon}"
    if after and after.published > now and not is_draft:
        by = "the watcher publishes it" if watched else f"if {BUILD} watch runs, or a build then"
        says = f"scheduled; readers see it from {write_instant(after.published)} on: {by}"
    elif after and not is_draft:
        says = f"published, dated {after.published:%Y-%m-%d %H:%M} UTC; readers see it {soon}"
    console.print(f"{place} is {says}")
    return 0


def find_post(content: Path, slug: str) -> tuple[str, bytes, Document | None]:
    """Return the post that has a slug, also one with faults: path, bytes and what they say.

    Raises BuildError where no post has it, or more than one.
    """
    rules = find_dialect(content).rules
    found: dict[str, list[tuple[str, bytes, Document | None]]] = {}
    for path in list_folder(content, rules).sources:
        raw = b""
        with suppress(OSError):
            raw = read_bytes(content, path)
        document, _ = read_document(path, raw, rules)
        if not rules.is_page(path):
            known = document.slug if document else read_line(raw, "slug")
            found.setdefault(known, []).append((path, raw, document))
    unread, posts = found.pop("", []), found.get(slug, [])
    if len(posts) == 1:
        return posts[0]
    if posts:
        places = " and ".join(str(content / path) for path, _, _ in posts)
        raise BuildError(f"{places} have the slug {slug}; give one of them another")
    near = get_close_matches(slug, found, n=1)
    fix = f"did you mean {near[0]!r}?" if near else f"{BUILD} list names all"
    if unread:
        fix = f"{count(len(unread), 'file')} cannot be read, see {BUILD} check"
    raise BuildError(f"no post has the slug {slug!r}; {fix}")
