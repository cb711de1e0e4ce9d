"""Verification that the replica and the newest backup of a SQLite store can be restored.

A serving edge runs this module once a day as a process; `doctor --deep` does it at once. The
results are stored beside the store.
"""

import fcntl
import hashlib
import json
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from edge_api.auth.actor import system_clock
from edge_api.backup.files import (
    checksum_path,
    file_sha256,
    read_checksum,
    replace_private,
    write_private,
)
from edge_api.backup.replica import SYNC_TIMEOUT_SECONDS, fetch_latest
from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.copying import count_lost, record_keys, verify_copy
from edge_api.db.sqlite.opening import sync
from edge_api.db.sqlite.processes import ReplicatorError, sync_replica
from edge_api.db.types import format_instant
from edge_api.schema.environment import EDGE
from edge_api.schema.heartbeat import find_edge
from edge_api.schema.writing import locate_var
from edge_api.settings import Settings, read_settings

PARTS: Final[Mapping[str, str]] = {
    "replica": "the replica",
    "backup": "the newest backup",
    "archive": "the newest archive",
}
"""The parts that are verified, one result each, with their names in messages."""
DUE_SECONDS: Final = 24 * 3600.0  # age of a good result before the next verification
RETRY_SECONDS: Final = 120.0
"""The age of a bad result before the next verification: that all is well again is soon known."""
STALE_SECONDS: Final = 2 * DUE_SECONDS  # age of a good result that is outdated
MAX_RUN_SECONDS: Final = 6 * 3600  # then the process is ended
PAUSE_SECONDS: Final = 2.0  # before the second attempt
MIN_FREE_BYTES: Final = 128 * 1024 * 1024  # bytes that stay free beside a copy of the store
_REPLICA_FIX: Final = (
    f"start a new replica: {EDGE} backup, end the edge, set LITESTREAM_REPLICA to an empty place, "
    "start the edge"
)
_COMMANDS: Final = {"backup": f"{EDGE} backup", "archive": f"{EDGE} backup --all"}
_FIXES: Final = {part: f"make a new one: {command}" for part, command in _COMMANDS.items()}
DEEP_HINT: Final = f"run {EDGE} doctor --deep"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of the last verification of one part."""

    subject: str  # the SHA-256 of a replica's address, or the path of a backup
    at: str  # the instant of the verification, in the format of the store
    public_error: str = ""  # what is wrong, without path and address, or empty
    detail: str = ""  # for the operator
    made_at: str = ""  # the instant when a backup was made
    digest: str = ""  # the SHA-256 of a backup when it was made
    failure: str = ""  # why the last attempt at a newer backup failed
    count: int = 0  # how many backups were made

    @property
    def age(self) -> float:
        """The seconds since the verification; infinite if the clock was set back since."""
        return _age(self.at)

    @property
    def age_of_backup(self) -> float:
        """The seconds since the backup was made; infinite if there is none."""
        return _age(self.made_at) if self.made_at else math.inf

    def find_error(self, part: str, settings: Settings) -> str:
        """Return the error, without a path, or an empty text.

        A copy that alone has what it keeps must not be old.
        """
        if self.public_error:
            return self.public_error
        if self.failure:
            return f"the last {part} failed, and " + (
                f"the newest is of {self.made_at}" if self.made_at else "there is none yet"
            )
        if is_only_copy(part, settings) and self.age_of_backup > STALE_SECONDS:
            return f"{PARTS[part]} is older than 2 days"
        if self.age > STALE_SECONDS:
            return f"{PARTS[part]} has not been verified for more than 2 days"
        return ""


def is_only_copy(part: str, settings: Settings) -> bool:
    """Return whether nothing else keeps what a part keeps, so that it must not be old."""
    only = {"backup": not settings.litestream_replica, "archive": bool(settings.backup_recipient)}
    return only.get(part, False)


def _age(instant: str) -> float:
    seconds = (system_clock() - datetime.fromisoformat(instant)).total_seconds()
    return seconds if seconds >= 0 else math.inf


# The names in the stored JSON, in the order of the fields of `Verification`.
_MEMBERS: Final = ("subject", "at", "fault", "reason", "made_at", "digest", "failure", "count")


class _VerificationError(Exception):
    """A verification has found an error; the arguments are its `public_error` and `detail`."""


def change_result(
    settings: Settings, part: str, change: Callable[[Verification | None], Verification | None]
) -> None:
    """Replace the stored result by what `change` makes of it; `None` leaves it. Raises OSError.

    No other process changes it in between.
    """
    path = _result_path(settings, part)
    lock = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if result := change(read_result(settings, part)):
            members = dict(zip(_MEMBERS, astuple(result), strict=True))
            replace_private(path, json.dumps(members).encode())
    finally:
        os.close(lock)


@contextmanager
def recording_failure(settings: Settings, part: str) -> Iterator[None]:
    """Store why a new copy failed: readiness, doctor and alerts report it from that."""
    try:
        yield
    except StoreRefusal as refusal:
        none, failure = Verification("", format_instant(system_clock())), str(refusal)
        with suppress(OSError):
            change_result(settings, part, lambda kept: replace(kept or none, failure=failure))
        raise


def publish_copy(
    settings: Settings, part: str | None, draft: Path, target: Path, made_at: str
) -> None:
    """Give a verified copy its name, with its checksum beside it, and store that it was made.

    Nothing is stored of `None`. Raises OSError.
    """
    digest = file_sha256(draft)
    write_private(checksum_path(target), f"{digest}  {target.name}\n".encode())
    draft.rename(target)
    sync(target.parent)
    if part is None:
        return
    made = Verification(str(target.resolve()), made_at, made_at=made_at, digest=digest)
    change_result(
        settings, part, lambda former: replace(made, count=former.count + 1 if former else 1)
    )


def read_result(settings: Settings, part: str) -> Verification | None:
    """Return the last result for this replica or the newest backup, if there is one."""
    if settings.database_path is None and part != "archive":
        return None
    try:
        members = dict(json.loads(_result_path(settings, part).read_bytes()))
        given = [members.get(name, "") for name in _MEMBERS]
        result = replace(Verification(*given[:-1]), count=int(given[-1] or 0))
        datetime.fromisoformat(result.at)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        message = f"the last result of verifying {PARTS[part]} cannot be read"
        return Verification("", format_instant(datetime.fromtimestamp(0, UTC)), message, str(error))
    of_another = part == "replica" and result.subject != _replica_digest(settings)
    return None if of_another else result


def parts_due(settings: Settings) -> Sequence[str]:
    """Return the parts whose verification is due."""

    def is_due(result: Verification | None) -> bool:
        after = RETRY_SECONDS if result and result.public_error else DUE_SECONDS
        return result is None or result.age >= after

    return tuple(part for part in _existing_parts(settings) if is_due(read_result(settings, part)))


def verify_parts(settings: Settings, parts: Sequence[str]) -> None:
    """Verify parts, and store the results.

    Raises OSError, and StoreRefusal if another verification is under way.
    """
    with scratch_folder(store_place(settings)) as folder:
        for part in parts:
            result = _verify(settings, part, folder)
            change_result(settings, part, partial(_judge, part, result))


def _judge(part: str, found: Verification, kept: Verification | None) -> Verification | None:
    """Return what to store: what was found, and what backups have stored meanwhile."""
    if kept and kept.subject == found.subject:
        return replace(kept, at=found.at, public_error=found.public_error, detail=found.detail)
    return found if part == "replica" else None  # a newer backup has a result of its own


def report_verifications(settings: Settings, *, deep: bool) -> tuple[Sequence[str], Sequence[str]]:
    """Return errors and notes of the last verifications, or with `deep` of new ones."""
    errors: list[str] = []
    notes: list[str] = []
    if settings.database_path is None and deep:
        notes.append("--deep is for stores in a SQLite file, and for archives")
    if deep and store_place(settings).parent.is_dir():
        try:
            verify_parts(settings, _existing_parts(settings))
        except (StoreRefusal, OSError) as error:
            errors.append(f"nothing could be verified: {error}")
    for part in PARTS:
        result = read_result(settings, part)
        if result and (public_error := result.find_error(part, settings)):
            fix = f"let a timer run {_COMMANDS[part]}" if result.made_at else DEEP_HINT
            errors.append(f"{public_error} ({result.detail or result.failure or fix})")
        elif result:
            made = f" (made at {result.made_at})" if result.made_at else ""
            notes.append(f"{PARTS[part]}{made} is whole: verified at {result.at}")
        elif part == "replica" and settings.litestream_replica:
            notes.append(f"the replica has not been verified yet; {DEEP_HINT}")
        elif part == "backup" and deep and settings.database_path:
            notes.append(f"there is no backup: {EDGE} backup makes one")
        elif part == "archive" and settings.backup_recipient:
            errors.append(f"there is no archive yet: let a timer run {EDGE} backup --all")
    return errors, notes


@contextmanager
def scratch_folder(store: Path) -> Iterator[Path]:
    """Create, lock and empty the folder for scratch files; remove it at the end.

    Raises OSError, and StoreRefusal if another process has locked it.
    """
    folder = _scratch_path(store)
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(lock).st_nlink:  # its holder has just removed it
            raise BlockingIOError  # noqa: TRY301  handled like a lock that is held
        _empty_folder(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
    except BlockingIOError:
        raise StoreRefusal("another verification is under way: wait for it") from None
    finally:
        os.close(lock)


def clear_scratch(settings: Settings) -> None:
    """Remove the folder for scratch files, unless another process uses it."""
    store = store_place(settings)
    with suppress(StoreRefusal, OSError):
        if _scratch_path(store).exists():
            with scratch_folder(store):
                pass


def store_place(settings: Settings) -> Path:
    """Return the path of the store, or with PostgreSQL the one beside which results are."""
    var = locate_var(settings.database_url, settings.build_dir)
    return (settings.database_path or var / "edge.db").resolve()


def _result_path(settings: Settings, part: str) -> Path:
    store = store_place(settings)
    return store.with_name(f"{store.name}-{part}.json")


def _scratch_path(store: Path) -> Path:
    return store.with_name(f".{store.name}-verifying")


def _replica_digest(settings: Settings) -> str:
    """Return a digest of the replica's address, which may hold a password."""
    return hashlib.sha256((settings.litestream_replica or "").encode()).hexdigest()


