"""Atom and JSON Feed, as values: what readers of either find in them."""

import json
from datetime import timedelta
from typing import Any

import feedparser  # type: ignore[import-untyped]
import pytest
from jsonschema import Draft202012Validator

from edge_api.schema.index import PostRecord
from site_build import addresses
from site_build.outputs.feed import (
    Channel,
    Item,
    make_journal_channel,
    make_tag_channel,
    render_atom,
    render_json_feed,
)
from site_build.site import select_public
from tests.site_build.records import ATOM, DAY, ME, make, parse, record

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
JOURNAL = Channel(ME, ME.name, "", "", 2, 50, has_cards=True)
URL = {"type": "string", "pattern": "^https?://[^ ]+$"}
INSTANT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
TEXT = {"type": "string", "minLength": 1}
SCHEMA = {
    "type": "object",
    "required": ["version", "title", "home_page_url", "feed_url", "authors", "language", "items"],
    "additionalProperties": False,
    "properties": {
        "version": {"const": "https://jsonfeed.org/version/1.1"},
        "title": TEXT,
        "home_page_url": URL,
        "feed_url": URL,
        "description": TEXT,
        "language": TEXT,
        "authors": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "properties": {"name": TEXT, "url": URL}},
        },
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "url", "content_html", "date_published", "date_modified"],
                "additionalProperties": False,
                "properties": {
                    **dict.fromkeys(("id", "url", "image"), URL),
                    **dict.fromkeys(("title", "summary", "content_html", "language"), TEXT),
                    **dict.fromkeys(("date_published", "date_modified"), INSTANT),
                    "tags": {"type": "array", "items": TEXT},
                    "authors": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "additionalProperties": False,
                            "properties": {"name": TEXT},
                        },
                    },
                },
            },
        },
    },
}
"""JSON Feed 1.1, as far as a feed of posts uses it: any other member is a slip."""


def items(*records: PostRecord, lang: str = "en") -> list[Item]:
    """Return what a feed holds."""
    return [Item(each, lang) for each in records]


def read_json(channel: Channel, *records: PostRecord) -> dict[str, Any]:
    """Return a JSON Feed, checked against its norm."""
    feed: dict[str, Any] = json.loads(render_json_feed(channel, items(*records)))
    Draft202012Validator(SCHEMA).validate(feed)
    return feed


def test_a_reader_finds_every_part_of_the_atom_feed() -> None:
    """A feed reader finds titles, links, texts and tags, and nothing wrong."""
    found = feedparser.parse(render_atom(JOURNAL, items(record("b"), record("a"))))

    assert found.bozo is False
    assert (found.version, found.feed.title, found.feed.author) == ("atom10", "A & B", "Ann")
    assert [entry.link for entry in found.entries] == [
        "https://journal.test/journal/b/",
        "https://journal.test/journal/a/",
    ]
    first = found.entries[0]
    assert first.content[0].value == "<p>Words of b &amp; more.</p>"
    assert (first.summary, [tag.term for tag in first.tags]) == (
        "Excerpt of b.",
        ["one", "two & three"],
    )


def test_the_atom_feed_has_what_the_norm_requires() -> None:
    """RFC 4287: id, title, updated and a link to itself; ids of entries that differ."""
    root = parse(render_atom(JOURNAL, items(record("b"), record("a"))))

    assert root.findtext(f"{ATOM}id") == "https://journal.test/feed.xml"
    assert {link.get("rel"): link.get("href") for link in root.findall(f"{ATOM}link")} == {
        "self": "https://journal.test/feed.xml",
        "alternate": "https://journal.test/",
    }
    ids = [entry.findtext(f"{ATOM}id") for entry in root.findall(f"{ATOM}entry")]
    assert len(set(ids)) == len(ids) == 2
    for entry in root.findall(f"{ATOM}entry"):
        assert all(entry.find(f"{ATOM}{name}") is not None for name in ("title", "updated"))


