"""Builds that travel: pushed to a bucket, fetched by an edge, and refused where they must be."""

import asyncio
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from obstore.store import LocalStore

import edge_api.__main__
import site_build.__main__
from edge_api.journal.builds import BuildManager
from edge_api.journal.remote_builds import RemoteBuilds
from edge_api.schema.environment import PRIVATE_PREFIX, read_key
from edge_api.schema.heartbeat import Heartbeat
from edge_api.schema.index import BUILD_LOCK
from edge_api.schema.pushed_builds import (
    POINTER,
    BucketError,
    Files,
    Pointer,
    answers_anonymously,
    cut,
    locate_object,
    make_keys,
    read_manifest,
    read_object,
)
from edge_api.schema.shares import find_shared, locate_share
from edge_api.schema.template_language import make_environment
from edge_api.settings import read_settings
from site_build.cli import push as push_command
from site_build.errors import BuildError
from tests.edge.buckets import Bucket, running_moto, running_rclone
from tests.edge.conftest import EdgeMaker
from tests.edge.edge_process import Installation, free_port, until
from tests.edge.small_builds import SITE_URL, make_post, point_at, write_build
from tests.patience import patience
from tests.site_build.workbench import take
from tests.sizes import in_ci

SECRET = "a secret of thirty-two characters"
PRIVATE, PUBLIC = make_keys()


@dataclass
class Journey:
    """A folder of builds here, a bucket, and the folder of an edge elsewhere."""

    folder: Path
    url: str
    key: str = PRIVATE
    edge: RemoteBuilds = field(init=False)

    def __post_init__(self) -> None:
        self.edge = self.make_edge()

    @property
    def bucket(self) -> Path:
        """The bucket, which is a folder."""
        return Path(self.url)

    def make_edge(self, secret: str = SECRET) -> RemoteBuilds:
        """Return another process of the edge."""
        given = {
            "BUILD_URL": self.url,
            "BUILD_KEY": PUBLIC,
            "BUILD_DIR": str(self.folder / "edge"),
        }
        return RemoteBuilds(read_settings(given, dotenv=None), secret.encode())

    def build(self, number: int, **files: str) -> Path:
        """Make the next build: a page, two posts, and more files of the site by their stems."""
        posts = [make_post("first"), make_post("second", content=f"Words {number}.")]
        more = {f"{name}.html": text for name, text in files.items()}
        made = write_build(self.folder / "here", f"build-{number:04}", posts, more)
        (made / "sources.json").write_text('{"posts/first.md": "0"}')
        (made / "held.json").write_text('["posts/hidden.md:3: a fault"]')
        point_at(self.folder / "here", made)
        return made

    def push(self, *, whole: bool = False, secret: str = SECRET) -> str:
        """Push the current build."""
        key = Ed25519PrivateKey.from_private_bytes(read_key(self.key, PRIVATE_PREFIX))
        return push_command.push(self.folder / "here", self.url, key, secret, whole=whole)

    def read_pointer(self) -> Pointer:
        """Return the pointer in the bucket."""
        key = Ed25519PrivateKey.from_private_bytes(read_key(self.key, PRIVATE_PREFIX))
        return Pointer.read((self.bucket / POINTER).read_bytes(), [key.public_key()])

    async def fetch(self) -> str:
        """Have the edge look for a new build; return its error."""
        await self.edge.refresh()
        return self.edge.error

    def served(self) -> dict[str, bytes]:
        """Return the files that the edge serves, without the list that says what was fetched."""
        found = take(self.folder / "edge" / "current")
        return {path: data for path, data in found.items() if path != "pushed.json.gz"}


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    """Return a journey through a folder."""
    return Journey(tmp_path, str(tmp_path / "bucket"))


@pytest.fixture(scope="module")
def moto() -> Iterator[Bucket]:
    """Return an empty bucket of moto's server, which knows conditional writes."""
    with running_moto() as bucket:
        yield bucket


