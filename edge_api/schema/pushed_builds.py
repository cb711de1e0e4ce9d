"""Builds in object storage or a folder (the bucket): what `push` writes there and edges read.

A file is stored as segments, each an object with the SHA-256 of its bytes as its name. A manifest,
an object too, lists the segments of a build's files. One object without such a name, the pointer,
names the manifest; it is replaced last, and signed with Ed25519.
"""

import base64
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Self

import obstore
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, ObjectStore, from_url
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from edge_api.schema.environment import (
    LITESTREAM_PREFIXES,
    PRIVATE_PREFIX,
    PUBLIC_PREFIX,
    read_dotenv,
)
from edge_api.schema.index import HELD_FILE, INDEX_FILE, NEWSLETTER_FILE, SITE_FOLDER
from edge_api.schema.page_templates import TEMPLATES_FOLDER

FORMAT: Final = 1  # raised whenever a reader of the older format could misread a pointer
POINTER: Final = "pointer"
FOLDERS: Final = (SITE_FOLDER, TEMPLATES_FOLDER)
FILES: Final = (INDEX_FILE, HELD_FILE, NEWSLETTER_FILE)
"""The folders and files of a build that are pushed: all but its lists of sources."""
_SIGNED: Final = b"fore-edge build pointer\n"  # so that no other text with this key is a pointer
_MIN_SEGMENT, _MAX_SEGMENT = 256 << 10, 4 << 20
"""Bytes; smaller files are one segment."""
_CUT_MASK: Final = 63  # a segment ends after one line of 64, which its checksum chooses

_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Path = Annotated[
    str,
    Field(
        pattern=rf"\A(?:{'|'.join(map(re.escape, FILES))}"
        rf"|(?:{'|'.join(FOLDERS)})(?:/(?!\.\.?(?:/|\Z))[^/\0]+)+)\Z"
    ),
]
"""A path of a file in a build: it leads to no other place."""
Segments = list[tuple[_Digest, int]]
"""Digest and length in bytes of each segment of a file."""


