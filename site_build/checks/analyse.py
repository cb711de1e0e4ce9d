"""Examines one document by itself: finds faults of its page, with their places in the source.

This module is pure: it opens no file and knows no other document, so its results may be kept under
the digest of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from html import unescape
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from site_build.checks.facts import Facts, Reference
from site_build.checks.raw_markup import (
    ATTRIBUTE,
    Marked,
    clean,
    find_excess,
    find_flaws,
    find_unterminated,
    strip_marks,
)
from site_build.errors import Diagnostic
from site_build.markup.blocks import TooDeepError
from site_build.markup.convert import DEFAULT_DIALECT, Conversion, Converter, Dialect
from site_build.markup.sanitize import repair, replace_embeds
from site_build.site import Document
from site_build.text import Places, shorten

_ADDRESS_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "a": ("href",),
    "area": ("href",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "iframe": ("src",),
    "embed": ("src",),
    "track": ("src",),
    "object": ("data",),
}
"""The attributes of each element that hold addresses."""

_LINK_TAGS = frozenset({"a", "area"})
_MEDIA_TAGS = frozenset({"img", "source", "video", "audio", "track"})
_EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_USUAL_SCHEMES: Final = ("http", "https", "mailto")
_KNOWN_SCHEMES: Final = {
    *_USUAL_SCHEMES,
    "ftp",
    "tel",
    "sms",
    "xmpp",
    "irc",
    "matrix",
    "magnet",
    "geo",
}
_LOOPBACK: Final = re.compile(
    r"https?://(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\])(?=[:/?#]|$)", re.IGNORECASE
)


def analyse(
    document: Document, dialect: Dialect = DEFAULT_DIALECT
) -> tuple[Facts, Conversion | None]:
    """Return the facts about the document's text, and its HTML where it can be converted at all.

    It never raises, whatever the text. Every build gets a page's HTML from here alone, so that it
    is always the same.
    """
    path, first = document.path, document.body_line
    if not document.markdown:
        note = Diagnostic(
            path, first, 1, "warning", "the text is empty; write it, or take the file away"
        )
        return Facts((note,), (), frozenset()), convert(document, "", dialect)
    places = Places(document.markdown, first)
    if excess := find_excess(document.markdown):
        return _refuse(path, *places.locate(excess[0]), excess[1])
    for everywhere in (False, True):
        marked = Marked(document.markdown, everywhere=everywhere)
        try:
            conversion = convert(document, marked.text, dialect)
        except TooDeepError as refusal:
            return _refuse(path, first + refusal.line, 1, f"{refusal}; flatten them")
        except Exception as refusal:  # noqa: BLE001 - a bug of the converter is a finding
            what = f"{type(refusal).__name__}: {shorten(str(refusal))}"
            return _refuse(
                path, first, 1, f"the converter cannot take the text ({what}); rewrite it"
            )
        analyzer = _Analyzer(document, places, marked)
        facts = analyzer.examine(LexborHTMLParser(conversion.html), conversion)
        # A link without a mark is in text that was wrongly taken for code, so code is marked too.
        if not analyzer.has_unmarked:
            break
    plain = clean(conversion, marked) or convert(document, document.markdown, dialect)
    if "<" in document.markdown:  # without HTML of the author, all tags are balanced
        plain = replace(
            plain, html=replace_embeds(repair(plain.html), dialect.site_url, keeps_players=True)
        )
    return facts, plain


def _refuse(path: str, line: int, column: int, message: str) -> tuple[Facts, None]:
    return Facts((Diagnostic(path, line, column, "error", message),), (), frozenset()), None


@dataclass(slots=True)
class _Analyzer:
    """Walks over the HTML of one page, and collects notes and addresses."""

    document: Document
    places: Places
    marked: Marked
    notes: list[Diagnostic] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    external: list[str] = field(default_factory=list)
    level: int = 1
    """The level of the last heading passed; at first that of the page's title."""
    headings: int = 0
    """The number of headings passed."""
    has_unmarked: bool = False
    """Whether an address within the site has no mark."""

    def examine(self, page: LexborHTMLParser, conversion: Conversion) -> Facts:
        """Walk over the page that a text was converted to, in the order in which it is read."""
        prose = self.marked.prose
        self._examine_markup(conversion.html, prose)
        ends: dict[object, int] = {}
        for fault in conversion.faults:
            line = self.places.starts[fault.line]
            at = prose.find(strip_marks(fault.excerpt), ends.get(fault, line))
            ends[fault] = at + 1
            self._note(max(at, line), strip_marks(fault.message))
        for node in page.css(f"h1,h2,h3,h4,h5,h6,{','.join(_ADDRESS_ATTRIBUTES)}"):
            if node.tag in _ADDRESS_ATTRIBUTES:
                self._collect_addresses(node)
            else:
                self._examine_heading(node)
            if node.tag == "img":
                self._examine_description(node)
        anchors = {
            strip_marks(name)
            for node in page.css("[id],a[name]")
            for key in ("id", "name")
            if (name := node.attributes.get(key))
        }
        return Facts(
            tuple(sorted(self.notes)),
            tuple(self.references),
            frozenset(anchors),
            tuple(self.external),
        )

    def _examine_markup(self, html: str, prose: str) -> None:
        """Note faults in the author's HTML, and Markdown that was not converted."""
        for offset, message in (*find_unconverted(html, prose), *find_unterminated(prose)):
            self._note(offset, message)
        if "<" not in prose:
            return
        written = prose.lower()

        @cache
        def find(tag: str) -> list[int]:
            """Return the offsets of all tags that begin with `tag`, such as `<div`."""
            return [each.start() for each in re.finditer(rf"{re.escape(tag)}(?![\w-])", written)]

        for flaw in find_flaws(html):
            places = find(flaw.tag)
            at = self.marked.find_number(flaw.number) if flaw.number else None
            if at is None and places:
                at = places[min(flaw.ordinal, len(places) - 1)]
            self._note(at, flaw.message)

    def _note(self, offset: int | None, message: str) -> None:
        """Add a warning, but none without an offset: its cause was not written by the author."""
        if offset is not None:
            self.notes.append(
                Diagnostic(self.document.path, *self.places.locate(offset), "warning", message)
            )

    def _examine_heading(self, heading: LexborNode) -> None:
        offset = self._find_offset(heading, heading.text())
        level = int((heading.tag or "h1")[1])
        words = strip_marks(heading.text()).removesuffix("#").casefold().split()
        if level == 1:
            self._note(offset, "a second h1 beside the page's title; use a lower heading")
        elif level > self.level + 1:
            # A page may show `#` a level lower than it was typed; the message has the typed level.
            typed = self.document.markdown[:offset].rpartition("\n")[2].count("#")
            after, own, fit = (
                f"`{'#' * (each - level + typed)}`" if typed else f"h{each}"
                for each in (self.level, level, self.level + 1)
            )
            after = after if self.headings else "the page's title"
            self._note(offset, f"the heading jumps to {own} after {after}; write {fit}")
        elif not self.headings and words == self.document.title.casefold().split():
            self._note(offset, "the heading repeats the title, which stands above it; take it out")
        self.level = level
        self.headings += 1

    def _examine_description(self, image: LexborNode) -> None:
        """Warn of an image without alt text; `alt=""` in HTML says that it is an ornament."""
        description = image.attributes.get("alt")
        if "alt" not in image.attributes and "role" not in image.attributes:
            self._note(
                self._find_offset(image, ""), "the image has no alt text; describe it in `alt`"
            )
        elif description and not strip_marks(description).strip():
            message, at = "the image has no alt text; describe it between the brackets", len("![")
            # The image of the front matter, with which the text begins, may be an ornament.
            if not self.document.image or (self.marked.find(description) or 0) > at:
                self._note(self.marked.find(description), message)

    def _collect_addresses(self, node: LexborNode) -> None:
        for name in _ADDRESS_ATTRIBUTES[node.tag or ""]:
            value = node.attributes.get(name)
            if value and _EXTERNAL.match(value):
                self.external.append(strip_marks(value))
            offset = self._find_offset(node, value or "")
            if offset is None and value and (node.tag in _MEDIA_TAGS or _LOOPBACK.match(value)):
                # Addresses of other sites have no mark, but the source has them as they are.
                at = self.document.markdown.find(value) if _EXTERNAL.match(value) else -1
                offset = None if at < 0 else at
            if name not in node.attributes or offset is None:
                self.has_unmarked |= bool(value and not re.match(r"#|[a-z][a-z0-9+.-]*:|//", value))
                continue
            parent = node.parent if node.tag == "source" else None
            owner = parent.tag if parent and parent.tag != "picture" else node.tag
            tag = "img" if name == "poster" else owner
            plain = strip_marks(value or "")
            whole = [plain.strip().strip("<>")]
            several = (each.split()[0] for each in plain.split(",") if each.strip())
            for address in several if name == "srcset" else whole:
                self._add_reference(offset, address, tag or "")

    def _add_reference(self, offset: int, address: str, tag: str) -> None:
        shown = tag not in _LINK_TAGS
        if not address:
            self._note(offset, f"the {'image' if shown else 'link'} has no address; write it")
        elif _EXTERNAL.match(address):
            self._examine_external(offset, address, tag)
        else:
            self.references.append(Reference(*self.places.locate(offset), address, shown))

    def _examine_external(self, offset: int, address: str, tag: str) -> None:
        """Warn of an address elsewhere that has no effect, or that the site's policy blocks."""
        scheme = address.partition(":")[0].lower()
        near = "".join(get_close_matches(scheme, _USUAL_SCHEMES, n=1, cutoff=0.75))
        is_link, is_unknown = tag in _LINK_TAGS, scheme not in _KNOWN_SCHEMES
        cases = {
            "the file is on your own machine; copy it to content/images": (
                len(scheme) == 1 or scheme == "file"
            ),
            "the link leads to the reader's own machine; write the address of the site": (
                is_link and _LOOPBACK.match(address)
            ),
            f"`{scheme}:` is no kind of address; did you mean `{near}:`?": (
                is_link and is_unknown and near
            ),
            f"a link by `{scheme}:` does nothing here; write an address": (
                is_link and scheme in {"javascript", "vbscript", "data"}
            ),
            f"`<{tag}>` of another site is shown as a link; copy the file to content/images to "
            "have it played": tag in {"video", "audio"},
            "pages show nothing of other sites; copy the file to content/images": (
                tag in _MEDIA_TAGS and scheme != "data"
            ),
        }
        if message := next((message for message, holds in cases.items() if holds), ""):
            self._note(offset, message)

    def _find_offset(self, node: LexborNode, marked: str) -> int | None:
        """Return the source offset of an element, by its number or by the mark in `marked`."""
        number = node.attributes.get(ATTRIBUTE)
        return self.marked.find_number(number) if number else self.marked.find(marked)


