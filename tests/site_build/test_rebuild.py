"""Building again: the same bytes whatever the way, and only what changed is made anew."""

import gc
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from weakref import ref

import pytest
from jinja2 import Environment

from site_build.build.builder import SiteBuild
from site_build.build.memory import BuildMemory, RevisedBuild
from site_build.errors import ContentError
from site_build.releases.release import build
from site_build.template_objects import track_lookups
from tests.site_build.workbench import (
    NOW,
    THEME,
    Workbench,
    compare,
    list_inodes,
    run_build,
    run_journal,
    run_pelican,
    take,
)
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

MEMORY = "manifest.sqlite"
"""Tells times of files, which no two builds share."""


def edit(bench: Workbench, name: str, before: str, after: str) -> None:
    """Replace words in a post's file."""
    path = bench.content / "posts" / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def build_elsewhere(bench: Workbench, folder: Path, jobs: int = 1) -> Path:
    """Build a workbench's content into a folder that knows nothing of it."""
    return Workbench(bench.content, folder / "elsewhere").build(jobs=jobs)


def differ(first: Path, second: Path) -> list[str]:
    """Return where two builds differ."""
    return [path for path in compare(take(first), take(second)) if path != MEMORY]


@pytest.mark.size("ci")
def test_a_build_in_processes_is_the_same(bench: Workbench, tmp_path: Path) -> None:
    """Any number of processes writes the same bytes."""
    for number in range(20):
        bench.post(f"more-{number}")

    assert differ(bench.build(jobs=1), build_elsewhere(bench, tmp_path, jobs=3)) == []


def test_a_build_over_an_old_one_is_the_same(bench: Workbench) -> None:
    """A second build of the same writes the same bytes under the same name."""
    first = bench.build()
    before = take(first)

    second = bench.build()

    assert second == first
    assert [path for path in compare(before, take(second)) if path != MEMORY] == []


def test_a_warm_cache_changes_no_byte(bench: Workbench) -> None:
    """With the cache kept and every build gone, the same site comes out."""
    first = take(bench.build())
    shutil.rmtree((bench.output / "current").resolve())

    second = take(bench.build())

    assert [path for path in compare(first, second) if path != MEMORY] == []


