"""Readiness and doctor about the watcher, unpublished content and changed code."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edge_api.health import PublishingMonitor
from edge_api.schema.heartbeat import HEARTBEAT_FILE, Heartbeat, remove_heartbeat
from edge_api.schema.index import HELD_FILE
from edge_api.schema.installed_code import InstalledCode

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CONTENT_CHANGED = (
    "the content has changed since the served build was made: restart the watcher, or build again"
)


def beat(
    age: timedelta = SECOND, building: timedelta = SECOND, *, changed: bool = False, why: str = ""
) -> Heartbeat:
    """Return a heartbeat that is `age` old, of a watcher that has built for `building`."""
    at = NOW - age
    return Heartbeat(
        at=at, active_at=at - building, pid=os.getpid(), code_changed=changed, failure=why
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a folder of code."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "module.py").write_text("VALUE = 1\n")
    return folder


@pytest.fixture
def publishing(tmp_path: Path, package: Path) -> PublishingMonitor:
    """Return what looks at a folder with one build, made from content that is older."""
    content, build = tmp_path / "content", tmp_path / "build"
    (build / "current").mkdir(parents=True)
    (build / ".lock").touch()
    content.mkdir()
    (content / "post.md").write_text("Words.")
    os.utime(content / "post.md", (1000, 1000))
    (build / "current" / "posts.json").touch()
    os.utime(build / "current" / "posts.json", (2000, 2000))
    return PublishingMonitor(build, content, lambda: NOW, InstalledCode(package))


async def ask(publishing: PublishingMonitor) -> tuple[str, str]:
    """Return state and sentence of the watcher's check after a look."""
    await publishing.refresh()
    check = await publishing.watcher()
    return check.state, check.message


@pytest.mark.parametrize(
    ("heartbeat", "message"),
    [
        (beat(), ""),
        (beat(age=60 * SECOND), ""),
        (beat(age=61 * SECOND), "the watcher has not reported for more than a minute: start it"),
        (beat(age=-61 * SECOND), "the watcher has not reported for more than a minute: start it"),
        (beat(building=600 * SECOND), ""),
        (beat(building=601 * SECOND), "the watcher's build has run for more than ten minutes"),
        (beat(why="no room: /srv/x"), "the watcher's builds fail: its log and doctor say why"),
        (beat(changed=True), "the installed code has changed since the watcher started"),
    ],
)
async def test_a_heartbeat_is_judged(
    publishing: PublishingMonitor, heartbeat: Heartbeat, message: str
) -> None:
    """Old, hanging, failing and outdated watchers warn; paths stay out of readiness."""
    heartbeat.write(publishing.build_dir)

    state, said = await ask(publishing)

    assert (state, said[: len(message)]) == ("warn" if message else "pass", message)
    assert bool(said) == bool(message)
    assert "/srv" not in said
    assert publishing.failure == heartbeat.failure
    assert [each.name for each in publishing.build_dir.glob(f"{HEARTBEAT_FILE}*")] == [".watcher"]


async def test_a_dead_watcher_that_failed_says_both(publishing: PublishingMonitor) -> None:
    """One sentence does not hide the other."""
    beat(age=3600 * SECOND, why="no room", changed=True).write(publishing.build_dir)

    assert (await ask(publishing))[1].count(";") == 2


async def test_files_that_are_held_back_are_counted_and_named_to_the_owner(
    publishing: PublishingMonitor, caplog: pytest.LogCaptureFixture
) -> None:
    """Readiness names none; the log names each once; a build without the file holds none back."""
    await publishing.refresh()
    assert (await publishing.content(), publishing.held) == (None, [])
    held = publishing.build_dir / "current" / HELD_FILE
    for count, files in ((1, "1 file of the content has"), (2, "2 files of the content have")):
        names = [f"posts/{number}.md:1: no title" for number in range(count)]
        held.write_text(json.dumps(names))
        caplog.clear()
        for _ in range(2):
            await publishing.refresh()
            check = await publishing.content()
            assert check
            assert (check.state, check.message) == (
                "warn",
                f"{files} errors: run doctor to list them",
            )
            assert publishing.held == [f"not shown as it is: {name}" for name in names]
        assert [each.message for each in caplog.records] == publishing.held[-1:]  # the new one
    held.write_text("[")
    await publishing.refresh()
    assert await publishing.content() is None


