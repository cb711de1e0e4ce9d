"""How the site is built: Pelican's settings, for `pelican content -s pelicanconf.py`.

`python -m site_build build` reads them too, so both commands give the same site.
"""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent
if str(_ROOT) not in sys.path:  # The publisher reads this file again for each of its builds.
    sys.path.insert(0, str(_ROOT))  # Pelican's own command does not look here for modules.

from site_build.default_settings import *  # noqa: E402, F403 - a settings file is its names

SITENAME = "Fore-edge"
SITESUBTITLE = "A folder of Markdown becomes a site, with an inbox and a newsletter."
AUTHOR = "Fore-edge"
# Who writes: for the home page and the author's page, beside the picture of the page `about`.
AUTHOR_TEXT = (
    "Fore-edge turns a folder of Markdown into a journal that hears from its readers. "
    "This is its own, written by those who make it."
)
DEFAULT_LANG = "en"

# What programs may do with the words of the site, by contentsignals.org; robots.txt says it to all
# of them, and keeps crawlers away that come for a use that is not allowed.
CONTENT_SIGNALS = {"search": True, "ai-input": True, "ai-train": False}
# Where a vulnerability is reported: mailto:, https:// or tel:; without it, the contact page.
SECURITY_CONTACT = None
# The budgets that the contact form offers, such as ["Not decided yet", "Up to 5,000 euros"]. If the
# list is empty, the form does not ask for one and sends "No budget: a question".
BUDGET_TIERS: list[str] = []

# What plain `pelican` builds: -e BUILD_NOW='"2026-03-01"', -e BUILD_STRICT=true.
BUILD_NOW = None
BUILD_JOBS = None
BUILD_STRICT = False
