"""`settings`: every setting with its value and what it is for."""

import argparse

from edge_api.commands import Subparsers
from edge_api.settings import SETTINGS, Settings


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    subparsers.add_parser("settings", help="print every setting, secrets hidden")


def run(_arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the table. Returns 0."""
    width = max(map(len, SETTINGS))
    for name, setting in SETTINGS.items():
        value = getattr(settings, name.lower())
        print(f"{name:<{width}}  {_spell(value, secret=setting.secret):<28}  {setting.sentence}")
    return 0


def _spell(value: object, *, secret: bool) -> str:
    if value is None:
        return "(not set)"
    if secret:
        return "(hidden)"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
