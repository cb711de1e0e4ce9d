"""`post`: publishes or schedules a draft, or withdraws a post, by an edit of its head."""

import sys
from datetime import UTC, datetime
from difflib import get_close_matches
from io import FileIO
from pathlib import Path

from click import Argument, Option

from edge_api.schema.commands import Actions, Arguments
from edge_api.schema.environment import BUILD
from site_build.cli import check
from site_build.cli.check import Source, find_dialect, read_sources
from site_build.cli.terminal import open_console, print_findings
from site_build.content.document import read_document
from site_build.content.edits import rewrite, set_state
from site_build.content.kept import find_slug
from site_build.errors import BuildError
from site_build.options import CONTENT, INSTANT, JOBS, OUTPUT
from site_build.text import write_instant
from site_build.writing.commits import commit_edit
from site_build.writing.hook import ACCEPTED
from site_build.writing.pushes import PushedRepository
from site_build.writing.versions import Refused

_SLUG = Argument(["slug"], help="slug of the post")
ACTIONS: Actions = {
    "publish": (
        "publish a draft or a scheduled post now; a past date that you chose stays",
        "a-first-post",
        (_SLUG, *CONTENT),
    ),
    "schedule": (
        "let a post appear by itself at an instant",
        "a-first-post 2027-03-01T07:00:00Z",
        (
            _SLUG,
            Argument(
                ["instant"], type=INSTANT, help="when it appears, in UTC unless it has a zone"
            ),
            *CONTENT,
        ),
    ),
    "withdraw": (
        "make a post a draft again, which takes it off the site",
        "a-first-post",
        (_SLUG, *CONTENT),
    ),
    "receive": (
        "take a commit that is pushed to a server; the units of deploy --git run this",
        "--trust-settings",
        (
            Option(
                ["--trust-settings"],
                is_flag=True,
                help="take settings, theme and plugins too, which the build runs",
            ),
            *CONTENT,
            OUTPUT,
            JOBS,
        ),
    ),
}


def run(arguments: Arguments) -> int:
    """Change the post and print its new state.

    Raises BuildError if the post has faults, and for a slug that no post has, or more than one.
    """
    if arguments.action == "receive":
        return _receive(arguments)
    content, slug, action = arguments.content, arguments.slug, arguments.action
    console, now = open_console(), datetime.now(UTC).replace(microsecond=0)
    path, raw, before, _ = find_post(content, slug)
    place, is_draft, rules = content / path, action == "withdraw", find_dialect(content).rules
    at = arguments.instant if action == "schedule" else None
    if at and at <= now:
        raise BuildError(
            f"{at:%Y-%m-%dT%H:%M:%SZ} is past; `post publish {slug}` publishes it now", 2
        )
    changed = set_state(path, raw, rules, is_draft=is_draft, at=at, now=now)
    after, findings = read_document(path, changed, rules)
    if after and (after.draft, after.slug) != (is_draft, slug):
        raise BuildError(f"{place} has a head that cannot be changed line by line; edit it")
    if after is None and (before or not is_draft):
        print_findings(console, content, findings)
        raise BuildError(f"nothing is changed: fix {place} before readers see it")
    state = {"publish": "published", "schedule": "scheduled", "withdraw": "a draft"}[action]
    if changed == raw:
        console.print(f"{place} is {state} already; nothing is changed")
        return 0
    rewrite(content, path, raw, changed)
    if reason := commit_edit(place, raw, f"{action.capitalize()} {slug}"):
        console.print(f"{place} is not committed: {reason}")
    dated = f", dated {write_instant(after.published)}" if after and not is_draft else ""
    console.print(
        f"{place} is {state}{dated}; "
        f"readers see the change with the next build, which {BUILD} watch makes by itself"
    )
    return 0


def _receive(arguments: Arguments) -> int:
    """Take the push that standard input has; return 1 if it is refused. Print findings."""
    try:
        if not (repository := PushedRepository.find(arguments.content)):
            raise BuildError("the journal is in no git repository")  # noqa: TRY301
        changed = repository.take(arguments.content, FileIO(0), is_trusted=arguments.trust_settings)
    except (BuildError, Refused, OSError, ValueError) as refusal:
        sys.stdout.write(f"refused: {refusal}\n")
        return 1
    sys.stdout.write(
        f"{ACCEPTED}taken; if a file has an error, it is held back until that is fixed\n"
    )
    options = {"now": None, "strict": False, "all": False, "fix": False, "yes": False}
    return check.run(Arguments(**{**options, "files": changed, **vars(arguments)}))


def find_post(content: Path, slug: str) -> Source:
    """Return the post that has a slug, even if it has faults.

    Raises BuildError if no post has it, or more than one.
    """
    found: dict[str, list[Source]] = {}
    rules = find_dialect(content).rules
    for path, raw, document, findings in read_sources(content, rules):
        if not rules.is_page(path):
            known = document.slug if document else find_slug(raw)
            found.setdefault(known, []).append((path, raw, document, findings))
    posts = found.get(slug, [])
    if len(posts) == 1:
        return posts[0]
    if posts:
        places = " and ".join(str(content / path) for path, *_ in posts)
        raise BuildError(f"{places} have the slug {slug}; give one of them another")
    near = get_close_matches(slug, found, n=1)
    fix = f"did you mean {near[0]!r}?" if near else f"{BUILD} list prints all slugs"
    raise BuildError(f"no post has the slug {slug!r}; {fix}")
