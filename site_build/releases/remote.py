"""Pushes the served build to a bucket that edges fetch it from, or its site alone to a web host.

The pointer is replaced last: a push that fails, even by kill -9, changes nothing for edges. What it
has stored already is removed by a later push, a day later at the earliest.
"""

import fcntl
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import obstore
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import ObjectStore

from edge_api.schema.environment import BUILD
from edge_api.schema.index import CURRENT_LINK, SITE_FOLDER
from edge_api.schema.pushed_builds import (
    FILES,
    FOLDERS,
    POINTER,
    Manifest,
    Pointer,
    Segments,
    cut,
    encrypt_share,
    explain_errors,
    find_folder,
    locate_object,
    make_share_cipher,
    open_bucket,
    read_object,
)
from edge_api.schema.shares import list_shares
from edge_api.schema.site_policy import media_type
from site_build.errors import BuildError
from site_build.pelican_plugin.plugin import explain_disk_errors

STATIC_LIST: Final = "fore-edge-files.json"
"""The object at a web host that lists what was pushed, so that the files of others stay there."""
_GRACE: Final = timedelta(days=1)
"""How long objects stay that no build needs: a push that is under way may have stored them."""
_PARALLEL: Final = 16


def push(
    output: Path, url: str, key: Ed25519PrivateKey, secret: str = "", *, whole: bool = False
) -> str:
    """Push the served build, and with a secret its shares; return a sentence about it.

    With `whole`, store all objects again. Raises BuildError, and BucketError.
    """
    began, sizes = time.monotonic(), list[int]()
    with _opened(output, url) as (store, build, pool):
        former, version = _read(store, POINTER)
        before = Pointer.read(former, [key.public_key()]) if former else None
        stored = set[str]()
        if before and not whole:
            manifest = Manifest.unpack(read_object(store, before.manifest))
            stored = manifest.list_objects() | {before.manifest}

        def send(data: bytes) -> str:
            digest = sha256(data).hexdigest()
            if digest not in stored:
                with explain_errors():
                    obstore.put(store, locate_object(digest), data)
                stored.add(digest)
                sizes.append(len(data))
            return digest

        def send_file(path: str) -> Segments:
            return [(send(each), len(each)) for each in cut(build / path)]

        paths = [each for each in FILES if (build / each).is_file()]
        paths += [each for folder in FOLDERS for each in _list_files(build, folder)]
        shares = list_shares(output, datetime.now(UTC))
        cipher = make_share_cipher(secret.encode())
        manifest = Manifest(
            files=dict(zip(paths, pool.map(send_file, paths), strict=True)),
            shares={each.name: send(encrypt_share(each, cipher)) for each in shares if secret},
        )
        now = datetime.now(UTC)
        pointer = Pointer(
            # Of the clock, so that it grows even if the former pointer was lost or put back.
            sequence=max(before.sequence + 1 if before else 0, int(now.timestamp() * 1000)),
            time=now,
            build_id=build.name,
            manifest=send(manifest.pack()),
        )
        _replace_pointer(url, store, pointer.sign(key), former, version)
        # What the build before needs stays, since an edge may be fetching that.
        limit = datetime.now(UTC) - _GRACE
        with explain_errors():
            unused = [
                each["path"]
                for batch in obstore.list(store, "objects")
                for each in batch
                if each["path"].rpartition("/")[2] not in stored and each["last_modified"] < limit
            ]
            obstore.delete(store, unused)
    left = f"; {len(shares)} shared drafts stay here: set SECRET_KEY, that of the edges"
    return (
        f"{build.name} is pushed: {len(paths):,} files, {len(sizes):,} objects sent, "
        f"{sum(sizes) / 1_000_000:.1f} MB in {time.monotonic() - began:.1f} s; "
        f"{len(unused):,} old ones removed{left if shares and not secret else ''}"
    )


def push_static(output: Path, url: str) -> str:
    """Bring a web host's files to those of the served site; return a sentence about it.

    Pages are replaced after the files that they use; files that it did not push are left alone.
    Raises BuildError, and BucketError.
    """
    after, sent = dict[str, str](), list[str]()
    with _opened(output, url) as (store, build, pool):
        before: dict[str, str] = json.loads(_read(store, STATIC_LIST)[0] or b"{}")

        def put(path: str, data: bytes) -> None:
            more: dict[str, Any] = {"attributes": {"Content-Type": media_type(path)}}
            with explain_errors():  # a folder keeps no types
                obstore.put(store, path, data, **({} if find_folder(url) else more))

        def send(path: str) -> None:
            data = (build / SITE_FOLDER / path).read_bytes()
            after[path] = sha256(data).hexdigest()
            if before.get(path) != after[path]:
                put(path, data)
                sent.append(path)

        paths = [each.removeprefix(f"{SITE_FOLDER}/") for each in _list_files(build, SITE_FOLDER)]
        for is_page in (False, True):
            [*pool.map(send, [each for each in paths if each.endswith(".html") == is_page])]
        with explain_errors():
            obstore.delete(store, gone := [*(before.keys() - after.keys())])
        put(STATIC_LIST, json.dumps(after, sort_keys=True).encode())
    return f"{build.name} is pushed: {len(sent):,} files sent, {len(gone):,} removed"


@contextmanager
def _opened(output: Path, url: str) -> Iterator[tuple[ObjectStore, Path, ThreadPoolExecutor]]:
    """Give the bucket, the folder of the served build, and threads. Raises BuildError."""
    build = (output / CURRENT_LINK).resolve()
    if not build.is_dir():
        raise BuildError(f"{output} holds no build; run {BUILD} build")
    with explain_disk_errors(build), ThreadPoolExecutor(_PARALLEL) as pool:
        if folder := find_folder(url):
            folder.mkdir(parents=True, exist_ok=True)
        yield open_bucket(url, is_patient=True), build, pool


def _list_files(build: Path, folder: str) -> Sequence[str]:
    found = (each for each in (build / folder).rglob("*") if each.is_file())
    return [each.relative_to(build).as_posix() for each in found if not each.is_symlink()]


def _read(store: ObjectStore, path: str) -> tuple[bytes, Any]:
    """Return an object, empty if there is none, and the mode of a write that replaces it alone."""
    with explain_errors():
        try:
            found = obstore.get(store, path)
        except FileNotFoundError:
            return b"", "create"
        version = {name: found.meta.get(name) for name in ("e_tag", "version")}
        return bytes(found.bytes()), {name: each for name, each in version.items() if each}


def _replace_pointer(
    url: str, store: ObjectStore, pointer: bytes, former: bytes, mode: Any
) -> None:
    """Write the pointer if it is still the former one. Raises BuildError if it is not."""
    with ExitStack() as stack, explain_errors():
        try:
            if folder := find_folder(url):  # it has no conditional writes
                fcntl.flock(stack.enter_context((folder / ".lock").open("ab")), fcntl.LOCK_EX)
                mode = "overwrite"
                if _read(store, POINTER)[0] != former:
                    raise PreconditionError  # noqa: TRY301  as object storage does
            obstore.put(store, POINTER, pointer, mode=mode)
        except (AlreadyExistsError, PreconditionError):
            # The answer to a write that was done may be lost, and the write repeated.
            if _read(store, POINTER)[0] != pointer:
                raise BuildError(
                    "another push was faster, and edges serve its build: push again to replace it"
                ) from None