async def test_an_edge_serves_what_was_pushed(journey: Journey) -> None:
    """Unchanged files are not fetched again; builds that are no longer served are removed."""
    assert await journey.fetch() == "new builds cannot be fetched: it cannot be reached"
    journey.bucket.mkdir()
    assert await journey.fetch() == "new builds cannot be fetched: no build has been pushed to it"
    made = journey.build(1, kept="the same")
    said = journey.push()
    assert said.startswith("build-0001 is pushed: 6 files, ")
    assert await journey.fetch() == ""
    wanted = {path: data for path, data in take(made).items() if path != "sources.json"}
    assert journey.served() == wanted
    kept = (journey.folder / "edge/current/site/kept.html").stat()

    for number in (2, 3):
        journey.build(number, kept="the same", fresh=f"page {number}")
        journey.push()
        assert await journey.fetch() == ""
    assert b"Words 3." in journey.served()["posts.json"]
    still = (journey.folder / "edge/current/site/kept.html").stat()
    assert (still.st_ino, still.st_mtime_ns) == (kept.st_ino, kept.st_mtime_ns)  # purges compare
    assert await journey.fetch() == ""
    builds = [each.name for each in (journey.folder / "edge").glob("fetched-*")]
    assert sorted(each[8:18] for each in builds) == ["build-0002", "build-0003"]
    previous = (journey.folder / "edge/previous").readlink().name
    assert previous.startswith("fetched-build-0002-")
    everything = b"".join(take(journey.bucket).values())
    assert b"posts/first.md" not in everything
    assert b"hidden.md" not in everything


async def test_what_no_key_signed_is_refused(journey: Journey) -> None:
    """Without a signature, with that of another key, damaged, of a later version, or an old one."""
    journey.build(1)
    journey.push()
    first = (journey.bucket / POINTER).read_bytes()
    journey.build(2)
    journey.push()
    assert await journey.fetch() == ""
    served, good = journey.served(), (journey.bucket / POINTER).read_bytes()
    private = Ed25519PrivateKey.from_private_bytes(read_key(PRIVATE, PRIVATE_PREFIX))
    pointer = Pointer.read(good, [private.public_key()])
    later = pointer.model_copy(update={"format": 2, "sequence": pointer.sequence + 1})
    unsigned = "its pointer is not signed with this key: if you changed keys, delete it, and"
    for raw, reason in {
        good.partition(b"\n")[2]: unsigned,
        b"\n" + good.partition(b"\n")[2]: unsigned,
        pointer.sign(Ed25519PrivateKey.generate()): unsigned,
        good.replace(b'"sequence":1', b'"sequence":9'): unsigned,
        b"": unsigned,
        good + b" " * (64 << 10): unsigned,
        later.sign(private): "its build is of another version of fore-edge: use one version",
        first: "its pointer is of ",
    }.items():
        (journey.bucket / POINTER).write_bytes(raw)
        for edge in (journey.edge, journey.make_edge()):
            await edge.refresh()
            assert edge.error.startswith(f"new builds cannot be fetched: {reason}"), raw
        assert journey.served() == served

    (journey.bucket / POINTER).write_bytes(b"something else")
    with pytest.raises(BucketError, match="not signed with this key"):
        journey.push()
    (journey.bucket / POINTER).unlink()
    journey.build(3)
    journey.push()
    assert await journey.fetch() == ""
    assert b"Words 3." in journey.served()["posts.json"]


async def test_an_old_pointer_is_refused_after_a_build_came_twice(journey: Journey) -> None:
    """The edge missed a build between two pushes of another one, and is shown it afterwards."""
    first = journey.build(1)
    journey.push()
    assert await journey.fetch() == ""
    journey.build(2)
    journey.push()
    missed = (journey.bucket / POINTER).read_bytes()
    point_at(journey.folder / "here", first)
    journey.push()
    assert await journey.fetch() == ""
    (journey.bucket / POINTER).write_bytes(missed)
    assert "its pointer is of " in await journey.fetch()
    assert b"Words 1." in journey.served()["posts.json"]


