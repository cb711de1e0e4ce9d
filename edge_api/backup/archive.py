"""Archives of a whole journal: its files in a compressed tar, encrypted for age as it is written.

`age --decrypt --identity KEY FILE | tar -tz` reads one without this program. Rows of a store in
PostgreSQL are dumped and restored by its own programs.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import click
import pyrage

from edge_api.backup.verify import MIN_FREE_BYTES
from edge_api.db.errors import StoreRefusal
from edge_api.db.postgres.connection import SCHEMA
from edge_api.db.sqlite.opening import sync

DUMP_LOCK_SECONDS: Final = 60  # how long a dump waits for who changes the tables
MAX_DUMP_SECONDS: Final = 2 * 3600  # then a program is ended: a server that is gone answers never


def dump_rows(url: str, target: Path) -> None:
    """Dump the store of one instant, and read the dump to its end. Raises StoreRefusal."""
    without_limits = f"--exclude-table-data={SCHEMA}.rate_*"  # counts of the last minutes
    options = ("--format=custom", f"--schema={SCHEMA}", f"--lock-wait-timeout={DUMP_LOCK_SECONDS}s")
    _run_program("pg_dump", url, *options, without_limits, f"--file={target}")
    _run_program("pg_restore", None, f"--file={os.devnull}", str(target))


def restore_rows(url: str, source: Path) -> None:
    """Restore a dump into a database without a store, wholly or not at all. Raises StoreRefusal."""
    options = ("--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction")
    _run_program("pg_restore", url, *options, str(source))


def drop_rows(url: str) -> None:
    """Drop what was restored. Raises StoreRefusal."""
    _run_program("psql", url, "--quiet", "--no-psqlrc", f"--command=DROP SCHEMA {SCHEMA} CASCADE")


def _run_program(program: str, url: str | None, *words: str) -> None:
    command = (program, *words)
    environment = {**os.environ, "PGCONNECT_TIMEOUT": "10", "LC_ALL": "C"}
    if url is not None:
        # Everybody on this machine can read arguments, so the password is none.
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        password = dict(options).get("password") or unquote(parts.password or "")
        user, at, hosts = parts.netloc.rpartition("@")
        # libpq knows no "+" for a space, and needs both slashes, which geturl() leaves out where
        # there is no host.
        kept = urlencode([each for each in options if each[0] != "password"], quote_via=quote)
        place = f"{user.partition(':')[0]}{at}{hosts}{parts.path}"
        command = (*command, f"--dbname={parts.scheme}://{place}{'?' if kept else ''}{kept}")
        environment |= {"PGPASSWORD": password} if password else {}
    try:
        subprocess.run(  # noqa: S603
            command,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=MAX_DUMP_SECONDS,
        )
    except FileNotFoundError:
        raise StoreRefusal(
            f"there is no program {program}: install the client programs of PostgreSQL, of the "
            "server's version or a later one (Debian: postgresql-client)"
        ) from None
    except subprocess.TimeoutExpired:
        raise StoreRefusal(
            f"{program} did not end within {MAX_DUMP_SECONDS / 3600:g} hours: see that the server "
            "of PostgreSQL answers"
        ) from None
    except subprocess.CalledProcessError as error:
        complaint = " ".join(str(error.stderr).split())[:500]
        raise StoreRefusal(f"{program} failed: {complaint}") from None


MANIFEST: Final = "manifest.json"
"""The first member: what the archive is, and of what."""
ROWS: Final = ("store.db", "store.dump")
"""The rows: a copy of the SQLite file, or what pg_dump wrote."""
SECRET: Final = "secret.key"  # noqa: S105  the name of a member
FILES: Final = "journal"
"""The folder of the journal's own files."""
FORMAT: Final = 1
_BLOCK: Final = tarfile.BLOCKSIZE
_IN_MEMORY_BYTES: Final = 16 << 20
_MAX_FILES: Final = 500_000
_MAX_NAME_BYTES: Final = 4096
_MAX_MANIFEST_BYTES: Final = 1 << 20
_MAX_PASSPHRASE_BYTES: Final = 256 << 20
"""The library keeps an archive with a passphrase in memory."""
_AGE_HEADER: Final = b"age-encryption.org/v1"
_MAX_DEPTH: Final = 100
"""Folders in one another: each costs a call of a function that calls itself."""


def ask_passphrase(prompt: str, *, confirm: bool = False) -> str:
    """Return a passphrase that is typed without an echo, or the first line of a piped input."""
    if sys.stdin.isatty():
        return str(click.prompt(prompt, hide_input=True, confirmation_prompt=confirm, err=True))
    return sys.stdin.readline().rstrip("\r\n")


