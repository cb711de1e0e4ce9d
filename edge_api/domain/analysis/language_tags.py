"""Language tags as BCP 47 has them (RFC 5646, section 2.1), from authors who spell as they like."""

import re
from typing import Final

UNKNOWN: Final = "und"
"""The tag for what nobody could tell (section 4.1)."""
LONGEST: Final = 35
"""Characters that suffice for every tag in use (section 4.4.1)."""

_TAG: Final = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})"
    r"(?:-[a-z]{4})?"
    r"(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*"
    r"(?:-x(?:-[a-z0-9]{1,8})+)?"
)

_SCRIPT: Final = re.compile(r"[a-z]{4}")
_REGION: Final = re.compile(r"[a-z]{2}")


def primary(tag: str) -> str:
    """Return the language in a tag, without script and region."""
    return tag.partition("-")[0].lower()


def normalize_tag(stated: str) -> str | None:
    """Return a stated tag in the case that is usual, or `None` where it says no language."""
    tag = stated.strip().replace("_", "-").lower()
    is_tag = len(tag) <= LONGEST and tag.isascii() and _TAG.fullmatch(tag) is not None
    return _spell(tag) if is_tag and primary(tag) != UNKNOWN else None


def _spell(tag: str) -> str:
    """Return a tag of small letters in the usual case: `zh-Hant-TW` (section 2.1.1)."""
    parts = tag.split("-")
    plain = next((at for at, part in enumerate(parts) if len(part) == 1), len(parts))
    return "-".join([parts[0], *map(_case, parts[1:plain]), *parts[plain:]])


def _case(part: str) -> str:
    if _SCRIPT.fullmatch(part):
        return part.title()
    return part.upper() if _REGION.fullmatch(part) else part
