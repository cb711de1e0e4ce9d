"""Targets without template or picture: Markdown, lines of the index, feeds, redirects, notices.

Feeds and the full text for language models are made of lines of the posts index, and only when one
of their posts has changed: a journal has a feed for each of its tags.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

from edge_api.schema.index import NewsletterNotes, PostRecord
from site_build import addresses
from site_build.build.manifest import Entry, Line
from site_build.build.targets import (
    RECORD,
    RecordTarget,
    Target,
    TargetContext,
    TextTarget,
    read_records,
)
from site_build.cache import make_key
from site_build.checks.facts import is_of_edge
from site_build.content.head import NEWSLETTER_KEY, read_newsletter
from site_build.content.sources import TextReader
from site_build.errors import Diagnostic
from site_build.images.responsive import ImageSet, Lead, link_markdown
from site_build.outputs import agents, markdown
from site_build.outputs.feed import (
    Channel,
    Item,
    make_journal_channel,
    make_tag_channel,
    render_atom,
    render_json_feed,
)
from site_build.site import Document, Identity, Policy, Site, list_former_slugs, list_moves
from site_build.text import fold

_MAX_REPORTED = 10
"""The most missing addresses that are reported one by one; there may be thousands."""


def list_records(
    site: Site, minutes: Mapping[str, int], posts: Iterable[Document] | None = None
) -> Iterator[RecordTarget]:
    """Yield a target for every line of the posts index; `minutes` has reading times by path.

    With `posts`, these are taken instead of those that the index has.
    """
    for post in site.posts if posts is None else posts:
        path = f"{addresses.name_file(post.address)}{RECORD}"
        yield RecordTarget(path, post, minutes[post.path], site.identity.absolute(post.address))


def note_newsletter(
    site: Site, minutes: Mapping[str, int], context: TargetContext
) -> NewsletterNotes:
    """Return what the heads of public posts say of the newsletter."""
    wishes = {
        post.slug: read_newsletter(dict(post.extra).get(NEWSLETTER_KEY))
        for post in (*site.posts, *site.hidden)
        if post.kind == "post"
    }
    hidden = [post for post in site.hidden if wishes.get(post.slug)]
    records = list_records(site, minutes, hidden)
    return NewsletterNotes(
        kept_out=tuple(slug for slug, wish in wishes.items() if wish is False),
        hidden=tuple(PostRecord.model_validate_json(each.make(context)) for each in records),
        renamed={old: post.slug for post in hidden for old in list_former_slugs(post)},
        languages={post.slug: post.lang for post in (*site.posts, *hidden) if post.lang},
    )


def list_outputs(site: Site, size: int, image_set: ImageSet, texts: TextReader) -> Iterator[Target]:
    """Yield the targets of Markdown, moved pages and sitemap; lists have `size` posts a page."""
    identity, lists = site.identity, site.identity.addresses
    for document in site.documents:
        yield make_alternate(site, document, image_set, texts)
    for former, present, document in list_moves(site):
        if fold(former) != fold(present):  # else some disks take both for one file
            moved = markdown.render_moved(identity, document.title, present)
            yield TextTarget(addresses.name_file(former), moved)
    overviews: dict[str | None, Callable[[], str]] = {
        addresses.HOME: partial(markdown.render_home, site),
        lists.tags: partial(markdown.render_tags, identity, site.tags),
        lists.archive: partial(markdown.render_archive, identity, site.posts),
        addresses.MISSING: partial(markdown.render_missing, identity),
        addresses.CONTACT_THANKS: partial(markdown.render_thanks, identity),
    }
    for path, render in overviews.items():
        if path is not None:
            yield TextTarget(addresses.name_alternate(path), render)
    if lists.journal:
        yield from _list_pages(identity, "Journal", lists.journal, site.posts, size)
    for tag in (each for each in site.tags + site.authors if each.address):
        yield from _list_pages(identity, tag.name, tag.address, tag.posts, size)
    yield TextTarget(addresses.SITEMAP, agents.render_sitemap(site))


def choose_redirects(redirects: Mapping[str, str], files: Mapping[str, object]) -> dict[str, str]:
    """Return the redirects from paths without a file to paths that have one."""

    def is_there(path: str) -> bool:
        names = (path, addresses.name_file(path), f"{path}/index.html")
        return is_of_edge(path) or not files.keys().isdisjoint(names)

    return {old: new for old, new in redirects.items() if is_there(new) and not is_there(old)}


def list_redirects(
    identity: Identity, redirects: Mapping[str, str], paths: Iterable[str]
) -> Iterator[TextTarget]:
    """Yield a page for each former path at which a server without redirects can show one.

    `paths` are those of all other files; a page never replaces one of them, on any disk.
    """
    taken = set(map(fold, paths))  # folders too, with a slash at the end
    taken |= {f"{each}/" for path in taken for each in PurePosixPath(path).parents}
    for former, present in redirects.items():
        name = addresses.name_file(former)
        path, above = fold(name), [*map(str, PurePosixPath(fold(name)).parents)]
        is_free = taken.isdisjoint({path, f"{path}/", *above})
        if is_free and "?" not in former and name.endswith(".html"):
            taken |= {path, *(f"{each}/" for each in above)}
            yield TextTarget(name, markdown.render_moved(identity, f"/{present}", present))


def list_notices(site: Site, policy: Policy, now: datetime) -> Iterator[Target]:
    """Yield a target for each file that says what programs may do, as of `now` (UTC)."""
    identity = site.identity
    yield TextTarget(addresses.LLMS, partial(agents.render_llms, site, policy))
    yield TextTarget(addresses.ROBOTS, agents.render_robots(identity, policy))
    yield TextTarget(addresses.SECURITY, agents.render_security(identity, policy, now))
    yield TextTarget(addresses.OPENSEARCH, agents.render_opensearch(identity))
    yield TextTarget(addresses.AUTH, agents.render_auth(identity, policy))
    for path, text in agents.render_skills(identity, policy).items():
        yield TextTarget(path, text)


def find_gone_pages(
    before: Mapping[str, Entry],
    fresh: Container[str],
    places: Mapping[str, tuple[int, int]],
    lists: addresses.Addresses,
) -> Iterator[Diagnostic]:
    """Yield a warning for each page of the previous build whose address is gone.

    `fresh` has the files of this build, `places` the line and column of each source file's slug.
    Pages of tags and later pages of lists are left out: they come and go by themselves.
    """
    gone = [
        (before[path].texts.partition("\n")[0] or path, path)
        for path in sorted(path for path in before if path not in fresh)
        if path.endswith(".html") and not _is_of_list(path, before, lists)
    ]
    for source, path in gone[:_MAX_REPORTED]:
        address = f"/{path.removesuffix('index.html')}"
        message = (
            f"{address} was an address in the previous build and is gone; "
            f"if the page has a new address, add `aliases: [{address}]` to it"
        )
        yield Diagnostic(source, *places.get(source, (1, 1)), "warning", message)
    if more := gone[_MAX_REPORTED:]:
        message = f"{len(more)} more addresses of the previous build are gone, /{more[0][1]} first"
        yield Diagnostic(more[0][0], 1, 1, "warning", message)


def _is_of_list(path: str, before: Container[str], lists: addresses.Addresses) -> bool:
    """Return whether a page is that of a tag, category or author, or a later page of a list."""
    first = re.sub(r"(?:page/\d+/index|\d+)\.html$", "", path)
    if first != path and (f"{first}index.html" in before or f"{first}.html" in before):
        return True
    heads = (form.partition("{")[0] for form in (lists.tag, lists.category, lists.author))
    return any(head and path.startswith(head) for head in heads)


def make_alternate(
    site: Site, document: Document, image_set: ImageSet, texts: TextReader
) -> Target:
    """Return the target of a document's Markdown."""
    path, links = document.address, image_set.links.get(document.path, {})
    facts = [f"Author: {document.author}"] if document.author else []
    if part := site.parts.get(document.path):
        facts.append(f"Series: {part.series}, part {part.number} of {len(part.posts)}")

    def render() -> str:
        text = link_markdown(texts.read(document).markdown, links)
        alternate = markdown.render_document(site.identity, document, text, path, facts)
        return (
            markdown.render_contact(alternate, site.identity)
            if path == addresses.CONTACT
            else alternate
        )

    sources = partial(make_key, document.path, document.digest, facts, [*links.items()])
    return TextTarget(addresses.name_alternate(path), render, sources)


