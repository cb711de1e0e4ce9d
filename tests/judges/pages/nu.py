"""Runs the Nu Html Checker, the program behind validator.w3.org, on files."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.edge.edge_process import ROOT
from tests.judges.pages.judging import Faults, lay_out
from tools.judges import MODULES

_WEBMCP: Final = (
    "Attribute “tool(name|description|autosubmit|paramdescription|paramtitle)” not allowed.*"
)
EXCEPTIONS: Final[Mapping[str, str]] = {
    _WEBMCP: "WebMCP's attributes, which agents read, are newer than the checker",
    ".*view-transition.*": "an at-rule of CSS that the checker does not know yet",
}
"""Messages of the checker that are no faults, as patterns of its sentence, and why."""
_JAR: Final = MODULES / "vnu-jar" / "build" / "dist" / "vnu.jar"
_SECONDS: Final = 300


def find_java() -> str:
    """Return the path of a Java that runs the checker, installed where that takes no question."""
    found = subprocess.run(
        [str(ROOT / "tools" / "provide"), "java"],
        check=True,
        capture_output=True,
        text=True,
        timeout=_SECONDS * 2,
    )
    return found.stdout.strip()


def judge(pages: Mapping[str, bytes], folder: Path) -> Faults:
    """Return errors and warnings for pages, which are laid out in `folder`."""
    files = lay_out(pages, folder / "pages")
    options = ["--format", "json", "--stdout", "--exit-zero-always"]
    options += ["--filterpattern", "|".join(EXCEPTIONS)]
    command = [find_java(), "-jar", str(_JAR), *options, str(files)]
    said = subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS).stdout
    return [_tell(message) for message in json.loads(said)["messages"]]


def _tell(message: dict[str, Any]) -> dict[str, Any]:
    kind = message.get("subType") or message["type"]
    return {
        "file": Path(message.get("url", "")).name,
        "kind": kind,
        "line": message.get("lastLine"),
        "message": message["message"],
        "extract": message.get("extract", "")[:120],
    }
