"""`check --fix`: what has one right answer, shown as a difference, and written with consent."""

import sys
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path

from rich.console import Console
from rich.text import Text

from site_build.addresses import SourceRules
from site_build.cli.terminal import count
from site_build.content.edits import fix_head, rewrite
from site_build.content.sources import list_folder
from site_build.errors import BuildError
from site_build.text import shorten

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def fix_content(console: Console, content: Path, rules: SourceRules, *, is_agreed: bool) -> bool:
    """Show what can be fixed and, with consent, write it; return whether all of it was written.

    A file that cannot be written is named, and does not keep the others from it. Raises BuildError.
    """
    changes: list[tuple[str, bytes, bytes]] = []
    for path in list_folder(content, rules).sources:
        with suppress(OSError):  # The check names it.
            raw = (content / path).read_bytes()
            fixed = fix_head(path, raw, rules)
            changes += [(path, raw, fixed)] if fixed != raw else []
    if not changes:
        console.print("nothing has a form that can be fixed for you")
        return True
    for path, raw, fixed in changes:
        name = str(content / path)
        former, latter = (each.decode().splitlines() for each in (raw, fixed))
        for line in unified_diff(former, latter, name, name, lineterm="", n=1):
            # Without what a terminal would obey.
            shown = shorten(line.expandtabs(), sys.maxsize - 1)
            console.print(Text(shown, _COLOURS.get(line[:1], "")))
    files, written = count(len(changes), "file"), 0
    if not is_agreed and sys.stdin.isatty() and sys.stdout.isatty():
        console.print(f"Change {files} so? [y/N] ", end="")
        is_agreed = sys.stdin.readline().strip().lower() in {"y", "yes"}
    if not is_agreed:
        console.print(f"nothing is written; {files} can be fixed: check --fix --yes writes them")
        return False
    for path, raw, fixed in changes:
        try:
            rewrite(content, path, raw, fixed)
            written += 1
        except BuildError as refusal:
            sys.stderr.write(f"{refusal}\n")
    console.print(f"{count(written, 'file')} changed")
    return written == len(changes)
