"""GitHub's Markdown as one extension of Python-Markdown: blocks, formulas, line breaks.

Names of emoji, such as `:tada:`, are replaced when all else is done.

Formulas in TeX, `$…$` and `$$…$$`, become MathML, which browsers show without a script.
Other extensions, from pymdown-extensions, do strikethrough, checkboxes of tasks and bare links.
"""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from itertools import accumulate
from typing import Final
from xml.etree.ElementTree import Element, tostring

from latex2mathml.converter import convert_to_element
from markdown import Markdown, inlinepatterns, treeprocessors
from markdown.extensions import Extension
from markdown.util import AtomicString
from pymdownx.gemoji_db import aliases, emoji

from site_build.markup.blocks import Blocks
from site_build.markup.faults import Fault, FaultFinder

LONGEST: Final = 4000
"""The most characters of a formula."""
_COMMAND: Final = re.compile(r"\\[A-Za-z]+")
_FAULTS: Final = {
    "ExtraLeftOrMissingRightError": r"`\left` and `\right` are no pair",
    "MissingEndError": r"`\begin` has no `\end`",
    "MissingSuperScriptOrSubscriptError": "nothing stands behind `^` or `_`",
    "DoubleSubscriptsError": "two `_` follow each other; put the first part in braces",
    "DoubleSuperscriptsError": "two `^` follow each other; put the first part in braces",
}


class FormulaError(ValueError):
    """A formula that cannot be read; the message says why."""


class Formulas(inlinepatterns.InlineProcessor):
    """Converts formulas, and notes those that cannot be read."""

    def __init__(self, md: Markdown) -> None:
        super().__init__(
            r"(?<![\w\\$])\$(?![\s$])((?:\\.|[^\\$\x02\x03\n]|\n(?!\n)){1,4000}?)"
            r"(?<![\s\\])\$(?![\w$])",
            md,
        )
        self.faults: list[tuple[str, str]] = []
        """Each formula that could not be read, with what is wrong."""

    def handleMatch(  # type: ignore[override]  # noqa: N802 - the name is Python-Markdown's
        self, m: re.Match[str], data: str
    ) -> tuple[str | None, int | None, int | None]:
        """Return the placeholder of a formula within a line, with its start and end."""
        del data
        # A number that is followed by words: the `$` belong to two prices in one sentence.
        if re.fullmatch(r"\d[\d.,]*\s[^\\^_={}]*", m[1]):
            return None, None, None
        return self.make(m[1], "inline"), m.start(), m.end()

    def make(self, tex: str, display: str = "block") -> str:
        """Return the placeholder of a formula; one that cannot be read is shown as code."""
        try:
            html = write_mathml(tex, display)
        except FormulaError as fault:
            self.faults.append((tex, str(fault)))
            html = f"<code>{escape(tex, quote=False)}</code>"
        return self.md.htmlStash.store(html)


def write_mathml(tex: str, display: str) -> str:
    """Return a formula as MathML, `inline` or as a `block`; raises FormulaError."""
    if len(tex) > LONGEST:
        raise FormulaError(f"it has more than {LONGEST} characters")
    steps = ({"{": 1, "}": -1}.get(sign, 0) for sign in re.findall(r"(?s)\\.|([{}])", tex))
    levels = [*accumulate(steps, initial=0)]
    if min(levels) < 0 or levels[-1]:
        raise FormulaError("`{` and `}` are no pairs")
    try:
        root = convert_to_element(tex, display=display)
    except RecursionError:
        raise FormulaError("its brackets are nested too deeply") from None
    except Exception as refusal:  # noqa: BLE001 - the library raises what it happens to
        raise FormulaError(
            _FAULTS.get(type(refusal).__name__, "something is missing at its end")
        ) from None
    for element in root.iter():
        element.text = unescape(element.text or "")  # the library writes some signs as entities
        if _COMMAND.fullmatch(element.text):
            raise FormulaError(f"`{element.text}` is no command that is known here")
    return tostring(root, encoding="unicode", short_empty_elements=False)


_TICKS: Final = re.compile("`+")


class CodeSpans(inlinepatterns.BacktickInlineProcessor):
    """Finds the same code spans as its base class, but scans each text only once."""

    _tail = ""
    """The end of the text that was scanned last."""
    _last: Sequence[tuple[int, int]] = ()
    """Each length of a run of backticks in `_tail`, and its last start, counted from the end."""

    def find_code_spans(  # type: ignore[override]  # the stubs are wrong
        self, start: int, text: str
    ) -> tuple[int, int | None]:
        """Return the start and end of the code behind the backticks at `start`; no end: no code."""
        rest = text[start:].lstrip("`")
        begin = len(text) - len(rest)
        count = begin - start
        if not self._tail.endswith(rest):
            last = {len(run[0]): len(rest) - run.start() for run in _TICKS.finditer(rest)}
            self._tail, self._last = rest, tuple(last.items())
        lengths = [length for length, left in self._last if left <= len(rest)]
        wanted = count if count in lengths else max(lengths, default=0)
        if not 0 < wanted <= count:
            return begin + count, None  # as the base class does
        ends = (run.start() for run in _TICKS.finditer(text, begin) if len(run[0]) == wanted)
        return begin - (count - wanted), next(ends)


