"""Takes the font of social cards from its package into `theme/fonts/`, with its licence.

`python -m tools.card_font` writes the same bytes each time: the package is named with its version
and checked against its digest. Nothing else needs it, since the font is kept with the theme.
"""

import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from site_build.build.assets import FONT
from tools.environment import ROOT, SetupError, say
from tools.npm_package import Pin, fetch

FONTS = Pin(
    "@expo-google-fonts/source-serif-4@0.4.1",
    "sha512-"
    "Ej4UXDjW1kwYPHG8YLq6fK1bqnJGb3K35J3S5atSL0ScKFAFLKvndxoTWeCls7mybtlS9x99hzwDeXCBkiI3rA==",
)

TARGET = ROOT / "theme" / FONT
_FILES = {
    "package/600SemiBold/SourceSerif4_600SemiBold.ttf": TARGET,
    "package/LICENSE_FONT": TARGET.with_name("OFL.txt"),
}


def unpack(archive: Path) -> None:
    """Write the font and its licence; raises SetupError when one of them is not there."""
    TARGET.parent.mkdir(exist_ok=True)
    with tarfile.open(archive) as package:
        for name, target in _FILES.items():
            file = package.extractfile(name)
            if file is None:
                raise SetupError(f"{FONTS.package} has no {name}")
            target.write_bytes(file.read())


def main() -> int:
    """Take the font, and say so."""
    try:
        with TemporaryDirectory() as folder:
            unpack(fetch(FONTS, Path(folder)))
    except SetupError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    say(f"{TARGET.relative_to(ROOT)} is that of {FONTS.package}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
