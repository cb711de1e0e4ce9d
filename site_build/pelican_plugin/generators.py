"""Generators and a writer in place of Pelican's, for content that is already read and checked.

Templates get the same variables as from Pelican's own generators. Passes whose time grows with the
square of the number of posts are left out.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partialmethod
from itertools import pairwise
from pathlib import Path
from shutil import copyfile
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import FileSystemLoader, Template
from pelican.generators import (  # type: ignore[import-untyped]
    ArticlesGenerator,
    Generator,
    PagesGenerator,
)
from pelican.paginator import Paginator  # type: ignore[import-untyped]
from pelican.plugins import signals  # type: ignore[import-untyped]
from pelican.urlwrappers import Author, Category  # type: ignore[import-untyped]
from pelican.writers import Writer  # type: ignore[import-untyped]

from site_build.build.builder import SiteBuild
from site_build.build.fingerprint import HOUSE_THEME, is_fallback_template
from site_build.build.targets import TemplateTarget, TextTarget, render_page
from site_build.errors import BuildError
from site_build.related import choose_related
from site_build.site import split_authors
from site_build.template_objects import (
    Article,
    Page,
    RenderContext,
    Tag,
    make_neighbour,
    make_series,
)
from site_build.text import make_slug


class TargetWriter(Writer):  # type: ignore[misc]
    """Adds a target to the build for each file that a generator writes."""

    def write_file(  # noqa: PLR0913, PLR0917 - the signature is Pelican's
        self,
        name: str,
        template: Template,
        context: Mapping[str, object],
        relative_urls: bool = False,  # noqa: ARG002, FBT001, FBT002
        paginated: Mapping[str, Sequence[object]] | None = None,
        template_name: str | None = None,
        override_output: bool = False,  # noqa: ARG002, FBT001, FBT002
        url: str | None = None,
        **own: object,
    ) -> None:
        """Add a page, or each page of a list of posts."""
        if not name:
            return
        for path, page_values in self._list_pages(name, url, template_name, paginated or own):
            target = TemplateTarget(path, template, context, {**own, **page_values})
            find_build(self.settings).add(target)

    def write_feed(  # noqa: PLR0913, PLR0917 - the signature is Pelican's
        self,
        elements: Sequence[object],
        context: Mapping[str, object],
        path: str | None = None,
        url: str | None = None,
        feed_type: str = "atom",
        override_output: bool = False,  # noqa: ARG002, FBT001, FBT002
        feed_title: str | None = None,
    ) -> object:
        """Add a feed of Pelican's, and return it."""
        feed = super().write_feed(
            elements, context, None, url or path, feed_type, feed_title=feed_title
        )
        if path:
            find_build(self.settings).add(TextTarget(path, feed.writeString("utf-8")))
            signals.feed_written.send(path, context=context, feed=feed)
        return feed

    def _list_pages(
        self, name: str, url: str | None, template_name: str | None, values: Mapping[str, object]
    ) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield the file of each page of a list, and further variables for its template."""
        sizes = self.settings["PAGINATED_TEMPLATES"]
        lists = {key: values[key] for key in ("articles", "dates") if key in values}
        if template_name not in sizes or not lists:
            yield name, {}
            return
        size = sizes[template_name] or self.settings["DEFAULT_PAGINATION"]
        paginators = {
            key: Paginator(name, url, each, self.settings, size) for key, each in lists.items()
        }
        for number in range(1, next(iter(paginators.values())).num_pages + 1):
            page_values: dict[str, object] = {}
            for key, paginator in paginators.items():
                page = paginator.page(number)
                page_values |= {
                    f"{key}_paginator": paginator,
                    f"{key}_page": page,
                    f"{key}_previous_page": paginator.page(number - 1)
                    if page.has_previous()
                    else None,
                    f"{key}_next_page": paginator.page(number + 1) if page.has_next() else None,
                }
            yield paginator.page(number).save_as, page_values


def find_build(settings: Mapping[str, object]) -> SiteBuild:
    """Return the running build, which is one of Pelican's settings."""
    return settings["BUILD_PRODUCTION"]  # type: ignore[return-value]


class _SkippedPasses:
    """Switches off Pelican's passes over content, since it is already read and checked."""

    def refresh_metadata_intersite_links(self) -> None:
        """Do nothing: links have addresses already."""

    def check_disabled_readers(self) -> None:
        """Do nothing: the files to build are chosen already."""


