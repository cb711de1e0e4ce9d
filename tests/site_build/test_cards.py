"""Social cards: what they show, what they cost, and where pages name them."""

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFont
from selectolax.lexbor import LexborHTMLParser

from site_build.build.assets import FONT, find_font
from site_build.images import card as cards
from site_build.images.card import (
    HUES,
    SIZE,
    Card,
    blend,
    can_write_title,
    choose_hue,
    convert_hue,
    draw_card,
    fit,
    write_line,
)
from site_build.images.fonts import Font, adapt_to_font, choose_font, open_font, read_font
from tests.site_build.workbench import (
    JOURNAL,
    ROOT,
    SITE_URL,
    Workbench,
    compare,
    list_inodes,
    run,
    run_journal,
    take,
)
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

PAPER = (0xF8, 0xF5, 0xEE)
TYPICAL = 60_000
"""Bytes that no card of a usual title exceeds."""

LONG = (
    "On the long and winding history of marginalia, commonplace books, and what readers wrote "
    "where nobody had asked them to write, with forty-one examples and a note on pencils"
)
TITLES = [
    "Ink",
    "What a fore-edge is",
    LONG,
    "Shipping \U0001f680 on a Friday \U0001f469\u200d\U0001f467 is fine \u263a\ufe0f",
    "asyncio.timeout() around `request.read()` in site_build/incremental/spread.py",
    "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft",
    "\u0416\u0438\u0437\u043d\u044c \u0438 \u03bc\u03ad\u03bb\u03b1\u03bd, d\u1ebfn cu\u1ed1i",
    "x" * 5_000,
]
FOREIGN = [
    "\u0639\u0646 \u0627\u0644\u062d\u0648\u0627\u0634\u064a",
    "\u05e9\u05d5\u05dc\u05d9\u05d9\u05dd",
    "\u4e09\u756a\u76ee",
    "Half \u4e09 of it",
    "\u0939\u093f\u0928\u094d\u0926\u0940",
]


@pytest.fixture(scope="module")
def font() -> Font:
    """Return the font of the theme's cards."""
    found = find_font(ROOT / "theme")
    assert found
    return found


def look(data: bytes) -> Image.Image:
    """Return a card's pixels."""
    return Image.open(io.BytesIO(data)).convert("RGB")


def find_ink(
    image: Image.Image, box: tuple[int, int, int, int]
) -> tuple[int, int, int, int] | None:
    """Return the box within `box` that has anything darker than paper."""
    part = image.crop(box).convert("L").point(lambda level: 255 * (level < 200))
    return part.getbbox()


@pytest.mark.parametrize("title", TITLES)
def test_a_title_fits_its_box(font: Font, title: str) -> None:
    """However long, a title keeps off the edges, and the picture stays small."""
    data = draw_card(Card("Journal", title, "1 May 2026", (3, 7)), font)
    image = look(data)

    assert image.size == SIZE == (1200, 630)
    assert len(data) < TYPICAL
    assert can_write_title(Card("Journal", title), font)
    assert find_ink(image, (88, 130, 1100, 530))
    assert find_ink(image, (0, 0, 80, 630)) is None
    assert find_ink(image, (1016, 0, 1100, 630)) is None


@pytest.mark.parametrize("title", ["\U0001f680", ""])
def test_a_title_without_letters_is_left_out(font: Font, title: str) -> None:
    """The journal's name is there, as on the card of the site."""
    card, plain = (
        Card("Journal", title, "1 May 2026", (3,)),
        Card("Journal", "", "1 May 2026", (3,)),
    )

    assert not can_write_title(card, font)
    assert draw_card(card, font) == draw_card(plain, font)


@pytest.mark.parametrize("title", FOREIGN)
def test_a_title_in_another_script(font: Font, title: str) -> None:
    """A font of the machine writes it; without one it is there all the same, with boxes."""
    card = Card("Journal", title, "1 May 2026", (3,))
    image = look(draw_card(card, font))

    assert draw_card(card, font) != draw_card(Card("Journal", "", "1 May 2026", (3,)), font)
    assert find_ink(image, (88, 130, 1016, 530))
    assert find_ink(image, (0, 0, 80, 630)) is None
    assert find_ink(image, (1020, 0, 1100, 630)) is None


def test_right_to_left_titles_begin_at_the_right(font: Font) -> None:
    """The first letter is at the right edge of the box, whichever font writes it."""
    image = look(draw_card(Card("Journal", "\u05d0 1 \u05d1", "1 May 2026", (3,)), font))

    assert find_ink(image, (900, 130, 1018, 530))
    assert find_ink(image, (88, 130, 600, 530)) is None


