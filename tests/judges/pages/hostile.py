"""A journal written by somebody who wants scripts to run in the browsers of its readers.

In the fields of a post everything is text, whatever it looks like. In its body an author may write
HTML of their own, so those posts are apart: there the site's policy and the sanitiser have to hold.
Control characters are left out, for a build refuses a text that has one.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from site_build.content.front_matter import KEYS, LONGEST_SERIES
from site_build.text import make_slug, strip_control_characters
from tests.judges.pages.sample import CONTACT, PICTURE

_FENCE = "`" * 8
_FIELDS = tuple(name for name in ("description", "excerpt", "author", "series") if name in KEYS)
FIELD, BODY = "field", "body"
"""Beginnings of the slugs of both sorts of posts."""


def spelled(payload: str) -> str:
    """Return a payload as a text can hold it."""
    return strip_control_characters(payload)


def tamed(payload: str) -> str:
    """Return a payload as the head of a post holds it: on one line."""
    return " ".join(spelled(payload).split()) or "x"


def _tags(text: str) -> list[str]:
    return [text] if make_slug(text) else [f"{text} tag"]


def _head(title: str, slug: str, number: int, **fields: object) -> str:
    values = {"title": title, "slug": slug, "date": f"2026-03-{1 + number % 28:02}", **fields}
    lines = [f"{name}: {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _field_post(number: int, payload: str) -> str:
    """Return a post with the payload in every field, and in what Markdown takes for code."""
    text = tamed(payload)
    fields: dict[str, object] = dict.fromkeys(_FIELDS, text)
    fields["series"] = text[:LONGEST_SERIES].strip()
    head = _head(text, f"{FIELD}-{number}", number, tags=_tags(text), **fields)
    code = f"{_FENCE}text\n{spelled(payload)}\n{_FENCE}\n"
    return f"{head}Words of the post.\n\n{code}\n## Code\n\n{'`' * 9} {text} {'`' * 9}\n"


def _body_post(number: int, payload: str) -> str:
    head = _head("A body", f"{BODY}-{number}", number)
    return f"{head}Words before.\n\n{spelled(payload)}\n\nWords behind.\n"


def write_hostile(content: Path, payloads: Sequence[str]) -> Path:
    """Write two posts for each payload below `content`, and return that."""
    for folder in ("posts", "pages", "images"):
        (content / folder).mkdir(parents=True)
    shutil.copy(CONTACT, content / "pages")
    (content / "images" / "fore-edges.svg").write_text(PICTURE, encoding="utf-8")
    for number, payload in enumerate(payloads):
        for name, source in (
            (FIELD, _field_post(number, payload)),
            (BODY, _body_post(number, payload)),
        ):
            file = content / "posts" / f"{name}-{number}.md"
            file.write_bytes(source.encode("utf-8", "replace").replace(b"\x00", b""))
    return content
