"""How long an editor waits: from a saved post to the page that shows it, in Chromium and without.

`python -m benchmarks.preview [COUNT] [--runs N]`. Each run appends a word to one post; the clock
stops when the reloaded page shows it, or, without a browser, when the page that was asked for at
the news of the change has come.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from math import inf
from pathlib import Path
from statistics import median, quantiles
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

from benchmarks.corpus import describe_corpus, write_posts

_ROOT = Path(__file__).resolve().parent.parent
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_PAUSE = 1.5
"""Seconds between two saves: an editor thinks in between, and the whole content is checked."""

_PATIENCE = 60.0
"""Seconds after which a change is not waited for any more."""

TARGET_MS = 300.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preview")
    parser.add_argument("count", type=int, nargs="?", default=1_160)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_posts(folder / "content" / "posts", options.count)
        posts = sorted((folder / "content" / "posts").glob("*.md"))
        post = posts[len(posts) // 2]
        print(f"{options.count:,} posts, {describe_corpus()}", flush=True)
        with running(folder) as origin:
            _print("event and fetch", measure_fetch(origin, post, options.runs))
            _print("in Chromium", measure_browser(origin, post, options.runs))


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a preview and yield its origin."""
    words = ["--content", str(folder / "content"), "--output", str(folder / "build")]
    process = subprocess.Popen(
        [sys.executable, "-m", "site_build", "serve", *words, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield _read_origin(process)
    finally:
        process.terminate()
        process.communicate()


def measure_fetch(origin: str, post: Path, runs: int) -> list[float]:
    """Return the milliseconds from each save to the page, asked for at the news of it."""
    path, times = f"/journal/{post.stem}/", []
    connection = HTTPConnection(origin.removeprefix("http://"), timeout=60)
    connection.request("GET", f"/.preview/events?page={path}")
    events = connection.getresponse()
    version = _read_version(events)
    for number in range(runs):
        time.sleep(_PAUSE)
        started = _save(post, f"fetched{number}")
        version = _await_other(events, version)
        with urlopen(f"{origin}{path}") as answer:  # noqa: S310 - a preview of our own
            page = answer.read().decode()
        times.append(1000 * (time.perf_counter() - started))
        if f"fetched{number}" not in page:
            raise SystemExit("the page does not show what was saved")
    connection.close()
    return times


def measure_browser(origin: str, post: Path, runs: int) -> list[float]:
    """Return the milliseconds from each save to the reloaded page in Chromium."""
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_find_chromium(), args=list(_ARGUMENTS)
        )
        page = browser.new_page()
        page.goto(f"{origin}/journal/{post.stem}/")
        for number in range(runs):
            time.sleep(_PAUSE)
            word = f"browsed{number}"
            started = _save(post, word)
            page.get_by_text(word, exact=True).wait_for()
            times.append(1000 * (time.perf_counter() - started))
        browser.close()
    return times


def _save(post: Path, word: str) -> float:
    """Append a paragraph to a post as editors save, by renaming; return when it was begun."""
    text = f"{post.read_text(encoding='utf-8')}\n{word}\n"
    started = time.perf_counter()
    partial = post.with_name(f".{post.name}.part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(post)
    return started


def _read_version(events: Iterator[bytes], deadline: float = inf) -> str:
    """Return the version of the next event; the preview sends signs of life in between."""
    for line in events:
        if time.monotonic() > deadline:
            raise SystemExit(f"the preview tells of no change within {_PATIENCE:.0f} s")
        if line.startswith(b"data: "):
            return str(json.loads(line.removeprefix(b"data: "))["version"])
    raise SystemExit("the preview has ended")


def _await_other(events: Iterator[bytes], version: str) -> str:
    """Return the version that follows; a preview that tells of none ends the measurement."""
    deadline = time.monotonic() + _PATIENCE
    while (told := _read_version(events, deadline)) == version:
        continue
    return told


def _read_origin(process: "subprocess.Popen[str]") -> str:
    for line in process.stdout or ():
        if found := re.search(r" at (http://.*)/; ", line):
            return found[1]
    raise SystemExit("the preview did not start")


def _find_chromium() -> str:
    provide = _ROOT / "tools" / "provide"
    found = subprocess.run([str(provide), "chromium"], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def _print(name: str, times: list[float]) -> None:
    ninth = quantiles(times, n=10)[-1]
    verdict = "within" if median(times) <= TARGET_MS else "BEYOND"
    print(
        f"  {name:16} median {median(times):4.0f} ms, 9 of 10 in {ninth:4.0f} ms, "
        f"longest {max(times):4.0f} ms; {verdict} the target of {TARGET_MS:.0f} ms"
        f" (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)",
        flush=True,
    )


if __name__ == "__main__":
    main()
