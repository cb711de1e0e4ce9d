"""Where everything stands on the site: each address once, as a path without its leading slash.

Those of posts, pages, tags and lists are Pelican's settings; `Addresses` has them. A path that ends
with a slash is a folder, and its file is the `index.html` in it.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple

HOME = ""
CONTACT = "contact/"
"""Where the edge takes the contact form."""
CONTACT_THANKS = "contact/thanks/"
MISSING = "404.html"
FEED = "feed.xml"
FEED_JSON = "feed.json"
SITEMAP = "sitemap.xml"
ROBOTS = "robots.txt"
LLMS = "llms.txt"
LLMS_FULL = "llms-full.txt"
AUTH = "auth.md"
IMAGES = "images/"
THEME = "theme/"
PICTURES = "pictures/"
"""Forms of pictures that the build makes; their folders carry digests and never change meaning."""
CARDS = "cards/"
SITE_CARD = "card.png"
"""The picture that stands for whatever is no post; no slug of a post can be it."""
SECURITY = ".well-known/security.txt"
SKILLS = ".well-known/agent-skills/"


_EPOCH = datetime.fromtimestamp(0, UTC)


class Addresses(NamedTuple):
    """Where the site's settings put its pages: forms that `str.format` fills, and lists.

    The address of a list that the site does not make is None.
    """

    post: str = "journal/{slug}/"
    page: str = "{slug}/"
    tag: str = "tags/{slug}/"
    journal: str | None = "journal/"
    """All posts, newest first."""
    tags: str | None = "tags/"
    archive: str | None = "archive/"
    category: str = ""
    """A form too; empty where categories have no pages."""
    author: str = ""
    lists: tuple[str, ...] = ()
    """Whatever else the theme makes."""
    has_leaves: bool = True
    """Whether further leaves of a list stand in its folder `page/`."""
    has_form: bool = True
    """Whether the page `contact` has the form, which the edge takes at one address."""

    def locate(self, kind: str, slug: str, date: datetime = _EPOCH, **more: str) -> str:
        """Return the address of a `post`, a `page` or a `tag`; `more` fills what its form names."""
        if kind == "page" and f"{slug}/" == CONTACT and self.has_form:
            return CONTACT
        form: str = getattr(self, kind)
        return form.format(
            **{"lang": "", "category": "", "author": "", **more, "slug": slug, "date": date}
        )

    def find_slug(self, path: str) -> str:
        """Return the slug of the post that would stand at `path`; empty where none would."""
        before, _, after = (
            re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(part))
            for part in self.post.partition("{slug}")
        )
        found = re.fullmatch(f"{before}([a-z0-9][a-z0-9-]*){after}", path)
        return found[1] if found else ""

    def has_bare_pages(self) -> bool:
        """Tell whether any address ends neither with a slash nor with `.html`."""
        forms = (self.post, self.page, self.tag, self.category, self.author)
        return any(each and not each.endswith(("/", ".html")) for each in forms)

    def list_overviews(self) -> list[str]:
        """Return the addresses of the lists of all posts and of all tags that the site makes."""
        return [each for each in (self.journal, self.tags, self.archive) if each is not None]


HOUSE = Addresses()


def locate_card(slug: str) -> str:
    """Return the address of the picture that stands for a post elsewhere."""
    return f"{CARDS}{slug}.png"


def locate_feed(page: str, feed: str = FEED) -> str:
    """Return the address of a feed, `FEED` or `FEED_JSON`, of the posts listed at `page`."""
    folder = page.removesuffix(".html")
    return f"{folder}/{feed}" if folder and not folder.endswith("/") else f"{folder}{feed}"


def locate_leaf(folder: str, number: int) -> str:
    """Return the address of one leaf, counted from 1, of a list that fills several."""
    return folder if number == 1 else f"{folder}page/{number}/"


def name_file(path: str) -> str:
    """Return the file that answers at `path`."""
    if not path or path.endswith("/"):
        return f"{path}index.html"
    return path if "." in path.rpartition("/")[2] else f"{path}.html"


def name_twin(path: str) -> str:
    """Return the file that says the same as `path` in Markdown."""
    return f"{name_file(path).removesuffix('.html')}.md"
