"""How commands show rows, and read lists of words: one way for all of them."""

import argparse
import re
from collections.abc import Sequence


def print_columns(lines: Sequence[Sequence[str]]) -> None:
    """Print lines of cells in columns as wide as they need; the first line is the head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def printable(text: str) -> str:
    """Return the text with a sign for each character that a terminal would obey."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def words(text: str) -> tuple[str, ...]:
    """Return the words of an option, each once, between blanks or commas."""
    found = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not found:
        raise argparse.ArgumentTypeError("names nothing: leave it out for the default")
    return found


def read_count(text: str) -> int:
    """Return the number of an option, from 1 on. Raises ArgumentTypeError."""
    if re.fullmatch("[0-9]{1,6}", text) is None or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 999999")
    return int(text)
