"""Lists of documents: what is a draft, what waits for its time, what has been left alone."""

import json
import subprocess
import sys

import pytest

from tests.site_build.workbench import Workbench, run
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

NOW = "2026-05-01T00:00:00Z"


def ask(bench: Workbench, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command on a workbench's content."""
    command = [sys.executable, "-m", "site_build", "list", *words]
    return run(*command, "--content", bench.content, "--now", NOW)


@pytest.fixture
def full_bench(empty_bench: Workbench) -> Workbench:
    """Return a workbench with a document of every sort."""
    empty_bench.post("old", "2024-03-01")
    empty_bench.post("revised", "2024-03-01", updated="2026-04-30")
    empty_bench.post("young", "2026-04-01T09:30:00Z")
    empty_bench.post("waiting", "2026-05-01T00:00:01Z")
    empty_bench.post("soon", "2026-05-01T00:00:01Z", title="紙の端")
    empty_bench.post(
        "begun",
        "2027-01-01",
        status="draft",
        title='"Begun: a long title, longer than any table should ever be"',
    )
    empty_bench.write("pages/about.md", "---\ntitle: About\nslug: about\n---\n\nWords.\n")
    return empty_bench


def test_drafts_are_listed(full_bench: Workbench) -> None:
    """A table names slug, state, title, date and path."""
    done = ask(full_bench, "drafts")

    heading, line = done.stdout.splitlines()
    assert heading.split() == ["SLUG", "STATE", "TITLE", "DATE", "PATH"]
    assert line.startswith(
        "begun  draft  Begun: a long title, longer than any table should…  2027-01-01"
    )
    assert line.endswith("content/posts/begun.md")
    assert (done.returncode, done.stderr) == (0, "")


def test_each_document_is_listed_with_its_state(full_bench: Workbench) -> None:
    """A hidden one that waits for its time is still scheduled."""
    full_bench.post("aside", "2026-03-01", status="hidden")
    full_bench.post("later", "2027-03-01", status="hidden")
    states = {each["slug"]: each["state"] for each in json.loads(ask(full_bench, "--json").stdout)}

    assert states["aside"] == "hidden"
    assert states["later"] == states["soon"] == "scheduled"
    assert (states["begun"], states["about"], states["young"]) == ("draft", *["published"] * 2)


def test_scheduled_posts_are_listed_by_date(full_bench: Workbench) -> None:
    """The next one comes first, and the columns are aligned in any script."""
    lines = ask(full_bench, "future").stdout.splitlines()

    assert [line.split()[0] for line in lines[1:]] == ["soon", "waiting"]
    assert lines[1].split()[1:4] == ["scheduled", "紙の端", "2026-05-01T00:00:01Z"]


@pytest.mark.parametrize(
    ("words", "slugs"),
    [
        ([], ["old"]),
        (["--older-than", "29"], ["old", "young"]),
        (["--older-than", "30"], ["old"]),
        (["--older-than", "0"], ["old", "young", "revised"]),
    ],
)
def test_stale_posts_are_listed(full_bench: Workbench, words: list[str], slugs: list[str]) -> None:
    """The one that was not updated for longest comes first; texts without a date are left out."""
    found = json.loads(ask(full_bench, "stale", *words, "--json").stdout)

    assert [each["slug"] for each in found] == slugs


def test_json_has_every_member(full_bench: Workbench) -> None:
    """An array of objects, with instants as front matter has them."""
    (found,) = json.loads(ask(full_bench, "stale", "--json").stdout)

    assert found == {
        "slug": "old",
        "title": "Old",
        "kind": "post",
        "state": "published",
        "date": "2024-03-01",
        "updated": "2024-03-01",
        "path": str(full_bench.content / "posts" / "old.md"),
    }


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("drafts", "there are no drafts"),
        *in_ci(("future", "nothing waits for its time"), ("stale", "nothing is stale")),
    ],
)
def test_an_empty_list_is_reported(empty_bench: Workbench, question: str, sentence: str) -> None:
    """An empty list is a sentence, or an empty array."""
    assert ask(empty_bench, question).stdout == f"{sentence}\n"
    assert ask(empty_bench, question, "--json").stdout == "[]\n"
    assert ask(empty_bench, question).returncode == 0


def test_unreadable_files_are_reported(full_bench: Workbench) -> None:
    """The rest is listed, a sentence says that it may not be all, and the status is 1."""
    full_bench.write("posts/bad.md", "no front matter")
    (full_bench.content / "posts" / "worse.md").write_bytes(b"---\n\xff\n---\n")
    done = ask(full_bench, "drafts")

    assert done.returncode == 1
    assert "begun" in done.stdout
    assert done.stderr == "2 files cannot be listed; run `check` to see why\n"


@pytest.mark.parametrize(
    "words",
    [["nonsense"], ["stale", "--older-than", "-1"], ["stale", "--older-than", "soon"], ["post"]],
)
def test_invalid_options_are_refused(empty_bench: Workbench, words: list[str]) -> None:
    """One sentence and where help is, and status 2."""
    done = ask(empty_bench, *words)

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 2
