"""Scripts that run on a page, for the tests of all pages."""

import re

from selectolax.lexbor import LexborHTMLParser

_RUNS = 'script:not([type="application/ld+json"])'
_OWN = re.compile(r"/theme/before_paint\.[0-9a-f]{8,}\.js")


def has_own_scripts_alone(page: LexborHTMLParser) -> bool:
    """Return whether a page has the script of all pages, which is a file, and no other."""
    scripts = [(script.attributes.get("src") or "", script.text()) for script in page.css(_RUNS)]
    return len(scripts) == 1 and bool(_OWN.fullmatch(scripts[0][0])) and not scripts[0][1]
