"""An upgrade as the operators' page has it: what is written afterwards gets published."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from edge_api.cli.doctor import CHECKED
from tests.content.workshop import ROOT, find_free_port, plain_environment
from tests.own_journal import TEST_CONTENT
from tests.patience import patience

pytestmark = pytest.mark.size("test")

LOOKED = f"looked at: {', '.join(CHECKED)}\n"
OLD = "49d850a"
"""A commit whose publisher writes no heartbeat, and ends when it reads newer settings."""
PARTS = ("theme", "edge_api", "site_build", "pelicanconf.py")
UNDEFINED = "is undefined"
"""Why a theme cannot be rendered that needs new code."""


class Journal:
    """A checkout, with its settings, and the commands that run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = find_free_port()
        shutil.copytree(TEST_CONTENT, folder / "content")
        self.post = folder / "content" / "posts" / "third.md"
        self.log = folder / "publish.log"

    def run(self, *words: str) -> tuple[int, str]:
        """Run one command to its end; return its exit status and all that it printed."""
        ended = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=patience(120),
            check=False,
        )
        return ended.returncode, ended.stdout

    @property
    def environment(self) -> dict[str, str]:
        """The settings: the port alone."""
        return {**plain_environment(), "PORT": str(self.port)}

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a service, its words in the log; nothing of it is left behind the block."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def write(self, sentence: str) -> None:
        """Add a paragraph to a post."""
        self.post.write_text(f"{self.post.read_text('utf-8')}\n{sentence}\n", "utf-8")

    def says(self, sentence: str) -> bool:
        """Return whether the served build has the sentence."""
        page = self.folder / "build/current/site/journal/marbled-paper/index.html"
        return sentence in page.read_text("utf-8")

    def logged(self) -> str:
        """Return what the services have printed."""
        return self.log.read_text("utf-8")

    def readiness(self) -> dict[str, Any]:
        """Return what readiness says; nothing while no edge answers."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=patience(120))
        try:
            connection.request("GET", "/api/public/v1/readiness")
            report: dict[str, Any] = json.loads(connection.getresponse().read())
        except (OSError, HTTPException):
            return {}
        finally:
            connection.close()
        return report


def complaint(journal: Journal, check: str) -> str:
    """Return what a check of readiness complains of."""
    found = journal.readiness().get("checks", {}).get(check, {})
    return str(found.get("error", ""))


def waits_for(condition: Callable[[], object]) -> bool:
    """Return whether a condition comes true."""
    deadline = time.monotonic() + patience(120)
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def read_commit(name: str) -> bytes:
    """Return a commit's files as a tar archive."""
    command = ["git", "archive", "--format=tar", name, *PARTS]
    archived = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert archived.returncode == 0, (
        f"this clone lacks commit {name}: fetch the whole history (git fetch --unshallow)\n"
        f"{archived.stderr.decode()}"
    )
    return archived.stdout


def pull(folder: Path) -> None:
    """Replace each file that differs from this checkout's, and no other, as `git pull` does."""
    skipped = shutil.ignore_patterns("__pycache__")
    for part in PARTS:
        source = ROOT / part
        if source.is_file():
            replace(source, folder / part)
        else:
            shutil.copytree(
                source, folder / part, ignore=skipped, copy_function=replace, dirs_exist_ok=True
            )


