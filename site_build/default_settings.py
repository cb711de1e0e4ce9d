"""Default settings of a journal: its `pelicanconf.py` imports them, and adds its name and author.

This module, and with it `.env`, is read again each time `pelicanconf.py` is read.
"""

import os
import sys

from site_build.build import fingerprint
from site_build.errors import BuildError
from site_build.options import read_settings
from site_build.pelican_plugin import plugin, settings

try:
    _environment = read_settings()
except BuildError as refusal:
    sys.exit(str(refusal))

SITEURL = _environment.get("SITE_URL") or f"http://127.0.0.1:{_environment.get('PORT', '8000')}"
# Whether the edge accepts leads only with a credential, as auth.md says; the edge reads it too.
LEADS_REQUIRE_CREDENTIAL = _environment.get("LEADS_REQUIRE_CREDENTIAL", "false")
# Whether the contact page has a form that asks for access to the API; the edge reads it too.
ACCESS_REQUESTS = _environment.get("ACCESS_REQUESTS", "off")
# Whether programs can write drafts, for which there is a skill; the edge reads it too.
WRITING = _environment.get("WRITING", "off")
# Whether each post has a form that subscribes to new ones by mail; the edge reads it too.
NEWSLETTER = _environment.get("NEWSLETTER", "off")

# Folders. Templates in the journal's own theme/templates/ replace those of the theme.
PATH = _environment.get("CONTENT_DIR", "content")
THEME = os.fspath(fingerprint.HOUSE_THEME)
_own = settings.SETTINGS_FILE.parent / "theme" / "templates"
THEME_TEMPLATES_OVERRIDES = (
    [os.fspath(_own)] if _own.is_dir() and _own.parent != fingerprint.HOUSE_THEME else []
)
CACHE_PATH = os.path.join(_environment.get("BUILD_DIR", "build"), ".cache")  # noqa: PTH118

# Without PLUGINS, Pelican would load every plugin that is installed.
PELICAN_CLASS = plugin.Journal
PLUGINS = ["site_build.pelican_plugin.plugin"]
JINJA_ENVIRONMENT = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
TIMEZONE = "UTC"
LOCALE = ["C.UTF-8", "C"]  # Names of months must not depend on the machine.
DEFAULT_DATE_FORMAT = "%d %B %Y"

# Pages and their addresses. An address that ends with a slash is the index.html of a folder.
DIRECT_TEMPLATES = ["index", "journal", "tags", "archives", "404", "contact_thanks"]
JOURNAL_URL, JOURNAL_SAVE_AS = "journal/", "journal/index.html"
TAGS_URL, TAGS_SAVE_AS = "tags/", "tags/index.html"
ARCHIVES_URL, ARCHIVES_SAVE_AS = "archive/", "archive/index.html"
ARTICLE_URL, ARTICLE_SAVE_AS = "journal/{slug}/", "journal/{slug}/index.html"
PAGE_URL, PAGE_SAVE_AS = "{slug}/", "{slug}/index.html"
TAG_URL, TAG_SAVE_AS = "tags/{slug}/", "tags/{slug}/index.html"
AUTHOR_URL, AUTHOR_SAVE_AS = "authors/{slug}/", "authors/{slug}/index.html"
# For themes made for Pelican: the default theme has no pages of categories.
CATEGORY_URL, CATEGORY_SAVE_AS = "categories/{slug}/", "categories/{slug}/index.html"
INDEX_URL = ""
PAGE_TEMPLATES = {"contact": "contact"}  # Pages whose template is not `page`.
# Posts on one page of a list, and the addresses of its further pages.
DEFAULT_PAGINATION = 20
PAGINATED_TEMPLATES = {"journal": None, "tag": None, "author": None}
PAGINATION_PATTERNS = [
    (1, "{url}", "{save_as}"),
    (2, "{url}page/{number}/", "{base_name}/page/{number}/index.html"),
]

# The build writes its own feeds.
FEED_ALL_ATOM = CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = None
AUTHOR_FEED_ATOM = AUTHOR_FEED_RSS = None
