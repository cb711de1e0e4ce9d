"""Python-Markdown's step for what stands within lines, which tries a pattern only where it may fit.

Each pattern needs a sign that few pieces of text hold, and to look for a sign costs next to
nothing. It knows nothing of what the patterns make.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.treeprocessors import InlineProcessor
from markdown.util import AtomicString

SIGNS: Final[Mapping[str, Sequence[str]]] = {
    "backtick": ("`",),
    "escape": ("\\",),
    "reference": ("[",),
    "link": ("[",),
    "image_link": ("![",),
    "image_reference": ("![",),
    "short_reference": ("[",),
    "short_image_ref": ("![",),
    "autolink": ("://",),
    "automail": ("@",),
    "linebreak": ("  \n",),
    "html": ("<",),
    "entity": ("&",),
    "em_strong": ("*", "_"),
    "footnote": ("[^",),
}
"""Of these a text has to hold one for the pattern of that name to fit; others are always tried."""


class QuickInline(InlineProcessor):
    """Does what its base does, to the letter."""

    def __init__(self, md: Markdown) -> None:
        super().__init__(md)
        self._signs: list[Sequence[str]] = []

    def run(self, tree: Element, ancestors: list[str] | None = None) -> Element:
        """Apply the patterns to a tree, in place."""
        self._signs = [("",)] * len(self.inlinePatterns)
        for name, signs in SIGNS.items():
            if name in self.inlinePatterns:
                self._signs[self.inlinePatterns.get_index_for_name(name)] = signs
        return super().run(tree, ancestors)

    # The base calls itself by this name, which Python makes of `__handleInline` in its class.
    def _InlineProcessor__handleInline(self, data: str, patternIndex: int = 0) -> str:  # noqa: N802, N803
        """Return `data` with placeholders where patterns from `patternIndex` on have fitted."""
        if isinstance(data, AtomicString):
            return data
        for index, pattern in self._choose(data, patternIndex):
            matched, start = True, 0
            while matched:
                data, matched, start = self._InlineProcessor__applyPattern(  # type: ignore[attr-defined]
                    pattern, data, index, start
                )
        return data

    def _choose(self, data: str, first: int) -> Iterator[tuple[int, object]]:
        """Yield the patterns that may fit; placeholders hold no signs, so `data` tells for all."""
        for index, signs in enumerate(self._signs[first:], first):
            for sign in signs:
                if sign in data:
                    yield index, self.inlinePatterns[index]
                    break