def _list_pages(
    identity: Identity, title: str, folder: str, posts: Sequence[Document], size: int
) -> Iterator[Target]:
    groups = [posts[first : first + size] for first in range(0, len(posts), size)] or [posts]
    for number, group in enumerate(groups, 1):
        leaf = markdown.ListPage(title, folder, number, len(groups), group)
        path = addresses.name_alternate(addresses.locate_list_page(folder, number))
        shown = [(e.title, e.address, e.description, str(e.published)) for e in group]
        sources = partial(make_key, title, len(groups), shown)
        yield TextTarget(path, partial(markdown.render_list_page, identity, leaf), sources)


class _NewestPosts(NamedTuple):
    """The newest of some posts; their lines of the index are read when they are needed.

    Language, author, first slug and picture are added to each line, since the index lacks them.
    """

    posts: Sequence[Document]
    lines: Mapping[str, Line]
    """Lines by slug."""
    lang: str
    """Language of a post that names none."""
    images: ImageSet

    def make_key(self, *more: object) -> bytes:
        """Return the digest of the posts' contents and of `more`."""
        return make_key([self.lines[post.slug].digest for post in self.posts], self._facts(), more)

    def read(self) -> list[Item]:
        """Return the posts as items of feeds."""
        records = read_records(tuple(self.lines[post.slug] for post in self.posts))
        return [Item(record, *more) for record, more in zip(records, self._facts(), strict=True)]

    def _facts(self) -> list[tuple[str, str, str, Lead | None]]:
        return [
            (
                post.lang or self.lang,
                post.author,
                next(iter(list_former_slugs(post)), ""),
                self.images.find_lead(post),
            )
            for post in self.posts
        ]


