"""A file with a fault never holds up the others, and readers keep what they had of it."""

import os
import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from PIL import Image

from edge_api.schema.index import HELD_FILE
from site_build.build.memory import BuildMemory
from site_build.content.kept import KEPT_FOLDER, find_head, find_slug, is_withdrawn
from site_build.errors import ContentError, Held
from site_build.markup.convert import Dialect
from site_build.preview.session import PreviewSession
from site_build.progress import Request
from site_build.releases.release import build
from site_build.releases.watcher import ReleaseEvent, Watcher
from tests.site_build.workbench import NOW, SITE_URL, Workbench, run, run_build
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

NOON = datetime.fromisoformat(NOW).astimezone(UTC)
HEAD = "---\ntitle: One\nslug: one\ndate: 2026-03-01\n---\n\n"
DEEP = "> " * 300 + "Words."


def write(path: Path, data: bytes | str) -> None:
    """Replace a file as editors do, whatever was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.is_file():
        path.unlink()
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def link(target: str) -> Callable[[Path], None]:
    """Return what puts a symbolic link in place of a file."""

    def put(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    return put


def make_pipe(path: Path) -> None:
    """Put a pipe in place of a file."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def show(name: str, data: bytes) -> Callable[[Path], None]:
    """Return what makes a post show a picture that cannot be shown."""

    def put(path: Path) -> None:
        for each in (name, f"more-{name}"):
            write(path.parents[1] / "images" / each, data)
        head = HEAD.replace("slug: one", f"slug: {path.stem}")
        write(path, f"{head}![A plan](../images/{name}) ![A plan](../images/more-{name})\n")

    return put


def head(*lines: str) -> str:
    """Return a post with such a head."""
    return "\n".join(("---", *lines, "---", "", "New words."))


GOOD = ("title: One", "slug: one", "date: 2026-03-01")
FAULTS: dict[str, str | bytes | Callable[[Path], None]] = {
    "empty": "",
    "no head": "New words.",
    "never closed": "---\ntitle: One\nslug: one\n\nNew words.",
    "no title": head("slug: one", "date: 2026-03-01"),
    "two names of a key": head(*GOOD, "modified: 2026-03-02", "updated: 2026-03-03"),
    "no date": head("title: One", "slug: one"),
    "empty title": head("title:", "slug: one", "date: 2026-03-01"),
    "second colon": head('title: "One": two', "slug: one", "date: 2026-03-01"),
    "open quote": head('title: "One', "slug: one", "date: 2026-03-01"),
    "open list": head(*GOOD, "tags: [a, b"),
    "tab": head(*GOOD, "series:", "\t- a"),
    "anchor": head("title: &one One", "slug: one", "date: 2026-03-01"),
    "yaml tag": head("title: !!python/name One", "slug: one", "date: 2026-03-01"),
    "no mapping": head("- one", "- two"),
    "key twice": head(*GOOD, "title: Two"),
    "no day": head("title: One", "slug: one", "date: 2026-02-30"),
    "no such status": head(*GOOD, "status: ready"),
    "bad alias": head(*GOOD, "aliases: ['a b']"),
    "bad language": head(*GOOD, "lang: English please"),
    "updated before": head(*GOOD, "updated: 2025-01-01"),
    "bad slug": head("title: One", "slug: 'o n e/'", "date: 2026-03-01"),
    "nul": f"{HEAD}New\0 words.",
    "control": f"{HEAD}New\x07 words.",
    "latin-1": f"{HEAD}New w\xf6rds.".encode("latin-1"),
    "utf-16": f"{HEAD}New words.".encode("utf-16"),
    "binary": bytes(range(256)) * 9,
    "too large": f"{HEAD}{'New words. ' * 200_000}",
    "too deep": f"{HEAD}{DEEP}",
    "same slug": head("title: One", "slug: good-7", "date: 2026-03-01"),
    "alias of a page": head(*GOOD, "aliases: [good-7]"),
    "alias of the site": head(*GOOD, "aliases: [/tags/]"),
    "alias of another": head(*GOOD, "aliases: [/old-8/]"),
    "link out": link("/etc/hostname"),
    "broken link": link("nowhere.md"),
    "pipe": make_pipe,
    "linked folder": link("."),
    "below a file": head(*GOOD, "aliases: [/feed.xml/x/]"),
    "heic": show("new.heic", b"ftypheic"),
    "damaged picture": show("new.png", b"\x89PNG no more"),
    "empty picture": show("new.jpg", b""),
    "huge picture": show("new.webp", b"RIFF" + bytes(99)),
    "reserved": head("title: One", "slug: page", "date: 2026-03-01"),
}
"""Faults of a post, each as it is written; a function is given its path."""


