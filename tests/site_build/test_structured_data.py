"""JSON-LD: the shapes that search engines ask for, on real pages; and no text that ends a script.

Required and recommended properties are those that Google publishes for Article, Breadcrumb, Site
name, Organization, and Carousel.
"""

import json
import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from selectolax.lexbor import LexborHTMLParser

from site_build.pelican_plugin.structured_data import StructuredData, write_script
from site_build.site import Identity
from tests.page_scripts import has_own_scripts_alone
from tests.site_build.records import DAY, ME
from tests.site_build.workbench import SITE_URL, Workbench

NASTY = "</script><script>alert(1)</script> & <!-- \u2028 \u2029 'x' \"y\" {{ z }}"
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
SHAPES = {
    "BlogPosting": {
        "headline",
        "image",
        "datePublished",
        "dateModified",
        "author",
        "publisher",
        "mainEntityOfPage",
        "description",
        "keywords",
        "wordCount",
        "inLanguage",
        "isPartOf",
        "timeRequired",
        "url",
    },
    "BreadcrumbList": {"itemListElement"},
    "WebSite": {"name", "url", "potentialAction", "publisher", "inLanguage", "description"},
    "Organization": {"name", "url", "logo", "contactPoint"},
    "Blog": {"name", "url"},
    "CollectionPage": {"name", "url", "isPartOf", "inLanguage"},
    "AboutPage": {"name", "url", "isPartOf", "description"},
    "WebPage": {"name", "url", "isPartOf", "description"},
}


def read_graph(page: Path) -> list[Any]:
    """Return the nodes of a built page, as a browser's parser finds them."""
    scripts = LexborHTMLParser(page.read_text(encoding="utf-8")).css(
        'script[type="application/ld+json"]'
    )
    assert len(scripts) == 1, page
    said = json.loads(scripts[0].text())
    assert said["@context"] == "https://schema.org"
    graph: list[Any] = said["@graph"]
    return graph