@pytest.mark.size("ci")
def test_the_seed_of_hashes_changes_no_byte(bench: Workbench, tmp_path: Path) -> None:
    """Sets and dictionaries in another order write the same bytes."""
    for number in range(12):
        bench.post(f"more-{number}", tags=f"[T{number % 5}, Light, Sight]")
    trees = []
    for seed in ("1", "424242"):
        other = Workbench(bench.content, tmp_path / seed)
        done = run_build(other, "--jobs", 2, PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
        trees.append((other.output / "current").resolve())

    assert differ(*trees) == []


FORMS = ("xml", "json")
"""The formats of a feed."""


def test_an_edited_text_touches_only_its_own_files(bench: Workbench) -> None:
    """Another word in a post makes its page, its twin and the full texts anew, nothing else."""
    first = bench.build()
    edit(bench, "first", "Words with", "Other words with")

    second = bench.build()

    before, after = list_inodes(first / "site"), list_inodes(second / "site")
    changed = {path for path in after if before.get(path) != after[path]}
    assert {path.removesuffix(".gz").removesuffix(".br") for path in changed} == {
        "journal/first-light/index.html",
        "journal/first-light/index.md",
        "llms-full.txt",
        *(f"{each}feed.{form}" for each in ("", "tags/light/", "tags/c/") for form in FORMS),
    }


def test_an_unchanged_build_writes_no_public_file(bench: Workbench) -> None:
    """For another instant with the same posts every file is linked from the build before."""
    first = bench.build()

    second = bench.build("2026-05-02T00:00:00Z")

    assert second != first
    assert list_inodes(first / "site") == list_inodes(second / "site")


@pytest.mark.size("ci")
def test_a_new_title_shows_wherever_the_post_is_named(bench: Workbench, tmp_path: Path) -> None:
    """Lists, neighbours, feed and sitemap follow an edit as if all had been made anew."""
    bench.build()
    edit(bench, "third", "三番目", "The third")

    second = bench.build()

    assert differ(second, build_elsewhere(bench, tmp_path)) == []
    neighbour = (second / "site" / "journal" / "first-light" / "index.html").read_text(
        encoding="utf-8"
    )
    assert "The third" in neighbour


def test_files_of_removed_posts_are_deleted(bench: Workbench) -> None:
    """The files of a removed post and of its tag stay behind."""
    bench.build()
    (bench.content / "posts" / "second.md").unlink()

    site = bench.build() / "site"

    assert not (site / "journal" / "second-sight").exists()
    assert not (site / "tags" / "sight").exists()
    assert "second-sight" not in (site / "llms.txt").read_text(encoding="utf-8")


@pytest.mark.size("ci")
def test_a_renamed_post_moves(bench: Workbench, tmp_path: Path) -> None:
    """A post with another slug leaves nothing at its old address, in either kind of build."""
    bench.build()
    run_pelican(bench.content, tmp_path / "output")
    edit(bench, "second", "slug: second-sight", "slug: moved")

    site = bench.build() / "site"
    done = run_pelican(bench.content, tmp_path / "output")

    assert done.returncode == 0, done.stderr
    assert not (site / "journal" / "second-sight").exists()
    assert (site / "journal" / "moved" / "index.html").is_file()
    assert compare(take(site), take(tmp_path / "output")) == []


def test_pelican_leaves_foreign_files_alone(bench: Workbench, tmp_path: Path) -> None:
    """Files in the output folder that no build wrote stay there."""
    output = tmp_path / "output"
    run_journal(bench.content, output)
    (output / "CNAME").write_text("journal.test")
    (bench.content / "posts" / "second.md").unlink()

    run_journal(bench.content, output)

    assert (output / "CNAME").read_text(encoding="utf-8") == "journal.test"
    assert not (output / "journal" / "second-sight").exists()


@pytest.mark.size("ci")
def test_a_file_and_a_folder_change_places(bench: Workbench, tmp_path: Path) -> None:
    """A file may become a folder, and the other way round."""
    bench.write("images/plan", "All.")
    bench.build()
    (bench.content / "images" / "plan").unlink()
    bench.write("images/plan/deep/first.txt", "One.")

    assert differ(bench.build(), build_elsewhere(bench, tmp_path / "folder")) == []

    shutil.rmtree(bench.content / "images" / "plan")
    bench.write("images/plan", "All again.")

    assert differ(bench.build(), build_elsewhere(bench, tmp_path / "file")) == []


def list_spare(bench: Workbench) -> dict[str, int]:
    """Return the inodes of what the next build will be made in."""
    return list_inodes(bench.output / ".spare" / "site")


def test_the_next_build_is_prepared_with_hard_links(bench: Workbench) -> None:
    """After each build the files that it wrote have second names, and old ones are removed."""
    for number in range(4):
        edit(bench, "first", "with", f"with {number} and")
        newest = bench.post(f"newest-{number}", "2026-04-01")

        site = bench.build() / "site"

        assert list_spare(bench) == list_inodes(site)
        newest.unlink()


@pytest.mark.size("ci")
@pytest.mark.parametrize("leftover", ["foreign.html", "journal/foreign/index.html"])
def test_a_half_written_build_is_not_published(bench: Workbench, leftover: str) -> None:
    """A folder whose ledger is gone holds nobody knows what, and is made anew."""
    bench.build()
    left = bench.output / ".spare" / "site" / leftover
    left.parent.mkdir(exist_ok=True)
    left.write_text("Left.")
    (bench.output / ".spare" / "manifest.sqlite").unlink()
    edit(bench, "first", "Words with", "Other words with")

    assert not (bench.build() / "site" / leftover).exists()


@pytest.mark.size("ci")
def test_a_build_after_going_back_is_the_same(bench: Workbench, tmp_path: Path) -> None:
    """If `current` points at the build before, the next one is made from that."""
    first = bench.build()
    edit(bench, "first", "Words with", "Other words with")
    bench.post("newest", "2026-04-01")
    bench.build()
    (bench.output / "current").unlink()
    (bench.output / "current").symlink_to(first.name)
    edit(bench, "second", "More words", "Fresh words")

    assert differ(bench.build(), build_elsewhere(bench, tmp_path)) == []


def edit_at_random(bench: Workbench, luck: random.Random) -> None:
    """Add, change, hide, move or remove a post."""
    posts = sorted((bench.content / "posts").glob("r-*.md"))
    slug = f"r-{luck.randrange(30)}"
    match luck.randrange(4):
        case 0 if posts:
            luck.choice(posts).unlink()
        case 1 if posts:
            post = luck.choice(posts)
            post.write_text(f"{post.read_text(encoding='utf-8')}\nMore {luck.random()}.\n")
        case _:
            bench.post(
                slug,
                f"2026-0{luck.randrange(1, 7)}-1{luck.randrange(10)}",
                text=f"Text {luck.random()}.\n\n## Heading\n\nMore.",
                title=f"Title {luck.randrange(9)}",
                tags=str(luck.sample(["a", "b", "c", "d"], luck.randrange(3))).replace("'", ""),
                status=luck.choice(["published", "published", "draft"]),
            )


@pytest.mark.size("ci")
@pytest.mark.parametrize("seed", [0, *in_ci(1, 2)])
def test_any_chain_of_edits_ends_as_if_built_at_once(
    bench: Workbench, tmp_path: Path, seed: int
) -> None:
    """After every step of a random history, the build over the last one equals one from nothing."""
    luck = random.Random(seed)  # noqa: S311 - no secret
    for step in range(5):
        for _ in range(luck.randrange(1, 9)):
            edit_at_random(bench, luck)

        assert differ(bench.build(), build_elsewhere(bench, tmp_path / str(step))) == []


@pytest.mark.parametrize("seed", [0, *in_ci(1, 2, 3)])
def test_a_watcher_builds_as_if_it_remembered_nothing(
    bench: Workbench, tmp_path: Path, seed: int
) -> None:
    """After every step of a random history, with the changed paths alone, it says the same."""
    luck = random.Random(seed)  # noqa: S311 - no secret
    memory, folder = BuildMemory(), bench.content.absolute()
    seen = take(folder)
    for step in range(6):
        report = build(bench.order(), memory)
        fresh = Workbench(bench.content, tmp_path / str(step))
        assert build(fresh.order()).findings == tuple(
            each for each in report.findings if "in the previous build" not in each.message
        )
        assert differ(bench.output / "current", fresh.output / "current") == []
        for _ in range(luck.randrange(1, 5)):
            edit_at_random(bench, luck)
        before, seen = seen, take(folder)
        memory.note(str(folder / path) for path in compare(before, seen))


class PlanMemory(BuildMemory):
    """A memory that counts the builds which kept the plan of the one before."""

    kept = 0

    def keep(self, build: SiteBuild) -> None:
        """Keep a finished build."""
        self.kept += isinstance(build, RevisedBuild)
        super().keep(build)

    def build(self, bench: Workbench, *names: str, now: str = NOW, strict: bool = False) -> int:
        """Build after edits of these posts; return how many builds have kept a plan so far."""
        self.note(str(bench.content.absolute() / "posts" / f"{name}.md") for name in names)
        build(bench.order(now, strict=strict), self)
        return self.kept


def test_a_plan_is_kept_for_texts_alone(bench: Workbench, tmp_path: Path) -> None:
    """After another title, and at the instant of a scheduled post, the build is a whole one."""
    memory, file = PlanMemory(), bench.write("images/a.txt", "One.")
    memory.build(bench)
    edit(bench, "first", "Words with", "Other words with")
    file.write_text("Two.")
    memory.note([str(file.absolute())])
    assert memory.build(bench, "first") == 1
    assert (bench.output / "current" / "site" / "images" / "a.txt").read_text() == "Two."
    edit(bench, "first", "title: ", "title: Not ")
    assert memory.build(bench, "first") == 1
    edit(bench, "second", "More words", "Fresh words")
    assert memory.build(bench, "second") == 2

    assert memory.build(bench, now="2026-06-02T00:00:00Z") == 2
    new = (bench.output / "current").resolve()
    other = Workbench(bench.content, tmp_path / "elsewhere").build("2026-06-02T00:00:00Z")
    assert differ(new, other) == []


def test_each_kind_of_text_edit_keeps_the_plan(bench: Workbench, tmp_path: Path) -> None:
    """A footnote, a link, a hidden post, a page; and nothing holds the first build any longer."""
    memory, folder = PlanMemory(), bench.content.absolute()
    first = folder / "posts" / "first.md"
    hidden = bench.post("unlisted", status="hidden")
    page = bench.write("pages/colophon.md", "---\ntitle: Colophon\n---\n\nOn type.\n")
    memory.build(bench)
    former = ref(memory.plan)
    edits = (
        (first, "A note.[^1]\n\n[^1]: Below."),
        (first, "See [the second](second.md)."),
        (hidden, "More words."),
        (page, "And on paper."),
    )
    for kept, (path, text) in enumerate(edits, start=1):
        path.write_text(f"{path.read_text('utf-8')}\n{text}\n", "utf-8")
        memory.note([str(path.absolute())])
        assert memory.build(bench) == kept, text
    new = (bench.output / "current").resolve()
    assert differ(new, build_elsewhere(bench, tmp_path)) == []
    gc.collect()
    assert former() is None


def set_clock_back(bench: Workbench, memory: BuildMemory) -> None:
    """Build once more at an instant at which a scheduled post is public."""
    build(bench.order("2026-06-02T00:00:00Z"), memory)


def publish_file_of_a_draft(bench: Workbench, _memory: BuildMemory) -> None:
    """Let a public post link to a file that only a draft has used."""
    edit(bench, "first", "Words with", "[A](/images/a.txt) and words with")


def damage_index(bench: Workbench, _memory: BuildMemory) -> None:
    """Append to the posts index that is served."""
    with (bench.output / "current" / "posts.json").open("ab") as file:
        file.write(b"\n")


def damage_page(bench: Workbench, memory: BuildMemory) -> None:
    """Write into a page of the folder that the next build begins with."""
    memory.check_sources()
    page = bench.output / ".spare" / "site" / "archive" / "index.html"
    page.unlink()
    page.write_text("Damaged.")


@pytest.mark.parametrize(
    "change", [set_clock_back, publish_file_of_a_draft, damage_index, damage_page]
)
def test_a_plan_is_not_kept_if_more_than_texts_differs(
    bench: Workbench, tmp_path: Path, change: Callable[[Workbench, BuildMemory], None]
) -> None:
    """The clock, what is published of a draft's files, and the files of the build before."""
    bench.write("images/a.txt", "One.")
    bench.post("hidden", status="draft", text="[A](/images/a.txt)")
    memory = PlanMemory()
    memory.build(bench)
    change(bench, memory)
    edit(bench, "first", "ords with", "ords, other ones, with")

    assert memory.build(bench, "first") == 0
    assert differ((bench.output / "current").resolve(), build_elsewhere(bench, tmp_path)) == []


def test_a_plan_is_not_kept_over_a_failure_or_another_build(
    bench: Workbench, tmp_path: Path
) -> None:
    """Nor after a step back: what is served is as if built at once."""
    memory = PlanMemory()
    memory.build(bench)
    bad = bench.post("bad", day="never")
    edit(bench, "first", "Words with", "Other words with")
    with pytest.raises(ContentError):
        memory.build(bench, "first", "bad", strict=True)
    bad.unlink()
    assert memory.build(bench, "bad") == 0

    edit(bench, "second", "More words", "Fresh words")
    bench.build("2026-05-02T00:00:00Z")  # by another process, as far as the memory knows
    assert memory.build(bench, "second", now="2026-05-03T00:00:00Z") == 0

    (bench.output / "current").unlink()
    (bench.output / "current").symlink_to((bench.output / "previous").readlink())
    edit(bench, "first", "Other words", "Still other words")
    assert memory.build(bench, "first", now="2026-05-04T00:00:00Z") == 0
    new = (bench.output / "current").resolve()
    other = Workbench(bench.content, tmp_path / "elsewhere").build("2026-05-04T00:00:00Z")
    assert differ(new, other) == []


def test_a_watcher_finds_the_page_of_a_source_that_an_edit_links_to(
    empty_bench: Workbench,
) -> None:
    """The Markdown of an edited post links to the page, not to the file."""
    memory = BuildMemory()
    empty_bench.post("target")
    post = empty_bench.post("source")
    build(empty_bench.order(), memory)
    post.write_text(f"{post.read_text(encoding='utf-8')}\nSee [it](target.md).\n")
    memory.note([str(post.absolute())])

    build(empty_bench.order(), memory)

    twin = empty_bench.output / "current" / "site" / "journal" / "source" / "index.md"
    assert "See [it](/journal/target/)." in twin.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("template", "before", "after"),
    [
        ("article.html", "{{ article.title }}</h1>", "<b>{{ article.title }}</b></h1>"),
        ("base.html", "<body>", "<body>{{ articles|length }}"),
        ("base.html", "<body>", "<body>{{ articles[0].content }}"),
        ("base.html", "<body>", "<body>{% for tag, found in tags %}{{ tag }}{% endfor %}"),
        ("base.html", "<body>", "<body>{{ generated_content|length }}"),
        ("base.html", "<body>", "<body>{% include 'nowhere.html' ignore missing %}"),
    ],
)
def test_templates_may_show_anything(
    bench: Workbench, tmp_path: Path, template: str, before: str, after: str
) -> None:
    """Text of other posts that a theme shows is as fresh after an edit as in a new build."""
    theme = tmp_path / "theme"
    shutil.copytree(THEME, theme)
    path = theme / "templates" / template
    path.write_text(path.read_text(encoding="utf-8").replace(before, after))
    warm, cold = tmp_path / "warm", tmp_path / "cold"
    run_journal(bench.content, warm, theme)
    bench.post("newest", "2026-04-01", tags="[fresh]")
    edit(bench, "second", "More words", "Fresh words")

    run_journal(bench.content, warm, theme)
    run_journal(bench.content, cold, theme)

    assert compare(take(warm), take(cold)) == []


