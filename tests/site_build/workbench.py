"""A content folder with a small journal, and the commands that build it as their users would."""

import gzip
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import brotli
from pelican.settings import read_settings  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser, LexborNode

from site_build.content.library import ContentLibrary
from site_build.errors import Diagnostic
from site_build.markup.convert import DEFAULT_DIALECT
from site_build.pelican_plugin.plugin import Journal, quiet_pelican
from site_build.pelican_plugin.settings import SETTINGS_FILE
from site_build.progress import Request
from site_build.releases.release import BuildOptions, build
from tests.patience import patience

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
JOURNAL = HERE / "journal"
THEME = HERE / "theme"
GOLDEN = HERE / "golden"
NOW = "2026-05-01T00:00:00Z"
SITE_URL = "https://journal.test"
PACKED = (".gz", ".br")

Snapshot = dict[str, bytes]


@dataclass(frozen=True)
class Workbench:
    """A content folder of the test's own, and a folder for its builds."""

    content: Path
    output: Path

    def order(self, now: str = NOW, jobs: int = 1, *, strict: bool = False) -> BuildOptions:
        """Return the order for a build of this workbench's content."""
        instant = datetime.fromisoformat(now).astimezone(UTC)
        return BuildOptions(self.content, self.output, SITE_URL, instant, jobs, strict)

    def build(self, now: str = NOW, jobs: int = 1) -> Path:
        """Build in this process, and return the folder that is served then."""
        build(self.order(now, jobs))
        return (self.output / "current").resolve()

    def write(self, path: str, text: str) -> Path:
        """Write a source file."""
        target = self.content / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def post(self, slug: str, day: str = "2026-03-01", text: str = "Words.", **head: str) -> Path:
        """Write a post."""
        more = "".join(f"{name}: {value}\n" for name, value in head.items())
        title = "" if "title" in head else f"title: {slug.title()}\n"
        return self.write(
            f"posts/{slug}.md", f"---\n{title}slug: {slug}\ndate: {day}\n{more}---\n\n{text}\n"
        )


def check_content(folder: Path, now: datetime, jobs: int = 1) -> tuple[int, tuple[Diagnostic, ...]]:
    """Return how many files `folder` has, and each finding as readers see it at `now` (UTC)."""
    library = ContentLibrary(
        Request(folder, folder, folder, folder, None, now, jobs), "", DEFAULT_DIALECT
    )
    return library.count, library.check(now)


class FleetingPath(type(Path())):  # type: ignore[misc]
    """A folder that is moved away as soon as somebody has seen that it is there."""

    def exists(self) -> bool:
        """Return that it is."""
        return True


def find(page: LexborHTMLParser | LexborNode, selector: str) -> LexborNode:
    """Return the first element that fits, which must be there."""
    found = page.css_first(selector)
    assert found is not None, selector
    return found


def take(folder: Path) -> Snapshot:
    """Return every file below `folder` by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def list_inodes(folder: Path) -> dict[str, int]:
    """Return the inode of every file below `folder`."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_ino
        for path in folder.rglob("*")
        if path.is_file()
    }


def compare(first: Snapshot, second: Snapshot) -> list[str]:
    """Return the paths at which two folders differ."""
    return sorted(
        path for path in first.keys() | second.keys() if first.get(path) != second.get(path)
    )


def run(
    *words: object, environment: dict[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a program from the project's folder, or another one, and return what it printed."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=patience(300),
        check=False,
    )


def name_build(bench: Workbench, *words: object) -> list[str]:
    """Return the command that builds a workbench's content."""
    command = [sys.executable, "-m", "site_build", "build", "--content", bench.content]
    where = ["--output", bench.output, "--site-url", SITE_URL, "--now", NOW]
    return [str(word) for word in (*command, *where, *words)]


def run_build(bench: Workbench, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m site_build build` on a workbench; later options override earlier ones."""
    return run(*name_build(bench, *words), environment=more)


def run_pelican(
    content: Path, output: Path, *words: object, now: str = NOW, setting: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run Pelican's own command with the project's settings, and one more."""
    command = [sys.executable, "-m", "pelican", content, "-s", "pelicanconf.py", "-o", output]
    cache = output.with_name(f"{output.name}-cache")
    settings = [f'CACHE_PATH="{cache}"', f'BUILD_NOW="{now}"', *filter(None, [setting])]
    return run(*command, *words, "-e", *settings, environment={"SITE_URL": SITE_URL})


def run_journal(content: Path, output: Path, theme: Path = THEME, **settings: object) -> None:
    """Build into `output` as plain `pelican` does, in this process, with another theme."""
    override = {
        "PATH": str(content),
        "OUTPUT_PATH": str(output),
        "THEME": str(theme),
        "CACHE_PATH": f"{output}-cache",
        "SITEURL": SITE_URL,
        "BUILD_NOW": NOW,
        "BUILD_JOBS": 1,
        **settings,
    }
    with quiet_pelican():
        Journal(read_settings(str(SETTINGS_FILE), override)).run()


def unpack(name: str, data: bytes) -> bytes:
    """Return a file's bytes without their compression."""
    if name.endswith(".gz"):
        return gzip.decompress(data)
    return bytes(brotli.decompress(data)) if name.endswith(".br") else data


def make_golden(folder: Path) -> Snapshot:
    """Build the small journal with the bare theme, and return it without compressed forms.

    Static files that the project's own theme lends are left out.
    """
    run_journal(JOURNAL, folder / "output")
    files = take(folder / "output")
    own = {path.name.partition(".")[0] for path in (THEME / "static").rglob("*.*")}
    return {
        path: data
        for path, data in files.items()
        if not path.endswith(PACKED)
        and (not path.startswith("theme/") or Path(path).name.partition(".")[0] in own)
    }


def write_golden() -> None:
    """Replace the expected tree with what a build makes now; look at the difference first."""
    with TemporaryDirectory() as folder:
        files = make_golden(Path(folder))
    shutil.rmtree(GOLDEN, ignore_errors=True)
    for path, data in files.items():
        target = GOLDEN / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


if __name__ == "__main__":
    write_golden()
