"""Former addresses: where they lead, what is said of bad ones, and of those that are gone."""

import json
import re

import feedparser  # type: ignore[import-untyped]
import pytest
from selectolax.lexbor import LexborHTMLParser

from edge_api.metrics import OPERATIONS as METRICS
from edge_api.operations import DESK, ROUTED
from site_build.checks.facts import is_of_edge
from site_build.releases.release import build
from tests.site_build.records import PostIndex
from tests.site_build.workbench import (
    NOW,
    SITE_URL,
    Workbench,
    check_content,
    find,
    run_build,
    run_pelican,
    take,
)

pytestmark = pytest.mark.size("test")

PAGE = "---\ntitle: {slug}\nslug: {slug}\n{more}---\n\nWords.\n"


def write_page(bench: Workbench, slug: str, more: str = "") -> None:
    """Write a page."""
    bench.write(f"pages/{slug}.md", PAGE.format(slug=slug, more=more))


def list_errors(bench: Workbench) -> list[str]:
    """Return the errors of a check, for which a build holds files back."""
    _, findings = check_content(bench.content, bench.order().now)
    errors = [str(each) for each in findings if each.severity == "error"]
    assert bool(build(bench.order()).held) == bool(errors)
    return errors


def list_warnings(bench: Workbench, *, strict: bool = False) -> list[str]:
    """Build, and return the warnings."""
    return [str(each) for each in build(bench.order(strict=strict)).findings]


def test_a_former_address_leads_to_the_present_one(bench: Workbench) -> None:
    """Slugs and paths, of posts and pages, have a page each that a browser leaves at once."""
    bench.post("new", aliases="[old, /2019/old-post/, /2019/plain, /2019/old.html, /a/index.html]")
    write_page(bench, "me", "aliases: [about-me, /über/uns]\n")
    site = bench.build() / "site"

    for path, target in {
        "journal/old/index.html": "journal/new/",
        "2019/old-post/index.html": "journal/new/",
        "2019/plain/index.html": "journal/new/",
        "2019/old.html": "journal/new/",
        "a/index.html": "journal/new/",
        "about-me/index.html": "me/",
        "über/uns/index.html": "me/",
    }.items():
        page = LexborHTMLParser((site / path).read_text(encoding="utf-8"))
        assert find(page, "link[rel=canonical]").attributes["href"] == f"{SITE_URL}/{target}"
        refresh = find(page, "meta[http-equiv=refresh]").attributes["content"]
        assert refresh == f"0; url=/{target}"
        assert find(page, "body a").attributes["href"] == f"/{target}"


def test_former_addresses_are_listed_nowhere(bench: Workbench) -> None:
    """Sitemap, feeds' links, lists and llms.txt know the present address alone."""
    bench.post("new", aliases="[old]", tags="[ink]")

    for path, data in take(bench.build() / "site").items():
        if path.endswith((".gz", ".br", "feed.xml", "feed.json")):
            continue
        assert path == "journal/old/index.html" or b"journal/old/" not in data, path


def test_the_index_has_former_addresses(bench: Workbench) -> None:
    """Its head has former paths, and former slugs of posts, of what readers see at the time."""
    bench.post("new", aliases="[old, /x/]")
    bench.post("hidden", status="draft", aliases="[hid]")
    bench.post("later", day="2099-01-01", aliases="[soon]")
    write_page(bench, "me", "aliases: [about-me]\n")
    folder = bench.build()

    head = PostIndex.model_validate_json((folder / "posts.json").read_bytes()).head

    assert head.moved == {
        "/journal/old/": "/journal/new/",
        "/x/": "/journal/new/",
        "/about-me/": "/me/",
    }
    assert head.renamed == {"old": "new"}
    assert not (folder / "site" / "journal" / "hid").exists()
    assert not (folder / "site" / "journal" / "soon").exists()


def test_an_entry_keeps_its_id_through_renames(bench: Workbench) -> None:
    """The first former slug is the id in both feeds; paths of other generators change nothing."""
    bench.post("new", aliases="[/2019/x.html, first, second]")
    bench.post("other", aliases="[/2018/x.html, /journal/x.html, /journal/x/y/]")
    site = bench.build() / "site"

    items = json.loads((site / "feed.json").read_bytes())["items"]
    entries = feedparser.parse((site / "feed.xml").read_bytes()).entries

    ids = {item["url"]: item["id"] for item in items}
    assert ids == {entry.link: entry.id for entry in entries}
    assert ids[f"{SITE_URL}/journal/new/"] == f"{SITE_URL}/journal/first/"
    assert ids[f"{SITE_URL}/journal/other/"] == f"{SITE_URL}/journal/other/"


