"""Reading time of a text."""

import re

WORDS_PER_MINUTE = 225
"""Silent reading of prose in English: 238 words a minute (Brysbaert 2019), less for code."""

_WORD = re.compile(r"\w+(?:['\u2019\-]\w+)*")


def count_words(text: str) -> int:
    """Return the number of words in plain text or Markdown."""
    return len(_WORD.findall(text))


def reading_minutes(text: str) -> int:
    """Return the whole minutes that `text` takes to read, at least 1."""
    return max(1, round(count_words(text) / WORDS_PER_MINUTE))
