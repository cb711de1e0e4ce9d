"""Output of a watcher: what is new since the build before, to a reader that may never read."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from edge_api.schema.heartbeat import Heartbeat
from site_build.cli.terminal import open_console
from site_build.cli.watch import EventPrinter
from site_build.errors import ContentError, Diagnostic
from site_build.progress import Report
from site_build.releases.watcher import ReleaseEvent
from tests.content.workshop import find_free_port
from tests.patience import patience
from tests.site_build.workbench import ROOT, SITE_URL, Workbench
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LINK = "broken link: no page at `/x/`; fix the address, or remove it"


def find(path: str, line: int, message: str = LINK, severity: str = "warning") -> Diagnostic:
    """Return a finding."""
    return Diagnostic(path, line, 1, "error" if severity == "error" else "warning", message)


def serve(*findings: Diagnostic) -> ReleaseEvent:
    """Return the event of a build with these findings."""
    return ReleaseEvent("served", Report("b1", NOW, 3, 9, 99, 3, 0, None, findings))


def refuse(*findings: Diagnostic) -> ReleaseEvent:
    """Return the event of a build that these findings stopped."""
    return ReleaseEvent("refused", error=ContentError(findings))


OLD = find("a.md", 7), find("b.md", 9), find("b.md", 30)
ERROR = find("c.md", 1, "the file is empty; fill it", "error")
TITLE = find("a.md", 2, "`titel` is not a front matter key; did you mean `title`?")


@pytest.mark.parametrize(
    ("before", "now", "printed", "counts"),
    [
        ([], serve(), [], ""),
        ([], serve(*OLD), OLD, "; findings: 3 new"),
        ([serve(*OLD)], serve(*OLD), [], "; findings: 3 left"),
        ([serve(*OLD)], serve(*OLD, TITLE), [TITLE], "; findings: 1 new, 3 left"),
        ([serve(*OLD)], serve(*OLD[:2]), [], "; findings: 1 fixed, 2 left"),
        ([serve(*OLD)], serve(), [], "; findings: 3 fixed"),
        # A line was written above: the same finding is elsewhere in its file, and nothing is new.
        ([serve(*OLD)], serve(find("a.md", 8), *OLD[1:]), [], "; findings: 3 left"),
        # The second of two in a file is the new one, whichever is first.
        (
            [serve(OLD[1])],
            serve(find("b.md", 4), OLD[1]),
            [find("b.md", 4)],
            "; findings: 1 new, 1 left",
        ),
        # It moved to another file, as when a file is renamed.
        (
            [serve(*OLD)],
            serve(*OLD[:2], find("d.md", 30)),
            [find("d.md", 30)],
            "; findings: 1 new, 1 fixed, 2 left",
        ),
        # With an error, not all warnings are looked for: those that come back are not new.
        ([serve(*OLD), refuse(ERROR)], serve(*OLD), [], "; findings: 1 fixed, 3 left"),
        ([serve(*OLD), serve(ERROR)], serve(*OLD), [], "; findings: 1 fixed, 3 left"),
        ([serve(*OLD)], refuse(ERROR, *OLD), [ERROR], None),
        ([refuse(ERROR)], refuse(ERROR, TITLE), [TITLE], None),
        ([refuse(ERROR), refuse(TITLE)], refuse(ERROR), [ERROR], None),
    ],
)
def test_new_findings_are_printed(
    capsys: pytest.CaptureFixture[str],
    before: list[ReleaseEvent],
    now: ReleaseEvent,
    printed: list[Diagnostic],
    counts: str | None,
) -> None:
    """Neither what was there before nor what only moved."""
    printer = EventPrinter(open_console(), Path("content"))
    for event in before:
        printer(event)
    capsys.readouterr()
    printer(now)
    *lines, last = capsys.readouterr().out.splitlines()

    assert lines == [f"content/{each}" for each in printed]
    if counts is None:
        assert last.endswith("; what is served stays, until the content is fixed")
    else:
        assert last == f"b1 is served, with 3 posts{counts}"


def fill_pipe() -> tuple[int, int, int]:
    """Return a pipe that takes nothing more: its ends, and how many bytes are in it."""
    reading, writing = os.pipe()
    flags = fcntl.fcntl(writing, fcntl.F_GETFL)
    fcntl.fcntl(writing, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    filled = 0
    try:
        while True:
            filled += os.write(writing, b"." * 4_096)
    except BlockingIOError:
        fcntl.fcntl(writing, fcntl.F_SETFL, flags)
    return reading, writing, filled


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, and fail when it does not come."""
    deadline = time.monotonic() + patience(180)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def running(
    command: list[str], writing: int, cwd: Path = ROOT, environment: dict[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command that writes into a pipe, of which this process then has the other end alone."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    process = subprocess.Popen(command, cwd=cwd, stdout=writing, stderr=writing, env=env)
    os.close(writing)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def edit(bench: Workbench, number: int) -> None:
    """Change a post so that it has one broken link more, and wait until it is served."""
    links = "".join(f"\n\n[a](/nowhere-{each}/)" for each in range(number))
    bench.post("edited", text=f"Edit {number}.{links}\n")
    page = bench.output / "current" / "site" / "journal" / "edited" / "index.html"
    wait_until(lambda: page.is_file() and f"Edit {number}." in page.read_text("utf-8"))


def watch(bench: Workbench) -> list[str]:
    """Return the command that watches a journal."""
    words = ["watch", "--content", bench.content, "--output", bench.output, "--site-url", SITE_URL]
    return [sys.executable, "-m", "site_build", *map(str, words)]


@pytest.mark.size("test", grows=True)
def test_a_full_pipe_stops_no_watcher(bench: Workbench) -> None:
    """Nobody reads, and each edit is served; then the reader sees what the next edit changed."""
    reading, writing, filled = fill_pipe()
    edits = scaled(test=4, ci=20, judge=100)
    with running(watch(bench), writing) as process, os.fdopen(reading, "rb") as said:
        for number in range(1, edits + 1):
            edit(bench, number)
        began = datetime.now(UTC)
        wait_until(lambda: bool((beat := Heartbeat.read(bench.output)) and not beat.failure))
        assert said.read(filled) == b"." * filled
        edit(bench, edits + 1)
        lines: list[bytes] = []
        while not (b"is served" in (lines or [b""])[-1] and f"/nowhere-{edits}/" in str(lines)):
            lines.append(said.readline())
        bench.write("posts/bad.md", "no front matter")
        wait_until(lambda: bool((b := Heartbeat.read(bench.output)) and b.at > began))
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience(180)) == 0
    last = [line.decode() for line in lines[-2:]]

    assert f"/nowhere-{edits}/`" in last[0]
    assert f"findings: 1 new, {edits} left" in last[1]
    assert sum(b"/nowhere-0/" in line for line in lines) == 1


def test_a_closed_pipe_stops_no_watcher(bench: Workbench) -> None:
    """A reader that went away, such as `head`, is no reason to end."""
    reading, writing = os.pipe()
    with running(watch(bench), writing) as process:
        edit(bench, 1)
        os.close(reading)
        for number in range(2, 5):
            edit(bench, number)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience(180)) == 0


