"""A CDN in front: pages that it may keep, and answers that it must never keep."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from edge_api.db.internal_tables import WEBHOOK_DELIVERIES
from edge_api.db.query import Insert
from edge_api.journal.builds import BuildManager
from edge_api.schema.environment import SettingsError
from edge_api.settings import read_settings
from edge_api.webhooks.endpoints import SITE_CHANGED, Endpoints
from edge_api.webhooks.purges import Purges
from tests.edge.site.conftest import RawClient
from tests.edge.small_builds import make_post, point_at, write_build
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.one_engine

KEPT = "public, max-age=0, must-revalidate, s-maxage=120"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
READINESS = "/api/public/v1/readiness"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_only_the_spellings_of_a_purge_are_kept(
    make_edge: Any, tmp_path: Path, method: str
) -> None:
    """The site links two spellings of some addresses; each other finds its file, unkept."""
    page = "tags/c++/index.html"
    point_at(tmp_path, write_build(tmp_path, "build-0001", [make_post("a")], {page: "c"}))
    targets = {
        "/journal/a/": KEPT,
        "/tags/c++/": KEPT,
        "/tags/c%2B%2B/": KEPT,
        **dict.fromkeys(
            ("/journal/%61/", "/journal/a/?", "/journal/a/?x", "/tags/c%2b%2b/", "/tags/c+%2B/"),
            "private, no-cache",
        ),
    }
    async with make_edge(BUILD_DIR=str(tmp_path), CDN_SECONDS="120") as edge:
        host = urlsplit(edge.url)
        client = RawClient(str(host.hostname), int(host.port or 0))
        answers = {each: await client.send(each, method=method) for each in targets}

    assert {each.status for each in answers.values()} == {200}
    assert {path: each.headers["Cache-Control"] for path, each in answers.items()} == targets


async def test_a_moved_page_is_redirected_without_being_kept(
    make_edge: Any, tmp_path: Path
) -> None:
    """No purge names a former address."""
    made = write_build(tmp_path, "build-0001", [make_post("a")], moved={"/old/": "/journal/a/"})
    point_at(tmp_path, made)
    async with make_edge(BUILD_DIR=str(tmp_path), CDN_SECONDS="120") as edge:
        status, headers = await ask(edge, "/old/")

    assert (status, headers["Cache-Control"]) == (308, "private, max-age=300")


async def ask(edge: Any, path: str, accept: str = BROWSER) -> tuple[int, dict[str, str]]:
    """Return status and headers of an answer, redirects not followed."""
    headers = {"Accept": accept}
    async with edge.session.get(edge.url + path, headers=headers, allow_redirects=False) as answer:
        await answer.read()
        return answer.status, {**answer.headers}


async def test_pages_and_feeds_are_kept(make_edge: Any, build_dir: Path) -> None:
    """By shared caches for the time of the setting, by browsers as without it."""
    async with make_edge(BUILD_DIR=str(build_dir), CDN_SECONDS="120") as edge:
        found = {
            path: (await ask(edge, path))[1]["Cache-Control"]
            for path in (
                "/",
                "/journal/a/",
                "/journal/a/index.md",
                "/plain/",
                "/feed.xml",
                "/sitemap.xml",
                "/images/edge.png",
                "/theme/style.0123456789ab.css",
            )
        }

    shared = "public, max-age=300, must-revalidate, s-maxage=120"
    assert found == {
        **dict.fromkeys(("/", "/journal/a/", "/journal/a/index.md", "/plain/"), KEPT),
        **dict.fromkeys(("/feed.xml", "/sitemap.xml", "/images/edge.png"), shared),
        "/theme/style.0123456789ab.css": "public, max-age=31536000, immutable",
    }


async def test_markdown_at_the_address_of_a_page_is_never_kept(
    make_edge: Any, build_dir: Path
) -> None:
    """A cache that ignores `Vary` would give it to browsers; the page names its own address."""
    async with make_edge(BUILD_DIR=str(build_dir), CDN_SECONDS="120") as edge:
        _, page = await ask(edge, "/journal/a/")
        _, markdown = await ask(edge, "/journal/a/", "text/markdown")

    assert (page["Cache-Control"], page["Vary"]) == (KEPT, "Accept, Accept-Encoding")
    assert '</journal/a/index.md>; rel="alternate"; type="text/markdown"' in page["Link"]
    assert markdown["Content-Type"].startswith("text/markdown")
    assert markdown["Cache-Control"] == "private, no-store"
    assert markdown["Vary"] == "Accept, Accept-Encoding"


async def test_what_is_no_public_page_is_never_kept(make_edge: Any) -> None:
    """Neither what is for one person or one moment, nor an address that no purge would name."""
    async with make_edge(CDN_SECONDS="120") as edge:
        slug = edge.service[BuildManager].build().posts.entries[0].cursor.slug
        page = f"/journal/{slug}/"
        paths = {
            "/missing/": 404,
            "/theme/gone.0123456789ab.css": 404,
            page.rstrip("/"): 301,
            f"{page}?utm_source=x": 200,
            "/feed.xml?x": 200,
            "/contact/": 200,
            f"/contact/?about={slug}": 200,
            "/contact/thanks/": 200,
            "/docs/": 200,
            "/search?q=words": 200,
            "/shared/0123456789012345678901/": 404,
            "/desk/": 303,
            "/desk/sign-in/": 200,
            "/unsubscribe?token=x": 200,
            "/api/public/v1/posts": 401,
            "/api/public/v1/leads": 401,
            READINESS: 200,
            "/api/public/nothing": 404,
        }
        answers = {path: await ask(edge, path) for path in paths}
        async with edge.ask("GET", "/api/public/v1/posts", await edge.key("posts:read")) as posts:
            read = posts.headers["Cache-Control"]

    assert {path: status for path, (status, _) in answers.items()} == paths
    caching = {path: headers["Cache-Control"] for path, (_, headers) in answers.items()}
    caching["posts"] = read
    assert caching.pop("/search?q=words") == "public, no-cache"
    assert {path: each for path, each in caching.items() if not is_not_kept(each)} == {}
    assert caching[page.rstrip("/")] == "private, max-age=300"
    assert caching[f"{page}?utm_source=x"] == caching["/missing/"] == "private, no-cache"


def is_not_kept(caching: str) -> bool:
    """Return whether no shared cache may keep an answer (RFC 9111, section 5.2.2)."""
    is_refused = any(word in caching for word in ("private", "no-store"))
    return is_refused and not any(word in caching for word in ("public", "s-maxage"))


async def test_more_than_five_minutes_need_purges_that_work(
    make_edge: Any, build_dir: Path
) -> None:
    """Without an endpoint that hears of changes, or with a failed delivery, it is five minutes."""

    async def look(edge: Any) -> tuple[str, str]:
        """Return what readiness says of the CDN, and the seconds that a page gives it."""
        async with edge.session.get(edge.url + READINESS) as answer:
            check = json.loads(await answer.read())["checks"]["cdn"]
        _, headers = await ask(edge, "/")
        return check["status"], headers["Cache-Control"].rpartition("=")[2]

    async with make_edge(BUILD_DIR=str(build_dir), CDN_SECONDS="3600") as edge:
        endpoints, purges = edge.service[Endpoints], edge.service[Purges]
        assert await look(edge) == ("warn", "300")
        await endpoints.add("https://93.184.216.34/leads")
        assert await look(edge) == ("warn", "300")
        row = await endpoints.add("https://93.184.216.34/purge", [SITE_CHANGED])
        assert await look(edge) == ("warn", "300")
        await purges.refresh()
        assert await look(edge) == ("pass", "3600")
        given = {
            "endpoint_id": row["id"],
            "event": SITE_CHANGED,
            "subject_id": row["id"],
            "body": "{}",
        }
        failed = make_row(WEBHOOK_DELIVERIES, {**given, "last_answer": "answered 500"})
        await edge.service.store.run(Insert(WEBHOOK_DELIVERIES, [failed]))
        await purges.refresh()
        assert await look(edge) == ("warn", "300")
        await endpoints.remove(row["id"])
        await purges.refresh()
        assert await look(edge) == ("warn", "300")


@pytest.mark.parametrize("seconds", ["-1", "86401", "an hour"])
def test_other_values_are_refused(seconds: str) -> None:
    """The message says what the setting takes."""
    with pytest.raises(SettingsError, match="CDN_SECONDS: must be a number of seconds from 0"):
        read_settings({"CDN_SECONDS": seconds}, dotenv=None)
