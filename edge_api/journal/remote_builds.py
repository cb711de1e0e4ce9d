"""Fetches builds that were pushed to a bucket into BUILD_DIR, where `BuildManager` finds them.

A build is put together beside the others, from files of the served build and objects whose digests
fit, and gets its name when it is complete; then the link `current` is replaced. A fetch that is cut
off or killed goes on where it was, and nothing of it is served.
"""

import asyncio
import errno
import fcntl
import logging
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Final

import obstore
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from obstore.store import ObjectStore

from edge_api.db.types import format_instant
from edge_api.schema.environment import read_key
from edge_api.schema.index import CURRENT_LINK, PREVIOUS_LINK, point_link
from edge_api.schema.pushed_builds import (
    POINTER,
    BucketError,
    Files,
    Pointer,
    explain_errors,
    is_private,
    make_cipher,
    open_bucket,
    read_manifest,
    read_object,
)
from edge_api.schema.shares import SHARES
from edge_api.settings import Settings

FETCH_SECONDS: Final = 1.5
"""The interval at which an edge looks for a new pointer."""
_MANIFEST_FILE: Final = "pushed.json.gz"
"""A file of a fetched build: its manifest."""
_ACCEPTED: Final = ".pointer"
"""A file in BUILD_DIR: the last pointer that was accepted."""
_FETCHED: Final = "fetched-"
"""The beginning of the names of fetched builds in BUILD_DIR."""
_UNREAD: Final = "unread"
"""A file of a fetched build some of whose private files could not be decrypted."""
_PARALLEL: Final = 16

_log = logging.getLogger(__name__)


