"""Errors that stop a build: one sentence says so, and the old build stays."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from site_build.errors import BuildError, BusyError, ContentError
from site_build.releases.release import build
from tests.patience import patience
from tests.site_build.workbench import (
    ROOT,
    Snapshot,
    Workbench,
    compare,
    name_build,
    run_build,
    run_journal,
    run_pelican,
    take,
)
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

BAD = "---\ntitle: No date\nslug: no-date\n---\n\nWords.\n"
HOLDER = """
import fcntl, sys
with open(sys.argv[1], "ab") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def serve(bench: Workbench) -> Snapshot:
    """Return the files that are served now."""
    return take((bench.output / "current").resolve())


def list_left(bench: Workbench) -> list[str]:
    """Return what is in the folder of builds besides whole builds."""
    return sorted(path.name for path in bench.output.iterdir() if not path.name[0].isdigit())


def test_a_strict_build_of_bad_content_leaves_the_old_one(bench: Workbench) -> None:
    """All findings are listed, the status is 1, and not a byte of the served site changes."""
    bench.build()
    before = serve(bench)
    bench.write("posts/bad.md", BAD)
    bench.write("posts/worse.md", "no front matter")

    done = run_build(bench, "--strict")

    assert done.returncode == 1
    assert "posts/bad.md:1:1  error" in done.stdout
    assert "posts/worse.md:1:1  error" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert compare(before, serve(bench)) == []
    assert list_left(bench) == [".cache", ".lock", ".sources", ".spare", "current"]


def test_bad_content_writes_nothing_at_first(bench: Workbench) -> None:
    """Without an old build there is none afterwards."""
    bench.write("posts/bad.md", BAD)

    with pytest.raises(ContentError) as refusal:
        build(bench.order(strict=True))

    assert [finding.path for finding in refusal.value.findings] == ["posts/bad.md"]
    assert not (bench.output / "current").exists()
    assert not list(bench.output.glob("[0-9]*"))


@pytest.mark.size("ci")
def test_warnings_stop_a_strict_build_alone(bench: Workbench) -> None:
    """A broken link is listed; only --strict makes it stop the build."""
    bench.post("broken", text="[gone](/journal/nowhere/)")

    lenient, strict = run_build(bench), run_build(bench, "--strict")

    assert (lenient.returncode, strict.returncode) == (0, 1)
    for done in (lenient, strict):
        assert "posts/broken.md:7:8  warning" in done.stdout


def test_pelican_says_what_it_leaves_out(bench: Workbench, tmp_path: Path) -> None:
    """Pelican's own command builds the rest too, and ends with 3; strict, it writes nothing."""
    bench.write("posts/bad.md", BAD)

    strict = run_pelican(bench.content, tmp_path / "output", setting="BUILD_STRICT=true")
    assert strict.returncode == 1
    assert not (tmp_path / "output").exists()
    done = run_pelican(bench.content, tmp_path / "output")

    assert done.returncode == 3
    said = done.stdout + done.stderr
    assert "posts/bad.md:1:1" in said
    assert "1 file has errors:" in said
    assert "Traceback" not in said
    assert (tmp_path / "output" / "index.html").is_file()


@pytest.mark.parametrize(
    ("template", "text", "sentence"),
    [
        ("base.html", "{{ asset('missing.css') }}", "asset('missing.css')"),
        ("base.html", "{{ embedded('missing.svg') }}", "asset('missing.svg')"),
        *in_ci(
            ("base.html", "{{ embedded('face.woff2') }}", "which is for SVG pictures"),
            ("base.html", "{% if %}", "base.html:1"),
            ("article.html", "{{ article.nothing.at.all() }}", "article.html:1"),
            ("article.html", "{% include 'gone.html' %}", "gone.html"),
            ("page.html", "{{ 1 / 0 }}", "page.html:1"),
            ("article.html", "Words.\n{% endif %}", "article.html:2"),
        ),
    ],
)
def test_a_broken_theme_is_reported_in_a_sentence(
    bench: Workbench, tmp_path: Path, template: str, text: str, sentence: str
) -> None:
    """The template and the line are named, and no trace is shown."""
    theme = tmp_path / "theme" / "templates"
    theme.mkdir(parents=True)
    (tmp_path / "theme" / "static").mkdir()
    names = ["index", "journal", "tags", "archives", "404", "contact_thanks", "page", "tag"]
    for name in [*names, "article", "base"]:
        (theme / f"{name}.html").write_text("Words.")
    (theme / template).write_text(text)
    if template == "base.html":
        (theme / "article.html").write_text("{% extends 'base.html' %}")

    done = run_pelican(bench.content, tmp_path / "output", "-t", tmp_path / "theme")

    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1
    assert sentence in said.replace(" ", "") or sentence in said
    assert "Traceback" not in said


