"""What a build is asked for, what it answers, and how far it is."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from site_build.errors import Diagnostic, Held


class Observer:
    """Shows how far a build is: a bar that fills on a terminal, else a line for each stage.

    Use it as a context, so that the cursor comes back. Without a console it shows nothing.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console, self._has_bar = console, bool(console and console.is_terminal)
        # Drawn from here and never from a thread: the build forks.
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
        """Take notice that a stage of `total` steps begins."""
        self._progress.reset(self._task, total=total, description=stage, visible=True)
        self._progress.refresh()
        # A line for each step would bury the findings in logs and pipes.
        if self._console and not self._has_bar:
            self._console.print(f"{stage} ({total:,})")

    def advance(self) -> None:
        """Take notice that a step is done."""
        self._progress.advance(self._task)
        # To draw each step would take longer than the work.
        if self._progress.tasks[0].completed % 50 == 0:
            self._progress.refresh()


@dataclass(frozen=True, slots=True)
class Request:
    """What to build, where to, and for which instant."""

    content: Path
    site_folder: Path
    """Its public files; before it, those of the build before, if they are to be taken over."""
    state: Path
    """Never public: the posts index and the manifest."""
    before: Path
    """The state of the build before; may be the same folder, or hold nothing."""
    cache: Path | None
    """The file that keeps results; None: they are kept in memory."""
    now: datetime
    """UTC; what is published later is left out."""
    jobs: int
    strict: bool = False
    observer: Observer = field(default_factory=Observer)
    kept: Path | None = None
    """The folder of the sources that builds keep; None: of a file with a fault nothing is shown."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a build came to."""

    build_id: str
    built_for: datetime
    """UTC; what is published later is left out."""
    posts: int
    files: int
    """Public files, compressed forms among them."""
    size: int
    """Bytes of all public files."""
    sources: int
    hits: int
    """Source files that the cache knew."""
    next_instant: datetime | None
    """When the next scheduled post or page appears."""
    findings: tuple[Diagnostic, ...]
    held: tuple[Held, ...] = ()
    """Files that are not shown as they are, for an error."""
