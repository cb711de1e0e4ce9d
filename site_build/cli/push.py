"""`push`: sends the served build to a bucket that edges fetch it from, or a site to a web host.

The pointer is replaced last: a push that fails, even by kill -9, changes nothing for edges. What it
has stored already is removed by a later push, a day later at the earliest.
"""

import fcntl
import gzip
import json
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

import obstore
from click import Argument, Option
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import ObjectStore
from pydantic import ConfigDict, Field, TypeAdapter

from edge_api.schema.commands import Arguments, parameter_type, require_one
from edge_api.schema.environment import BUILD, PRIVATE_PREFIX, read_bucket, read_key
from edge_api.schema.index import CURRENT_LINK, SITE_FOLDER
from edge_api.schema.pushed_builds import (
    POINTER,
    PUSHED,
    SAFE_PATH,
    BucketError,
    Pointer,
    cut,
    explain_errors,
    find_folder,
    is_private,
    locate_object,
    make_cipher,
    make_keys,
    open_bucket,
    read_manifest,
    read_object,
)
from edge_api.schema.shares import list_shares
from edge_api.schema.site_policy import media_type
from site_build.cli.terminal import open_console
from site_build.errors import BuildError
from site_build.options import OUTPUT, read_settings
from site_build.pelican_plugin.plugin import explain_disk_errors

PARAMS: Final = (
    Argument(
        ["url"],
        type=parameter_type(read_bucket),
        required=False,
        help="folder, or s3://bucket/path, gs://bucket/path, az://container/path",
    ),
    Option(["--static"], is_flag=True, help="send the files of the site alone, for any web host"),
    Option(["--follow"], is_flag=True, help="keep running, and push each new build"),
    Option(["--whole"], is_flag=True, help="store all objects again, also those known to be there"),
    Option(["--new-key"], is_flag=True, help="print a new pair of keys, and push nothing"),
    OUTPUT,
)
STATIC_LIST: Final = "fore-edge-files.json"
"""The object at a web host that lists what was pushed, so that the files of others stay there."""
_STATIC_FILES: Final = TypeAdapter[dict[str, str]](
    # Paths as in a build, so that none leads elsewhere.
    dict[Annotated[str, Field(pattern=rf"\A{SAFE_PATH}\Z")], str],
    config=ConfigDict(regex_engine="python-re"),
)
_PAUSE_SECONDS: Final = 5.0
"""The pause after a push that failed, with --follow."""
_GRACE: Final = timedelta(days=1)
"""How long objects stay that no build needs: a push that is under way may have stored them."""
_PARALLEL: Final = 16


def run(arguments: Arguments) -> int:
    """Push, and print what was sent. Raises BuildError."""
    require_one(arguments, "URL", "--new-key")
    if arguments.new_key:
        private, public = make_keys()
        sys.stdout.write(f"BUILD_SIGNING_KEY={private}\nBUILD_KEY={public}\n")
        sys.stderr.write("the first line is for the machine that pushes, the second for edges\n")
        return 0
    console, pushed, output = open_console(), None, arguments.output
    while True:
        shares = {*list_shares(output, datetime.now(UTC))}
        state = os.path.realpath(output / CURRENT_LINK), shares
        try:
            if state != pushed:
                console.print(_push(arguments))
            pushed = state
        except BuildError as error:
            if not arguments.follow or error.exitcode != 1:
                raise
            console.print(f"{error}; it is tried again")
            time.sleep(_PAUSE_SECONDS)
        if not arguments.follow:
            return 0
        time.sleep(1)


def _push(arguments: Arguments) -> str:
    output, url, settings = arguments.output, arguments.url, read_settings()
    try:
        if arguments.static:
            return push_static(output, url, whole=arguments.whole)
        try:
            raw = read_key(settings.get("BUILD_SIGNING_KEY", ""), PRIVATE_PREFIX)
        except ValueError as error:
            reason = (
                f": {error}"
                if "BUILD_SIGNING_KEY" in settings
                else " is not set: `push --new-key` makes one"
            )
            raise BuildError(f"BUILD_SIGNING_KEY{reason}", 2) from None
        key, secret = Ed25519PrivateKey.from_private_bytes(raw), settings.get("SECRET_KEY", "")
        return push(output, url, key, secret, whole=arguments.whole)
    except BucketError as error:
        raise BuildError(f"{url}: {error.detail}") from None


