"""The content library: what it reads again, and what it keeps."""

from datetime import UTC, datetime

import pytest
from PIL import Image

from site_build.content.library import ContentLibrary
from site_build.markup.convert import HOUSE
from site_build.progress import Place, Request
from tests.site_build.workbench import Desk

pytestmark = pytest.mark.size("test")

NOON = datetime(2026, 6, 1, tzinfo=UTC)


def open_library(desk: Desk) -> ContentLibrary:
    """Read the content of a desk, with a cache on disk."""
    place, cache = Place(desk.output, desk.output), desk.output / "cache.sqlite"
    return ContentLibrary(Request(desk.content, place, desk.output, cache, NOON, 1), "code", HOUSE)


def test_pictures_of_a_renamed_folder_are_known_by_their_new_paths(empty_desk: Desk) -> None:
    """The files are as they were, so only their paths tell."""
    (empty_desk.content / "images" / "old").mkdir(parents=True)
    Image.new("RGB", (9, 6)).save(empty_desk.content / "images" / "old" / "a.png")
    library = open_library(empty_desk)
    (empty_desk.content / "images" / "old").rename(empty_desk.content / "images" / "new")

    assert library.refresh()
    assert [*library.collect().image_set.pictures] == ["images/new/a.png"]
