"""Header fields of a request that are lists: each may stand on several lines."""

from collections.abc import Iterator, Mapping

from multidict import CIMultiDictProxy


class Fields(Mapping[str, str]):
    """Header fields by name, whatever its case; one on several lines is one list."""

    def __init__(self, headers: CIMultiDictProxy[str]) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        value = whole_list(self._headers, name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)


def whole_list(headers: CIMultiDictProxy[str], name: str) -> str | None:
    """Return every member of a list field on one line (RFC 9110, section 5.3); `None` if absent."""
    first = headers.get(name)
    if first is None:
        return None
    lines = headers.getall(name)
    return first if len(lines) == 1 else ", ".join(lines)