def _existing_parts(settings: Settings) -> Sequence[str]:
    exists = {"replica": settings.litestream_replica is not None}
    for part in ("backup", "archive"):
        result = read_result(settings, part)
        exists[part] = result is not None and bool(result.subject)
    return tuple(part for part in PARTS if exists[part])


def _verify(settings: Settings, part: str, folder: Path) -> Verification:
    """Verify a part and return the result.

    An error must be found twice, since Litestream may end, or compact files, meanwhile.
    """
    now = format_instant(system_clock())
    result = Verification(_replica_digest(settings), now)
    if part != "replica":
        result = replace(read_result(settings, part) or result, at=now, public_error="", detail="")
    for attempt in range(2):
        time.sleep(PAUSE_SECONDS if attempt else 0)
        try:
            if part != "replica":
                _verify_backup(part, Path(result.subject), result.digest)
            else:
                _verify_replica(settings, folder)
        except _VerificationError as found:
            public_error, detail = found.args
            _empty_folder(folder)
        else:
            return result
    return replace(result, public_error=public_error, detail=detail)


def _verify_replica(settings: Settings, folder: Path) -> None:
    """Sync the replica, restore it, and compare it with the store.

    The restored file must be whole, which Litestream checks, have every synced transaction, and
    have every row that was in the store before the sync and still is (`count_lost`). If no edge is
    running, nothing is synced, and rows that the last one did not replicate are reported.
    """
    store, draft, keys = store_place(settings), folder / "replica.db", folder / "keys.db"
    with _translate_errors("the replica cannot be verified"):
        _require_disk_space(store)
        record_keys(store, keys)
        synced = sync_replica(store, SYNC_TIMEOUT_SECONDS) if find_edge(store) else 0
    with _translate_errors("the replica cannot be restored", _REPLICA_FIX):
        restored = fetch_latest(settings, draft)
    with _translate_errors("the replica cannot be verified"):
        lost = count_lost(store, keys, draft)
    if restored < synced:
        raise _VerificationError(
            "the replica lacks what was committed last",
            f"it ends with transaction {restored} of {synced}",
        )
    if lost:
        rows = (f"{count} row{'s' * (count > 1)} of {table}" for table, count in lost.items())
        raise _VerificationError(
            f"the replica lacks {', '.join(rows)}", f"they are in the store; {_REPLICA_FIX}"
        )


