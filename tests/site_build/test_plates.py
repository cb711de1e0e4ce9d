"""Frames, films and sounds: played where they are the site's own, else shown as a link."""

import orjson
import pytest
from selectolax.lexbor import LexborHTMLParser

from site_build.checks.analyse import analyse
from site_build.markup.convert import Dialect
from site_build.markup.sanitize import sanitize
from tests.site_build.test_check import list_references, said
from tests.site_build.test_convert import make_document
from tests.site_build.workbench import Workbench, find

SITE = Dialect("https://journal.test")
URL = "https://journal.test/journal/a/"


def show(markdown: str) -> str:
    """Return the HTML of a page, as readers get it."""
    conversion = analyse(make_document(markdown), SITE)[1]
    assert conversion is not None
    return conversion.html.strip()


def write_plate(words: str, address: str, shown: str, *, rel: str = ' rel="external"') -> str:
    """Return the link that is shown for a film, a sound or a frame."""
    return f'<a class="plate" href="{address}"{rel}>{words} <small>{shown}</small></a>'


YOUTUBE = write_plate(
    "Watch on youtube.com", "https://www.youtube.com/watch?v=a-B_1", "youtube.com/watch?v=a-B_1"
)


VIMEO = write_plate("Watch on vimeo.com", "https://vimeo.com/7", "vimeo.com/7")
SOUND = write_plate(
    "Listen on sounds.example", "https://www.sounds.example/a.mp3", "sounds.example/a.mp3"
)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        (
            '<iframe width="5" src="https://www.youtube.com/embed/a-B_1?rel=0" hidden></iframe>',
            YOUTUBE,
        ),
        ("<IFRAME SRC='//www.youtube-nocookie.com/embed/a-B_1'>words</IFRAME>", YOUTUBE),
        (
            'Words <iframe src="https://player.vimeo.com/video/7?h=1"></iframe> more',
            f"<p>Words {VIMEO} more</p>",
        ),
        (
            '<div class="a">\n<iframe title="a > b" src="https://maps.example/?a&amp;b=&quot;"></iframe>\n</div>',
            '<div class="a">\n'
            + write_plate(
                "Open on maps.example",
                "https://maps.example/?a&amp;b=&quot;",
                "maps.example/?a&amp;b=&quot;",
            )
            + "\n</div>",
        ),
        (
            '<iframe src="https://good.example@evil.example/x"></iframe>',
            write_plate(
                "Open on evil.example",
                "https://good.example@evil.example/x",
                "good.example@evil.example/x",
            ),
        ),
        (
            r'<iframe src="\\evil.example\x?\y"></iframe>',
            write_plate("Open on evil.example", r"https://evil.example/x?\y", r"evil.example/x?\y"),
        ),
        (
            '<iframe src="/demo/"></iframe>',
            write_plate("Open on journal.test", "/demo/", "/demo/", rel=""),
        ),
        (
            '<video src="https://films.example/a.mp4" controls></video>',
            write_plate(
                "Watch on films.example", "https://films.example/a.mp4", "films.example/a.mp4"
            ),
        ),
        (
            '<audio controls>\n<source src="https://www.sounds.example/a.mp3">\n</audio>',
            f"<p>{SOUND}</p>",
        ),
        # What the site plays, and what is no element of the page.
        ('<video src="/images/a.mp4"></video>', '<video controls src="/images/a.mp4"></video>'),
        ('<video src="a.mp4" loop autoplay></video>', '<video src="a.mp4" loop autoplay></video>'),
        (
            '<video>\n<source src="https://journal.test/b.mp4"><source src=c>\n</video>',
            '<video controls>\n<source src="https://journal.test/b.mp4"><source src=c>\n</video>',
        ),
        ("<!-- <iframe src=/a/></iframe> -->", "<!-- <iframe src=/a/></iframe> -->"),
        (
            '<p title="<iframe src=/a/></iframe>">b</p>',
            '<p title="<iframe src=/a/></iframe>">b</p>',
        ),
        (
            "`<iframe src=/a/></iframe>`",
            "<p><code>&lt;iframe src=/a/&gt;&lt;/iframe&gt;</code></p>",
        ),
        # Nothing to lead to.
        ("a <iframe></iframe> b", "<p>a  b</p>"),
        ('a <iframe src="java&#10;script:b()"></iframe>', "<p>a </p>"),
        ('a <iframe srcdoc="<b>c</b>"></iframe>', "<p>a </p>"),
        ("<video></video>", "<video></video>"),
    ],
)
def test_a_page_shows_a_plate_or_plays(markdown: str, html: str) -> None:
    """An embed that the site's policy blocks is a link that says where it leads."""
    assert show(markdown) == html


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        (
            '<p><video controls src="/images/a.mp4">No film</video></p>',
            (
                '<p><a href="https://journal.test/images/a.mp4" rel="noopener">'
                "Watch on journal.test <small>/images/a.mp4</small></a></p>"
            ),
        ),
        (
            '<audio src="b.mp3"></audio>',
            (
                '<a href="https://journal.test/journal/a/b.mp3" rel="noopener">'
                "Listen on journal.test <small>b.mp3</small></a>"
            ),
        ),
        (
            f"<p>{YOUTUBE}</p>",
            (
                '<p><a href="https://www.youtube.com/watch?v=a-B_1" rel="noopener">'
                "Watch on youtube.com <small>youtube.com/watch?v=a-B_1</small></a></p>"
            ),
        ),
        ("<iframe src='javascript:a()'></iframe>", ""),
    ],
)
def test_feeds_and_the_api_have_links(html: str, wanted: str) -> None:
    """Neither a film nor a frame is lost to those who read elsewhere."""
    assert sanitize(html, URL) == wanted


