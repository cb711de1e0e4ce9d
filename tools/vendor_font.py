"""Makes the faces of the journal anew, out of the family that it names by version and hash.

What it writes to `theme/static/fonts/` is kept with the source: building the site needs neither
this nor the network. The same family gives the same bytes.
"""

import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from fontTools import subset  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from fontTools.ttLib.tables import otTables  # type: ignore[import-untyped]
from fontTools.varLib.instancer import instantiateVariableFont  # type: ignore[import-untyped]

from tools.environment import ROOT, SetupError, say
from tools.npm_package import Pin, fetch

FOLDER = ROOT / "theme" / "static" / "fonts"
FAMILY = Pin(
    "source-serif@4.5.1",
    "sha512-NUAh5IzF7KiUu2gTpqE+ed9MNbMe4st7LIIXZ0OHHSPc"
    "6gg86H67j04M8sIhU2qqFd26btXaFQ2ge5u/p72j0Q==",
)
LICENCE = "package/LICENSE.md"

# The licence reserves the name of the family for what its makers release; a subset is not that.
NAME = "Fore-edge Serif"
_OWN_NAMES = (1, 6)
_KEPT_NAMES = (0, 14)  # copyright and the licence's address; its text lies beside

_ASCII = {chr(code) for code in range(0x20, 0x7F)}
_RARELY_SLANTED = set("#$%&*+/0123456789<=>@[\\]^_`{|}~·")
"""What hardly ever stands in slanted words of English."""
# Of Latin-1 and its neighbours: what French, German, Spanish, Portuguese, Italian, Dutch and the
# Nordic languages write. What is missing is set in the reader's own serif.
_LETTERS = set("ÀÁÄÅÆÇÈÉÊÍÑÓÖØÚÜàáâãäåæçèéêëìíîïñòóôõöøùúûüÿßŒœ")
_MARKS = set("\u00a0\u00ad\u2011·–—‘’“”…")  # noqa: RUF001
_RARE_MARKS = set("§©«°±×»„†•€−")  # noqa: RUF001
_ARROWS = set("←↑→↓")
_LIGATURES = frozenset(("f_i", "f_l", "f_f", "f_f_i", "f_f_l"))
_OPTICAL_SIZE = 14
"""In points. The text stands at 13 to 15 of them, which is what the eye is to be spared for."""
_NEAR = 2
"""In thousandths of the size: how far a heavier outline may be from where it was drawn. Letters of
the regular weight are as they were drawn. At 6, the feet of large headings have visible steps."""


@dataclass(frozen=True, slots=True)
class Face:
    """One file: where it comes from, and what is kept of it."""

    source: str
    file: str
    style: str
    weights: float | tuple[float, float]
    characters: frozenset[str]
    features: tuple[str, ...]
    faint_kerning: int = 10
    """What is left out, in thousandths of the size: of a text, a fifth of a pixel."""
    kerning_step: int = 1
    """The same: what is kept is a multiple of it."""
    old_figures_only: bool = False
    """Whether it does without figures for columns."""


_ROMAN = "package/VAR/SourceSerif4Variable-Roman.ttf"
_ITALIC = "package/VAR/SourceSerif4Variable-Italic.ttf"
_WEIGHTS = (400, 600)
FACES = (
    # What every page shows stands apart from what few have: it is on its way before anything else.
    # Slanted words are cut in two the same way: English ones without figures need the first alone.
    Face(
        _ROMAN,
        "serif-roman.woff2",
        "Regular",
        _WEIGHTS,
        frozenset(_ASCII | _MARKS),
        # Figures that stand in text, beside those for columns that need not be asked for.
        ("kern", "liga", "onum", "smcp", "c2sc"),
    ),
    Face(
        _ROMAN,
        "serif-more.woff2",
        "More",
        _WEIGHTS,
        frozenset(_LETTERS | _RARE_MARKS | _ARROWS),
        (),
    ),
    Face(
        _ITALIC,
        "serif-italic.woff2",
        "Italic",
        400,
        frozenset((_ASCII | _MARKS) - _RARELY_SLANTED),
        ("kern", "liga"),
        # At text size alone, where two fifths of a pixel are the most that it changes.
        faint_kerning=20,
        kerning_step=10,
    ),
    Face(
        _ITALIC,
        "serif-italic-more.woff2",
        "ItalicMore",
        400,
        frozenset(_RARELY_SLANTED | _LETTERS | _RARE_MARKS),
        (),
        old_figures_only=True,
    ),
)


def cut(data: bytes, face: Face) -> bytes:
    """Return the face as WOFF2: fewer characters, one optical size, the weights that are used."""
    font = TTFont(BytesIO(data), recalcTimestamp=False)
    _limit_substitutions(font)
    _limit_kerning(font)
    if face.old_figures_only:
        _put_old_figures(font)
    _keep(font, face)
    _rename(font, face)
    at_rest = {"opsz": _OPTICAL_SIZE, "wght": 400}
    regular = instantiateVariableFont(font, at_rest)
    if isinstance(face.weights, tuple):
        # The kerning of the regular weight serves them all: its changes would weigh 5 kB.
        variable = instantiateVariableFont(font, {**at_rest, "wght": face.weights})
        for table in {"GPOS", "GDEF"} & set(regular.keys()):
            variable[table] = regular[table]
        _simplify_changes(variable)
        regular = variable
    _coarsen_kerning(regular, face)
    regular.flavor = "woff2"
    made = BytesIO()
    regular.save(made)
    return made.getvalue()


