"""Every page of a built site, as a browser and a reader with other senses would take it."""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import brotli
import jinja2
import pytest
from jinja2.meta import find_undeclared_variables
from jinja2.nodes import Assign, FromImport, Name

from edge_api.schema.page_templates import FORMS, PAGE_VARIABLES, REFERENCE_VARIABLES, Form
from edge_api.schema.site_policy import SITE_CSP
from tests.theme.html_page import Element, Page, read

SITE_URL = "https://journal.example"
GIVEN = {
    "ACCESS_REQUESTS",
    "structured_data",
    "AUTHOR",
    "AUTHOR_TEXT",
    "BUDGET_TIERS",
    "DEFAULT_LANG",
    "LEADS_REQUIRE_CREDENTIAL",
    "LINKS",
    "NEWSLETTER",
    "SOCIAL",
    "has_contact",
    "menu",
    "SITENAME",
    "SITESUBTITLE",
    "SITEURL",
    "article",
    "articles",
    "articles_next_page",
    "articles_page",
    "articles_paginator",
    "articles_previous_page",
    "author",
    "authors",
    "choose_hue",
    "dates",
    "embedded",
    "find_card",
    "output_file",
    "page",
    "pages",
    "painting",
    "portrait",
    "tag",
    "tags",
}
"""All that templates may ask for: Pelican's names, and what the build gives besides `asset`."""

PAGES = [
    "index.html",
    "404.html",
    "about/index.html",
    "archive/index.html",
    "authors/fore-edge/index.html",
    "contact/index.html",
    "contact/thanks/index.html",
    "journal/index.html",
    "journal/arabic/index.html",
    "journal/everything/index.html",
    "journal/plain/index.html",
    "tags/index.html",
    "tags/python/index.html",
]
NAVIGATION = ["/journal/", "/tags/", "/archive/", "/about/", "/contact/", "/search"]
BY_THE_EDGE = ("/api/", "/docs/", "/search")
"""Beginnings of addresses that the service answers, and no file."""
JS_BUDGET = 10_000
"""Bytes of scripts that a page may load in all, as brotli."""
EARLY_MOST = 500
"""Bytes of them, as brotli, that the first paint may wait for."""
GENERIC = {
    "click here",
    "click this",
    "go",
    "here",
    "information",
    "learn more",
    "more",
    "more info",
    "more information",
    "right here",
    "read more",
    "see more",
    "start",
    "this",
}
"""Texts by which a link says nothing, as Lighthouse's audit `link-text` lists them for English."""
POSTS_AND_PAGES = re.compile(r"(?:journal/[^/]+|about)/index\.html")


def address(path: str) -> str:
    """Return the path under which a file of the site is read."""
    return f"/{path.removesuffix('index.html')}"


def resolve(site: Path, href: str) -> Path:
    """Return the file that answers at a path of the site."""
    path = urlsplit(href).path.lstrip("/")
    return site / (f"{path}index.html" if path.endswith("/") or not path else path)


def names_asked(templates: jinja2.Environment, name: str) -> set[str]:
    """Return the names that a template looks up and does not itself set or import."""
    assert templates.loader
    tree = templates.parse(templates.loader.get_source(templates, name)[0])
    made = {each.target.name for each in tree.find_all(Assign) if isinstance(each.target, Name)}
    imported = {str(each) for found in tree.find_all(FromImport) for each in found.names}
    return find_undeclared_variables(tree) - made - imported


def test_templates_ask_for_what_they_are_given(templates: jinja2.Environment) -> None:
    """No template looks up a name that nobody declares, and none declared is unused."""
    of_the_edge = {*(f"{page}.html" for page in PAGE_VARIABLES), *REFERENCE_VARIABLES}
    built = set(templates.list_templates()) - of_the_edge
    asked = {name for each in built for name in names_asked(templates, each)}

    assert asked - {"self"} == GIVEN


@pytest.mark.parametrize(("name", "given"), REFERENCE_VARIABLES.items(), ids=REFERENCE_VARIABLES)
def test_pages_of_the_reference_use_what_they_are_given(
    templates: jinja2.Environment, name: str, given: tuple[str, ...]
) -> None:
    """The edge gives to a template of the reference exactly the names that it uses."""
    assert names_asked(templates, name) == set(given)


@pytest.mark.parametrize(("page", "given"), PAGE_VARIABLES.items(), ids=PAGE_VARIABLES)
def test_pages_of_the_edge_use_what_they_are_given(
    templates: jinja2.Environment, page: str, given: tuple[str, ...]
) -> None:
    """The edge gives to a page exactly the names that its template uses."""
    assert names_asked(templates, f"{page}.html") == set(given)


