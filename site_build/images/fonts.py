"""Finds a font, of the theme or of the machine, that has the letters of a text."""

import hashlib
import io
import subprocess
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

LONGEST_TEXT = 400
"""Most code points of a text that are read; no card holds more."""


@dataclass(frozen=True, slots=True)
class Font:
    """A font in memory, so that it stays the same if its file changes."""

    data: bytes = field(compare=False, repr=False)
    digest: str
    """SHA-256 of the data and of the fallbacks', hexadecimal; fonts are compared by it."""
    fallbacks: tuple["Font", ...] = ()
    """Fonts for texts with letters that this one lacks."""


def read_font(file: Path) -> Font:
    """Return the font in a file, with the others of its folder, by name, as its fallbacks.

    Raises OSError when one cannot be read; a fallback that is no font is left out.
    """
    files = sorted(each for each in file.parent.glob("*.[ot]tf") if each != file)
    main, *others = (
        Font(data, hashlib.sha256(data).hexdigest())
        for data in (each.read_bytes() for each in (file, *files))
    )
    fallbacks = []
    for each in others:
        with suppress(OSError):  # raised for a file that is no font
            open_font(each, 34)
            fallbacks.append(each)
    digests = " ".join(each.digest for each in (main, *fallbacks))
    return Font(main.data, hashlib.sha256(digests.encode()).hexdigest(), tuple(fallbacks))


@lru_cache(maxsize=16)
def open_font(font: Font, size: int) -> ImageFont.FreeTypeFont:
    """Return a font at a size; raises OSError if its data is no font."""
    return ImageFont.truetype(io.BytesIO(font.data), size)


@lru_cache(maxsize=16_384)
def choose_font(text: str, font: Font) -> Font:
    """Return the first font that can write `text`: `font`, its fallbacks, or one of the machine.

    If there is none, return `font`.
    """
    # One letter of each script, by the script's name: HIRAGANA for HIRAGANA LETTER A.
    signs = filter(_is_word_part, text[:LONGEST_TEXT])
    letters = {unicodedata.name(sign, "").partition(" ")[0]: sign for sign in signs}
    for each in (font, *font.fallbacks):
        if not letters or adapt_to_font(text, each):
            return each
    found = _find_system_font(" ".join(sorted(letters)), "".join(letters.values()))
    return found if found and adapt_to_font(text, found) else font


_system_fonts: dict[str, Font | None] = {}
"""Fonts found so far, by the names of scripts, since each search starts a process."""


def _find_system_font(scripts: str, letters: str) -> Font | None:
    """Return the font that fontconfig has for letters of these scripts, if there is one."""
    if scripts not in _system_fonts:
        wanted = f"serif:weight=180:charset={' '.join(f'{ord(each):x}' for each in letters)}"
        _system_fonts[scripts] = None
        with suppress(OSError, subprocess.SubprocessError):
            command = ["fc-match", "--format=%{file}", wanted]
            file = subprocess.check_output(command, text=True, timeout=10)  # noqa: S603  no shell
            data = Path(file).read_bytes()
            found = Font(data, hashlib.sha256(data).hexdigest())
            open_font(found, 34)  # what fontconfig names may be a font that Pillow cannot draw
            _system_fonts[scripts] = found
    return _system_fonts[scripts]


def adapt_to_font(text: str, font: Font) -> str | None:
    """Return `text` as the font can write it, or None if it lacks a letter.

    Ornaments that the font lacks, emoji among them, are left out. Letters never are: a card without
    a title is better than one with half of it.
    """
    kept = drop_missing_ornaments(text, font)
    is_whole = all(_has_glyph(sign, font) or not _is_word_part(sign) for sign in kept)
    return kept if kept and is_whole else None


def drop_missing_ornaments(text: str, font: Font) -> str:
    """Return `text` without ornaments that the font lacks, and with single blanks."""
    found = (
        sign if _is_word_part(sign) or _has_glyph(sign, font) else " " * sign.isspace()
        for sign in unicodedata.normalize("NFC", text[:LONGEST_TEXT])
    )
    return " ".join("".join(found).split())


def _is_word_part(sign: str) -> bool:
    """Return whether a sign is a letter, a digit or a mark of one, and so changes a word."""
    if "\ufe00" <= sign <= "\ufe0f":  # a variant selector, which is no sign itself
        return False
    return unicodedata.category(sign) in {"Mn", "Mc"} or unicodedata.category(sign)[0] in "LN"


@lru_cache(maxsize=4_096)
def _has_glyph(sign: str, font: Font) -> bool:
    """Return whether the font has a glyph for a sign."""
    if sign == " ":
        return True
    if not sign.isprintable():
        return False
    opened = open_font(font, 24)
    # A font draws every sign that it lacks as it draws a noncharacter.
    mask, missing = opened.getmask(sign), opened.getmask("\U0010fffe")
    return mask.size[0] > 0 and (mask.size, bytes(mask)) != (missing.size, bytes(missing))
