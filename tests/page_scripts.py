"""What runs on a page because it stands there, for the tests of all pages."""

from selectolax.lexbor import LexborHTMLParser

from edge_api.schema.site_policy import INLINE_SCRIPTS
from site_build.making.inline_scripts import hash_source

_RUNS = 'script:not([type="application/ld+json"])'


def has_own_scripts_alone(page: LexborHTMLParser) -> bool:
    """Tell whether the scripts of a page are those that the policy names; a file's is none."""
    return [hash_source(script.text()) for script in page.css(_RUNS)] == list(INLINE_SCRIPTS)
