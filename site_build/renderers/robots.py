"""`robots.txt` (RFC 9309): everything may be read, and here is the sitemap."""

from site_build import addresses
from site_build.site import Identity


def render_robots(identity: Identity) -> str:
    """Return the file."""
    sitemap = identity.absolute(addresses.SITEMAP)
    return f"User-agent: *\nAllow: /\n\nSitemap: {sitemap}\n"
