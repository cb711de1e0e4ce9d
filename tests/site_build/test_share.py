"""`share` at the terminal: what it writes and says, and what it refuses."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.site_build.workbench import SITE_URL, Workbench, find, run_build, take
from tests.site_build.workbench import run as run_program

pytestmark = pytest.mark.size("test")

LATER = "2999-01-01"


def share(
    bench: Workbench, *words: str, site_url: str = SITE_URL
) -> subprocess.CompletedProcess[str]:
    """Run `share` on a workbench."""
    places = "--content", bench.content, "--output", bench.output, "--site-url", site_url
    return run_program(sys.executable, "-m", "site_build", "share", *words, *places)


@pytest.fixture
def built(bench: Workbench) -> Workbench:
    """Return a workbench with posts that are not public, built."""
    bench.post(
        "early",
        text="See [hidden](/journal/hidden/) and [tags](/tags/rare/).",
        tags="[rare]",
        status="draft",
    )
    bench.post("hidden", status="draft", title="Hidden one", tags="[rare]")
    bench.post("planned", day=LATER, title="Planned one")
    done = run_build(bench)
    assert done.returncode == 0, done.stderr
    return bench


def folder_of(bench: Workbench, said: str) -> Path:
    """Return the folder of the share whose address was printed."""
    found = re.search(rf"^{SITE_URL}/shared/([\w-]+)/$", said, re.MULTILINE)
    assert found is not None, said
    return bench.output / "shares" / sha256(found[1].encode()).hexdigest()


def test_a_draft_is_shared_for_a_week(built: Workbench) -> None:
    """It says where, until when, and how to end it; only the digest of the token is stored."""
    before = take(built.output)
    done = share(built, "early")
    folder = folder_of(built, done.stdout)
    record = json.loads((folder / "share.json").read_text())
    made = datetime.fromisoformat(record["made"])
    page = (folder / "index.html").read_text()
    token = done.stdout.split("/shared/")[1].split("/")[0]
    written = take(built.output)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Early is shared until ")
    assert lines[2:] == ["python -m site_build share --revoke early ends that"]
    assert abs(datetime.now(UTC) - made) < timedelta(minutes=5)
    assert datetime.fromisoformat(record["expires"]) - made == timedelta(days=7)
    assert (record["slug"], record["title"]) == ("early", "Early")
    assert record["digest"] == folder.name[:12]
    assert all(token.encode() not in data for data in written.values())
    assert not any(token in path for path in written)
    assert {each.partition("/")[0] for each in written if each not in before} <= {
        "shares",
        ".preview",
    }
    assert {each: before[each] for each in before} == {each: written[each] for each in before}
    assert folder.stat().st_mode == built.output.stat().st_mode, "the edge may be another user"
    assert "Hidden one" not in page
    assert "Planned" not in page
    assert "See <a>hidden</a> and <a>tags</a>." in page


def test_a_scheduled_post_is_shown_with_its_own_date(built: Workbench) -> None:
    """Its page is the one that will appear, with the neighbours that it has now."""
    done = share(built, "planned", "--days", "30")
    page = (folder_of(built, done.stdout) / "index.html").read_text()

    assert "2999" in page
    assert "Hidden" not in page
    assert "Early" not in page


def test_shares_are_listed_and_revoked(built: Workbench) -> None:
    """By slug, by digest, or all of them; what is expired is neither listed nor kept."""
    folders = [
        folder_of(built, share(built, slug).stdout) for slug in ("early", "early", "planned")
    ]
    listed = share(built, "--list").stdout
    one = share(built, "--revoke", folders[0].name[:12])
    left = [each.exists() for each in folders]
    rest = share(built, "--revoke", "early")
    nothing = share(built, "--revoke", "early")
    everything = share(built, "--revoke", "all")

    assert sorted(line.split()[0] for line in listed.splitlines()) == sorted(
        each.name[:12] for each in folders
    )
    assert re.fullmatch(r"(\w{12}  \S+Z  \S+Z  (early  Early|planned  Planned one)\n){3}", listed)
    assert (one.stdout, left) == ("1 share revoked\n", [False, True, True])
    assert rest.stdout == "1 share revoked\n"
    assert nothing.stderr == "nothing that is shared is called 'early'; see share --list\n"
    assert nothing.returncode == 1
    assert everything.stdout == "1 share revoked\n"
    assert list((built.output / "shares").iterdir()) == []


def test_a_build_deletes_what_has_expired(built: Workbench) -> None:
    """And leaves what is still shared."""
    old, new = (folder_of(built, share(built, "early").stdout) for _ in range(2))
    record = json.loads((old / "share.json").read_text())
    (old / "share.json").write_text(json.dumps({**record, "expires": "2026-01-01T00:00:00Z"}))
    run_build(built)

    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (
            ["nowhere"],
            1,
            "no draft without errors has the slug 'nowhere'; see python -m site_build list drafts",
        ),
        (["first-post"], 1, "no draft without errors has the slug"),
        (["early", "--days", "0"], 2, "0 is not in the range 1<=x<=365"),
        (["early", "--days", "366"], 2, "366 is not in the range 1<=x<=365"),
        ([], 2, "Give one of SLUG, --list, --revoke"),
        (["early", "--list"], 2, "Give one of SLUG, --list, --revoke"),
    ],
)
def test_invalid_shares_are_refused(
    words: list[str], status: int, said: str, built: Workbench
) -> None:
    """In a sentence; nothing is shared then."""
    done = share(built, *words)

    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
    assert not (built.output / "shares").exists()


def test_a_draft_with_an_error_is_not_shared(built: Workbench) -> None:
    """It could not be built either; nor can it be shown with scripts that the build lacks."""
    built.post("broken", status="draft", date="soon")
    broken = share(built, "broken")
    for theme in (built.output / "current" / "site" / "theme").glob("before_paint.*.js"):
        theme.unlink()
    lacking = share(built, "early")

    assert "no draft without errors has the slug 'broken'" in broken.stderr
    assert re.fullmatch(
        r"the current build lacks theme/before_paint\.\w+\.js; "
        r"run python -m site_build build before\n",
        lacking.stderr,
    )
    assert lacking.returncode == 1
    assert not (built.output / "shares").exists()


def test_a_share_that_cannot_be_written_is_none(built: Workbench) -> None:
    """A file in the place of the folder is named, with what to do."""
    (built.output / "shares").write_text("in the way")
    done = share(built, "early")

    assert done.returncode == 1
    assert "the build cannot go on: " in done.stderr
    assert "shares" in done.stderr


def test_style_sheets_and_fonts_are_part_of_it(built: Workbench) -> None:
    """The page looks as it was made, whatever becomes of the theme; only scripts are the site's."""
    folder = folder_of(built, share(built, "early").stdout)
    page = LexborHTMLParser((folder / "index.html").read_bytes())
    sheet = find(page, '[rel="stylesheet"]').attributes["href"] or ""
    style = (folder / sheet).read_text()
    named = re.findall(r'url\("([^")]+)"\)', style)
    preloaded = find(page, '[rel="preload"]').attributes["href"]

    assert re.fullmatch(r"\d+\.css", sheet)
    assert "theme/" not in style
    assert len([each for each in named if (folder / each).suffix == ".woff2"]) >= 4
    assert [each for each in named if not (folder / each).is_file()] == []
    assert preloaded in named
    assert (folder / str(preloaded)).read_bytes()[:4] == b"wOF2"
    links = [each.attributes["href"] or "" for each in page.css("link")]
    assert [each for each in links if "theme/" in each] == []


