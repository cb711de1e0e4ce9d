"""What a page is, in the terms of schema.org, as values that JSON-LD writes.

Pure: facts in, one graph out. Which page asks is the template's to say; how text is kept from
becoming HTML is said in `write_script` alone.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import orjson

from edge_api.schema import paths
from site_build import addresses
from site_build.pictures.card import CardPlace
from site_build.site import Identity

Json = dict[str, Any]

_ESCAPES: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
"""What could end a script, or a line of one: inside JSON strings, where alone they stand."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class Standing(Protocol):
    """A page that stands by itself, as much as is said of it here."""

    title: str
    slug: str
    url: str
    description: str
    lang: str


class Post(Standing, Protocol):
    """A post, likewise."""

    published: datetime
    updated: datetime
    reading_minutes: int
    byline: str
    """Who wrote it, by name; empty: the site's author."""

    @property
    def word_count(self) -> int:
        """Words of its text."""

    @property
    def tags(self) -> Sequence[_Named]:
        """The tags that it carries."""


def write_script(nodes: Sequence[Json]) -> str:
    """Return the element that puts `nodes` on a page, safe for any text in them."""
    graph = {"@context": "https://schema.org", "@graph": nodes}
    written = orjson.dumps(graph).decode().translate(_ESCAPES)
    return f'<script type="application/ld+json">{written}</script>'


class Vocabulary:
    """Makes the nodes of one site."""

    def __init__(self, identity: Identity, logo: str = "") -> None:
        """Take who the site is, and the path of its sign, where it has one."""
        self._identity = identity
        self._home = identity.absolute(addresses.HOME)
        self._logo = f"{identity.url}{logo}" if logo else ""

    def describe_organization(self) -> Json:
        """Return who publishes the site."""
        node: Json = {
            "@type": "Organization",
            "@id": f"{self._home}#organization",
            "name": self._identity.name,
            "url": self._home,
            "contactPoint": {
                "@type": "ContactPoint",
                "contactType": "customer support",
                "url": self._identity.absolute(addresses.CONTACT),
            },
        }
        if self._logo:
            node["logo"] = {"@type": "ImageObject", "url": self._logo}
        return node

    def describe_website(self) -> Json:
        """Return the site, and how it is searched."""
        search = f"{self._identity.url}{paths.SEARCH}?q={{search_term_string}}"
        return {
            "@type": "WebSite",
            "@id": f"{self._home}#website",
            "url": self._home,
            "name": self._identity.name,
            "description": self._identity.description,
            "inLanguage": self._identity.lang,
            "publisher": {"@id": f"{self._home}#organization"},
            "potentialAction": {
                "@type": "SearchAction",
                "target": {"@type": "EntryPoint", "urlTemplate": search},
                "query-input": "required name=search_term_string",
            },
        }

    def describe_blog(self) -> Json:
        """Return the journal that every post is part of."""
        url = self._identity.absolute(self._identity.addresses.journal or addresses.HOME)
        return {"@type": "Blog", "@id": f"{url}#blog", "name": self._identity.name, "url": url}

    def describe_post(self, post: Post, card: CardPlace | None) -> Json:
        """Return a post that has a card or none."""
        url = self._identity.absolute(post.url)
        image = {"image": self._describe_card(card)} if card else {}
        keywords = {"keywords": [tag.name for tag in post.tags]} if post.tags else {}
        return {
            "@type": "BlogPosting",
            "@id": f"{url}#post",
            "url": url,
            "mainEntityOfPage": {"@type": "WebPage", "@id": url},
            "headline": post.title,
            "description": post.description,
            "inLanguage": post.lang,
            "datePublished": post.published.isoformat(),
            "dateModified": post.updated.isoformat(),
            "author": self._describe_author(post.byline),
            "publisher": self.describe_organization(),
            **image,
            **keywords,
            "wordCount": post.word_count,
            "timeRequired": f"PT{post.reading_minutes}M",
            "isPartOf": self.describe_blog(),
        }

    def describe_page(self, kind: str, page: Standing) -> Json:
        """Return a page that stands by itself; `kind` is a WebPage or more special than that."""
        node = self._describe_place(kind, page.title, page.url)
        return {**node, "description": page.description, "inLanguage": page.lang}

    def describe_list(self, title: str, path: str, posts: Sequence[Post]) -> Json:
        """Return one leaf of a list of posts."""
        entries = [
            {
                "@type": "ListItem",
                "position": position,
                "name": post.title,
                "url": self._identity.absolute(post.url),
            }
            for position, post in enumerate(posts, 1)
        ]
        node = self._describe_place("CollectionPage", title, path)
        node["inLanguage"] = self._identity.lang
        return {**node, "mainEntity": {"@type": "ItemList", "itemListElement": entries}}

    def describe_overview(self, title: str, path: str) -> Json:
        """Return a page that leads to all lists, or to all posts, too many to name here."""
        node = self._describe_place("CollectionPage", title, path)
        return {**node, "inLanguage": self._identity.lang}

    def describe_trail(self, *steps: tuple[str, str]) -> Json:
        """Return the way from the home page: the name and the address of each further step."""
        trail = [(self._identity.name, addresses.HOME), *steps]
        items = [
            {
                "@type": "ListItem",
                "position": position,
                "name": name,
                "item": self._identity.absolute(path),
            }
            for position, (name, path) in enumerate(trail, 1)
        ]
        return {"@type": "BreadcrumbList", "itemListElement": items}

    def _describe_place(self, kind: str, title: str, path: str) -> Json:
        url = self._identity.absolute(path)
        website = {"@id": f"{self._home}#website"}
        return {"@type": kind, "@id": url, "url": url, "name": title, "isPartOf": website}

    def _describe_author(self, byline: str) -> Json:
        """Return who writes; an author of the site's name is the site."""
        name = self._identity.author
        if byline not in {"", name}:
            return {"@type": "Person", "name": byline}
        kind = "Organization" if name == self._identity.name else "Person"
        return {"@type": kind, "name": name, "url": self._home}

    def _describe_card(self, card: CardPlace) -> Json:
        url = self._identity.absolute(card.path)
        return {"@type": "ImageObject", "url": url, "width": card.width, "height": card.height}
