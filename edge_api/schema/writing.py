"""Requests to write and their answers: files of a spool, which edge and watcher exchange."""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar
from uuid import uuid4

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from edge_api.schema.environment import sqlite_file

MAX_TEXT_BYTES: Final = 1024 * 1024
MAX_PICTURE_BYTES: Final = 20 * 1024 * 1024
_MAX_RECORD_BYTES: Final = 32 * 1024 * 1024
"""Most bytes of a record: a text whose every character JSON escapes, or a picture in base64."""

_WITHDRAWN: Final = "withdrawn.json"
UNCERTAIN: Final = "It is not certain that this was done: read the post again before you go on"
_LOCK: Final = ".lock"
"""The file that a watcher locks as long as it answers."""

Operation = Literal[
    "check",
    "list",
    "get",
    "save",
    "picture",
    "publish",
    "withdraw",
    # Of the desk alone:
    "bin",
    "history",
    "former",
    "preview",
    "share",
]
State = Literal["draft", "scheduled", "published", "hidden"]
Refusal = Literal[
    "",
    "invalid",
    "forbidden",
    "not_found",
    "conflict",
    "stale",
    "locked",
    "unnamed",
    "unavailable",
]
"""Why nothing was done, as a code of `db/problems.py`; empty where it was done."""


class Finding(BaseModel, frozen=True):
    """One defect of a text."""

    line: Annotated[int, Field(description="Line of the text, from 1.")]
    column: Annotated[int, Field(description="Column in characters, from 1.")]
    severity: Annotated[
        Literal["error", "warning"],
        Field(description="An error keeps the text from being published."),
    ]
    message: Annotated[str, Field(description="What is wrong, and what to do.")]


class SourceSummary(BaseModel, frozen=True):
    """A source without its text."""

    slug: Annotated[str, Field(description="The name of the post in its address.")]
    title: Annotated[str, Field(description="Empty where the head cannot be read.")]
    state: Annotated[State, Field(description="What readers see of it.")]
    date: Annotated[
        AwareDatetime | None, Field(description="When it appeared or will; absent where unknown.")
    ] = None
    author: Annotated[
        str, Field(description="The credential that wrote the draft; empty for the owner.")
    ] = ""
    version: Annotated[
        str, Field(description="Changes with each change; send it as If-Match.", min_length=40)
    ]
    is_changed: Annotated[
        bool, Field(description="Whether a draft of a public text waits to be published.")
    ] = False
    url: Annotated[str, Field(description="The address on the site; empty where unknown.")] = ""


class Source(SourceSummary, frozen=True):
    """A source: a Markdown file with its head."""

    markdown: Annotated[str, Field(description="The whole file, its front matter included.")]


class FormerVersion(BaseModel, frozen=True):
    """A version that a source had."""

    version: str
    """Its blob id."""
    at: AwareDatetime
    author: str
    message: str
    """The first line of its commit; empty where there is no git."""


class WriteRequest(BaseModel, frozen=True, extra="forbid"):
    """A request to the watcher, by somebody whose rights the edge has checked."""

    operation: Operation
    author: str
    """The name of the credential; empty for the owner at the desk."""
    may_publish: bool
    asked_at: AwareDatetime
    """When it was asked for, in UTC; a post that is published now gets this date."""
    slug: str = ""
    moved_from: str = ""
    """The slug of the draft whose text this is: who wrote that has written this."""
    markdown: str | None = None
    base: str | None = None
    """The version that was read; `None` where none was named."""
    at: AwareDatetime | None = None
    """When to publish; `None` is now."""
    name: str = ""
    """The file name of a picture."""
    data: str = ""
    """A picture in base64."""


class WriteAnswer(BaseModel, frozen=True):
    """The watcher's answer: the outcome, or why nothing was done."""

    refusal: Refusal = ""
    message: str = ""
    """The fault and its remedy; empty without a refusal."""
    version: str = ""
    """The present version, where there is one."""
    source: Source | None = None
    sources: tuple[SourceSummary, ...] = ()
    findings: tuple[Finding, ...] = ()
    path: str = ""
    """The address that a text uses for a picture; the token of a preview or of a share.

    Within the watcher it is the file of the content for which such a page is made.
    """
    versions: tuple[FormerVersion, ...] = ()
    """Former versions, the newest first."""


class Withdrawn(BaseModel, frozen=True):
    """Files of posts that were taken off the site; no build need have been made since."""

    names: frozenset[str] = frozenset()


Record = TypeVar("Record", WriteRequest, WriteAnswer, Withdrawn)