@pytest.mark.parametrize(
    ("alias", "message"),
    [
        ("https://a.example/x/", "is 'https://a.example/x/'; write"),
        ("//a.example/x/", "is '//a.example/x/'; write"),
        ("'/old/?p=1'", "is '/old/?p=1'; write"),
        ("'/old/#a'", "is '/old/#a'; write"),
        ("/a/../b/", "is '/a/../b/'; write"),
        ("/.well-known/x/", "is '/.well-known/x/'; write"),
        ("/old%20post/", "is '/old%20post/'; write"),
        ("/old.php", "is '/old.php'; write"),
        ("Old Post", "is 'Old Post'; write"),
        ("old/post", "is 'old/post'; write"),
        ("''", "is empty; fill it in"),
        ("new", "is the address of this file itself"),
        ("/journal/new/", "is the address of this file itself"),
        ("third", "is the address of posts/third.md"),
        ("/about/", "is the address of pages/about.md"),
        ("/about", "is the address of pages/about.md"),
        ("/", "is '/'; write"),
        ("/index.html", "is an address of the site itself"),
        ("/api/x/", "is an address of the site itself"),
        ("/search/", "is an address of the site itself"),
        ("/docs/posts/", "is an address of the site itself"),
        ("/desk/", "is an address of the site itself"),
        ("/desk/leads/", "is an address of the site itself"),
        ("/metrics", "is an address of the site itself"),
        ("/shared/x/", "is an address of the site itself"),
        ("/unsubscribe", "is an address of the site itself"),
        ("/contact/access/", "is an address of the site itself"),
        ("/tags/light/", "is an address of the site itself"),
        ("/journal/page/2/", "is an address of the site itself"),
        ("/contact/thanks/", "is an address of the site itself"),
        ("/404.html", "is an address of the site itself"),
        ("/theme/x/", "is an address of the site itself"),
        ("taken", "is given by posts/taker.md too"),
        ("/images/x.pdf/", "needs a folder where the file /images/x.pdf is"),
        ("/2019/old.html/", "needs a folder where the file /2019/old.html is"),
        ("/2019/old.html/b/c/", "needs a folder where the file /2019/old.html is"),
        ("/images/x.pdf/a/b.html", "needs a folder where the file /images/x.pdf is"),
        ("/feed.xml/x/", "needs a folder where the file /feed.xml is"),
    ],
)
def test_a_bad_alias_is_an_error_at_its_place(bench: Workbench, alias: str, message: str) -> None:
    """It is reported with file, line and column, by check and build."""
    bench.post("taker", aliases="[taken, /2019/old.html]")
    bench.write("images/x.pdf", "A document.")
    bench.post("new", aliases=f"[fine, {alias}]")

    errors = [each for each in list_errors(bench) if each.startswith("posts/new.md:")]

    assert len(errors) == 1
    assert errors[0].startswith("posts/new.md:5:17  error  ")
    assert message in errors[0]


def test_an_alias_at_which_a_draft_will_be_is_a_warning(bench: Workbench) -> None:
    """Nothing is there yet, and no draft holds a post back."""
    bench.post("unfinished", status="draft")
    bench.post("new", aliases="[unfinished]")

    found = [str(each) for each in check_content(bench.content, bench.order().now)[1]]
    assert found == [
        "posts/new.md:5:11  warning  the alias is the address of posts/unfinished.md; take it out"
    ]


def test_aliases_may_be_a_text(bench: Workbench) -> None:
    """Commas part it; an error in one of them is reported at the text."""
    bench.post("new", aliases="old, /older/")
    bench.post("other", aliases="fine, no good")

    assert [each[:50] for each in list_errors(bench)] == [
        "posts/other.md:5:10  error  an alias is 'no good';"
    ]


def test_an_alias_given_twice_is_one(bench: Workbench) -> None:
    """Two spellings of one address are no fault."""
    bench.post("new", aliases="[old, /journal/old/, /journal/old, /journal/old/index.html]")

    assert list_errors(bench) == []


