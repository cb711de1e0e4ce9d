"""What a template looks at, and what it saw, as digests.

While a page is rendered, every name that its templates look up is noted. A page needs no rendering
when the same names still stand for the same values: so a theme may show whatever it likes of other
posts, and no list of dependencies has to be kept by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from jinja2.runtime import Context
from pelican.paginator import Page as Leaf  # type: ignore[import-untyped]
from pelican.paginator import Paginator
from pelican.urlwrappers import URLWrapper  # type: ignore[import-untyped]

from site_build.incremental.cache import make_key
from site_build.views.content import Article, Page

_LONG = 50
"""Lists above this length are shared by many pages, so their digests are remembered."""

_ABSENT = b"absent"


class UnknownValueError(Exception):
    """A template looked at something whose content cannot be told."""


def watch(seen: dict[str, None]) -> type[Context]:
    """Return a kind of template context that notes in `seen` every name looked up."""

    class WatchedContext(Context):
        def resolve_or_missing(self, key: str) -> object:
            # What a template has set itself was made from names that were noted then; it may hide
            # one that all pages are given, such as the list of all tags.
            if key not in self.vars:
                seen[key] = None
            return super().resolve_or_missing(key)

    return WatchedContext


class Sight:
    """Digests of the values that templates are given."""

    def __init__(self) -> None:
        self._remembered: dict[int, tuple[object, bytes]] = {}

    def digest(self, names: Sequence[str], values: Mapping[str, object]) -> bytes:
        """Return the digest of what `names` stand for.

        Raises UnknownValueError when one of them stands for something that cannot be told.
        """
        return make_key(
            [self._digest(values[name]) if name in values else _ABSENT for name in names]
        )

    def _digest(self, value: object) -> bytes:
        match value:
            case None | bool() | int() | float() | str() | datetime():
                return repr(value).encode()
            case Article() | Page():
                return value.digest
            case list() | tuple():
                return self._digest_list(value)
            case Mapping():
                return make_key([(name, self._digest(each)) for name, each in value.items()])
            case _:
                return self._digest_other(value)

    def _digest_other(self, value: object) -> bytes:
        match value:
            case URLWrapper():
                return make_key(value.name, value.slug)
            case Leaf():
                place = (value.number, value.url, value.paginator.num_pages)
                return make_key(place, self._digest(value.object_list))
            case Paginator():
                # Of a paginator templates show the counts; its leaves they are given one by one.
                return make_key(value.count, value.per_page, value.num_pages)
            case Callable():
                # What a function does is part of the code, and that is digested elsewhere.
                return make_key(value.__module__, getattr(value, "__qualname__", ""))
            case _:
                raise UnknownValueError(type(value).__name__)

    def _digest_list(self, values: list[object] | tuple[object, ...]) -> bytes:
        if known := self._remembered.get(id(values)):
            return known[1]
        digest = make_key([self._digest(each) for each in values])
        if len(values) > _LONG:
            self._remembered[id(values)] = (values, digest)  # Held, so that its id stays its own.
        return digest