def test_every_page_is_looked_at(site: Path) -> None:
    """The pages below are all kinds of page that a build makes."""
    built = {str(path.relative_to(site)) for path in site.rglob("*.html")}

    assert set(PAGES) <= built
    assert {re.sub(r"^tags/[^/]+/", "tags/python/", path) for path in built} == set(PAGES)


def list_scripts(page: Page) -> list[Element]:
    """Return what runs on a page: a block of data never does."""
    return [
        script
        for script in page.all("script")
        if script.attributes.get("type") != "application/ld+json"
    ]


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_inline(site: Path, path: str) -> None:
    """No page holds a script, a style or an event handler: the security policy forbids them."""
    page = read(site, path)
    names = {name for element in page.elements for name in element.attributes}
    (script,) = list_scripts(page)

    assert script.attributes.keys() == {"src"}
    assert script.text == ""
    assert "script-src 'self';" in SITE_CSP
    assert page.all("style") == []
    assert {name for name in names if name == "style" or name.startswith("on")} == set()


@pytest.mark.parametrize("path", PAGES)
def test_scripts_are_few(site: Path, path: str) -> None:
    """Scripts are loaded after the page, and are small."""
    page = read(site, path)
    modules = [
        element.attributes["data-module"]
        for element in page.elements
        if "data-module" in element.attributes
    ]
    early = list_scripts(page)[0].attributes["src"]
    weights = {
        script: len(brotli.compress(resolve(site, script).read_bytes(), quality=5))
        for script in (early, *modules)
    }
    further = {"post.js"} if POSTS_AND_PAGES.fullmatch(path) else set()
    if path == "contact/index.html":
        further = {"contact.js"}

    assert {name_of(module) for module in modules} == {"lamp.js"} | further
    assert name_of(early) == "before_paint.js"
    assert sum(weights.values()) <= JS_BUDGET
    assert weights[early] <= EARLY_MOST


def name_of(asset: str) -> str:
    """Return the name that a file of the theme has without its digest."""
    found = re.fullmatch(r"/theme/(.+)\.[0-9a-f]{8,}(\.\w+)", asset)
    assert found
    return found[1] + found[2]


@pytest.mark.parametrize("path", PAGES)
def test_colours_are_settled_before_the_page(site: Path, path: str) -> None:
    """The script that sets the scheme comes after its metas and before the style sheet."""
    page = read(site, path)
    order = [page.elements.index(element) for element in page.all("meta", name="theme-color")]
    order += [page.elements.index(list_scripts(page)[0])]
    order += [page.elements.index(page.one("link", rel="stylesheet"))]

    assert order == sorted(order)
    assert not {"async", "defer", "type"} & page.all("script")[0].attributes.keys()
    assert page.one("meta", name="color-scheme").attributes["content"] == "light dark"


def test_paper_is_one_colour(site: Path, style: str) -> None:
    """The colour that browsers give to their own frame is the paper's."""
    page = read(site, "index.html")
    metas = [meta.attributes["content"] for meta in page.all("meta", name="theme-color")]
    paper = re.search(r"--paper: light-dark\((#\w+), (#\w+)\)", style)

    assert paper
    assert metas == list(paper.groups())


@pytest.mark.parametrize("path", PAGES)
def test_faces_are_asked_for_early(site: Path, path: str) -> None:
    """The head asks for the face that every page needs, before it asks for anything else.

    The others come when a page has something to set in them.
    """
    page = read(site, path)
    asked = [link.attributes for link in page.all("link", rel="preload")]
    first = next(each for each in page.elements if {"href", "src"} & each.attributes.keys())
    sheet = resolve(site, page.one("link", rel="stylesheet").attributes["href"])
    named = re.findall(r'url\("([^"]+)"\) format', sheet.read_text(encoding="utf-8"))

    assert [each["href"] for each in asked] == named[:1]
    assert first.attributes == asked[0]
    assert all("crossorigin" in each and each["as"] == "font" for each in asked)
    assert all(resolve(site, address).is_file() for address in named)


@pytest.mark.parametrize("path", PAGES)
def test_nothing_comes_from_elsewhere(site: Path, path: str) -> None:
    """A page loads nothing from another host, and each asset by an address with its digest.

    The icon is data, so that it costs no request; search engines and home screens have a file.
    """
    page = read(site, path)
    loaded = [element.attributes["src"] for element in page.elements if "src" in element.attributes]
    kinds = ("icon", "stylesheet", "apple-touch-icon")
    icon, *assets = (page.one("link", rel=kind).attributes["href"] for kind in kinds)

    assert re.fullmatch(r"data:image/svg\+xml,%3Csvg%20xmlns=[\w%/:.=-]+", icon)
    assert [
        source for source in loaded if not source.startswith(("/images/", "/theme/", "/edge/"))
    ] == []
    assert all(re.fullmatch(r"/theme/\w+\.[0-9a-f]{8,}\.\w+", asset) for asset in assets)
    assert all(resolve(site, asset).is_file() for asset in assets)


