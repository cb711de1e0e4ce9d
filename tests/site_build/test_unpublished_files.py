"""Files that drafts and scheduled posts alone use are published with these, and not before."""

import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.site_build.workbench import NOW, PACKED, THEME, Workbench, run_journal

pytestmark = pytest.mark.size("test")

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'


def published(bench: Workbench, now: str = NOW) -> set[str]:
    """Build at an instant; return the files of the content that the site has."""
    site = bench.build(now) / "site"
    found = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    return {path for path in found if path.startswith("images/") and not path.endswith(PACKED)}


def test_files_of_drafts_alone_are_not_published(empty_bench: Workbench) -> None:
    """Pictures and files appear with the text that uses them, and go when that is a draft again."""
    bench = empty_bench
    for name in ("draft", "later", "both", "nobody", "lead", "set", "page"):
        bench.write(f"images/{name}.svg", SVG)
    bench.write("images/plan.pdf", "A document.")
    text = "![A](/images/draft.svg) ![B](../images/both.svg) [C](/images/plan.pdf)"
    text += ' <img src="/images/set.svg" srcset="/images/page.svg 2x" alt="D">'
    bench.post("hidden", text=text, status="draft", image="/images/lead.svg")
    bench.post("soon", day="2026-06-01", text="![A](/images/later.svg)")
    bench.post("seen", text="![A](/images/both.svg)")
    always, own = {"images/both.svg", "images/nobody.svg"}, {"images/later.svg"}

    assert published(bench) == always
    assert published(bench, "2026-06-02T00:00:00Z") == always | own
    bench.post("hidden", text=text, image="/images/lead.svg")
    names = ("draft.svg", "set.svg", "page.svg", "lead.svg", "plan.pdf")
    assert published(bench) == always | {f"images/{name}" for name in names}
    bench.post("hidden", text=text, status="draft")
    assert published(bench) == always | {"images/lead.svg"}  # which no text names any more
    (bench.content / "posts" / "hidden.md").unlink()
    assert published(bench) == always | {f"images/{name}" for name in names}


def test_a_post_with_an_error_keeps_back_what_is_new_alone(empty_bench: Workbench) -> None:
    """Published files stay, also if their name is a part of a word."""
    for name in ("1", "known"):
        empty_bench.write(f"images/{name}.svg", SVG)
    assert published(empty_bench) == {"images/1.svg", "images/known.svg"}
    for name in ("11", "21", "named"):
        empty_bench.write(f"images/{name}.svg", SVG)
    text = "---\ntitle: [A\n---\n\n![A](../images/11.svg) ![B](/images/named.svg) known.svg 1.svg\n"
    empty_bench.write("posts/broken.md", text)

    always = {"images/1.svg", "images/known.svg", "images/21.svg"}
    assert published(empty_bench) == always
    assert published(empty_bench, "2026-06-02T00:00:00Z") == always


@pytest.mark.parametrize(
    ("use", "is_seen"),
    [
        ("[A](/images/a.svg)", True),
        ("[A](../images/a.svg?x=1#y)", True),
        ("![A]({static}/images/a.svg)", True),
        ("[A](https://journal.test/images/a.svg)", True),
        ("[A](https://journal.test/images/%61.svg)", True),
        ('<video poster="/images/a.svg" src="/images/b.mp4"></video>', True),
        ('<a href="/images/a.svg">A</a>', True),
        ("[A](https://journal.test/images/banana.svg)", False),
        ("The file images/a.svg is told of.", False),
        ("`![A](/images/a.svg)`", False),
    ],
)
def test_each_way_to_name_a_file_is_a_use(
    empty_bench: Workbench, use: str, *, is_seen: bool
) -> None:
    """Files that a published text links or shows stay, though a draft shows them too."""
    empty_bench.write("images/a.svg", SVG)
    empty_bench.post("hidden", text="![A](/images/a.svg)", status="draft")
    empty_bench.post("seen", text=use)

    assert published(empty_bench) == ({"images/a.svg"} if is_seen else set())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("images/site.css", "body { background: url(a.svg) }"),
        ("images/plain.html", '<img src="/images/a.svg">'),
        ("pages/about.md", "---\ntitle: About\nslug: about\n---\n\n![A](/images/a.svg)\n"),
    ],
)
def test_other_published_files_keep_what_they_name(
    empty_bench: Workbench, name: str, text: str
) -> None:
    """A page, a style sheet or a page in HTML of the content is seen without the draft."""
    empty_bench.write("images/a.svg", SVG)
    empty_bench.post("hidden", text="![A](/images/a.svg)", status="draft")
    empty_bench.write(name, text)

    assert "images/a.svg" in published(empty_bench)


