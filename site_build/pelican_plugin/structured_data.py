"""JSON-LD for templates, in the terms of schema.org: one method for each kind of page.

A template passes the values that it has looked up, so its page is rendered anew if they change.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from markupsafe import Markup

from edge_api.schema import paths
from site_build import addresses
from site_build.images.card import CardPlace
from site_build.images.responsive import Lead
from site_build.site import Identity
from site_build.template_objects import Article, Page, Tag

Json = dict[str, Any]

_PAGE_TYPES = {"about": "AboutPage", "contact": "ContactPage"}
"""Types of schema.org for pages, by their slugs."""


def write_script(*nodes: Json) -> Markup:
    """Return a script element with `nodes` as JSON-LD, escaped for any text in them."""
    graph = {"@context": "https://schema.org", "@graph": nodes}
    # Characters that could end the script, or a line of it, occur only in strings.
    written = (
        orjson.dumps(graph)
        .decode()
        .translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})
    )
    return Markup(f'<script type="application/ld+json">{written}</script>')  # noqa: S704 - escaped


class StructuredData:
    """The object that templates know as `structured_data`."""

    def __init__(
        self,
        identity: Identity,
        find_card: Callable[[str], CardPlace | None],
        lead_pictures: Mapping[str, Lead],
        logo: str = "",
    ) -> None:
        """`find_card` returns a post's card by its slug, or None if the theme has no cards.

        `lead_pictures` has the pictures of posts by slug; `logo` is the path of the site's logo.
        """
        self._identity, self._find_card, self._lead_pictures = identity, find_card, lead_pictures
        self._say = identity.language.catalogue.gettext
        self._home = identity.absolute(addresses.HOME)
        self._logo = f"{identity.url}{logo}" if logo else ""
        self._journal = (self._say("Journal"), identity.addresses.journal)

    def home(self) -> Markup:
        """Describe the home page: the site with its search, its publisher and its blog."""
        search = f"{self._identity.url}{paths.SEARCH}?q={{search_term_string}}"
        return write_script(
            {
                "@type": "WebSite",
                "@id": f"{self._home}#website",
                "url": self._home,
                "name": self._identity.name,
                "description": self._identity.description or self._identity.name,
                "inLanguage": self._identity.lang,
                "publisher": {"@id": f"{self._home}#organization"},
                "potentialAction": {
                    "@type": "SearchAction",
                    "target": {"@type": "EntryPoint", "urlTemplate": search},
                    "query-input": "required name=search_term_string",
                },
            },
            self._describe_organization(),
            self._describe_blog(),
        )

    def post(self, article: Article) -> Markup:
        """Describe the page of a post."""
        return write_script(
            self.describe_post(article),
            self._describe_breadcrumbs(self._journal, (article.title, article.url)),
        )

    def page(self, page: Page) -> Markup:
        """Describe a page that is no post."""
        node = {
            **self._describe_page(_PAGE_TYPES.get(page.slug, "WebPage"), page.title, page.url),
            "description": page.description,
            "inLanguage": page.lang,
        }
        return write_script(node, self._describe_breadcrumbs((page.title, page.url)))

    def journal(self, file: str, articles: Sequence[Article]) -> Markup:
        """Describe one page of the journal; `file` is its path."""
        return write_script(
            self._describe_list(self._say("Journal"), file, articles),
            self._describe_blog(),
            self._describe_breadcrumbs(self._journal),
        )

    def tag(self, tag: Tag, file: str, articles: Sequence[Article]) -> Markup:
        """Describe one page of a tag's posts; `file` is its path."""
        tags = (self._say("Tags"), self._identity.addresses.tags)
        return write_script(
            self._describe_list(tag.name, file, articles),
            self._describe_breadcrumbs(tags, (tag.name, tag.url)),
        )

    def author(self, name: str, url: str, file: str, articles: Sequence[Article]) -> Markup:
        """Describe an author and one page of their posts; `file` is its path."""
        node = self._describe_list(name, file, articles)
        person = {**self._describe_author(name), "url": self._identity.absolute(url)}
        node |= {"@type": "ProfilePage", "mainEntity": person, "hasPart": node["mainEntity"]}
        return write_script(node, self._describe_breadcrumbs((name, url)))

    def overview(self, title: str, file: str) -> Markup:
        """Describe the list of tags or the archive, which have too many items to list."""
        path = file.removesuffix("index.html")
        node = {
            **self._describe_page("CollectionPage", title, path),
            "inLanguage": self._identity.lang,
        }
        return write_script(node, self._describe_breadcrumbs((title, path)))

    def describe_post(self, post: Article) -> Json:
        """Return the node of a post."""
        url, card = self._identity.absolute(post.url), self._find_card(post.slug)
        image, size = self._lead_pictures.get(post.slug) or (card and card.path, card)
        node = {
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
            "publisher": self._describe_organization(),
        }
        if image and size:
            node["image"] = {
                "@type": "ImageObject",
                "url": self._identity.absolute(image),
                "width": size.width,
                "height": size.height,
            }
        if post.tags:
            node["keywords"] = [tag.name for tag in post.tags]
        return {
            **node,
            "wordCount": post.word_count,
            "timeRequired": f"PT{post.reading_minutes}M",
            "isPartOf": self._describe_blog(),
        }

    def _describe_organization(self) -> Json:
        return {
            "@type": "Organization",
            "@id": f"{self._home}#organization",
            "name": self._identity.name,
            "url": self._home,
            "contactPoint": {
                "@type": "ContactPoint",
                "contactType": "customer support",
                "url": self._identity.absolute(addresses.CONTACT),
            },
            **({"logo": {"@type": "ImageObject", "url": self._logo}} if self._logo else {}),
        }

    def _describe_blog(self) -> Json:
        url = self._identity.absolute(self._identity.addresses.journal or addresses.HOME)
        return {"@type": "Blog", "@id": f"{url}#blog", "name": self._identity.name, "url": url}

    def _describe_author(self, byline: str) -> Json:
        """Return the node of an author, which is an organization if it has the site's name."""
        name = self._identity.author
        if byline not in {"", name}:
            return {"@type": "Person", "name": byline}
        kind = "Organization" if name == self._identity.name else "Person"
        return {"@type": kind, "name": name, "url": self._home}

    def _describe_page(self, kind: str, title: str, path: str) -> Json:
        url, website = self._identity.absolute(path), {"@id": f"{self._home}#website"}
        return {"@type": kind, "@id": url, "url": url, "name": title, "isPartOf": website}

    def _describe_list(self, title: str, file: str, posts: Sequence[Article]) -> Json:
        items = self._number_items("url", [(post.title, post.url) for post in posts])
        return {
            **self._describe_page("CollectionPage", title, file.removesuffix("index.html")),
            "inLanguage": self._identity.lang,
            "mainEntity": {"@type": "ItemList", "itemListElement": items},
        }

    def _describe_breadcrumbs(self, *steps: tuple[str, str | None]) -> Json:
        """Return the breadcrumbs from the home page; steps without an address are left out."""
        made = [(name, path) for name, path in steps if path]
        items = self._number_items("item", [(self._identity.name, addresses.HOME), *made])
        return {"@type": "BreadcrumbList", "itemListElement": items}

    def _number_items(self, key: str, named: Sequence[tuple[str, str]]) -> list[Json]:
        """Return items with their positions, from 1; `key` holds the URL of each."""
        return [
            {"@type": "ListItem", "position": at, "name": name, key: self._identity.absolute(path)}
            for at, (name, path) in enumerate(named, 1)
        ]
