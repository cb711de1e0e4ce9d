"""The audit log of writing: who wrote what, with slug and version, and never the text."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edge_api.auth.actor import ANYONE
from edge_api.db.query import Read
from edge_api.db.tables import AUDIT_LOG
from edge_api.schema.writing import WriteRequest
from edge_api.writing.service import Writing
from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.desk.conftest import Browser
from tests.edge.engines import ON_SQLITE
from tests.edge.mcp.agents import MODERN, Agent
from tests.edge.writing.attacks import make_journal, picture
from tests.edge.writing.test_writing_http import DRAFT, PATH
from tests.edge.writing_process import writing

pytestmark = ON_SQLITE
WORD = "quizzical"
TEXT = f"{DRAFT}\nA {WORD} text.\n"


@pytest.fixture
async def writable(make_edge: EdgeMaker, tmp_path: Path) -> AsyncIterator[RunningEdge]:
    """Return an edge whose journal can be written, and run the process that writes."""
    (tmp_path / "content/posts").mkdir(parents=True)
    folders = {"CONTENT_DIR": str(tmp_path / "content"), "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(WRITING="on", **folders) as running:
        with writing(tmp_path, tmp_path / "content", tmp_path / "build"):
            yield running


async def read_entries(edge: RunningEdge) -> list[dict[str, Any]]:
    """Return the entries about posts, the oldest first."""
    (found,) = await edge.service.store.run(Read(AUDIT_LOG))
    rows = [row for row in found.rows if row["table_name"] == "posts"]
    return sorted(rows, key=lambda row: row["id"])


async def save(edge: RunningEdge, key: str, text: str = TEXT) -> dict[str, Any]:
    """Save a draft; return the source."""
    async with edge.ask("POST", PATH, key, json={"markdown": text}) as answer:
        assert answer.status == 200, await answer.text()
        return dict((await answer.json())["source"])


async def test_each_write_is_an_entry_with_who_slug_and_version(writable: RunningEdge) -> None:
    """Reading, checking and what was refused are none; the desk says each in a sentence."""
    key, token = await writable.key("posts:draft"), await writable.token("mcp", "posts:draft")
    source = await save(writable, key)
    agent = Agent(writable, token, MODERN)
    again = await agent.call("save_draft", markdown=f"# Other\n\n{WORD}", slug="other")
    sent = {"name": "store.png", "data": picture("red")}
    async with writable.ask("POST", f"{PATH}/pictures", key, json=sent) as answer:
        assert answer.status == 201
    async with writable.ask("POST", PATH, key, json={"markdown": f"{TEXT}More."}) as answer:
        assert answer.status == 428
    async with writable.ask("POST", f"{PATH}/check", key, json={"markdown": TEXT}) as answer:
        assert answer.status == 200
    owner = await writable.key("posts:publish")
    versions = [source["version"]]
    for step, body in (
        ("publish", {"at": "2089-01-01T00:00:00Z"}),
        ("publish", {}),
        ("withdraw", {}),
    ):
        named = {"If-Match": f'"{versions[-1]}"'}
        where = f"{PATH}/two-winters/{step}"
        async with writable.ask("POST", where, owner, json=body, headers=named) as answer:
            assert answer.status == 200, await answer.text()
            versions.append((await answer.json())["source"]["version"])

    entries = await read_entries(writable)
    assert [(each["verb"], each["columns"]) for each in entries] == [
        ("save", f"two-winters,{versions[0]}"),
        ("save", f"other,{again['structuredContent']['source']['version']}"),
        ("picture", "/images/store.png"),
        ("schedule", f"two-winters,{versions[1]}"),
        ("publish", f"two-winters,{versions[2]}"),
        ("withdraw", f"two-winters,{versions[3]}"),
    ]
    assert WORD not in json.dumps(entries)
    assert len({each["actor"] for each in entries}) == 3
    desk = await Browser(writable).sign_in(await writable.key())
    said = (await desk.get("/desk/audit/")).said
    for sentence in (
        f"Version {versions[0][:7]} of the post two-winters was saved, by the key test",
        "The picture /images/store.png was added, by the key test",
        f"Version {versions[1][:7]} of the post two-winters was scheduled, by the key test",
        f"Version {versions[2][:7]} of the post two-winters was published, by the key test",
        f"Version {versions[3][:7]} of the post two-winters was taken off the site, by the key",
    ):
        assert sentence in said


async def test_what_the_desk_does_is_the_owners(make_edge: EdgeMaker, tmp_path: Path) -> None:
    """A request without an actor is the owner's; no entry has the secret address of a share."""
    folders = {
        "CONTENT_DIR": str(make_journal(tmp_path)),
        "BUILD_DIR": str(tmp_path / "build"),
        "SITE_URL": "https://journal.test",
    }
    async with make_edge(WRITING="on", **folders) as edge:
        with writing(tmp_path, tmp_path / "content", tmp_path / "build"):
            source = await save(edge, await edge.key("posts:draft"))
            done = {}
            for operation in ("preview", "share", "bin"):
                given = {
                    "operation": operation,
                    "author": "",
                    "may_publish": True,
                    "asked_at": edge.service.clock(),
                    "slug": source["slug"],
                    "base": source["version"],
                }
                request = WriteRequest.model_validate(given)
                done[operation] = await edge.service[Writing].ask(request)
            _, *entries = await read_entries(edge)
    assert [(each["actor"], each["verb"]) for each in entries] == [
        ("owner", "share"),
        ("owner", "bin"),
    ]
    assert {each["columns"] for each in entries} == {f"two-winters,{source['version']}"}
    assert done["share"].path
    assert done["share"].path not in json.dumps(entries)


async def test_a_write_that_cannot_be_audited_is_answered_as_done(
    writable: RunningEdge, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has who, what and which version, so that nothing is lost with the entry."""
    key = await writable.key("posts:draft")
    with sqlite3.connect(tmp_path / "edge.db") as store:
        store.execute(
            "CREATE TRIGGER full BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    source = await save(writable, key)
    assert await read_entries(writable) == []
    assert f"two-winters,{source['version']}" in caplog.text
    assert WORD not in caplog.text
    assert (tmp_path / "drafts/two-winters.md").exists()


async def test_a_caller_that_goes_away_is_audited(writable: RunningEdge) -> None:
    """The watcher does what it was asked, whoever waits for the answer."""
    request = WriteRequest(
        operation="save",
        author="x",
        may_publish=False,
        asked_at=writable.service.clock(),
        markdown=TEXT,
    )
    asked = asyncio.create_task(writable.service[Writing].ask(request, ANYONE))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    found: list[dict[str, Any]] = []

    async def look() -> None:
        while not found:
            found.extend(await read_entries(writable))
            await asyncio.sleep(0.01)

    await asyncio.wait_for(look(), 60)
    assert found[0]["verb"] == "save"
