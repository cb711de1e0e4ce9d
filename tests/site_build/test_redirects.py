"""`redirects.txt`: former addresses that belong to no text, in checks, builds and previews."""

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from site_build.build.memory import BuildMemory
from site_build.content.redirects import read_redirects
from site_build.releases.release import build
from tests.site_build.previewing import previewing, wait_for
from tests.site_build.records import PostIndex
from tests.site_build.workbench import Workbench, check_content, take

pytestmark = pytest.mark.size("test")


def read_moved(bench: Workbench) -> Mapping[str, str]:
    """Build, and return the table of former addresses of the index."""
    return PostIndex.model_validate_json((bench.build() / "posts.json").read_bytes()).head.moved


def list_findings(bench: Workbench) -> list[str]:
    """Return what a check says of the file."""
    found = map(str, check_content(bench.content, bench.order().now)[1])
    return [each for each in found if each.startswith("redirects.txt")]


def test_the_index_has_them(bench: Workbench) -> None:
    """Paths without query are among the moved ones; comments, blanks and encodings are read."""
    bench.post("oak", tags="[wood]")
    bench.write(
        "redirects.txt",
        "\ufeff# from the old journal\n\n/feed/  /feed.xml   # for readers\n"
        "/tag/b%C3%A4ume/ /tags/wood/\r\n/tags/c%23/ /tags/wood/\n"
        "/\u672c /journal/oak/\n/?p=1%32 /journal/oak/\n"
        "/index.php?p=3&x=%C3%A4 /\n",
    )

    assert read_moved(bench) == {
        "/feed/": "/feed.xml",
        "/tag/b\u00e4ume/": "/tags/wood/",
        "/tags/c#/": "/tags/wood/",
        "/\u672c": "/journal/oak/",
        "/?p=12": "/journal/oak/",
        "/index.php?p=3&x=\u00e4": "/",
    }
    assert list_findings(bench) == []


def test_a_static_server_has_pages_for_them(bench: Workbench) -> None:
    """One for each path that can be a page, where no disk has anything in its way."""
    bench.post("oak", tags="[wood]", aliases="[/x.html]")
    bench.write("images/CNAME", "x")
    bench.write(
        "redirects.txt",
        "/feed/ /feed.xml\n/b\u00e4ume /tags/wood/\n/a.html /\n/a.html/b/ /\n/A.HTML /\n"
        "/rss.php /\n/?p=1 /\n/x.html/y/ /\n/images/CNAME/z/ /\n/JOURNAL/OAK/ /journal/oak/\n",
    )
    site = bench.build() / "site"
    pages = {
        path: re.findall(r"url=([^\"]+)", data.decode())
        for path, data in take(site).items()
        if path.endswith(".html") and b'http-equiv="refresh"' in data
    }

    assert pages == {
        "feed/index.html": ["/feed.xml"],
        "b\u00e4ume.html": ["/tags/wood/"],
        "a.html": ["/"],
        "x.html": ["/journal/oak/"],
    }
    assert "feed/index" not in (site / "sitemap.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/old", "'/old' is no redirect, or the second of its path; write one old path and"),
        ("/old /journal/oak/ 301", "is no redirect"),
        ("https://old.example/x /journal/oak/", "is no redirect"),
        ("//old.example/x /journal/oak/", "is no redirect"),
        ("/old https://other.example/", "is no redirect"),
        ("/old#part /journal/oak/", "is no redirect"),
        ("/old /journal/oak/?a=1", "is no redirect"),
        ("/a/../old /journal/oak/", "is no redirect"),
        ("/a//old /journal/oak/", "is no redirect"),
        ("/%00 /journal/oak/", "is no redirect"),
        ("/%E9 /journal/oak/", "is no redirect"),
        (f"/{'x' * 221}/y /journal/oak/", "is no redirect"),
        ("/same/ /same/", "`/same/` is a former address too"),
        ("/fine/ /journal/", "or the second of its path"),
        ("/journal/oak/ /", "`/journal/oak/` is an address of the site itself"),
        ("/journal/oak /", "is an address of the site itself"),
        ("/alias/ /", "is an address of the site itself"),
        ("/feed.xml /", "is an address of the site itself"),
        ("/images/x.pdf /", "is an address of the site itself"),
        ("/api/v1 /journal/oak/", "is an address of the site itself"),
        ("/ /journal/oak/", "is an address of the site itself"),
        ("/first/ /fine/", "`/fine/` is a former address too"),
        ("/old/ /nowhere/", "broken link: no page at `/nowhere/`"),
        ("/old/ /journal/draft/", "the page at `/journal/draft/` is a draft"),
    ],
)
def test_a_bad_line_is_a_warning_at_its_place(bench: Workbench, line: str, message: str) -> None:
    """It holds neither the build nor the other lines up, and never hides a page."""
    bench.post("oak", aliases="[/alias/]")
    bench.post("draft", status="draft")
    bench.write("images/x.pdf", "A document.")
    bench.write("redirects.txt", f"/fine/ /journal/oak/\n{line}\n/last/ /journal/\n")

    [finding] = list_findings(bench)
    assert finding.startswith("redirects.txt:2:1  warning  ")
    assert message in finding
    report = build(bench.order())
    assert not report.held
    assert finding in map(str, report.findings)
    moved = read_moved(bench)
    assert (moved["/fine/"], moved["/last/"]) == ("/journal/oak/", "/journal/")
    assert moved.keys() <= {"/fine/", "/last/", "/alias/", "/first/"}


def test_a_plan_of_a_draft_counts_once_that_is_published(bench: Workbench) -> None:
    """Nobody edits the file for that."""
    bench.post("later", status="draft")
    bench.write("redirects.txt", "/old/ /journal/later/\n")
    assert read_moved(bench) == {}

    bench.post("later")

    assert read_moved(bench) == {"/old/": "/journal/later/"}


def test_a_watcher_sees_each_change(bench: Workbench) -> None:
    """A file that is new, changed or deleted changes the next build, and that alone."""
    bench.post("oak")
    memory = BuildMemory()

    def look() -> str:
        build(bench.order(), memory)
        site = bench.output / "current" / "site"
        return " ".join(path.parent.name for path in sorted(site.glob("old*/index.html")))

    assert look() == ""
    assert not memory.check_sources()
    for text, expected in (("/old/ /\n", "old"), ("/old/ /\n/old2/ /\n", "old old2")):
        bench.write("redirects.txt", text)
        assert memory.check_sources()
        assert look() == expected
    (bench.content / "redirects.txt").unlink()
    assert memory.check_sources()
    assert look() == ""


def test_a_preview_follows_them(bench: Workbench) -> None:
    """Pages come before them, and a new line counts at once."""
    bench.post("oak")
    with previewing(bench) as shown:
        assert shown.ask("/old/").status == 404
        bench.write("redirects.txt", "/old/ /journal/oak/\n/journal/oak/ /\n")
        wait_for(lambda: shown.ask("/old/").status, lambda status: status == 200)
        assert "url=/journal/oak/" in shown.ask("/old/").text
        assert 'http-equiv="refresh"' not in shown.ask("/journal/oak/").text


def test_a_redirects_file_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    """Nobody waits for a pipe; a missing file says nothing."""
    os.mkfifo(tmp_path / "redirects.txt")
    reader = threading.Thread(target=read_redirects, args=(tmp_path,), daemon=True)
    reader.start()
    reader.join(10)
    assert not reader.is_alive()
    assert read_redirects(tmp_path / "none") == ({}, [])
