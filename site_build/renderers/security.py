"""`security.txt` (RFC 9116): where a vulnerability is reported."""

from datetime import datetime

from site_build import addresses
from site_build.policy import Policy
from site_build.site import Identity

_MONTHS = 11
"""The norm recommends less than a year."""


def render_security(identity: Identity, policy: Policy, now: datetime) -> str:
    """Return the file as it stands at `now` (UTC)."""
    contact = policy.security_contact or identity.absolute(addresses.locate_page("contact"))
    fields = (
        ("Contact", contact),
        ("Expires", f"{find_expiry(now):%Y-%m-%dT%H:%M:%SZ}"),
        ("Preferred-Languages", identity.lang),
        ("Canonical", identity.absolute(addresses.SECURITY)),
    )
    return "".join(f"{name}: {value}\n" for name, value in fields)


def find_expiry(now: datetime) -> datetime:
    """Return the first of a month, ten to eleven months ahead: so it changes once a month."""
    months = now.month - 1 + _MONTHS
    return datetime(now.year + months // 12, months % 12 + 1, 1, tzinfo=now.tzinfo)