def test_lines_of_japanese_begin_with_no_stop(font: Font) -> None:
    """And they are as large as there is room for, though no blank divides them."""
    text = "\u5c0f\u53e3\u7d75\u306e\u6b74\u53f2\u3001\u305d\u3057\u3066\u672c\u3002" * 3
    size, lines = fit(text, font, (112, 90, 58), (900, 360))

    assert size > 58
    assert "".join(lines) == text
    assert len(lines) > 1
    assert not any(line[0] in "\u3001\u3002" for line in lines)


def test_a_fallback_font_draws_missing_glyphs(font: Font, tmp_path: Path) -> None:
    """The other fonts of the theme's folder are tried by name; the first that has all is taken."""
    plain = ImageFont.load_default(10)  # which has no Cyrillic
    assert isinstance(plain, ImageFont.FreeTypeFont)
    (tmp_path / "main.ttf").write_bytes(plain.font_bytes)
    card, latin = Card("Journal", "\u0416\u0438\u0437\u043d\u044c"), Card("Journal", "Life")
    alone = read_font(tmp_path / "main.ttf")
    (tmp_path / "other.ttf").write_bytes(font.data)
    both = read_font(tmp_path / "main.ttf")

    assert choose_font(card.title, both).data == font.data
    assert draw_card(card, both) != draw_card(card, alone)
    assert draw_card(latin, both) == draw_card(latin, alone)
    assert both.digest != alone.digest


@pytest.mark.parametrize("size", [34, 58, 112])
@pytest.mark.parametrize(
    "text",
    [
        "Announcing Rust 1.67.0",
        "Tofu, AVATAR, office, waffle, after",
        "A\u0301ngstrom e\u0308tude x\u0302y",
        "\u201cquick\u201d \u2013 \u0416\u0443\u0440\u043d\u0430\u043b \u03b1\u03b2\u03b3",
    ],
)
def test_words_are_placed_as_in_a_whole_line(font: Font, text: str, size: int) -> None:
    """A line put together from words is the line that Pillow draws at a stroke, to a pixel or two.

    Blanks are of whole pixels there; what a word looks like is the same.
    """
    place, sheets = (20, 150), [Image.new("L", (2400, 220)) for _ in range(3)]
    opened = open_font(font, size)
    ImageDraw.Draw(sheets[0]).text(place, text, 255, opened, anchor="ls")
    write_line(sheets[1], place, text, 255, (font, size))
    stroke, composed = (sheet.getbbox() for sheet in sheets[:2])
    assert stroke
    assert composed
    assert max(abs(a - b) for a, b in zip(stroke, composed, strict=True)) <= 2

    word = text.split(maxsplit=1)[0]
    ImageDraw.Draw(sheets[2]).text(place, word, 255, opened, anchor="ls")
    sheets[1].paste(0, (0, 0, 2400, 220))
    write_line(sheets[1], place, word, 255, (font, size))
    assert ImageChops.difference(sheets[1], sheets[2]).getbbox() is None


def test_ornaments_are_left_out_and_letters_are_not(font: Font) -> None:
    """Emoji go, without a trace of a blank; letters, digits and marks all stay."""
    assert adapt_to_font("Go \U0001f680 now\u2009!", font) == "Go now !"
    assert adapt_to_font("cafe\u0301 \u2192 \u00bd", font) == "caf\u00e9 \u2192 \u00bd"
    assert adapt_to_font("tab\tand\nline", font) == "tab and line"


def test_a_longer_title_is_set_smaller_and_cut_at_last(font: Font) -> None:
    """A short title is large, a long one smaller, one beyond all sizes ends in an ellipsis."""
    (large, _), (middle, long), (small, endless) = fitted = [
        fit(text, font, (112, 80, 58), (900, 360)) for text in ("Ink", LONG[:90], LONG * 4)
    ]

    assert large > middle >= small
    assert " ".join(long) == LONG[:90].strip()
    assert endless[-1].endswith("\u2026")
    for size, lines in fitted:
        widths = [open_font(font, size).getlength(line) for line in lines]
        assert max(widths) <= 900


def test_lines_are_evenly_long(font: Font) -> None:
    """No title leaves one short word on its last line where the lines above could spare some."""
    _, lines = fit("A word about what is left alone on a line", font, (80,), (900, 360))

    widths = [open_font(font, 80).getlength(line) for line in lines]
    assert min(widths) > max(widths) / 2