class Posts(_SkippedPasses, ArticlesGenerator):  # type: ignore[misc]
    """Provides posts, tags, categories and authors to templates."""

    def generate_context(self) -> None:
        """Make the template objects of posts from the content that is already read."""
        build = find_build(self.settings)
        site, context = build.site, _make_context(self.settings)
        self.articles = _make_articles(build, context)
        self.hidden_articles = [
            Article(each, context, earlier=None, later=None, series=None, related=())
            for each in site.hidden
            if each.kind == "post"
        ]
        _notify_plugins(
            self, signals.article_generator_context, self.articles + self.hidden_articles
        )
        signals.article_generator_pretaxonomy.send(self)
        # The articles are newest first already.
        self.dates = (
            self.articles if self.settings["NEWEST_FIRST_ARCHIVES"] else self.articles[::-1]
        )
        by_path = {article.source_path: article for article in self.articles}
        self.tags = {
            context.tags[tag.name]: [by_path[post.path] for post in tag.posts] for tag in site.tags
        }
        self.categories = _group_articles((each.category, each) for each in self.articles)
        self.categories.sort(reverse=self.settings["REVERSE_CATEGORY_ORDER"])
        self.authors = _group_articles(
            (by, each) for each in self.articles for by in each.authors if by.slug
        )
        self.authors.sort()
        self.period_archives = self._build_period_archives(self.dates, self.articles, self.settings)
        self._update_context(
            ("articles", "dates", "tags", "categories", "authors", "drafts", "hidden_articles")
        )
        self.context.update(period_archives=self.period_archives, related_posts=[])
        signals.article_generator_finalized.send(self)

    def _write_lists(self, kind: str, groups: str, write: Callable[..., None]) -> None:
        """Write the pages of each tag, category or author; its posts are sorted by date already."""
        if not getattr(find_build(self.settings).site.identity.addresses, kind):
            return
        template = self.get_template(kind)
        for group, articles in dict(getattr(self, groups)).items():
            write(
                group.save_as,
                template,
                self.context,
                url=group.url,
                articles=articles,
                dates=articles,
                template_name=kind,
                blog=True,
                page_name=group.page_name,
                all_articles=self.articles,
                **{kind: group},
            )

    generate_tags = partialmethod(_write_lists, "tag", "tags")
    generate_categories = partialmethod(_write_lists, "category", "categories")
    generate_authors = partialmethod(_write_lists, "author", "authors")


class Pages(_SkippedPasses, PagesGenerator):  # type: ignore[misc]
    """Provides pages that are no posts to templates."""

    def generate_context(self) -> None:
        """Make the template objects of pages from the content that is already read."""
        context = _make_context(self.settings)
        templates, site = self.settings["PAGE_TEMPLATES"], find_build(self.settings).site
        self.pages, self.hidden_pages = (
            [
                Page(each, context, templates.get(each.slug, "page"))
                for each in documents
                if each.kind == "page"
            ]
            for documents in (site.pages, site.hidden)
        )
        _notify_plugins(self, signals.page_generator_context, self.pages + self.hidden_pages)
        self._update_context(("pages", "hidden_pages", "draft_pages"))
        signals.page_generator_finalized.send(self)


