"""Fetches builds that were pushed to a bucket into BUILD_DIR, where `BuildManager` finds them.

A build is put together beside the others, from files of the served build and objects whose digests
fit, and gets its name when it is complete; then the link `current` is replaced. A fetch that is cut
off or killed goes on where it was, and nothing of it is served.
"""

import asyncio
import fcntl
import logging
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

import obstore
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from obstore.store import ObjectStore

from edge_api.db.types import format_instant
from edge_api.schema.environment import read_key
from edge_api.schema.index import CURRENT_LINK, PREVIOUS_LINK, point_link
from edge_api.schema.pushed_builds import (
    POINTER,
    BucketError,
    Manifest,
    Pointer,
    decrypt_share,
    explain_errors,
    make_share_cipher,
    open_bucket,
    read_object,
)
from edge_api.schema.shares import locate_share
from edge_api.settings import Settings

FETCH_SECONDS: Final = 1.5
"""The interval at which an edge looks for a new pointer."""
_PAUSE_SECONDS: Final = 3.0
"""A further pause after a failure, since what was tried may be large."""
_MANIFEST_FILE: Final = "pushed.json.gz"
"""A file of a fetched build: its manifest."""
_ACCEPTED: Final = ".pointer"
"""A file in BUILD_DIR: the last pointer that was accepted."""
_STAGING: Final = ".fetching-"
_PARALLEL: Final = 16

_log = logging.getLogger(__name__)


