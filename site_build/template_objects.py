"""Posts, pages and tags for templates, with the attributes of Pelican's objects.

Pelican's own objects compute slugs, dates and addresses anew on each use and hold every text; ten
thousand of them take longer than all the rest of a rebuild. These compute them once, and read a
text only when a template uses it. While a page is rendered, every name that its templates look up
is noted: the page is not rendered again while these names have the same values.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from html import unescape
from urllib.parse import quote
from zoneinfo import ZoneInfo

from jinja2.runtime import Context
from markupsafe import Markup, escape
from pelican.contents import Article as PelicanArticle  # type: ignore[import-untyped]
from pelican.contents import Page as PelicanPage
from pelican.paginator import Page as Leaf  # type: ignore[import-untyped]
from pelican.paginator import Paginator
from pelican.urlwrappers import Author, Category, URLWrapper  # type: ignore[import-untyped]
from pelican.urlwrappers import Tag as PelicanTag
from selectolax.lexbor import LexborHTMLParser

from edge_api.schema.reading_time import count_words
from site_build import addresses, site
from site_build.cache import make_key
from site_build.content.document import NOT_PROSE
from site_build.content.sources import TextReader
from site_build.images.encode import WIDEST
from site_build.images.responsive import COLUMN, ImageSet
from site_build.markup.convert import add_sidenotes, translate_words
from site_build.site import UNDATED, Document, Part, split_authors

_OPENING = 2
"""The number of a text's first paragraphs that other pages show."""
_AROUND = 12
"""Parts of a long series that are shown on either side of one, to keep pages small."""


class Tag(PelicanTag):  # type: ignore[misc]
    """A tag with its address."""

    url = save_as = page_name = ""

    def __init__(self, tag: site.PostGroup, settings: Mapping[str, object]) -> None:
        super().__init__(tag.name, settings)
        self.slug, self.url, self.uses = tag.slug, tag.address, len(tag.posts)
        self.save_as = addresses.name_file(self.url) if self.url else ""
        self.feeds = (
            addresses.locate_feed(self.url, addresses.FEED),
            addresses.locate_feed(self.url, addresses.FEED_JSON),
        )
        self.page_name = self.save_as.removesuffix("/index.html").removesuffix(".html")


@dataclass(frozen=True)
class Neighbour:
    """The values that a link to a post shows."""

    title: str
    url: str
    description: str
    published: datetime
    updated: datetime
    tags: tuple[Tag, ...]
    lang: str = ""
    """BCP 47 tag; empty: the site's language."""

    @cached_property
    def digest(self) -> bytes:
        """The digest of all values above."""
        return make_key(
            self.title,
            self.url,
            self.description,
            self.lang,
            self.published.isoformat(),
            self.updated.isoformat(),
            [(tag.name, tag.slug) for tag in self.tags],
        )


@dataclass(frozen=True, slots=True)
class Series:
    """The series of a post, as the post's page shows it."""

    name: str
    number: int
    """This post's place, from 1."""
    count: int
    """Number of all parts."""
    shown: tuple[Neighbour, ...]
    """Links to its parts, the earliest first; of a long series, those around this post."""
    first: int
    """Number of the first part in `shown`."""


@dataclass(frozen=True, slots=True)
class RenderContext:
    """Values that all posts and pages of one build share."""

    settings: Mapping[str, object]
    texts: TextReader
    image_set: ImageSet
    authors: Mapping[str, Author]
    """Authors by name; the site's author is the first."""
    categories: Mapping[str, Category]
    zone: ZoneInfo
    """The time zone of dates in templates."""
    tags: Mapping[str, Tag]
    """Tags by every spelling of their names."""
    minutes: Mapping[str, int]
    """Reading time by path."""