def test_a_changed_theme_changes_every_page(bench: Workbench, tmp_path: Path) -> None:
    """A template's new words are on pages whose posts are as they were."""
    theme = tmp_path / "theme"
    shutil.copytree(THEME, theme)
    run_journal(bench.content, tmp_path / "output", theme)
    path = theme / "templates" / "base.html"
    path.write_text(path.read_text(encoding="utf-8").replace("<body>", "<body>New words"))

    run_journal(bench.content, tmp_path / "output", theme)

    pages = [path.read_text(encoding="utf-8") for path in (tmp_path / "output").rglob("*.html")]
    assert all("New words" in page for page in pages)


def test_old_static_files_stay_for_one_change(bench: Workbench, tmp_path: Path) -> None:
    """Pages open in a browser still find their style sheet; after the next change it goes."""
    theme, output = tmp_path / "theme", tmp_path / "output"
    shutil.copytree(THEME, theme)
    sheets = []
    for colour in ("#111", "#222", "#333"):
        (theme / "static" / "style.css").write_text(f"body {{ color: {colour} }}\n")
        for _ in range(2):  # An unchanged build between two changes takes nothing away.
            run_journal(bench.content, output, theme)
        asked = re.findall(r"/(theme/style\.\w+\.css)", (output / "index.html").read_text())
        assert colour in (output / asked[0]).read_text(encoding="utf-8")
        sheets.append(
            {path.read_text(encoding="utf-8")[14:18] for path in output.glob("theme/style.*.css")}
        )

    assert sheets == [{"#111"}, {"#111", "#222"}, {"#222", "#333"}]