def write_archive(
    target: Path,
    files: Iterator[tuple[str, Path]],
    lock: tuple[Sequence[str], str],
    scratch: Path,
) -> int:
    """Write the new file `target`, which is encrypted throughout; return the number of files.

    `files` have their names as members, those of folders with a slash at the end; the first one is
    the manifest. `lock` has the recipients and the passphrase, which counts alone if there is one.
    A file that is removed meanwhile is left out, and so is one that has a private key, with a
    warning; `scratch` is a folder for copies. Raises OSError and StoreRefusal, and may leave an
    incomplete `target` then.
    """
    reading, writing = os.pipe()
    count = 0
    with (
        os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
        ThreadPoolExecutor(1) as executor,
    ):
        encrypted = executor.submit(_encrypt, os.fdopen(reading, "rb"), file, *lock)
        # A broken pipe says that the encryption has failed, and its own error says why.
        with (
            suppress(BrokenPipeError),
            os.fdopen(writing, "wb") as pipe,
            gzip.GzipFile(fileobj=pipe, mode="wb", compresslevel=1, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w|", format=tarfile.GNU_FORMAT) as tar,
        ):
            for name, path in files:
                member = tarfile.TarInfo(name)
                if name.endswith("/"):
                    member.type, member.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(member)
                    continue
                # A tar has the size before the content, and somebody may write it meanwhile.
                with (
                    suppress(FileNotFoundError),
                    path.open("rb") as source,
                    SpooledTemporaryFile(_IN_MEMORY_BYTES, dir=str(scratch)) as copy,
                ):
                    shutil.copyfileobj(source, copy)
                    member.size = copy.tell()
                    member.mode = os.fstat(source.fileno()).st_mode & 0o755
                    copy.seek(0)
                    if name.startswith(FILES) and re.search(
                        rb"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}", copy.read(1 << 16)
                    ):
                        sys.stderr.write(
                            f"{path} is left out: it has a private key of age, which would open "
                            "all archives; move it to another machine\n"
                        )
                        continue
                    copy.seek(0)
                    tar.addfile(member, copy)
                    count += 1
        try:
            encrypted.result()
        except pyrage.EncryptError as error:
            raise StoreRefusal(f"{target.parent} cannot be written ({error}): make room") from None
    sync(target)
    return count


def _encrypt(
    reader: IO[bytes], writer: IO[bytes], recipients: Sequence[str], passphrase: str
) -> None:
    with reader:
        if not passphrase:
            keys = [pyrage.x25519.Recipient.from_str(each) for each in recipients]
            pyrage.encrypt_io(reader, writer, keys)
            return
        content = reader.read(_MAX_PASSPHRASE_BYTES + 1)
        if len(content) > _MAX_PASSPHRASE_BYTES:
            raise StoreRefusal(
                f"the journal has more than {_MAX_PASSPHRASE_BYTES >> 20} MB, too much for a "
                "passphrase: set BACKUP_RECIPIENT to the public key of age-keygen"
            )
        writer.write(pyrage.passphrase.encrypt(content, passphrase))


def read_identities(key: bytes) -> list[pyrage.x25519.Identity]:
    """Return the private keys of a file that age-keygen wrote, itself encrypted or not.

    Raises StoreRefusal.
    """
    try:
        if key.startswith(_AGE_HEADER):
            key = pyrage.passphrase.decrypt(key, ask_passphrase("Passphrase of the private key"))
        lines = key.decode("ascii").split()
        found = [each for each in lines if each.startswith("AGE-SECRET-KEY-1")]
        identities = [pyrage.x25519.Identity.from_str(each) for each in found]
    except (pyrage.DecryptError, pyrage.IdentityError, UnicodeDecodeError):
        identities = []
    if not identities:
        raise StoreRefusal(
            "--key: this is no private key of age, or its passphrase is wrong: name the file that "
            "age-keygen wrote, which has a line AGE-SECRET-KEY-1…"
        )
    return identities


def unpack_archive(source: Path, target: Path, key: bytes | None) -> Mapping[str, Any]:
    """Unpack an archive into the empty folder `target`, and return its manifest.

    Without `key` it is opened by a passphrase, which is asked for. Raises OSError, and StoreRefusal
    for what is no archive of a journal.
    """
    with source.open("rb") as file:
        if file.read(len(_AGE_HEADER)) != _AGE_HEADER:
            raise StoreRefusal(f"{source} is no archive of backup --all: name journal-INSTANT.age")
        file.seek(0)
        identities = read_identities(key) if key is not None else None
        passphrase = "" if identities else ask_passphrase("Passphrase of the archive")
        reading, writing = os.pipe()
        with ThreadPoolExecutor(1) as executor:
            decrypted = executor.submit(
                _decrypt, file, os.fdopen(writing, "wb"), identities, passphrase
            )
            try:
                with os.fdopen(reading, "rb") as pipe, gzip.GzipFile(fileobj=pipe) as tar:
                    _unpack(tar, target)
            except (EOFError, gzip.BadGzipFile, zlib.error, tarfile.HeaderError) as error:
                decrypted.result()  # raises why it was cut short, if that is the reason
                raise StoreRefusal(f"{source} is damaged ({error}): name another one") from None
            decrypted.result()
    try:
        manifest = dict(json.loads((target / MANIFEST).read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        manifest = {}
    if manifest.get("format") != FORMAT:
        fix = "it was made by a newer version: install that" if manifest else "name another one"
        raise StoreRefusal(f"{source} has no manifest that this version reads: {fix}")
    return manifest


def _decrypt(
    reader: IO[bytes],
    writer: IO[bytes],
    identities: Sequence[pyrage.x25519.Identity] | None,
    passphrase: str,
) -> None:
    """Write what is decrypted. Raises StoreRefusal."""
    try:
        with suppress(BrokenPipeError), writer:  # its reader says why it reads no more
            if identities:
                pyrage.decrypt_io(reader, writer, identities)
            else:
                content = reader.read(_MAX_PASSPHRASE_BYTES * 2)
                writer.write(pyrage.passphrase.decrypt(content, passphrase))
    except (pyrage.DecryptError, OSError) as error:
        fix = {
            "No matching keys found": "name the private key it was made for; an archive with a "
            "passphrase is restored without --key"
            if identities
            else "it has no passphrase, and --key names its private key",
            "Decryption failed": "this is not its passphrase: type that again",
        }.get(str(error), "it is damaged or cut short: name another one")
        raise StoreRefusal(f"{reader.name} cannot be opened ({error}): {fix}") from None


def _unpack(stream: gzip.GzipFile, target: Path) -> None:
    """Write files and folders of a tar, and nothing else; an archive may come from anybody."""
    room = shutil.disk_usage(target).free - MIN_FREE_BYTES
    count, name = 0, ""
    while (block := _read(stream, _BLOCK)) != bytes(_BLOCK):
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if member.type == tarfile.GNUTYPE_LONGNAME and 0 < member.size <= _MAX_NAME_BYTES:
            raw = _read(stream, member.size + -member.size % _BLOCK)[: member.size]
            name = raw.rstrip(b"\0").decode("utf-8", "surrogateescape")
            continue
        given, name = (name or member.name).removesuffix("/" * member.isdir()), ""
        path = PurePosixPath(given)
        sizes = {tarfile.REGTYPE: member.size >= 0, tarfile.DIRTYPE: member.size == 0}
        is_known = (
            1 < len(path.parts) < _MAX_DEPTH
            if path.parts[:1] == (FILES,)
            else given in (MANIFEST, *ROWS, SECRET) and not member.isdir()
        )
        is_plain = ".." not in path.parts and str(path) == given and "\0" not in given
        if not (is_known and is_plain and sizes.get(member.type)):
            raise StoreRefusal(
                f"the archive has {given[:200]!r}, which is no file of a journal: "
                "name another archive"
            )
        count, room = count + 1, room - member.size - _BLOCK
        if count > _MAX_FILES or (given == MANIFEST and member.size > _MAX_MANIFEST_BYTES):
            raise StoreRefusal(
                f"the archive has more than {_MAX_FILES:,} files, or a manifest of more than "
                f"{_MAX_MANIFEST_BYTES >> 20} MB: name another one"
            )
        if room < 0:
            raise StoreRefusal("the disk has too little room for the archive: make room")
        place, mode = target / path, member.mode & 0o755 | 0o600
        try:
            (place if member.isdir() else place.parent).mkdir(parents=True, exist_ok=True)
            if member.isdir():
                continue
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(place, flags, mode)
        except (FileExistsError, NotADirectoryError):
            raise StoreRefusal(
                f"the archive has {given[:200]!r} twice, or as file and folder: name another one"
            ) from None
        with os.fdopen(descriptor, "wb") as file:
            for start in range(0, member.size, _IN_MEMORY_BYTES):
                file.write(_read(stream, min(_IN_MEMORY_BYTES, member.size - start)))
        _read(stream, -member.size % _BLOCK)
    if len(stream.read(1 << 16)) >= 1 << 16:  # a tar ends with some zeros
        raise StoreRefusal("the archive goes on after its end: name another one")


def _read(stream: gzip.GzipFile, size: int) -> bytes:
    """Return that many bytes. Raises EOFError."""
    content = stream.read(size)
    if len(content) < size:
        raise EOFError("it is cut short")
    return content
