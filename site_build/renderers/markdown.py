"""Small pieces of Markdown that several renderers write, safe for any title."""

import re
from collections.abc import Sequence

from site_build import addresses
from site_build.post import Document
from site_build.site import Identity

_SPECIAL = re.compile(r"([\\\[\]`*_<>])")


def escape_text(text: str) -> str:
    """Return plain text so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def write_link(text: str, url: str) -> str:
    """Return a link with plain text."""
    return f"[{escape_text(text)}]({url})"


def list_posts(identity: Identity, posts: Sequence[Document]) -> list[str]:
    """Return one line for each post: its twin, its day and what it is about."""
    return [
        f"- {write_link(post.title, _locate_twin(identity, post))}"
        f" ({post.published:%Y-%m-%d}): {escape_text(post.description)}"
        for post in posts
    ]


def list_pages(identity: Identity, pages: Sequence[Document]) -> list[str]:
    """Return one line for each page: its twin and what it is about."""
    return [
        f"- {write_link(page.title, _locate_twin(identity, page))}: {escape_text(page.description)}"
        for page in pages
    ]


def list_overviews(identity: Identity) -> list[tuple[str, str, str]]:
    """Return title, path of the twin and a sentence of each list that the site makes."""
    lists = identity.addresses
    known = (
        ("Journal", lists.journal, "all posts, newest first"),
        ("Tags", lists.tags, "all tags with the number of their posts"),
        ("Archive", lists.archive, "all posts by year"),
    )
    return [(title, addresses.name_twin(path), words) for title, path, words in known if path]


def _locate_twin(identity: Identity, document: Document) -> str:
    return identity.absolute(addresses.name_twin(document.address))
