"""What a build is asked for, and what it answers: frozen values between commands and builds."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from site_build.post import Finding
from site_build.progress import Observer, Silence


@dataclass(frozen=True, slots=True)
class Place:
    """Where a build lies."""

    site: Path
    """Its public files; before it, those of the build before, if they are to be taken over."""
    state: Path
    """Never public: the posts index and the ledger."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to build, where to, and for which instant."""

    content: Path
    place: Place
    before: Path
    """The state of the build before; may be the same folder, or hold nothing."""
    cache: Path
    """The cache's file."""
    now: datetime
    """UTC; what is published later is left out."""
    jobs: int
    """Processes."""
    strict: bool = False
    """Let warnings count as errors."""
    observer: Observer = field(default_factory=Silence)


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
    kept: int
    """Public files taken over from the build before."""
    sources: int
    hits: int
    """Source files that the cache knew."""
    next_instant: datetime | None
    """When the next scheduled post or page appears."""
    findings: tuple[Finding, ...]
    """Warnings."""