@pytest.mark.parametrize("path", PAGES)
def test_headings_have_an_outline(site: Path, path: str) -> None:
    """A page has a title, a language, one main part and one first heading, and skips no level."""
    page = read(site, path)
    levels = [
        int(element.tag[1]) for element in page.elements if re.fullmatch("h[1-6]", element.tag)
    ]

    assert page.one("html").attributes["lang"] == "en"
    assert page.one("title").text.strip()
    assert page.one("meta", name="description").attributes["content"].strip()
    assert page.one("main").attributes["id"] == "main"
    assert page.elements[page.elements.index(page.one("body")) + 1].attributes["href"] == "#main"
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("path", PAGES)
def test_references_to_ids_are_valid(site: Path, path: str) -> None:
    """An id occurs once, and every reference to one finds it."""
    page = read(site, path)
    ids = Counter(each.attributes["id"] for each in page.elements if "id" in each.attributes)
    pointers = {
        name
        for element in page.elements
        for key in ("for", "aria-labelledby", "aria-describedby")
        for name in element.attributes.get(key, "").split()
    }

    assert {name: times for name, times in ids.items() if times > 1} == {}
    assert pointers - set(ids) == set()


@pytest.mark.parametrize("path", PAGES)
def test_links_lead_somewhere(site: Path, path: str) -> None:
    """Each link within the site is a path from the root that a file answers, fragment included."""
    page = read(site, path)
    hrefs = {link.attributes["href"] for link in page.all("a")}
    relative = {href for href in hrefs if not re.match(r"/|#|https://", href)}
    within = {href for href in hrefs if href.startswith("/") and not href.startswith(BY_THE_EDGE)}
    ids = {element.attributes.get("id") for element in page.elements}

    assert relative == set()
    assert {href for href in within if not resolve(site, href).is_file()} == set()
    assert {href for href in hrefs if href.startswith("#") and href[1:] not in ids} == set()


@pytest.mark.parametrize("path", PAGES)
def test_navigation_is_the_same_on_each_page(site: Path, path: str) -> None:
    """The six parts are on every page in one order, and the one that is open is marked."""
    page = read(site, path)
    links = {link.attributes["href"]: link for link in page.all("a")}
    marked = {href: links[href].attributes.get("aria-current") for href in NAVIGATION}
    place = address(path)

    assert [href for href in links if href in NAVIGATION][:6] == NAVIGATION
    assert marked == {
        href: "page" if place == href else "true" if place.startswith(href) else None
        for href in NAVIGATION
    }


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_its_canonical_address(site: Path, path: str) -> None:
    """A page gives its absolute address and its Markdown twin; one without a place gives none."""
    page = read(site, path)
    if path in {"404.html", "contact/thanks/index.html"}:
        assert page.one("meta", name="robots").attributes["content"] == "noindex"
        assert page.all("link", rel="canonical") == page.all("meta", property="og:url") == []
        return
    twin = page.one("link", rel="alternate", type="text/markdown").attributes["href"]

    assert page.one("link", rel="canonical").attributes["href"] == f"{SITE_URL}{address(path)}"
    assert page.one("meta", property="og:url").attributes["content"] == f"{SITE_URL}{address(path)}"
    assert twin == f"{address(path)}index.md"
    assert page.all("a", href=twin)
    assert resolve(site, twin).is_file()


@pytest.mark.parametrize("path", PAGES)
def test_other_forms_are_offered(site: Path, path: str) -> None:
    """Feeds, llms.txt and the API's reference are a link away on every page."""
    page = read(site, path)

    assert page.all("link", type="application/atom+xml")[-1].attributes["href"] == "/feed.xml"
    assert page.one("link", rel="service-desc").attributes["href"].endswith("/openapi.json")
    assert {"/feed.xml", "/feed.json", "/llms.txt", "/docs/"} <= {
        link.attributes["href"] for link in page.all("a")
    }


def test_a_title_stays_text(site: Path) -> None:
    """Markup in a title is shown as it was written, wherever the title is."""
    title = (
        'Donaudampfschifffahrtselektrizitätenhauptbetriebswerk & <other> "titles" that will not fit'
    )
    post = read(site, "journal/everything/index.html")
    linked = [
        read(site, path)
        .all("a", href="/journal/everything/")[0]
        .text.strip()
        .removeprefix("3\xa0Mar ")
        for path in ("index.html", "journal/index.html", "archive/index.html")
    ]

    assert post.one("h1").text == title
    assert post.one("title").text.startswith(title)
    assert post.one("meta", property="og:title").attributes["content"] == title
    assert linked == [title] * 3