def test_a_setting_makes_its_pages_anew(bench: Workbench, tmp_path: Path) -> None:
    """Another name of the site is on every page that shows it, in the next build."""
    run_journal(bench.content, tmp_path / "output")

    run_journal(bench.content, tmp_path / "output", SITENAME="Renamed")

    for name in ("index.html", "about/index.html", "index.md", "feed.xml", "llms.txt"):
        text = (tmp_path / "output" / name).read_text(encoding="utf-8")
        assert ("Renamed" in text, "Fore-edge" in text) == (True, name == "feed.xml")


def truncate(path: Path) -> None:
    """Cut a file in half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scramble(path: Path) -> None:
    """Replace every byte of a file but its first hundred."""
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(255 - byte for byte in data[100:]))


def flip(path: Path) -> None:
    """Turn some bytes in the middle and at the end of a file."""
    data = bytearray(path.read_bytes())
    for offset in range(len(data) // 2, len(data), 97):
        data[offset] ^= 0xFF
    path.write_bytes(bytes(data))


def empty(path: Path) -> None:
    """Leave nothing of a file."""
    path.write_bytes(b"")


def replace_by_folder(path: Path) -> None:
    """Put a folder where the file was."""
    path.unlink()
    path.mkdir()


DAMAGES = [truncate, scramble, flip, empty, replace_by_folder]


@pytest.mark.parametrize("damage", [*DAMAGES[:1], *in_ci(*DAMAGES[1:])])
def test_a_damaged_cache_is_made_again(
    bench: Workbench, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """With any damage of the cache's file, the site is right, and no message is printed."""
    bench.build()
    damage(bench.output / ".cache" / "cache.sqlite")
    shutil.rmtree((bench.output / "current").resolve())

    done = run_build(bench)

    assert (done.returncode, done.stderr) == (0, "")
    build = (bench.output / "current").resolve()
    assert differ(build, build_elsewhere(bench, tmp_path)) == []