@pytest.mark.parametrize("content", [b"", b"{}", b'{"at": "soon"}', b"\xff"])
async def test_a_damaged_heartbeat_warns(publishing: PublishingMonitor, content: bytes) -> None:
    """It was written by no watcher of this version."""
    (publishing.build_dir / HEARTBEAT_FILE).write_bytes(content)

    assert await ask(publishing) == (
        "warn",
        "the watcher's heartbeat cannot be read: restart the watcher",
    )


async def test_content_and_code_that_cannot_be_read_warn(
    publishing: PublishingMonitor, package: Path
) -> None:
    """A link to itself stands for folders without rights, which root could read."""
    (publishing.content_dir / "loop").symlink_to("loop")
    assert (await ask(publishing))[0] == "warn"
    assert (await ask(publishing))[1].startswith("CONTENT_DIR cannot be read (")

    (package / "loop.py").symlink_to("loop.py")
    await publishing.refresh()
    check = await publishing.code()
    assert (check.state, check.message[:38]) == ("warn", "the installed code cannot be read (Too")


async def test_a_heartbeat_is_removed_by_its_own_process_only(
    publishing: PublishingMonitor,
) -> None:
    """A watcher that ends does not take its successor's away."""
    beat().model_copy(update={"pid": 1}).write(publishing.build_dir)
    remove_heartbeat(publishing.build_dir)
    assert (publishing.build_dir / HEARTBEAT_FILE).exists()

    beat().write(publishing.build_dir)
    remove_heartbeat(publishing.build_dir)
    remove_heartbeat(publishing.build_dir)
    assert not (publishing.build_dir / HEARTBEAT_FILE).exists()


async def test_content_that_nobody_builds_is_noticed(publishing: PublishingMonitor) -> None:
    """A file newer than the served build warns, until there is a newer build or a watcher."""
    assert await ask(publishing) == ("pass", "")
    os.utime(publishing.content_dir / "post.md", (3000, 3000))
    assert await ask(publishing) == ("warn", CONTENT_CHANGED)

    beat().write(publishing.build_dir)
    assert await ask(publishing) == ("pass", "")
    remove_heartbeat(publishing.build_dir)
    os.utime(publishing.build_dir / "current" / "posts.json", (4000, 4000))
    assert await ask(publishing) == ("pass", "")


@pytest.mark.parametrize("name", [".post.md.swp", "post.md~", ".obsidian/workspace.json"])
async def test_files_of_editors_are_no_content(publishing: PublishingMonitor, name: str) -> None:
    """Hidden files and copies are newer than the build all the time."""
    file = publishing.content_dir / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("")

    assert await ask(publishing) == ("pass", "")


@pytest.mark.parametrize("missing", ["build/.lock", "build/current", "content", "build"])
async def test_where_nothing_is_built_content_does_not_count(
    publishing: PublishingMonitor, tmp_path: Path, missing: str
) -> None:
    """A machine to which builds are copied has content of any age, or none."""
    os.utime(publishing.content_dir / "post.md", (3000, 3000))
    place = tmp_path / missing
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()

    assert await ask(publishing) == ("pass", "")


async def test_changed_code_is_noticed(publishing: PublishingMonitor, package: Path) -> None:
    """A changed, added or removed file warns; what was there before passes again."""
    module, added = package / "module.py", package / "more.py"
    before = module.read_bytes()
    for change, undo in (
        (lambda: module.write_bytes(b"VALUE = 22\n"), lambda: module.write_bytes(before)),
        (module.unlink, lambda: module.write_bytes(before)),
        (added.touch, added.unlink),
    ):
        change()
        await publishing.refresh()
        check = await publishing.code()
        assert (check.state, check.message) == (
            "warn",
            "the installed code has changed since this edge started: restart it",
        )
        undo()
        await publishing.refresh()
        assert (await publishing.code()).state == "pass"


async def test_the_same_bytes_written_again_are_no_change(package: Path) -> None:
    """A checkout that rewrites files, and compiled files, change nothing."""
    code = InstalledCode(package)
    module = package / "module.py"
    replacement = package / "new"
    replacement.write_bytes(module.read_bytes())
    replacement.replace(module)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "module.pyc").touch()

    code.check()

    assert not code.has_changed
    assert not code.is_stable


def test_an_upgrade_under_way_is_not_settled(package: Path) -> None:
    """As long as files change between two looks nobody should start what they hold."""
    code = InstalledCode(package)
    seen = []
    for number in (10, 20, 20):
        (package / "module.py").write_text(f"VALUE = {number}\n")
        os.utime(package / "module.py", (number, number))
        code.check()
        seen.append((code.has_changed, code.is_stable))

    assert seen == [(True, False), (True, False), (True, True)]
