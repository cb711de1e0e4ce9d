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
from site_build.content.edits import Head, apply, change_state, read_parts, rewrite
from site_build.content.sources import list_folder
from site_build.errors import BuildError

_ACTIONS = {
    "publish": ("take the draft mark out of a post, and date it now unless it has a date", ""),
    "schedule": ("let a post appear by itself at an instant", " 2027-03-01T07:00:00Z"),
    "withdraw": ("make a post a draft again, which takes it off the site", ""),
}
"""What each does, and what an example says after the slug."""
_ALIVE = timedelta(minutes=1)
"""How old a heartbeat is at most while a watcher runs."""


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
            about = "when it appears, in UTC unless it has a zone"
            action.add_argument("instant", type=options.read_instant, metavar="INSTANT", help=about)
        options.add(action, settings, "content", "output")


def run(arguments: argparse.Namespace) -> int:
    """Change the post and print what readers will see; return 1 where it has faults.

    Raises BuildError for a slug that no post has, or more than one.
    """
    content, slug, action = arguments.content, arguments.slug, arguments.action
    console, now = open_console(), datetime.now(UTC).replace(microsecond=0)
    rules, (path, raw, head) = find_dialect(content).rules, find_post(content, slug)
    before, place = read_document(path, raw, rules)[0], content / path
    date = f"{arguments.instant:%Y-%m-%dT%H:%M:%SZ}" if action == "schedule" else None
    if date and arguments.instant <= now:
        raise BuildError(f"{date} is past; `post publish {slug}` publishes it now", 2)
    states = {"publish": before.is_public_at(now), "withdraw": before.draft} if before else {}
    if states.get(action):
        state = "published" if action == "publish" else "a draft"
        console.print(f"{place} is {state} already; nothing is changed")
        return 0
    is_dated = head.says("date") and not head.is_started
    if action == "publish" and (not is_dated or (before and before.published > now)):
        date = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    status = "draft" if action == "withdraw" else None
    changed = apply(raw, change_state(head, status, date))
    after, findings = read_document(path, changed, rules)
    if after is None and status is None:
        print_findings(console, content, findings)
        sys.stderr.write(f"nothing is changed: fix {place} before readers see it\n")
        return 1
    if after and (after.draft, after.slug) != (status is not None, slug):
        raise BuildError(f"{place} has a head that cannot be changed line by line; edit it")
    rewrite(content, path, raw, changed)
    watched = False
    with suppress(OSError, ValueError):
        beat = Heartbeat.read(arguments.output)
        watched = beat is not None and now - beat.at < _ALIVE
    soon = "within seconds, since a watcher runs" if watched else f"after {BUILD} build"
    if status:
        console.print(f"{place} is a draft again; readers see it no longer {soon}")
    elif after and after.published > now:
        by = "the watcher publishes it" if watched else f"if {BUILD} watch runs, or a build then"
        console.print(f"{place} is scheduled; readers see it from {date} on: {by}")
    elif after:
        day = f"{after.published:%Y-%m-%d %H:%M} UTC"
        console.print(f"{place} is published, dated {day}; readers see it {soon}")
    return 0


def find_post(content: Path, slug: str) -> tuple[str, bytes, Head]:
    """Return the post that has a slug, also one with faults: path, bytes and head.

    Raises BuildError where no post has it, or more than one.
    """
    rules, unread = find_dialect(content).rules, 0
    found: dict[str, list[tuple[str, bytes, Head]]] = {}
    for path in list_folder(content, rules).sources:
        raw = b""
        with suppress(OSError):
            raw = (content / path).read_bytes()
        head, (document, _) = read_parts(raw), read_document(path, raw, rules)
        unread += not (document or head.parts)
        if not rules.is_page(path):
            known = document.slug if document else head.says("slug")
            found.setdefault(known, []).append((path, raw, head))
    posts = found.get(slug, [])
    if len(posts) > 1:
        places = " and ".join(str(content / path) for path, _, _ in posts)
        raise BuildError(f"{places} have the slug {slug}; give one of them another")
    if not posts:
        near = get_close_matches(slug, found, n=1)
        fix = f"did you mean {near[0]!r}?" if near else f"{BUILD} list names all"
        if unread:
            fix = f"{count(unread, 'file')} cannot be read, see {BUILD} check"
        raise BuildError(f"no post has the slug {slug!r}; {fix}")
    return posts[0]