class RemoteBuilds:
    """Follows the pointer in a bucket."""

    def __init__(self, settings: Settings, secret: bytes) -> None:
        self._url = settings.build_url or ""
        self._keys = [Ed25519PublicKey.from_public_bytes(read_key(e)) for e in settings.build_key]
        self._build_dir, self._cipher = settings.build_dir, make_cipher(secret)
        self._is_over = False
        self.error = ""
        """The reason why the newest build cannot be fetched, for everybody; empty if it is here."""

    async def refresh(self) -> None:
        """Fetch and serve the build of a new pointer. A failure is kept in `error`."""
        error = detail = ""
        try:
            await asyncio.to_thread(self._serve, *await self.look())
            error = detail = self.find_unread()
        except asyncio.CancelledError:
            self._is_over = True  # the thread ends after the objects that it fetches now
            raise
        except BucketError as refused:
            error, detail = f"new builds cannot be fetched: {refused}", refused.detail
        except OSError as failed:
            error, detail = f"a new build cannot be stored: {failed.strerror}", str(failed)
        if error and error != self.error:
            _log.warning("BUILD_URL: %s", detail)
        self.error = error

    def find_unread(self) -> str:
        """Return an error if private files of the served build could not be decrypted."""
        return (
            "shared drafts cannot be read, since they were pushed with another SECRET_KEY: set one "
            "for all edges and the machine that pushes"
            if (self._build_dir / CURRENT_LINK / _UNREAD).exists()
            else ""
        )

    @cached_property
    def _store(self) -> ObjectStore:
        return open_bucket(self._url)

    async def look(self) -> tuple[bytes, Pointer]:
        """Return the pointer, as it is stored and read.

        Raises BucketError if it is missing, not signed or older than the last accepted one.
        """
        with explain_errors("no build has been pushed to it"):
            # Not in a thread: the edge could not end while the bucket is silent.
            found = await obstore.get_async(self._store, POINTER)
            # Nobody has verified it yet, so one that is too long is not read.
            raw = bytes(await found.bytes_async()) if found.meta["size"] <= 64 << 10 else b""
        pointer = last = Pointer.read(raw, self._keys)
        # One that was signed with a former key is ignored: so are all others of that key.
        with suppress(FileNotFoundError, BucketError):
            last = Pointer.read((self._build_dir / _ACCEPTED).read_bytes(), self._keys)
        if pointer.sequence < last.sequence:
            raise BucketError(
                f"its pointer is of {format_instant(pointer.time)}, and one with a higher number, "
                f"of {format_instant(last.time)}, was there before: push again",
                "if that clock was wrong, and its pointer is lost: "
                f"rm {self._build_dir / _ACCEPTED}",
            )
        return raw, pointer

    def _serve(self, raw: bytes, pointer: Pointer) -> None:
        """Serve the build of a pointer, unless another process does. Raises BucketError, OSError.

        The pointer is noted first, so that none before it is accepted any more.
        """
        self._build_dir.mkdir(parents=True, exist_ok=True)
        accepted = self._build_dir / _ACCEPTED
        # Named for the secret too, so that with another one private files are fetched again.
        name = self._cipher.encrypt(pointer.manifest.encode(), None).hex()[:12]
        folder = self._build_dir / f"{_FETCHED}{pointer.build_id}-{name}"
        with suppress(BlockingIOError), (self._build_dir / ".fetch.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            served, previous = (
                self._build_dir / (self._build_dir / link).resolve().name
                for link in (CURRENT_LINK, PREVIOUS_LINK)
            )
            staging = folder.with_name(f".{folder.name}")
            # Also those that were built here; first, since even the note below needs room.
            old = {*self._build_dir.glob(f"*{_FETCHED}*"), *self._build_dir.glob("[0-9]*T*Z-*")}
            for each in old - {staging, served, previous}:
                shutil.rmtree(each, ignore_errors=True)
            if not accepted.exists() or accepted.read_bytes() != raw:
                (draft := accepted.with_suffix(".new")).write_bytes(raw)
                draft.replace(accepted)
            if served == folder and served.is_dir():
                return
            manifest = read_object(self._store, pointer.manifest)
            try:
                self._put_together(staging, read_manifest(manifest), served)
                (staging / _MANIFEST_FILE).write_bytes(manifest)
            except OSError:  # the disk may be full, and whatever else is on it needs room
                shutil.rmtree(staging, ignore_errors=True)
                raise
            shutil.rmtree(folder, ignore_errors=True)
            staging.replace(folder)
            shutil.rmtree(self._build_dir / SHARES, ignore_errors=True)
            with suppress(FileNotFoundError):
                shutil.copytree(folder / SHARES, self._build_dir / SHARES)
            os.sync()  # or a power cut could leave empty files behind the link
            if served.is_dir():
                point_link(self._build_dir, PREVIOUS_LINK, served.name)
            point_link(self._build_dir, CURRENT_LINK, folder.name)
            _log.info("fetched build %s, pushed at %s", pointer.build_id, pointer.time)

    def _put_together(self, staging: Path, files: Files, before: Path) -> None:
        """Bring a folder to hold the files of a manifest. Raises BucketError, OSError."""
        former: Files = {}
        with suppress(OSError, BucketError):
            former = read_manifest((before / _MANIFEST_FILE).read_bytes())
        missing = list[str]()
        for path, segments in files.items():
            place, size = staging / path, sum(size for _, size in segments)
            place.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # it is there, or a file system has no hard links
                if former.get(path) == segments:
                    os.link(before / path, place)
            # A fetch that was killed may have left half a file, and a crash an empty one.
            if not place.is_file() or place.stat().st_size != size:
                place.unlink(missing_ok=True)  # it may be a link to a file that is served
                missing.append(path)
        # Otherwise it would be fetched again and again.
        needed = (size for path in missing for _, size in files[path])
        if sum(needed) > shutil.disk_usage(self._build_dir).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def make(path: str) -> None:
            if self._is_over:
                raise BucketError("the edge ends")
            old, place = former.get(path, []), before / path
            sizes = accumulate((size for _, size in old), initial=0)
            offsets = dict(zip((digest for digest, _ in old), sizes, strict=False))
            source = place if place.is_file() else Path(os.devnull)
            with (staging / path).open("wb") as file, source.open("rb") as there:
                for digest, size in files[path]:
                    there.seek(offsets.get(digest, 0))
                    data = there.read(size)
                    if sha256(data).hexdigest() != digest:
                        data = read_object(self._store, digest, size + 16)  # encrypted
                        if is_private(path):
                            try:
                                data = self._cipher.decrypt(data, [path.encode()])
                            except InvalidTag:  # the build itself is good
                                data = b""
                                (staging / _UNREAD).touch()
                    file.write(data)

        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(make, missing))