START = "import sys; from site_build.__main__ import fore_edge; sys.exit(fore_edge())"


def test_a_full_pipe_stops_no_preview(bench: Workbench) -> None:
    """Its lines about errors are dropped, and pages are served."""
    port = find_free_port()
    places = {"CONTENT_DIR": bench.content, "BUILD_DIR": bench.output}
    environment = {name: str(place.absolute()) for name, place in places.items()}
    reading, writing, _ = fill_pipe()
    words = [sys.executable, "-c", START, "preview", "--port", str(port)]
    with running(words, writing, bench.content.parent, environment) as process:
        for number in range(1, 4):
            bench.post("edited", text=f"Edit {number}. [a](/nowhere-{number}/)\n")
            wait_until(partial(lambda said: said in read_page(port, "edited"), f"Edit {number}."))
            bench.write("posts/bad.md", "no front matter" * number)
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience(180)) == 0
    os.close(reading)


def read_page(port: int, slug: str) -> str:
    """Return a page, or nothing while it is not served."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/journal/{slug}/", timeout=patience(180)) as answer:
            return str(answer.read().decode())
    except HTTPError as refusal:
        return refusal.read().decode()
    except OSError:
        return ""


RELAYED = """
import sys
from pathlib import Path
from site_build.cli.terminal import relay_output
with relay_output():
    for number in range(5_000):
        print(f"line {number}", file=sys.stdout if number % 2 else sys.stderr, flush=True)
    Path(sys.argv[1]).touch()
    input()
"""


def test_lines_that_nobody_read_are_counted(tmp_path: Path) -> None:
    """The newest lines are kept, in order, and a line says how many are missing."""
    done = tmp_path / "done"
    process = subprocess.Popen(
        [sys.executable, "-c", RELAYED, done],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # Less than a pipe holds is through before anybody reads; what is written cannot be waiting.
    try:
        wait_until(done.exists)
        said, _ = process.communicate("\n", timeout=patience(180))
    finally:
        process.kill()
    lines = said.splitlines()
    lost = [int(each.split()[1].replace(",", "")) for each in lines if each.startswith("…")]
    shown = [int(each.removeprefix("line ")) for each in lines if not each.startswith("…")]

    assert shown[-1] == 4_999
    assert shown == sorted(shown)
    assert len(shown) + sum(lost) == 5_000


def test_a_pipe_that_does_not_block_loses_no_line_uncounted(tmp_path: Path) -> None:
    """As programs leave one behind that share it with others."""
    done = tmp_path / "done"
    source, inlet = os.pipe()
    os.set_blocking(inlet, False)
    process = subprocess.Popen(
        [sys.executable, "-c", RELAYED, done],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=inlet,
        stderr=inlet,
    )
    os.close(inlet)
    try:
        wait_until(done.exists)
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.close()
        with os.fdopen(source, encoding="utf-8") as file:
            lines = file.read().splitlines()
    finally:
        process.kill()
        process.wait()
    lost = [int(each.split()[1].replace(",", "")) for each in lines if each.startswith("…")]
    assert lines[-1] == "line 4999"
    assert sum(not each.startswith("…") for each in lines) + sum(lost) == 5_000


@pytest.mark.parametrize("place", ["log.txt", "/dev/null"])
def test_a_file_needs_no_relay(tmp_path: Path, place: str) -> None:
    """Its text stream could not be set up anew on a pipe, which cannot seek."""
    code = (
        "from site_build.cli.terminal import open_console, relay_output\n"
        "with relay_output():\n    open_console().print('a line')\n"
    )
    with (tmp_path / place).open("w") as file:
        command = [sys.executable, "-c", code]
        subprocess.run(command, cwd=ROOT, stdout=file, check=True, timeout=patience(180))

    assert (tmp_path / place).read_text() == ("" if place == "/dev/null" else "a line\n")