def _is_lenient(name: str) -> bool:
    """Return whether a preview shows a post that has this fault."""
    return "picture" in name or name == "heic"


def inflict(bench: Workbench, number: int, stem: str) -> None:
    """Give a post, whose name and slug begin with `stem`, the fault of a number."""
    fault = [*FAULTS.values()][number]
    path = bench.content / "posts" / f"{stem}-{number}.md"
    if callable(fault):
        fault(path)
    elif isinstance(fault, bytes):
        write(path, fault.replace(b"slug: one", f"slug: {stem}-{number}".encode()))
    else:
        write(path, fault.replace("slug: one", f"slug: {stem}-{number}"))


@pytest.fixture
def good_bench(empty_bench: Workbench) -> Workbench:
    """Return a workbench with twenty posts."""
    for number in range(20):
        empty_bench.post(f"good-{number}", aliases=f"[/old-{number}/]")
    return empty_bench


class Reader:
    """Sees a site of `bench` as one of the programs shows it."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.held: tuple[Held, ...] = ()

    def update(self) -> None:
        """Let the program take in what was changed."""
        order = self.bench.order()
        self.held = build(order).held

    def read(self, slug: str) -> str:
        """Return what is public of a post; nothing, where there is no such page."""
        page = self.bench.output / "current" / "site" / "journal" / slug / "index.html"
        return page.read_text("utf-8") if page.exists() else ""


class WatchingReader(Reader):
    """Sees what a watcher serves."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.news: list[ReleaseEvent] = []
        self._watcher = Watcher(bench.order(), self.news.append)

    def update(self) -> None:
        """Let the watcher look, and twice more for what comes of it."""
        self._watcher.note_changes(None)
        for _ in range(3):
            self._watcher.act(NOON)
        assert self._watcher.failure == ""
        served = next(each for each in reversed(self.news) if each.kind == "served")
        assert served.report
        self.held = served.report.held


class PreviewingReader(Reader):
    """Sees what a preview shows to the author, without what is marked as a draft."""

    _stage: PreviewSession | None = None

    def update(self) -> None:
        """Let the preview look at every file."""
        state, latest = self.bench.output / ".preview", datetime.max.replace(tzinfo=UTC)
        if self._stage is None:
            places = self.bench.content, state / "site", state, state, state / "cache.sqlite"
            request = Request(*places, latest, 1)
            self._stage = PreviewSession(request, Dialect(SITE_URL), [])
        self._stage.refresh()
        assert self._stage.state.site_problem is None

    def read(self, slug: str) -> str:
        """Return the page, unless the preview knows its post as a draft."""
        assert self._stage
        if any(each.slug == slug and each.draft for each in self._stage.state.documents):
            return ""
        data = self._stage.show(f"journal/{slug}/index.html")[0]
        return data.decode() if data else ""


READERS = [Reader, WatchingReader, PreviewingReader]


@pytest.mark.parametrize("kind", READERS)
def test_twenty_good_posts_are_shown_beside_every_fault(
    good_bench: Workbench, kind: type[Reader]
) -> None:
    """New files with faults are left out; of changed ones readers keep what they had.

    It holds over ten builds, in a new process, and without the cache.
    """
    for number in range(len(FAULTS)):
        good_bench.post(f"changed-{number}", text="Former.")
    reader = kind(good_bench)
    reader.update()
    for number in range(len(FAULTS)):
        inflict(good_bench, number, "changed")
        inflict(good_bench, number, "new")
    good_bench.post("good-0", text="Edited words.")

    reader.update()

    def look() -> None:
        assert [n for n in range(20) if "ords." not in reader.read(f"good-{n}")] == []
        assert "Edited" in reader.read("good-0")
        found = {name: reader.read(f"changed-{n}") for n, name in enumerate(FAULTS)}
        assert [name for name, page in found.items() if "Former." not in page] == lenient
        found = {name: reader.read(f"new-{n}") for n, name in enumerate(FAULTS)}
        assert [name for name, page in found.items() if page] == lenient
        assert {each.path for each in reader.held if each.is_shown} == changed
        assert {each.path for each in reader.held if not each.is_shown} == new

    lenient = [*filter(_is_lenient, FAULTS)] if kind is PreviewingReader else []
    changed, new = set(), set()
    if kind is not PreviewingReader:
        changed = {f"posts/changed-{number}.md" for number in range(len(FAULTS))}
        new = {f"posts/new-{number}.md" for number in range(len(FAULTS))}
    look()
    if kind is Reader:
        for number in range(10):
            shutil.rmtree(good_bench.output / ".cache")
            good_bench.post("good-1", text=f"Words. {number} words.")
            reader.update()
        look()


