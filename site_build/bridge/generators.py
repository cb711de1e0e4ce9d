"""Pelican's generators over a folder that is already read and checked.

They give templates the names that Pelican gives them, and leave out the passes of Pelican's own
generators that take a time with the square of the number of posts.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pelican.generators import (  # type: ignore[import-untyped]
    ArticlesGenerator,
    Generator,
    PagesGenerator,
)
from pelican.plugins import signals  # type: ignore[import-untyped]
from pelican.urlwrappers import Author  # type: ignore[import-untyped]

from site_build.bridge.writer import find_production
from site_build.making.tasks import render_page
from site_build.site import Part, Site
from site_build.views.content import (
    Article,
    Page,
    Shelf,
    Surroundings,
    Tag,
    make_neighbour,
    make_series,
)

MOST_RELATED = 3
"""Related posts below a post."""

_TOLD = ("articles", "dates", "tags", "categories", "authors", "drafts", "hidden_articles")
"""What Pelican tells every template of the posts."""


class Posts(ArticlesGenerator):  # type: ignore[misc]
    """Gives the templates every post and every tag."""

    def generate_context(self) -> None:
        """Make the posts from what was read, instead of reading them."""
        production = find_production(self.settings)
        site = production.site
        self._shelf = _stock(self.settings)
        self.articles = _make_articles(site, production.related, self._shelf)
        self.dates = self.articles  # They are newest first already.
        by_path = {article.source_path: article for article in self.articles}
        self.tags = [
            (self._shelf.tags[tag.name], [by_path[post.path] for post in tag.posts])
            for tag in site.tags
        ]
        self.categories: list[Any] = []
        self.authors: list[Any] = []
        self.period_archives: dict[str, Any] = defaultdict(list)
        self._update_context(_TOLD)
        self.context["period_archives"] = self.period_archives
        self.context["related_posts"] = []
        signals.article_generator_finalized.send(self)

    def generate_tags(self, write: Callable[..., None]) -> None:
        """Note the pages of each tag; its posts are in the order of their dates already."""
        template = self.get_template("tag")
        for tag, articles in self.tags:
            write(
                tag.save_as,
                template,
                self.context,
                tag=tag,
                url=tag.url,
                articles=articles,
                dates=articles,
                template_name="tag",
                blog=True,
                page_name=tag.page_name,
                all_articles=self.articles,
            )

    def refresh_metadata_intersite_links(self) -> None:
        """Do nothing: links say addresses of the site, and the check follows them."""

    def check_disabled_readers(self) -> None:
        """Do nothing: which files are built is for the check to say, and it has."""


class Pages(PagesGenerator):  # type: ignore[misc]
    """Gives the templates every page that stands by itself."""

    def generate_context(self) -> None:
        """Make the pages from what was read, instead of reading them."""
        production = find_production(self.settings)
        shelf = _stock(self.settings)
        templates = self.settings["PAGE_TEMPLATES"]
        self.pages = [
            Page(document, shelf, templates.get(document.slug, "page"))
            for document in production.site.pages
        ]
        self._update_context(("pages", "hidden_pages", "draft_pages"))
        signals.page_generator_finalized.send(self)

    def refresh_metadata_intersite_links(self) -> None:
        """Do nothing, as for posts."""

    def check_disabled_readers(self) -> None:
        """Do nothing, as for posts."""


class Outputs(Generator):  # type: ignore[misc]
    """Comes last: does what the others have noted, and everything that no template makes."""

    def generate_output(self, writer: Any) -> None:  # noqa: ARG002 - the signature is Pelican's
        """Finish the build."""
        production = find_production(self.settings)
        for frame in production.handover.frames:
            template = self.get_template(frame.file.removesuffix(".html"))
            values = {**self.context, "output_file": frame.file}
            built = render_page(template, values, frame.file)
            production.handover = production.handover.with_frame(frame, built)
        production.finish()


def _stock(settings: dict[str, Any]) -> Shelf:
    production = find_production(settings)
    site = production.site
    tags = {tag.slug: Tag(tag.name, tag.slug, settings) for tag in site.tags}
    return Shelf(
        settings,
        production.texts,
        production.gathered.gallery,
        Author(site.identity.author, settings),
        {name: tags[slug] for name, slug in site.tag_slugs.items()},
        production.gathered.minutes,
    )


def _make_articles(site: Site, related: Mapping[str, Sequence[str]], shelf: Shelf) -> list[Article]:
    """Make each post with what its page shows of others; posts come newest first."""
    linked = {post.path: make_neighbour(post, shelf.tags) for post in site.posts}
    row = [None, *linked.values(), None]
    articles = []
    for index, post in enumerate(site.posts):
        part = site.parts.get(post.path)
        surroundings = Surroundings(
            earlier=row[index + 2],
            later=row[index],
            series=make_series(part, linked) if part else None,
            related=tuple(linked[path] for path in _choose_related(site, index, related)),
        )
        articles.append(Article(post, shelf, surroundings))
    return articles


def _choose_related(site: Site, index: int, related: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the paths of the closest posts that the page does not link as well.

    Those are the ones before and after it, and the parts of its series.
    """
    post, posts = site.posts[index], site.posts
    beside = {each.path for each in posts[max(0, index - 1) : index + 2]}
    others = [path for path in related.get(post.path, ()) if path not in beside]
    if part := site.parts.get(post.path):
        others = [path for path in others if not _is_part(site.parts.get(path), part.series)]
    return others[:MOST_RELATED]


def _is_part(part: Part | None, series: str) -> bool:
    return part is not None and part.series == series
