"""Writing on bad days: full disks, two browsers, damaged files, links, and wrong clocks."""

import asyncio
import base64
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from edge_api.schema.writing import MAX_PICTURE_BYTES
from tests.edge.conftest import EdgeMaker, RunningEdge, error_of
from tests.edge.engines import ON_SQLITE
from tests.edge.writing_process import writing

pytestmark = ON_SQLITE
PATH = "/api/public/v1/sources"
DRAFT = "# Two winters\n\nThe store has stood.\n"
LONG = f"# Two winters\n\n{'word ' * 20_000}\n"


@pytest.fixture
async def edge(make_edge: EdgeMaker, tmp_path: Path) -> AsyncIterator[RunningEdge]:
    """Return an edge whose journal can be written; nobody writes yet."""
    (tmp_path / "content/posts").mkdir(parents=True)
    async with make_edge(WRITING="on", BUILD_DIR=str(tmp_path / "build")) as running:
        yield running


async def save(edge: RunningEdge, key: str, markdown: str, version: str = "") -> tuple[int, Any]:
    """Save a draft; return the status and the body."""
    headers = {"If-Match": f'"{version}"'} if version else {}
    async with edge.ask("POST", PATH, key, json={"markdown": markdown}, headers=headers) as answer:
        return answer.status, await answer.json()


async def read(edge: RunningEdge, key: str) -> str:
    """Return the text of the draft."""
    async with edge.ask("GET", f"{PATH}/two-winters", key) as answer:
        assert answer.status == 200, await answer.text()
        return str((await answer.json())["source"]["markdown"])


def list_partial(folder: Path) -> list[Path]:
    """Return the parts of files that were left."""
    return [*folder.rglob("*.partial")]


async def test_two_browsers_save_at_once(edge: RunningEdge, tmp_path: Path) -> None:
    """One is stored; each other one is told, and what it typed is compared with what is there."""
    key = await edge.key("posts:draft")
    with writing(tmp_path, tmp_path / "content", tmp_path / "build"):
        texts = [f"{DRAFT}By browser {number}.\n" for number in range(6)]
        begun = await asyncio.gather(*(save(edge, key, text) for text in texts))
        assert sorted(status for status, _ in begun) == [200, *[428] * 5]
        version = next(body["source"]["version"] for status, body in begun if status == 200)
        again = [f"{text}And more.\n" for text in texts]
        saved = await asyncio.gather(*(save(edge, key, text, version) for text in again))
        assert sorted(status for status, _ in saved) == [200, *[412] * 5]
        kept = next(body["source"]["markdown"] for status, body in saved if status == 200)
        assert await read(edge, key) == kept


async def test_a_full_disk_changes_nothing(edge: RunningEdge, tmp_path: Path) -> None:
    """What does not fit is refused in words, and what was there stays whole; the rest is stored."""
    key = await edge.key("posts:draft")
    limit = ("prlimit", f"--fsize={64 * 1024}")
    with writing(tmp_path, tmp_path / "content", tmp_path / "build", before=limit):
        _, begun = await save(edge, key, DRAFT)
        status, body = await save(edge, key, LONG, begun["source"]["version"])
        assert status == 503
        assert "File too large" in body["error"]
        assert await read(edge, key) == begun["source"]["markdown"]
        status, _ = await save(edge, key, f"{DRAFT}More.\n", begun["source"]["version"])
        assert status == 200
        assert list_partial(tmp_path) == []


def damage_spool(folder: Path, secret: Path) -> None:
    """Put into the spool what no edge would."""
    (folder / "a.request").write_text("{")
    (folder / "b.request").write_text('{"operation": "erase", "author": "", "may_publish": true}')
    (folder / "c.request").mkdir()
    (folder / "d.request").symlink_to(secret)
    (folder / "e.request").symlink_to(folder)
    os.mkfifo(folder / "f.request")
    (folder / "g.request").write_bytes(b"\xff" * 100_000)
    (folder / "withdrawn.json").write_text("[")
    (folder / "intent.json").write_text('{"path": "../secret", "version": "", "pictures": []}')


