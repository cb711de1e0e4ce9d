"""Packages from the registry of Node.js are exactly those that were reviewed."""

import json
import re
from typing import Any

from tests.judges.node import FOLDER


def read(name: str) -> dict[str, Any]:
    """Return one of npm's two files."""
    found = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_every_package_is_asked_for_in_one_version() -> None:
    """The versions asked for are exact, and the lock holds them."""
    asked = read("package.json")["dependencies"]
    locked = read("package-lock.json")["packages"]

    assert [version for version in asked.values() if not re.match(r"\d+\.\d+\.\d+", version)] == []
    assert asked == {name: locked[f"node_modules/{name}"]["version"] for name in asked}


def test_every_locked_package_has_a_hash_and_no_address() -> None:
    """Each file is checked against its hash, from whichever registry the machine is set up for."""
    packages = {
        path: entry for path, entry in read("package-lock.json")["packages"].items() if path
    }

    assert len(packages) > 100
    assert [path for path, entry in packages.items() if "integrity" not in entry] == []
    assert [path for path, entry in packages.items() if "resolved" in entry] == []