class Outputs(Generator):  # type: ignore[misc]
    """Runs last, and makes the files of all targets."""

    def generate_context(self) -> None:
        """Send plugins the signals of Pelican's generator of static files."""
        signals.static_generator_init.send(self)
        signals.static_generator_finalized.send(self)

    def generate_output(self, writer: Any) -> None:  # noqa: ARG002 - the signature is Pelican's
        """Make the edge's templates and all pages, and hand copies of pages to plugins."""
        build = find_build(self.settings)
        build.add_frames = self._add_frames
        build.add_frames(build)
        pages = build.make_pages()
        # Plugins get a copy of each page in a separate folder, and may change it there.
        for target in pages if signals.content_written.receivers else ():
            copy = Path(self.output_path, target.path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copyfile(build.request.site_folder / target.path, copy)
            signals.content_written.send(str(copy), context=target.list_values())

    def _add_frames(self, build: SiteBuild) -> None:
        """Make the frames of the edge's templates for the running build; raises BuildError."""
        # A build that keeps a plan replaces the one before, which nothing may hold any longer.
        self.settings["BUILD_PRODUCTION"] = self.context["BUILD_PRODUCTION"] = build
        for frame in build.edge_templates.frames:
            template = self.get_template(frame.file.removesuffix(".html"))
            values = {**self.context, "output_file": frame.file}
            try:
                build.edge_templates.add_frame(frame, render_page(template, values, frame.file))
            except BuildError:
                # The theme's base template lacks blocks that the frame needs.
                if not is_fallback_template(template) or build.theme == HOUSE_THEME:
                    raise
                environment = self.env.overlay(
                    loader=FileSystemLoader(HOUSE_THEME / "templates"), autoescape=True
                )
                template = environment.get_template(frame.file)
                build.edge_templates.add_frame(frame, render_page(template, values, frame.file))
                build.use_fallback_templates(environment)


def _make_wrappers(
    kind: type[Any], names: Iterable[str], listed: Container[str], settings: dict[str, Any]
) -> dict[str, Any]:
    """Return Pelican's categories or authors by name; those that are not listed have no page."""
    bare = type(kind.__name__, (kind,), dict.fromkeys(("url", "save_as", "page_name"), ""))
    made = {name: (kind if name in listed else bare)(name, settings) for name in names}
    for name, each in made.items():
        each.slug = make_slug(name)
    return made


def _notify_plugins(generator: Generator, signal: Any, contents: Sequence[Article | Page]) -> None:
    """Let plugins change the metadata of each text before a template uses it."""
    for each in contents if signal.receivers else ():
        signal.send(generator, metadata=each.metadata)
        each.take_metadata()
    for each in contents if signals.content_object_init.receivers else ():
        signals.content_object_init.send(each)


def _group_articles(pairs: Iterable[tuple[Any, Article]]) -> list[tuple[Any, list[Article]]]:
    """Return categories or authors as pairs with their posts, as Pelican has them."""
    groups: dict[Any, list[Article]] = defaultdict(list)
    for key, article in pairs:
        groups[key].append(article)
    return list(groups.items())


def _make_context(settings: dict[str, Any]) -> RenderContext:
    build = find_build(settings)
    site = build.site
    tags = {tag.slug: Tag(tag, settings) for tag in site.tags}
    site_author, patterns = site.identity.author, site.identity.addresses
    named = (name for each in site.documents for name in split_authors(each.author))
    listed = {name for each in site.posts for name in split_authors(each.author) or [site_author]}
    authors = {name for name in listed if patterns.author and make_slug(name)}
    categories = {each.category for each in site.posts if patterns.category}
    return RenderContext(
        settings,
        build.texts,
        build.content.image_set,
        _make_wrappers(Author, dict.fromkeys((site_author, *named)), authors, settings),
        _make_wrappers(Category, (each.category for each in site.documents), categories, settings),
        ZoneInfo(settings.get("TIMEZONE", "UTC")),
        {name: tags[slug] for name, slug in site.tag_slugs.items()},
        build.content.minutes,
    )


def _make_articles(build: SiteBuild, context: RenderContext) -> list[Article]:
    """Return each post with its links to other posts, newest first.

    The build gets what these links show as `neighbours`, for builds that keep its plan.
    """
    site, related = build.site, build.related
    linked = {post.path: make_neighbour(post, context.tags, context.zone) for post in site.posts}
    build.neighbours = linked
    row = [None, *linked.values(), None]
    near = {path: [each for each in found if each in linked] for path, found in related.items()}
    # In a tag, the next post is the one published before; lists are newest first.
    following = {
        (tag.slug, post.path): linked[before.path]
        for tag in site.tags
        for post, before in pairwise(tag.posts)
    }
    return [
        Article(
            post,
            context,
            earlier=row[index + 2],
            later=row[index],
            series=make_series(site.parts[post.path], linked) if post.path in site.parts else None,
            next_in_tag=(
                following.get((site.tag_slugs[post.tags[0]], post.path)) if post.tags else None
            ),
            related=tuple(
                linked[path] for path in choose_related(site, index, near.get(post.path, ()))
            ),
        )
        for index, post in enumerate(site.posts)
    ]
