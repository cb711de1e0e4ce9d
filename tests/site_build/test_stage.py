"""Pages that the preview makes anew: a changed text at once, and the consequences soon after."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from site_build.markup.convert import Dialect
from site_build.pelican_plugin.plugin import list_sources
from site_build.preview.session import PreviewSession
from site_build.progress import Request
from tests.site_build.workbench import Workbench

pytestmark = pytest.mark.size("test")

FIRST = "journal/first-light/index.html"


@pytest.fixture
def stage(bench: Workbench) -> PreviewSession:
    """Return the stage of the small journal."""
    return open_stage(bench, list_sources(bench.content)[1:])


def open_stage(bench: Workbench, watched: Sequence[Path]) -> PreviewSession:
    """Return a stage of the small journal that is also made of what is watched."""
    state = bench.output
    cache, now = bench.output / "cache.sqlite", datetime.max.replace(tzinfo=UTC)
    request = Request(bench.content, state / "site", state, state, cache, now, 1)
    return PreviewSession(request, Dialect("http://127.0.0.1:8001"), watched)


def append(bench: Workbench, words: str) -> Path:
    """Append a paragraph to the first post, and return its file."""
    source = bench.content / "posts" / "first.md"
    source.write_text(f"{source.read_text()}\n{words}\n")
    return source


def show(stage: PreviewSession, path: str = FIRST) -> str:
    """Return a file as the stage shows it."""
    data = stage.show(path)[0]
    assert data is not None
    return data.decode()


def has_news(stage: PreviewSession, act: Callable[..., None], *values: object) -> bool:
    """Have the stage do something, and return whether browsers should hear of it."""
    before = stage.state
    act(*values)
    return stage.state != before


def test_a_changed_text_is_in_every_form_of_the_post(
    bench: Workbench, stage: PreviewSession
) -> None:
    """Page, twin and feed say it as soon as the one file is read again."""
    source = append(bench, "Quokkas.")

    assert has_news(stage, stage.refresh, {str(source)})
    for path in (FIRST, "journal/first-light/index.md", "feed.xml"):
        assert "Quokkas." in show(stage, path)


def test_an_incremental_preview_equals_a_fresh_one(bench: Workbench, stage: PreviewSession) -> None:
    """After a text alone has changed, no file differs from one that is made from nothing."""
    source = append(bench, "Quokkas.")
    stage.refresh({str(source)})
    paths = [FIRST, "index.html", "journal/index.html", "archive/index.html", "sitemap.xml"]
    at_once = {path: show(stage, path) for path in paths}
    version = stage.state.version

    assert not has_news(stage, stage.do_deferred_work)
    assert stage.state.version == version
    assert {path: show(stage, path) for path in paths} == at_once


def test_a_changed_head_is_shown_everywhere(bench: Workbench, stage: PreviewSession) -> None:
    """A title is in lists and on the neighbours' pages, so all of it is made anew."""
    source = bench.content / "posts" / "first.md"
    source.write_text(source.read_text().replace("title: First light", "title: Quokkas"))

    assert has_news(stage, stage.refresh, {str(source)})
    assert "Quokkas" in show(stage, "journal/index.html")
    assert "First light" not in show(stage, "journal/index.html")


def test_posts_like_a_new_one_are_found_in_a_quiet_moment(
    bench: Workbench, stage: PreviewSession
) -> None:
    """They take longest to find, so a new post is shown without them at first."""
    words = "Quokkas gather eucalyptus leaves around moonlit saltmarshes while wallabies slumber."
    for slug in ("one-island", "another-island"):
        bench.post(slug, text=words)
    bench.post("between-them", text="Ships.")  # neighbours are linked anyway
    page = "journal/one-island/index.html"
    stage.refresh()
    assert 'id="related"' not in show(stage, page)

    assert has_news(stage, stage.do_deferred_work)
    assert 'href="/journal/another-island/"' in show(stage, page).partition('id="related"')[2]


def test_an_unreported_change_is_seen_at_the_next_refresh(
    bench: Workbench, stage: PreviewSession
) -> None:
    """A change without an event is found when all files are checked."""
    append(bench, "Quokkas.")

    assert not has_news(stage, stage.refresh, {str(bench.content / "posts" / "second.md")})
    assert has_news(stage, stage.refresh)
    assert "Quokkas." in show(stage)


def test_an_unchanged_file_sends_no_event(stage: PreviewSession) -> None:
    """Without a change browsers are left alone."""
    assert not has_news(stage, stage.refresh)
    assert not has_news(stage, stage.do_deferred_work)


def test_a_text_that_was_fixed_is_shown(bench: Workbench, stage: PreviewSession) -> None:
    """An error keeps the last good text; the fixed file takes its place."""
    source = bench.content / "posts" / "first.md"
    good = source.read_text()
    source.write_text("half a file")
    assert has_news(stage, stage.refresh, {str(source)})
    assert stage.state.errors
    assert "First light" in show(stage)

    source.write_text(f"{good}\nQuokkas.\n")
    assert has_news(stage, stage.refresh, {str(source)})
    assert not stage.state.errors
    assert "Quokkas." in show(stage)


def test_a_change_seen_by_a_page_request_is_still_checked(
    bench: Workbench, stage: PreviewSession
) -> None:
    """A broken link is warned of in the next quiet moment, and then not again."""
    stage.check()
    append(bench, "See [nothing](/journal/nowhere/).")
    show(stage)

    assert not has_news(stage, stage.refresh)
    assert has_news(stage, stage.check)
    assert any("broken link" in each.message for each in stage.state.findings)
    checked = stage.state
    assert not has_news(stage, stage.check)
    assert stage.state is checked


