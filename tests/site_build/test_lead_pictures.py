"""The picture of a post stands for it elsewhere: on its card, in its page's data, in feeds."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import feedparser  # type: ignore[import-untyped]
import pytest
from PIL import Image, ImageChops
from selectolax.lexbor import LexborHTMLParser

from site_build.images.card import PHOTOGRAPH_SIZE, SIZE
from site_build.releases.release import build
from tests.site_build.test_cards import run_card
from tests.site_build.test_originals import make_gif, make_heic
from tests.site_build.test_pictures import draw, look, pack, put
from tests.site_build.workbench import SITE_URL, Workbench, take

pytestmark = pytest.mark.size("test")


def read_meta(page: Path) -> dict[str, str]:
    """Return what a page says of its card."""
    tree = LexborHTMLParser(page.read_text(encoding="utf-8"))
    named = (each.attributes for each in tree.css("meta[property^='og:image']"))
    return {str(each["property"]): str(each["content"]) for each in named}


def read_post(page: Path) -> dict[str, object]:
    """Return the node of the post in the JSON-LD of a page."""
    script = LexborHTMLParser(page.read_text("utf-8")).css_first("script[type$='ld+json']")
    assert script is not None
    graph = json.loads(script.text())["@graph"]
    found: dict[str, object] = next(each for each in graph if each["@type"] == "BlogPosting")
    return found


@pytest.mark.parametrize(
    ("name", "data", "address"),
    [
        ("two colours.jpg", pack(draw(900, 600)), "two%20colours.jpg"),
        ("IMG.HEIC", make_heic(draw(900, 600)), "IMG.HEIC.jpg"),
    ],
)
def test_a_picture_represents_its_post(
    bench: Workbench, name: str, data: bytes, address: str
) -> None:
    """Card, Open Graph, JSON-LD and both feeds have it, and say how large it is."""
    put(bench, name, data)
    link = f"../images/{name.replace(' ', '%20')}"
    bench.post("shown", "2026-04-30", image=link, image_alt="Two colours")
    site = bench.build() / "site"
    page = site / "journal" / "shown" / "index.html"

    meta, node = read_meta(page), read_post(page)

    assert meta == {
        "og:image": f"{SITE_URL}/cards/shown.jpeg",
        "og:image:type": "image/jpeg",
        "og:image:width": "1200",
        "og:image:height": "630",
        "og:image:alt": "Shown, a post in Fore-edge, beside its picture",
    }
    size = (600, 900) if name == "IMG.HEIC" else (900, 600)
    image = {"@type": "ImageObject", "url": f"{SITE_URL}/images/{address}"}
    assert node["image"] == {**image, "width": size[0], "height": size[1]}
    item = json.loads((site / "feed.json").read_bytes())["items"][0]
    assert item["image"] == image["url"]
    entry = feedparser.parse((site / "feed.xml").read_bytes()).entries[0]
    [enclosure] = entry.enclosures
    assert (enclosure.href, enclosure.type) == (image["url"], "image/jpeg")
    assert (site / "cards" / "shown.png").is_file()  # whose address may be kept somewhere


def test_a_card_has_the_title_beside_the_picture(bench: Workbench) -> None:
    """No letter is on the picture, however long the title, and the paper has no colour."""
    put(bench, "a.jpg", pack(draw(900, 600)))
    bench.post("long", image="/images/a.jpg", title="Words and words " * 12)
    bench.post("short", image="/images/a.jpg", title="Oak")
    cards = bench.build() / "site" / "cards"

    long, short = (look(cards / f"{name}.jpeg") for name in ("long", "short"))

    left = SIZE[0] - PHOTOGRAPH_SIZE[0]
    photograph, paper = (left + 16, 0, *SIZE), (0, 0, left - 16, SIZE[1])
    assert long.size == SIZE
    assert (cards / "long.jpeg").stat().st_size < 300_000
    assert long.crop(photograph).tobytes() == short.crop(photograph).tobytes()
    assert long.crop(paper).tobytes() != short.crop(paper).tobytes()
    reds, _, blues = long.crop(paper).split()
    assert max(ImageChops.difference(reds, blues).tobytes()) < 40
    red, _, blue = long.getpixel((left + 30, 300))  # type: ignore[misc]
    assert red > blue


def test_another_picture_makes_another_card(bench: Workbench) -> None:
    """A card follows its picture, and is not drawn anew without need."""
    put(bench, "a.jpg", pack(draw(900, 600)))
    bench.post("shown", image="/images/a.jpg")
    first = bench.build() / "site" / "cards" / "shown.jpeg"
    bench.post("other")
    second = bench.build() / "site" / "cards" / "shown.jpeg"
    assert second.stat().st_ino == first.stat().st_ino
    former = second.read_bytes()
    put(bench, "a.jpg", pack(Image.new("RGB", (900, 600), "green")))

    third = bench.build() / "site" / "cards" / "shown.jpeg"

    assert third.read_bytes() != former


def test_a_picture_of_a_draft_does_not_get_out(bench: Workbench) -> None:
    """Neither itself, nor as a card, nor on the edge of the journal."""
    put(bench, "secret.jpg", pack(draw(900, 600)))
    bench.post("hidden", status="draft", image="/images/secret.jpg")
    bench.post("later", "2027-01-01", image="/images/secret.jpg")

    files = take(bench.build() / "site")

    assert [path for path in files if "secret" in path or path.endswith(".jpeg")] == []
    assert "edge/picture.webp" not in files
    assert [path for path, data in files.items() if b"secret.jpg" in data] == []


def _save(image: Image.Image, kind: str = "JPEG", **options: object) -> Callable[[], bytes]:
    return lambda: pack(image, kind, **options)


ODD: dict[str, tuple[str, Callable[[], bytes], bool]] = {
    "one pixel": ("a.png", _save(Image.new("RGB", (1, 1), "red"), "PNG"), False),
    "one portrait": ("a.jpg", _save(draw(400, 1200)), True),
    "a panorama": ("a.jpg", _save(draw(5000, 500)), True),
    "print colours": ("a.jpg", _save(draw(600, 400).convert("CMYK")), True),
    "one that moves": ("a.gif", make_gif, False),
    "a drawing": ("a.svg", lambda: b'<svg viewBox="0 0 400 300"></svg>', False),
    "holes": ("a.png", _save(Image.new("RGBA", (300, 300), (0, 0, 0, 0)), "PNG"), True),
    "another suffix": ("a.png", lambda: make_heic(draw(500, 400)), True),
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_picture_is_a_card_or_is_none(bench: Workbench, case: str) -> None:
    """Small ones, drawings and animations are no post's picture; its plain card is."""
    name, make, is_pictured = ODD[case]
    put(bench, name, make())
    bench.post("shown", image=f"/images/{name}")

    site = bench.build() / "site"

    kind = "jpeg" if is_pictured else "png"
    meta = read_meta(site / "journal" / "shown" / "index.html")
    assert meta["og:image"] == f"{SITE_URL}/cards/shown.{kind}"
    assert look(site / "cards" / f"shown.{kind}").size == SIZE
    assert ("image/jpeg" in (site / "feed.xml").read_text("utf-8")) == (
        is_pictured and case != "holes"
    )
    home = (site / "index.html").read_text("utf-8")
    assert "shown" in home


