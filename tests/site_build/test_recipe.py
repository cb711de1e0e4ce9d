"""What everything is made anew for: no library and no file that shows in pages is forgotten."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions

from site_build.build.fingerprint import PACKAGES, SOURCES, list_sources

EXCUSED = {
    "aiohttp": "carries the preview",
    "limits": "counts who asks the edge",
    "python-dotenv": "reads where to build",
    "rich": "speaks on terminals",
    "watchfiles": "tells that files have changed",
}
"""Libraries that pages do not depend on."""


def list_imports() -> Iterator[str]:
    """Yield the name of every module that the build's sources import, its first part alone."""
    for path in (path for folder in SOURCES for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (each.name.partition(".")[0] for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]


def unify(name: str) -> str:
    """Return a distribution's name as packaging compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_recipe_names_every_library_that_shows_in_pages() -> None:
    """What is imported is digested with its release, or is excused, for as long as it is used."""
    homes = packages_distributions()
    foreign = set(list_imports()) - sys.stdlib_module_names - {"site_build", "edge_api"}
    # Plugins of Pelican are at home in its package too; the shortest name is its own.
    needed = {unify(min(homes[module], key=len)) for module in foreign}

    assert needed - EXCUSED.keys() <= set(map(unify, PACKAGES))
    assert needed >= EXCUSED.keys()


def test_the_recipe_names_every_file_that_the_program_reads_beside_itself() -> None:
    """A change of a text that the code fills in is a change of the code."""
    for folder in SOURCES:
        files = {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}
        others = {path for path in files if path.parent.name in {"static", "starter"}}
        assert files - others == {path for path in list_sources(folder) if path not in others}