def make_neighbour(post: Document, tags: Mapping[str, Tag], zone: tzinfo = UTC) -> Neighbour:
    """Return the values of a link to a post; `tags` are by every spelling of their names."""
    return Neighbour(
        title=post.title,
        url=quote(post.address),
        description=post.description,
        published=post.published.astimezone(zone),
        updated=post.updated.astimezone(zone),
        tags=tuple(tags[name] for name in post.tags if name in tags),
        lang=post.lang,
    )


def make_series(part: Part, neighbours: Mapping[str, Neighbour]) -> Series:
    """Return the series of a part with the parts around it; `neighbours` are by path."""
    first = max(0, min(part.number - 1 - _AROUND, len(part.posts) - 1 - 2 * _AROUND))
    shown = tuple(neighbours[each.path] for each in part.posts[first : first + 2 * _AROUND + 1])
    return Series(part.series, part.number, len(part.posts), shown, first + 1)


class _DocumentView:
    """Attributes that posts and pages have in common."""

    document: Document
    metadata: dict[str, object]
    url = save_as = ""

    def _describe(self, document: Document, context: RenderContext) -> None:
        """Set the attributes from a document."""
        self.document, self.settings = document, context.settings
        self._texts, self.image_set = context.texts, context.image_set
        self.source_path = self.relative_source_path = document.path
        self.slug, self.title = document.slug, document.title
        self.url, self.save_as = quote(document.address), addresses.name_file(document.address)
        self.twin_url = f"/{addresses.name_alternate(self.url)}"
        self.description, self.excerpt = document.description, document.excerpt
        self.published = document.published.astimezone(context.zone)
        self.updated = document.updated.astimezone(context.zone)
        self.reading_minutes = context.minutes[document.path]
        self.tags = [context.tags[name] for name in document.tags if name in context.tags]
        self.lang = document.lang or str(context.settings["DEFAULT_LANG"])
        self.byline, self.image = document.author, document.image
        names = split_authors(self.byline) or [next(iter(context.authors))]
        self.authors = [context.authors[name] for name in names]
        self.author = self.authors[0]
        self.status, self.in_default_lang = "hidden" if document.hidden else "published", True
        self.translations: list[object] = []
        self.metadata = {
            "title": self.title,
            "slug": self.slug,
            "tags": self.tags,
            "authors": self.authors,
            **dict(document.extra),
        }
        if document.published != UNDATED:
            self.metadata["date"] = self.published
            if document.updated != document.published:
                self.metadata["modified"] = self.updated
        if document.category:
            self.metadata["category"] = context.categories[document.category]
        self.take_metadata()

    def take_metadata(self) -> None:
        """Set the metadata of front matter and plugins as attributes, as Pelican does."""
        for key, value in self.metadata.items():
            setattr(self, key.lower(), value)

    def _set_digest_parts(
        self,
        more: object,
        linked: Sequence[Neighbour | None] = (),
        related: Sequence[Neighbour] = (),
    ) -> None:
        """Store the values for the digest: those of the document, `more`, and the linked posts."""
        document, self._lasting, self._linked = self.document, linked, (*linked, *related)
        self._digest_parts = (
            (self.source_path, self.slug, self.title, self.description, self.excerpt, self.lang),
            (self.published.isoformat(), self.updated.isoformat(), self.reading_minutes),
            (self.byline, self.image, self.status, document.category, document.extra),
            [(tag.name, tag.slug) for tag in self.tags],
            document.hidden and [author.url for author in self.authors],
            self.image_set.list_digests(self.source_path),
            more,
        )

    def revise(
        self, document: Document, minutes: int, related: tuple[Neighbour, ...] | None
    ) -> bool:
        """Show a document that differs only in its text; return whether the digest is another.

        Neither the pictures that it shows nor other links may have changed than those to `related`
        posts, which only a post in lists has.
        """
        before = self.digest
        self.document, self.reading_minutes = document, minutes
        self.take_metadata()
        if related is not None:
            self.related = related
        self._set_digest_parts(self._digest_parts[-1], self._lasting, related or ())
        del self.digest
        return self.digest != before

    @cached_property
    def digest(self) -> bytes:
        """The digest of all values but the text, before plugins change them."""
        return make_key(*self._digest_parts, [each and each.digest for each in self._linked])

    def __str__(self) -> str:
        return self.source_path

    @property
    def content(self) -> Markup:
        """The text as HTML, with responsive images."""
        return Markup(self._content)  # noqa: S704

    @property
    def page_content(self) -> Markup:
        """The text as HTML, for a theme with styles for sidenotes and for pictures that open."""
        is_set_by_plugin = "own_content" in self.__dict__
        html = self._content if is_set_by_plugin else self._render_html(opens=True)
        return Markup(add_sidenotes(html))  # noqa: S704

    def _render_html(self, *, opens: bool) -> str:
        """Return the text with responsive images; with `opens`, wide ones open at a click."""
        html = self._texts.read(self.document).conversion.html
        address, path = self.document.address, self.source_path
        column = WIDEST if dict(self.document.extra).get("layout") == "pictures" else COLUMN
        rendered = self.image_set.make_responsive(
            html, address, path, column=column if opens else 0
        )
        return translate_words(rendered, self._texts.dialect.translations)

    @property
    def _content(self) -> str:
        """The text as HTML, under the name by which Pelican's plugins read and set it."""
        if "own_content" in self.__dict__:
            return str(self.__dict__["own_content"])
        return self._render_html(opens=False)

    @_content.setter
    def _content(self, html: str) -> None:
        self.__dict__["own_content"] = html

    def get_content(self, siteurl: str) -> Markup:
        """Return the text as HTML with absolute addresses, for Pelican's feeds."""
        return Markup(re.sub(r'\b(href|src)="/(?!/)', rf'\1="{siteurl}/', self._content))  # noqa: S704

    @property
    def picture(self) -> Markup:
        """The picture of its front matter, with an empty `alt` since the title is beside it."""
        image = f'<img src="{escape(self.image)}" alt="">' if self.image else ""
        return Markup(  # noqa: S704
            self.image_set.make_responsive(image, self.document.address, self.source_path)
        )

    @property
    def opening(self) -> Markup:
        """The first two paragraphs as HTML, without links and notes, for another page."""
        body = LexborHTMLParser(self._texts.read(self.document).conversion.html).body
        found = [each for each in body.css("body > p") if not each.css("img")] if body else []
        for paragraph in found[:_OPENING]:
            for mark in paragraph.css(NOT_PROSE):
                mark.decompose()
            paragraph.unwrap_tags(["a"])
        return Markup("\n".join(each.html or "" for each in found[:_OPENING]))  # noqa: S704

    @property
    def word_count(self) -> int:
        """Words of the text, as readers see it."""
        html = self._texts.read(self.document).conversion.html
        return count_words(unescape(re.sub("(?s)<!--.*?-->|<[^>]*>", "", html)))

    @property
    def toc(self) -> Markup:
        """Nested lists of links to the headings; empty where there are none."""
        return Markup(self._texts.read(self.document).conversion.toc)  # noqa: S704

    @property
    def summary(self) -> Markup:
        """The description as HTML, as Pelican's themes expect."""
        return escape(self.description)

    @property
    def locale_date(self) -> str:
        """The day of publication in DEFAULT_DATE_FORMAT."""
        return self.published.strftime(str(self.settings["DEFAULT_DATE_FORMAT"]))

    @property
    def locale_modified(self) -> str:
        """The day of the last revision in DEFAULT_DATE_FORMAT."""
        return self.updated.strftime(str(self.settings["DEFAULT_DATE_FORMAT"]))


