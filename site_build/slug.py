"""Slugs from titles: the address of a post in plain letters, whatever script the title is in.

It knows neither files nor front matter; whether a slug is free is somebody else's question.
"""

import re
from functools import lru_cache

from unidecode import unidecode

LONGEST_SLUG = 80
"""Code points of a made slug; an author may write a longer one."""

_APOSTROPHE = re.compile(r"(?<=[a-z0-9])['\u2019`](?=[a-z0-9])")
_WORD = re.compile(r"[a-z0-9]+")


@lru_cache(maxsize=4_096)  # The same few tags come with thousands of posts.
def make_slug(title: str) -> str:
    """Return a slug for `title`, or an empty string when nothing in it can be written in a-z0-9."""
    plain = _APOSTROPHE.sub("", unidecode(title, errors="ignore").lower())
    slug = ""
    for word in _WORD.findall(plain):
        longer = f"{slug}-{word}" if slug else word[:LONGEST_SLUG]
        if len(longer) > LONGEST_SLUG:
            break
        slug = longer
    return slug