def list_held(bench: Workbench) -> list[tuple[str, bool]]:
    """Build, and return the files that are held back, each with whether it is shown as it was."""
    return [(each.path, each.is_shown) for each in build(bench.order()).held]


def read_page(bench: Workbench, slug: str) -> str:
    """Return the public page of a post, or nothing."""
    return Reader(bench).read(slug)


SAYINGS = [
    "status: draft",
    "Status: draft",
    "STATUS : 'Draft'",
    "status: private",
    "status: hidden",
    "status: skip",
    "status: drafts",
    "status\uff1adraft",
    "- status: draft",
    "status: !!str draft",
    "status: &one draft",
    "? status\n: draft",
    "unlisted: true",
    "publish: false",
    "status draft",
    "stauts: draft",
    "status:\n  draft",
    "draft: true",
    "Draft: yes",
    "draft:",
    "draft = true",
    '"draft": true,',
    "hidden: 1",
    "private: true",
    "published: false",
    "Published: no",
    "published = false",
    'status = "draft"',
]


@pytest.mark.parametrize("saying", SAYINGS)
def test_a_head_that_withdraws_a_post_is_understood_amid_faults(saying: str) -> None:
    """With any other fault; what a text says below its head withdraws nothing."""
    others = "title: [A\nslug: one\n"
    for fences in (("---", "---"), ("+++", "+++"), ("---", "--"), ("---", ""), ("", "---")):
        opening, closing = fences
        for middle in (f"{others}{saying}", f"{saying}\n{others}"):
            raw = f"{opening}\n{middle}\n{closing}\n\nWords.\n"
            for data in (raw.encode(), raw.encode("utf-16"), b"\xff" + raw.encode()):
                head = find_head(data.replace(b"\xff---", b"---\n\xff:"))
                assert is_withdrawn(head), raw
    assert not is_withdrawn(find_head(f"---\n{others}---\n\nWords.\n\n{saying}\n".encode()))
    assert not is_withdrawn(find_head(f"{others}\n{saying}\n".encode()))


def test_a_head_in_braces_is_read_key_by_key() -> None:
    """As Hugo takes it, between fences or not."""
    for head in (
        '{{"title": "One", "draft": {}}}\n\nWords.',
        "---\n{{title: One, draft: {}}}\n---\n",
    ):
        assert is_withdrawn(find_head(head.format("true").encode()))
        assert not is_withdrawn(find_head(head.format("false").encode()))


@pytest.mark.parametrize(
    "line",
    [
        "status: published",
        "draft: false",
        "Draft = no",
        "published: true",
        "hidden: off",
        "title: Draft",
        "tags: [draft, private]",
        "series: Hidden",
        "# status: draft",
        "tags: ink, draft",
        "tags: draft, hidden: no",
        "summary: >\n  Nothing\n  hidden",
    ],
)
def test_other_heads_withdraw_nothing(line: str) -> None:
    """A word that means it elsewhere, or its contrary."""
    assert not is_withdrawn(find_head(f"---\ntitle: [A\n{line}\n---\n\nWords.\n".encode()))


def test_a_head_of_blanks_takes_no_time() -> None:
    """Even with much more than a line: nothing is tried again and again."""
    for blanks in (" " * 60_000, "\n" * 60_000, "status " * 9_000):
        for head in (f"status{blanks}x", f"---\npublished{blanks}x", f'---\nslug"{blanks}'):
            assert not is_withdrawn(find_head(head.encode()))
            assert not find_slug(head.encode())


@pytest.mark.parametrize(
    ("lines", "is_down"),
    [
        (("date: 2020-02-30", "tags: ink, draft"), False),
        (("date: 2020-02-30", "description: |\n  hidden: a list"), False),
        (("date: 2020-02-30", "status: skip"), True),
        (("date: 2999-01-01", "lang: English please"), True),
        (("date: 2020-01-01", "lang: English please"), False),
    ],
)
def test_a_head_of_which_one_value_is_wrong_is_read(
    good_bench: Workbench, lines: tuple[str, ...], *, is_down: bool
) -> None:
    """Its state and its date count; it is withdrawn, or stays as it was and is named."""
    good_bench.post("one", text="Former.")
    good_bench.build()
    good_bench.write("posts/one.md", head("title: One", "slug: one", *lines))

    (held,) = build(good_bench.order()).held or [None]
    assert ("Former." in read_page(good_bench, "one")) is not is_down
    assert (held is None) is (is_down and "skip" in lines[1])


