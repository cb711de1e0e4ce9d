"""The public site as one frozen value, and its policy for programs.

Drafts and scheduled posts are left out here, so that no later step can show them. This module
depends neither on Pelican nor on HTML.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from string import punctuation
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import quote

from edge_api.schema.environment import read_boolean
from edge_api.schema.sentences import ENGLISH, Language
from site_build.addresses import DEFAULT_ADDRESSES, Addresses
from site_build.errors import BuildError
from site_build.text import make_slug

Kind = Literal["post", "page"]


class Alias(NamedTuple):
    """A former address of a document, as its front matter names it."""

    path: str
    """The address without its leading slash: `journal/old/` or `2019/old.html`."""
    slug: str
    """Slug of the post that had this address; empty if it is no address of a post."""
    line: int
    """Its line in the source file, from 1."""
    column: int
    """Its column, from 1, in code points."""


@dataclass(frozen=True, slots=True)
class Document:
    """One Markdown file of the content folder, parsed."""

    path: str
    """Path of the file in the content folder, with `/`: `posts/hello.md`."""
    kind: Kind
    """`page` below `pages/`, `post` elsewhere."""
    slug: str
    address: str
    """Address of its page on the site, without a leading slash."""
    title: str
    description: str
    """Plain text; from the front matter, else from the first paragraph."""
    excerpt: str
    """Plain text; the description unless the front matter sets its own."""
    published: datetime
    """UTC; UNDATED for a page without a date."""
    updated: datetime
    """UTC; the instant of publication unless the front matter sets a later one."""
    tags: tuple[str, ...]
    lang: str
    """BCP 47 tag of the text's language; empty: the site's."""
    draft: bool
    """Whether it is left out of everything public."""
    markdown: str
    """The body, without front matter, with `\\n` line ends."""
    body_line: int
    """Line of the file (from 1) on which `markdown` starts."""
    digest: str = field(compare=False)
    """SHA-256 of the file's bytes, hexadecimal. Documents that differ only in it are equal."""
    slug_at: tuple[int, int] = (1, 1)
    """Line and column of the slug in the file, from 1."""
    series: str = ""
    """Name of the series that it is a part of, as the author writes it; empty: none."""
    series_at: tuple[int, int] = (1, 1)
    """Line and column of the series in the file, from 1."""
    author: str = ""
    """Names of its authors, separated by semicolons; empty: the site's author."""
    image: str = ""
    """The link to its picture, which the text begins with; empty: none."""
    category: str = ""
    """Its category, as in Pelican; empty: the default of the site's settings."""
    extra: tuple[tuple[str, object], ...] = ()
    """Keys and values of the front matter that the site's settings declare."""
    aliases: tuple[Alias, ...] = ()
    """Its former addresses, in the author's order."""
    hidden: bool = False
    """Whether its page is public, but in no list, feed or search."""

    def is_public_at(self, now: datetime) -> bool:
        """Return whether readers may see the document at the instant `now` (UTC)."""
        return not self.draft and self.published <= now


DEFAULT_SIGNALS: Mapping[str, bool] = MappingProxyType(
    {"search": True, "ai-input": True, "ai-train": False}
)
"""Whether each use is allowed, by the names of contentsignals.org: search, answers of models, and
training, which is off since it could not be undone."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Uses and forms that the site allows, and its contact for vulnerabilities."""

    signals: Mapping[str, bool] = field(default_factory=lambda: DEFAULT_SIGNALS)
    """Every content signal, and whether that use is allowed."""
    security_contact: str = ""
    """A URI to which a vulnerability is reported; empty: the contact page."""
    leads_need_credential: bool = False
    """Whether the edge takes leads from holders of a credential alone."""
    has_access_form: bool = False
    """Whether the contact page has a form that asks for access to the API."""
    has_writing: bool = False
    """Whether programs can write drafts."""
    has_newsletter: bool = False
    """Whether readers can subscribe, by a form under each post."""


def read_policy(settings: Mapping[str, object]) -> Policy:
    """Return the policy of the settings; raises BuildError."""
    signals = settings.get("CONTENT_SIGNALS", {})
    contact = settings.get("SECURITY_CONTACT") or ""
    if not isinstance(signals, Mapping) or not all(
        name in DEFAULT_SIGNALS and isinstance(allowed, bool) for name, allowed in signals.items()
    ):
        names = ", ".join(DEFAULT_SIGNALS)
        raise BuildError(f"CONTENT_SIGNALS has to give True or False for each of {names}")
    known = r"(?:mailto:[^\s@]+@[^\s@]+|https://\S+|tel:\+?[0-9-]+)"
    if contact and not (isinstance(contact, str) and re.fullmatch(known, contact)):
        raise BuildError(
            f"SECURITY_CONTACT is {contact!r}; write mailto:, https:// or tel: before the address"
        )
    try:
        closed = read_boolean(str(settings.get("LEADS_REQUIRE_CREDENTIAL", "false")))
    except ValueError as error:
        raise BuildError(f"LEADS_REQUIRE_CREDENTIAL {error}") from None
    for name in ("ACCESS_REQUESTS", "NEWSLETTER"):
        if settings.get(name, "off") not in ("on", "off"):
            raise BuildError(f"{name} must be one of off, on")
    return Policy(
        {**DEFAULT_SIGNALS, **signals},
        str(contact),
        closed,
        settings.get("ACCESS_REQUESTS") == "on",
        settings.get("WRITING") == "on",
        settings.get("NEWSLETTER") == "on",
    )


UNDATED = datetime.fromtimestamp(0, UTC)
"""The date of a page without one."""