def list_full_texts(
    site: Site,
    lines: Mapping[str, Line],
    images: ImageSet,
    *,
    has_cards: bool,
) -> Iterator[TextTarget]:
    """Yield the targets of feeds and of the full text; `lines` are those of all posts by slug."""
    identity, count = site.identity, len(site.posts)
    select = partial(_NewestPosts, lines=lines, lang=identity.lang, images=images)
    newest = select(site.posts[: agents.LLMS_FULL_POSTS])
    yield TextTarget(
        addresses.LLMS_FULL,
        lambda: agents.render_llms_full(identity, newest.read(), count),
        partial(newest.make_key, count),
    )
    journal = make_journal_channel(site, has_cards=has_cards)
    yield from _list_feeds(journal, select(site.posts[: journal.max_posts]))
    for tag in site.tags if identity.addresses.tag else ():
        channel = make_tag_channel(identity, tag, has_cards=has_cards)
        yield from _list_feeds(channel, select(tag.posts[: channel.max_posts]))


def _list_feeds(channel: Channel, newest: _NewestPosts) -> Iterator[TextTarget]:
    sources = partial(newest.make_key, channel.title, channel.total, channel.has_cards)
    for form, write in ((addresses.FEED, render_atom), (addresses.FEED_JSON, render_json_feed)):
        path = addresses.locate_feed(channel.page_address, form)

        def render(write: Callable[[Channel, list[Item]], bytes] = write) -> bytes:
            return write(channel, newest.read())

        yield TextTarget(path, render, sources)