class Article(_DocumentView, PelicanArticle):  # type: ignore[misc]
    """A post."""

    def __init__(  # noqa: PLR0913
        self,
        document: Document,
        context: RenderContext,
        *,
        earlier: Neighbour | None,
        later: Neighbour | None,
        series: Series | None,
        related: tuple[Neighbour, ...],
        next_in_tag: Neighbour | None = None,
    ) -> None:
        """`next_in_tag` is the next older post of its first tag."""
        self._describe(document, context)
        self.template = "article"
        self.prev_article, self.next_article = earlier, later
        self.series, self.related, self.next_in_tag = series, related, next_in_tag
        place = series and (series.name, series.number, series.count, len(series.shown))
        in_series = series.shown if series else ()
        self._set_digest_parts(place, (earlier, later, next_in_tag, *in_series), related)


class Page(_DocumentView, PelicanPage):  # type: ignore[misc]
    """A page that is no post."""

    def __init__(self, document: Document, context: RenderContext, template: str) -> None:
        self._describe(document, context)
        self.template = template
        self._set_digest_parts(template)


_LONG = 50
"""Items above which a list is shared by many pages, so that its digest is remembered."""


class UnknownValueError(Exception):
    """A template looked up a value that cannot be digested."""


def track_lookups(seen: dict[str, None]) -> type[Context]:
    """Return a class of template contexts that note in `seen` every name looked up."""

    class TrackingContext(Context):
        def resolve_or_missing(self, key: str) -> object:
            # A variable that a template has set was made from names noted before. It may hide a
            # name that all pages are given, such as the list of all tags.
            if key not in self.vars:
                seen[key] = None
            return super().resolve_or_missing(key)

    return TrackingContext