@pytest.mark.parametrize("saying", ["Status: draft", "draft: true", *in_ci("published: false")])
def test_a_withdrawn_post_is_down_whatever_its_head(good_bench: Workbench, saying: str) -> None:
    """It comes back neither with the next build nor without the cache, and stops no build."""
    post = good_bench.post("one", text="Former.")
    good_bench.build()
    post.write_text(f"---\ntitle: [One\nslug: one\n{saying}\n---\n\nNew.\n")

    assert list_held(good_bench) == []
    assert not read_page(good_bench, "one")
    post.write_text("---\ntitle: [One\nslug: one\n---\n\nNew.\n")
    shutil.rmtree(good_bench.output / ".cache")
    assert list_held(good_bench) == [("posts/one.md", False)]
    assert not read_page(good_bench, "one")


def test_a_post_moved_to_the_future_is_down_though_its_text_is_faulty(
    good_bench: Workbench,
) -> None:
    """Its head can be read, and says that nobody may read it yet."""
    good_bench.post("one", text="Former.")
    good_bench.build()
    good_bench.post("one", "2026-09-01", DEEP)

    assert list_held(good_bench) == [("posts/one.md", False)]
    assert not read_page(good_bench, "one")


def test_a_folder_that_is_replaced_by_a_link_keeps_its_posts(good_bench: Workbench) -> None:
    """As one that cannot be read does: nobody has deleted them."""
    good_bench.write("posts/more/one.md", f"{HEAD}Former.\n")
    good_bench.build()
    shutil.rmtree(good_bench.content / "posts" / "more")
    (good_bench.content / "posts" / "more").symlink_to(good_bench.content / "posts")

    assert list_held(good_bench) == [("posts/more", True)]
    assert "Former." in read_page(good_bench, "one")


def test_of_two_files_with_one_slug_the_one_that_is_shown_keeps_it(good_bench: Workbench) -> None:
    """Among two new ones it is the first by path; a draft takes no address from a post."""
    good_bench.write("posts/z.md", f"{HEAD}Former.\n")
    good_bench.build()
    good_bench.write("posts/a.md", f"{HEAD}New.\n")
    for name in ("b", "c"):
        good_bench.write(f"posts/{name}.md", HEAD.replace("one", "two") + f"{name}!\n")
    good_bench.write("posts/0.md", HEAD.replace("---\n\n", "status: draft\n---\n\n"))

    for _ in range(2):
        assert list_held(good_bench) == [("posts/a.md", False), ("posts/c.md", False)]
        assert "Former." in read_page(good_bench, "one")
        assert "b!" in read_page(good_bench, "two")
    good_bench.write("posts/z.md", f"{HEAD}Edited.\n")
    list_held(good_bench)
    assert "Edited." in read_page(good_bench, "one")


def test_an_old_alias_makes_way_for_a_new_page(good_bench: Workbench) -> None:
    """The post that has it is shown as before, without it, and named until it is taken out."""
    good_bench.build()
    good_bench.write("pages/old.md", "---\ntitle: Old\nslug: old-3\n---\n\nNew page.\n")
    good_bench.post("old", text="Words.", aliases="[/old-3/]")

    assert list_held(good_bench) == [("posts/good-3.md", True), ("posts/old.md", False)]
    page = good_bench.output / "current" / "site" / "old-3" / "index.html"
    assert "New page." in page.read_text("utf-8")