def _verify_backup(part: str, path: Path, digest: str) -> None:
    """Verify a backup; of an archive, which only the owner can decrypt, its bytes are compared."""
    with _translate_errors(f"{PARTS[part]} cannot be read"):
        is_there = path.is_file()
        found = file_sha256(path) if is_there else ""
        is_same = found == digest and read_checksum(path) in (None, digest)
    if not is_there:
        raise _VerificationError(
            f"{PARTS[part]} is not where it was made", f"{path}; {_FIXES[part]}"
        )
    if part == "backup":
        with _translate_errors("the newest backup is damaged", _FIXES[part]):
            verify_copy(path)
    if not is_same:
        raise _VerificationError(
            f"{PARTS[part]} was changed since it was made", f"{path}; {_FIXES[part]}"
        )


def _require_disk_space(store: Path) -> None:
    log = store.with_name(f"{store.name}-wal")
    size = store.stat().st_size + (log.stat().st_size if log.exists() else 0)
    needed = size + size // 4 + MIN_FREE_BYTES  # the recorded keys take less than a quarter
    free = shutil.disk_usage(store.parent).free
    if free < needed:
        raise _VerificationError(
            "the replica cannot be verified: the disk has too little room",
            f"{needed >> 20} MB are needed, {free >> 20} MB are free",
        )


@contextmanager
def _translate_errors(public_error: str, fix: str = "") -> Iterator[None]:
    """Translate a refusal to an error whose detail says how to fix it."""
    try:
        yield
    except (StoreRefusal, ReplicatorError, OSError) as error:
        detail = str(error).removeprefix(f"{public_error}: ")
        raise _VerificationError(public_error, "; ".join(filter(None, (detail, fix)))) from None


def _empty_folder(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def main() -> None:
    """Verify the parts that are named, as the process that an edge starts."""
    os.nice(19)  # the lowest priority
    signal.alarm(MAX_RUN_SECONDS)
    with suppress(StoreRefusal):  # another process verifies
        verify_parts(read_settings(os.environ), sys.argv[1:])


if __name__ == "__main__":
    main()