class InputDigest:
    """Computes digests of values that templates are given."""

    def __init__(self) -> None:
        self._long_lists: dict[int, tuple[object, bytes]] = {}
        self._shared_digests: dict[tuple[str, int, tuple[str, ...]], tuple[object, bytes]] = {}

    def digest(self, names: str, shared: Mapping[str, object], own: Mapping[str, object]) -> bytes:
        """Return the digest of the values of `names`, one a line; `own` values go first.

        Raises UnknownValueError if one of the values cannot be digested.
        """
        looked_up = [(e, self._digest(own[e])) for e in names.split("\n") if e in own]
        return make_key(self.digest_shared(names, shared, own), looked_up)

    def digest_shared(
        self, names: str, shared: Mapping[str, object], own: Mapping[str, object]
    ) -> bytes:
        """Return the digest of the values of `names` that all pages share; see `digest`."""
        # Pages of one kind look up the same names, most of which have values that all pages share.
        key = names, id(shared), tuple(own)
        if key not in self._shared_digests:
            others = [name for name in names.split("\n") if name not in own]
            values = [self._digest(shared[e]) if e in shared else b"absent" for e in others]
            self._shared_digests[key] = shared, make_key(values)
        return self._shared_digests[key][1]

    def _digest(self, value: object) -> bytes:
        match value:
            case None | bool() | int() | float() | str() | datetime():
                return repr(value).encode()
            case Article() | Page():
                return value.digest
            case list() | tuple():
                return self._digest_list(value)
            case Mapping():
                return make_key([(name, self._digest(each)) for name, each in value.items()])
            case URLWrapper():
                return make_key(value.name, value.slug)
            case Leaf():
                place = (value.number, value.url, value.paginator.num_pages)
                return make_key(place, self._digest(value.object_list))
            case Paginator():
                # Templates show the counts of a paginator; its pages are values of their own.
                return make_key(value.count, value.per_page, value.num_pages)
            case Callable():
                # The code of functions has a digest of its own (`fingerprint_code`).
                return make_key(value.__module__, getattr(value, "__qualname__", ""))
            case _:
                raise UnknownValueError(type(value).__name__)

    def _digest_list(self, values: list[object] | tuple[object, ...]) -> bytes:
        if known := self._long_lists.get(id(values)):
            return known[1]
        digest = make_key([self._digest(each) for each in values])
        if len(values) > _LONG:
            self._long_lists[id(values)] = (values, digest)  # Kept, so that no other gets its id.
        return digest