def test_a_style_sheet_with_a_missing_file_is_reported(bench: Workbench, tmp_path: Path) -> None:
    """A style sheet's reference to nothing stops the build."""
    done = run_pelican(bench.content, tmp_path / "output", "-t", make_theme_with_gap(tmp_path))

    assert done.returncode == 1
    assert "fonts/gone.woff2" in done.stdout + done.stderr


def make_theme_with_gap(folder: Path) -> Path:
    """Return a theme whose style sheet names a font that is not there."""
    (folder / "theme" / "templates").mkdir(parents=True)
    (folder / "theme" / "static").mkdir()
    (folder / "theme" / "static" / "style.css").write_text("p { src: url(fonts/gone.woff2) }")
    return folder / "theme"


@pytest.mark.size("ci")
def test_two_builds_at_once_are_one_too_many(bench: Workbench) -> None:
    """The second says so in a sentence and ends with 2; the first is not disturbed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(make_lock(bench))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"

    done = run_build(bench)
    with pytest.raises(BusyError):
        build(bench.order())
    holder.communicate()

    assert done.returncode == 2
    assert "another build is at work" in done.stderr
    assert done.stderr.count("\n") == 1
    assert run_build(bench).returncode == 0


def make_lock(bench: Workbench) -> Path:
    """Return the file that a build holds while it is at work."""
    bench.output.mkdir()
    return bench.output / ".lock"


@pytest.mark.parametrize("share", [0.2, *in_ci(0.5, 0.8)])
def test_a_killed_build_leaves_the_old_one(bench: Workbench, share: float) -> None:
    """Killed in the middle, a build harms nothing, and the next one clears up behind it."""
    for number in range(40):
        bench.post(f"p-{number}", text="Some *words* and\n\n```python\nx = 1\n```\n" * 9)
    bench.build()
    before = serve(bench)
    for number in range(40):
        bench.post(f"p-{number}", text="Other *words* and\n\n```python\ny = 2\n```\n" * 9)

    kill_at_work(bench, wanted=int(share * 40))

    assert compare(before, serve(bench)) == []
    assert [name for name in list_left(bench) if name.startswith(".staging-")]
    assert (
        "Other" in (build_when_free(bench) / "site" / "journal" / "p-7" / "index.html").read_text()
    )
    assert list_left(bench) == [".cache", ".lock", ".sources", ".spare", "current", "previous"]


def kill_at_work(bench: Workbench, wanted: int) -> None:
    """Kill a build, and nobody but it, once it has written so many posts."""
    process = subprocess.Popen(
        name_build(bench, "--jobs", 2),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + patience()
    while time.monotonic() < deadline and process.poll() is None:
        twins = bench.output.glob(".staging-*/site/journal/p-*/index.md")
        with suppress(FileNotFoundError):  # It gets its name meanwhile.
            if sum("Other" in twin.read_text(encoding="utf-8") for twin in twins) >= wanted:
                break
        time.sleep(0.01)
    children = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGKILL)
    assert process.wait(patience()) == -signal.SIGKILL
    _, alive = psutil.wait_procs(children, patience())
    assert alive == []


def build_when_free(bench: Workbench) -> Path:
    """Build as soon as no process of the killed build is left."""
    deadline = time.monotonic() + patience()
    while True:
        try:
            return bench.build()
        except BusyError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_killed_process_of_the_crew_stops_the_build(bench: Workbench) -> None:
    """If one process dies the build says so, ends with 1 and leaves the old site."""
    for number in range(40):
        bench.post(f"p-{number}", text="Some *words* and\n\n```python\nx = 1\n```\n" * 40)
    bench.output.mkdir()
    process = subprocess.Popen(
        name_build(bench, "--jobs", 2),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + patience()
    crew: list[psutil.Process] = []
    while time.monotonic() < deadline and not crew and process.poll() is None:
        crew = psutil.Process(process.pid).children()
    crew[0].kill()
    _, said = process.communicate(timeout=patience())

    assert process.returncode == 1
    assert "a process of the build died (SIGKILL)" in said
    assert "Traceback" not in said
    assert not list(bench.output.glob("[0-9]*"))


def limit_files() -> None:
    """Let no file grow above 64 KiB, which the system tells as a full disk does: by an error."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))