def test_a_cut_off_picture_holds_up_no_other_post(bench: Workbench) -> None:
    """The post that has it waits; the others, their cards and the home page are made."""
    data = pack(draw(900, 600))
    put(bench, "cut.jpg", data[: len(data) // 2])
    put(bench, "whole.jpg", data)
    bench.post("cut", image="/images/cut.jpg")
    bench.post("whole", image="/images/whole.jpg")

    (held,) = build(bench.order()).held

    site = (bench.output / "current" / "site").resolve()
    assert held.path == "posts/cut.md"
    assert "save it anew" in held.finding.message
    assert (site / "cards" / "whole.jpeg").is_file()
    assert not (site / "cards" / "cut.jpeg").exists()


def test_the_command_draws_the_card_with_the_picture(bench: Workbench, tmp_path: Path) -> None:
    """It is the one that the site will have; the name of the file has to say what it is."""
    put(bench, "a.jpg", pack(draw(900, 600)))
    bench.post("shown", image="../images/a.jpg")
    made = tmp_path / "card.jpeg"

    done = run_card(bench, "shown", "--output", made)
    refused = run_card(bench, "shown", "--output", tmp_path / "card.png")

    assert done.returncode == 0, done.stderr
    assert "/cards/shown.jpeg" in done.stdout
    built = bench.build() / "site" / "cards" / "shown.jpeg"
    assert made.read_bytes() == built.read_bytes()
    assert refused.returncode == 1
    assert "is a JPEG; end" in refused.stderr
    with Image.open(io.BytesIO(made.read_bytes())) as card:
        assert card.format == "JPEG"