class BucketError(Exception):
    """A bucket, or what is in it, cannot be used.

    The message is public; `detail` is for operators, since it may name the bucket.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = f"{message} ({detail})" if detail else message


def find_folder(url: str) -> Path | None:
    """Return the folder that an address of a bucket names; None for object storage."""
    is_folder = "://" not in url or url.startswith("file:")
    return Path(url.removeprefix("file://")) if is_folder else None


def open_bucket(url: str, *, is_patient: bool = False, **more: Any) -> ObjectStore:
    """Return the store at an address. Raises BucketError for a folder that is missing.

    Credentials come from the environment, or from `.env`. A push is patient, since its way up may
    be slow; an edge, which asks again soon, has to end when it is stopped.
    """
    for name, value in read_dotenv(Path(".env")).items():
        if name.startswith(LITESTREAM_PREFIXES):
            os.environ.setdefault(name, value)
    timeout, retries = ("300s", 3) if is_patient else ("20s", 1)
    options: Any = {"allow_http": True, "connect_timeout": "5s", "timeout": timeout}
    with explain_errors():
        if folder := find_folder(url):
            return LocalStore(folder)
        return from_url(url, client_options=options, retry_config={"max_retries": retries}, **more)


@contextmanager
def explain_errors() -> Iterator[None]:
    """Turn errors of object storage into BucketError."""
    try:
        yield
    except (BaseError, OSError, NotImplementedError) as error:
        message = "it cannot be reached"
        if isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError):
            message = "it refuses access: check the credentials"
        elif "//169.254.169.254/" in str(error):  # a cloud's own machines get credentials there
            message = "no credentials for it are set"
        elif isinstance(error, FileNotFoundError):
            message = "an object is missing in it: push with --whole"
        detail = re.sub(r"\s+", " ", str(error).partition("Debug source")[0])
        raise BucketError(message, detail[:400].strip()) from None


def answers_anonymously(url: str) -> bool:
    """Return whether a bucket gives the pointer, or a list, to those without credentials."""
    if find_folder(url):
        return False
    store = open_bucket(url, skip_signature=True)
    for ask in (lambda: obstore.get(store, POINTER), lambda: next(obstore.list(store), None)):
        with suppress(BaseError, OSError):
            ask()
            return True
    return False


def locate_object(digest: str) -> str:
    """Return the path of an object."""
    return f"objects/{digest[:2]}/{digest}"


def read_object(store: ObjectStore, digest: str) -> bytes:
    """Return the bytes of an object. Raises BucketError for a missing or damaged one."""
    with explain_errors():
        found = bytes(obstore.get(store, locate_object(digest)).bytes())
    if sha256(found).hexdigest() != digest:
        raise BucketError("an object in it is damaged: push with --whole", locate_object(digest))
    return found


def make_keys() -> tuple[str, str]:
    """Return a new private key and its public half, as the settings have them."""
    key = Ed25519PrivateKey.generate()
    raw = key.private_bytes_raw(), key.public_key().public_bytes_raw()
    first, second = (base64.urlsafe_b64encode(each).decode().rstrip("=") for each in raw)
    return f"{PRIVATE_PREFIX}{first}", f"{PUBLIC_PREFIX}{second}"


class Pointer(BaseModel, frozen=True):
    """Names the build that edges serve."""

    format: int = FORMAT
    sequence: int
    """Grows with each push, over years and machines: an edge refuses a lower one."""
    time: AwareDatetime
    """The instant of the push, UTC."""
    build_id: str = Field(pattern="^[A-Za-z0-9-]{1,100}$")
    manifest: _Digest

    @property
    def folder(self) -> str:
        """The name of the folder in BUILD_DIR that an edge keeps the build in."""
        return f"{self.build_id}-{self.manifest[:12]}"

    def sign(self, key: Ed25519PrivateKey) -> bytes:
        """Return the pointer as it is stored: its signature in base64, a line feed, JSON."""
        text = self.model_dump_json().encode()
        return base64.b64encode(key.sign(_SIGNED + text)) + b"\n" + text

    @classmethod
    def read(cls, raw: bytes, keys: list[Ed25519PublicKey]) -> Self:
        """Return a pointer that one of the keys verifies. Raises BucketError."""
        signature, _, text = raw.partition(b"\n")
        for key in keys:
            with suppress(InvalidSignature, ValueError):
                key.verify(base64.b64decode(signature, validate=True), _SIGNED + text)
                break
        else:
            raise BucketError(
                "its pointer is not signed with this key: if you changed keys, delete it, and "
                "push again"
            )
        try:
            if (number := json.loads(text)["format"]) != FORMAT:
                raise BucketError(
                    f"its build has format {number}, and this version reads format {FORMAT}: "
                    "use one version of fore-edge everywhere"
                )
            return cls.model_validate_json(text)
        except (ValueError, KeyError, TypeError):
            raise BucketError("its pointer is damaged: push again") from None


class Manifest(BaseModel, frozen=True):
    """The contents of a pushed build."""

    model_config = ConfigDict(regex_engine="python-re")

    files: dict[_Path, Segments]
    """Segments by path, relative to the build, with `/`."""
    shares: dict[_Digest, _Digest] = {}
    """Digests of encrypted shares by the names of their folders."""

    def pack(self) -> bytes:
        """Return the manifest as it is stored: the same bytes for the same contents."""
        return gzip.compress(json.dumps(self.model_dump(), sort_keys=True).encode(), 6, mtime=0)

    @classmethod
    def unpack(cls, raw: bytes) -> Self:
        """Return a manifest. Raises BucketError, also for paths that lead out of a build."""
        try:
            return cls.model_validate_json(gzip.decompress(raw))
        except (OSError, EOFError, zlib.error, ValueError):
            raise BucketError("its list of files is damaged: push with --whole") from None

    def list_objects(self) -> set[str]:
        """Return the digests of all objects that the build consists of."""
        digests = {digest for each in self.files.values() for digest, _ in each}
        return digests | {*self.shares.values()}


def cut(path: Path) -> Iterator[bytes]:
    """Yield the segments of a file. Raises OSError.

    A large one is cut after lines that their own bytes choose, so that an edit changes the segments
    around it, and no others.
    """
    with path.open("rb") as file:
        lines, size = list[bytes](), 0
        for line in file:
            lines.append(line)
            size += len(line)
            is_chosen = size >= _MIN_SEGMENT and not zlib.crc32(line) & _CUT_MASK
            if is_chosen or size >= _MAX_SEGMENT:
                yield b"".join(lines)
                lines, size = [], 0
        yield from filter(None, [b"".join(lines)])


def make_share_cipher(secret: bytes) -> AESSIV:
    """Return the cipher of shares: it encrypts the same files to the same bytes (RFC 5297)."""
    return AESSIV(HKDF(SHA512(), 64, None, b"fore-edge shared drafts").derive(secret))


def encrypt_share(folder: Path, cipher: AESSIV) -> bytes:
    """Return a share encrypted. Raises OSError."""
    files = {each.name: base64.b64encode(each.read_bytes()).decode() for each in folder.iterdir()}
    text = json.dumps(files, sort_keys=True).encode()
    return cipher.encrypt(text, [folder.name.encode()])


def decrypt_share(folder: Path, encrypted: bytes, cipher: AESSIV) -> None:
    """Write the files of a share into its folder, which is made. Raises BucketError, OSError."""
    try:
        files = json.loads(cipher.decrypt(encrypted, [folder.name.encode()]))
    except InvalidTag:
        raise BucketError("its shared drafts are encrypted with another SECRET_KEY") from None
    draft = folder.with_name(f".{folder.name}")
    draft.mkdir()
    for name, data in files.items():
        (draft / Path(name).name).write_bytes(base64.b64decode(data))
    draft.rename(folder)
