"""`schema`: the front matter as JSON Schema, and what an editor is told of it."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from site_build import arguments as options
from site_build.post import Kind
from site_build.preview.server import DEFAULT_PORT
from site_build.reading.editor_settings import (
    describe_front_matter,
    describe_settings,
    relate,
    write_editor_files,
)
from site_build.terminal import open_console

_PREVIEW = f"http://127.0.0.1:{DEFAULT_PORT}"


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "kind",
        nargs="?",
        choices=get_args(Kind),
        default="post",
        help="kind of document (default: post)",
    )
    options.add_content(parser, settings, is_read=False)
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument(
        "--settings", action="store_true", help="print the settings of Visual Studio Code instead"
    )
    doing.add_argument(
        "--write", action="store_true", help="write schemas and settings into .vscode/"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the schema, or write the files; raises BuildError when they cannot be."""
    console, here = open_console(), Path()
    if arguments.write:
        content = relate(arguments.content, here)
        written = write_editor_files(here, content, _PREVIEW)
        for path in written:
            console.print(f"{path} is written")
        if not written:
            console.print("everything is written already")
        return 0
    if arguments.settings:
        value = describe_settings(relate(arguments.content, here), _PREVIEW)
    else:
        value = describe_front_matter(arguments.kind)
    console.print(json.dumps(value, indent=2, ensure_ascii=False))
    return 0
