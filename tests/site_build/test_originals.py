"""Published originals: the pictures of the content folder without what their cameras noted."""

import io
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pillow_heif
import pytest
from PIL import Image, ImageCms, ImageSequence, PngImagePlugin

from site_build.images.responsive import measure
from site_build.images.strip import SIGNATURE
from site_build.releases.release import build
from tests.site_build.test_pictures import (
    GPS,
    LATITUDE,
    ORIENTATION,
    draw,
    look,
    pack,
    put,
    read_page,
)
from tests.site_build.workbench import Workbench, find, list_inodes, take
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

SECRET = b"Secret Lane 5"
"""A word in every kind of metadata that the pictures of these tests have."""
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><exif:GPSLatitude>' + SECRET + b"</x:xmpmeta>"
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
MP4 = b"\0\0\0\x18ftypmp42" + SECRET
"""A film behind the end of a picture, as telephones append it."""


def note(orientation: int = 6) -> Image.Exif:
    """Return what a camera notes, in each of the blocks that it may use."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    exif[0x010F] = SECRET.decode()
    exif.get_ifd(GPS)[LATITUDE] = (52.0, 31.0, 12.0)
    return exif


def _segment(marker: int, payload: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(payload) + 2) + payload


def make_jpeg() -> bytes:
    """Return a progressive JPEG with EXIF, XMP, IPTC, a comment, a thumbnail, and a film behind."""
    image = draw(600, 400)
    data = pack(image, exif=note(), icc_profile=PROFILE, comment=SECRET, progressive=True, xmp=XMP)
    thumbnail = _segment(0xE0, b"JFXX\0\x10" + SECRET)
    photoshop = _segment(0xED, b"Photoshop 3.0\0" + SECRET)
    return data[:2] + b"\xff" + thumbnail + photoshop + data[2:] + MP4


def _make_png(**options: object) -> bytes:
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", SECRET.decode())
    notes.add_text("Location", SECRET.decode(), zip=True)
    notes.add_itxt("XML:com.adobe.xmp", XMP.decode())
    image = draw(300, 200).convert("RGBA")
    image.putpixel((0, 0), (0, 0, 0, 0))
    return pack(image, "PNG", exif=note(), icc_profile=PROFILE, pnginfo=notes, **options)


def make_png() -> bytes:
    """Return a PNG with EXIF and texts of each form."""
    return _make_png() + MP4


def make_moving_png() -> bytes:
    """Return a PNG that moves, with the same."""
    return _make_png(save_all=True, append_images=[draw(300, 200, "RGBA")], duration=[90, 40])


def make_webp() -> bytes:
    """Return a WebP with EXIF and XMP."""
    return pack(draw(300, 200), "WEBP", exif=note(), icc_profile=PROFILE, xmp=XMP)


def make_moving_webp() -> bytes:
    """Return a WebP that moves, with the same and a chunk that nobody knows."""
    more: dict[str, object] = {"save_all": True, "append_images": [draw(300, 200)], "duration": 80}
    data = pack(draw(300, 200), "WEBP", exif=note(), icc_profile=PROFILE, xmp=XMP, **more)
    data += b"SECR" + struct.pack("<I", len(SECRET)) + SECRET + b"\0"
    return data[:4] + struct.pack("<I", len(data) - 8) + data[8:]


def make_avif() -> bytes:
    """Return an AVIF that lies on its side, with EXIF and XMP, and a box of its own behind."""
    data = pack(draw(300, 200), "AVIF", exif=note(), icc_profile=PROFILE, xmp=XMP)
    return data + struct.pack(">I", 24 + len(SECRET)) + b"uuid" + bytes(16) + SECRET


def make_moving_avif() -> bytes:
    """Return an AVIF that moves, with EXIF and XMP."""
    more: dict[str, object] = {"save_all": True, "append_images": [draw(300, 200)], "duration": 80}
    return pack(draw(300, 200), "AVIF", exif=note(1), icc_profile=PROFILE, xmp=XMP, **more)


def make_gif() -> bytes:
    """Return a GIF that moves, with comments and XMP."""
    frames = [draw(300, 200).convert("P"), draw(300, 200).convert("P")]
    data = pack(
        frames[0], "GIF", save_all=True, append_images=frames[1:], duration=[90, 40], loop=0
    )
    comment = b"!\xfe" + bytes([len(SECRET)]) + SECRET + b"\0"
    trailer = bytes([1, *range(255, -1, -1), 0])
    colours = 13 + 3 * 2 ** ((data[10] & 7) + 1)
    xmp = b"!\xff\x0bXMP DataXMP" + XMP + trailer
    return data[:colours] + xmp + comment + data[colours:-1] + comment + b";" + SECRET


MAKERS = [
    make_jpeg,
    make_png,
    make_moving_png,
    make_webp,
    make_moving_webp,
    make_gif,
]


def unpack(data: bytes) -> list[tuple[bytes, str, object]]:
    """Return pixels, mode and duration of each frame."""
    with Image.open(io.BytesIO(data)) as image:
        frames = ImageSequence.Iterator(image)
        return [(each.tobytes(), each.mode, each.info.get("duration")) for each in frames]


@pytest.mark.parametrize("make", [*MAKERS[:4], *in_ci(*MAKERS[4:])])
def test_an_original_keeps_its_pixels_and_no_metadata(
    bench: Workbench, make: Callable[[], bytes]
) -> None:
    """The published file has the same pixels and frames, upright and in the same colours."""
    data = make()
    source = put(bench, "photo.bin", data).rename(bench.content / "images" / f"{make.__name__}.png")
    published = bench.build() / "site" / "images" / source.name

    found = published.read_bytes()

    assert SECRET in data
    assert unpack(found) == unpack(data)
    assert SECRET not in found
    with Image.open(io.BytesIO(found)) as image, Image.open(io.BytesIO(data)) as before:
        image.load()
        before.load()
        assert dict(image.getexif()).keys() <= {ORIENTATION}
        assert image.getexif().get(ORIENTATION, 1) == before.getexif().get(ORIENTATION, 1)
        assert image.info.get("icc_profile") == before.info.get("icc_profile")
        assert image.info.get("loop") == before.info.get("loop")
        assert not {"comment", "photoshop", "mp"} & image.info.keys()
        assert not image.info.get("xmp", b"").strip()
    assert source.read_bytes() == data


@pytest.mark.parametrize("make", [make_avif, *in_ci(make_moving_avif)])
def test_an_avif_is_encoded_anew(bench: Workbench, make: Callable[[], bytes]) -> None:
    """It is upright, in its own colours, and moves as it did; notes of its file are gone."""
    data = make()
    put(bench, "photo.avif", data)

    found = (bench.build() / "site" / "images" / "photo.avif").read_bytes()

    assert SECRET in data
    assert SECRET not in found
    with Image.open(io.BytesIO(found)) as image:
        assert image.size == ((200, 300) if make is make_avif else (300, 200))
        assert not image.getexif()
        assert image.info.get("icc_profile") == PROFILE
    times = [duration for _, _, duration in unpack(data)]
    assert [duration for _, _, duration in unpack(found)] == times


def test_a_clean_picture_is_published_to_the_byte(bench: Workbench) -> None:
    """Without notes there is nothing to take out, and so nothing is written anew."""
    made = {
        "a.jpg": pack(draw(300, 200)),
        "b.png": pack(draw(300, 200), "PNG"),
        "c.webp": pack(draw(300, 200), "WEBP"),
        "e.gif": pack(draw(300, 200).convert("P"), "GIF"),
    }
    for name, data in made.items():
        put(bench, name, data)

    site = bench.build() / "site" / "images"

    assert {name: (site / name).read_bytes() for name in made} == made


def test_a_picture_under_another_ending_has_no_metadata_either(bench: Workbench) -> None:
    """The content decides, not the name; a file of another kind stays as it is."""
    put(bench, "photo.jpg.bak", pack(draw(300, 200), exif=note(1)))
    put(bench, "film.mp4", b"\0\0\0\x08ftyp\0\0\0\x0cudtaGPS!")

    site = bench.build() / "site" / "images"

    assert b"Exif" not in (site / "photo.jpg.bak").read_bytes()
    assert b"GPS!" in (site / "film.mp4").read_bytes()


def test_a_jpeg_with_a_second_picture_keeps_the_first(bench: Workbench) -> None:
    """Parts that cameras append to a picture, each with metadata, are not published."""
    put(
        bench, "two.jpg", pack(draw(300, 200), "MPO", save_all=True, append_images=[draw(300, 200)])
    )

    published = look(bench.build() / "site" / "images" / "two.jpg")

    assert published.format == "JPEG"
    assert not published.getexif()


def test_a_damaged_picture_is_published_without_its_notes(bench: Workbench) -> None:
    """One that is linked and not shown is a warning, and its place is not published either."""
    data = make_jpeg()
    put(bench, "cut.jpg", data[: len(data) // 2])
    bench.post("linked", text="[whole](/images/cut.jpg)")

    found = (bench.build() / "site" / "images" / "cut.jpg").read_bytes()

    assert SECRET not in found
    assert found.startswith(b"\xff\xd8")


@pytest.mark.size("ci")
@pytest.mark.parametrize("kind", ["JPEG", *in_ci("PNG", "WEBP", "AVIF", "GIF")])
def test_a_large_picture_is_published_smaller(bench: Workbench, kind: str) -> None:
    """Its longer side has 2,560 pixels; it is upright, in its own colours, and says nothing."""
    more = {} if kind == "GIF" else {"exif": note(), "icc_profile": PROFILE}
    data = pack(draw(3000, 1500), kind, **more)
    name = f"large.{kind.lower()}"
    put(bench, name, data)
    bench.post("shown", text=f"![Two colours](/images/{name})")
    build = bench.build()

    size = (1280, 2560) if more else (2560, 1280)
    with Image.open(build / "site" / "images" / name) as found:
        assert found.size == size
        assert found.format == kind
        assert found.info.get("icc_profile") == more.get("icc_profile")
        assert not found.getexif()
    assert SECRET not in (build / "site" / "images" / name).read_bytes()
    image = find(read_page("shown", build), ".prose img")
    assert (image.attributes["width"], image.attributes["height"]) == tuple(map(str, size))


@pytest.mark.parametrize("kind", ["GIF", *in_ci("WEBP", "PNG")])
def test_a_large_picture_that_moves_still_moves(bench: Workbench, kind: str) -> None:
    """Frames and their times stay."""
    frames = [draw(2700, 90), draw(2700, 90), draw(2700, 90)]
    more = {"save_all": True, "append_images": frames[1:], "duration": [100, 200, 300], "loop": 0}
    put(bench, f"moves.{kind.lower()}", pack(frames[0], kind, **more))

    found = bench.build() / "site" / "images" / f"moves.{kind.lower()}"

    with Image.open(found) as image:
        assert image.size == (2560, 85)
        assert image.info["loop"] == 0
    times = [duration for _, _, duration in unpack(found.read_bytes())]
    assert times == [100, 200, 300]


@pytest.mark.parametrize("mode", ["1", "L", *in_ci("LA", "P", "CMYK", "I;16")])
def test_a_large_picture_of_any_kind_of_pixel_is_understood(bench: Workbench, mode: str) -> None:
    """Grey, palette, print colours and sixteen bits are as light as they were."""
    grey = Image.new("L", (2700, 30), 255)
    if mode == "I;16":
        image = Image.frombytes(mode, grey.size, b"\xff" * 2 * 2700 * 30)
    else:
        image = grey.convert("RGB").convert(mode) if mode in {"P", "CMYK"} else grey.convert(mode)
    name, kind = ("a.jpg", "JPEG") if mode == "CMYK" else ("a.png", "PNG")
    put(bench, name, pack(image, kind))

    found = look(bench.build() / "site" / "images" / name)

    assert found.size == (2560, 28)
    assert found.convert("RGB").getpixel((40, 9)) == (255, 255, 255)


def test_an_original_is_made_once(bench: Workbench) -> None:
    """It is linked from build to build, the same for any number of processes, and made anew."""
    path = put(bench, "large.jpg", pack(draw(2700, 300), exif=note(1)))
    put(bench, "small.jpg", make_jpeg())
    first = bench.build()
    inodes = list_inodes(first / "site" / "images")
    bench.post("more")

    second = bench.build()

    assert list_inodes(second / "site" / "images") == inodes
    afresh = Workbench(bench.content, bench.output.with_name("afresh")).build(jobs=2)
    assert take(afresh / "site" / "images") == take(second / "site" / "images")
    path.write_bytes(pack(draw(2800, 300)))
    third = bench.build()
    assert (third / "site/images/large.jpg").read_bytes() != (
        second / "site/images/large.jpg"
    ).read_bytes()


def test_an_editor_need_not_take_notes_out(bench: Workbench) -> None:
    """Neither the place where a picture was taken nor its width is a finding any more."""
    put(bench, "large.jpg", pack(draw(4000, 300), exif=note(1)))

    assert measure("images/large.jpg", pack(draw(4000, 300), exif=note(1))).remarks == ()


def make_heic(image: Image.Image | None = None) -> bytes:
    """Return what a telephone writes: on its side, with notes, and with a second picture."""
    file, given = io.BytesIO(), image or draw(300, 200)
    heif = pillow_heif.from_pillow(given)
    heif.add_from_pillow(draw(60, 40))
    heif.save(file, exif=note().tobytes(), icc_profile=PROFILE, xmp=XMP, primary_index=0)
    return file.getvalue()


@pytest.mark.parametrize("link", ["/images/IMG_1.HEIC", "../images/IMG_1.HEIC"])
def test_a_heic_is_published_as_a_jpeg(bench: Workbench, link: str) -> None:
    """It is upright, in its own colours and without metadata; pages, feeds and links name it."""
    put(bench, "IMG_1.HEIC", make_heic())
    bench.post("shown", text=f"![Two colours]({link})\n\n[the file]({link})", image=link)
    build = bench.build()

    published = build / "site" / "images" / "IMG_1.HEIC.jpg"

    assert sorted(each.name for each in published.parent.glob("IMG*")) == [published.name]
    assert SECRET not in published.read_bytes()
    with Image.open(published) as image:
        assert (image.format, image.size) == ("JPEG", (200, 300))
        assert image.info["icc_profile"] == PROFILE
        assert not image.getexif()
        red, _, blue = image.getpixel((100, 30))  # type: ignore[misc]
        assert red > blue  # what was on the left is on top
    page = read_page("shown", build)
    image_tag = find(page, ".prose img").attributes
    assert image_tag["src"] == "/images/IMG_1.HEIC.jpg"
    assert (image_tag["width"], image_tag["height"]) == ("200", "300")
    assert len(page.css(".prose picture")) == 2
    assert page.css_matches(".prose a[href='/images/IMG_1.HEIC.jpg']")
    assert "/images/IMG_1.HEIC.jpg" in (build / "site" / "feed.xml").read_text("utf-8")
    assert ".HEIC)" not in (build / "site/journal/shown/index.md").read_text("utf-8")


def test_a_heic_may_be_the_face_and_the_edge_of_a_journal(bench: Workbench) -> None:
    """A draft's does not get out, that of a page `about` is its face."""
    put(bench, "face.heic", make_heic())
    put(bench, "secret.heic", make_heic(draw(400, 200)))
    bench.post("kept", status="draft", image="../images/secret.heic")
    head = "title: About\nslug: about\nimage: /images/face.heic"
    bench.write("pages/about.md", f"---\n{head}\n---\n\nWords.\n")

    build = bench.build()

    home = (build / "site" / "index.html").read_text("utf-8")
    assert 'src="/images/face.heic.jpg"' in home
    assert [e for e in take(build / "site") if "secret" in e] == []