@dataclass(frozen=True, slots=True)
class PostGroup:
    """The public posts with one tag or by one author, newest first."""

    name: str
    slug: str
    posts: tuple[Document, ...]
    address: str
    """The address of its page; empty: it has none."""


@dataclass(frozen=True, slots=True)
class Part:
    """A post as one part of a series."""

    series: str
    posts: tuple[Document, ...]
    """The public posts of the series, the earliest first."""
    number: int
    """Number of this part, from 1."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The site's name, author, language and addresses."""

    url: str
    """Origin, without a trailing slash."""
    name: str
    description: str
    author: str
    lang: str
    addresses: Addresses = DEFAULT_ADDRESSES
    portrait: str = ""
    """The author's picture, by its path in the content folder; empty: none."""
    edge_image: str = ""
    """The picture on the fore-edge, by its path; empty: the newest photograph, or a landscape."""
    language: Language = field(default=ENGLISH, repr=False, compare=False)
    """The language with its sentences."""
    timezone: str = "UTC"
    """The name of the zone in which the desk shows times."""

    def absolute(self, path: str) -> str:
        """Return the absolute URL of a path of the site, in ASCII."""
        return f"{self.url}/{quote(path, safe=punctuation)}"


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that readers may see at one instant."""

    identity: Identity
    posts: tuple[Document, ...]
    """Public posts, newest first; by slug where the instants are equal."""
    pages: tuple[Document, ...]
    """Public pages by slug."""
    hidden: tuple[Document, ...]
    """Posts and pages that are in no list, by slug."""
    tags: tuple[PostGroup, ...]
    """Tags of posts by name, regardless of case."""
    authors: tuple[PostGroup, ...]
    """Authors of posts, by name, regardless of case."""
    tag_slugs: Mapping[str, str]
    """Slugs of tags by name, in every spelling that posts use."""
    parts: Mapping[str, Part]
    """Posts as parts of series, by path; a series has at least two public posts."""

    @property
    def documents(self) -> tuple[Document, ...]:
        """Every document that has a page."""
        return self.posts + self.pages + self.hidden


def list_moves(site: Site) -> Iterator[tuple[str, str, Document]]:
    """Return each former address with the present address and the document, for redirects."""
    return ((alias.path, each.address, each) for each in site.documents for alias in each.aliases)


def list_former_slugs(post: Document) -> list[str]:
    """Return the slugs that a post had, in the author's order."""
    return [alias.slug for alias in post.aliases if alias.slug]


def find_next_instant(documents: Iterable[Document], now: datetime) -> datetime | None:
    """Return the instant after `now` (UTC) at which the next of these documents appears, if any."""
    later = (each.published for each in documents if not each.draft and each.published > now)
    return min(later, default=None)


def select_public(identity: Identity, documents: Iterable[Document], now: datetime) -> Site:
    """Return the site of the documents that readers may see at `now` (UTC)."""
    public = sorted(
        (document for document in documents if document.is_public_at(now)),
        key=lambda document: document.slug,
    )
    posts = sorted(
        (each for each in public if each.kind == "post" and not each.hidden),
        key=lambda post: post.published,
        reverse=True,
    )
    slugs = {name: make_slug(name) for name in {name for post in posts for name in post.tags}}
    named = [(post, split_authors(post.author) or [identity.author]) for post in posts]
    names = {name: make_slug(name) for _, found in named for name in found}
    return Site(
        identity=identity,
        posts=tuple(posts),
        pages=tuple(each for each in public if each.kind == "page" and not each.hidden),
        hidden=tuple(each for each in public if each.hidden),
        tags=_group_by_slug(
            "tag", ((post, post.tags) for post in posts), slugs, identity.addresses
        ),
        authors=_group_by_slug("author", named, names, identity.addresses),
        tag_slugs=slugs,
        parts=_group_by_series(posts),
    )


def split_authors(byline: str) -> list[str]:
    """Return the names of authors in a byline, which separates them by semicolons."""
    return [name.strip() for name in byline.split(";") if name.strip()]


def _group_by_slug(
    kind: Literal["tag", "author"],
    posts: Iterable[tuple[Document, Iterable[str]]],
    slugs: Mapping[str, str],
    addresses: Addresses,
) -> tuple[PostGroup, ...]:
    """Group posts by the slugs of tags or authors; each name is the most frequent spelling."""
    members: dict[str, list[Document]] = defaultdict(list)
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    for post, names in posts:
        for slug, name in {slugs[name]: name for name in names if slugs[name]}.items():
            members[slug].append(post)
            spellings[slug][name] += 1
    tags = [
        PostGroup(
            _choose_spelling(spellings[slug]), slug, tuple(found), addresses.locate(kind, slug)
        )
        for slug, found in members.items()
    ]
    return tuple(sorted(tags, key=lambda tag: (tag.name.casefold(), tag.slug)))


def _group_by_series(posts: Iterable[Document]) -> dict[str, Part]:
    """Return posts as parts of series by path; a series is named by its most frequent spelling."""
    members: dict[str, list[Document]] = defaultdict(list)
    for post in posts:
        if post.series:
            members[post.series.casefold()].append(post)
    parts: dict[str, Part] = {}
    for group in members.values():
        name = _choose_spelling(Counter(post.series for post in group))
        ordered = tuple(sorted(group, key=lambda post: (post.published, post.slug)))
        if len(ordered) > 1:
            parts |= {each.path: Part(name, ordered, at) for at, each in enumerate(ordered, 1)}
    return parts


def _choose_spelling(spellings: Counter[str]) -> str:
    return min(spellings, key=lambda name: (-spellings[name], name))
