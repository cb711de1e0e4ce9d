"""A copy of the product in which something is declared anew, with what commands print there."""

import shutil
from pathlib import Path

from edge_api.db.migrations import MIGRATIONS
from tests.edge.edge_process import ROOT, Installation, free_port


def copy_product(folder: Path, url: str) -> tuple[Path, Installation]:
    """Return a copy of the edge's package below a folder, and an installation that runs it."""
    copy = folder / "copy" / "edge_api"
    shutil.copytree(ROOT / "edge_api", copy, ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "DATABASE_URL": url,
        "PORT": str(free_port()),
        "PYTHONPATH": str(copy.parent),
        "SECRET_KEY": "a secret of thirty-two characters",
    }
    return copy, Installation(folder, settings)


def replace_once(module: Path, *changes: tuple[str, str]) -> None:
    """Replace each text of a module, which has to be there once, by another."""
    text = module.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    module.write_text(text, encoding="utf-8")


def add_step(copy: Path, sqlite: str, postgresql: str) -> None:
    """Add a step to the migrations of a copy: its statements for both engines."""
    number = len(MIGRATIONS) + 1
    for dialect, statements in (("sqlite", sqlite), ("postgresql", postgresql)):
        step = copy / "db" / "migrations" / f"step_{number}.{dialect}.sql"
        step.write_text(f"-- A change of a test.\n\n{statements}", encoding="utf-8")


def said(installation: Installation, *words: str) -> str:
    """Run a command that has to succeed, and return what it prints."""
    code, output, complained = installation.run(*words)
    assert code == 0, complained
    return output
