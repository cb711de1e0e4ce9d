"""The posts of one build, in a list and each alone, serialized once when the build is loaded."""

import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import unquote

import orjson
from selectolax.lexbor import LexborHTMLParser

from edge_api.db.problems import Problem
from edge_api.db.types import format_instant
from edge_api.operation.model import Document
from edge_api.schema.index import PostRecord, SearchText

CACHE_CONTROL: Final = "private, no-cache"
"""Only the client may store an answer, and must revalidate it: a new build is current at once."""

_WORD_BREAK: Final = re.compile(
    r"<(?=/?(?:p|h[1-6]|li|ul|ol|d[dltv]|t[dhr]|table|pre|blockquote|div|fig\w*|caption|summary"
    r"|[bh]r|details|aside|section)\b)"
)
"""The beginnings of tags that separate two words, even without a space between them."""

_DERIVED_MEMBERS: Final = ("content_html", "readingMinutes")
"""Members of a post that may change with its neighbours or the program's version."""


@dataclass(frozen=True, slots=True)
class PostCursor:
    """A position in the list of posts, which is ordered by time, newest first, and then by slug.

    It is valid in later builds too.
    """

    published: str
    """The time of publication in canonical form: its order as text is its order in time."""
    slug: str

    def __str__(self) -> str:
        """Return the position as one word, as clients send it."""
        return f"{self.published}_{self.slug}"

    def is_before(self, other: "PostCursor") -> bool:
        """Return whether this position is nearer to the top than `other`."""
        if self.published == other.published:
            return self.slug < other.slug
        return self.published > other.published


@dataclass(frozen=True)
class Entry:
    """A post, serialized for answers."""

    cursor: PostCursor
    tags: frozenset[str]
    """The tags in canonical form, for comparison."""
    summary: bytes
    """The JSON of the post without its text, as lists have it."""
    document: Document
    """The JSON of the whole post."""
    path: str
    """The path of its page."""
    digest: bytes
    """The digest of its JSON, as `digest_post` returns it."""

    @cached_property
    def announced(self) -> list[str]:
        """The digest of what webhooks announce as changes, and the URL."""
        post = orjson.loads(self.document.body)
        content = {name: value for name, value in post.items() if name not in _DERIVED_MEMBERS}
        return [sha256(orjson.dumps(content)).hexdigest(), post["url"]]


def normalize_tag(tag: str) -> str:
    """Return the canonical form of a tag, equal for all its spellings."""
    return normalize("NFC", tag.strip()).casefold()


def make_entry(record: PostRecord, body: bytes) -> Entry:
    """Return the entry of a record; `body` is its JSON as the index has it."""
    return Entry(
        cursor=PostCursor(format_instant(record.published_at), record.slug),
        tags=frozenset(map(normalize_tag, record.tags)),
        summary=record.model_dump_json(exclude={"content", "content_html"}).encode(),
        document=Document(body, cache_control=CACHE_CONTROL),
        path=unquote(record.url.path or "/"),
        digest=digest_post(body),
    )


def digest_post(body: bytes) -> bytes:
    """Return the digest of a post's JSON, of 128 bits."""
    return sha256(body).digest()[:16]


def find_changes(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """Return the change of each post that differs: `published`, `updated` or `removed`, by slug.

    Both mappings have a value for each slug that changes with the contents of the post.
    """
    missing = object()
    return {
        slug: "removed" if slug not in after else "updated" if slug in before else "published"
        for slug in {**before, **after}
        if before.get(slug, missing) != after.get(slug, missing)
    }


def serialize_list(entries: Sequence[Entry], next_url: str | None = None) -> bytes:
    """Return the JSON of a list of posts, with the address of the next part if there is one."""
    following = {} if next_url is None else {"next": next_url}
    posts = [orjson.Fragment(entry.summary) for entry in entries]
    return orjson.dumps({"posts": posts, "count": len(posts), **following})


class Posts:
    """Every post of one build."""

    def __init__(
        self,
        entries: Sequence[Entry],
        renamed: Mapping[str, str] = MappingProxyType({}),
        digest: str = "",
    ) -> None:
        """Take sorted entries, current slugs by former ones, and the digest of their index."""
        self.entries, self._renamed = tuple(entries), renamed
        self.digest = digest
        """The digest of their index, as `digest_index` returns it."""
        self.full_list = Document(serialize_list(self.entries), cache_control=CACHE_CONTROL)
        """The list of all posts, as an answer to a request without parameters."""
        self._by_slug = MappingProxyType({entry.cursor.slug: entry for entry in entries})

    def document(self, slug: str) -> Document:
        """Return the post with this slug. Raises Problem `not_found`."""
        try:
            return self._by_slug[normalize("NFC", slug)].document
        except KeyError:
            now = f" now: it is `{self._renamed[slug]}`" if slug in self._renamed else ""
            raise Problem("not_found", f"No post has this slug{now}") from None

    def summary(self, slug: str) -> dict[str, Any]:
        """Return the summary of the post with this slug, as in lists. Raises KeyError."""
        summary: dict[str, Any] = orjson.loads(self._by_slug[slug].summary)
        return summary

    def describe(self) -> dict[str, list[str]]:
        """Return what is announced of each post, by slug."""
        return {entry.cursor.slug: entry.announced for entry in self.entries}

    def texts(self, wanted: Container[bytes] | None = None) -> Iterator[SearchText]:
        """Yield the search text of each post, or of those with these digests, newest first."""
        return (
            extract_search_text(entry.document.body)
            for entry in self.entries
            if wanted is None or entry.digest in wanted
        )

    def select(
        self,
        after: PostCursor | None = None,
        tag: str | None = None,
        since: str | None = None,
        found: Collection[str] | None = None,
    ) -> list[Entry]:
        """Return the posts that come after a position, have a tag, are from an instant or later.

        With `found`, only posts with one of these slugs are returned.
        """
        wanted = None if tag is None else normalize_tag(tag)
        return [
            entry
            for entry in self.entries
            if (found is None or entry.cursor.slug in found)
            and (wanted is None or wanted in entry.tags)
            and (since is None or entry.cursor.published >= since)
            and (after is None or after.is_before(entry.cursor))
        ]


def extract_search_text(body: bytes) -> SearchText:
    """Return the search text of a post; `body` is its JSON."""
    post = orjson.loads(body)
    prose, code = split_prose_and_code(post["content_html"])
    return SearchText(
        slug=post["slug"],
        title=post["title"],
        description=post["description"],
        tags=", ".join(post["tags"]),
        prose=prose,
        code=code,
    )


def split_prose_and_code(html: str) -> tuple[str, str]:
    """Return the prose of a post, which includes inline code, and the text of its code blocks.

    Both have no markup and only single spaces, as search indexes and shows them.
    """
    body = LexborHTMLParser(_WORD_BREAK.sub(" <", html)).body
    if body is None:
        return "", ""
    blocks = body.css("pre") if "<pre" in html else []
    code = " ".join(word for block in blocks for word in block.text().split())
    for block in blocks:
        block.decompose()
    return " ".join(body.text().split()), code