def find(graph: list[Any], kind: str) -> Any:
    """Return the one node of a kind."""
    (node,) = [each for each in graph if each["@type"] == kind]
    return node


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site of a journal with a post whose words could do harm."""
    folder = tmp_path_factory.mktemp("graph")
    bench = Workbench(folder / "content", folder / "build")
    bench.post("plain", "2026-03-01", "One two three.", tags="[Light]", updated="2026-04-01")
    title, description = json.dumps(NASTY), json.dumps(f"Of {NASTY}")
    bench.post("nasty", tags=f"[{title}]", title=title, description=description)
    bench.write("pages/about.md", "---\ntitle: About\nslug: about\ndescription: Who.\n---\n\nWe.\n")
    bench.write("pages/legal.md", "---\ntitle: Legal\nslug: legal\ndescription: Law.\n---\n\nBe.\n")
    return bench.build() / "site"


@pytest.mark.parametrize(
    ("page", "kinds"),
    [
        ("", ["WebSite", "Organization", "Blog"]),
        ("journal/plain/", ["BlogPosting", "BreadcrumbList"]),
        ("journal/", ["CollectionPage", "Blog", "BreadcrumbList"]),
        ("tags/light/", ["CollectionPage", "BreadcrumbList"]),
        ("tags/", ["CollectionPage", "BreadcrumbList"]),
        ("archive/", ["CollectionPage", "BreadcrumbList"]),
        ("about/", ["AboutPage", "BreadcrumbList"]),
        ("legal/", ["WebPage", "BreadcrumbList"]),
    ],
)
def test_every_page_says_what_it_is(site: Path, page: str, kinds: list[str]) -> None:
    """Each kind of page has its nodes, each with the properties that are asked for."""
    graph = read_graph(site / page / "index.html")

    assert [node["@type"] for node in graph] == kinds
    for node in graph:
        assert SHAPES[node["@type"]] <= set(node), node["@type"]
        assert all(value not in ("", None, []) for value in node.values())


@pytest.mark.parametrize("page", ["404.html", "contact/thanks/index.html"])
def test_unindexed_pages_have_no_structured_data(site: Path, page: str) -> None:
    """Pages that are not indexed have no structured data."""
    assert "ld+json" not in (site / page).read_text(encoding="utf-8")


def test_a_post_says_all_that_is_known_of_it(site: Path) -> None:
    """Dates with their zone, the card, words, minutes, language, tags, and the publisher."""
    post = find(read_graph(site / "journal" / "plain" / "index.html"), "BlogPosting")
    url = f"{SITE_URL}/journal/plain/"

    assert (post["headline"], post["url"], post["mainEntityOfPage"]["@id"]) == ("Plain", url, url)
    assert all(INSTANT.fullmatch(post[name]) for name in ("datePublished", "dateModified"))
    assert post["dateModified"] > post["datePublished"]
    assert post["image"] == {
        "@type": "ImageObject",
        "url": f"{SITE_URL}/cards/plain.png",
        "width": 1200,
        "height": 630,
    }
    assert (post["wordCount"], post["timeRequired"], post["inLanguage"]) == (3, "PT1M", "en")
    assert post["keywords"] == ["Light"]
    assert post["author"]["name"]
    assert post["publisher"]["logo"]["url"].startswith(f"{SITE_URL}/theme/icon.")


def test_a_trail_leads_from_home_to_the_page(site: Path) -> None:
    """Positions count from 1, each step has a name and an absolute URL that is there."""
    trail = find(read_graph(site / "tags" / "light" / "index.html"), "BreadcrumbList")

    assert [
        (step["position"], step["name"], step["item"]) for step in trail["itemListElement"]
    ] == [
        (1, "Fore-edge", f"{SITE_URL}/"),
        (2, "Tags", f"{SITE_URL}/tags/"),
        (3, "Light", f"{SITE_URL}/tags/light/"),
    ]


def test_the_site_says_how_it_is_searched(site: Path) -> None:
    """The template of the search's address has the one place that the query's input names."""
    action = find(read_graph(site / "index.html"), "WebSite")["potentialAction"]

    assert action["target"]["urlTemplate"] == f"{SITE_URL}/search?q={{search_term_string}}"
    assert action["query-input"] == "required name=search_term_string"


def test_a_list_names_its_posts_in_order(site: Path) -> None:
    """Each entry has the values that its leaf shows."""
    node = find(read_graph(site / "journal" / "index.html"), "CollectionPage")

    entries = node["mainEntity"]["itemListElement"]
    assert [entry["position"] for entry in entries] == [1, 2]
    assert {entry["url"] for entry in entries} == {
        f"{SITE_URL}/journal/plain/",
        f"{SITE_URL}/journal/nasty/",
    }


@pytest.mark.parametrize("page", ["journal/nasty/", "journal/", "tags/"])
def test_no_text_ends_a_script(site: Path, page: str) -> None:
    """A title that looks like the end of a script stays text."""
    text = (site / page / "index.html").read_text(encoding="utf-8")

    assert "<script>alert" not in text
    assert has_own_scripts_alone(LexborHTMLParser(text))
    read_graph(site / page / "index.html")


def test_escaped_json_ld_is_read_unchanged() -> None:
    """JSON readers get the text back; HTML readers see no sign that means something to them."""
    script = write_script({"name": NASTY})
    inner = script.removeprefix('<script type="application/ld+json">').removesuffix("</script>")

    assert not set("<>&\u2028\u2029") & set(inner)
    assert json.loads(inner)["@graph"] == [{"name": NASTY}]


@dataclass
class Post:
    """As much of a post as is said of it."""

    title: str = "A"
    slug: str = "a"
    url: str = "journal/a/"
    description: str = "About a."
    lang: str = "en"
    published: datetime = DAY
    updated: datetime = DAY
    reading_minutes: int = 1
    byline: str = ""
    word_count: int = 1
    tags: tuple[Any, ...] = ()


def describe(identity: Identity, byline: str = "") -> dict[str, Any]:
    """Return the node of a post on a site without cards."""
    return StructuredData(identity, lambda _: None, {}).describe_post(
        cast("Any", Post(byline=byline))
    )


@pytest.mark.parametrize(("author", "kind"), [("Ann", "Person"), (ME.name, "Organization")])
def test_an_author_who_is_not_the_site_is_a_person(author: str, kind: str) -> None:
    """A site that is its own author is an organisation."""
    node = describe(replace(ME, author=author))

    assert node["author"] == {"@type": kind, "name": author, "url": "https://journal.test/"}
    assert "logo" not in node["publisher"]
    assert "image" not in node


def test_a_post_may_have_an_author_of_its_own() -> None:
    """A named author is a person, of whom nothing else is known; the site's author is as ever."""
    bob, ann = (describe(ME, name) for name in ("Bob", "Ann"))

    assert bob["author"] == {"@type": "Person", "name": "Bob"}
    assert ann["author"] == {"@type": "Person", "name": "Ann", "url": "https://journal.test/"}
