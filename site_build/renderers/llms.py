"""The site for language models: `llms.txt` by llmstxt.org, and the newest posts in one text."""

from collections.abc import Iterable, Sequence

from edge_api.schema import paths
from site_build import addresses
from site_build.renderers import skills
from site_build.renderers.feed import Item
from site_build.renderers.markdown import list_overviews, list_pages, list_posts, write_link
from site_build.renderers.twins import render_record
from site_build.site import Identity, Site

NEWEST = 100
"""Posts in the full text."""


_DOORS = (
    ("Search", paths.SEARCH, "posts by their words, best first, for `?q=`"),
    ("Documentation", paths.DOCS, "the API with examples in curl, Python and JavaScript"),
    ("API description", f"{paths.AUDIENCES['rest']}/openapi.json", "OpenAPI 3.1"),
    ("API catalog", paths.API_CATALOG, "where each API describes itself (RFC 9727)"),
    ("MCP server", paths.SERVER_CARD, "how to connect to it: the server card"),
    ("Skills", skills.INDEX, "what an agent can do here, step by step"),
    ("auth.md", addresses.AUTH, "how a program gets access"),
)
_MANNERS = (
    "Every page of this site exists as Markdown too: put `index.md` behind its address, or ask"
    " for `text/markdown`. Posts are also served as JSON by the API, to whoever has a key."
)


def render_llms(site: Site) -> str:
    """Return the summary: a heading, a quotation, and links to the Markdown of every page."""
    identity = site.identity
    sections = [
        f"# {identity.name}",
        f"> {identity.description}",
        _MANNERS,
        "## Pages",
        "\n".join(
            [*_list_links(identity, list_overviews(identity)), *list_pages(identity, site.pages)]
        ),
        "## Posts",
        "\n".join(list_posts(identity, site.posts)) or "None yet.",
        "## For programs",
        "\n".join(_list_links(identity, _DOORS)),
        "## Optional",
        "\n".join(_list_more(identity, len(site.posts))),
    ]
    return "\n\n".join(sections) + "\n"


def _list_more(identity: Identity, count: int) -> list[str]:
    extent = "all posts" if count <= NEWEST else f"the newest {NEWEST} of {count} posts"
    more = (
        ("Full text", addresses.LLMS_FULL, f"{extent} in one file"),
        ("Atom feed", addresses.FEED, "the newest posts in full; each tag has one of its own"),
        ("JSON Feed", addresses.FEED_JSON, "the same as JSON"),
        ("Sitemap", addresses.SITEMAP, "every page, with its last revision where that is known"),
    )
    return _list_links(identity, more)


def _list_links(identity: Identity, links: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return one line for each title, path and sentence."""
    return [
        f"- {write_link(title, identity.absolute(path.lstrip('/')))}: {sentence}"
        for title, path, sentence in links
    ]


def render_llms_full(identity: Identity, items: Sequence[Item], count: int) -> str:
    """Return the whole text of `items`, the newest of `count` posts."""
    extent = (
        f"All {count} posts, newest first."
        if count <= len(items)
        else f"The newest {len(items)} of {count} posts, newest first; "
        f"{identity.absolute(addresses.LLMS)} lists them all."
    )
    parts = [f"# {identity.name}\n\n> {identity.description}\n\n{extent}\n"]
    parts += [render_record(item.record, item.lang) for item in items]
    return "\n---\n\n".join(parts)
