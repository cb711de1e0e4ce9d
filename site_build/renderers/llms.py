"""The site for language models: `llms.txt` by llmstxt.org, and the newest posts in one text."""

from collections.abc import Sequence

from site_build import addresses
from site_build.renderers.feed import Item
from site_build.renderers.markdown import list_pages, list_posts, write_link
from site_build.renderers.twins import render_record
from site_build.site import Identity, Site

NEWEST = 100
"""Posts in the full text."""


_MANNERS = (
    "Every page of this site exists as Markdown too: put `index.md` behind its address, or ask"
    " for `text/markdown`. Posts are also served as JSON by the API."
)


def render_llms(site: Site) -> str:
    """Return the summary: a heading, a quotation, and links to the Markdown of every page."""
    identity = site.identity
    sections = [
        f"# {identity.name}",
        f"> {identity.description}",
        _MANNERS,
        "## Pages",
        "\n".join([*_list_overviews(identity), *list_pages(identity, site.pages)]),
        "## Posts",
        "\n".join(list_posts(identity, site.posts)) or "None yet.",
        "## Optional",
        "\n".join(_list_more(identity, len(site.posts))),
    ]
    return "\n\n".join(sections) + "\n"


def _list_overviews(identity: Identity) -> list[str]:
    overviews = (
        ("Journal", addresses.JOURNAL, "all posts, newest first"),
        ("Tags", addresses.TAGS, "all tags with the number of their posts"),
        ("Archive", addresses.ARCHIVE, "all posts by year"),
    )
    return [
        f"- {write_link(title, identity.absolute(addresses.name_twin(path)))}: {sentence}"
        for title, path, sentence in overviews
    ]


def _list_more(identity: Identity, count: int) -> list[str]:
    extent = "all posts" if count <= NEWEST else f"the newest {NEWEST} of {count} posts"
    more = (
        ("Full text", addresses.LLMS_FULL, f"{extent} in one file"),
        ("Feed", addresses.FEED, "Atom, with the newest posts in full"),
        ("API description", "api/public/v1/openapi.json", "OpenAPI 3.1"),
        ("auth.md", addresses.AUTH, "how a program gets access to the API"),
    )
    return [
        f"- {write_link(title, identity.absolute(path))}: {sentence}"
        for title, path, sentence in more
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
