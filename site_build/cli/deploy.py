"""`deploy`: serve a journal of /srv at a domain, with systemd and a proxy."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from click import Argument, Choice, Option

from edge_api.schema.commands import Arguments, parameter_type


def _read_place(text: str) -> str:
    """Return a URL as it is, and a path as an absolute one that keeps its symbolic links."""
    return text if "://" in text else os.path.abspath(text)  # noqa: PTH100  `resolve` follows links


def _read_domain(text: str) -> str:
    labels = text.lower().split(".")
    good = all(each.isascii() and each.replace("-", "a").isalnum() for each in labels)
    if len(labels) < 2 or not good:  # noqa: PLR2004
        raise ValueError(f"{text!r} is no domain, such as journal.example")
    return text.lower()


def _read_name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]{,19}", text, re.ASCII):
        raise ValueError(f"{text!r} is no name: take at most 20 of a-z and 0-9, first a letter")
    return text


def _read_key(text: str) -> str:
    """Return a line of `authorized_keys` without options; raises ValueError for anything else."""
    if not re.fullmatch(
        r"(?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+ AAAA[\w+/]+=*(?: [ -~]*)?", text, re.ASCII
    ):
        raise ValueError(
            f"{text[:40]!r} is no public key: give the one line of a file such as id_ed25519.pub"
        )
    return text


PARAMS: Final = (
    Argument(["domain"], type=parameter_type(_read_domain), help="the journal's domain"),
    Option(["--owner"], metavar="EMAIL", required=True, help="who gets enquiries"),
    Option(
        ["--name"],
        type=parameter_type(_read_name),
        help="for another journal on this server: its folder is /srv/NAME, and user and units have "
        "this name (default: that of the domain, or journal)",
    ),
    Option(["--proxy"], type=Choice(("nginx", "caddy")), default="nginx", help="(default: nginx)"),
    Option(
        ["--restore"],
        metavar="FILE|REPLICA",
        type=_read_place,
        help="on a new machine: begin with an archive of backup --all, a backup or a replica; "
        "a file must be one that root alone can replace",
    ),
    Option(
        ["--key"],
        metavar="FILE",
        type=os.path.abspath,
        help="the private key of an archive, or the secret key of a backup or replica",
    ),
    Option(
        ["--replica"],
        metavar="URL",
        help="set LITESTREAM_REPLICA, and let the edge write its folder",
    ),
    Option(
        ["--from-pelican"],
        metavar="DIR",
        type=os.path.abspath,
        help="begin with content and settings of a Pelican site, which its user can read",
    ),
    Option(["--git"], is_flag=True, help="take the content by git push, at /srv/NAME.git"),
    Option(
        ["--git-key"],
        metavar="KEY",
        type=parameter_type(_read_key),
        multiple=True,
        help="with --git: a public key that may push and fetch, such as 'ssh-ed25519 AAAA…'",
    ),
    Option(
        ["--trust-settings"],
        is_flag=True,
        help="with --git: pushes may change settings, theme and plugins, which the build runs",
    ),
)


def run(arguments: Arguments) -> int:
    """Run the script `install`, which needs root; return its exit status."""
    # The folder `deploy` is in the package of a wheel, and beside the package in the repository.
    folders = (Path(__file__).resolve().parents[up] / "deploy" for up in (1, 2))
    command = [
        "/bin/sh",
        next(each for each in folders if each.is_dir()) / "install",
        sys.prefix,
        arguments.domain,
        arguments.owner,
        arguments.proxy,
        arguments.restore or "",
        arguments.replica or "",
        arguments.key or "",
        arguments.from_pelican or "",
        "on" if arguments.git else "",
        "\n".join(arguments.git_key),
        "on" if arguments.trust_settings else "",
        arguments.name or "",
    ]
    # Ctrl-C is for the script, which removes what it has begun and ends with 130.
    signal.signal(signal.SIGINT, lambda *_: None)
    return subprocess.call(command)  # noqa: S603