def find_unconverted(html: str, prose: str) -> Iterator[tuple[int, str]]:
    """Yield faults of footnotes and links that were not converted, as their other part is missing.

    Each is an offset in `prose`, the text without its code, and a message.
    """
    if "[^" not in prose and "][" not in prose:
        return
    for name in re.findall(r'<li id="fn-([^"]+)"', html):
        sign = re.escape(name).replace(r"\-", "[- ]")
        if f'href="#fn-{name}"' not in html and (note := re.search(rf"\[\^{sign}\]:", prose)):
            mark = f"`{shorten(note[0][:-1])}`"
            yield note.start(), f"the note {mark} is never used; write it in the text, or remove it"
    shown = re.sub(r"(?s)<(pre|code)\b.*?</\1>", "", html)
    for name in dict.fromkeys(re.findall(r"\[\^([^\]\s]{1,60})\]", shown)):
        sign = f"[^{name}]"
        if (at := prose.find(sign)) >= 0:
            yield at, f"`{shorten(sign)}` stands for no footnote; write a line `{sign}: …`"
    undefined = r"(?<![\w\]])\[[^\[\]<>]{1,200}\]\[([^\[\]<>]{1,200})\]"
    for name in dict.fromkeys(re.findall(undefined, strip_marks(shown))):
        if (at := prose.find(f"[{unescape(name)}]")) >= 0:
            sign = f"[{shorten(unescape(name))}]"
            yield at, f"no line says where `{sign}` leads; write a line `{sign}: address`"


def convert(document: Document, markdown: str, dialect: Dialect = DEFAULT_DIALECT) -> Conversion:
    """Return the HTML of `document` with `markdown` as its text; raises as the converter does."""
    try:
        return _converter(dialect).convert(replace(document, markdown=markdown))
    except Exception:
        # Python-Markdown keeps the state in which it failed, and would misread the next text.
        _converter.cache_clear()
        raise


_converter = cache(Converter)
