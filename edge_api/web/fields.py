"""Header fields of a request that are lists: each may stand on several lines."""

from multidict import CIMultiDictProxy


def whole_list(headers: CIMultiDictProxy[str], name: str) -> str | None:
    """Return every member of a list field on one line (RFC 9110, section 5.3); `None` if absent."""
    first = headers.get(name)
    if first is None:
        return None
    lines = headers.getall(name)
    return first if len(lines) == 1 else ", ".join(lines)