def push(
    output: Path, url: str, key: Ed25519PrivateKey, secret: str = "", *, whole: bool = False
) -> str:
    """Push the served build, and with a secret its private files; return a sentence about it.

    With `whole`, store all objects again. Raises BuildError, and BucketError.
    """
    began, sizes, stored = time.monotonic(), list[int](), set[str]()
    store, build = _open(output, url)
    with explain_disk_errors(build), ThreadPoolExecutor(_PARALLEL) as pool:
        former, version = _read(store, POINTER)
        before = Pointer.read(former, [key.public_key()]) if former else None
        if before and not whole:
            known = read_manifest(read_object(store, before.manifest))
            stored = {digest for segments in known.values() for digest, _ in segments}
            stored.add(before.manifest)
        places = _list_files(build)
        for share in list_shares(output, datetime.now(UTC)):
            places |= {f"{share.parent.name}/{share.name}/{e.name}": e for e in share.iterdir()}
        paths = [
            each
            for each in places
            if re.fullmatch(PUSHED, each) and (secret or not is_private(each))
        ]
        cipher = make_cipher(secret.encode())

        def send(data: bytes) -> str:
            digest = sha256(data).hexdigest()
            if digest not in stored:
                with explain_errors():
                    obstore.put(store, locate_object(digest), data)
                stored.add(digest)
                sizes.append(len(data))
            return digest

        def send_file(path: str) -> list[tuple[str, int]]:
            found, names = cut(places[path]), [path.encode()]
            if is_private(path):
                return [(send(cipher.encrypt(each, names)), len(each)) for each in found]
            return [(send(each), len(each)) for each in found]

        files = dict(zip(paths, pool.map(send_file, paths), strict=True))
        now = datetime.now(UTC)
        pointer = Pointer(
            # Of the clock, so that it grows even if the former pointer was lost or put back.
            sequence=max(before.sequence + 1 if before else 0, int(now.timestamp() * 1000)),
            time=now,
            build_id=build.name,
            # The same bytes for the same contents.
            manifest=send(gzip.compress(json.dumps(files, sort_keys=True).encode(), 6, mtime=0)),
        )
        _replace_pointer(url, store, pointer.sign(key), former, version)
        # What the build before needs stays, since an edge may be fetching that. Ages are by the
        # bucket's clock, since the one here may be wrong.
        with explain_errors():
            stored_at = obstore.head(store, POINTER)["last_modified"]
            unused = [
                each["path"]
                for batch in obstore.list(store, "objects")
                for each in batch
                if each["path"].rpartition("/")[2] not in stored
                and each["last_modified"] < stored_at - _GRACE
            ]
            obstore.delete(store, unused)
    left = "" if secret else "; shared drafts stay here: set SECRET_KEY, that of the edges"
    if pointer.sequence > (stored_at + _GRACE).timestamp() * 1000:
        left += (
            "; the clock here is or was more than a day ahead: set it, and keep the object pointer "
            'in the bucket, or see "Another key" in docs/grow.md'
        )
    return (
        f"{build.name} is pushed: {len(paths):,} files, {len(sizes):,} objects sent, "
        f"{sum(sizes) / 1_000_000:.1f} MB in {time.monotonic() - began:.1f} s; "
        f"{len(unused):,} old ones removed{left}"
    )


def push_static(output: Path, url: str, *, whole: bool = False) -> str:
    """Bring a web host's files to those of the served site; return a sentence about it.

    Pages are replaced after the files that they use; files that it did not push are left alone.
    With `whole`, send all files again. Raises BuildError, and BucketError.
    """
    after, sent = dict[str, str](), list[str]()
    store, build = _open(output, url)
    with explain_disk_errors(build), ThreadPoolExecutor(_PARALLEL) as pool:
        try:
            before = _STATIC_FILES.validate_json(_read(store, STATIC_LIST)[0] or b"{}")
        except ValueError:
            message = f"{STATIC_LIST} in it is damaged: delete it, and push again"
            raise BucketError(message) from None
        places = _list_files(build / SITE_FOLDER)

        def put(path: str, data: bytes) -> None:
            more: dict[str, Any] = {"attributes": {"Content-Type": media_type(path)}}
            with explain_errors():  # a folder keeps no types
                obstore.put(store, path, data, **({} if find_folder(url) else more))

        def send(path: str) -> None:
            data = places[path].read_bytes()
            after[path] = sha256(data).hexdigest()
            if whole or before.get(path) != after[path]:
                put(path, data)
                sent.append(path)

        for is_page in (False, True):
            [*pool.map(send, [each for each in places if each.endswith(".html") == is_page])]
        gone = before.keys() - after.keys()
        for each in gone:
            with explain_errors(), suppress(FileNotFoundError):  # it may have been removed there
                obstore.delete(store, each)
        put(STATIC_LIST, json.dumps(after, sort_keys=True).encode())
    return f"{build.name} is pushed: {len(sent):,} files sent, {len(gone):,} removed"


def _open(output: Path, url: str) -> tuple[ObjectStore, Path]:
    """Return the bucket and the folder of the served build. Raises BuildError, BucketError."""
    build = (output / CURRENT_LINK).resolve()
    if not build.is_dir():
        raise BuildError(f"{output} holds no build; run {BUILD} build")
    return open_bucket(url, is_push=True), build


def _list_files(folder: Path) -> dict[str, Path]:
    found = (each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())
    return {each.relative_to(folder).as_posix(): each for each in found}


def _read(store: ObjectStore, path: str) -> tuple[bytes, Any]:
    """Return an object, empty if there is none, and the mode of a write that replaces it alone."""
    with explain_errors():
        try:
            found = obstore.get(store, path)
        except FileNotFoundError:
            return b"", "create"
        return bytes(found.bytes()), {
            name: each for name, each in found.meta.items() if each and name in {"e_tag", "version"}
        }


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
