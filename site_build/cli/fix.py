"""`check --fix`: what has one right answer, shown as a difference, and written with consent."""

import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

from rich.console import Console
from rich.text import Text

from site_build.addresses import SourceRules
from site_build.cli.terminal import count
from site_build.content.edits import fix_head, rewrite
from site_build.content.sources import list_folder
from site_build.errors import BuildError

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def fix_content(console: Console, content: Path, rules: SourceRules, *, is_agreed: bool) -> bool:
    """Show what can be fixed and, with consent, write it; return whether all of it was written.

    A file that cannot be written is named, and does not keep the others from it. Raises BuildError.
    """
    changes: dict[str, tuple[bytes, bytes]] = {}
    for path in list_folder(content, rules).sources:
        try:
            raw = (content / path).read_bytes()
        except OSError:
            continue  # The check names it.
        if (fixed := fix_head(path, raw, rules)) != raw:
            changes[path] = raw, fixed
    if not changes:
        console.print("nothing has a form that can be fixed for you")
        return True
    for path, (raw, fixed) in changes.items():
        for line in _compare(str(content / path), raw, fixed):
            console.print(Text(line, _COLOURS.get(line[:1], "")))
    files = count(len(changes), "file")
    if not is_agreed and not _ask(f"Change {files} so? [y/N] "):
        console.print(f"nothing is written; {files} can be fixed: check --fix --yes writes them")
        return False
    refused = 0
    for path, (raw, fixed) in changes.items():
        try:
            rewrite(content, path, raw, fixed)
        except BuildError as refusal:
            refused += 1
            sys.stderr.write(f"{refusal}\n")
    console.print(f"{count(len(changes) - refused, 'file')} changed")
    return not refused


def _ask(question: str) -> bool:
    """Return whether somebody at a terminal agrees."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        return input(question).strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _compare(name: str, before: bytes, after: bytes) -> Iterator[str]:
    """Yield the lines of a unified difference, without what a terminal would obey."""
    former, latter = (each.decode().splitlines() for each in (before, after))
    for line in unified_diff(former, latter, name, name, lineterm="", n=1):
        yield "".join(sign if sign.isprintable() or sign == "\t" else "\ufffd" for sign in line)
