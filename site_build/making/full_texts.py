"""The files that hold the whole text of many posts: feeds, and one text for language models.

They are put together from lines of the posts index, and only when one of their posts has changed:
a journal has a feed for each of its tags.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from edge_api.schema.index import PostRecord
from site_build import addresses
from site_build.incremental.cache import make_key
from site_build.making.index_file import Piece, read_records
from site_build.making.tasks import TextTask
from site_build.post import Document
from site_build.reading.gather import Texts
from site_build.renderers.feed import (
    Channel,
    Item,
    open_journal,
    open_tag,
    render_atom,
    render_json_feed,
)
from site_build.renderers.llms import NEWEST, render_llms_full
from site_build.site import Site, list_former_slugs

_FORMS: Mapping[str, Callable[[Channel, Sequence[Item]], bytes]] = {
    addresses.FEED: render_atom,
    addresses.FEED_JSON: render_json_feed,
}


@dataclass(frozen=True, slots=True)
class _Selection:
    """The newest of some posts, as lines of the index that nobody has read yet."""

    pieces: tuple[Piece, ...]
    langs: tuple[str, ...]
    """Of each post."""
    authors: tuple[str, ...]
    """Likewise; empty: the site's."""
    former: tuple[str, ...]
    """Likewise, the first slug where that is another; else empty."""

    @property
    def digest(self) -> bytes:
        """Stands for all that the posts say."""
        return make_key(
            [piece.digest for piece in self.pieces], self.langs, self.authors, self.former
        )

    def read(self) -> list[Item]:
        """Return the posts."""
        records = _read(self.pieces)
        said = zip(records, self.langs, self.authors, self.former, strict=True)
        return [Item(*each) for each in said]


def forget_records() -> None:
    """Let go of the posts that were read last."""
    _read.cache_clear()


@lru_cache(maxsize=2)
def _read(pieces: tuple[Piece, ...]) -> tuple[PostRecord, ...]:
    """Return what the lines say; the forms of a feed are made one after the other."""
    return tuple(read_records(pieces))


def list_full_texts(
    site: Site, pieces: Mapping[str, Piece], *, has_cards: bool
) -> Iterator[TextTask]:
    """Yield a task for each such file; `pieces` has the line of every post by its slug."""
    yield _make_full_text(site, _select(site, site.posts[:NEWEST], pieces))
    journal = open_journal(site, has_cards=has_cards)
    yield from _list_forms(journal, _select(site, site.posts[: journal.most], pieces))
    for tag in site.tags:
        channel = open_tag(site.identity, tag, has_cards=has_cards)
        yield from _list_forms(channel, _select(site, tag.posts[: channel.most], pieces))


def _select(site: Site, posts: Sequence[Document], pieces: Mapping[str, Piece]) -> _Selection:
    return _Selection(
        tuple(pieces[post.slug] for post in posts),
        tuple(post.lang or site.identity.lang for post in posts),
        tuple(post.author for post in posts),
        tuple(next(iter(list_former_slugs(post)), "") for post in posts),
    )


def _make_full_text(site: Site, newest: _Selection) -> TextTask:
    def render(_: Texts) -> str:
        return render_llms_full(site.identity, newest.read(), len(site.posts))

    return TextTask(addresses.LLMS_FULL, render, make_key(len(site.posts), newest.digest))


def _list_forms(channel: Channel, newest: _Selection) -> Iterator[TextTask]:
    sources = make_key(channel.title, channel.total, channel.has_cards, newest.digest)
    for feed, write in _FORMS.items():
        path = addresses.locate_feed(channel.folder, feed)
        yield TextTask(path, partial(_render_form, write, channel, newest), sources)


def _render_form(
    write: Callable[[Channel, Sequence[Item]], bytes],
    channel: Channel,
    newest: _Selection,
    _: Texts,
) -> bytes:
    return write(channel, newest.read())