@pytest.mark.parametrize("file", ["templates/index.html", "static/more.css", ""])
def test_theme_and_settings_keep_what_they_name(
    empty_bench: Workbench, tmp_path: Path, file: str
) -> None:
    """A theme's template or style sheet, and a setting, may show a file of the content."""
    theme = tmp_path / "theme"
    shutil.copytree(THEME, theme)
    settings = {} if file else {"BANNER": "/images/a.svg"}
    if file:
        with (theme / file).open("a") as opened:
            opened.write("/* url(/images/a.svg) */")
    empty_bench.write("images/a.svg", SVG)
    empty_bench.write("images/b.svg", SVG)
    empty_bench.post("hidden", text="![A](/images/a.svg) ![B](/images/b.svg)", status="draft")

    run_journal(empty_bench.content, tmp_path / "output", theme, **settings)

    assert (tmp_path / "output/images/a.svg").exists()
    assert not (tmp_path / "output/images/b.svg").exists()


def test_no_form_of_a_withdrawn_picture_is_kept(bench: Workbench) -> None:
    """Lighter forms of what was published go with the text, though those of others stay a while."""
    for name in ("a", "b"):
        (bench.content / "images").mkdir(exist_ok=True)
        noise = Image.effect_noise((800, 400), 60 if name == "a" else 90)
        noise.convert("RGB").save(bench.content / "images" / f"{name}.jpg")
    bench.post("shown", text="![A](/images/a.jpg)")
    bench.post("other", text="![B](/images/b.jpg)")

    def list_forms() -> set[str]:
        folder = bench.build() / "site" / "pictures"
        return {path.name.partition(".")[0] for path in folder.rglob("*.webp")}

    before = list_forms()
    bench.post("shown", text="![A](/images/a.jpg)", status="draft")
    bench.post("other", text="Words.")
    after = list_forms()

    assert before == {"a-480", "a-800", "b-480", "b-800"}
    assert after == {"b-480", "b-800"}


def test_content_folders_are_matched_by_whole_names(empty_bench: Workbench, tmp_path: Path) -> None:
    """Raw pictures beside `images/` are not published, nor texts beside the folders of texts."""
    for folder in ("images", "images-raw", "images/raw", "images/raw-too"):
        empty_bench.write(f"{folder}/a.svg", SVG)
    for folder in ("blog", "blog-old", "blog/hidden", "blog/hidden-gems", "pages", "pages-old"):
        slug, date = folder.replace("/", "-"), "date: 2026-03-01\n" if "blog" in folder else ""
        head = f"---\ntitle: {slug}\nslug: {slug}\n{date}---\n\n"
        empty_bench.write(f"{folder}/a.md", f"{head}Words.\n")
    chosen = {"STATIC_PATHS": ["images"], "STATIC_EXCLUDES": ["images/raw"]}
    chosen |= {"ARTICLE_PATHS": ["blog"], "ARTICLE_EXCLUDES": ["blog/hidden"]}
    site = tmp_path / "output"
    run_journal(empty_bench.content, site, THEME, PAGE_PATHS=["pages"], **chosen)

    assert {path.parent.name for path in site.rglob("a.svg")} == {"images", "raw-too"}
    texts = {path.parent.name for path in site.rglob("index.html")}
    assert {each for each in texts if each.startswith(("blog", "pages"))} == {
        "blog",
        "blog-hidden-gems",
        "pages",
    }
