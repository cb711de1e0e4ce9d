"""The public files of a build, which all agree."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import brotli
import feedparser  # type: ignore[import-untyped]
import pytest
from selectolax.lexbor import LexborHTMLParser

from site_build.releases.release import build
from tests.site_build.records import PostIndex, parse
from tests.site_build.workbench import (
    GOLDEN,
    JOURNAL,
    NOW,
    SITE_URL,
    Snapshot,
    Workbench,
    compare,
    find,
    make_golden,
    run_build,
    run_journal,
    run_pelican,
    take,
    unpack,
)

pytestmark = pytest.mark.size("test")

PUBLIC = ["second-sight", "third", "first-light"]
"""Slugs of the small journal's public posts, in the order of the API."""

VEILED = re.compile(rb"veiled", re.IGNORECASE)
"""A word in every draft and in every post whose time has not come."""

LATER = "2026-06-01T12:00:00Z"
"""The instant of the small journal's scheduled post."""


def read_index(build: Path) -> PostIndex:
    """Return the posts index of a build."""
    return PostIndex.model_validate_json((build / "posts.json").read_bytes())


def list_linked(text: str) -> set[str]:
    """Return the slugs of all posts that a text links to."""
    return set(re.findall(rf"(?:{SITE_URL})?/journal/([a-z0-9-]+)/", text)) - {"page"}


def test_the_golden_journal(tmp_path: Path) -> None:
    """The small journal, with a bare theme, comes out byte for byte as it always has.

    `python -m tests.site_build.workbench` writes the expected tree anew.
    """
    made = make_golden(tmp_path)

    assert compare(made, take(GOLDEN)) == []


def test_pelican_gives_the_same_site(bench: Workbench, tmp_path: Path) -> None:
    """`pelican content -s pelicanconf.py` writes the same files with the same bytes."""
    build = bench.build()

    done = run_pelican(bench.content, tmp_path / "output")

    assert done.returncode == 0, done.stderr
    assert compare(take(tmp_path / "output"), take(build / "site")) == []


def test_the_command_gives_the_same_site(bench: Workbench, tmp_path: Path) -> None:
    """The command and the function under it write the same, the posts index included."""
    build = take(bench.build())
    other = Workbench(bench.content, tmp_path / "other")

    done = run_build(other)

    assert done.returncode == 0, done.stderr
    command = take((other.output / "current").resolve())
    assert [path for path in compare(build, command) if path != "manifest.sqlite"] == []


def test_the_index_holds_the_public_posts(bench: Workbench) -> None:
    """The index is for this build, newest first, the slug decides between equals."""
    build = bench.build()

    index = read_index(build)

    assert [post.slug for post in index.posts] == PUBLIC
    assert (index.head.count, index.head.build_id) == (3, build.name)
    assert index.head.site_url == SITE_URL
    assert index.head.built_for.isoformat() == NOW.replace("Z", "+00:00")


def test_a_record_says_what_the_author_wrote(bench: Workbench) -> None:
    """Title, days, tags, texts and address of a post are in its record."""
    post = read_index(bench.build()).posts[0].model_dump(mode="json")

    text = (JOURNAL / "posts" / "second.md").read_text(encoding="utf-8")
    assert {name: post[name] for name in post if name not in {"content", "content_html"}} == {
        "slug": "second-sight",
        "title": "Second sight",
        "description": "Code, an image and a term.",
        "excerpt": "Shown in lists.",
        "publishedAt": "2026-02-10T00:00:00Z",
        "published_at": "2026-02-10T00:00:00Z",
        "updatedAt": "2026-02-12T08:30:00Z",
        "readingMinutes": 1,
        "tags": ["light", "Sight"],
        "url": f"{SITE_URL}/journal/second-sight/",
    }
    assert post["content"].strip() == text.partition("---\n\n")[2].strip()
    image = f'<img width="1" height="1" alt="A square" src="{SITE_URL}/images/square.svg">'
    assert image in post["content_html"]


def test_the_author_is_named_in_every_form_of_a_post(bench: Workbench) -> None:
    """On its page, to machines and in feeds; also when it alone has changed."""
    for author in ("Ann", "Bob"):
        bench.post("signed", author=author)
        bench.write("pages/by.md", f"---\ntitle: By\nslug: by\nauthor: {author}\n---\n\nText.\n")
        site = bench.build() / "site"
        for folder in (site / "journal" / "signed", site / "by"):
            page = LexborHTMLParser((folder / "index.html").read_bytes())
            assert find(page, "meta[name=author]").attributes["content"] == author
            assert f"- Author: {author}\n" in (folder / "index.md").read_text(encoding="utf-8")
        post = LexborHTMLParser((site / "journal" / "signed" / "index.html").read_bytes())
        assert author in find(post, ".shoulder").text()
        assert (
            f'"author":{{"@type":"Person","name":"{author}"}}' in find(post, "script[type]").text()
        )
        for feed in ("feed.xml", "feed.json"):
            assert author in (site / feed).read_text(encoding="utf-8")


