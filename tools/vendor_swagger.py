"""Brings Swagger UI into `edge_api/http/try_out/swagger_ui/`: two files and its licence, unchanged.

The package is fetched with the npm of the environment and taken only if it is the one that is
pinned here. Nothing of it is run. `--check` compares what lies there with the pins instead.
"""

import argparse
import hashlib
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.environment import ROOT, SetupError, say
from tools.npm_package import Pin, fetch

PROGRAM = Pin(
    "swagger-ui-dist@5.35.0",
    "sha512-"
    "U06rpMtW9V3XPGOBeamTUSr0Z09jMX4IJuANpE/EZbAhw0G8CgwrzU4YmXkn/h0wCDNsXdGarTNNHC3sU8yVUQ==",
)
# What is taken of the package, as `sha256sum` writes it.
SUMS = """\
cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30  LICENSE
0d20d1adef18aee3f40dd258172155521ce702ac445cb5f7b7d60ed32dad2fb2  NOTICE
e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2  swagger-ui-bundle.js
37eb6e7e59aed57b2c1acf076574b818ea07b74265717e0bd67b59e0baf9abbb  swagger-ui-bundle.js.LICENSE.txt
5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d  swagger-ui.css
"""
FILES = {name: digest for digest, name in (line.split() for line in SUMS.splitlines())}
FOLDER = ROOT / "edge_api" / "http" / "try_out" / "swagger_ui"


def main(words: list[str] | None = None) -> int:
    """Fetch or check; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.vendor_swagger", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fetch nothing")
    try:
        if not parser.parse_args(words).check:
            take()
        check()
    except SetupError as error:
        say(str(error))
        return 1
    return 0


def take() -> None:
    """Write the files anew; SetupError when the package is not the pinned one."""
    with tempfile.TemporaryDirectory() as folder:
        archive = fetch(PROGRAM, Path(folder))
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as package:
            for name in FILES:
                if member := package.extractfile(f"package/{name}"):
                    (FOLDER / name).write_bytes(member.read())


def check(folder: Path = FOLDER) -> None:
    """Raise SetupError unless the folder holds exactly the pinned files."""
    found = {path.name: path for path in folder.glob("*")}
    wrong = sorted(
        name
        for name in {*FILES, *found}
        if name not in FILES
        or name not in found
        or hashlib.sha256(found[name].read_bytes()).hexdigest() != FILES[name]
    )
    if wrong:
        raise SetupError(f"{folder.name}: not as pinned: {', '.join(wrong)}")
    say(f"{PROGRAM.package}: {len(FILES)} files as pinned.")


if __name__ == "__main__":
    sys.exit(main())