def test_a_share_on_a_full_disk_leaves_nothing(built: Workbench) -> None:
    """Nothing of it is listed or left; the next one is a share again."""
    built.post("long", text="Words of it. " * 30_000, status="draft")
    assert share(built, "early").returncode == 0
    places = "--content", built.content, "--output", built.output, "--site-url", SITE_URL
    command = [sys.executable, "-m", "site_build", "share", "long", *map(str, places)]
    limit = f"ulimit -f 200; exec {shlex.join(command)}"
    failed = run_program("sh", "-c", limit)
    listed = share(built, "--list").stdout

    assert failed.returncode == 1
    assert "the build cannot go on: File too large" in failed.stderr
    assert [line.split("  ")[3] for line in listed.splitlines()] == ["early"]
    assert len(list((built.output / "shares").iterdir())) == 1


def test_a_share_that_is_being_written_is_left_alone(built: Workbench) -> None:
    """Another command neither lists nor deletes it; after an hour it was left by a failure."""
    shares = built.output / "shares"
    record = json.dumps({"expires": "2999-01-01T00:00:00Z", "slug": "early", "made": ""})
    for name in (".new", ".old"):
        (shares / name).mkdir(parents=True)
        (shares / name / "share.json").write_text(record)
    old = time.time() - 3700
    os.utime(shares / ".old", (old, old))
    listed = share(built, "--list").stdout

    assert listed == ""
    assert [each.name for each in shares.iterdir()] == [".new"]


def test_shares_are_listed_by_age_and_revoked_by_name(built: Workbench) -> None:
    """A title or an instant names none, though it is in the list."""
    for slug in ("planned", "early", "hidden"):
        folder = folder_of(built, share(built, slug).stdout)
        record = json.loads((folder / "share.json").read_text())
        record["made"] = f"2026-01-0{len(slug) - 4}T00:00:00Z"
        (folder / "share.json").write_text(json.dumps(record))
    listed = share(built, "--list").stdout.splitlines()
    refused = [share(built, "--revoke", each) for each in (*listed[0].split("  ")[1:3], "Early")]

    assert [line.split("  ")[3] for line in listed] == ["early", "hidden", "planned"]
    assert [each.returncode for each in refused] == [1, 1, 1]
    assert len(list((built.output / "shares").iterdir())) == 3