@pytest.mark.size("ci")
def test_a_disk_error_is_reported_in_a_sentence(bench: Workbench) -> None:
    """An error of the disk ends the build with one sentence; the old build stays."""
    bench.build()
    before = serve(bench)
    (bench.content / "images" / "big.bin").write_bytes(os.urandom(200_000))

    done = subprocess.run(
        name_build(bench),
        cwd=ROOT,
        preexec_fn=limit_files,
        capture_output=True,
        text=True,
        timeout=patience(),
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(f"the build cannot go on: File too large: {bench.output}")
    assert done.stderr.endswith("; free some space on its disk, or raise its limits\n")
    assert done.stderr.count("\n") == 1
    assert compare(before, serve(bench)) == []
    assert list_left(bench) == [".cache", ".lock", ".sources", "current"]


@pytest.mark.parametrize("output", ["/proc/nowhere/build", "/dev/null/build"])
def test_an_unwritable_output_folder_is_reported(bench: Workbench, output: str) -> None:
    """A folder of builds that cannot be made ends the build with one sentence."""
    done = run_build(Workbench(bench.content, Path(output)))

    assert done.returncode == 1
    assert done.stderr.startswith("the build cannot go on: ")
    assert done.stderr.count("\n") == 1


def test_a_missing_content_folder_is_reported(bench: Workbench, tmp_path: Path) -> None:
    """A folder that is not there ends the build with a sentence, and where help is."""
    done = run_build(Workbench(tmp_path / "nowhere", bench.output))

    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert done.stderr.count("\n") == 2
    with pytest.raises(BuildError, match="nowhere is not there"):
        build(Workbench(tmp_path / "nowhere", bench.output).order())


def test_a_folder_in_place_of_current_is_reported(bench: Workbench) -> None:
    """A copied `current` is not overwritten."""
    (bench.output / "current" / "site").mkdir(parents=True)

    done = run_build(bench)

    assert done.returncode == 1
    assert "is a folder, not the link" in done.stderr


def test_a_dangling_link_does_no_harm(bench: Workbench) -> None:
    """A link to a build that is gone does not stop the next build."""
    bench.output.mkdir()
    (bench.output / "current").symlink_to("20200101T000000Z-000000000000")

    assert (bench.build() / "site" / "index.html").is_file()


def test_a_foreign_folder_in_place_of_a_file_is_reported(bench: Workbench, tmp_path: Path) -> None:
    """A folder of a build makes way for a file; one that somebody else put there does not."""
    output = tmp_path / "output"
    bench.write("images/plan/first.txt", "One.")
    run_journal(bench.content, output)
    (bench.content / "images" / "plan" / "first.txt").unlink()
    (bench.content / "images" / "plan").rmdir()
    bench.write("images/plan", "All.")
    (output / "images" / "plan" / "own.txt").write_text("Mine.")

    with pytest.raises(BuildError, match=r"images/plan is a folder where the site needs a file"):
        run_journal(bench.content, output)

    assert (output / "images" / "plan" / "own.txt").read_text(encoding="utf-8") == "Mine."
    (output / "images" / "plan" / "own.txt").unlink()
    run_journal(bench.content, output)
    assert (output / "images" / "plan").read_text(encoding="utf-8") == "All."


def test_two_pages_at_one_address_are_reported(bench: Workbench, tmp_path: Path) -> None:
    """A page at the address of a template's page stops the build and says which."""
    bench.write(
        "pages/thanks.md", "---\ntitle: T\nslug: contact-thanks\ndescription: D.\n---\n\nWords.\n"
    )
    with pytest.raises(
        BuildError, match=r"Two outputs have the path contact-thanks/index\.html \(.*, pages/th"
    ):
        run_journal(
            bench.content,
            tmp_path / "output",
            CONTACT_THANKS_SAVE_AS="contact-thanks/index.html",
        )


def test_unreferenced_builds_are_deleted(bench: Workbench) -> None:
    """The served build and the one before stay; older ones go, and foreign folders never."""
    foreign = bench.output / "notes"
    foreign.mkdir(parents=True)

    builds = [bench.build(f"2026-05-0{day}T00:00:00Z") for day in range(1, 5)]

    assert [build.exists() for build in builds] == [False, False, True, True]
    assert foreign.is_dir()


def test_pelicans_own_class_is_refused_in_a_sentence(bench: Workbench, tmp_path: Path) -> None:
    """A site whose settings leave PELICAN_CLASS as it is hears what to write."""
    own = 'PELICAN_CLASS="pelican.Pelican"'
    done = run_pelican(bench.content, tmp_path / "output", setting=own)

    said = f"{done.stdout}{done.stderr}"
    assert done.returncode == 1
    assert "set it as pelicanconf.py does: PELICAN_CLASS = Journal" in " ".join(said.split())
    assert "Traceback" not in said
    assert not (tmp_path / "output").exists()