def test_links_say_where_they_lead(site: Path) -> None:
    """No link is named by a word that says nothing out of its place, such as the tag `go`."""
    linked = {
        (path, " ".join(link.text.split()).lower()): link
        for path in [*PAGES, "tags/go/index.html"]
        for link in read(site, path).all("a")
    }

    assert {key for key in linked if key[1] in GENERIC} == set()
    assert {link.attributes["href"] for key, link in linked.items() if key[1] == "posts on go"} == {
        "/tags/go/"
    }


def test_tags_have_one_hue(site: Path) -> None:
    """A post's tags have the hues that they have in the index of tags."""
    post = read(site, "journal/everything/index.html")
    hues = [item.attributes.get("class", "") for item in post.all("li")]
    index = {
        item.attributes["class"]
        for item in read(site, "tags/index.html").all("li")
        if "class" in item.attributes
    }

    assert len({hue for hue in hues if hue.startswith("hue-")} & index) == 7


def test_the_leaves_are_the_latest_posts(site: Path) -> None:
    """Each post but the newest is a leaf of the home page, as thick as it is long."""
    home = (site / "index.html").read_text(encoding="utf-8")
    leaves = re.findall(r'<li class="h-entry minutes-\d+"><a class="u-url" href="([^"]+)">', home)
    posts = [each.attributes["href"] for each in read(site, "archive/index.html").all("a")]
    dated = [each for each in posts if re.fullmatch("/journal/.+/", each)]

    assert leaves == dated[1:]


def test_posts_show_their_dates(site: Path) -> None:
    """A post shows when it was published, and when it was revised only if it was."""
    revised = read(site, "journal/everything/index.html")
    times = [time.attributes["datetime"] for time in revised.all("time")]
    plain = read(site, "journal/plain/index.html")

    assert times[:2] == ["2026-03-03T09:12:00+00:00", "2026-04-02T10:00:00+00:00"]
    assert revised.all("time")[0].text == "3\N{NO-BREAK SPACE}March 2026"
    assert [time.text for time in plain.all("time")][:1] == ["31\N{NO-BREAK SPACE}December 2025"]
    assert "Updated" not in plain.one("article").text


def test_contents_only_where_they_help(site: Path) -> None:
    """A post with several headings has a table of contents, one without has none."""
    contents = read(site, "journal/everything/index.html").one("details")

    assert "Tables and lists" in contents.text
    assert read(site, "journal/plain/index.html").all("details") == []


def test_posts_link_to_their_neighbours(site: Path) -> None:
    """A post leads to the one before it and the one after it; the ends lead one way."""
    middle = read(site, "journal/everything/index.html")

    assert middle.one("a", rel="prev").attributes["href"] == "/journal/plain/"
    assert middle.one("a", rel="next").attributes["href"] == "/journal/arabic/"
    assert read(site, "journal/plain/index.html").all("a", rel="prev") == []
    assert read(site, "journal/arabic/index.html").all("a", rel="next") == []


def test_right_to_left(site: Path) -> None:
    """A post in a language written from right to left says so, its title by itself."""
    article = read(site, "journal/arabic/index.html").one("article")

    assert article.attributes["lang"] == "ar"
    assert article.attributes["dir"] == "rtl"
    assert read(site, "journal/arabic/index.html").one("h1").attributes["dir"] == "auto"
    assert read(site, "journal/plain/index.html").one("article").attributes["dir"] == "ltr"


def test_scrollable_blocks_can_be_focused(site: Path) -> None:
    """Code and tables, which may be wider than the screen, take the keyboard's focus."""
    page = read(site, "journal/everything/index.html")
    boxes = page.all("div", **{"class": "table-scroll"})
    wide = [*page.all("pre"), *boxes]

    assert len(wide) == 3
    assert len(boxes) == len(page.all("table"))
    assert [element.tag for element in wide if element.attributes.get("tabindex") != "0"] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.template)
def test_a_form_is_between_its_markers(
    site: Path, templates: jinja2.Environment, form: Form
) -> None:
    """The form that the edge renders without errors is the form of the page."""
    page = (site / "contact/index.html").read_text(encoding="utf-8")
    marked = re.findall(rf"{form.start_marker}\n(.*){form.end_marker}", page, re.DOTALL)

    assert [found.strip() for found in marked] == [
        templates.get_template(form.template).render().strip()
    ]
