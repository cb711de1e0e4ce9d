"""`fore-edge try`: another system's journal in the browser, and nothing written where it is."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.site_build.workbench import ROOT, run, take

pytestmark = pytest.mark.size("test")

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from site_build.__main__ import fore_edge; sys.exit(fore_edge())",
    "try",
]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return a small journal of Eleventy, with a broken link and a text that cannot be read."""
    head = "---\ntitle: {}\ndate: 2020-01-02\n{}---\n{}\n"
    files = {
        "eleventy.config.js": "export default {};\n",
        "posts/one.md": head.format(
            "One", "permalink: /posts/one/\naliases: [/first/]\n", "Hello."
        ),
        "posts/two.md": head.format("Two", "permalink: /2020/two.html\n", "[x](/no/)"),
        "posts/bad.md": "---\ntitle: [\n---\nLost.\n",
    }
    for name, text in files.items():
        path = tmp_path / "old" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "old"


@contextmanager
def trying(journal: Path, *words: str, **environment: str) -> Iterator[tuple[str, str]]:
    """Run the command until it serves; give what it printed, and the origin."""
    temporary = journal.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    where = {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [*COMMAND, str(journal), "--no-browser", *words],
        env={**os.environ, **where, **environment},
        cwd=journal.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    said = []
    try:
        for line in process.stdout:
            said.append(line)
            if "until you press Ctrl-C" in line:
                break
        found = re.search(r"http://127\.0\.0\.1:\d+", "".join(said))
        assert found, said
        yield "".join(said), found[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
        assert list(temporary.iterdir()) == []
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_try_shows_a_journal_and_removes_it(journal: Path) -> None:
    """Old addresses were asked for, files that need somebody are named, the source is untouched."""
    before = take(journal)

    with trying(journal, SITE_URL="https://other.example", BUILD_DIR="/nowhere") as (said, origin):
        assert "2 of 3 posts · 15 of 15 old addresses answer · 2 files need you" in said
        assert "posts/bad.md" in said
        assert "posts/two.md" in said
        with urlopen(f"{origin}/first/") as page:  # noqa: S310  our own server
            assert page.url == f"{origin}/posts/one/"
            assert b"Hello." in page.read()
        with urlopen(f"{origin}/posts/one/") as page:  # noqa: S310  likewise
            assert b"<title>One" in page.read()
        with urlopen(f"{origin}/2020/two.html") as page:  # noqa: S310  likewise
            assert b"Two" in page.read()

    assert take(journal) == before
    assert {path.name for path in journal.parent.iterdir()} == {"old", "temporary"}


def test_a_tried_journal_can_be_kept(journal: Path) -> None:
    """The folder is the journal then, and is not written over."""
    kept = journal.parent / "kept"
    with trying(journal, "--keep", str(kept)) as (said, _):
        assert str(kept / "import-report.md") in said

    assert (kept / "content" / "posts" / "one.md").is_file()
    again = run(*COMMAND, journal, "--keep", kept, "--no-browser")
    assert again.returncode == 1
    assert again.stderr == f"{kept} is there already; choose a new folder\n"


def test_a_source_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    """Nothing is left of it."""
    (tmp_path / "empty").mkdir()
    for name in ("empty", "none"):
        done = run(*COMMAND, tmp_path / name, "--no-browser", environment={"TMPDIR": str(tmp_path)})
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert str(tmp_path / name) in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_port_in_use_is_reported(journal: Path) -> None:
    """It is said before anything is imported."""
    with trying(journal) as (_, origin):
        port = origin.rpartition(":")[2]
        done = run(*COMMAND, journal, "--port", port, "--no-browser")

    assert done.returncode == 1
    assert done.stderr == f"port {port} cannot be used: Address already in use\n"
    assert done.stdout == ""


def test_pictures_are_fetched_through_the_guard(journal: Path) -> None:
    """An address of this machine is not asked, and the report names the picture."""
    (journal / "_data").mkdir()
    (journal / "_data" / "site.json").write_text('{"url": "http://127.0.0.1:9"}')
    with (journal / "posts" / "one.md").open("a", encoding="utf-8") as text:
        text.write("\n![A tree](/trees/oak.jpg)\n")
    words = ("--from", journal, "--fetch-pictures", "--yes")
    done = run(*COMMAND[:-1], "init", journal.parent / "new", *words)

    assert done.returncode == 0, done.stderr
    report = (journal.parent / "new" / "import-report.md").read_text(encoding="utf-8")
    assert "trees/oak.jpg" in report
    assert "was not fetched: its server cannot be reached at a public address" in report