def test_each_post_of_the_index_is_on_a_line(bench: Workbench) -> None:
    """The index is JSON as a whole, and can be read post by post."""
    lines = (bench.build() / "posts.json").read_text(encoding="utf-8").splitlines()

    slugs = [json.loads(line.rstrip(","))["slug"] for line in lines[1:-1]]

    assert slugs == PUBLIC


def test_all_overviews_name_the_same_posts(bench: Workbench) -> None:
    """Index, journal, archive, feed, sitemap, llms.txt and twins agree on what there is."""
    for number in range(45):
        bench.post(f"more-{number}", f"2026-03-{number % 28 + 1:02}", tags="[Light]")
    build = bench.build()
    index = {post.slug for post in read_index(build).posts}
    site = build / "site"

    def gather(pattern: str) -> set[str]:
        return {
            slug
            for path in site.glob(pattern)
            for slug in list_linked(path.read_text(encoding="utf-8"))
        }

    sitemap = {
        urlsplit(row[0].text or "").path
        for row in ET.fromstring((site / "sitemap.xml").read_bytes())  # noqa: S314 - our own
    }
    leaves = gather("journal/index.html") | gather("journal/page/*/index.html")
    twins = gather("journal/index.md") | gather("journal/page/*/index.md")
    feed = feedparser.parse((site / "feed.xml").read_bytes())

    assert len(index) == 48
    assert leaves == twins == gather("archive/index.html") == gather("archive/index.md") == index
    assert gather("llms.txt") == index
    assert {path.split("/")[2] for path in sitemap if path.startswith("/journal/")} - {""} == index
    assert {slug for entry in feed.entries for slug in list_linked(entry.link)} == index
    assert {path.parent.name for path in site.glob("journal/*/index.html")} - {"page"} == index
    assert {path.parent.name for path in site.glob("journal/*/index.md")} - {"page"} == index


def test_tag_pages_hold_the_posts_of_their_tags(bench: Workbench) -> None:
    """Spellings of a tag share a page; a draft's tag has none."""
    site = bench.build() / "site"

    pages = {
        path.parent.name: list_linked(path.read_text(encoding="utf-8"))
        for path in site.glob("tags/*/index.html")
    }

    assert pages == {
        "c": {"first-light"},
        "light": {"first-light", "second-sight"},
        "sight": {"second-sight"},
    }


def find_veiled(files: Snapshot) -> list[str]:
    """Return the files that say something of what is not public."""
    return [
        path
        for path, data in files.items()
        if VEILED.search(path.encode()) or VEILED.search(unpack(path, data))
    ]


def test_nothing_unpublished_leaves_the_build(bench: Workbench, tmp_path: Path) -> None:
    """No file of a build, compressed or not, says a word of drafts and of later posts."""
    build = take(bench.build())
    done = run_pelican(bench.content, tmp_path / "output")

    assert find_veiled(build) == []
    assert done.returncode == 0
    assert find_veiled(take(tmp_path / "output")) == []


def test_a_scheduled_post_appears_at_its_instant(bench: Workbench) -> None:
    """One second earlier it is nowhere; at its instant it is everywhere."""
    before = take(bench.build("2026-06-01T11:59:59Z"))

    after = bench.build(LATER)

    assert find_veiled(before) == []
    assert (after / "site" / "journal" / "veiled-later" / "index.html").is_file()
    assert read_index(after).posts[0].slug == "veiled-later"
    assert b"veiled-draft" not in b"".join(take(after).values())


def test_every_page_has_its_twin(bench: Workbench) -> None:
    """Beside each page is its Markdown."""
    site = bench.build() / "site"

    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}

    lonely = [page for page in pages if not (site / page).with_suffix(".md").is_file()]
    assert lonely == []


def test_published_links_are_not_broken(bench: Workbench) -> None:
    """Every address of the site in every page, feed and twin leads to a file, or to the API."""
    shutil.copy(JOURNAL / "pages" / "about.md", bench.content / "pages" / "contact.md")
    bench.write(
        "pages/contact.md", "---\ntitle: Contact\nslug: contact\ndescription: Write.\n---\n\nDo.\n"
    )
    site = bench.build() / "site"
    addresses = set()
    for path in site.rglob("*.html"):
        page = LexborHTMLParser(path.read_text(encoding="utf-8"))
        for node in page.css("[href],[src]"):
            target = node.attributes.get("href") or node.attributes.get("src") or ""
            addresses.add(target.removeprefix(SITE_URL).partition("#")[0].partition("?")[0])
    for path in [*site.rglob("*.md"), site / "llms.txt"]:
        addresses |= set(re.findall(rf"\]\({SITE_URL}([^)]*)\)", path.read_text(encoding="utf-8")))

    local = {address for address in addresses if address.startswith("/")}
    missing = [
        address
        for address in sorted(local)
        if not address.startswith(("/api/", "/docs/", "/search", "/.well-known/api-catalog"))
        and not (site / address[1:] / ("index.html" if address.endswith("/") else "")).is_file()
    ]
    assert len(local) > 15
    assert missing == []


