"""A watcher that is killed at any moment: the next start serves what the content says."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import patience
from tests.site_build.workbench import ROOT, SITE_URL, Workbench, compare, take
from tests.sizes import scaled

pytestmark = pytest.mark.size("ci", grows=True)

LONGEST = 1.5
"""Seconds after a start at most until the kill: a watcher is ready in less."""


def start(bench: Workbench) -> subprocess.Popen[bytes]:
    """Start a watcher of the workbench's content."""
    words = [
        "publish",
        "--content",
        bench.content,
        "--output",
        bench.output,
        "--site-url",
        SITE_URL,
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "site_build", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for_text(page: Path, text: str) -> None:
    """Wait until a served page has the text."""
    deadline = time.monotonic() + patience()
    while not (page.is_file() and text in page.read_text("utf-8")):
        assert time.monotonic() < deadline, f"{page} never said {text!r}"
        time.sleep(0.02)


def test_a_killed_watcher_is_right_at_its_next_start(tmp_path: Path) -> None:
    """Kills fall into starts, builds and swaps; what is served is whole, and at the end as new."""
    luck = random.Random(20)  # noqa: S311  no secret
    bench = Workbench(tmp_path / "content", tmp_path / "build")
    bench.post("kept", text="Word 0.")
    bench.post("gone", tags="[old]")
    page = bench.output / "current" / "site" / "journal" / "kept" / "index.html"
    for number in range(scaled(ci=10, judge=100)):
        process = start(bench)
        try:
            time.sleep(luck.uniform(0, LONGEST))
            bench.post("kept", text=f"Word {number}.")
            bench.post(f"more-{number % 7}", text=f"Text {number}.", tags=f"[tag-{number % 3}]")
            (bench.content / "posts" / f"more-{(number + 3) % 7}.md").unlink(missing_ok=True)
            time.sleep(luck.uniform(0, LONGEST / 2))
        finally:
            process.kill()
            process.wait()
        if page.is_file():
            assert "Word " in page.read_text("utf-8")

    (bench.content / "posts" / "gone.md").unlink()
    bench.post("kept", text="The last word.")
    process = start(bench)
    try:
        wait_for_text(page, "The last word.")
    finally:
        process.kill()
        process.wait()
    fresh = Workbench(bench.content, tmp_path / "fresh")
    differing = compare(take(bench.output / "current" / "site"), take(fresh.build() / "site"))
    assert differing == [".well-known/security.txt"]  # It says until when it holds.
