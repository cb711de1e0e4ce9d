"""Addresses of the site, each declared once, as a path without its leading slash.

Addresses of posts, pages, tags and lists come from Pelican's settings into `Addresses`. A path that
ends with a slash is a folder, and its file is the `index.html` in it.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple

HOME = ""
CONTACT = "contact/"
"""The page with the contact form; the edge receives the filled form at this address, too."""
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
"""The folder of pictures that the build makes, in subfolders whose names have digests."""
FORE_EDGE = "edge/"
"""The folder of the picture on the fore-edge, which changes while its address stays."""
CARDS = "cards/"
SITE_CARD = "card.png"
"""The card of all pages that are not posts; it is outside of the folder of the posts' cards."""
OPENSEARCH = "opensearch.xml"
SECURITY = ".well-known/security.txt"


MARKDOWN_SUFFIXES = (".md", ".markdown", ".mkd", ".mdown")
"""Suffixes of Markdown files, as Pelican reads them."""
CONVERTED_SUFFIXES = (".heic", ".heif")
"""Suffixes of pictures that are published as JPEG, since most browsers do not show them."""
_EPOCH = datetime.fromtimestamp(0, UTC)


class Addresses(NamedTuple):
    """Addresses of pages, as format strings, and of lists; None if there is no such list."""

    post: str = "journal/{slug}/"
    page: str = "{slug}/"
    tag: str = "tags/{slug}/"
    journal: str | None = "journal/"
    """All posts, newest first."""
    tags: str | None = "tags/"
    archive: str | None = "archive/"
    category: str = ""
    """The format string for categories; empty if they have no pages."""
    author: str = ""
    """The format string for authors; empty if they have no pages."""
    lists: tuple[str, ...] = ()
    """Other lists that the theme makes."""
    has_leaves: bool = True
    """Whether lists are split into pages, the later ones in the folder `page/` of the list."""
    has_form: bool = True
    """Whether the page `contact` has the form, and so the address CONTACT."""

    def locate(self, kind: str, slug: str, date: datetime = _EPOCH, **more: str) -> str:
        """Return the address of a `post`, `page` or `tag`; `more` has other values to fill in."""
        if kind == "page" and f"{slug}/" == CONTACT and self.has_form:
            return CONTACT
        form: str = getattr(self, kind)
        path = form.format(
            **{"lang": "", "category": "", "author": "", **more, "slug": slug, "date": date}
        )
        # An address such as `v1.0` would name a file without the suffix of a page.
        is_bare = "." in slug and not re.search("[./]", form.partition("{slug}")[2])
        return f"{path}.html" if is_bare else path

    def find_slug(self, path: str) -> str:
        """Return the slug of a post whose address is `path`; empty if it is no post's."""
        before, _, after = (
            re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(part))
            for part in self.post.partition("{slug}")
        )
        found = re.fullmatch(f"{before}([^/]+){after}", path)
        return found[1] if found else ""

    def has_bare_pages(self) -> bool:
        """Return whether any address ends neither with a slash nor with `.html`."""
        forms = (self.post, self.page, self.tag, self.category, self.author)
        return any(each and not each.endswith(("/", ".html")) for each in forms)

    def list_overviews(self) -> list[str]:
        """Return the addresses of the lists of all posts and of all tags that the site makes."""
        return [each for each in (self.journal, self.tags, self.archive) if each is not None]


DEFAULT_ADDRESSES = Addresses()
"""The addresses of the default settings."""


def locate_card(slug: str, kind: str = "png") -> str:
    """Return the address of a post's card."""
    return f"{CARDS}{slug}.{kind}"


def locate_feed(page: str, feed: str = FEED) -> str:
    """Return the address of a feed, `FEED` or `FEED_JSON`, of the posts listed at `page`."""
    folder = page.removesuffix(".html")
    return f"{folder}/{feed}" if folder and not folder.endswith("/") else f"{folder}{feed}"


def locate_list_page(folder: str, number: int) -> str:
    """Return the address of the page of a list with this number, counted from 1."""
    return folder if number == 1 else f"{folder}page/{number}/"


def name_file(path: str) -> str:
    """Return the file of the address `path`."""
    if not path or path.endswith("/"):
        return f"{path}index.html"
    return path if "." in path.rpartition("/")[2] else f"{path}.html"


def name_alternate(path: str) -> str:
    """Return the file of the Markdown alternate of `path`."""
    return f"{name_file(path).removesuffix('.html')}.md"


class SourceRules(NamedTuple):
    """Pelican's settings about source files; paths are relative to the content folder, with `/`."""

    addresses: Addresses = DEFAULT_ADDRESSES
    posts: tuple[str, ...] = ("",)
    """Folders of posts (ARTICLE_PATHS)."""
    pages: tuple[str, ...] = ("pages",)
    """Folders of pages (PAGE_PATHS)."""
    static: tuple[str, ...] = ("images",)
    """Folders and files that are published as they are (STATIC_PATHS)."""
    excluded_posts: tuple[str, ...] = ()
    """Folders whose posts are not read (ARTICLE_EXCLUDES)."""
    excluded_pages: tuple[str, ...] = ()
    excluded_static: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    """Files with other paths on the site (EXTRA_PATH_METADATA)."""
    extra: tuple[str, ...] = ()
    """Additional keys of heads (FRONT_MATTER_EXTRA)."""
    category: str = "misc"
    """The category of a post that names none (DEFAULT_CATEGORY)."""
    folder_is_category: bool = True
    """Whether the folder of a post names its category (USE_FOLDER_AS_CATEGORY)."""
    name_pattern: str = r"(?P<date>\d{4}-\d{2}-\d{2}).*"
    """Pattern of file names that give values of the head (FILENAME_METADATA)."""
    slug_source: str = "title"
    """Source of the slug of a post with Pelican's head: `title` or `basename` (SLUGIFY_SOURCE)."""
    timezone: str = "UTC"
    """The time zone of dates without one (TIMEZONE)."""
    author: str = ""
    """The author of a text that names none, for its address (AUTHOR)."""
    lang: str = "en"
    """The language of a text that names none, for its address (DEFAULT_LANG)."""

    def is_page(self, path: str) -> bool:
        """Return whether the source file at `path` is a page, not a post."""
        posts = tuple(folder for folder in self.posts if folder)
        return _is_below(path, self.pages) and not _is_below(path, posts)

    def is_source(self, path: str) -> bool:
        """Return whether the Markdown file at `path` is built."""
        excluded = self.excluded_pages if self.is_page(path) else self.excluded_posts
        return _is_below(path, self.posts + self.pages) and not _is_below(path, excluded)

    def is_static(self, path: str) -> bool:
        """Return whether the file at `path` is published as it is."""
        return _is_below(path, self.static) and not _is_below(path, self.excluded_static)

    def list_paths(self, files: tuple[str, ...]) -> dict[str, str]:
        """Return the path on the site of each of `files`; a HEIC is published as a JPEG."""
        moved = dict(self.moved)
        return {
            # `.jpg` is appended to `.heic`, since a camera may write `oak.jpg` beside `oak.heic`.
            file: moved.get(
                file, f"{file}.jpg" if file.lower().endswith(CONVERTED_SUFFIXES) else file
            )
            for file in files
        }


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(not each or path == each or path.startswith(f"{each}/") for each in folders)
