"""`settings`: print every setting with its value and its purpose."""

import argparse

from edge_api.settings import SETTINGS, Setting, Settings


def add_options(_parser: argparse.ArgumentParser) -> None:
    """Declare no option."""


def run(_arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the table. Returns 0."""
    width = max(map(len, SETTINGS))
    for name, setting in SETTINGS.items():
        value = _show(getattr(settings, name.lower()), setting)
        print(f"{name:<{width}}  {value:<28}  {setting.description}")
    return 0


def _show(value: object, setting: Setting) -> str:
    if value is None:
        return "(not set)"
    if setting.secret:
        return "(hidden)"
    return ", ".join(value) if isinstance(value, tuple) else setting.show(value)