def _limit_substitutions(font: TTFont) -> None:
    """Leave small capitals to the letters of ASCII, figures to one width, ligatures to English."""
    names = font.getBestCmap()
    letters = {names[ord(character)] for character in _ASCII if character.isalpha()}
    figures = {names[ord(character)] for character in _ASCII if character.isdigit()}
    for features, plain in (({"smcp", "c2sc"}, letters), ({"onum"}, figures)):
        for table in _substitutions(font, features):
            for glyph in set(table.mapping) - plain:
                del table.mapping[glyph]
    for table in _substitutions(font, {"liga"}):
        for first, ligatures in table.ligatures.items():
            table.ligatures[first] = [each for each in ligatures if each.LigGlyph in _LIGATURES]


def _put_old_figures(font: TTFont) -> None:
    """Let the figures of running text be those that stand there without being asked for."""
    (old,) = (table.mapping for table in _substitutions(font, {"onum"}))
    for table in font["cmap"].tables:
        for code, glyph in table.cmap.items():
            table.cmap[code] = old.get(glyph, glyph)


def _limit_kerning(font: TTFont) -> None:
    """Leave kerning to what is not spaced: small capitals are, wherever they stand."""
    for pairs in _kernings(font):
        _limit_pairs(pairs)


def _coarsen_kerning(font: TTFont, face: Face) -> None:
    """Round kerning to the face's step, and leave out what is faint then."""
    for pairs in _kernings(font):
        for value in _values(pairs):
            value.XAdvance = _coarse(value.XAdvance, face)
        if pairs.Format == 1:
            for pair in pairs.PairSet:
                pair.PairValueRecord = [
                    each for each in pair.PairValueRecord if each.Value1.XAdvance
                ]


def _values(pairs: Any) -> Iterator[Any]:
    if pairs.Format == 1:
        return (each.Value1 for pair in pairs.PairSet for each in pair.PairValueRecord)
    return (each.Value1 for first in pairs.Class1Record for each in first.Class2Record)


def _simplify_changes(font: TTFont) -> None:
    """Leave out what a weight changes in an outline where its neighbours tell it nearly as well."""
    metrics = font["hmtx"].metrics
    for glyph, changes in font["gvar"].variations.items():
        outline, controls = font["glyf"]._getCoordinatesAndControls(glyph, metrics)  # noqa: SLF001
        for change in changes:
            change.calcInferredDeltas(outline, controls.endPts)
            change.roundDeltas()
            change.optimize(outline, controls.endPts, tolerance=_NEAR)


def _coarse(kerning: int, face: Face) -> int:
    rounded = round(kerning / face.kerning_step) * face.kerning_step
    return rounded if abs(rounded) > face.faint_kerning else 0


def _kernings(font: TTFont) -> Iterator[Any]:
    for lookup in font["GPOS"].table.LookupList.Lookup:
        for subtable in lookup.SubTable:
            pairs = getattr(subtable, "ExtSubTable", subtable)
            if isinstance(pairs, otTables.PairPos):
                yield pairs


def _limit_pairs(pairs: Any) -> None:
    glyphs = pairs.Coverage.glyphs
    kept = [at for at, glyph in enumerate(glyphs) if not _is_small_capital(glyph)]
    pairs.Coverage.glyphs = [glyphs[at] for at in kept]
    if pairs.Format == 1:
        pairs.PairSet = [pairs.PairSet[at] for at in kept]
        for pair in pairs.PairSet:
            pair.PairValueRecord = [
                each for each in pair.PairValueRecord if not _is_small_capital(each.SecondGlyph)
            ]
    else:
        for classes in (pairs.ClassDef1.classDefs, pairs.ClassDef2.classDefs):
            for glyph in filter(_is_small_capital, list(classes)):
                del classes[glyph]


def _is_small_capital(glyph: str) -> bool:
    return glyph.endswith(".sc")


def _substitutions(font: TTFont, features: set[str]) -> Iterator[Any]:
    table = font["GSUB"].table
    numbers = {
        number
        for record in table.FeatureList.FeatureRecord
        if record.FeatureTag in features
        for number in record.Feature.LookupListIndex
    }
    for number in sorted(numbers):
        for subtable in table.LookupList.Lookup[number].SubTable:
            yield getattr(subtable, "ExtSubTable", subtable)


def _keep(font: TTFont, face: Face) -> None:
    options = subset.Options(
        layout_features=list(face.features),
        layout_scripts=["DFLT", "latn"],
        hinting=False,
        glyph_names=False,
        recalc_timestamp=False,
        name_IDs=[*_KEPT_NAMES, *_OWN_NAMES],
    )
    options.drop_tables += ["DSIG", "STAT"]
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[ord(character) for character in face.characters])
    subsetter.subset(font)


def _rename(font: TTFont, face: Face) -> None:
    names = {1: NAME, 6: f"{NAME}{face.style}".replace(" ", "")}
    for number, name in names.items():
        font["name"].removeNames(nameID=number)
        font["name"].setName(name, number, 3, 1, 0x409)


def vendor() -> None:
    """Write the faces and their licence."""
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(fetch(FAMILY, Path(name))) as archive:
            read = {
                path: member.read()
                for path in (LICENCE, *(face.source for face in FACES))
                if (member := archive.extractfile(path))
            }
        made = {face.file: cut(read[face.source], face) for face in FACES}
    FOLDER.mkdir(exist_ok=True)
    for former in FOLDER.glob("*.woff2"):
        former.unlink()
    (FOLDER / "OFL.txt").write_bytes(read[LICENCE])
    for file, data in made.items():
        (FOLDER / file).write_bytes(data)
        say(f"{file}: {len(data):,} bytes")


def main() -> int:
    """Make the faces and return the exit status."""
    try:
        vendor()
    except SetupError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
