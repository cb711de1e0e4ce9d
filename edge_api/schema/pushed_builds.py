"""Builds in object storage or a folder (the bucket): what `push` writes there and edges read.

A file is stored as segments, each an object with the SHA-256 of its bytes as its name; those of
private files are encrypted. A manifest, an object too, lists the segments of a build's files. One
object without such a name, the pointer, names the manifest; it is replaced last, and signed with
Ed25519.
"""

import base64
import gzip
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import obstore
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, ObjectStore, from_url
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter

from edge_api.schema.environment import (
    LITESTREAM_PREFIXES,
    PRIVATE_PREFIX,
    PUBLIC_PREFIX,
    read_dotenv,
)
from edge_api.schema.index import HELD_FILE, INDEX_FILE, NEWSLETTER_FILE, SITE_FOLDER
from edge_api.schema.page_templates import TEMPLATES_FOLDER
from edge_api.schema.shares import SHARES

POINTER: Final = "pointer"
SAFE_PATH: Final = r"(?:(?!\.\.?(?:/|\Z))[^/\0]+(?:/(?!\Z)|\Z))+"
"""The pattern of a path that stays in its folder."""
PUSHED: Final = (
    rf"(?:{'|'.join(map(re.escape, (INDEX_FILE, HELD_FILE, NEWSLETTER_FILE)))}"
    rf"|(?:{SITE_FOLDER}|{TEMPLATES_FOLDER}|{SHARES})/{SAFE_PATH})"
)
"""The pattern of the paths of files that are pushed; none leads out of the build."""
_SIGNED: Final = b"fore-edge build pointer\n"  # so that no other text with this key is a pointer
_MIN_SEGMENT, _MAX_SEGMENT = 256 << 10, 4 << 20
"""Bytes; smaller files are one segment."""
_CUT_MASK: Final = 63  # a segment ends after one line of 64, which its checksum chooses

_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Files: TypeAlias = dict[Annotated[str, Field(pattern=rf"\A{PUSHED}\Z")], list[tuple[_Digest, int]]]
"""A manifest: the digest of each segment, and its length in bytes before it is encrypted, by path.

Paths are relative to the build, with `/`. It is stored as JSON, compressed by gzip.
"""
_FILES: Final = TypeAdapter[Files](Files, config=ConfigDict(regex_engine="python-re"))


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


def open_bucket(url: str, *, is_push: bool = False, **more: Any) -> ObjectStore:
    """Return the store at an address. Raises BucketError for a folder that is missing.

    Credentials come from the environment, or from `.env`. A push makes the folder, and is patient,
    since its way up may be slow; an edge, which asks again soon, has to end when it is stopped.
    """
    for name, value in read_dotenv(Path(".env")).items():
        if name.startswith(LITESTREAM_PREFIXES):
            os.environ.setdefault(name, value)
    timeout, retries = ("300s", 3) if is_push else ("20s", 1)
    options: Any = {"allow_http": True, "connect_timeout": "5s", "timeout": timeout}
    with explain_errors():
        if folder := find_folder(url):
            return LocalStore(folder, mkdir=is_push)
        return from_url(url, client_options=options, retry_config={"max_retries": retries}, **more)


@contextmanager
def explain_errors(
    missing: str = "an object is missing in it: push with --whole",
) -> Iterator[None]:
    """Turn errors of object storage into BucketError; `missing` is the message for no object."""
    reasons = (
        (
            (PermissionDeniedError, UnauthenticatedError, PermissionError),
            "it refuses access: check the credentials",
        ),
        ((FileNotFoundError,), missing),
    )
    try:
        yield
    except (BaseError, OSError, NotImplementedError) as error:
        # A cloud's own machines get credentials there.
        is_lacking = "//169.254.169.254/" in str(error)
        other = "no credentials for it are set" if is_lacking else "it cannot be reached"
        message = next((each for kinds, each in reasons if isinstance(error, kinds)), other)
        # Amazon's, Azure's, and Google's word for it.
        if re.search("NoSuchBucket|ContainerNotFound|specified bucket does not exist", str(error)):
            message = "there is no bucket of this name: make it, or correct its address"
        detail = re.sub(r"\s+", " ", str(error).partition("Debug source")[0])
        raise BucketError(message, detail[:400].strip()) from None


def answers_anonymously(url: str) -> bool:
    """Return whether a bucket gives the pointer, or a list, to those without credentials."""
    if find_folder(url):
        return False
    for ask in (lambda e: obstore.get(e, POINTER), lambda e: next(obstore.list(e), None)):
        with suppress(BucketError, BaseError, OSError):
            ask(open_bucket(url, skip_signature=True))
            return True
    return False


def locate_object(digest: str) -> str:
    """Return the path of an object."""
    return f"objects/{digest[:2]}/{digest}"


def read_object(store: ObjectStore, digest: str, size: int = 256 << 20) -> bytes:
    """Return the bytes of an object. Raises BucketError for a missing, damaged or longer one."""
    with explain_errors():
        answer = obstore.get(store, locate_object(digest))  # the bytes come when they are asked for
        found = bytes(answer.bytes()) if answer.meta["size"] <= size else b""
    if sha256(found).hexdigest() != digest:
        raise BucketError("an object in it is damaged: push with --whole", locate_object(digest))
    return found


def is_private(path: str) -> bool:
    """Return whether a file is encrypted on its way: shared drafts, and faults of sources."""
    return path.startswith((HELD_FILE, f"{SHARES}/"))


def make_cipher(secret: bytes) -> AESSIV:
    """Return the cipher of private files: equal files have equal ciphertexts (RFC 5297).

    Their path is the associated data.
    """
    return AESSIV(HKDF(SHA512(), 64, None, b"fore-edge private files of builds").derive(secret))


def make_keys() -> list[str]:
    """Return a new private key and its public half, as the settings have them."""
    key = Ed25519PrivateKey.generate()
    private, public = key.private_bytes_raw(), key.public_key().public_bytes_raw()
    pairs = ((PRIVATE_PREFIX, private), (PUBLIC_PREFIX, public))
    return [f"{each}{base64.urlsafe_b64encode(raw).decode().rstrip('=')}" for each, raw in pairs]


class Pointer(BaseModel, frozen=True):
    """Names the build that edges serve."""

    format: Literal[1] = 1  # raised whenever a reader of the older format could misread a build
    sequence: int
    """Grows with each push, over years and machines: an edge refuses a lower one."""
    time: AwareDatetime
    """The instant of the push, UTC."""
    build_id: str = Field(pattern="^[A-Za-z0-9-]{1,100}$")
    manifest: _Digest

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
            return cls.model_validate_json(text)
        except ValueError:
            raise BucketError(
                "its build is of another version of fore-edge: use one version everywhere"
            ) from None


def read_manifest(raw: bytes) -> Files:
    """Return a manifest. Raises BucketError, also for paths that lead out of a build."""
    try:
        return _FILES.validate_json(gzip.decompress(raw))
    except (OSError, EOFError, zlib.error, ValueError):
        raise BucketError("its list of files is damaged: push with --whole") from None


def cut(path: Path) -> Iterator[bytes]:
    """Yield the segments of a file. Raises OSError.

    A large one is cut after lines that their own bytes choose, so that an edit changes the segments
    around it, and no others.
    """
    with path.open("rb") as file:
        segment = bytearray()
        for line in file:
            segment += line
            is_chosen = len(segment) >= _MIN_SEGMENT and not zlib.crc32(line) & _CUT_MASK
            if is_chosen or len(segment) >= _MAX_SEGMENT:
                yield bytes(segment)
                segment.clear()
        if segment:
            yield bytes(segment)
