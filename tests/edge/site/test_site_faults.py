"""The built site when something is wrong: paths that are attacks, files and builds that are bad."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from edge_api.journal.builds import BuildManager
from edge_api.schema.index import INDEX_FILE
from tests.edge.site.conftest import LARGE, RawClient
from tests.edge.small_builds import make_post, point_at, write_build

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

READINESS = "/api/public/v1/readiness"
PAGE = "/journal/a/"
ATTACKS = [
    "/../edge.db",
    "/../../etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/edge.db",
    "/%252e%252e/edge.db",
    "/%252e%252e%252fedge.db",
    "/..%5c..%5cedge.db",
    "/..\\..\\edge.db",
    "/journal/a/../../../edge.db",
    "/journal/..%00/",
    "/index.html%00.png",
    "/%00",
    "/%ff%fe",
    "/%c0%ae%c0%ae/edge.db",
    "/%",
    "/%zz",
    "/.env",
    "/%2eenv",
    "/./.env",
    "/.git/config",
    "/posts.json",
    "/../posts.json",
    "/site/index.html",
    "//edge.test/",
    "//edge.test/%2e%2e",
    "///posts.json",
    "/journal//secret/",
    "/journal/a/index.html.br",
    "/journal/a/index.html.gz",
    "/journal/a/index.html/",
    "/journal/a/index.html/..",
    "/images/edge.png/",
    "/secret.txt",
    "/up/posts.json",
    "/" + "a" * 4000,
    "/" + "../" * 1000,
    "/~root",
    "/C:/edge.db",
    "/file:///edge.db",
    "/journal/a/;x=1",
    "/JOURNAL/A/",
]


@pytest.mark.parametrize("target", ATTACKS)
async def test_no_path_leaves_the_site(raw: RawClient, build_dir: Path, target: str) -> None:
    """No spelling of a path reaches a file that the build did not publish."""
    site = build_dir / "build-0001" / "site"
    (site / "secret.txt").symlink_to(build_dir / "build-0001" / "posts.json")
    (site / "up").symlink_to(build_dir / "build-0001")
    answer = await raw.send(target)

    assert answer.status in (400, 404)
    assert b"build_id" not in answer.body
    assert b"SECRET" not in answer.body
    assert "Location" not in answer.headers


@pytest.mark.parametrize(
    ("target", "page"),
    [("///", "/"), ("//journal/a/", "/journal/a/"), ("/journal//a", "/journal/a/")],
)
async def test_slashes_written_twice_lead_to_the_page(
    raw: RawClient, target: str, page: str
) -> None:
    """Other systems answer there and link so; the redirect is a path of this site, never a host."""
    answer = await raw.send(target)

    assert answer.status == 301
    assert answer.headers["Location"] == page


async def test_a_target_beyond_ascii_is_no_trouble(raw: RawClient) -> None:
    """Raw bytes in a target are refused or not found."""
    for target in ("/\u672c/".encode(), b"/\xff", b"/\x7f", b"/a\tb"):
        assert (await raw.send(target)).status in (200, 400, 404)


async def test_links_planted_before_the_start_are_not_served(
    make_edge: Any, build_dir: Path, tmp_path: Path
) -> None:
    """A symbolic link in a build is no file of the site, wherever it leads."""
    (tmp_path / "outside.txt").write_text("SECRET")
    (build_dir / "build-0001" / "site" / "link.txt").symlink_to(tmp_path / "outside.txt")
    async with make_edge(BUILD_DIR=str(build_dir)) as edge, edge.ask("GET", "/link.txt") as answer:
        assert answer.status == 404


async def test_a_file_that_cannot_be_read(site: Any, build_dir: Path) -> None:
    """A file that is gone from the current build is 503 with a sentence; all else is served."""
    (build_dir / "build-0001" / "site" / "llms.txt").unlink()
    async with site.ask("GET", "/llms.txt") as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert "cannot be read" in (await answer.json())["error"]
    async with site.ask("GET", "/") as answer:
        assert answer.status == 200


async def test_a_large_file_that_shrinks_ends_the_connection(site: Any, build_dir: Path) -> None:
    """A file that turns out shorter than announced is never passed off as whole."""
    async with site.ask("HEAD", "/images/large.bin") as answer:
        assert answer.status == 200
    path = build_dir / "build-0001" / "site" / "images" / "large.bin"
    path.write_bytes(LARGE[:5000])
    with pytest.raises(ClientError):
        await (await site.ask("GET", "/images/large.bin")).read()
    async with site.ask("GET", "/") as answer:
        assert answer.status == 200


async def test_a_client_that_leaves_is_no_trouble(
    make_edge: Any, build_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that goes away in the middle of a large file causes no error in the log."""
    with (build_dir / "build-0001" / "site" / "huge.bin").open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    async with make_edge(BUILD_DIR=str(build_dir)) as edge:
        async with ClientSession() as session, session.get(f"{edge.url}/huge.bin") as answer:
            await answer.content.read(10)
            answer.close()
        async with edge.ask("GET", "/") as answer:
            assert answer.status == 200
    assert caplog.records == []


