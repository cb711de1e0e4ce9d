"""Which resource answers a path: a table of fixed paths, and the patterns behind them.

A path with variable parts is worked out once and then remembered, so that the next request for it
costs one look into a table.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

Target = TypeVar("Target")

_VARIABLE: Final = re.compile(r"\\{(\w+)\\}")
_REMEMBERED_MOST: Final = 4096
_REMEMBERED_LONGEST: Final = 256
"""Characters: a path comes from anybody, and none that is remembered may cost much."""


class Address(Protocol):
    """What of a URL (yarl's) is looked at."""

    @property
    def raw_path(self) -> str:
        """The path as it was sent."""

    @property
    def path_safe(self) -> str:
        """The path decoded, but for encoded slashes and percent signs."""


class Match(NamedTuple, Generic[Target]):
    """What stands on a path, and what its variable parts are."""

    target: Target
    variables: Mapping[str, str]
    """Decoded, by name."""


class Routes(Generic[Target]):
    """Targets by their paths, which have variable parts in braces: `/posts/{slug}`."""

    def __init__(self, targets: Mapping[str, Target]) -> None:
        none: Mapping[str, str] = MappingProxyType({})
        self._fixed = {
            path: Match(target, none) for path, target in targets.items() if "{" not in path
        }
        self._patterns = [
            (_pattern(path), target) for path, target in targets.items() if "{" in path
        ]
        self._remembered: dict[str, Match[Target] | None] = dict(self._fixed)

    def find(self, url: Address) -> Match[Target] | None:
        """Return what stands on the path of `url`."""
        path = url.raw_path
        if path in self._remembered:
            return self._remembered[path]
        return self._search(path, url.path_safe)

    def _search(self, path: str, decoded: str) -> Match[Target] | None:
        found = self._fixed.get(decoded) or self._match(decoded)
        if len(path) <= _REMEMBERED_LONGEST:
            self._remember(path, found)
        return found

    def _match(self, decoded: str) -> Match[Target] | None:
        for pattern, target in self._patterns:
            if found := pattern.fullmatch(decoded):
                variables = {name: _decode(part) for name, part in found.groupdict().items()}
                return Match(target, MappingProxyType(variables))
        return None

    def _remember(self, path: str, found: Match[Target] | None) -> None:
        if len(self._remembered) >= _REMEMBERED_MOST:
            self._remembered = dict(self._fixed)
        self._remembered[path] = found


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(_VARIABLE.sub(r"(?P<\1>[^/]+)", re.escape(path)))


def _decode(part: str) -> str:
    """Undo what `path_safe` leaves encoded, so that an encoded slash separates nothing."""
    return part.replace("%2F", "/").replace("%25", "%")