def replace(source: str | Path, target: str | Path) -> None:
    """Put a new file in the place of one that has other bytes, or where none is."""
    content, place = Path(source).read_bytes(), Path(target)
    if not place.exists() or place.read_bytes() != content:
        place.unlink(missing_ok=True)
        place.write_bytes(content)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Return a journal that has only a folder yet."""
    folder = tmp_path / "journal"
    folder.mkdir()
    return Journal(folder)


@pytest.mark.size("ci")
def test_an_upgrade_from_a_publisher_without_heartbeat(journal: Journal) -> None:
    """After a restart of the edge alone, readiness and doctor warn; restarting both publishes."""
    with tarfile.open(fileobj=BytesIO(read_commit(OLD))) as archive:
        archive.extractall(journal.folder, filter="data")
    assert journal.run("site_build", "build")[0] == 0
    with journal.started("site_build", "publish") as publisher:
        assert waits_for(lambda: "is served" in journal.logged())
        pull(journal.folder)
        assert journal.run("site_build", "build")[0] == 0
        assert journal.run("edge_api", "doctor")[0] == 1  # there is no store yet
        with journal.started("edge_api", "serve"):
            assert waits_for(journal.readiness)
            assert complaint(journal, "watcher") == ""
            journal.write("Written after the upgrade.")
            assert publisher.wait(patience(120)) == 1
            assert waits_for(lambda: complaint(journal, "watcher"))
            assert journal.readiness()["status"] == "warn"
            sentence = complaint(journal, "watcher")
            assert sentence.startswith("the content has changed since the served build was made")
            assert journal.run("edge_api", "doctor") == (1, f"- {sentence}\n{LOOKED}")
            assert not journal.says("Written after the upgrade.")

    with journal.started("edge_api", "serve"), journal.started("site_build", "publish"):
        assert waits_for(lambda: journal.says("Written after the upgrade."))
        journal.write("Written after both were restarted.")
        assert waits_for(lambda: journal.says("Written after both were restarted."))
        assert waits_for(lambda: journal.readiness().get("status") == "pass")
        assert journal.run("edge_api", "doctor") == (0, f"nothing is wrong\n{LOOKED}")


@pytest.mark.size("ci")
def test_an_upgrade_ends_the_running_watcher(journal: Journal) -> None:
    """A theme that needs new code: builds fail, the watcher ends with 75, a new start publishes."""
    pull(journal.folder)
    assert journal.run("site_build", "build")[0] == 0
    with journal.started("edge_api", "serve"), journal.started("site_build", "publish") as watcher:
        assert waits_for(lambda: journal.readiness().get("status") == "pass")
        assert waits_for((journal.folder / "build/.watcher").exists)

        upgrade(journal.folder)

        assert waits_for(lambda: "builds fail" in complaint(journal, "watcher"))
        code, said = journal.run("edge_api", "doctor")
        assert code == 1
        assert re.search(
            r"^- the watcher's last build failed: .*'planted' is undef", said, re.MULTILINE
        )
        assert str(journal.folder) not in json.dumps(journal.readiness())
        assert waits_for(lambda: "edge started: restart it" in complaint(journal, "code"))
        assert waits_for(lambda: "since the watcher started" in complaint(journal, "watcher"))
        assert watcher.wait(patience(120)) == os.EX_TEMPFAIL
        assert UNDEFINED in journal.logged()
        assert not journal.says("planted by new code")

        with journal.started("site_build", "publish"):
            assert waits_for(lambda: journal.says("planted by new code"))
            assert waits_for(lambda: complaint(journal, "watcher") == "")


@pytest.mark.size("ci")
def test_make_run_goes_on_with_the_code_that_it_has(journal: Journal) -> None:
    """With `--stay` the watcher says that code has changed, and follows the content as before."""
    pull(journal.folder)
    with journal.started("site_build", "publish", "--stay") as watcher:
        assert waits_for((journal.folder / "build/.watcher").exists)
        plant(journal.folder / "site_build/text.py", "# changed\n")

        assert waits_for(lambda: "installed code has changed" in journal.logged())
        journal.write("Written to the old code.")
        assert waits_for(lambda: journal.says("Written to the old code."))
        code, said = journal.run("edge_api", "migrate")
        assert code == 0, said
        code, said = journal.run("edge_api", "doctor")
        assert (code, "since the watcher started" in said) == (1, True)
        watcher.terminate()
        assert watcher.wait(patience(120)) == 0
        assert not (journal.folder / "build/.watcher").exists()


def upgrade(folder: Path) -> None:
    """Install a version whose theme needs a name that only its code gives to templates.

    The name's value is declared where both programs have their common declarations.
    """
    plant(
        folder / "edge_api/schema/reading_time.py",
        '\n\nPLANTED = {"word": "planted by new code"}\n',
    )
    line = "        choose_hue=choose_hue,\n"
    planted = f"{line}        planted=reading_time.PLANTED,\n"
    plugin = folder / "site_build/pelican_plugin/plugin.py"
    plant(plugin, planted, line)
    plant(plugin, "import gc\n\nfrom edge_api.schema import reading_time\n", "import gc\n")
    template = folder / "theme/templates/base.html"
    plant(template, "{{ planted.word }}</footer>", "</footer>")


def plant(file: Path, new: str, old: str = "") -> None:
    """Replace a piece of a file, which must be there once; without one, append."""
    text = file.read_text("utf-8")
    assert not old or text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new) if old else text + new, "utf-8")
