"""What a feed is of, and what every form of it says: the journal, or the posts of one tag.

The records come from the posts index, so feed and API say the same of a post. How a form of a feed
is written is not known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from edge_api.schema.index import PostRecord
from site_build import addresses
from site_build.site import UNDATED, Identity, Site, Tag

NEWEST = 50
"""Posts in the feed of the journal."""
NEWEST_OF_TAG = 20
"""Posts in the feed of a tag: a post is in as many of them as it has tags."""


@dataclass(frozen=True, slots=True)
class Channel:
    """What one feed is of."""

    identity: Identity
    title: str
    subject: str
    """What its posts are, after a number: `posts`."""
    folder: str
    """Address of the page that the feed stands beside."""
    total: int
    """Posts that there are, in the feed or not."""
    most: int
    """Posts that the feed holds at most."""
    has_cards: bool = False
    """Whether each post has a card."""

    @property
    def page_url(self) -> str:
        """Where people read the same."""
        return self.identity.absolute(self.folder)

    def locate(self, feed: str) -> str:
        """Return the URL of one form of the feed, `FEED` or `FEED_JSON`."""
        return self.identity.absolute(addresses.locate_feed(self.folder, feed))

    def describe(self) -> str:
        """Say what the site is, and how much of it the feed holds."""
        return f"{self.identity.description} {self._tell_extent()}".strip()

    def _tell_extent(self) -> str:
        if self.total <= self.most:
            return f"All {self.subject}, in full."
        return f"The newest {self.most} of {self.total} {self.subject}, in full."


@dataclass(frozen=True, slots=True)
class Item:
    """One post in a feed."""

    record: PostRecord
    lang: str
    """BCP 47 tag of its language."""
    author: str = ""
    """Who wrote it, by name; empty: the site's author."""
    first_slug: str = ""
    """The slug under which it was published first; empty: its own."""

    @property
    def url(self) -> str:
        """Where people read it."""
        return str(self.record.url)

    @property
    def id(self) -> str:
        """Where it was read first: readers of feeds show what has a new id as new."""
        first = self.first_slug or self.record.slug
        return self.url.removesuffix(f"{self.record.slug}/") + f"{first}/"


def open_journal(site: Site, *, has_cards: bool = False) -> Channel:
    """Return the channel of all posts."""
    identity, total = site.identity, len(site.posts)
    return Channel(identity, identity.name, "posts", addresses.HOME, total, NEWEST, has_cards)


def open_tag(identity: Identity, tag: Tag, *, has_cards: bool = False) -> Channel:
    """Return the channel of the posts that carry a tag."""
    return Channel(
        identity,
        f"{identity.name}: {tag.name}",
        f"posts tagged {tag.name}",
        addresses.locate_tag(tag.slug),
        len(tag.posts),
        NEWEST_OF_TAG,
        has_cards,
    )


def find_latest(items: Sequence[Item]) -> datetime:
    """Return when any of the posts was last revised: the age of the feed, whatever the clock."""
    return max((item.record.updatedAt for item in items), default=UNDATED)
