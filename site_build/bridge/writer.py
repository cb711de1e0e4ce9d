"""Pelican's writer, which notes what each page is made from and leaves the making to the build.

So a page whose makings are as they were is never rendered, and the others are rendered in
processes.
"""

from collections.abc import Iterator, Mapping, Sequence

from jinja2 import Template
from pelican.paginator import Paginator  # type: ignore[import-untyped]
from pelican.plugins import signals  # type: ignore[import-untyped]
from pelican.writers import Writer  # type: ignore[import-untyped]

from site_build.making.production import Production
from site_build.making.tasks import TemplateTask, TextTask

_LISTS = ("articles", "dates")
"""What Pelican spreads over the leaves of a paginated template."""


class TaskWriter(Writer):  # type: ignore[misc]
    """Takes what generators ask to be written."""

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
        """Note a page, or each leaf of a list of posts."""
        if not name:
            return
        production = find_production(self.settings)
        for path, leaf in self._list_leaves(name, url, template_name, paginated or own):
            production.add(TemplateTask(path, template, context, {**own, **leaf}))

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
        """Note a feed of Pelican's, and return it."""
        own = url or path
        feed = super().write_feed(elements, context, None, own, feed_type, feed_title=feed_title)
        if path:
            text = feed.writeString("utf-8")
            find_production(self.settings).add(TextTask(path, lambda _: text))
            signals.feed_written.send(path, context=context, feed=feed)
        return feed

    def _list_leaves(
        self,
        name: str,
        url: str | None,
        template_name: str | None,
        values: Mapping[str, object],
    ) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield the file of each leaf, and what its template is given besides."""
        sizes = self.settings["PAGINATED_TEMPLATES"]
        lists = {key: values[key] for key in _LISTS if key in values}
        if template_name not in sizes or not lists:
            yield name, {}
            return
        size = sizes[template_name] or self.settings["DEFAULT_PAGINATION"]
        paginators = {
            key: Paginator(name, url, each, self.settings, size) for key, each in lists.items()
        }
        for number in range(1, next(iter(paginators.values())).num_pages + 1):
            leaf: dict[str, object] = {}
            for key, paginator in paginators.items():
                leaf |= _describe_leaf(key, paginator, number)
            yield paginator.page(number).save_as, leaf


def _describe_leaf(key: str, paginator: Paginator, number: int) -> dict[str, object]:
    page = paginator.page(number)
    return {
        f"{key}_paginator": paginator,
        f"{key}_page": page,
        f"{key}_previous_page": paginator.page(number - 1) if page.has_previous() else None,
        f"{key}_next_page": paginator.page(number + 1) if page.has_next() else None,
    }


def find_production(settings: Mapping[str, object]) -> Production:
    """Return the build that Pelican's settings carry while it runs."""
    return settings["BUILD_PRODUCTION"]  # type: ignore[return-value]
