"""Formulas in TeX, `$…$` and `$$…$$`, as MathML, which browsers show without a script."""

import re
from html import escape, unescape
from typing import Final
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element
from markdown import Markdown
from markdown.inlinepatterns import InlineProcessor

LONGEST: Final = 4000
"""Characters of a formula."""
_INLINE: Final = (
    r"(?<![\w\\$])\$(?![\s$])((?:\\.|[^\\$\x02\x03\n]|\n(?!\n)){1,4000}?)(?<![\s\\])\$(?![\w$])"
)
_PRICE: Final = re.compile(r"\d[\d.,]*\s[^\\^_={}]*")
"""What begins with a number and goes on in words: two prices in one sentence."""
_COMMAND: Final = re.compile(r"\\[A-Za-z]+")
_BRACES: Final = re.compile(r"\\.|([{}])", re.DOTALL)
_FAULTS: Final = {
    "ExtraLeftOrMissingRightError": r"`\left` and `\right` are no pair",
    "MissingEndError": r"`\begin` has no `\end`",
    "MissingSuperScriptOrSubscriptError": "nothing stands behind `^` or `_`",
    "DoubleSubscriptsError": "two `_` follow each other; put the first part in braces",
    "DoubleSuperscriptsError": "two `^` follow each other; put the first part in braces",
}


class FormulaError(ValueError):
    """A formula that cannot be read; the message says why."""


class Formulas(InlineProcessor):
    """Makes the formulas of texts, and keeps those that it cannot read."""

    def __init__(self, md: Markdown) -> None:
        super().__init__(_INLINE, md)
        self.faults: list[tuple[str, str]] = []
        """Each formula that could not be read, with what is wrong."""

    def handleMatch(  # type: ignore[override]  # noqa: N802 - the name is Python-Markdown's
        self, m: re.Match[str], data: str
    ) -> tuple[str | None, int | None, int | None]:
        """Return what stands for a formula within a line."""
        del data
        if _PRICE.fullmatch(m[1]):
            return None, None, None
        return self.make(m[1], "inline"), m.start(), m.end()

    def make(self, tex: str, display: str = "block") -> str:
        """Return what stands for a formula; one that cannot be read is shown as code."""
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
    opened = 0
    for brace in _BRACES.findall(tex):
        opened += {"{": 1, "}": -1}.get(brace, 0)
        if opened < 0:
            break
    if opened:
        raise FormulaError("`{` and `}` are no pairs")
    try:
        root = convert_to_element(tex, display=display)
    except RecursionError:
        raise FormulaError("its brackets are nested too deeply") from None
    except Exception as refusal:  # noqa: BLE001 - the library raises what it happens to
        what = _FAULTS.get(type(refusal).__name__, "something is missing at its end")
        raise FormulaError(what) from None
    for element in root.iter():
        element.text = unescape(element.text or "")  # the library writes some signs as entities
        if _COMMAND.fullmatch(element.text):
            raise FormulaError(f"`{element.text}` is no command that is known here")
    return tostring(root, encoding="unicode", short_empty_elements=False)