@pytest.mark.parametrize(
    ("name", "make", "published"),
    [("a.jpg", make_heic, "a.jpg"), ("a.heic", make_jpeg, "a.heic.jpg")],
)
def test_a_heic_is_known_by_its_bytes(
    bench: Workbench, name: str, make: Callable[[], bytes], published: str
) -> None:
    """A file whose name says another kind is a JPEG in the end, without notes."""
    put(bench, name, make())
    bench.post("shown", text=f"![A](/images/{name})")

    found = bench.build() / "site" / "images" / published

    assert look(found).format == "JPEG"
    assert SECRET not in found.read_bytes()


def test_an_author_may_have_converted_a_heic(bench: Workbench) -> None:
    """Some programs write `a.heic.jpg` beside `a.heic`: that one is published."""
    put(bench, "a.heic", make_heic())
    put(bench, "a.heic.jpg", pack(draw(400, 300)))
    bench.post("shown", text="![A](/images/a.heic)")
    build = bench.build()

    image = find(read_page("shown", build), ".prose img").attributes

    assert (image["src"], image["width"]) == ("/images/a.heic.jpg", "400")
    assert look(build / "site" / "images" / "a.heic.jpg").size == (400, 300)


def test_holes_of_a_heic_stay(bench: Workbench) -> None:
    """A cut-out that a telephone made has no black ground."""
    cut = draw(300, 200).convert("RGBA")
    cut.paste((0, 0, 0, 0), (0, 0, 300, 80))
    put(bench, "cut.heic", make_heic(cut))

    found = look(bench.build() / "site" / "images" / "cut.heic.jpg")

    assert found.getchannel("A").getpixel((190, 150)) == 0