class RemoteBuilds:
    """Follows the pointer in a bucket."""

    def __init__(self, settings: Settings, secret: bytes) -> None:
        self._url = settings.build_url or ""
        self._keys = [Ed25519PublicKey.from_public_bytes(read_key(e)) for e in settings.build_key]
        self._build_dir, self._cipher = settings.build_dir, make_share_cipher(secret)
        self._is_over = threading.Event()
        self._seen = b""
        self.pushed_at = ""
        """The instant at which the last pointer was pushed; empty before one was read."""
        self.error = ""
        """The reason why the newest build cannot be fetched, for everybody; empty if it is here."""

    async def refresh(self) -> None:
        """Fetch and serve the build of a new pointer. A failure is kept in `error`."""
        error = detail = ""
        try:
            pointer = await self.look()
            await asyncio.to_thread(self._serve, pointer)
        except BucketError as refused:
            error, detail = f"new builds cannot be fetched: {refused}", refused.detail
        except OSError as failed:
            error, detail = f"a new build cannot be stored: {failed.strerror}", str(failed)
        if error and error != self.error:
            _log.warning("BUILD_URL: %s", detail)
        self.error = error
        if error:
            await asyncio.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Have a fetch that is under way end soon."""
        self._is_over.set()

    @cached_property
    def _store(self) -> ObjectStore:
        return open_bucket(self._url)

    async def look(self) -> Pointer:
        """Return the pointer. Raises BucketError if it is missing, not signed or an old one."""
        with explain_errors():
            try:
                # Not in a thread: the edge could not end while the bucket is silent.
                found = await obstore.get_async(self._store, POINTER)
                raw = bytes(await found.bytes_async())
            except FileNotFoundError:
                raise BucketError("no build has been pushed to it") from None
        pointer, last = Pointer.read(raw, self._keys), None
        # One that was signed with a former key is ignored: so are all others of that key.
        with suppress(FileNotFoundError, BucketError):
            last = Pointer.read((self._build_dir / _ACCEPTED).read_bytes(), self._keys)
        if last and (pointer.sequence, pointer.time) < (last.sequence, last.time):
            raise BucketError(
                f"its pointer is of {format_instant(pointer.time)}, and one of "
                f"{format_instant(last.time)} was there before: push again"
            )
        self.pushed_at = format_instant(pointer.time)
        self._seen = raw
        return pointer

    def _serve(self, pointer: Pointer) -> None:
        if self._served() != pointer.folder:
            self._fetch(pointer)
        else:  # the same build may have been pushed again, after another one
            self._accept()

    def _accept(self) -> None:
        """Note the last pointer, so that no older one is accepted any more. Raises OSError."""
        with suppress(FileNotFoundError):
            if (self._build_dir / _ACCEPTED).read_bytes() == self._seen:
                return
        draft = self._build_dir / f"{_ACCEPTED}-{os.getpid()}"
        draft.write_bytes(self._seen)
        draft.replace(self._build_dir / _ACCEPTED)

    def _served(self) -> str:
        """Return the name of the served build's folder; empty if there is none."""
        link = self._build_dir / CURRENT_LINK
        return link.readlink().name if link.is_symlink() and link.is_dir() else ""

    def _fetch(self, pointer: Pointer) -> None:
        """Fetch a build, unless another process does, and serve it. Raises BucketError, OSError."""
        self._build_dir.mkdir(parents=True, exist_ok=True)
        with (self._build_dir / ".fetch.lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            folder, served = self._build_dir / pointer.folder, self._served()
            raw = read_object(self._store, pointer.manifest)
            manifest = Manifest.unpack(raw)
            if not (folder / _MANIFEST_FILE).is_file():
                staging = self._build_dir / f"{_STAGING}{pointer.folder}"
                self._put_together(staging, manifest, self._build_dir / CURRENT_LINK)
                (staging / _MANIFEST_FILE).write_bytes(raw)
                staging.replace(folder)
            self._fetch_shares(manifest)
            self._accept()  # before the link, lest an older one be accepted after a kill
            if served:
                point_link(self._build_dir, PREVIOUS_LINK, served)
            point_link(self._build_dir, CURRENT_LINK, pointer.folder)
            _log.info("fetched build %s, pushed at %s", pointer.build_id, self.pushed_at)
            for each in {*self._build_dir.glob("[!.]*")} - {self._build_dir / served, folder}:
                if (each / _MANIFEST_FILE).is_file() and not each.is_symlink():
                    # So that the next fetch knows what is left if this process is killed.
                    each.rename(self._build_dir / f"{_STAGING}{each.name}")
            for each in self._build_dir.glob(f"{_STAGING}*"):
                shutil.rmtree(each, ignore_errors=True)

    def _put_together(self, staging: Path, manifest: Manifest, before: Path) -> None:
        """Bring a folder to hold the files of a manifest. Raises BucketError, OSError."""
        former = Manifest(files={})
        with suppress(FileNotFoundError, BucketError):
            former = Manifest.unpack((before / _MANIFEST_FILE).read_bytes())
        known = {}
        for path, segments in former.files.items():
            offset = 0
            for digest, size in segments:
                known[digest] = path, offset
                offset += size

        def make(path: str) -> None:
            if self._is_over.is_set():
                raise BucketError("the edge ends")
            with (staging / path).open("wb") as file:
                for digest, size in manifest.files[path]:
                    data = b""
                    if digest in known:
                        with suppress(OSError), (before / known[digest][0]).open("rb") as old:
                            old.seek(known[digest][1])
                            data = old.read(size)
                    is_whole = sha256(data).hexdigest() == digest
                    file.write(data if is_whole else read_object(self._store, digest))

        missing, folders = list[str](), set[str]()
        for path, segments in manifest.files.items():
            place, size = staging / path, sum(size for _, size in segments)
            if (parent := path.rpartition("/")[0]) not in folders:
                place.parent.mkdir(parents=True, exist_ok=True)
                folders.add(parent)
            with suppress(OSError):  # it is there, or a file system has no hard links
                if former.files.get(path) == segments:
                    os.link(before / path, place)
            # A fetch that was killed may have left half a file, and a crash an empty one.
            if not place.is_file() or place.stat().st_size != size:
                place.unlink(missing_ok=True)
                missing.append(path)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for _ in pool.map(make, missing):
                pass

    def _fetch_shares(self, manifest: Manifest) -> None:
        """Bring the shared drafts to those of a manifest."""
        shares = locate_share(self._build_dir, "").parent
        shares.mkdir(exist_ok=True)
        for name in {each.name for each in shares.iterdir()} - manifest.shares.keys():
            shutil.rmtree(shares / name, ignore_errors=True)
        for name, digest in manifest.shares.items():
            try:
                if not (shares / name).is_dir():
                    encrypted = read_object(self._store, digest)
                    decrypt_share(shares / name, encrypted, self._cipher)
            except BucketError as error:  # the build itself is good
                _log.warning("a shared draft cannot be fetched: %s", error)