def test_the_edge_is_painted_in_the_hues_of_the_tags(font: Font) -> None:
    """Bands are one below the other in the tags' order; without tags the leaves are bare."""
    painted = look(draw_card(Card("Journal", "A title", "", (1, 9, 17)), font))
    bare = look(draw_card(Card("Journal", "A title"), font))

    found = [painted.getpixel((1110, y)) for y in (100, 315, 530)]
    assert found == [convert_hue(hue) for hue in (1, 9, 17)]
    assert bare.getpixel((1110, 315)) == PAPER


def test_a_post_of_many_tags_has_a_card(font: Font) -> None:
    """More tags than there is room for bands are painted as far as they go."""
    data = draw_card(Card("Journal", "A title", "", tuple(n % HUES for n in range(300))), font)

    assert look(data).size == SIZE


def test_paper_and_ink_are_those_of_the_pages() -> None:
    """The card's colours by day are in the style sheet under their names."""
    style = (ROOT / "theme" / "static" / "style.css").read_text(encoding="utf-8")
    for name in ("paper", "ink", "hairline"):
        found = re.search(rf"--{name}: light-dark\(#(\w{{6}})", style)
        assert found
        assert getattr(cards, f"_{name.upper()}") == tuple(bytes.fromhex(found[1]))


def test_paint_is_the_colour_that_browsers_mix() -> None:
    """The paints of some hues, as Chromium shows `oklch(.6 .125 …)`."""
    assert convert_hue(0) == (187, 93, 125)
    assert convert_hue(60) == (35, 136, 195)
    assert choose_hue("api") == sum(b"api") * 47 % 90
    assert blend((255, 0, 0), (0, 0, 255), 0.5) == (128, 0, 128)


def read_head(build: Path, page: str) -> dict[str, str]:
    """Return what a page's head says by property or name."""
    tree = LexborHTMLParser((build / "site" / page).read_text(encoding="utf-8"))
    metas = [dict(each.attributes) for each in tree.css("head meta")]
    return {
        each.get("property") or each.get("name") or "": each.get("content") or "" for each in metas
    }


def test_pages_name_their_cards(bench: Workbench) -> None:
    """A post names its own card and every other page that of the site; both are there."""
    build = bench.build()

    post = read_head(build, "journal/first-light/index.html")
    home = read_head(build, "index.html")

    assert post["og:image"] == f"{SITE_URL}/cards/first-light.png"
    assert home["og:image"] == read_head(build, "about/index.html")["og:image"]
    for head in (post, home):
        path = build / "site" / head["og:image"].removeprefix(f"{SITE_URL}/")
        with Image.open(path) as card:
            assert card.format == "PNG"
            assert card.size == (int(head["og:image:width"]), int(head["og:image:height"]))
        assert head["og:image:alt"]
        assert head["twitter:card"] == "summary_large_image"


def test_an_edit_draws_one_card_at_most(bench: Workbench) -> None:
    """Other words leave every card as it is; another title draws that post's anew."""
    first = bench.build()
    before = list_inodes(first / "site" / "cards")
    path = bench.content / "posts" / "first.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nMore words.\n", encoding="utf-8")
    assert list_inodes(bench.build() / "site" / "cards") == before

    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^title: .*$", "title: Another", text), encoding="utf-8")
    after = list_inodes(bench.build() / "site" / "cards")

    assert {name for name in after if after[name] != before[name]} == {"first-light.png"}


def test_cards_of_a_fresh_process_are_the_same(bench: Workbench, tmp_path: Path) -> None:
    """A card has the same bytes from every process, at any time."""
    first = take(bench.build(jobs=1) / "site" / "cards")
    other = Workbench(bench.content, tmp_path / "other")

    assert compare(first, take(other.build(jobs=2) / "site" / "cards")) == []


def test_drafts_have_no_card_yet(bench: Workbench) -> None:
    """The name of a draft is not given away."""
    bench.post("hidden", status="draft")

    assert not (bench.build() / "site" / "cards" / "hidden.png").exists()


def copy_theme(folder: Path) -> Path:
    """Copy the journal's theme, and return where its font for cards is then."""
    shutil.copytree(ROOT / "theme", folder)
    return folder / FONT


def test_a_theme_without_a_font_has_no_cards(tmp_path: Path) -> None:
    """Then nothing is drawn, and neither pages nor feeds name a card."""
    copy_theme(tmp_path / "theme").unlink()
    run_journal(JOURNAL, tmp_path / "output", tmp_path / "theme")
    files = take(tmp_path / "output")

    assert not [path for path in files if path.startswith("card")]
    named = rb"journal\.test/cards?[/.]"
    assert [path for path, data in files.items() if re.search(named, data)] == []
    assert b"BlogPosting" in files["journal/first-light/index.html"]


