"""`push`: sends the served build to a bucket that edges fetch it from, or a site to a web host."""

import os
import signal
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from click import Argument, Option
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from edge_api.schema.commands import Arguments, parameter_type, require_one
from edge_api.schema.environment import PRIVATE_PREFIX, read_bucket, read_key
from edge_api.schema.index import CURRENT_LINK
from edge_api.schema.pushed_builds import BucketError, make_keys
from edge_api.schema.shares import list_shares
from site_build.cli.terminal import open_console
from site_build.errors import BuildError
from site_build.options import OUTPUT, read_settings
from site_build.releases.remote import push, push_static

PARAMS: Final = (
    Argument(
        ["url"],
        type=parameter_type(read_bucket),
        required=False,
        help="folder, or s3://bucket/path, gs://bucket/path, az://container/path",
    ),
    Option(["--static"], is_flag=True, help="send the files of the site alone, for any web host"),
    Option(["--follow"], is_flag=True, help="keep running, and push each new build"),
    Option(["--whole"], is_flag=True, help="store all objects again, also those known to be there"),
    Option(["--new-key"], is_flag=True, help="print a new pair of keys, and push nothing"),
    OUTPUT,
)
_PAUSE_SECONDS: Final = 5.0
"""The pause after a push that failed, with --follow."""


def run(arguments: Arguments) -> int:
    """Push, and print what was sent. Raises BuildError."""
    require_one(arguments, "URL", "--new-key")
    if arguments.new_key:
        private, public = make_keys()
        sys.stdout.write(f"BUILD_SIGNING_KEY={private}\nBUILD_KEY={public}\n")
        sys.stderr.write("the first line is for the machine that pushes, the second for edges\n")
        return 0
    if arguments.follow:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    console, pushed, output = open_console(), None, arguments.output
    with suppress(KeyboardInterrupt):
        while True:
            state = (
                os.path.realpath(output / CURRENT_LINK),
                {*list_shares(output, datetime.now(UTC))},
            )
            try:
                if state != pushed:
                    console.print(_push(arguments))
                    pushed = state
            except BuildError as error:
                if not arguments.follow or error.exitcode != 1:
                    raise
                console.print(f"{error}; it is tried again")
                time.sleep(_PAUSE_SECONDS)
            if not arguments.follow:
                return 0
            time.sleep(1)
    return 0


def _push(arguments: Arguments) -> str:
    url, settings = arguments.url, read_settings()
    try:
        if arguments.static:
            return push_static(arguments.output, url)
        raw = read_key(settings.get("BUILD_SIGNING_KEY", ""), PRIVATE_PREFIX)
        key, secret = Ed25519PrivateKey.from_private_bytes(raw), settings.get("SECRET_KEY", "")
        return push(arguments.output, url, key, secret, whole=arguments.whole)
    except ValueError as error:
        raise BuildError(f"BUILD_SIGNING_KEY: {error}", 2) from None
    except BucketError as error:
        raise BuildError(f"{url}: {error.detail}") from None