@pytest.mark.parametrize("keep", [9, 500, 0.5])
def test_a_damaged_heic_holds_up_no_other_post(bench: Workbench, keep: float) -> None:
    """The post that shows it waits, with one sentence; the file is not published."""
    data = make_heic()
    put(bench, "half.heic", data[: int(keep if keep > 1 else keep * len(data))])
    bench.post("shown", text="![A](/images/half.heic)")
    bench.post("other")

    (held,) = build(bench.order()).held

    assert held.path == "posts/shown.md"
    assert re.fullmatch(
        r"the picture images/half\.heic (is no picture that can be read|cannot be read \(.*\)); "
        "save it anew",
        held.finding.message,
    )
    site = (bench.output / "current" / "site").resolve()
    assert (site / "journal" / "other" / "index.html").is_file()
    assert not list((site / "images").glob("half*"))


@pytest.mark.parametrize("name", ["a.tif", "a.tiff"])
def test_a_format_that_no_browser_shows_is_reported(bench: Workbench, name: str) -> None:
    """Its metadata cannot be removed: it is not published, and an error where a post shows it."""
    put(bench, name, b"II*\0")
    bench.post("one")
    assert not (bench.build() / "site" / "images" / name).exists()
    bench.post("shown", text=f"![A](/images/{name})")

    (held,) = build(bench.order()).held

    assert (held.path, held.is_shown) == ("posts/shown.md", False)
    assert "is of a kind that most browsers do not show" in held.finding.message


