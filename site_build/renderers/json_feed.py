"""A feed as JSON Feed 1.1 (jsonfeed.org), with the whole text of its posts."""

from collections.abc import Sequence
from typing import Any

import orjson

from site_build import addresses
from site_build.renderers.feed import Channel, Item
from site_build.text import write_instant

_VERSION = "https://jsonfeed.org/version/1.1"


def render_json_feed(channel: Channel, items: Sequence[Item]) -> bytes:
    """Return the feed of `items`, which come newest first."""
    identity = channel.identity
    feed = {
        "version": _VERSION,
        "title": channel.title,
        "home_page_url": channel.page_url,
        "feed_url": channel.locate(addresses.FEED_JSON),
        "description": channel.describe(),
        "authors": [{"name": identity.author, "url": identity.absolute(addresses.HOME)}],
        "language": identity.lang,
        "items": [_describe(channel, item) for item in items],
    }
    return orjson.dumps(feed) + b"\n"


def _describe(channel: Channel, item: Item) -> dict[str, Any]:
    record = item.record
    card = channel.identity.absolute(addresses.locate_card(record.slug))
    return {
        "id": item.id,
        "url": item.url,
        "title": record.title,
        "summary": record.excerpt,
        "content_html": record.content_html,
        **({"image": card} if channel.has_cards else {}),
        "date_published": write_instant(record.publishedAt),
        "date_modified": write_instant(record.updatedAt),
        **({"authors": [{"name": item.author}]} if item.author else {}),
        "tags": record.tags,
        "language": item.lang,
    }
