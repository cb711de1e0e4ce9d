"""Which renderer writes which file of the site, where no template and no picture is needed.

Feeds and other texts of many posts stand in `full_texts.py`, pictures and cards in `artwork.py`.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from site_build import addresses
from site_build.incremental.cache import make_key
from site_build.incremental.tree import Entry
from site_build.making.assets import Assets
from site_build.making.tasks import RECORD, RecordTask, Task, TextTask
from site_build.pictures.gallery import Gallery, link_markdown
from site_build.post import Document, Finding
from site_build.reading.gather import Texts
from site_build.renderers import auth, crawlers, llms, skills, twins
from site_build.site import Identity, Policy, Site, list_moves

_MOST_GONE = 10
"""Addresses that are named; of a folder that got other content there may be thousands."""


def list_records(site: Site, minutes: Mapping[str, int]) -> Iterator[RecordTask]:
    """Yield a task for every line of the posts index; `minutes` are by path."""
    for post in site.posts:
        url = site.identity.absolute(post.address)
        path = f"{addresses.name_file(post.address)}{RECORD}"
        yield RecordTask(path, post, minutes[post.path], url)


def list_outputs(site: Site, leaf_size: int, gallery: Gallery) -> Iterator[Task]:
    """Yield a task for every twin and every overview of the site."""
    identity = site.identity
    for post in site.posts:
        facts = [*_tell_author(post), *_tell_series(site, post)]
        yield _make_twin(identity, post, facts, gallery)
    for page in site.pages:
        yield _make_twin(identity, page, _tell_author(page), gallery)
    for former, present, document in list_moves(site):
        moved = twins.render_moved(identity, document.title, present)
        yield _make_text(addresses.name_file(former), moved)
    yield from _list_overviews(site)
    if identity.addresses.journal:
        journal = identity.addresses.journal
        yield from _list_leaves(identity, "Journal", journal, site.posts, leaf_size)
    for tag in site.tags:
        yield from _list_leaves(identity, tag.name, tag.address, tag.posts, leaf_size)
    for path, text in crawlers.render_sitemaps(site).items():
        yield _make_text(path, text)


def list_notices(identity: Identity, policy: Policy, now: datetime) -> Iterator[Task]:
    """Yield a task for each file that tells programs how to behave; `now` is the build's (UTC)."""
    yield _make_text(addresses.ROBOTS, crawlers.render_robots(identity, policy))
    yield _make_text(addresses.SECURITY, crawlers.render_security(identity, policy, now))
    yield _make_text(addresses.AUTH, auth.render_auth(identity, policy))
    for path, text in skills.render_skills(identity).items():
        yield _make_text(path, text)


def list_assets(assets: Assets) -> Iterator[Task]:
    """Yield a task for every file of the theme."""
    for asset in (*assets.published.values(), *assets.plain):
        yield _make_text(asset.path, asset.data)


def list_gone(
    before: Mapping[str, Entry],
    fresh: Container[str],
    places: Mapping[str, tuple[int, int]],
    lists: addresses.Addresses,
) -> Iterator[Finding]:
    """Yield a warning for each page of the previous build whose address is gone.

    `fresh` has the files of this build, `places` where each source file says its slug. Lists of
    tags and later leaves of lists come and go by themselves.
    """
    gone = [
        (entry.texts.partition("\n")[0] or path, path)
        for path, entry in sorted(before.items())
        if path.endswith(".html") and path not in fresh and not _is_of_list(path, before, lists)
    ]
    for source, path in gone[:_MOST_GONE]:
        address = f"/{path.removesuffix('index.html')}"
        message = (
            f"{address} was an address in the previous build and is gone; "
            f"if the page has a new address, add `aliases: [{address}]` to it"
        )
        yield Finding(source, *places.get(source, (1, 1)), "warning", message)
    if more := gone[_MOST_GONE:]:
        message = f"{len(more)} more addresses of the previous build are gone, /{more[0][1]} first"
        yield Finding(more[0][0], 1, 1, "warning", message)


def _is_of_list(path: str, before: Container[str], lists: addresses.Addresses) -> bool:
    """Tell whether a page is that of a tag and the like, or a later leaf of a list."""
    leaf = re.sub(r"(?:page/\d+/index|\d+)\.html$", "", path)
    if leaf != path and (f"{leaf}index.html" in before or f"{leaf}.html" in before):
        return True
    heads = (form.partition("{")[0] for form in (lists.tag, lists.category, lists.author))
    return any(head and path.startswith(head) for head in heads)


def _make_text(path: str, text: str | bytes) -> Task:
    return TextTask(path, lambda _: text)


def _make_twin(
    identity: Identity, document: Document, facts: Sequence[str], gallery: Gallery
) -> Task:
    path, links = document.address, gallery.links.get(document.path, {})

    def render(texts: Texts) -> str:
        text = link_markdown(texts.read(document).markdown, links)
        twin = twins.render_document(identity, document, text, path, facts)
        return twins.render_contact(twin, identity) if path == addresses.CONTACT else twin

    sources = make_key(document.path, document.digest, facts, [*links.items()])
    return TextTask(addresses.name_twin(path), render, sources)


def _tell_author(document: Document) -> list[str]:
    """Return who wrote a text as a fact, where it names somebody."""
    return [f"Author: {document.author}"] if document.author else []


def _tell_series(site: Site, post: Document) -> list[str]:
    """Return the post's place in its series as a fact, where it has one."""
    part = site.parts.get(post.path)
    if part is None:
        return []
    return [f"Series: {part.series}, part {part.number} of {len(part.posts)}"]


def _list_overviews(site: Site) -> Iterator[Task]:
    identity = site.identity
    lists = identity.addresses
    renders: dict[str | None, Callable[[Texts], str]] = {
        addresses.HOME: lambda _: twins.render_home(site),
        lists.tags: lambda _: twins.render_tags(identity, site.tags),
        lists.archive: lambda _: twins.render_archive(identity, site.posts),
        addresses.MISSING: lambda _: twins.render_missing(identity),
        addresses.CONTACT_THANKS: lambda _: twins.render_thanks(identity),
    }
    for path, render in renders.items():
        if path is not None:
            yield TextTask(addresses.name_twin(path), render)
    yield TextTask(addresses.LLMS, lambda _: llms.render_llms(site))


def _list_leaves(
    identity: Identity, title: str, folder: str, posts: Sequence[Document], size: int
) -> Iterator[Task]:
    groups = [posts[first : first + size] for first in range(0, len(posts), size)] or [posts]
    for number, group in enumerate(groups, 1):
        leaf = twins.Leaf(title, folder, number, len(groups), group)
        path = addresses.name_twin(addresses.locate_leaf(folder, number))
        sources = make_key(title, len(groups), [(post.digest, post.address) for post in group])
        yield TextTask(path, partial(_render_leaf, identity, leaf), sources)


def _render_leaf(identity: Identity, leaf: twins.Leaf, _: Texts) -> str:
    return twins.render_leaf(identity, leaf)