def test_an_svg_with_metadata_is_reported() -> None:
    """An SVG is published as it is, so what its program noted in it is a finding."""
    noted = b'<svg viewBox="0 0 9 9"><metadata>By Jo, Secret Lane</metadata><path d="M0 0"/></svg>'

    assert "metadata" in measure("images/a.svg", noted).remarks[0]
    assert measure("images/a.svg", noted.replace(b"By Jo, Secret Lane", b" ")).remarks == ()


def test_bytes_that_are_no_picture_stay(tmp_path: Path) -> None:
    """A file that merely is called a picture, or that ends anywhere, breaks no build."""
    bench = Workbench(tmp_path / "content", tmp_path / "build")
    bench.post("one")
    whole = [make() for make in (*MAKERS, make_avif)]
    for number, data in enumerate(whole):
        for cut in (1, 3, 9, 13, 21, 40, 200, len(data) - 1):
            put(bench, f"{number}-{cut}.png", data[:cut])
    put(bench, "text.jpg", b"no picture at all")
    put(bench, "crc.png", SIGNATURE + struct.pack(">I", 2**32 - 1) + b"IDAT" + zlib.compress(b""))

    site = bench.build() / "site" / "images"

    assert (site / "text.jpg").read_bytes() == b"no picture at all"
    assert len(list(site.iterdir())) == len(whole) * 8 + 2