@pytest.mark.parametrize("harm", ["missing", "damaged", "cut", "long"])
async def test_a_bad_object_stops_the_build_and_a_whole_push_mends_it(
    journey: Journey, harm: str
) -> None:
    """Nothing of the build is served; what was fetched of it is used when it is tried again."""
    journey.build(1)
    journey.push()
    assert await journey.fetch() == ""
    before, old = journey.served(), (journey.bucket / POINTER).read_bytes()
    journey.build(2, **{f"page{number}": f"text {number}" for number in range(40)})
    journey.push()
    pointer = journey.read_pointer()
    store = LocalStore(journey.bucket)
    files = read_manifest(read_object(store, pointer.manifest))
    place = journey.bucket / locate_object(files["site/page39.html"][0][0])
    good = place.read_bytes()
    if harm == "missing":
        place.unlink()
    else:
        harms = {"damaged": b"text 38", "cut": good[:-1], "long": good + b" " * 100_000}
        place.write_bytes(harms[harm])

    error = await journey.fetch()
    assert error.endswith(f"in it{'' if harm == 'missing' else ' is damaged'}: push with --whole")
    assert journey.served() == before
    (staging,) = (journey.folder / "edge").glob(".fetched-*")
    inode = (staging / "site/page0.html").stat().st_ino
    (staging / "site/page1.html").write_bytes(b"te")  # what a killed process leaves
    (journey.bucket / POINTER).write_bytes(old)
    assert "its pointer is of " in await journey.fetch()  # though the newer one was not served
    journey.push(whole=True)
    assert await journey.fetch() == ""
    assert journey.served()["site/page39.html"] == good
    assert journey.served()["site/page1.html"] == b"text 1"
    assert (journey.folder / "edge/current/site/page0.html").stat().st_ino == inode
    assert not list((journey.folder / "edge").glob(".fetched-*"))


_ON_A_SMALL_DISK = """
import asyncio, json, os, sys
from tests.edge.test_pushed_builds import Journey, Path
journey = Journey(Path(sys.argv[1]), sys.argv[2])
os.mkdir(journey.folder / "edge/.fetched-of-another-pointer")
for number, files in enumerate((json.load(sys.stdin), {})):
    journey.build(number, **files)
    journey.push()
    print(asyncio.run(journey.fetch()), sorted(os.listdir(journey.folder / "edge")))
"""


