"""Writes the head of a text, and leaves out of a text what no file of a journal may hold."""

from typing import Any

import yaml

from site_build.content.document import LARGEST_FILE
from site_build.text import strip_control_characters


def clean(text: str) -> str:
    """Return a text without what no file of a journal may hold: controls, halves of characters."""
    return strip_control_characters(text.encode(errors="replace").decode())


def write_head(head: dict[str, Any]) -> bytes:
    """Return the head of a file: each list on one line, a day without its midnight."""
    lines = (
        yaml.dump(
            {name: value.date() if str(value).endswith(" 00:00:00") else value},
            Dumper=yaml.CSafeDumper,
            allow_unicode=True,
            width=LARGEST_FILE,
            default_flow_style=None if isinstance(value, list) else False,
        )
        for name, value in head.items()
        if value
    )
    return f"---\n{''.join(lines)}---\n".encode(errors="replace")
