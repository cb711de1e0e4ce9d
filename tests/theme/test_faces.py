"""The faces of the journal: small enough, with the letters and figures that pages ask for."""

import re
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

FOLDER = Path(__file__).resolve().parent.parent.parent / "theme" / "static" / "fonts"
BUDGET = 40_000
"""Bytes of fonts that a page may load, as they are: WOFF2 is compressed in itself."""
FIRST_MOST = 17_000
"""Bytes of the face that every page asks for: with its headers it fits into twelve packets of
1,460 bytes, which a slow line brings in two turns beside three other answers (RFC 6928)."""
MORE_MOST = 6_860
"""Bytes of one that some pages request after the style sheet: with its headers, five packets,
which a slow line brings in one turn beside three other answers."""
ENGLISH = {chr(code) for code in range(0x20, 0x7F)} | set("\u00a0–—‘’“”…")  # noqa: RUF001
RARELY_SLANTED = set("#$%&*+/0123456789<=>@[\\]^_`{|}~")
"""Characters that hardly occur in slanted words of English."""
WESTERN = set("àâäáãåæçéèêëíìîïñóòôöõøœßúùûüÿÄÉÖÜ")


def features(font: TTFont) -> set[str]:
    """Return the names of the substitutions that a face can do."""
    return {record.FeatureTag for record in font["GSUB"].table.FeatureList.FeatureRecord}


@pytest.fixture(scope="module")
def roman() -> TTFont:
    """Return the upright face."""
    return TTFont(FOLDER / "serif-roman.woff2")


@pytest.fixture(scope="module")
def more() -> TTFont:
    """Return the upright face with the letters of English's neighbours and rare marks."""
    return TTFont(FOLDER / "serif-more.woff2")


@pytest.fixture(scope="module")
def italic() -> TTFont:
    """Return the slanted face."""
    return TTFont(FOLDER / "serif-italic.woff2")


@pytest.fixture(scope="module")
def italic_more() -> TTFont:
    """Return the slanted face with figures, signs and the letters of English's neighbours."""
    return TTFont(FOLDER / "serif-italic-more.woff2")


def test_faces_are_light() -> None:
    """All together stay within what a page may load, and each comes in as few turns as it can."""
    assert sum(path.stat().st_size for path in FOLDER.glob("*.woff2")) <= BUDGET
    assert (FOLDER / "serif-roman.woff2").stat().st_size <= FIRST_MOST
    for name in ("serif-more", "serif-italic", "serif-italic-more"):
        assert (FOLDER / f"{name}.woff2").stat().st_size <= MORE_MOST


def test_roman_has_what_the_small_print_asks_for(roman: TTFont) -> None:
    """Small capitals, both kinds of figures, kerning and ligatures are real."""
    widths = {roman["hmtx"][roman.getBestCmap()[ord(figure)]][0] for figure in "0123456789"}

    assert {"smcp", "c2sc", "onum", "liga"} <= features(roman)
    assert len(widths) == 1  # so that they align in columns
    feet = {roman["glyf"][roman.getBestCmap()[ord(figure)]].yMin for figure in "0123456789"}
    assert min(feet) > -30  # none hangs below the line: `lining-nums` is the default
    assert "GPOS" in roman


def test_italic_figures_are_old_style(italic: TTFont, italic_more: TTFont) -> None:
    """Slanted, there are the old-style figures alone; words are kerned and have ligatures."""
    names = italic_more.getBestCmap()
    feet = [italic_more["glyf"][names[ord(figure)]].yMin for figure in "34579"]

    assert max(feet) < -100
    assert "liga" in features(italic)
    assert "GPOS" in italic


def test_roman_varies_in_weight(roman: TTFont, more: TTFont) -> None:
    """From the text's weight to that of a strong word, which the style sheet asks for."""
    for font in (roman, more):
        (axis,) = font["fvar"].axes

        assert (axis.axisTag, axis.minValue, axis.maxValue) == ("wght", 400, 600)


def test_the_fonts_have_the_letters_of_western_languages(
    roman: TTFont, more: TTFont, italic: TTFont, italic_more: TTFont
) -> None:
    """English and its neighbours can be written, and arrows stand upright."""
    upright = {chr(code) for font in (roman, more) for code in font.getBestCmap()}
    slanted = {chr(code) for font in (italic, italic_more) for code in font.getBestCmap()}

    assert ENGLISH | WESTERN | set("§†•←→↑↓×−") <= upright  # noqa: RUF001
    assert ENGLISH | WESTERN | set("§†•×−") <= slanted  # noqa: RUF001


def test_english_needs_one_face(
    roman: TTFont, more: TTFont, italic: TTFont, italic_more: TTFont
) -> None:
    """Other letters and rare marks are in files of their own, as `unicode-range` declares."""
    sheet = (FOLDER.parent / "style.css").read_text(encoding="utf-8")
    for name, first, other, english in (
        ("serif-more", roman, more, ENGLISH),
        ("serif-italic-more", italic, italic_more, ENGLISH - RARELY_SLANTED),
    ):
        (spelled,) = re.findall(rf"{name}\.[^}}]+unicode-range:([^;]+);", sheet)
        declared = read_range(spelled)

        assert {chr(code) for code in first.getBestCmap()} >= english
        assert set(other.getBestCmap()) <= declared
        assert not declared & set(first.getBestCmap())


def read_range(spelled: str) -> set[int]:
    """Return the code points of a `unicode-range`."""
    declared = set()
    for item in spelled.split(","):
        first, _, last = item.strip().removeprefix("U+").partition("-")
        declared |= set(range(int(first, 16), int(last or first, 16) + 1))
    return declared


def test_the_licence_is_kept(
    roman: TTFont, more: TTFont, italic: TTFont, italic_more: TTFont
) -> None:
    """The licence lies beside the faces, which do not use the name that it reserves."""
    licence = (FOLDER / "OFL.txt").read_text(encoding="utf-8")

    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "Reserved Font Name ‘Source’" in licence  # noqa: RUF001
    for font in (roman, more, italic, italic_more):
        names = {record.nameID: str(record) for record in font["name"].names}
        assert all("Source" not in names.get(number, "") for number in (1, 3, 4, 6, 16))
        assert "Adobe" in names[0]