@pytest.mark.parametrize(
    "files", [{"large": "1 2 3\n" * 900_000}, dict.fromkeys(map(str, range(900)), "x")]
)
def test_a_full_disk_is_left_as_it_was(journey: Journey, files: dict[str, str]) -> None:
    """Many small files take more room than their bytes; the next build that fits is fetched."""
    (journey.folder / "edge").mkdir()
    shell = f'mount -t tmpfs -o size=2m tmpfs {journey.folder}/edge && exec "$0" -c "$@"'
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", shell, sys.executable]
    found = subprocess.run(
        [*words, _ON_A_SMALL_DISK, str(journey.folder), journey.url],
        input=json.dumps(files),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert found[0] == (
        "a new build cannot be stored: No space left on device ['.fetch.lock', '.pointer']"
    )
    assert "'current', 'fetched-build-0001-" in found[1]


async def test_an_edit_sends_the_segments_around_it_alone(journey: Journey) -> None:
    """A large index is cut after lines that say so themselves."""
    posts = [make_post(f"post-{n}", content=f"{n} " * 3000) for n in range(600)]
    for number in (1, 2):
        posts[300] = make_post("post-300", content=f"The words of build {number}.")
        posts = [*([make_post("new")] if number == 2 else []), *posts]
        point_at(
            journey.folder / "here", write_build(journey.folder / "here", f"build-{number}", posts)
        )
        before = {*take(journey.bucket)} if journey.bucket.exists() else set()
        journey.push()
        assert await journey.fetch() == ""
    here = (journey.folder / "here/build-2/posts.json").read_bytes()
    assert journey.served()["posts.json"] == here
    sent = {path: len(data) for path, data in take(journey.bucket).items() if path not in before}
    large = [size for size in sent.values() if size > 100_000]
    assert len(here) > 7_000_000
    assert len(large) <= 3
    assert sum(large) < len(here) * 0.6
    assert len(sent) <= len(large) + 3  # the pages, which are equal, and the manifest


async def test_shares_travel_encrypted(journey: Journey) -> None:
    """Without the secret they stay; one that is revoked ends with the next push."""
    journey.build(1)
    share, now = locate_share(journey.folder / "here", "token"), datetime.now(UTC)
    share.mkdir(parents=True)
    expires = (now + timedelta(days=1)).isoformat()
    record = {"expires": expires, "made": "", "title": "A hidden title"}
    (share / "share.json").write_text(json.dumps(record))
    (share / "index.html").write_text("A draft that nobody else may read")
    assert "shared drafts stay here: set SECRET_KEY" in journey.push(secret="")
    assert await journey.fetch() == ""
    assert not locate_share(journey.folder / "edge", "token").exists()

    assert "shared draft" not in journey.push()
    sent = {*take(journey.bucket)}
    other = journey.make_edge("another secret of many characters")
    for _ in (1, 2):
        await other.refresh()
        assert other.error.startswith("shared drafts cannot be read, since they were pushed with")
    with pytest.raises(FileNotFoundError):
        find_shared(journey.folder / "edge", "token", "index.html", now)
    assert b"Words 1." in journey.served()["posts.json"]
    assert await journey.fetch() == ""  # with the right secret after a restart
    page = find_shared(journey.folder / "edge", "token", "index.html", now)
    assert page.read_text() == "A draft that nobody else may read"
    everything = b"".join(take(journey.bucket).values())
    assert b"nobody else" not in everything
    assert b"A hidden title" not in everything
    journey.push()
    assert {*take(journey.bucket)} == sent  # the same bytes, encrypted again

    shutil.rmtree(share)
    journey.push()
    assert await journey.fetch() == ""
    assert not locate_share(journey.folder / "edge", "token").exists()


@pytest.mark.parametrize("kind", ["folder", *in_ci("moto")])
async def test_of_two_pushes_at_once_one_wins(
    kind: str, journey: Journey, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push that reads its files slowly finds that another one has been there, and says so."""
    if kind == "moto":
        moto: Bucket = request.getfixturevalue("moto")
        moto.set_environment(monkeypatch)
        journey.url = f"{moto.url}/race"
        journey.edge = journey.make_edge()
    other = Journey(journey.folder / "other", journey.url)
    for first in (True, False):  # the pointer is new, and then replaced
        journey.build(1 if first else 3)
        other.build(2 if first else 4)
        calls = list[str]()

        def slow_cut(path: Path) -> Iterator[bytes]:
            monkeypatch.setattr(push_command, "cut", cut)
            calls.append(other.push())  # noqa: B023
            yield from cut(path)

        monkeypatch.setattr(push_command, "cut", slow_cut)
        with pytest.raises(BuildError, match="another push was faster"):
            journey.push()
        assert len(calls) == 1
        assert await journey.fetch() == ""
        assert (b"Words 2." if first else b"Words 4.") in journey.served()["posts.json"]
    journey.push()
    assert await journey.fetch() == ""
    assert b"Words 3." in journey.served()["posts.json"]


class Ahead(datetime):
    """A clock that is nine days ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Return its time."""
        return super().now(tz) + timedelta(days=9)


async def test_a_clock_that_was_ahead_is_named(
    journey: Journey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edges go on while the pointer stays; one that is lost asks for a step at each edge."""
    for number in (1, 2):
        journey.build(number, page=f"page {number}")
        assert "clock" not in journey.push()
    advice = "; the clock here is or was more than a day ahead: set it, and keep"
    journey.build(3)
    with monkeypatch.context() as patch:
        patch.setattr(push_command, "datetime", Ahead)
        said = journey.push()
    assert "; 0 old ones removed; the" in said  # they are minutes old
    assert advice in said
    assert await journey.fetch() == ""
    journey.build(4)
    assert advice in journey.push()
    assert await journey.fetch() == ""

    (journey.bucket / POINTER).unlink()
    journey.build(5)
    assert "clock" not in journey.push()
    assert ", and one with a higher number, of 20" in await journey.fetch()
    with pytest.raises(BucketError) as refused:
        await journey.edge.look()
    accepted = journey.folder / "edge/.pointer"
    assert refused.value.detail.endswith(f" and its pointer is lost: rm {accepted})")
    accepted.unlink()
    assert await journey.fetch() == ""
    assert b"Words 5." in journey.served()["posts.json"]


async def test_the_link_is_replaced_when_all_is_on_the_disk(
    journey: Journey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves no empty files behind it; builds of the edge's own are removed later."""
    former = journey.folder / "edge/20260101T000000Z-0123456789ab"
    former.mkdir(parents=True)
    point_at(journey.folder / "edge", former)
    synced, sync = list[str](), os.sync

    def note() -> None:
        sync()
        synced.append((journey.folder / "edge/current").readlink().name)

    monkeypatch.setattr(os, "sync", note)
    for number in (1, 2):
        journey.build(number)
        journey.push()
        assert await journey.fetch() == ""
        assert await journey.fetch() == ""
        assert former.exists() is (number == 1)
    assert synced[0] == former.name
    assert synced[1].startswith("fetched-build-0001-")


def test_objects_that_no_build_needs_are_removed_after_a_day(journey: Journey) -> None:
    """Those of the build before stay, and all that are new."""
    removed = []
    for number in (1, 2, 3, 4):
        journey.build(number, page=f"page {number}")
        removed.append(" 0 old ones removed" not in journey.push())
        for each in filter(Path.is_file, (journey.bucket / "objects").rglob("*")):
            if number == 1:
                os.utime(each, (0, 0))
    assert removed == [False, False, True, False]


def test_a_static_push_brings_the_site_alone(journey: Journey) -> None:
    """Pages that are gone are removed, files of others stay, and unchanged ones are not sent."""
    made = journey.build(1, gone="x", kept="y")
    assert push_command.push_static(journey.folder / "here", journey.url).endswith(
        "5 files sent, 0 removed"
    )
    (journey.bucket / "foreign.html").write_text("of somebody else")
    listed = "fore-edge-files.json"
    found = {path: data for path, data in take(journey.bucket).items() if path != listed}
    assert found == {**take(made / "site"), "foreign.html": b"of somebody else"}
    journey.build(2, kept="y")
    said = push_command.push_static(journey.folder / "here", journey.url)
    assert said.endswith("3 files sent, 1 removed")
    assert {*take(journey.bucket)} == {*take(made / "site"), "foreign.html", listed} - {"gone.html"}
    (journey.bucket / "kept.html").unlink()  # by somebody else
    journey.build(3)
    assert push_command.push_static(journey.folder / "here", journey.url).endswith("1 removed")
    said = push_command.push_static(journey.folder / "here", journey.url, whole=True)
    assert said.endswith(" 3 files sent, 0 removed")
    for harm in ('{"a":', "[]", '{"../../x": ""}', '{"/x": ""}', '{"x": 1}', ""):
        (journey.bucket / listed).write_text(harm)
        if harm:  # an empty one is as none
            with pytest.raises(BucketError, match=r"^fore-edge-files\.json in it is damaged"):
                push_command.push_static(journey.folder / "here", journey.url)
    said = push_command.push_static(journey.folder / "here", journey.url)
    assert said.endswith(" 3 files sent, 0 removed")


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "site/../x",
        "site/a/../../../x",
        "/etc/x",
        "site//x",
        "site",
        "sources.json",
        "site/.",
    ],
)
def test_a_list_of_files_leads_nowhere_else(path: str) -> None:
    """Even a signed build writes into its own folder alone."""
    with pytest.raises(BucketError, match="its list of files is damaged"):
        read_manifest(gzip.compress(json.dumps({path: []}).encode()))
    good: Files = {"site/..x/a..b/日本~.html": []}
    assert read_manifest(gzip.compress(json.dumps(good).encode())) == good


def test_templates_reach_nothing_of_the_process() -> None:
    """They run in a sandbox, and change no value that they are given."""
    environment = make_environment(None, StrictUndefined)
    for source in ("{{ ''.__class__.__mro__ }}", "{{ names.append('x') }}"):
        with pytest.raises(SecurityError):
            environment.from_string(source).render(names=[])


@pytest.mark.size("test")
@pytest.mark.one_engine
async def test_an_edge_without_content_follows_the_bucket(
    journey: Journey, make_edge: EdgeMaker
) -> None:
    """Readiness says what is wrong with it, and the last build is served meanwhile."""
    journey.bucket.mkdir()
    settings = {
        "BUILD_URL": journey.url,
        "BUILD_KEY": PUBLIC,
        "BUILD_DIR": str(journey.folder / "edge"),
        "CONTENT_DIR": str(journey.folder / "none"),
        "SECRET_KEY": SECRET,
        "SITE_URL": SITE_URL,
    }
    (journey.folder / "edge").mkdir()
    (journey.folder / "edge" / BUILD_LOCK).touch()  # it was home before
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    Heartbeat(at=long_ago, active_at=long_ago, pid=1, code_changed=False, failure="x").write(
        journey.folder / "edge"
    )
    async with make_edge(exclusive=True, **settings) as edge:
        fetched = edge.service[RemoteBuilds]

        async def ask() -> dict[str, dict[str, str]]:
            async with edge.ask("GET", "/api/public/v1/readiness") as answer:
                found: dict[str, dict[str, str]] = (await answer.json())["checks"]
                return found

        await until(lambda: bool(fetched.error))
        checks = await ask()
        assert checks["index"]["error"] == "no build has been fetched from BUILD_URL yet"
        assert checks["builds"]["error"].endswith("no build has been pushed to it")
        journey.build(1)
        journey.push()
        await until(lambda: edge.service[BuildManager].current is not None)
        async with edge.ask("GET", "/") as answer:
            assert await answer.read() == b"<p>build-0001</p>"
        assert {name for name, each in (await ask()).items() if "error" in each} <= {
            "backup",
            "host",
        }
        shutil.rmtree(journey.bucket)
        await until(lambda: bool(fetched.error))
        checks = await ask()
        assert checks["builds"]["status"] == "warn"
        assert checks["index"]["status"] == "pass"
        async with edge.ask("GET", "/") as answer:
            assert await answer.read() == b"<p>build-0001</p>"


@pytest.mark.size("test")
def test_commands_say_what_is_missing(
    journey: Journey, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys, a build, an address; and doctor has no word of content at an edge."""
    monkeypatch.chdir(journey.folder)
    monkeypatch.setenv("SITE_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("DATABASE_URL", "sqlite:///edge.db")

    def push(*words: str) -> tuple[int, str]:
        code = site_build.__main__.main(["push", *words])
        return code, "".join(capsys.readouterr())

    monkeypatch.setenv("BUILD_DIR", "here")
    assert push()[0] == 2
    assert "must be a folder, or like s3://bucket/path" in push("ftp://x/y")[1]
    code, said = push(journey.url)
    assert code == 2
    assert said == "BUILD_SIGNING_KEY is not set: `push --new-key` makes one\n"
    monkeypatch.setenv("BUILD_SIGNING_KEY", "fe_build_private_short")
    code, said = push(journey.url)
    assert code == 2
    assert said.startswith("BUILD_SIGNING_KEY: must be fe_build_private_ and 43 characters, as")
    monkeypatch.setenv("BUILD_SIGNING_KEY", PRIVATE)
    assert push(journey.url) == (1, "here holds no build; run python -m site_build build\n")
    code, said = push("--new-key")
    private, public = (line.partition("=")[2] for line in said.splitlines()[:2])
    assert (len(read_key(private, PRIVATE_PREFIX)), len(read_key(public))) == (32, 32)
    journey.build(1)
    assert push(journey.url)[0] == 0
    assert push(journey.url, "--static")[0] == 0

    monkeypatch.setenv("BUILD_DIR", "edge")
    monkeypatch.setenv("BUILD_URL", journey.url)
    assert edge_api.__main__.main(["settings", "--check"]) == 2
    assert capsys.readouterr().err == (
        "BUILD_URL: needs BUILD_KEY, which `push --new-key` makes where builds are pushed\n"
    )
    monkeypatch.setenv("BUILD_KEY", PUBLIC)
    monkeypatch.setenv("WRITING", "on")
    assert edge_api.__main__.main(["settings", "--check"]) == 2
    assert capsys.readouterr().err.startswith("WRITING: on needs the content, which is not here")
    monkeypatch.delenv("WRITING")
    assert edge_api.__main__.main(["migrate"]) == 0
    shutil.rmtree(journey.bucket)
    assert edge_api.__main__.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "- BUILD_SIGNING_KEY: keep it where builds are pushed alone" in said
    assert "- no build has been fetched from BUILD_URL yet" in said
    assert "- BUILD_URL: it cannot be reached (" in said
    assert "CONTENT_DIR" not in said
    journey.push()
    asyncio.run(journey.make_edge("another secret of many characters").refresh())
    assert edge_api.__main__.main(["doctor"]) == 1
    assert "- shared drafts cannot be read, since they were pushed with" in capsys.readouterr().out


@pytest.mark.size("test")
def test_each_new_build_is_pushed_by_follow(journey: Journey) -> None:
    """It waits for the first one, goes on after a failure, and ends at once with SIGTERM."""
    made = Installation(journey.folder, {"BUILD_SIGNING_KEY": PRIVATE})
    words = ("push", "--follow", journey.url, "--output", str(journey.folder / "here"))
    with made.start(*words, module="site_build") as process:
        assert process.stdout is not None
        try:
            assert (
                "holds no build; run python -m site_build build; it is" in process.stdout.readline()
            )
            for number in (1, 2):
                journey.build(number)
                assert process.stdout.readline().startswith(f"build-{number:04} is pushed")
        finally:
            process.terminate()
        assert process.wait(patience()) == -signal.SIGTERM


@pytest.mark.size("test")
@pytest.mark.parametrize("is_open", [True, False])
def test_a_bucket_that_everybody_can_read_is_noticed(
    journey: Journey, monkeypatch: pytest.MonkeyPatch, *, is_open: bool
) -> None:
    """One that is closed answers with an error, and a folder has no public."""
    with running_rclone(journey.folder, free_port(), is_open=is_open) as bucket:
        bucket.set_environment(monkeypatch)
        journey.build(1)
        journey.url = f"{bucket.url}/journal"
        journey.push()
        assert answers_anonymously(journey.url) is is_open
        journey.url = "s3://another/journal"
        with pytest.raises(BucketError, match="there is no bucket of this name: make it"):
            journey.push()
    assert not answers_anonymously(journey.url)
    assert not answers_anonymously(str(journey.folder))
    assert not answers_anonymously("az://container")  # whose account is not set
