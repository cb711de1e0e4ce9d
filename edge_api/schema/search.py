"""What is searched in a post, and what is found: plain values, which name no engine."""

from typing import Final, NamedTuple

WORDS_LONGEST: Final = 1000
"""Characters of what somebody looks for; the rest is not looked at."""


class SearchText(NamedTuple):
    """The text of a post, free of markup."""

    slug: str
    title: str
    description: str
    tags: str
    prose: str
    code: str
    """What stands in blocks of code: looked through like prose, but shown only for want of that."""


class Segment(NamedTuple):
    """A piece of a text, which is a word that was looked for, or lies between two such."""

    text: str
    is_match: bool


Segments = tuple[Segment, ...]


class Finding(NamedTuple):
    """A post that was found."""

    slug: str
    title: Segments
    snippet: Segments
    """The place in the text that shows best why; the description where the text has none."""


class Findings(NamedTuple):
    """A part of what was found, best first."""

    total: int
    """How many posts have all the words."""
    findings: tuple[Finding, ...]
    """Where few posts have all the words, those that come nearest follow."""
    suggestion: str | None = None
    """What was asked in a more frequent spelling, where hardly any post has the given one."""
