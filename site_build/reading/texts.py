"""The texts of documents, read when they are asked for and never all held at once.

A document in memory says all but its text; ten thousand texts would fill hundreds of mebibytes.
It remembers whose text was asked for, so that a page can be told by what it was made from.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from site_build.checks.examine import study
from site_build.faults import BuildError
from site_build.incremental.cache import Cache, make_key
from site_build.markup.convert import Conversion, Dialect
from site_build.post import Document
from site_build.reading.document import read_document

TEXTS = "text"
_REMEMBERED = 4
"""Texts kept in memory: a post's page, twin and record are made one after the other."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a document says, as written and as HTML."""

    markdown: str
    conversion: Conversion


def make_text_key(code: str, dialect: Dialect, document: Document) -> bytes:
    """Return the key for the text of a document on one site, as the program `code` makes it."""
    return make_key(code, dialect, document.path, document.digest)


class Texts:
    """Texts by document, through the cache; `fresh` holds what the cache did not know."""

    def __init__(self, content: Path, cache: Cache, code: str, dialect: Dialect) -> None:
        self._content = content
        self._cache = cache
        self._code = code
        self._dialect = dialect
        self._remembered: OrderedDict[bytes, Text] = OrderedDict()
        self.fresh: list[tuple[bytes, Text]] = []
        self.asked: dict[str, None] = {}
        """Paths of the documents asked for, in order; whoever looks into it clears it before."""

    def key(self, document: Document) -> bytes:
        """Return the key under which the document's text is kept."""
        return make_text_key(self._code, self._dialect, document)

    def read(self, document: Document) -> Text:
        """Return the document's text.

        Raises BuildError when the file is no longer the one that was checked.
        """
        self.asked[document.path] = None
        key = self.key(document)
        text = self._remembered.get(key) or self._find(key, document)
        self._remembered[key] = text
        self._remembered.move_to_end(key)
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return text

    def _find(self, key: bytes, document: Document) -> Text:
        kept = self._cache.get(TEXTS, key)
        if isinstance(kept, Text):
            return kept
        text = self._convert(document)
        self.fresh.append((key, text))
        return text

    def _convert(self, document: Document) -> Text:
        whole = self._load(document)
        studied = study(whole, self._dialect, convert_too=True)
        if studied.conversion is None:
            raise BuildError(f"{document.path} cannot be converted; `check` tells why")
        return Text(whole.markdown, studied.conversion)

    def _load(self, document: Document) -> Document:
        try:
            whole, _ = read_document(document.path, (self._content / document.path).read_bytes())
        except OSError as error:
            raise BuildError(
                f"{document.path} cannot be read any more: {error.strerror}"
            ) from error
        if whole is None or whole.digest != document.digest:
            raise BuildError(
                f"{document.path} was changed while the site was being built; build again"
            )
        return whole


def drop_text(document: Document) -> Document:
    """Return the document without its text, as builds hold it in memory."""
    return replace(document, markdown="")
