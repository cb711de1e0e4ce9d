"""The content library: what it reads again, and what it keeps."""

from datetime import UTC, datetime
from errno import EIO, ENOENT
from hashlib import sha256
from pathlib import Path

import pytest
from PIL import Image

from site_build.content import sources
from site_build.content.library import ContentLibrary, list_changed
from site_build.markup.convert import DEFAULT_DIALECT
from site_build.progress import Request
from tests.site_build.workbench import Workbench

pytestmark = pytest.mark.size("test")

NOON = datetime(2026, 6, 1, tzinfo=UTC)


def open_library(bench: Workbench) -> ContentLibrary:
    """Read the content of a workbench, with a cache on disk."""
    state, cache = bench.output, bench.output / "cache.sqlite"
    request = Request(bench.content, state, state, state, cache, NOON, 1)
    return ContentLibrary(request, "code", DEFAULT_DIALECT)


def test_pictures_of_a_renamed_folder_are_known_by_their_new_paths(empty_bench: Workbench) -> None:
    """The files are as they were, so only their paths tell."""
    (empty_bench.content / "images" / "old").mkdir(parents=True)
    Image.new("RGB", (9, 6)).save(empty_bench.content / "images" / "old" / "a.png")
    library = open_library(empty_bench)
    (empty_bench.content / "images" / "old").rename(empty_bench.content / "images" / "new")

    assert library.refresh()
    assert [*library.collect().image_set.pictures] == ["images/new/a.png"]


def test_a_file_that_the_disk_did_not_give_is_read_again(
    empty_bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the next look, or at the next start, though nobody has changed it."""
    post = empty_bench.post("one", text="![A plan](../images/a.png)")
    (empty_bench.content / "images").mkdir()
    picture = empty_bench.content / "images" / "a.png"
    Image.new("RGB", (9, 6)).save(picture)
    library = open_library(empty_bench)
    post.write_text(f"{post.read_text()}More.\n")
    Image.new("RGB", (8, 6)).save(picture)

    def digest(content: Path, path: str, *_: int) -> str:
        return sha256((content / path).read_bytes()).hexdigest()

    def fail(*_: object) -> bytes:
        raise OSError(EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(sources, "read_bytes", fail)
        patch.setattr(sources, "digest_file", digest)
        assert library.refresh()
        assert not library.refresh()
        first = open_library(empty_bench)
        for each in (library, first):
            faults = {found.path for found in each.check(NOON) if "(Input/" in found.message}
            assert faults == {"images/a.png", "posts/one.md"}

    for each in (library, first, open_library(empty_bench)):
        each.refresh(())
        assert each.check(NOON) == ()


def test_a_file_that_goes_while_it_is_read_is_no_matter_of_permissions(
    empty_bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was moved after the folder was listed is reported as such."""
    empty_bench.post("one")

    def fail(*_: object) -> bytes:
        raise FileNotFoundError(ENOENT, "No such file or directory")

    monkeypatch.setattr(sources, "read_bytes", fail)
    (found,) = open_library(empty_bench).list_errors()
    assert "permissions" not in found.message
    assert found.message.endswith("put it there, or try again if it was just moved or deleted")


@pytest.mark.parametrize("target", ["posts/target.md", "posts/.target.md", ".kept/target.md"])
def test_a_text_behind_a_link_is_as_it_was_written_last(
    empty_bench: Workbench, target: str
) -> None:
    """A change of the target of a link is reported by the target's path."""
    source = empty_bench.write(target, "---\ntitle: A\nslug: a\ndate: 2026-01-01\n---\n\nOld.\n")
    link = empty_bench.content / "pages" / "link.md"
    link.parent.mkdir()
    link.symlink_to(source)
    library = open_library(empty_bench)
    source.write_text("---\ntitle: B\nslug: a\ndate: 2026-01-01\n---\n\nNew.\n")

    assert library.refresh(list_changed(empty_bench.content, [str(source)]))
    titles = {each.path: each.title for each in library.collect().documents}
    assert titles["pages/link.md"] == "B"
