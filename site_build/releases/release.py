"""Releases: builds in folders of their own, and the link to the one that is served.

A build is made in a hidden folder and gets its name when it is complete; then one symbolic link is
replaced. If it ends before that, even by kill -9, the old build stays served, and the next build
removes its remains. A build begins with a copy of the served build, made ahead (the spare).
"""

import errno
import fcntl
import filecmp
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from edge_api.schema.index import (
    BUILD_LOCK,
    CURRENT_LINK,
    PREVIOUS_LINK,
    SITE_FOLDER,
    point_link,
)
from edge_api.schema.shares import list_shares
from site_build.build.manifest import MANIFEST_FILE, Entry, parse_rows, read_rows, remove_file
from site_build.build.memory import BuildMemory
from site_build.cache import locate_cache
from site_build.content.kept import KEPT_FOLDER, prune_sources
from site_build.errors import BuildError, BusyError, ContentError
from site_build.pelican_plugin.plugin import explain_disk_errors, quiet_pelican, run_pelican
from site_build.progress import Observer, Report, Request

NEXT_LINK = "next"
"""The link to a release that is ready and waits for its instant."""

_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{12}")
_STAGING = ".staging-"
_SPARE = ".spare"
"""A copy of the served build, made of hard links: the next build is made in it."""
_SECOND_SPARE = ".spare-ahead"
"""A second folder for builds: it becomes the spare when a build ahead has taken that.

To delete its files, and to link as many anew, takes longer than a build after an edit.
"""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Content, output and options of a build."""

    content: Path
    output: Path
    site_url: str
    """Origin, without a trailing slash."""
    now: datetime
    """The instant (UTC) of the build; texts with a later date are left out."""
    jobs: int
    strict: bool = False
    observer: Observer = field(default_factory=Observer)


def build(
    order: BuildOptions, memory: BuildMemory | None = None, *, is_ahead: bool = False
) -> Report:
    """Build the site and point `current` at it, or `next` if it is built ahead of its instant.

    Raises ContentError with all findings, BusyError while another build is at work, and BuildError
    for any other reason; the old build stays served then. Without a `memory` nobody is going to
    build ahead, so a withdrawn build is deleted.
    """
    is_watched, memory = memory is not None, memory or BuildMemory()
    # The garbage collector is on again once the link is replaced, and searches while nobody waits.
    with _exclusive(order.output, keeps_second_spare=is_watched), quiet_pelican():
        # The build after one that is made ahead follows the one that is served.
        report = _make(order, replace(memory, plan=None) if is_ahead else memory)
        if is_ahead:
            _point(order.output, NEXT_LINK, report.build_id)
        else:
            _serve(order.output, report.build_id)
    return report


def serve_prepared(output: Path, build_id: str, *, keeps_second_spare: bool) -> bool:
    """Point `current` at this build if `next` points at it; return whether it does.

    An old build is kept as the second spare if another one is going to be built ahead
    (`keeps_second_spare`). Raises BusyError and BuildError.
    """
    with _exclusive(output, keeps_second_spare=keeps_second_spare):
        if _follow(output, NEXT_LINK) != build_id:
            return False
        _serve(output, build_id)
        (output / NEXT_LINK).unlink()
    return True


def withdraw(output: Path, *, keeps_second_spare: bool) -> None:
    """Remove the link `next`; its build is deleted unless another one is going to be built ahead.

    That is made in its folder (`keeps_second_spare`). Raises BusyError and BuildError.
    """
    if (output / NEXT_LINK).is_symlink() or (
        not keeps_second_spare and (output / _SECOND_SPARE).exists()
    ):
        with _exclusive(output, keeps_second_spare=keeps_second_spare):
            (output / NEXT_LINK).unlink(missing_ok=True)


@contextmanager
def _exclusive(output: Path, *, keeps_second_spare: bool) -> Iterator[None]:
    """Lock the folder of builds, and tidy it at the end; raises BusyError if it is locked."""
    with explain_disk_errors(output):
        output.mkdir(parents=True, exist_ok=True)
        with (output / BUILD_LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(
                    f"another build is at work in {output}; wait until it has ended", 2
                ) from None
            yield
            _prune(output, keeps_second_spare=keeps_second_spare)


def _make(order: BuildOptions, memory: BuildMemory) -> Report:
    """Build into a hidden folder and give it its name."""
    for remains in order.output.glob(f"{_STAGING}*"):  # a killed build leaves its folder
        shutil.rmtree(remains, ignore_errors=True)
    output = order.output.absolute()
    before, spare = output / (_follow(output, CURRENT_LINK) or CURRENT_LINK), output / _SPARE
    staging = output / f"{_STAGING}{os.getpid()}"
    _update_spare(spare, before)
    spare.rename(staging)
    try:
        request = Request(
            content=order.content,
            site_folder=staging / SITE_FOLDER,
            state=staging,
            previous_state=before,
            cache=locate_cache(order.output),
            now=order.now,
            jobs=order.jobs,
            strict=order.strict,
            observer=order.observer,
            kept_sources=output / KEPT_FOLDER,
        )
        report = run_pelican(request, order.site_url, memory)
        _move_into_place(staging, output / report.build_id)
    except ContentError:  # Nothing was written, so the folder is still a spare.
        staging.rename(spare)
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return report


def _move_into_place(staging: Path, target: Path) -> None:
    """Rename the finished folder; if the same build exists, replace its files one by one."""
    if not target.exists():
        staging.rename(target)
        return
    for folder, _, names in os.walk(staging):
        place = target / Path(folder).relative_to(staging)
        place.mkdir(exist_ok=True)
        for name in names:
            Path(folder, name).replace(place / name)


def _serve(output: Path, build_id: str) -> None:
    old = _follow(output, CURRENT_LINK)
    if old not in {None, build_id}:
        _point(output, PREVIOUS_LINK, str(old))
    _point(output, CURRENT_LINK, build_id)


def _follow(output: Path, link: str) -> str | None:
    """Return the name of the build that a link points at, or None if there is none."""
    try:
        name = (output / link).readlink().name
    except OSError:
        return None
    return name if _NAME.fullmatch(name) and (output / name).is_dir() else None


def _point(output: Path, link: str, build_id: str) -> None:
    if (output / link).is_dir() and not (output / link).is_symlink():
        raise BuildError(f"{output / link} is a folder, not the link that a build makes; move it")
    point_link(output, link, build_id)


def _prune(output: Path, *, keeps_second_spare: bool) -> None:
    """Remove every build without a link; one that cannot be removed now is removed next time.

    One of them becomes the spare if there is none, and one the second spare. The spare is updated
    to the served build now, while nobody waits.
    """
    wanted = {_follow(output, link) for link in (CURRENT_LINK, PREVIOUS_LINK, NEXT_LINK)}
    spare, second = output / _SPARE, output / _SECOND_SPARE
    with suppress(OSError):
        for path in output.iterdir():
            if path == second or (_NAME.fullmatch(path.name) and path.name not in wanted):
                if not spare.exists():
                    path.rename(spare)
                elif not keeps_second_spare or (second.exists() and path != second):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.rename(second)  # does nothing if it is the second spare
        prune_sources(output / KEPT_FOLDER, (output / each for each in wanted if each))
        list_shares(output, datetime.now(UTC))  # it deletes expired ones
        if current := _follow(output, CURRENT_LINK):
            _update_spare(spare, output / current)


def _update_spare(spare: Path, release: Path) -> None:
    """Make `spare` hold the public files of the build `release`, and no others.

    A spare has a manifest only while its files are as the manifest says: one that was left half
    done has none, and is made anew. Raises OSError.
    """
    if spare.is_symlink() or spare.is_file():
        spare.unlink()  # A link is removed, and its target left alone.
    with suppress(OSError):
        if filecmp.cmp(spare / MANIFEST_FILE, release / MANIFEST_FILE) and read_rows(spare):
            return
    held, wanted = _strip_spare(spare), read_rows(release)
    surplus, missing = parse_rows(held - wanted), parse_rows(wanted - held)
    for path in _list_differing(surplus, missing):
        remove_file(spare / SITE_FOLDER, path)
    made = set()
    for path in _list_differing(missing, surplus):
        old, new = f"{release}/{SITE_FOLDER}/{path}", f"{spare}/{SITE_FOLDER}/{path}"
        folder = new.rpartition("/")[0]
        if folder not in made:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103  called for every folder of the site
            made.add(folder)
        with suppress(FileNotFoundError):
            _link(old, new)
    with suppress(FileNotFoundError):  # before the first build there is no manifest
        _link(release / MANIFEST_FILE, spare / MANIFEST_FILE)


def _strip_spare(spare: Path) -> frozenset[bytes]:
    """Remove all but the public files from a spare; return the manifest's rows of these."""
    held = read_rows(spare)
    if not held:
        shutil.rmtree(spare, ignore_errors=True)
    spare.mkdir(exist_ok=True)
    (spare / MANIFEST_FILE).unlink(missing_ok=True)
    for path in spare.iterdir():
        if path.is_dir() and path.name != SITE_FOLDER:
            shutil.rmtree(path)
        elif path.name != SITE_FOLDER:
            path.unlink()
    return held


def _list_differing(entries: dict[str, Entry], others: dict[str, Entry]) -> Iterator[str]:
    """Yield paths of files that `others` lacks, or has with other sizes or times."""
    for path, entry in entries.items():
        other = others.get(path)
        if not other or (other.sizes, other.mtimes) != (entry.sizes, entry.mtimes):
            yield from entry.list_paths()


def _link(old: str | Path, new: str | Path) -> None:
    """Make a hard link to a file, or a copy if the file system has no hard links."""
    try:
        os.link(old, new)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP}:
            raise
        with suppress(IsADirectoryError):
            shutil.copy2(old, new)