def test_another_font_in_the_theme_draws_every_card_anew(tmp_path: Path) -> None:
    """A process that goes on, such as a preview, sees the change as a new one would."""
    font = copy_theme(tmp_path / "theme")
    run_journal(JOURNAL, tmp_path / "output", tmp_path / "theme")
    before = take(tmp_path / "output" / "cards")

    other = ImageFont.load_default(10)
    assert isinstance(other, ImageFont.FreeTypeFont)
    font.write_bytes(other.font_bytes)
    run_journal(JOURNAL, tmp_path / "output", tmp_path / "theme")
    after = take(tmp_path / "output" / "cards")

    assert compare(before, after) == sorted(before)
    site = Card("Fore-edge", hues=(1, 2))
    assert draw_card(site, read_font(font)) != draw_card(site, read_font(ROOT / "theme" / FONT))


def run_card(bench: Workbench, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command on a workbench's content, without the fonts of the machine."""
    command = (sys.executable, "-m", "site_build", "card", "--content", bench.content)
    return run(*command, "--site-url", SITE_URL, *words, environment={"PATH": ""})


def test_the_content_that_is_named_is_enough(bench: Workbench, tmp_path: Path) -> None:
    """The content folder of the settings need not exist."""
    bench.post("plain")
    words = ("card", "plain", "--content", bench.content, "--output", tmp_path / "card.png")

    nowhere = {"CONTENT_DIR": str(tmp_path / "none")}
    done = run(sys.executable, "-m", "site_build", *words, environment=nowhere)

    assert done.returncode == 0, done.stderr
    assert look((tmp_path / "card.png").read_bytes()).size == SIZE


def test_the_command_draws_a_card_and_shows_the_post(bench: Workbench, tmp_path: Path) -> None:
    """A draft's too: the picture is written, and what others will show of the post is printed."""
    bench.post("hidden", status="draft", title="A hidden thing", description="What it is.")

    done = run_card(bench, "hidden", "--output", tmp_path / "card.png")

    assert done.returncode == 0, done.stderr
    assert look((tmp_path / "card.png").read_bytes()).size == SIZE
    assert f"{SITE_URL}/journal/hidden/" in done.stdout
    assert "A hidden thing" in done.stdout
    assert "What it is." in done.stdout


def test_the_command_draws_what_the_build_draws(bench: Workbench, tmp_path: Path) -> None:
    """The file is the one that the site will have."""
    run_card(bench, "first-light", "--output", tmp_path / "card.png")

    built = bench.build() / "site" / "cards" / "first-light.png"
    assert (tmp_path / "card.png").read_bytes() == built.read_bytes()


def test_the_command_says_when_a_title_cannot_be_written(bench: Workbench, tmp_path: Path) -> None:
    """An author learns why the card bears the journal's name."""
    done = run_card(bench, "third", "--output", tmp_path / "card.png")

    assert done.returncode == 0
    assert "can write this title" in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["first-lihgt"], 1, "no post has the slug 'first-lihgt'; did you mean 'first-light'?\n"),
        *in_ci(
            (["about"], 1, "no post has the slug 'about'; "),
            (
                ["first-light", "--output", "/dev/null/x.png"],
                1,
                "cannot be written: Not a directory\n",
            ),
            (["first-light", "--output", "x.md"], 2, "a card is a PNG or a JPEG; end 'x.md' in "),
            (["first-light", "--output", "x.jpeg"], 1, "is a PNG; end x.jpeg in .png\n"),
            ([], 2, "Missing argument 'SLUG'"),
        ),
    ],
)
def test_the_command_says_what_is_wrong(
    bench: Workbench, words: list[str], status: int, sentence: str
) -> None:
    """A slip is answered with one sentence, and no trace."""
    done = run_card(bench, *words)

    assert done.returncode == status
    assert sentence in done.stderr
    assert done.stderr.count("\n") == status  # wrong usage is followed by the way to the help


def test_the_command_names_unreadable_files(bench: Workbench) -> None:
    """The post may be the one whose front matter is broken."""
    bench.write("posts/broken.md", "---\ntitle: Broken\nslug: broken\ndate: never\n---\nWords.\n")

    done = run_card(bench, "broken")

    assert done.returncode == 1
    assert "posts/broken.md:4:7" in done.stdout
    assert "posts/broken.md cannot be read; fix this first" in done.stderr