def test_feed_and_entries_say_their_language() -> None:
    """A post in another language says so, in both forms."""
    given = items(record("b"), lang="pt-BR")
    root = parse(render_atom(JOURNAL, given))
    feed = json.loads(render_json_feed(JOURNAL, given))

    assert root.get(LANG) == feed["language"] == "en"
    assert root.find(f"{ATOM}entry").get(LANG) == "pt-BR"  # type: ignore[union-attr]
    assert feed["items"][0]["language"] == "pt-BR"


def test_a_post_may_have_an_author_of_its_own() -> None:
    """It is named beside the post in both forms, and the others have the feed's."""
    given = [Item(record("b"), "en", "Bob <b>"), *items(record("a"))]
    entries = parse(render_atom(JOURNAL, given)).findall(f"{ATOM}entry")
    feed = json.loads(render_json_feed(JOURNAL, given))
    Draft202012Validator(SCHEMA).validate(feed)

    assert [entry.findtext(f"{ATOM}author/{ATOM}name") for entry in entries] == ["Bob <b>", None]
    assert feed["items"][0]["authors"] == [{"name": "Bob <b>"}]
    assert "authors" not in feed["items"][1]


def test_the_feed_is_as_new_as_its_newest_revision() -> None:
    """The feed's date comes from the posts."""
    revised = record("a", updatedAt=DAY + timedelta(days=3, hours=1))

    root = parse(render_atom(JOURNAL, items(record("b"), revised)))

    assert root.findtext(f"{ATOM}updated") == "2026-03-04T01:00:00Z"


def test_the_json_feed_says_what_the_atom_feed_says() -> None:
    """Both forms have the same posts with the same texts, days and tags."""
    feed = read_json(JOURNAL, record("b"), record("a"))
    entry = feed["items"][0]

    assert feed["authors"] == [{"name": "Ann", "url": "https://journal.test/"}]
    assert feed["feed_url"] == "https://journal.test/feed.json"
    assert entry["content_html"] == "<p>Words of b &amp; more.</p>"
    assert entry["image"] == "https://journal.test/cards/b.png"
    assert (entry["tags"], entry["date_published"]) == (
        ["one", "two & three"],
        "2026-03-01T00:00:00Z",
    )


@pytest.mark.parametrize(
    ("total", "sentence"),
    [
        (0, "All posts, in full."),
        (50, "All posts, in full."),
        (51, "The newest 50 of 51 posts, in full."),
    ],
)
def test_a_feed_says_how_much_it_holds(total: int, sentence: str) -> None:
    """A reader of the feed knows whether there is more."""
    channel = Channel(ME, ME.name, "", "", total, 50)
    root = parse(render_atom(channel, []))

    assert sentence in (root.findtext(f"{ATOM}subtitle") or "")
    assert sentence in json.loads(render_json_feed(channel, []))["description"]


def test_a_tag_has_a_feed_of_its_own() -> None:
    """It is named after the tag, is beside its page, and has fewer posts."""
    site = select_public(ME, [make("a", tags=("Light & dark",))], DAY)
    channel = make_tag_channel(ME, site.tags[0])
    feed = read_json(channel, record("a"))

    assert (feed["title"], feed["home_page_url"], feed["feed_url"]) == (
        "A & B: Light & dark",
        "https://journal.test/tags/light-dark/",
        "https://journal.test/tags/light-dark/feed.json",
    )
    assert "All posts tagged Light & dark, in full." in feed["description"]
    assert channel.max_posts < make_journal_channel(site).max_posts


def test_characters_invalid_in_xml_are_left_out() -> None:
    """Control characters in a post do not make the feed of all posts unreadable."""
    odd = record("a", title="A\x0btitle", excerpt="\x00\x1f", content_html="<p>\x0c\ufffe</p>")

    found = feedparser.parse(render_atom(JOURNAL, items(odd)))

    assert found.bozo is False
    assert found.entries[0].title == "Atitle"


def test_feeds_are_at_their_linked_addresses() -> None:
    """The addresses of feeds are those that pages name."""
    assert addresses.locate_feed("", addresses.FEED) == "feed.xml"
    assert addresses.locate_feed("tags/x/", addresses.FEED_JSON) == "tags/x/feed.json"