def test_settling_is_one_step_to_whoever_looks_on(bench: Workbench, stage: PreviewSession) -> None:
    """No version is seen in between, which would load every page anew for nothing."""
    show(stage)
    append(bench, "Quokkas.")
    show(stage)
    seen: set[str] = set()
    with ThreadPoolExecutor(1) as onlooker:
        is_over = Event()
        looking = onlooker.submit(look_on, stage, seen, is_over)
        stage.do_deferred_work()
        is_over.set()
        looking.result()

    assert seen == {stage.state.version}


def look_on(stage: PreviewSession, seen: set[str], is_over: Event) -> None:
    """Note each version that the stage shows, as a browser that asks at every moment would."""
    while not is_over.is_set():
        seen.add(stage.state.version)


def test_a_file_is_at_fault_until_it_can_be_made(bench: Workbench, stage: PreviewSession) -> None:
    """A state that was sent does not change; the next state is without the error."""
    picture = bench.write("images/dot.svg", "<svg/>")
    stage.refresh()
    away = picture.rename(bench.output / "dot.svg")
    assert not show(stage, "images/dot.svg")
    former = stage.state
    assert "cannot be read" in former.file_problems["images/dot.svg"].message

    away.rename(picture)
    assert show(stage, "images/dot.svg") == "<svg/>"
    assert not stage.state.file_problems
    assert former.file_problems


def test_settling_keeps_the_faults_that_are_left(bench: Workbench, stage: PreviewSession) -> None:
    """Files that could not be made are tried again with the others that were asked for."""
    picture = bench.write("images/dot.svg", "<svg/>")
    stage.refresh()
    for is_fixed in (False, True):
        stage.refresh({str(append(bench, "Quokkas."))})
        away = picture.rename(bench.output / "dot.svg")
        show(stage, "images/dot.svg")
        if is_fixed:
            away.rename(picture)
        stage.do_deferred_work()
        assert bool(stage.state.file_problems) != is_fixed
        if not is_fixed:
            away.rename(picture)


LOOKS_AT_A_BROKEN_THEME = """
import sys
from datetime import UTC, datetime
from pathlib import Path

from pelican import signals
from site_build.pelican_plugin.plugin import list_sources
from site_build.markup.convert import Dialect
from site_build.preview.session import PreviewSession
from site_build.progress import Request

rounds = []

def note(sender):
    rounds.append(sender)

content, output, template = map(Path, sys.argv[1:])
now = datetime.max.replace(tzinfo=UTC)
request = Request(content, output / "site", output, output, output / "cache", now, 1)
stage = PreviewSession(request, Dialect("http://127.0.0.1:8001"), list_sources(content)[1:])
signals.initialized.connect(note)
good = template.read_text()
template.write_text("{% if %}")
stage.refresh()
assert stage.state.site_problem
broken = len(rounds)
for _ in range(3):
    stage.refresh()
    stage.show("index.html")
    stage.do_deferred_work()
print(broken, len(rounds))
template.write_text(good)
stage.refresh()
print(len(rounds), stage.state.site_problem)
"""


def test_a_broken_theme_is_tried_once(bench: Workbench, project: Path) -> None:
    """Until something changes, looks and requests cost nothing; the fixed theme is seen."""
    template = project / "theme" / "templates" / "base.html"
    places = map(str, (bench.content, bench.output, template))
    done = subprocess.run(
        [sys.executable, "-c", LOOKS_AT_A_BROKEN_THEME, *places],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == ["1 1", "2 None"]


def test_two_previews_of_a_folder_share_only_the_caches(
    bench: Workbench, stage: PreviewSession
) -> None:
    """Two previews of one folder have no file in common but the caches: one cannot harm the other.

    The second starts between two looks of the first at its feeds.
    """
    feed = show(stage, "feed.xml")
    other = open_stage(bench, list_sources(bench.content)[1:])
    assert show(other, "feed.xml") == feed
    assert show(stage, "llms-full.txt")
    assert show(stage, "feed.json")
    kept = {path.name.partition("-")[0] for path in bench.output.iterdir()}
    assert {name for name in kept if not name.startswith("__jinja2_")} == {"cache.sqlite"}


def test_the_cache_does_not_grow_with_every_save(bench: Workbench, stage: PreviewSession) -> None:
    """In a quiet moment what earlier texts and titles have left is forgotten."""

    def save(number: int) -> None:
        source = bench.content / "posts" / "first.md"
        head, _, _ = source.read_text().partition("\n---\n")
        head = "\n".join(
            f"title: Quokka {number}" if line.startswith("title:") else line
            for line in head.splitlines()
        )
        source.write_text(f"{head}\n---\nSave number {number}.\n")
        stage.refresh({str(source)})
        show(stage)
        assert stage.show("cards/first-light.png")[0]
        stage.do_deferred_work()

    save(0)
    before = count_kept(bench)
    assert before["text"]
    assert before["plate"]
    for number in range(1, 4):
        save(number)
    assert count_kept(bench) == before


def count_kept(bench: Workbench) -> dict[str, int]:
    """Return how many results of each stage the cache holds."""
    with closing(sqlite3.connect(bench.output / "cache.sqlite")) as cache:
        return dict(cache.execute("SELECT stage, count(*) FROM entry GROUP BY stage"))
