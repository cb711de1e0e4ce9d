"""The Markdown alternate of every page: the same words without HTML.

An alternate is in the folder of its page, so its relative links lead to the same files.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby
from urllib.parse import quote

from edge_api.schema import paths
from edge_api.schema.index import PostRecord
from site_build import addresses
from site_build.site import UNDATED, Document, Identity, PostGroup, Site


def escape_text(text: str) -> str:
    """Return plain text with its special characters escaped for Markdown."""
    return re.sub(r"([\\\[\]`*_<>])", r"\\\1", text)


def write_link(text: str, url: str) -> str:
    """Return a link with plain text."""
    return f"[{escape_text(text)}]({url})"


def list_posts(identity: Identity, posts: Sequence[Document]) -> list[str]:
    """Return one line for each post: a link to its alternate, its date and its description."""
    return [
        f"- {_link(identity, post.title, post.address)} ({post.published:%Y-%m-%d}): "
        f"{escape_text(post.description)}"
        for post in posts
    ]


def list_pages(identity: Identity, pages: Sequence[Document]) -> list[str]:
    """Return one line for each page: a link to its alternate, and its description."""
    return [
        f"- {_link(identity, page.title, page.address)}: {escape_text(page.description)}"
        for page in pages
    ]


def list_overviews(identity: Identity) -> list[tuple[str, str, str]]:
    """Return title, path of the alternate and description of each list that the site has."""
    lists = identity.addresses
    known = (
        ("Journal", lists.journal, "all posts, newest first"),
        ("Tags", lists.tags, "all tags with the number of their posts"),
        ("Archive", lists.archive, "all posts by year"),
    )
    return [(title, addresses.name_alternate(path), words) for title, path, words in known if path]


def _link(identity: Identity, title: str, page: str) -> str:
    """Return a link to the alternate of the page at an address."""
    return write_link(title, identity.absolute(addresses.name_alternate(page)))


HOME_POSTS = 10
"""The most posts on the alternate of the home page."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list of posts, which may fill several."""

    title: str
    first_address: str
    """Address of the first page."""
    number: int
    """The number of this page, from 1."""
    count: int
    """The number of pages of the list."""
    posts: Sequence[Document]


def render_document(
    identity: Identity, document: Document, text: str, path: str, more: Sequence[str] = ()
) -> str:
    """Return the alternate of the post or page at `path`, whose Markdown is `text`.

    `more` are further facts, such as the post's place in a series.
    """
    lang = document.lang or identity.lang
    text = re.sub(r"\A(!\[.*\n)\n+", r"\1\n", text)  # one blank line below a leading picture
    facts = _list_facts(document.published, document.updated, document.tags, lang)
    facts += [*more, f"Source: {identity.absolute(path)}"]
    return _render(document.title, document.description, facts, text)


def render_record(record: PostRecord, lang: str) -> str:
    """Return the alternate of a post from its record in the posts index."""
    facts = _list_facts(record.publishedAt, record.updatedAt, record.tags, lang)
    return _render(
        record.title, record.description, [*facts, f"Source: {record.url}"], record.content
    )


def _list_facts(
    published: datetime, updated: datetime, tags: Sequence[str], lang: str
) -> list[str]:
    facts = [] if published == UNDATED else [f"Published: {published:%Y-%m-%d}"]
    if updated.date() > published.date():
        facts.append(f"Updated: {updated:%Y-%m-%d}")
    if tags:
        facts.append(f"Tags: {', '.join(tags)}")
    return [*facts, f"Language: {lang}"]


def _render(title: str, description: str, facts: list[str], text: str) -> str:
    head = _join(
        f"# {escape_text(title)}",
        description and f"> {escape_text(description)}",
        "\n".join(f"- {escape_text(fact)}" for fact in facts),
    )
    return f"{head}\n{text.strip()}\n"


