"""`deploy`: serve a journal in /srv/journal at a domain, with systemd and a proxy."""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_FOLDERS = [Path(__file__).resolve().parents[up] / "deploy" for up in (1, 2)]
"""Where the wheel has the folder, and where the repository has it."""


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:  # noqa: ARG001
    """Declare the command's options."""
    parser.add_argument("domain", metavar="DOMAIN", type=_read_domain, help="the journal's domain")
    parser.add_argument("--owner", metavar="EMAIL", required=True, help="who gets enquiries")
    parser.add_argument("--proxy", choices=("nginx", "caddy"), default="nginx")


def run(arguments: argparse.Namespace) -> int:
    """Run the script, which needs root; return its exit status."""
    script = next(each for each in _FOLDERS if each.is_dir()) / "install"
    words = [sys.prefix, arguments.domain, arguments.owner, arguments.proxy]
    return subprocess.call(["/bin/sh", script, *words])  # noqa: S603


def _read_domain(text: str) -> str:
    labels = text.lower().split(".")
    if len(labels) < 2 or not all(each.replace("-", "a").isalnum() for each in labels):  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text!r} is no domain, such as journal.example")
    return text.lower()
