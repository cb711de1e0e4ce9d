"""The request of a build, its report, and the display of its progress."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from site_build.errors import Diagnostic, Held


class Observer:
    """Shows the progress of a build: a bar on a terminal, else a line for each stage.

    Use it as a context, which restores the cursor. Without a console it shows nothing.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console, self._has_bar = console, bool(console and console.is_terminal)
        # Progress is drawn without a thread, since the build forks.
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            auto_refresh=False,
            transient=True,
            disable=not self._has_bar,
        )
        self._task = self._progress.add_task("", visible=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._progress.stop()

    def begin(self, stage: str, total: int) -> None:
        """Begin a stage of `total` steps."""
        self._progress.reset(self._task, total=total, description=stage, visible=True)
        self._progress.refresh()
        # A line for each step would bury the findings in logs and pipes.
        if self._console and not self._has_bar:
            self._console.print(f"{stage} ({total:,})")

    def advance(self) -> None:
        """Count one more step as done."""
        self._progress.advance(self._task)
        # Drawing each step would take longer than the work.
        if self._progress.tasks[0].completed % 50 == 0:
            self._progress.refresh()


@dataclass(frozen=True, slots=True)
class Request:
    """Content, folders and instant of a build."""

    content: Path
    site_folder: Path
    """The folder of public files, which may have those of the previous build."""
    state: Path
    """The folder of files that are never public: the posts index and the manifest."""
    previous_state: Path
    """The folder `state` of the previous build; may be the same folder, or empty."""
    cache: Path | None
    """The file of the cache; None: the cache is in memory."""
    now: datetime
    """The instant of the build, in UTC; documents with a later date are left out."""
    jobs: int
    strict: bool = False
    observer: Observer = field(default_factory=Observer)
    kept_sources: Path | None = None
    """The folder that keeps sources without errors, which replace faulty ones; None: it has none,
    and a file with an error is left out of the site."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a build."""

    build_id: str
    built_for: datetime
    """UTC; documents with a later date are left out."""
    posts: int
    files: int
    """The number of public files, compressed copies included."""
    size: int
    """Bytes of all public files."""
    sources: int
    hits: int
    """The number of source files that were in the cache."""
    next_instant: datetime | None
    """The instant at which the next scheduled post or page appears."""
    findings: tuple[Diagnostic, ...]
    held: tuple[Held, ...] = ()
    """Files that are held back because of an error."""
