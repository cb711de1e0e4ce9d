"""Reading time of a text."""

import re


def count_words(text: str) -> int:
    """Return the number of words in plain text or Markdown."""
    return len(re.findall(r"\w+(?:['\u2019\-]\w+)*", text))


def reading_minutes(text: str) -> int:
    """Return the whole minutes that `text` takes to read, at least 1.

    People read 238 words of English prose a minute in silence (Brysbaert 2019), less of code.
    """
    return max(1, round(count_words(text) / 225))