def render_home(site: Site) -> str:
    """Return the alternate of the home page."""
    identity = site.identity
    more = [
        f"- {write_link(title, identity.absolute(path))}"
        for title, path in (
            *((title, path) for title, path, _ in list_overviews(identity)),
            ("llms.txt", addresses.LLMS),
            ("Atom feed", addresses.FEED),
            ("JSON Feed", addresses.FEED_JSON),
        )
    ]
    return _join(
        f"# {escape_text(identity.name)}",
        identity.description and f"> {escape_text(identity.description)}",
        "## Latest posts",
        "\n".join(list_posts(identity, site.posts[:HOME_POSTS])) or "None yet.",
        "## More",
        "\n".join([*more, *list_pages(identity, site.pages)]),
    )


def render_list_page(identity: Identity, page: ListPage) -> str:
    """Return the alternate of one leaf of a list of posts."""
    place = "" if page.count == 1 else f", page {page.number} of {page.count}"
    ways = [
        f"- {_link(identity, way, addresses.locate_list_page(page.first_address, number))}"
        for way, number in (("Newer", page.number - 1), ("Older", page.number + 1))
        if 1 <= number <= page.count
    ]
    return _join(
        f"# {escape_text(page.title)}{place}",
        "\n".join(list_posts(identity, page.posts)) or "No posts yet.",
        "\n".join(ways),
    )


def render_tags(identity: Identity, tags: Sequence[PostGroup]) -> str:
    """Return the alternate of the list of tags."""
    lines = [
        f"- {_link(identity, tag.name, tag.address) if tag.address else escape_text(tag.name)}"
        f" ({len(tag.posts)})"
        for tag in tags
    ]
    return _join("# Tags", "\n".join(lines) or "No tags yet.")


def render_archive(identity: Identity, posts: Sequence[Document]) -> str:
    """Return the alternate of the archive: every post by its year."""
    years = [
        f"## {year}\n\n" + "\n".join(list_posts(identity, list(found)))
        for year, found in groupby(posts, key=lambda post: post.published.year)
    ]
    return _join("# Archive", *(years or ["No posts yet."]))


def render_missing(identity: Identity) -> str:
    """Return the alternate of the page for missing addresses."""
    ways = (
        ("llms.txt", addresses.LLMS, "every page, and what there is for programs"),
        *list_overviews(identity),
        ("Search", f"{paths.SEARCH.lstrip('/')}?q=", "posts by their words, put behind it"),
    )
    return _join(
        "# Not found",
        "There is no page at this address. From here you find what there is:",
        "\n".join(
            f"- {write_link(title, identity.absolute(path))}: {sentence}"
            for title, path, sentence in ways
        ),
    )


def render_moved(identity: Identity, title: str, path: str) -> str:
    """Return the HTML page at a former address, which redirects to `path`."""
    shown, address = escape(title), f"/{quote(path)}"
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(identity.lang)}">\n<meta charset="utf-8">\n'
        f"<title>{shown}</title>\n"
        f'<link rel="canonical" href="{escape(identity.url)}{address}">\n'
        f'<meta http-equiv="refresh" content="0; url={address}">\n'
        f'<body><p><a href="{address}">{shown}</a></p>\n</html>\n'
    )


def render_thanks(identity: Identity) -> str:
    """Return the alternate of the page that is shown after a message was sent."""
    journal = _link(identity, "the journal", identity.addresses.journal or addresses.HOME)
    return _join(
        "# Thank you",
        "Your message has arrived and is stored. A person reads it and answers to the address you"
        " gave.",
        f"Meanwhile, there is {journal}.",
    )


def render_contact(alternate: str, identity: Identity) -> str:
    """Return the alternate of the contact page: its text, and how programs send its forms."""
    leads = f"{identity.url}{paths.AUDIENCES['rest']}/leads"
    skill = identity.absolute(f"{paths.SKILLS}send-an-enquiry/SKILL.md")
    return _join(
        alternate.strip(),
        "## Send a message from a program",
        f"`POST {leads}` takes what the form takes, as JSON: `name`, `email`, `budget_tier` and"
        " `message`, all of them strings and all needed. No key is needed unless the answer is"
        f" 401. {write_link('send-an-enquiry', skill)} has the whole request. Send nothing that"
        " the person has not seen: it cannot be taken back.",
        "## Ask for access from a program",
        f"`POST {identity.url}{paths.REQUEST_ACCESS}` asks for an API key or an access token;"
        f" {write_link('auth.md', identity.absolute(addresses.AUTH))} tells how.",
    )


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