@pytest.mark.parametrize("suffix", ["png", "avif"])
def test_a_picture_that_is_damaged_stays_as_it_was_published(
    good_bench: Workbench, suffix: str
) -> None:
    """Build after build the same bytes; a deleted one is gone, and a draft's fault is no error."""
    picture = good_bench.content / "images" / f"plan.{suffix}"
    picture.parent.mkdir()
    Image.new("RGB", (900, 600), "red").save(picture)
    good_bench.post("one", text=f"![A plan](../images/plan.{suffix})")
    public = good_bench.build() / "site" / "images" / picture.name
    before, page = public.read_bytes(), read_page(good_bench, "one")
    write(picture, before[: len(before) // 2])
    write(good_bench.content / "images" / "heap.heic", b"ftypheic")
    good_bench.post("draft", text="![A heap](../images/heap.heic)", status="draft")

    for _ in range(3):
        assert list_held(good_bench) == [(f"images/{picture.name}", True)]
        public = (good_bench.output / "current").resolve() / "site" / "images" / picture.name
        assert public.read_bytes() == before
        assert page.count("<source") == read_page(good_bench, "one").count("<source")
        shutil.rmtree(good_bench.output / ".cache")
    picture.unlink()
    assert list_held(good_bench) == []
    assert not (good_bench.output / "current" / "site" / "images" / picture.name).exists()
    assert "plan" in read_page(good_bench, "one")


def test_a_file_that_no_disk_or_site_can_take_is_left_out(good_bench: Workbench) -> None:
    """One whose name is too long, and a page at the address of a file."""
    for length in (220, 221):
        good_bench.write(
            f"images/{'x' * (length - 4)}.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"
        )
    settings = "PAGE_URL = PAGE_SAVE_AS = '{slug}.html'\n"
    (good_bench.content.parent / "pelicanconf.py").write_text(
        f"from site_build.default_settings import *\n{settings}"
    )
    good_bench.write("pages/404.md", "---\ntitle: Gone\nslug: '404'\n---\n\nWords.\n")
    done = run(
        sys.executable,
        "-m",
        "site_build",
        "build",
        "--content",
        good_bench.content,
        "--output",
        good_bench.output,
        "--settings",
        good_bench.content.parent / "pelicanconf.py",
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"images/{'x' * 217}.svg:1:1  error  the file's name has 221 bytes" in done.stdout
    assert (
        "pages/404.md:3:7  error  the slug gives the address /404.html, where the site"
        in done.stdout
    )
    site = good_bench.output / "current" / "site"
    assert (site / "images" / f"{'x' * 216}.svg").exists()
    assert (site / "journal" / "good-7" / "index.html").exists()


def test_pictures_of_a_post_that_is_held_back_wait_with_it(good_bench: Workbench) -> None:
    """A draft whose head breaks does not give its pictures away."""
    (good_bench.content / "images").mkdir()
    Image.new("RGB", (9, 6)).save(good_bench.content / "images" / "secret.png")
    good_bench.write(
        "posts/one.md", "---\ntitle: [A\nslug: one\n---\n\n![S](../images/secret.png)\n"
    )

    assert list_held(good_bench) == [("posts/one.md", False)]
    assert not (good_bench.output / "current" / "site" / "images" / "secret.png").exists()


def test_the_build_says_what_it_is_without(good_bench: Workbench) -> None:
    """With status 3 and a last line that names the files; --strict builds nothing."""
    good_bench.post("one", text="Former.")
    good_bench.build()
    good_bench.write("posts/one.md", "Nothing.")
    good_bench.write("posts/two.md", "Nothing.")

    done = run_build(good_bench)
    assert done.returncode == 3
    assert "posts/one.md:1:1  error" in done.stdout
    assert done.stdout.splitlines()[-1] == (
        "2 files have errors: posts/one.md, posts/two.md; 1 shown in the former version, 1 left out"
    )
    held = orjson.loads((good_bench.output / "current" / HELD_FILE).read_bytes())
    assert [each.partition(":")[0] for each in held] == ["posts/one.md", "posts/two.md"]
    assert held[0].endswith("; readers see the former version until it is fixed")
    before = (good_bench.output / "current").resolve()
    assert run_build(good_bench, "--strict").returncode == 1
    with pytest.raises(ContentError):
        build(replace(good_bench.order(), strict=True))
    assert (good_bench.output / "current").resolve() == before


def test_the_doctor_names_files_that_are_held_back(good_bench: Workbench) -> None:
    """With the first fault and its fix, and no more once they are fixed."""
    good_bench.post("one", text="Former.")
    good_bench.build()
    database = f"sqlite:///{good_bench.output}/edge.db"
    settings = {"BUILD_DIR": str(good_bench.output), "DATABASE_URL": database}
    run(sys.executable, "-m", "edge_api", "migrate", environment=settings)
    for line, is_named in (("slug: a b", True), ("slug: one", False)):
        head = f"---\ntitle: One\ndate: 2026-03-01\n{line}\n---\n\n"
        good_bench.write("posts/one.md", f"{head}New.\n")
        build(good_bench.order())
        doctor = run(sys.executable, "-m", "edge_api", "doctor", environment=settings)
        said = " ".join(doctor.stdout.split())
        assert ("posts/one.md:4: `slug` is 'a b'; use letters" in said) is is_named
        assert ("readers see the former version until it is fixed" in said) is is_named
        assert ("- 1 file of the content has errors - " in said) is is_named


def test_sources_are_kept_apart_and_only_as_long_as_a_build_needs_them(
    good_bench: Workbench,
) -> None:
    """Each once, in no folder that is served; drafts are not among them."""
    good_bench.post("draft", status="draft")
    for day in range(2, 6):
        good_bench.post("one", text=f"Words of {day}.")
        good_bench.build(f"2026-05-0{day}T00:00:00Z")

    kept = [path.read_text("utf-8") for path in (good_bench.output / KEPT_FOLDER).iterdir()]
    assert len(kept) == 22
    public = {path.read_bytes() for path in good_bench.output.rglob("site/**/*") if path.is_file()}
    assert public.isdisjoint(text.encode() for text in kept)
    assert sorted(e[-3:-2] for e in kept if "Words of" in e) == ["4", "5"]
    assert not any("draft" in text for text in kept)


@dataclass
class Model:
    """A model of what should be public, by the rules alone."""

    shown: dict[str, str] = field(default_factory=dict)
    """The words that readers see, by slug."""
    good: dict[str, tuple[datetime, str]] = field(default_factory=dict)
    """The instant at which a file appears and its words, by slug, as long as the file is good."""
    faulty: set[str] = field(default_factory=set)

    def update(self, now: datetime) -> None:
        """Do as a build at this instant should."""
        public = {slug: words for slug, (at, words) in self.good.items() if at <= now}
        former = {slug: words for slug, words in self.shown.items() if slug in self.faulty}
        self.shown = {**former, **public}


def edit(chance: random.Random, bench: Workbench, model: Model, now: datetime, number: int) -> None:
    """Change one file at random, and tell the model."""
    slug, words = f"p-{chance.randrange(12)}", f"Words {number} end."
    path = bench.content / "posts" / f"{slug}.md"
    model.faulty.discard(slug)
    model.good.pop(slug, None)
    match chance.choice(["good", "good", "faulty", "faulty", "withdraw", "delete", "later"]):
        case "good":
            model.good[slug] = datetime(2026, 3, 1, tzinfo=UTC), words
            bench.post(slug, text=words)
        case "later":
            model.good[slug] = now + timedelta(hours=9), words
            bench.post(slug, f"{now + timedelta(hours=9):%Y-%m-%dT%H:%M:%SZ}", words)
        case "faulty":
            model.faulty.add(slug)
            breaks = ["title: [A", "date: 2026-02-30", "tags: [a", "status: ready", "title: \0"]
            lines = f"slug: {slug}\n{chance.choice(breaks)}"
            end = chance.choice(["---\n", "---\n", ""])
            write(path, f"---\n{lines}\n{end}\n{words}\n")
        case "withdraw":
            fault = chance.choice(["title: [A", "tags: [a", "date: never", "title: A"])
            write(path, f"---\nslug: {slug}\n{fault}\n{chance.choice(SAYINGS)}\n---\n\n{words}\n")
        case "delete":
            path.unlink(missing_ok=True)


@pytest.mark.size("ci")
@pytest.mark.parametrize("seed", range(2))
def test_nothing_withdrawn_comes_back_in_two_hundred_edits(
    empty_bench: Workbench, seed: int
) -> None:
    """A watcher, builds by hand between, a cache that vanishes now and then, and a clock."""
    chance, model, now = random.Random(seed), Model(), NOON  # noqa: S311 - only varied
    empty_bench.post("always", text="Always.")
    watcher = Watcher(empty_bench.order(), lambda _: None)
    for number in range(100):
        for _ in range(chance.choice([1, 1, 2])):
            edit(chance, empty_bench, model, now, number)
        now += timedelta(hours=chance.choice([0, 0, 1, 5]))
        model.update(now)
        if chance.random() < 0.1:
            shutil.rmtree(empty_bench.output / ".cache", ignore_errors=True)
        if chance.random() < 0.2:
            build(replace(empty_bench.order(), now=now), BuildMemory())
        watcher.note_changes(None)
        watcher.act(now)
        watcher.act(now)

        found = {slug: read_page(empty_bench, slug) for slug in (f"p-{n}" for n in range(12))}
        shown = {slug for slug, page in found.items() if page}
        assert shown == model.shown.keys(), number
        assert all(words in found[slug] for slug, words in model.shown.items()), number
        assert "Always." in read_page(empty_bench, "always")
