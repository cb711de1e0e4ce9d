"""The list of public files: what is in it, and what never is."""

import os
from pathlib import Path

import pytest

from edge_api.journal.site_files import SiteFile, list_site
from tests.edge.small_builds import write_site


def names(folder: Path) -> dict[str, str]:
    """Return the names of the listed files by the paths at which they answer."""
    return {path: file.name for path, file in list_site(folder).items()}


def test_folders_answer_with_their_index(tmp_path: Path) -> None:
    """Every file answers at its path, and an index.html at that of its folder."""
    write_site(tmp_path, dict.fromkeys(["index.html", "a/index.html", "a/b.css", "feed.xml"], "x"))

    assert names(tmp_path) == {
        "/": "index.html",
        "/a/": "a/index.html",
        "/a/b.css": "a/b.css",
        "/feed.xml": "feed.xml",
    }


def test_compressed_forms_belong_to_their_file(tmp_path: Path) -> None:
    """Compressed forms are known by their file, and are no files of their own."""
    content = {"a.css": "12345", "a.css.br": "1", "a.css.gz": "12", "b.css": "1", "c.css.gz": "1"}
    write_site(tmp_path, {**content, "b.css.br": "x"})
    files = list_site(tmp_path)

    assert sorted(files) == ["/a.css", "/b.css"]
    assert files["/a.css"].codings == ("br", "gzip")
    assert files["/b.css"].codings == ("br",)


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    """Hidden files and folders are not public, but for `.well-known` in the root."""
    hidden = [".env", ".git/config", "a/.htpasswd", "a/.well-known/x", ".well-known/.secret"]
    write_site(tmp_path, dict.fromkeys([*hidden, ".well-known/security.txt"], "x"))

    assert names(tmp_path) == {"/.well-known/security.txt": ".well-known/security.txt"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A symbolic link is not public, wherever it leads; nor is anything but a regular file."""
    write_site(tmp_path / "site", {"a.txt": "x", "b/c.txt": "x"})
    write_site(tmp_path, {"secret.txt": "x", "folder/secret.txt": "x"})
    site = tmp_path / "site"
    (site / "out.txt").symlink_to(tmp_path / "secret.txt")
    (site / "up").symlink_to(tmp_path)
    (site / "loop").symlink_to(site)
    (site / "inner.txt").symlink_to("a.txt")
    (site / "broken").symlink_to("nowhere")
    os.mkfifo(site / "pipe")

    assert sorted(list_site(site)) == ["/a.txt", "/b/c.txt"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    """A request for the files of a missing folder is refused."""
    with pytest.raises(FileNotFoundError):
        list_site(tmp_path / "none")


def test_site_files_are_compared_by_identity() -> None:
    """Two files with one name, of two builds, are not the same."""
    assert SiteFile("a") != SiteFile("a")
