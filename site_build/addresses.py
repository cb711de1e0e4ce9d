"""Where everything stands on the site: each address once, as a path without its leading slash.

Pelican's settings and the renderers take them from here, and give templates those of texts. A path
that ends with a slash is a folder, and its file is the `index.html` in it.
"""

HOME = ""
JOURNAL = "journal/"
TAGS = "tags/"
ARCHIVE = "archive/"
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


def locate_post(slug: str) -> str:
    """Return the address of a post."""
    return f"{JOURNAL}{slug}/"


def locate_page(slug: str) -> str:
    """Return the address of a page, such as the one about the journal."""
    return f"{slug}/"


def locate_document(kind: str, slug: str) -> str:
    """Return the address of a `post` or a `page`."""
    return locate_post(slug) if kind == "post" else locate_page(slug)


def locate_tag(slug: str) -> str:
    """Return the address of a tag's list of posts."""
    return f"{TAGS}{slug}/"


def locate_card(slug: str) -> str:
    """Return the address of the picture that stands for a post elsewhere."""
    return f"{CARDS}{slug}.png"


def locate_feed(folder: str, feed: str = FEED) -> str:
    """Return the address of a feed, `FEED` or `FEED_JSON`, of the posts listed in `folder`."""
    return f"{folder}{feed}"


def locate_leaf(folder: str, number: int) -> str:
    """Return the address of one leaf, counted from 1, of a list that fills several."""
    return folder if number == 1 else f"{folder}page/{number}/"


def name_file(path: str) -> str:
    """Return the file that answers at `path`."""
    return f"{path}index.html" if path.endswith("/") or not path else path


def name_twin(path: str) -> str:
    """Return the file that says the same as `path` in Markdown."""
    return f"{name_file(path).removesuffix('.html')}.md"