def test_a_link_to_a_former_address_is_a_warning(bench: Workbench) -> None:
    """The check names the present one."""
    bench.post("new", aliases="[old]")
    bench.post("linking", text="[there](/journal/old/)")

    [warning] = [each for each in list_warnings(bench) if "linking" in each]

    assert warning.startswith("posts/linking.md:7:9  warning  ")
    assert "leads to a former address; write /journal/new/" in warning


def test_a_rename_without_an_alias_is_a_warning(bench: Workbench) -> None:
    """A build says which address is gone, at the slug of the file that had it, and only once."""
    bench.post("old").rename(bench.content / "posts" / "x.md")
    write_page(bench, "former")
    bench.build()
    (bench.content / "posts" / "x.md").unlink()
    bench.post("new").rename(bench.content / "posts" / "x.md")
    (bench.content / "pages" / "former.md").unlink()

    warnings = list_warnings(bench, strict=True)

    gone = (
        "{}  warning  {} was an address in the previous build and is gone;"
        " if the page has a new address, add `aliases: [{}]` to it"
    )
    assert warnings == [
        gone.format("pages/former.md:1:1", "/former/", "/former/"),
        gone.format("posts/x.md:3:7", "/journal/old/", "/journal/old/"),
    ]
    assert list_warnings(bench) == []


def test_a_rename_with_an_alias_is_none(bench: Workbench) -> None:
    """Nor is an edit, nor a tag that nobody uses any more; an alias that is dropped is one."""
    bench.post("old", tags="[rare]")
    bench.build()
    (bench.content / "posts" / "old.md").unlink()
    bench.post("new", aliases="[old]")
    assert list_warnings(bench) == []

    bench.post("new")

    [warning] = list_warnings(bench)
    assert "/journal/old/ was an address in the previous build" in warning


def test_many_vanished_pages_are_counted(bench: Workbench) -> None:
    """A folder that got other content is reported in a few lines."""
    for number in range(30):
        bench.post(f"old-{number}")
    bench.build()
    for path in (bench.content / "posts").glob("old-*.md"):
        path.unlink()

    warnings = list_warnings(bench)

    assert len(warnings) == 11
    assert "20 more addresses" in "".join(warnings)


def test_the_commands_print_what_is_gone(bench: Workbench) -> None:
    """`build` prints the warning and succeeds; so does plain `pelican`."""
    bench.post("old")
    run_build(bench)
    output = bench.output.with_name("output")
    run_pelican(bench.content, output)
    (bench.content / "posts" / "old.md").unlink()

    for done in (run_build(bench), run_pelican(bench.content, output)):
        assert done.returncode == 0
        assert "/journal/old/" in " ".join((done.stdout + done.stderr).split())


def test_an_alias_changes_a_build_and_no_more(bench: Workbench) -> None:
    """A rebuild with one more alias is what a build from nothing would be."""
    bench.post("new", aliases="[old]")
    bench.build()
    bench.post("new", aliases="[old, /older/]")

    second = take(bench.build() / "site")

    afresh = Workbench(bench.content, bench.output.with_name("afresh")).build(NOW)
    assert second == take(afresh / "site")
    assert "older/index.html" in second


def test_addresses_of_the_edge_are_no_alias_and_no_page() -> None:
    """The addresses are those that the edge declares: a new operation elsewhere fails here."""
    routed = {item.path for item in (*ROUTED, *DESK, *METRICS)} - {"/contact/"}  # a page of ours
    shadowed = {path for path in routed if is_of_edge(re.sub(r"\{\w+\}", "x", path)[1:])}

    assert {"/desk/", "/metrics", "/contact/access/"} <= routed
    assert routed - shadowed == set()
    assert is_of_edge("shared/some-token/")
    assert not any(map(is_of_edge, ("", "journal/desk/", "desks/", "metric", "shared.html")))


@pytest.mark.parametrize("slug", ["desk", "shared"])
def test_a_page_at_an_address_of_the_edge_is_an_error(bench: Workbench, slug: str) -> None:
    """Readers would never see it."""
    bench.write(f"pages/{slug}.md", f"---\ntitle: A page\nslug: {slug}\n---\n\nWords.\n")

    (error,) = list_errors(bench)

    assert f"the slug gives the address /{slug}/, where the edge has a page of its own" in error
