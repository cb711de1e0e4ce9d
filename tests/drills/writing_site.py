"""A journal for the writing drill: its folder, repository and second clone, and its processes."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

from edge_api.schema.writing import Spool, WriteRequest
from tests.drills.targets import LIMITS
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.patience import patience
from tests.site_build.workbench import ROOT, SITE_URL

PATH = "/api/public/v1/sources"
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HERE = -100  # AT_FDCWD

Answer = tuple[int, dict[str, Any]]
"""The status of an answer (0: it is not known what was done), and its body."""


def git(folder: Path, *words: str, person: str = "Owner") -> subprocess.CompletedProcess[str]:
    """Run git as a person does."""
    names = {f"GIT_{role}_NAME": person for role in ("AUTHOR", "COMMITTER")}
    mails = {f"GIT_{role}_EMAIL": "person@journal.test" for role in ("AUTHOR", "COMMITTER")}
    return subprocess.run(
        ["git", "-c", "gc.auto=0", *words],  # noqa: S607
        cwd=folder,
        env={**os.environ, **names, **mails, "LC_ALL": "C", "GIT_EDITOR": "true"},
        check=False,
        capture_output=True,
        text=True,
    )


def exchange(file: Path, raw: bytes) -> bytes:
    """Put bytes in the place of a file in one step, and return those that were there."""
    new = file.with_name(f".{file.name}~")
    new.write_bytes(raw)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(new), _HERE, os.fsencode(file), _EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")
    found = new.read_bytes()
    new.unlink()
    return found


class Site:
    """The folders and processes of a journal."""

    def __init__(self, folder: Path, stack: ExitStack, *, has_git: bool) -> None:
        self.folder, self.has_git, self._stack = folder, has_git, stack
        self.content, self.var, self.clone = folder / "content", folder / "var", folder / "clone"
        (self.content / "posts").mkdir(parents=True)
        (self.content / "pages").mkdir()
        settings = {
            **dict.fromkeys(LIMITS, "0"),
            "PORT": str(free_port()),
            "DATABASE_URL": f"sqlite:///{self.var}/edge.db",
            "BUILD_DIR": str(folder / "build"),
            "CONTENT_DIR": str(self.content),
            "SECRET_KEY": "a secret of thirty-two characters",
            "WRITING": "on",
        }
        self.installation = Installation(folder, settings)
        if has_git:
            (folder / ".gitignore").write_text("/var/\n/build/\n/clone/\n/origin/\n/log\n.*\n")
            (self.content / "pages/about.md").write_text("---\ntitle: About\n---\n\nText.\n")
            git(folder, "init", "--quiet", "--initial-branch=main")
            git(folder, "add", "--force", ".gitignore")
            git(folder, "add", "content")
            git(folder, "commit", "--quiet", "--message=Begin")
            git(folder, "clone", "--quiet", "--bare", ".", "origin")
            git(folder, "remote", "add", "origin", str(folder / "origin"))
            git(folder, "fetch", "--quiet", "origin")
            git(folder, "branch", "--set-upstream-to=origin/main")
            git(folder, "clone", "--quiet", "origin", "clone")
        self._spool = Spool(self.var)
        self.edge = self._serve()
        self.watcher = self._watch()
        issue = ("keys", "issue", "--json", "--name")
        self.keys = {
            name: json.loads(self.installation.run(*issue, name, "--scopes", scopes)[1])["key"]
            for name, scopes in (("agent", "posts:draft"), ("editor", "posts:draft,posts:publish"))
        }
        self.await_watcher()

    def _serve(self) -> ServedEdge:
        return self._stack.enter_context(self.installation.serving())

    def _watch(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "site_build", "watch", "--jobs=1", "--site-url", SITE_URL]
        words += ["--content", str(self.content), "--output", str(self.folder / "build")]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                words, cwd=ROOT, env=self.installation.environment, stdout=log, stderr=log
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def await_watcher(self) -> None:
        """Wait until requests to write are taken."""
        deadline = time.monotonic() + patience()
        while not self._spool.is_watched():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.01)

    def kill(self, which: str) -> None:
        """Kill a process, and start it again if no other one does."""
        if which == "edge":
            self.edge.process.kill()
            self.edge.process.wait()
            self.edge = self._serve()
        elif which == "watcher":
            self.watcher.kill()
            self.watcher.wait()
            self.watcher = self._watch()
        elif found := self._find_writer():
            with suppress(ProcessLookupError):
                os.kill(found, signal.SIGKILL)

    def _find_writer(self) -> int | None:
        """Return the process that writes, which is a child of the watcher."""
        for listed in Path(f"/proc/{self.watcher.pid}/task").glob("*/children"):
            for child in listed.read_text().split():
                with suppress(FileNotFoundError):
                    if b"site_build.writing.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                        return int(child)
        return None

    def ask_edge(self, who: str, method: str, path: str, version: str, **body: Any) -> Answer:
        """Return the answer to a request by HTTP."""
        headers = {"X-API-Key": self.keys[who], "Content-Type": "application/json"}
        headers |= {"If-Match": f'"{version}"'} if version else {}
        sent = json.dumps(body).encode() if method == "POST" else None
        try:
            status, _, said = self.edge.ask(method, f"{PATH}{path}", sent, headers)
            answer = json.loads(said)
        except (OSError, HTTPException):
            return 0, {}
        return (0 if b"not certain" in said else status), answer

    def ask_as_owner(self, operation: Any, version: str = "", **values: Any) -> Answer:
        """Return the answer to a request as the desk sends it."""
        request = WriteRequest(
            operation=operation,
            author="",
            may_publish=True,
            asked_at=datetime.now(UTC).replace(microsecond=0),
            base=version or None,
            **values,
        )
        if not self._spool.is_watched():
            return 503, {}
        name = self._spool.put(request)
        while not (answer := self._spool.take(name)):
            time.sleep(0.005)
            if not self._spool.is_watched():
                if self._spool.withdraw(name):
                    return 503, {}
                if not (answer := self._spool.take(name)):
                    return 0, {}
                break
        if answer.refusal:
            return 409, {"message": answer.message}
        return 200, {"source": answer.source.model_dump(mode="json") if answer.source else {}}