def test_text_comes_compressed(bench: Workbench) -> None:
    """Text above half a kilobyte has both forms, which say the same; other files have none."""
    (bench.content / "images" / "photo.png").write_bytes(bytes(range(256)) * 9)
    files = take(bench.build() / "site")

    packed = {path for path in files if path.endswith((".gz", ".br"))}

    for path in packed:
        assert unpack(path, files[path]) == files[path[:-3]]
        assert len(files[path]) < len(files[path[:-3]])
    big = {path for path, data in files.items() if len(data) > 500} - packed
    assert {path[:-3] for path in packed} == {
        path for path in big if not path.endswith((".png", ".woff2"))
    }
    assert ".well-known/security.txt" not in {path[:-3] for path in packed}


def test_render_blocking_files_are_compressed_harder(bench: Workbench) -> None:
    """The sheet takes fewer bytes than at the quality that is quick enough for each page."""
    site = bench.build() / "site"
    (sheet,) = (site / "theme").glob("style.*.css")

    packed = sheet.with_name(f"{sheet.name}.br").read_bytes()
    assert len(packed) < len(brotli.compress(sheet.read_bytes(), quality=9))


def test_images_are_published_as_they_are(bench: Workbench) -> None:
    """Files below images/ come out unchanged, at any depth."""
    (bench.content / "images" / "deep").mkdir()
    (bench.content / "images" / "deep" / "a b.bin").write_bytes(b"\0\1")

    site = bench.build() / "site"

    assert (site / "images" / "deep" / "a b.bin").read_bytes() == b"\0\1"
    square = (JOURNAL / "images" / "square.svg").read_bytes()
    assert (site / "images" / "square.svg").read_bytes() == square


def test_an_empty_journal_is_a_site(empty_bench: Workbench) -> None:
    """Without any post there are still a home, lists, a feed and a valid index."""
    build = empty_bench.build()

    assert read_index(build).posts == ()
    assert feedparser.parse((build / "site" / "feed.xml").read_bytes()).bozo is False
    assert (build / "site" / "journal" / "index.html").is_file()


def test_a_link_to_a_tag_of_hidden_posts_alone_is_broken(empty_bench: Workbench) -> None:
    """The build makes no page for such a tag, and warns of the link."""
    empty_bench.post("aside", status="hidden", tags="[oak]")
    empty_bench.post("shown", text="[Oak](/tags/oak/)")

    findings = build(empty_bench.order()).findings

    assert not (empty_bench.output / "current" / "site" / "tags" / "oak").exists()
    assert [each.path for each in findings if "no page at `/tags/oak/`" in each.message] == [
        "posts/shown.md"
    ]


def test_the_search_has_a_short_name_in_well_formed_xml(empty_bench: Workbench) -> None:
    """A name is cut to 16 characters, and not within the entity of one of them."""
    output = empty_bench.output / "site"
    run_journal(empty_bench.content, output, SITENAME="Bread, Salt & Company")

    root = parse((output / "opensearch.xml").read_bytes())
    assert root[0].text == "Bread, Salt & Co"


def test_long_lists_are_cut_above_their_bound(empty_bench: Workbench) -> None:
    """The feed has the newest 50 posts, the full text the newest 100, and both say so."""
    for number in range(130):
        empty_bench.post(f"p-{number:03}", "2026-01-01")

    site = empty_bench.build() / "site"

    feed = feedparser.parse((site / "feed.xml").read_bytes())
    full = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert len(feed.entries) == 50
    assert "The newest 50 of 130 posts" in feed.feed.subtitle
    assert full.count("- Source: ") == 100
    assert "The newest 100 of 130 posts" in full


def test_addresses_are_those_of_the_asked_origin(bench: Workbench) -> None:
    """Nothing of a build names another origin than the one it is for."""
    files = take(bench.build())

    origins = {
        found
        for path, data in files.items()
        if not path.startswith("site/theme/fonts/")  # they name their makers
        for found in re.findall(rb"https?://[a-z0-9.:-]+", unpack(path, data))
    }

    assert origins - {SITE_URL.encode()} <= {
        b"https://example.org",
        b"http://a9.com",  # of OpenSearch
        b"http://www.w3.org",
        b"http://www.sitemaps.org",
        b"https://jsonfeed.org",
        b"https://schema.org",
        b"https://schemas.agentskills.io",
    }


@pytest.mark.parametrize("name", ["posts.json", "manifest.sqlite"])
def test_private_files_stay_outside_the_site(bench: Workbench, name: str) -> None:
    """The index and the ledger are beside the public folder, never in it."""
    build = bench.build()

    assert (build / name).is_file()
    assert not list((build / "site").rglob(name))
    hidden = [path.name for path in (build / "site").rglob(".*")]
    assert set(hidden) <= {".well-known"}
