"""A scheduled post: nowhere before its time, everywhere after it, and nobody does anything."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edge_api.schema.index import CURRENT_LINK
from tests.edge.edge_process import ROOT, Installation, ServedEdge, free_port
from tests.edge.reading_surfaces import LISTS, NEIGHBOUR, SLUG, SURFACES, TAG, WORD, Visitor
from tests.patience import patience

pytestmark = pytest.mark.size("test")

SECOND = timedelta(seconds=1)
LEADS = ((20 * SECOND, SECOND), (40 * SECOND, 10 * SECOND), (100 * SECOND, 40 * SECOND))
"""Times before its instant at which the scheduled post is saved, and is looked for.

Each for a slower machine, which did not come round to all surfaces in the time before.
"""
PUBLIC = {
    "first-frost": "2026-02-01",
    "long-rain": "2026-03-01",
    NEIGHBOUR: "2026-03-01",  # the same instant: slugs decide
}
NEWEST_FIRST = [SLUG, NEIGHBOUR, "long-rain", "first-frost"]


def write_post(content: Path, slug: str, date: str, *tags: str, text: str = "Words.") -> None:
    """Write a post about the weather."""
    names = ", ".join(("weather", *tags))
    head = f"title: {slug.title()}\nslug: {slug}\ndate: {date}\ntags: [{names}]\n"
    path = content / "posts" / f"{slug}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{head}---\n\n{text}\n", encoding="utf-8")


@contextmanager
def publishing(content: Path, output: Path, site_url: str) -> Iterator[subprocess.Popen[str]]:
    """Keep a site true to its content and to the clock."""
    words = ["--content", str(content), "--output", str(output), "--site-url", site_url]
    process = subprocess.Popen(
        [sys.executable, "-m", "site_build", "publish", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def await_line(process: subprocess.Popen[str], wanted: str) -> None:
    """Read what the publisher prints until it says `wanted`."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if wanted in line:
            return
    raise AssertionError(said)


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[tuple[Visitor, subprocess.Popen[str]]]:
    """Return a visitor of a journal with three posts, and the publisher of that journal."""
    for slug, date in PUBLIC.items():
        write_post(tmp_path / "content", slug, date)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(tmp_path / "build"),
        "RATE_AUTHENTICATED": "0",
    }
    installation = Installation(tmp_path, settings)
    with publishing(tmp_path / "content", tmp_path / "build", url) as publisher:
        await_line(publisher, "is served")
        with installation.serving() as edge:
            yield make_visitor(installation, edge, url), publisher


def make_visitor(installation: Installation, edge: ServedEdge, url: str) -> Visitor:
    """Return a visitor with a key and a token."""
    key = issue(installation, "--scopes", "posts:read")
    token = issue(installation, "--scopes", "mcp posts:read", "--type", "access_token")
    return Visitor(edge, url, key, token)


def issue(installation: Installation, *words: str) -> str:
    """Return a new credential."""
    words = ("keys", "issue", "--name", "visitor", "--json", *words)
    status, said, complained = installation.run(*words)
    assert status == 0, complained
    return str(json.loads(said)["key"])


def see(visitor: Visitor) -> dict[str, bool]:
    """Tell for each surface whether it shows the scheduled post."""
    return {name: SLUG in look(visitor) for name, look in SURFACES.items()}


def list_traces(build: Path) -> list[str]:
    """Return the files of the served build that say anything of the scheduled post."""
    served = build.resolve()
    return [
        path.relative_to(served).as_posix()
        for path in served.rglob("*")
        if path.is_file()
        and path.name != "manifest.sqlite"  # never served
        and any(word in path.read_bytes() for word in (SLUG.encode(), TAG.encode(), WORD.encode()))
    ]


def order_of(text: str) -> list[str]:
    """Return the posts in the order in which a list names them first."""
    places = {slug: text.find(slug) for slug in NEWEST_FIRST if slug in text}
    return sorted(places, key=places.__getitem__)


def sleep_until(instant: datetime) -> None:
    """Wait for the clock."""
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))


def look_before(
    reader: Visitor, publisher: subprocess.Popen[str], content: Path
) -> tuple[datetime, dict[str, str]]:
    """Schedule the post; return its instant, and what every surface says just before it."""
    for ahead, last in LEADS:
        due = datetime.now(UTC).replace(microsecond=0) + ahead
        written = due.isoformat().replace("+00:00", "Z")
        write_post(content, SLUG, written, TAG, text=f"The {WORD}.")
        await_line(publisher, f"is ready for {written}")
        sleep_until(due - last)
        texts = {name: look(reader) for name, look in SURFACES.items()}
        if datetime.now(UTC) < due:
            return due, texts
    raise AssertionError("no look at all surfaces ended before the instant")


@pytest.mark.size("ci")
def test_a_scheduled_post_appears_everywhere_at_its_instant(
    visitor: tuple[Visitor, subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A second before nothing shows it, a second after all does, in the same order everywhere."""
    reader, publisher = visitor
    current = tmp_path / "build" / CURRENT_LINK

    due, texts = look_before(reader, publisher, tmp_path / "content")
    assert [name for name, text in texts.items() if SLUG in text or WORD in text] == []
    sleep_until(due + SECOND)
    deadline = time.monotonic() + patience()
    while not all((seen := see(reader)).values()):
        assert time.monotonic() < deadline, [name for name, shown in seen.items() if not shown]
    orders = {name: order_of(look(reader)) for name, look in LISTS.items()}
    assert orders == dict.fromkeys(LISTS, NEWEST_FIRST)
    assert list_traces(current)


@pytest.mark.size("ci")
def test_before_its_instant_nothing_of_it_is_served(
    visitor: tuple[Visitor, subprocess.Popen[str]], tmp_path: Path
) -> None:
    """With its build made and waiting, no surface and no file of the served build knows it."""
    reader, publisher = visitor
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    written = due.isoformat().replace("+00:00", "Z")
    write_post(tmp_path / "content", SLUG, written, TAG, text=f"The {WORD}.")
    await_line(publisher, f"is ready for {written}")

    assert see(reader) == dict.fromkeys(SURFACES, False)
    assert list_traces(tmp_path / "build" / CURRENT_LINK) == []
    assert list_traces(tmp_path / "build" / "next")
    others = [slug for slug in NEWEST_FIRST if slug != SLUG]
    assert {name: order_of(look(reader)) for name, look in LISTS.items()} == dict.fromkeys(
        LISTS, others
    )