@pytest.mark.parametrize(
    ("markdown", "notes"),
    [
        (
            "a <iframe src=https://b.example/></iframe>",
            ["1:3 `<iframe>` is shown as a link: pages show no other page within them"],
        ),
        (
            "<video src=https://b.example/c.mp4></video>",
            ["1:1 `<video>` of another site is shown as a link"],
        ),
        (
            "<audio><source src=https://b.example/c.mp3></audio>",
            ["1:8 `<audio>` of another site is shown as a link"],
        ),
        (
            "<video src=a.mp4 poster=https://b.example/c.png></video>",
            ["1:1 pages show nothing of other sites"],
        ),
        (
            "<picture><source srcset=https://b.example/c.png><img src=a.png alt=b></picture>",
            ["1:10 pages show nothing of other sites"],
        ),
        ("<video src=a.mp4></video>", []),
    ],
)
def test_the_check_says_what_is_shown(markdown: str, notes: list[str]) -> None:
    """A finding tells what readers see in place of the film or the frame."""
    assert said(markdown) == notes


def test_a_film_is_a_file_of_the_post() -> None:
    """Links to the files of films are followed as before, whether played or not."""
    assert list_references("<video><source src=a.mp4></video>\n<iframe src=/b/></iframe>") == [
        "1:8 a.mp4 shown",
        "2:1 /b/ shown",
    ]


@pytest.mark.size("test")
def test_a_built_post_with_film_and_frame(empty_bench: Workbench) -> None:
    """The page plays its own film, feeds lead to it, and the description has neither."""
    empty_bench.write("images/walk.mp4", "no film")
    text = (
        'Words <video src="../images/walk.mp4"></video>.\n\n'
        '<iframe src="https://www.youtube.com/embed/a-B_1"></iframe>'
    )
    empty_bench.post("a", text=text)

    site = empty_bench.build() / "site"

    page = LexborHTMLParser((site / "journal/a/index.html").read_text())
    assert find(page, ".prose video[controls]").attributes["src"] == "/images/walk.mp4"
    assert find(page, ".prose a.plate").text() == "Watch on youtube.com youtube.com/watch?v=a-B_1"
    assert page.css("iframe") == []
    assert "Watch" not in (find(page, "meta[name=description]").attributes["content"] or "")
    (item,) = orjson.loads((site / "feed.json").read_bytes())["items"]
    links = LexborHTMLParser(item["content_html"]).css("a")
    assert [link.attributes["href"] for link in links][1:] == [
        "https://www.youtube.com/watch?v=a-B_1"
    ]
    assert (links[0].attributes["href"] or "").endswith("/images/walk.mp4")
    assert "<iframe src=" in (site / "journal/a/index.md").read_text()
