"""Commits of single files in the journal's own git repository, by plumbing that runs no program.

Hooks, filters, signing and the user's configuration have no effect: the bytes are stored as they
are, with a temporary index. What else is changed or staged in the repository stays as it is.
"""

import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final, Self

from edge_api.schema.writing import FormerVersion, blob_id
from site_build.writing.versions import Refused

_QUIET: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "log.showSignature=false",
)
_UNFINISHED: Final = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}
"""Files of a repository that show an operation which its owner has not finished."""
NO_BLOB: Final = "0" * 40
"""The version of no file, and the commit before the first, in git's own records (SHA-1)."""
_STAGE: Final = ("update-index", "-z", "--index-info")
_PAUSE_SECONDS: Final = 0.1
_CHANGE: Final = rb"\x01(\S+)\0(.*)\0(.*)\n\n:\d+ \d+ [0-9a-f]+ (?!0{40})([0-9a-f]{40}) "
"""A commit as `list_versions` asks for it: date, author, message, and the file's new version."""
_TIMEOUT_SECONDS: Final = 30


class Repository:
    """The git repository that a folder of content is in."""

    def __init__(self, top: Path, git_dir: Path) -> None:
        self._top, self._git_dir = top, git_dir
        self._index, self._lock = git_dir / "index", git_dir / "index.lock"
        self._own = git_dir / "fore-edge.index"

    @classmethod
    def find(cls, content: Path) -> Self | None:
        """Return the repository of a folder; None without one, and where git ignores the folder.

        Raises Refused where root would run git in somebody else's repository.
        """
        content = content.resolve()
        if os.geteuid() == 0 and content.stat().st_uid != 0:
            raise Refused("unavailable", "run the watcher as the owner of the content, not as root")
        if not any((each / ".git").exists() for each in (content, *content.parents)):
            return None
        asked = ("rev-parse", "--show-object-format", "--show-toplevel", "--absolute-git-dir")
        try:
            kind, top, git_dir = _git(content, *asked).decode().splitlines()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise Refused("unavailable", _explain(error)) from error
        if kind != "sha1":
            raise Refused("unavailable", f"the repository has {kind} names; sha1 is known")
        # This command takes every path literally, and refuses the setting that says so.
        asked = ("check-ignore", "--quiet", "--", os.fspath(content))
        try:
            _git(Path(top), *asked, more={"GIT_LITERAL_PATHSPECS": "0"})
        except subprocess.CalledProcessError as error:
            if error.returncode == 1:  # git does not ignore the folder
                return cls(Path(top), Path(git_dir))
            raise Refused("unavailable", _explain(error)) from error
        return None

    def git(
        self,
        *words: str,
        given: bytes = b"",
        source: IO[bytes] | None = None,
        more: Mapping[str, str] | None = None,
        seconds: int = _TIMEOUT_SECONDS,
    ) -> bytes:
        """Run git in the repository and return what it prints. Raises Refused.

        Its input is `given`, or a `source`.
        """
        try:
            return _git(self._top, *words, given=given, source=source, more=more, seconds=seconds)
        except (OSError, subprocess.SubprocessError) as error:
            raise Refused("unavailable", _explain(error)) from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep git and our other processes from changing the index, the branch and files.

        Raises Refused during a merge, a rebase and the like, and while git is at work.
        """
        with (self._git_dir / "fore-edge.lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._unlock()  # one of ours was killed
            self._own.touch()
            try:
                self._lock_index()
                for name, operation in _UNFINISHED.items():
                    if (self._git_dir / name).exists():
                        raise Refused(
                            "locked",
                            f"{operation} is not finished in the repository; end or abort it there",
                        )
                yield
            finally:
                self._unlock()

    def _lock_index(self) -> None:
        """Lock the index as git itself does."""
        for is_last in (False, False, True):
            try:
                os.link(self._own, self._lock)
                break
            except FileExistsError:
                if is_last:
                    raise Refused(
                        "unavailable",
                        f"git is at work, or was killed: try again, or remove {self._lock}",
                    ) from None
                time.sleep(_PAUSE_SECONDS)

    def _unlock(self) -> None:
        """Remove our lock of the index. Raises OSError."""
        with suppress(FileNotFoundError):
            if self._own.samefile(self._lock):
                self._lock.unlink()
        self._own.unlink(missing_ok=True)

    def committed(self, file: Path) -> str:
        """Return the version of a file in the last commit; empty if it has none."""
        return self._find(file, "ls-tree", "-z", "HEAD")

    def staged(self, file: Path) -> str:
        """Return the version of a file in the index; empty if it has none."""
        return self._find(file, "ls-files", "-z", "--stage")

    def _find(self, file: Path, *words: str) -> str:
        found = b""
        with suppress(subprocess.CalledProcessError):  # there is no commit yet
            found = _git(self._top, *words, "--", self._name(file))
        return next((word for word in found.decode().split() if len(word) == len(NO_BLOB)), "")

    def list_versions(self, file: Path, most: int) -> Iterator[FormerVersion]:
        """Yield the committed versions of a file, the newest first."""
        words = ["log", "--format=%x01%aI%x00%an%x00%s", "--raw", "--no-abbrev", "--no-renames"]
        words += [f"--max-count={most}", "--", self._name(file)]
        for found in re.findall(_CHANGE, _git(self._top, *words) if self._read_head() else b""):
            at, author, message, version = (each.decode(errors="replace") for each in found)
            yield FormerVersion(
                version=version, at=datetime.fromisoformat(at), author=author, message=message
            )

    def read(self, version: str) -> bytes:
        """Return the bytes of a committed version."""
        return _git(self._top, "cat-file", "blob", version)

    def commit(self, raws: Mapping[Path, bytes | None], message: str, author: str) -> None:
        """Commit files with these bytes, or without the file for `None`, and unlock.

        `author` is the name of whoever wrote them. A second call for the same bytes does nothing.
        Raises Refused.
        """
        versions = {file: blob_id(raw) for file, raw in raws.items()}
        people = {
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": "writer@localhost",
            "GIT_COMMITTER_NAME": "Fore-edge",
            "GIT_COMMITTER_EMAIL": "fore-edge@localhost",
        }
        entries = "".join(
            f"{'100644' if each else '0'} {each or NO_BLOB}\t{self._name(file)}\0"
            for file, each in versions.items()
        ).encode()
        try:
            with TemporaryDirectory() as name:
                for raw in raws.values():
                    if raw is not None:
                        _git(self._top, "hash-object", "-w", "--no-filters", "--stdin", given=raw)
                folder, head = Path(name), self._read_head()
                # Without the files beside it, git has none to compare, and runs no filter on one.
                apart = {"GIT_DIR": os.fspath(self._git_dir), "GIT_WORK_TREE": name}
                tree = {**apart, "GIT_INDEX_FILE": f"{name}/tree"}
                _git(folder, "read-tree", head or "--empty", more=tree)
                _git(folder, *_STAGE, given=entries, more=tree)
                words = ["commit-tree", _git(folder, "write-tree", more=tree).decode().strip()]
                words += ["-p", head] if head else []
                self.prepare_index(entries)
                if any(self.committed(file) != version for file, version in versions.items()):
                    new = _git(self._top, *words, given=message.encode(), more=people).decode()
                    _git(
                        self._top,
                        "update-ref",
                        "-m",
                        message,
                        "HEAD",
                        new.strip(),
                        head or NO_BLOB,
                    )
                self.use_index()
        except (OSError, subprocess.SubprocessError) as error:
            raise Refused("unavailable", _explain(error)) from error

    def prepare_index(self, entries: bytes) -> None:
        """Put a copy of the index with these entries into the lock, which `use_index` renames.

        An entry is as `git update-index -z --index-info` reads it. Raises OSError and
        SubprocessError.
        """
        with TemporaryDirectory() as name:
            if self._index.exists():
                shutil.copyfile(self._index, f"{name}/index")
            apart = {"GIT_DIR": os.fspath(self._git_dir), "GIT_WORK_TREE": name}
            _git(
                Path(name),
                *_STAGE,
                given=entries,
                more={**apart, "GIT_INDEX_FILE": f"{name}/index"},
            )
            shutil.copyfile(f"{name}/index", self._lock)

    def use_index(self) -> None:
        """Put the prepared index in the place of the former one, and unlock. Raises OSError."""
        self._lock.replace(self._index)

    def _read_head(self) -> str:
        """Return the id of the last commit; empty before the first one."""
        with suppress(subprocess.CalledProcessError):
            return (
                _git(self._top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
                .decode()
                .strip()
            )
        return ""

    def _name(self, file: Path) -> str:
        return (file.parent.resolve() / file.name).relative_to(self._top).as_posix()


def commit_edit(file: Path, before: bytes, message: str) -> str:
    """Commit the owner's edit of a file that had all its changes committed.

    Returns why it is not committed; empty if it is, or if there is no repository.
    """
    try:
        if repository := Repository.find(file.parent):
            with repository.lock():
                if {blob_id(before), repository.staged(file)} != {repository.committed(file)}:
                    return "it has other changes that wait for your commit"
                repository.commit({file: file.read_bytes()}, message, "owner")
    except Refused as refusal:
        return str(refusal)
    return ""


def _explain(error: Exception) -> str:
    said = (getattr(error, "stderr", None) or str(error).encode()).decode(errors="replace")
    return f"git has failed ({' '.join(said.strip().splitlines()[-1:])}); try again"


def _git(
    folder: Path,
    *words: str,
    given: bytes = b"",
    source: IO[bytes] | None = None,
    more: Mapping[str, str] | None = None,
    seconds: int = _TIMEOUT_SECONDS,
) -> bytes:
    """Run git and return what it prints. Raises OSError and SubprocessError."""
    settings = [word for each in _QUIET for word in ("-c", each)]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        **(more or {}),
    }
    return subprocess.run(  # noqa: S603
        ["git", *settings, *words],  # noqa: S607
        cwd=folder,
        input=None if source else given,
        stdin=source,
        env=environment,
        capture_output=True,
        check=True,
        timeout=seconds,
    ).stdout
