"""`share`: shares a draft as a page at a secret address, lists shares, and ends them."""

import shutil
from datetime import UTC, datetime, timedelta
from typing import Final

from click import Argument, IntRange, Option

from edge_api.schema.commands import Arguments, require_one
from edge_api.schema.environment import BUILD
from edge_api.schema.paths import SHARED
from edge_api.schema.shares import list_shares
from site_build.cli.serve import make_request
from site_build.cli.terminal import open_console, with_noun
from site_build.errors import BuildError
from site_build.options import CONTENT, JOBS, OUTPUT, SITE_URL
from site_build.pelican_plugin.plugin import explain_disk_errors
from site_build.preview.shares import write_share

PARAMS: Final = (
    Argument(["slug"], required=False, help="slug of a draft or scheduled post"),
    Option(["--list"], is_flag=True, help="list what is shared now"),
    Option(
        ["--revoke"], metavar="SLUG|DIGEST|all", help="end the shares of a slug, one share, or all"
    ),
    Option(
        ["--days"],
        type=IntRange(1, 365),
        default=7,
        metavar="N",
        help="days until it ends, 1 to 365 (default: 7)",
    ),
    *CONTENT,
    OUTPUT,
    SITE_URL,
    JOBS,
)


def run(arguments: Arguments) -> int:
    """Share a draft, list shares, or revoke some. Raises BuildError."""
    require_one(arguments, "SLUG", "--list", "--revoke")
    named, console, now = arguments.revoke, open_console(), datetime.now(UTC).replace(microsecond=0)
    shares = list_shares(arguments.output, now)
    if arguments.slug:
        console.print(_share(arguments, now))
    elif named:
        ended = [e for e in shares if named in {"all", shares[e]["slug"], shares[e]["digest"]}]
        if not ended:
            raise BuildError(f"nothing that is shared is called {named!r}; see share --list")
        with explain_disk_errors(arguments.output):
            for folder in ended:
                shutil.rmtree(folder)
        console.print(f"{with_noun(len(ended), 'share')} revoked")
    for share in shares.values() if arguments.list else ():
        console.print("  ".join(share.values()))
    return 0


def _share(arguments: Arguments, now: datetime) -> str:
    """Share a draft, and return a message about it. Raises BuildError."""
    slug, output, origin = arguments.slug, arguments.output, arguments.site_url
    draft, token, until = write_share(
        make_request(arguments),
        origin,
        output,
        lambda each: each.slug == slug and not each.is_public_at(now),
        expires=now + timedelta(days=arguments.days),
    )
    if draft is None:
        raise BuildError(f"no draft without errors has the slug {slug!r}; see {BUILD} list drafts")
    return (
        f"{draft.title} is shared until {until}, with all who have this address:\n"
        f"{origin}{SHARED}{token}/\n{BUILD} share --revoke {slug} ends that"
    )