async def test_damaged_records_stop_nobody(edge: RunningEdge, tmp_path: Path) -> None:
    """They are dropped, links among them unread, and the next request is answered."""
    key, secret = await edge.key("posts:draft", "posts:publish"), tmp_path / "secret"
    secret.write_text("secret")
    with writing(tmp_path, tmp_path / "content", tmp_path / "build"):
        damage_spool(tmp_path / "spool", secret)
        status, begun = await save(edge, key, DRAFT)
        assert status == 200
        version = {"If-Match": f'"{begun["source"]["version"]}"'}
        where = f"{PATH}/two-winters"
        async with edge.ask("POST", f"{where}/publish", key, json={}, headers=version) as answer:
            version = {"If-Match": answer.headers["ETag"]}
            assert answer.status == 200
        async with edge.ask("POST", f"{where}/withdraw", key, headers=version) as answer:
            assert answer.status == 200
        assert not [*(tmp_path / "spool").glob("*.request")]
    assert secret.read_text() == "secret"


@pytest.mark.parametrize("name", ["two-winters.md", "two-winters.json"])
async def test_links_among_the_drafts_are_not_followed(
    edge: RunningEdge, tmp_path: Path, name: str
) -> None:
    """Neither to read a file of elsewhere, nor to write there."""
    key, secret = await edge.key("posts:draft"), tmp_path / "secret"
    secret.write_text("secret")
    with writing(tmp_path, tmp_path / "content", tmp_path / "build"):
        _, begun = await save(edge, key, DRAFT)
        (tmp_path / "drafts" / name).unlink()
        (tmp_path / "drafts" / name).symlink_to(secret)
        _, body = await save(edge, key, f"{DRAFT}More.\n", begun["source"]["version"])
        assert "secret" not in str(body)
        async with edge.ask("GET", f"{PATH}/two-winters", key) as answer:
            assert "secret" not in (await answer.text()).replace(str(secret), "")
    assert secret.read_text() == "secret"


async def test_a_picture_of_30_megabytes_is_refused(edge: RunningEdge, tmp_path: Path) -> None:
    """The answer has the limit, and so has that for one which is only just too large."""
    key = await edge.key("posts:draft")
    with writing(tmp_path, tmp_path / "content", tmp_path / "build"):
        for size, status in ((30_000_000, 413), (MAX_PICTURE_BYTES + 1, 400)):
            data = BytesIO(b'{"name": "x.jpg", "data": "%b"}' % base64.b64encode(bytes(size)))
            headers = {"Content-Type": "application/json", "Expect": "100-continue"}
            async with edge.ask(
                "POST", f"{PATH}/pictures", key, data=data, headers=headers
            ) as answer:
                assert answer.status == status
                said = await error_of(answer)
                assert re.search(r"\d{2}", said), said
    assert not (tmp_path / "drafts/images").exists()


async def test_a_clock_that_is_set_back_hides_nothing(make_edge: EdgeMaker, tmp_path: Path) -> None:
    """What is published then is public then, though it was begun later."""
    (tmp_path / "content/posts").mkdir(parents=True)
    ahead = [timedelta(days=0)]
    settings = {"WRITING": "on", "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(lambda: datetime.now(UTC) + ahead[0], **settings) as edge:
        with writing(tmp_path, tmp_path / "content", tmp_path / "build"):
            key = await edge.key("posts:draft", "posts:publish")
            _, body = await save(edge, key, DRAFT)
            ahead[0] = timedelta(days=-2)
            for act in ("publish", "withdraw", "publish"):
                version = {"If-Match": f'"{body["source"]["version"]}"'}
                where = f"{PATH}/two-winters/{act}"
                async with edge.ask("POST", where, key, json={}, headers=version) as answer:
                    assert answer.status == 200, await answer.text()
                    body = await answer.json()
                ahead[0] -= timedelta(hours=1)
            assert body["source"]["state"] == "published"
