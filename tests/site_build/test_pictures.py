"""Pictures of posts: the forms that are made of them, how pages offer them, and what is wrong."""

import gc
import io
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from PIL import Image, ImageCms, ImageDraw
from selectolax.lexbor import LexborHTMLParser

from edge_api.schema.index import PostRecord
from site_build.cache import IMAGES, Cache, make_key
from site_build.images.encode import Picture, encode, list_forms
from site_build.images.responsive import ImageSet, is_picture, measure, resolve
from site_build.releases.release import build
from tests.site_build.records import PostIndex
from tests.site_build.workbench import (
    SITE_URL,
    Workbench,
    check_content,
    compare,
    list_inodes,
    take,
)

pytestmark = pytest.mark.size("test")

ORIENTATION, GPS, LATITUDE = 0x0112, 0x8825, 2
LYING = 6
"""The camera was held so that the picture has to be turned to the right."""


def draw(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Return a picture that no encoder packs into nothing: its left half is red, its right blue."""
    noise = Image.effect_noise((width, height), 60).convert(mode)
    half = Image.new(mode, (width // 2, height), "red")
    noise.paste(Image.blend(noise.crop((0, 0, width // 2, height)), half, 0.8), (0, 0))
    other = Image.new(mode, (width - width // 2, height), "blue")
    rest = noise.crop((width // 2, 0, width, height))
    noise.paste(Image.blend(rest, other, 0.8), (width // 2, 0))
    return noise


def pack(image: Image.Image, kind: str = "JPEG", **options: object) -> bytes:
    """Return a picture as a file's bytes."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def photograph(width: int = 1200, height: int = 800) -> bytes:
    """Return what a camera would: lying on its side, and telling where it was taken."""
    exif = Image.Exif()
    exif[ORIENTATION] = LYING
    exif.get_ifd(GPS)[LATITUDE] = (52.0, 31.0, 12.0)
    return pack(draw(width, height), exif=exif)


def put(bench: Workbench, name: str, data: bytes) -> Path:
    """Put a picture into the content."""
    path = bench.content / "images" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read_page(slug: str, build: Path) -> LexborHTMLParser:
    """Return the page of a post."""
    page = build / "site" / "journal" / slug / "index.html"
    return LexborHTMLParser(page.read_text(encoding="utf-8"))


def look(path: Path) -> Image.Image:
    """Open a picture and unpack it."""
    image = Image.open(path)
    image.load()
    return image


def find_picture(path: str, data: bytes) -> Picture:
    """Return the measures of a picture that can be shown."""
    picture = measure(path, data).picture
    assert picture
    return picture


@dataclass(frozen=True)
class Offer:
    """The variants that a page offers for one image."""

    sources: dict[str, dict[int, str]]
    """Addresses by the kind of picture and its width."""
    image: dict[str, str | None]


def read_offer(page: LexborHTMLParser, at: int = 0) -> Offer:
    """Return what the page offers for its image number `at`."""
    image = page.css(".prose img")[at]
    sources = {}
    parent = image.parent
    for source in parent.css("source") if parent and parent.tag == "picture" else []:
        offered = (each.split() for each in (source.attributes["srcset"] or "").split(","))
        kind = source.attributes["type"] or ""
        sources[kind] = {int(width.removesuffix("w")): address for address, width in offered}
    return Offer(sources, dict(image.attributes))


def test_a_photograph_comes_in_lighter_forms(bench: Workbench) -> None:
    """A page offers AVIF and WebP in several widths, each file being what it is said to be."""
    put(bench, "wide.jpg", pack(draw(1300, 650)))
    bench.post("shown", text="![Two colours](/images/wide.jpg)")
    build = bench.build()

    offer = read_offer(read_page("shown", build))

    assert list(offer.sources) == ["image/avif", "image/webp"]
    for kind, forms in offer.sources.items():
        assert list(forms) == [480, 720, 960, 1300]
        for width, address in forms.items():
            found = look(build / "site" / address.removeprefix("/"))
            assert found.format == kind.removeprefix("image/").upper()
            assert found.size == (width, width // 2)
    assert offer.image["src"] == "/images/wide.jpg"
    assert (offer.image["width"], offer.image["height"]) == ("1300", "650")


def test_a_form_is_lighter_than_the_photograph(bench: Workbench) -> None:
    """The form for the column is a fraction of what the camera gave."""
    data = pack(draw(1800, 1200), quality=92)
    put(bench, "wide.jpg", data)
    bench.post("shown", text="![Two colours](/images/wide.jpg)")
    build = bench.build()

    offer = read_offer(read_page("shown", build))

    for forms in offer.sources.values():
        form = build / "site" / forms[960].removeprefix("/")
        assert form.stat().st_size < len(data) / 2


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_has_the_size_that_its_orientation_gives_it(orientation: int) -> None:
    """EXIF turns 5 to 8 onto their side; a browser turns them back."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    picture = measure("a.jpg", pack(draw(60, 40), exif=exif)).picture

    assert picture is not None
    assert (picture.width, picture.height) == ((40, 60) if orientation >= 5 else (60, 40))


def test_variants_are_upright_and_without_metadata(bench: Workbench) -> None:
    """The camera's turn is applied, and its notes, the place among them, are gone."""
    put(bench, "photo.jpg", photograph(600, 400))
    bench.post("shown", text="![Two colours](/images/photo.jpg)")
    build = bench.build()

    offer = read_offer(read_page("shown", build))

    assert (offer.image["width"], offer.image["height"]) == ("400", "600")
    for forms in offer.sources.values():
        found = look(build / "site" / forms[400].removeprefix("/"))
        assert found.size == (400, 600)
        assert not found.getexif()
        assert not {"exif", "xmp", "icc_profile"} & found.info.keys()
        red, _, blue = found.convert("RGB").getpixel((200, 60))  # type: ignore[misc]
        assert red > blue  # What was on the left is on top.


def test_colours_are_converted_to_srgb(tmp_path: Path) -> None:
    """A picture is converted by its profile: here, by one in which red and blue change places."""
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    odd = srgb.replace(b"rXYZ", b"____").replace(b"bXYZ", b"rXYZ").replace(b"____", b"bXYZ")
    path = tmp_path / "odd.png"
    path.write_bytes(pack(draw(400, 300), "PNG", icc_profile=odd))
    picture = find_picture("images/odd.png", path.read_bytes())

    for form in list_forms(picture):
        image = Image.open(io.BytesIO(encode(path, picture, form))).convert("RGB")
        red, _, blue = image.resize((2, 1)).getpixel((0, 0))  # type: ignore[misc]
        assert blue > red


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_every_kind_of_pixel_is_understood(tmp_path: Path, mode: str) -> None:
    """Grey, palette, print colours and sixteen bits come out as light as they went in."""
    grey = Image.new("L", (300, 300), 128)
    ImageDraw.Draw(grey).rectangle((0, 0, 150, 300), fill=255)
    if mode == "I;16":
        image = Image.frombytes(mode, grey.size, b"".join(bytes([0, v]) for v in grey.tobytes()))
    else:
        image = grey.convert("RGB").convert(mode) if mode in {"P", "CMYK"} else grey.convert(mode)
    kind = "JPEG" if mode == "CMYK" else "PNG"
    path = tmp_path / f"grey.{kind.lower()}"
    path.write_bytes(pack(image, kind) + bytes(9_000))  # Behind the end, where nobody looks.
    picture = find_picture(f"images/{path.name}", path.read_bytes())

    made = [encode(path, picture, form) for form in list_forms(picture)]

    assert made
    for data in made:
        level = Image.open(io.BytesIO(data)).convert("L").getpixel((40, 150))
        assert isinstance(level, int)
        assert level > 245


def test_variants_keep_transparency(tmp_path: Path) -> None:
    """A form keeps the holes of its picture."""
    image = draw(600, 400).convert("RGBA")
    image.paste((0, 0, 0, 0), (0, 0, 600, 200))
    path = tmp_path / "holes.png"
    path.write_bytes(pack(image, "PNG"))
    picture = find_picture("images/holes.png", path.read_bytes())

    for form in list_forms(picture):
        found = Image.open(io.BytesIO(encode(path, picture, form)))
        assert found.mode == "RGBA"
        assert found.getchannel("A").getpixel((form.width // 2, form.height // 4)) == 0


def test_animations_and_svg_get_no_variants(bench: Workbench) -> None:
    """No forms are made of animations and SVG, and pages know their dimensions."""
    frames = [draw(300, 200).convert("P"), draw(300, 200).convert("P")]
    put(bench, "moves.gif", pack(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    put(bench, "moves.webp", pack(draw(300, 200), "WEBP", save_all=True, append_images=[frames[1]]))
    put(
        bench, "drawn.svg", b'<?xml version="1.0"?><svg viewBox="0 0 400 100.4" width="100%"></svg>'
    )
    text = "![A](/images/moves.gif)\n\n![B](/images/moves.webp)\n\n![C](/images/drawn.svg)"
    bench.post("shown", text=text)
    build = bench.build()

    page = read_page("shown", build)

    assert page.css("picture") == []
    assert [(i.attributes["width"], i.attributes["height"]) for i in page.css(".prose img")] == [
        ("300", "200"),
        ("300", "200"),
        ("400", "100"),
    ]
    assert not (build / "site" / "pictures").exists()


def test_only_the_first_image_loads_at_once(bench: Workbench) -> None:
    """The first image of a text is fetched first, in Markdown or HTML; the others come later."""
    put(bench, "a.jpg", pack(draw(500, 300)))
    text = '<p><img src="/images/a.jpg" alt="A"></p>\n\n![B](/images/a.jpg)\n\n![C](/images/a.jpg)'
    bench.post("shown", text=text)

    page = read_page("shown", bench.build())

    images = [dict(image.attributes) for image in page.css(".prose img")]
    assert [image.get("fetchpriority") for image in images] == ["high", None, None]
    assert [image.get("loading") for image in images] == [None, "lazy", "lazy"]
    assert [image.get("decoding") for image in images] == ["async"] * 3


def test_an_image_may_be_in_a_link_or_a_figure(bench: Workbench) -> None:
    """Elements around an image stay around it, and a name that needs quoting is quoted."""
    put(bench, "deep/Größe 1.jpg", pack(draw(700, 400)))
    text = (
        "[![A](/images/deep/Gr%C3%B6%C3%9Fe%201.jpg)](/images/deep/Gr%C3%B6%C3%9Fe%201.jpg)\n\n"
        '<figure><img src="../../images/deep/Größe 1.jpg" alt="B"><figcaption>B</figcaption>'
        "</figure>"
    )
    bench.post("shown", text=text)
    build = bench.build()

    page = read_page("shown", build)

    assert len(page.css("p > a > picture > img")) == 1
    assert len(page.css("figure > button > picture > img")) == 1
    for number in (0, 1):
        for forms in read_offer(page, number).sources.values():
            assert [look(build / "site" / a[1:]).width for a in forms.values()] == [480, 700]


def test_feeds_and_the_api_have_plain_images(bench: Workbench) -> None:
    """There an image is one tag with an absolute address and its dimensions."""
    put(bench, "a.jpg", pack(draw(500, 300)))
    bench.post("shown", text="![A](/images/a.jpg)")
    build = bench.build()
    index = PostIndex.model_validate_json((build / "posts.json").read_bytes())
    feed = (build / "site" / "feed.xml").read_text(encoding="utf-8")

    [html] = [post.content_html for post in index.posts if post.slug == "shown"]

    plain = f'<img width="500" height="300" alt="A" src="{SITE_URL}/images/a.jpg">'
    assert plain in html
    assert "<picture" not in html
    assert plain.replace("<", "&lt;").replace(">", "&gt;") in feed


def test_the_index_and_feeds_have_the_size_of_a_replaced_picture(empty_bench: Workbench) -> None:
    """The post that shows it is as it was; its record is made anew."""
    empty_bench.post("shown", text="![A](/images/a.png)")
    for width in (30, 40):
        put(empty_bench, "a.png", pack(draw(width, 20), "PNG"))
        build = empty_bench.build()
        (post,) = PostIndex.model_validate_json((build / "posts.json").read_bytes()).posts
        assert f'width="{width}"' in post.content_html
        feed = (build / "site" / "feed.xml").read_text(encoding="utf-8")
        assert f'width="{width}"' in feed


def test_attributes_set_by_the_author_are_kept() -> None:
    """Dimensions, sources and loading that the HTML has are not set again."""
    picture = Picture("images/a.jpg", "0" * 64, "jpeg", 1000, 500, 90_000, still=True)
    pictures = {picture.path: picture}

    dress = partial(ImageSet(pictures, {}, {}).make_responsive, page="x/", document="")
    own_width = dress('<img src="/images/a.jpg" width="200" loading="eager">')
    own_choice = dress('<picture><img src="/images/a.jpg"></picture>')
    own_set = dress('<img src="/images/a.jpg" srcset="/b.jpg 2x">')
    unread = dress('<!-- <img src="/images/a.jpg"> --><p>')

    assert 'height="100"' in own_width
    assert "200px" in own_width
    assert own_width.count("loading=") == 1
    assert own_choice.count("<picture>") == 1
    assert 'width="1000" height="500"' in own_choice
    assert "<picture>" not in own_set
    assert unread == '<!-- <img src="/images/a.jpg"> --><p>'


@pytest.mark.parametrize(
    "tag",
    [
        "<img>",
        "<img src>",
        '<img src="http://[">',
        '<img src="https://elsewhere.example/images/a.jpg">',
        '<img src="//elsewhere.example/images/a.jpg">',
        '<img src="/images/a.jpg',
        '<imgsrc="/images/a.jpg">',
        '<img alt="<img src=/images/a.jpg>" src="/images/b.jpg">',
        "&lt;img src=/images/a.jpg&gt;",
    ],
)
def test_foreign_images_get_no_variants(tag: str) -> None:
    """Images of other sites, tags without an end and code about images offer nothing of ours."""
    picture = Picture("images/a.jpg", "0" * 64, "jpeg", 1000, 500, 90_000, still=True)

    made = ImageSet({picture.path: picture}, {}, {}).make_responsive(tag, "journal/x/", "")

    assert "/pictures/" not in made
    plain = ImageSet({picture.path: picture}, {}, {}).make_responsive
    assert plain(tag, "journal/x/", "", offers_forms=False) == tag


def test_picture_addresses_are_resolved_as_by_browsers() -> None:
    """Relative, quoted and queried addresses are followed; those of other sites are not."""
    assert resolve("journal/x/", "../../images/a%20b.jpg?v=1#top") == "images/a b.jpg"
    assert resolve("journal/x/", "a.jpg") == "journal/x/a.jpg"
    assert resolve("journal/x/", "https://elsewhere.example/images/a.jpg") == ""


def test_nothing_is_made_twice(bench: Workbench) -> None:
    """A form is linked from build to build, and taken from the cache when no build is left."""
    put(bench, "a.jpg", pack(draw(700, 400)))
    bench.post("shown", text="![A](/images/a.jpg)")
    first = take(bench.build() / "site" / "pictures")
    before = list_inodes(bench.output.resolve() / "current" / "site" / "pictures")

    bench.post("other", text="Another post.")
    second = bench.build()

    assert list_inodes(second / "site" / "pictures") == before
    assert compare(take(second / "site" / "pictures"), first) == []


def test_a_form_comes_from_the_cache(bench: Workbench) -> None:
    """A build with none before it takes what the cache has, and encodes nothing."""
    put(bench, "a.jpg", pack(draw(700, 400)))
    bench.post("shown", text="![A](/images/a.jpg)")
    first = take(bench.build() / "site" / "pictures")
    (bench.output / "current").unlink()
    with Cache(bench.output / ".cache" / "cache.sqlite") as cache:
        cache.put(IMAGES, [(make_key(f"pictures/{path}"), b"kept") for path in first])

    second = take(bench.build() / "site" / "pictures")

    assert second == dict.fromkeys(first, b"kept")


@pytest.mark.size("ci")
def test_a_build_lets_go_of_what_it_has_unpacked(bench: Workbench) -> None:
    """A program that goes on after a build holds neither its last picture nor its last posts."""
    put(bench, "a.jpg", pack(draw(703, 401)))
    bench.post("shown", text="![A](/images/a.jpg)", tags="[ink]")
    assert take(bench.build(jobs=1) / "site" / "pictures")

    gc.collect()
    held = gc.get_objects()
    pictures = [each.size for each in held if isinstance(each, Image.Image)]
    assert (703, 401) not in pictures
    assert "shown" not in [each.slug for each in held if isinstance(each, PostRecord)]


@pytest.mark.size("ci")
def test_cold_builds_agree_whatever_the_jobs(bench: Workbench, tmp_path: Path) -> None:
    """One process or two, the pictures and cards are the same bytes."""
    for number in range(3):
        put(bench, f"{number}.jpg", pack(draw(700, 400)))
        bench.post(f"shown-{number}", text=f"![A](/images/{number}.jpg)", tags="[ink]")
    for number in range(8):
        bench.post(f"more-{number}")
    other = Workbench(bench.content, tmp_path / "other")

    trees = take(bench.build(jobs=1) / "site"), take(other.build(jobs=2) / "site")

    assert sum(path.startswith("pictures/") for path in trees[0]) == 12
    assert compare(*trees) == []


def test_another_picture_of_the_same_name_is_seen_at_once(bench: Workbench) -> None:
    """A page names the forms of the picture as it is now; those of before stay for open pages."""
    put(bench, "a.jpg", pack(draw(700, 400)))
    bench.post("shown", text="![A](/images/a.jpg)")
    first = bench.build()
    old = read_offer(read_page("shown", first))
    put(bench, "a.jpg", pack(draw(640, 400)))

    second = bench.build()

    new = read_offer(read_page("shown", second))
    assert new.image["width"] == "640"
    addresses = {a for forms in old.sources.values() for a in forms.values()}
    assert addresses.isdisjoint({a for forms in new.sources.values() for a in forms.values()})
    assert all((second / "site" / address[1:]).is_file() for address in addresses)


def test_forms_of_drafts_are_not_made(bench: Workbench) -> None:
    """A picture of a draft costs nothing yet."""
    put(bench, "a.jpg", pack(draw(700, 400)))
    bench.post("hidden", text="![A](/images/a.jpg)", status="draft")

    assert not (bench.build() / "site" / "pictures").exists()


def list_findings(bench: Workbench) -> list[str]:
    """Return what the check says about the content's pictures."""
    _, findings = check_content(bench.content, bench.order().now)
    return [str(each) for each in findings if "picture" in each.message]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "GIF"])
def test_a_damaged_picture_is_an_error_where_it_is_shown(bench: Workbench, kind: str) -> None:
    """A post with a truncated picture is not built, and the error names the file and the line."""
    data = pack(draw(600, 400), kind)
    put(bench, f"half.{kind.lower()}", data[: len(data) // 2])
    bench.post("shown", text=f"Words, then ![A](/images/half.{kind.lower()})")

    [said] = list_findings(bench)

    assert re.match(r"posts/shown\.md:7:\d+  error  the picture images/half\.\w+ ", said)
    assert "save it anew" in said
    assert [each.path for each in build(bench.order()).held] == ["posts/shown.md"]


def test_a_damaged_picture_that_nobody_shows_is_a_warning(bench: Workbench) -> None:
    """It is reported at its file, and the site is built."""
    put(bench, "none.png", b"no picture at all")

    [said] = list_findings(bench)

    assert said.startswith("images/none.png:1:1  warning  the picture is no picture")
    assert (bench.build() / "site" / "images" / "none.png").is_file()


def test_a_decompression_bomb_is_reported_and_not_unpacked(bench: Workbench) -> None:
    """A small file of a hundred million pixels, or of far more, is an error with its fix."""
    put(bench, "big.png", pack(Image.new("1", (10_000, 10_000)), "PNG"))
    put(bench, "huge.png", pack(Image.new("1", (20_000, 20_000)), "PNG"))
    bench.post("shown", text="![A](/images/big.png)\n\n![B](/images/huge.png)")

    said = list_findings(bench)

    assert len(said) == 2
    assert all("pixels, which no build unpacks; save it with fewer than" in each for each in said)


def test_a_heavy_picture_is_a_warning(bench: Workbench) -> None:
    """It is reported at its file with the fix; one that is published smaller is not."""
    put(bench, "heavy.png", pack(draw(300, 200), "PNG") + bytes(2_000_000))
    put(bench, "wide.png", pack(Image.new("1", (4_000, 10)), "PNG") + bytes(2_000_000))

    [said] = list_findings(bench)

    assert said.startswith("images/heavy.png:1:1  warning  the picture weighs 2.")


def test_a_missing_picture_is_reported_with_a_suggestion(bench: Workbench) -> None:
    """A name in other letters, or with a slip, leads to a suggestion at the place."""
    put(bench, "Plan.png", pack(draw(20, 20), "PNG"))
    bench.post("shown", text="![A](/images/plan.PNG)\n\n![B](/images/Pln.png)")
    _, findings = check_content(bench.content, bench.order().now)

    said = [str(each) for each in findings if each.path == "posts/shown.md"]

    assert [each.partition("  ")[0] for each in said] == [
        "posts/shown.md:7:6",
        "posts/shown.md:9:6",
    ]
    assert all(each.endswith("did you mean /images/Plan.png?") for each in said)


@pytest.mark.parametrize("seed", range(40))
def test_no_bytes_raise(seed: int) -> None:
    """For any bytes of a picture, measuring it ends, and says what to fix."""
    whole = [pack(draw(60, 40), kind) for kind in ("JPEG", "PNG", "WEBP", "AVIF", "GIF")]
    data = bytearray(whole[seed % len(whole)])
    for step in range(8):
        at = (seed * 7919 + step * 104_729) % len(data)
        data[at] ^= 1 << (seed + step) % 8

    measured = measure("images/odd.jpg", bytes(data))

    assert bool(measured.picture) != bool(measured.fault)
    if measured.fault:
        assert "; save it" in measured.fault


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b'<svg width="76" height="25">', (76, 25)),
        (b'<svg width="76px" height="25.4px">', (76, 25)),
        (b'<svg width="100%" height="100%" viewBox="0,0,30,20">', (30, 20)),
        (b'<svg viewBox="0 0 30 20">', (30, 20)),
        (b'<svg viewBox="0 0 30">', None),
        (b'<svg width="5em" height="1em">', None),
        (b"<svg>", None),
        (b"", None),
        (b'<!DOCTYPE s [<!ENTITY a "aaaa">]><svg width="&a;" height="1">', None),
    ],
)
def test_the_size_of_an_svg_is_read(head: bytes, size: tuple[int, int] | None) -> None:
    """An SVG is as large as it says, or in the proportions of its box."""
    picture = measure("images/a.svg", head).picture

    assert (picture and (picture.width, picture.height)) == size


def test_a_small_picture_needs_no_forms() -> None:
    """Under a few kilobytes there is nothing to save."""
    picture = find_picture("images/dot.png", pack(Image.new("RGB", (32, 32), "red"), "PNG"))

    assert list_forms(picture) == ()


def test_every_suffix_of_a_picture_is_looked_at() -> None:
    """Names in capitals count too; other files of the folder are none of our business."""
    assert is_picture("images/A.JPG")
    assert not is_picture("images/plan.pdf")