async def test_without_a_build_pages_say_so(make_edge: Any, tmp_path: Path) -> None:
    """Before the first build every page is 503 with a sentence, and the API is there."""
    async with make_edge(BUILD_DIR=str(tmp_path / "none")) as edge:
        async with edge.ask("GET", "/") as answer:
            assert answer.status == 503
            assert (await answer.json())["error"] == "The journal is not built yet"
        async with edge.ask("GET", "/api/public/ping") as answer:
            assert answer.status == 200


@pytest.mark.parametrize("damage", ["format", "cut", "gone"])
async def test_the_pages_of_a_build_whose_index_cannot_be_read_are_served(
    make_edge: Any, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a rollback to a version that reads another format; what needs the index is 503."""
    former = f"{PAGE}former/"
    page = {"journal/former/index.html": "a page that has moved"}
    folder = write_build(tmp_path, "build-0001", [make_post("a")], page, moved={former: PAGE})
    index = folder / INDEX_FILE
    match damage:
        case "format":
            index.write_bytes(index.read_bytes().replace(b'"format": 2', b'"format": 99'))
        case "cut":
            index.write_bytes(index.read_bytes()[:-40])
        case "gone":
            index.unlink()
    point_at(tmp_path, folder)
    async with make_edge(BUILD_DIR=str(tmp_path)) as edge:
        key = await edge.key()
        for path in ("/", "/journal/a/", "/journal/former/"):
            async with edge.ask("GET", path) as answer:
                assert answer.status == 200, path
        async with edge.ask("GET", "/journal/a") as answer:
            assert (answer.status, answer.headers["Location"]) == (301, "/journal/a/")
        async with edge.ask("GET", "/nowhere/") as answer:
            assert answer.status == 404
        for path in ("/api/public/v1/posts", "/api/public/v1/posts?q=words", "/search?q=words"):
            async with edge.ask("GET", path, key) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (503, "5"), path
                assert "The journal's index cannot be read" in await answer.text()
        async with edge.ask("GET", READINESS) as answer:
            check = (await answer.json())["checks"]["index"]
        builds = edge.service[BuildManager]
        builds._retry_at = 0.0  # noqa: SLF001  as after the half minute between two looks
        await builds.refresh()
        messages = [line.getMessage() for line in caplog.records if "index" in line.getMessage()]
        point_at(tmp_path, write_build(tmp_path, "build-0002", [make_post("b")]))
        await builds.refresh()
        for path, status in (("/journal/a/", 404), ("/journal/b/", 200)):
            async with edge.ask("GET", path) as answer:
                assert answer.status == status

    assert (check["status"], messages) == ("fail", [check["error"]])
    assert check["error"].startswith("the newest build is not served: the posts index ")
    assert check["error"].endswith("served meanwhile, but nothing that needs the index")


@pytest.mark.parametrize("path", ["/", "/journal/a", "/nothing", "/images/large.bin", "/contact/"])
async def test_an_https_site_demands_https(make_edge: Any, build_dir: Path, path: str) -> None:
    """Every answer of an https origin says that the way to it must be https, and no other does."""
    name = "Strict-Transport-Security"
    for url, demanded in (("https://journal.test", True), ("http://journal.test", False)):
        async with (
            make_edge(BUILD_DIR=str(build_dir), SITE_URL=url) as edge,
            edge.ask("GET", path) as answer,
        ):
            assert (name in answer.headers) is demanded


async def test_a_site_without_a_404_page(make_edge: Any, build_dir: Path) -> None:
    """A build without that page answers a missing one with an Error."""
    (build_dir / "build-0001" / "site" / "404.html").unlink()
    async with make_edge(BUILD_DIR=str(build_dir)) as edge, edge.ask("GET", "/nothing") as answer:
        assert answer.status == 404
        assert await answer.json() == {"error": "There is no page at this address"}
