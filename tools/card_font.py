"""Takes the font of social cards from its package into `theme/fonts/`, with its licence.

`python -m tools.card_font` writes the same bytes each time: the package is named with its version
and checked against its digest. Nothing else needs it, since the font is kept with the theme.
"""

import base64
import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from site_build.making.artwork import FONT
from tools.environment import ROOT, SetupError, say
from tools.judges import NODE, NPM

PACKAGE = "@expo-google-fonts/source-serif-4@0.4.1"
SHA512 = "Ej4UXDjW1kwYPHG8YLq6fK1bqnJGb3K35J3S5atSL0ScKFAFLKvndxoTWeCls7mybtlS9x99hzwDeXCBkiI3rA=="

TARGET = ROOT / "theme" / FONT
_FILES = {
    "package/600SemiBold/SourceSerif4_600SemiBold.ttf": TARGET,
    "package/LICENSE_FONT": TARGET.with_name("OFL.txt"),
}


def fetch_package(folder: Path) -> Path:
    """Return the package's archive in `folder`; raises SetupError for any other bytes."""
    command = [str(NODE), str(NPM), "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SetupError(f"npm could not fetch {PACKAGE}: {result.stderr.strip()}")
    archive = folder / result.stdout.split()[-1]
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != SHA512:
        raise SetupError(f"{PACKAGE} has another digest than it should have; nothing was taken")
    return archive


def unpack(archive: Path) -> None:
    """Write the font and its licence; raises SetupError when one of them is not there."""
    TARGET.parent.mkdir(exist_ok=True)
    with tarfile.open(archive) as package:
        for name, target in _FILES.items():
            file = package.extractfile(name)
            if file is None:
                raise SetupError(f"{PACKAGE} has no {name}")
            target.write_bytes(file.read())


def main() -> int:
    """Take the font, and say so."""
    try:
        with TemporaryDirectory() as folder:
            unpack(fetch_package(Path(folder)))
    except SetupError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    say(f"{TARGET.relative_to(ROOT)} is that of {PACKAGE}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
