"""How the site is built: Pelican's settings, for `pelican content -s pelicanconf.py`.

`python -m site_build build` reads them too, so both commands give the same site.
"""

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent
if str(_ROOT) not in sys.path:  # The publisher reads this file again for each of its builds.
    sys.path.insert(0, str(_ROOT))  # Pelican's own command does not look here for modules.

from site_build.errors import BuildError  # noqa: E402
from site_build.options import read_settings  # noqa: E402 - only now it can be found
from site_build.pelican_plugin.plugin import Journal  # noqa: E402

try:
    _environment = read_settings()
except BuildError as refusal:
    sys.exit(str(refusal))

# Who the site is.
SITENAME = "Fore-edge"
SITESUBTITLE = "A journal that is a static site, with an edge service on it."
AUTHOR = "Fore-edge"
DEFAULT_LANG = "en"
SITEURL = _environment.get("SITE_URL") or f"http://127.0.0.1:{_environment.get('PORT', '8000')}"

# What programs may do with the words of the site, by contentsignals.org; robots.txt says it to all
# of them, and keeps crawlers away that come for a use that is not allowed.
CONTENT_SIGNALS = {"search": True, "ai-input": True, "ai-train": False}
# Where a vulnerability is reported: mailto:, https:// or tel:; without it, the contact page.
SECURITY_CONTACT = None
# The budgets that the contact form offers, such as ["Not decided yet", "Up to 5,000 euros"]. If the
# list is empty, the form does not ask for one and sends "No budget: a question".
BUDGET_TIERS: list[str] = []
# Whether the edge takes leads with a credential alone, as auth.md says; the edge reads it too.
LEADS_REQUIRE_CREDENTIAL = _environment.get("LEADS_REQUIRE_CREDENTIAL", "false")

# Where things lie.
PATH = _environment.get("CONTENT_DIR", "content")
OUTPUT_PATH = "output"
THEME = "theme"
CACHE_PATH = os.path.join(_environment.get("BUILD_DIR", "build"), ".cache")  # noqa: PTH118

# What makes it. PLUGINS is never left out: Pelican would load whatever happens to be installed.
PELICAN_CLASS = Journal
PLUGINS = ["site_build.pelican_plugin.plugin"]
JINJA_ENVIRONMENT = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
TIMEZONE = "UTC"
LOCALE = ["C.UTF-8", "C"]  # Names of months must not depend on who builds.
DEFAULT_DATE_FORMAT = "%d %B %Y"

# What plain `pelican` builds: -e BUILD_NOW='"2026-03-01"', -e BUILD_STRICT=true.
BUILD_NOW = None
BUILD_JOBS = None
BUILD_STRICT = False

# Which pages there are, and where. A page that ends with a slash is the index.html of a folder.
DIRECT_TEMPLATES = ["index", "journal", "tags", "archives", "404", "contact_thanks"]
JOURNAL_URL, JOURNAL_SAVE_AS = "journal/", "journal/index.html"
TAGS_URL, TAGS_SAVE_AS = "tags/", "tags/index.html"
ARCHIVES_URL, ARCHIVES_SAVE_AS = "archive/", "archive/index.html"
ARTICLE_URL, ARTICLE_SAVE_AS = "journal/{slug}/", "journal/{slug}/index.html"
PAGE_URL, PAGE_SAVE_AS = "{slug}/", "{slug}/index.html"
TAG_URL, TAG_SAVE_AS = "tags/{slug}/", "tags/{slug}/index.html"
CATEGORY_SAVE_AS = AUTHOR_SAVE_AS = ""  # This journal has no pages of categories and of authors.
PAGE_TEMPLATES = {"contact": "contact"}  # Pages whose template is not `page`.

# Posts on one leaf of a list, and where its further leaves stand.
DEFAULT_PAGINATION = 20
PAGINATED_TEMPLATES = {"journal": None, "tag": None}
PAGINATION_PATTERNS = [
    (1, "{url}", "{save_as}"),
    (2, "{url}page/{number}/", "{base_name}/page/{number}/index.html"),
]

# The build writes its own feed and takes static files itself; authors and categories it has none.
FEED_ALL_ATOM = CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = None
AUTHOR_FEED_ATOM = AUTHOR_FEED_RSS = None
