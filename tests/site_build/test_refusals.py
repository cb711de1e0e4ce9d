"""Faults around a build, in names, templates, settings and folders: a sentence each."""

import errno
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from site_build.build.fingerprint import fingerprint_theme
from site_build.content.sources import list_folder
from site_build.errors import BuildError, find_fix
from site_build.markup.convert import DEFAULT_DIALECT
from site_build.releases.release import build
from tests.site_build.workbench import THEME, Workbench, run, run_build, run_journal

pytestmark = pytest.mark.size("test")


@pytest.mark.parametrize(("name", "shown"), [(b"\xff", "\\udcff"), (b"a\nb", "\\x0a")])
def test_a_folder_with_an_undecodable_name_is_reported(
    bench: Workbench, name: bytes, shown: str
) -> None:
    """The folder is the one finding, whatever lies in it."""
    folder = bench.content / "images" / os.fsdecode(name)
    folder.mkdir()
    (folder / "a.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')

    ((_, is_shown, found),) = build(bench.order()).held
    assert not is_shown
    assert found.path.startswith("images/")
    assert shown in found.path
    assert "the name holds signs that are no text; rename it" in found.message


@pytest.fixture
def theme(tmp_path: Path) -> Path:
    """Return a copy of the bare theme."""
    return Path(shutil.copytree(THEME, tmp_path / "theme"))


def test_a_static_file_with_an_undecodable_name_is_reported(bench: Workbench, theme: Path) -> None:
    """It would be published; a hidden file, such as an editor's, stops nothing."""
    before = fingerprint_theme([theme])
    (theme / "static" / os.fsdecode(b".\xff.svg.swp")).touch()
    assert fingerprint_theme([theme]) != before
    run_journal(bench.content, bench.output, theme)
    (theme / "static" / os.fsdecode(b"\xff.svg")).touch()

    with pytest.raises(BuildError, match=r"^\\udcff\.svg in .*static has a name that is no text"):
        run_journal(bench.content, bench.output, theme)


@pytest.mark.parametrize("name", ["article.html", "base.html"])
def test_a_template_that_is_not_utf8_is_reported(bench: Workbench, theme: Path, name: str) -> None:
    """It is named with the line, also where another template extends it."""
    template = theme / "templates" / name
    template.write_bytes(template.read_bytes().rstrip(b"\n") + b"\n{# caf\xe9 #}\n")
    line = template.read_bytes().count(b"\n")

    with pytest.raises(BuildError, match=rf"{name}:{line}: save this as UTF-8, which it is not"):
        run_journal(bench.content, bench.output, theme)


def test_a_build_needs_no_folder_for_temporary_files(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of plugins go to the disk of the build, whose errors are reported with a fix."""
    monkeypatch.setattr(tempfile, "tempdir", str(bench.content / "nowhere"))

    made = bench.build()

    assert (made / "site" / "index.html").is_file()
    assert [each for each in made.iterdir() if each.name.startswith("tmp")] == []


@pytest.mark.parametrize("command", ["build", "publish", "serve"])
def test_builds_within_the_content_are_refused(bench: Workbench, command: str) -> None:
    """So is content within the builds; nothing is written."""
    for content, output in (
        (bench.content, bench.content / "build"),
        (bench.content, bench.content),
        (bench.content / "posts", bench.content),
    ):
        words = ["-m", "site_build", command, "--content", content, "--output", output]
        more = ["--port", "0"] if command == "serve" else []
        done = run(sys.executable, *words, *more)

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"{output} and {content} must lie apart; fix BUILD_DIR or CONTENT_DIR\n"
        )
    assert not (bench.content / "build").exists()


def test_a_settings_file_that_exits_is_reported(bench: Workbench, tmp_path: Path) -> None:
    """The build ends with its own status, and says what the file did."""
    settings = tmp_path / "settings.py"
    settings.write_text("import sys\nsys.exit(3)\n")

    done = run_build(bench, PELICAN_SETTINGS=str(settings))

    assert (done.returncode, done.stderr) == (1, "settings.py: SystemExit: 3\n")


def test_errors_of_the_system_have_a_fix(tmp_path: Path) -> None:
    """Too many open files are no matter of the disk, and a folder that is not there has a fix."""
    assert find_fix(OSError(errno.EMFILE, "Too many open files")).startswith("raise the limit of")
    with pytest.raises(BuildError, match=r"nowhere cannot be read: No such.*; put it there"):
        list_folder(tmp_path / "nowhere", DEFAULT_DIALECT.rules)