def locate_var(database_url: str, build_dir: Path) -> Path:
    """Return the folder of spool, drafts and former versions: that of the store, or `var`."""
    store = sqlite_file(database_url)
    return store.parent if store else build_dir.parent / "var"


def blob_id(raw: bytes | None) -> str:
    """Return the name that git gives to these bytes, 40 hexadecimal digits; empty for none."""
    if raw is None:
        return ""
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def read_file(file: Path) -> bytes | None:
    """Return the bytes of a file, `None` if there is none. Raises OSError, as for a link."""
    try:
        # Without O_NONBLOCK a named pipe would be waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(file, flags), "rb") as opened:
            return opened.read(_MAX_RECORD_BYTES)
    except FileNotFoundError:
        return None


def write_file(file: Path, raw: bytes) -> None:
    """Replace a file, or a link, by one with these bytes, which is on the disk. Raises OSError."""
    partial = file.with_name(f"{file.name}.partial")  # this ending is no request's
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(partial, flags, 0o600), "wb") as opened:
            opened.write(raw)
            opened.flush()
            os.fsync(opened.fileno())
        partial.replace(file)
    except OSError:
        partial.unlink(missing_ok=True)  # it takes room on a full disk
        raise


class Spool:
    """A folder of records; each has a random name, and appears in one step.

    A request is `NAME.request`, then `NAME.work` while it is carried out, then `NAME.answer`.
    """

    def __init__(self, var: Path) -> None:
        self.folder = var / "spool"

    def is_watched(self) -> bool:
        """Return whether a watcher holds the lock of the spool."""
        try:
            with (self.folder / _LOCK).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Hold the lock, which a killed process leaves by itself. Raises OSError."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield

    def put(self, request: WriteRequest) -> str:
        """Store a request and return its name. Raises OSError."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{time.time_ns()}-{uuid4().hex}"
        self._store(f"{name}.request", request)
        return name

    def claim(self) -> Iterator[tuple[str, WriteRequest]]:
        """Yield requests with their names, oldest first; damaged ones are removed.

        Raises OSError.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in sorted(each.stem for each in self.folder.glob("*.request")):
            with suppress(FileNotFoundError):  # the edge has withdrawn it
                (self.folder / f"{name}.request").rename(self.folder / f"{name}.work")
                if request := self._read(f"{name}.work", WriteRequest):
                    yield name, request
                else:
                    (self.folder / f"{name}.work").unlink()

    def answer(self, name: str, answer: WriteAnswer) -> None:
        """Remove a request, and store the answer to it. Raises OSError."""
        (self.folder / f"{name}.work").unlink()
        try:
            self._store(f"{name}.answer", answer)
        except OSError as error:  # a short one still has the room of the request
            message = f"{UNCERTAIN}; no answer could be stored: {error.strerror}; free some space"
            self._store(f"{name}.answer", WriteAnswer(refusal="unavailable", message=message))

    def take(self, name: str) -> WriteAnswer | None:
        """Return the answer to a request and remove it; `None` while there is none."""
        answer = self._read(f"{name}.answer", WriteAnswer)
        if answer:
            (self.folder / f"{name}.answer").unlink()
        return answer

    def withdraw(self, name: str) -> bool:
        """Remove a request that was not begun; return whether it was removed."""
        with suppress(FileNotFoundError):
            (self.folder / f"{name}.request").unlink()
            return True
        return False

    def list_withdrawn(self) -> frozenset[str]:
        """Return the files of the site that are withdrawn."""
        return (self._read(_WITHDRAWN, Withdrawn) or Withdrawn()).names

    def set_withdrawn(self, names: frozenset[str]) -> None:
        """Store the files of the site that are withdrawn. Raises OSError."""
        self._store(_WITHDRAWN, Withdrawn(names=names))

    def tidy(self, before: float) -> None:
        """Remove requests that a killed watcher had begun, and old answers and parts of records.

        `before` is the instant, in seconds since 1970, before which they are old.
        """
        for each in self.folder.glob("*.[apw]*"):
            with suppress(OSError):
                if each.suffix == ".work" or each.lstat().st_mtime < before:
                    each.unlink()

    def _store(self, name: str, record: BaseModel) -> None:
        write_file(self.folder / name, record.model_dump_json().encode())

    def _read(self, name: str, model: type[Record]) -> Record | None:
        """Return a record; `None` for none, for a link, and for one that is damaged or too long."""
        with suppress(OSError, ValidationError):
            return model.model_validate_json(read_file(self.folder / name) or b"")
        return None