@pytest.mark.parametrize("damage", [truncate, *in_ci(scramble, flip, empty)])
@pytest.mark.parametrize(
    "name", ["manifest.sqlite", "posts.json", "site/journal/third/index.html", "site/llms.txt"]
)
def test_a_damaged_old_build_is_not_carried_on(
    bench: Workbench, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    """A file that is not as it was written is made again, not linked."""
    old = bench.build()
    damage(old / name)

    new = bench.build("2026-05-02T00:00:00Z")

    other = Workbench(bench.content, tmp_path / "elsewhere").build("2026-05-02T00:00:00Z")
    assert differ(new, other) == []


@pytest.mark.size("ci")
def test_a_link_or_file_in_place_of_the_spare_is_removed(bench: Workbench, tmp_path: Path) -> None:
    """The target of a link is neither changed nor published."""
    bench.build()
    spare, mine = bench.output / ".spare", tmp_path / "mine"
    mine.mkdir()
    (mine / "keep").write_text("mine")

    for lay in (lambda: spare.symlink_to(mine), lambda: spare.write_text("mine")):
        shutil.rmtree(spare)
        lay()
        edit(bench, "third", "\n\n", "\n\nMore. ")
        new = bench.build()
        assert (new.parent, new.is_symlink(), spare.is_symlink()) == (bench.output, False, False)
    assert [path.name for path in mine.iterdir()] == ["keep"]


@pytest.mark.size("ci")
@pytest.mark.parametrize("statement", ["UPDATE head SET format = 2", "DROP TABLE head"])
def test_after_a_ledger_that_cannot_be_read_nothing_is_left(
    bench: Workbench, tmp_path: Path, statement: str
) -> None:
    """Withdrawn files go, also if the spare shares the ledger of an earlier version."""
    old = bench.build()
    ledger = old / MEMORY
    with closing(sqlite3.connect(ledger)) as opened, opened:
        opened.execute(statement)
    assert (bench.output / ".spare" / MEMORY).samefile(ledger)
    (bench.content / "posts" / "third.md").unlink()

    new = bench.build("2026-05-02T00:00:00Z")

    assert not (new / "site" / "journal" / "third").exists()
    other = Workbench(bench.content, tmp_path / "elsewhere").build("2026-05-02T00:00:00Z")
    assert differ(new, other) == []


@pytest.mark.size("ci")
def test_a_damaged_build_is_fixed_under_its_name(bench: Workbench, tmp_path: Path) -> None:
    """Building the same again repairs the build that is served, file by file."""
    build = bench.build()
    (build / "site" / "index.html").unlink()
    truncate(build / "site" / "feed.xml")

    again = bench.build(NOW)

    assert again == build
    assert differ(again, build_elsewhere(bench, tmp_path)) == []


def test_variables_set_by_a_template_are_no_dependency() -> None:
    """A page does not hang on the list of all tags because its template calls its own ones so."""
    seen: dict[str, None] = {}
    environment = Environment(autoescape=True)
    environment.context_class = track_lookups(seen)
    page = environment.from_string(
        "{% set tags = article.tags %}{% block main %}{{ tags }}, {{ name }}{% endblock %}"
    )

    assert page.render(article={"tags": "own"}, tags="all", name="A") == "own, A"
    assert set(seen) == {"article", "name"}