SIGNS: Final[Mapping[str, Sequence[str]]] = {
    "backtick": ("`",),
    "escape": ("\\",),
    "formula": ("$",),
    "reference": ("[",),
    "link": ("[",),
    "image_link": ("![",),
    "image_reference": ("![",),
    "short_reference": ("[",),
    "short_image_ref": ("![",),
    "autolink": ("://",),
    "automail": ("@",),
    "magic-link": ("://", "www."),
    "magic-mail": ("@",),
    "linebreak": ("  \n",),
    "backslash_break": ("\\\n",),
    "html": ("<",),
    "entity": ("&",),
    "em_strong": ("*", "_"),
    "delimiter": ("~",),
    "many_tildes": ("~~~",),
    "footnote": ("[^",),
}
"""The signs without which a pattern cannot match; patterns that are not listed are always tried."""


GITHUB: Final = "site_build.markup.github"
"""The name of this extension in a site's own list of extensions."""


class GitHub(Extension):
    """Extension that registers the processors of this module."""

    _finder: Final = FaultFinder()

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name is Python-Markdown's
        """Register `Blocks` before all others (up to 105), and formulas right after code (190).

        `QuickInline` replaces `inline` (20).
        """
        md.registerExtension(self)
        if "fenced_code_block" not in md.preprocessors:
            md.registerExtensions(["fenced_code"], {})
        self.formulas = Formulas(md)
        self.blocks = Blocks(md, self.formulas.make)
        md.ESCAPED_CHARS = list(string.punctuation)
        md.parser.blockprocessors.register(self.blocks, "blocks", 200)
        md.inlinePatterns.register(self.formulas, "formula", 189)
        if type(md.inlinePatterns["backtick"]) is inlinepatterns.BacktickInlineProcessor:
            md.inlinePatterns.register(CodeSpans(inlinepatterns.BACKTICK_RE), "backtick", 190)
        md.inlinePatterns.register(
            inlinepatterns.SubstituteTagInlineProcessor(r"\\\n", "br"), "backslash_break", 185
        )
        # More than two tildes strike nothing through.
        md.inlinePatterns.register(
            inlinepatterns.SimpleTextInlineProcessor(r"(~{3,})"), "many_tildes", 184
        )
        md.treeprocessors.register(QuickInline(md), "inline", 20)

    def reset(self) -> None:
        """Forget the text that was converted last."""
        self.formulas.faults.clear()
        self.blocks.reset()

    def find_faults(self, text: str) -> Iterator[Fault]:
        """Yield the faults of the text that was converted last."""
        yield from self._finder.find(self.blocks.parsed)
        for tex, message in self.formulas.faults:
            yield Fault(
                text.count("\n", 0, max(0, text.find(tex))),
                f"the formula cannot be read: {message}",
            )


class QuickInline(treeprocessors.InlineProcessor):
    """Processor of inline Markdown: a faster one with exactly the results of its base class.

    It tries a pattern only where it may match: each needs a sign that few pieces of text have, and
    searching for a sign costs next to nothing.
    """

    _signs: list[Sequence[str]]
    """Signs that each pattern needs, by its index."""

    def run(self, tree: Element, ancestors: list[str] | None = None) -> Element:
        """Apply the patterns to a tree, in place."""
        self._signs = [("",)] * len(self.inlinePatterns)
        for name, signs in SIGNS.items():
            if name in self.inlinePatterns:
                self._signs[self.inlinePatterns.get_index_for_name(name)] = signs
        return super().run(tree, ancestors)

    # The name that Python gives to the private method `__handleInline` of the base class.
    def _InlineProcessor__handleInline(self, data: str, patternIndex: int = 0) -> str:  # noqa: N802, N803
        """Return `data` with placeholders where patterns from `patternIndex` on have matched."""
        if isinstance(data, AtomicString):
            return data
        whole = data  # placeholders have no signs, so this text decides for all patterns
        for index, signs in enumerate(self._signs[patternIndex:], patternIndex):
            matched, start = any(sign in whole for sign in signs), 0
            while matched:
                data, matched, start = self._InlineProcessor__applyPattern(  # type: ignore[attr-defined]
                    self.inlinePatterns[index], data, index, start
                )
        return data


_EMOJI = {
    name: "".join(
        chr(int(point, 16)) for point in (sign.get("unicode_alt") or sign["unicode"]).split("-")
    )
    for name, sign in (emoji | {name: emoji[meant] for name, meant in aliases.items()}).items()
}
"""Emoji by their names, such as `:tada:`."""
_PIECE = re.compile(
    r"<(?P<raw>code|pre|script|style|textarea|svg|math)\b.*?(?:</(?P=raw)|\Z)|<!--.*?(?:-->|\Z)"
    r"|<[a-z/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>"
    r"|(?<![A-Za-z0-9_:])(?P<names>(?::[a-z0-9_+-]++:)++)(?![A-Za-z0-9_:])",
    re.DOTALL | re.IGNORECASE,
)
"""Code, a comment, a tag, or names of emoji. Unlike on GitHub, words and `a::b` contain none."""


def show_emoji(html: str) -> str:
    """Return HTML with emoji in place of their names; an unknown name stays as it is."""
    if not any(f"{name}:" in _EMOJI for name in re.findall(":[a-z0-9_+-]+(?=:)", html)):
        return html

    def show(piece: re.Match[str]) -> str:
        names = piece["names"]
        return re.sub(":[^:]+:", lambda e: _EMOJI.get(e[0], e[0]), names) if names else piece[0]

    return _PIECE.sub(show, html)
