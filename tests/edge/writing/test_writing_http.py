"""Writing through the API and MCP, with the watcher's process behind the spool."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from edge_api.http import body as body_module
from edge_api.schema.writing import MAX_TEXT_BYTES
from tests.edge.conftest import EdgeMaker, RunningEdge, error_of
from tests.edge.engines import ON_SQLITE
from tests.edge.mcp.agents import MODERN, Agent

pytestmark = ON_SQLITE
PATH = "/api/public/v1/sources"
DRAFT = "# Two winters\n\nThe store has stood.\n"


async def test_a_draft_is_saved_read_and_published(writable: RunningEdge, tmp_path: Path) -> None:
    """Each step names the version that the step before gave."""
    agent = await writable.key("posts:draft")
    async with writable.ask("POST", PATH, agent, json={"markdown": DRAFT}) as answer:
        assert answer.status == 200, await answer.text()
        version = answer.headers["ETag"]
        source = (await answer.json())["source"]
    assert version == f'"{source["version"]}"'
    assert source["author"] == "test"

    async with writable.ask("GET", f"{PATH}/two-winters", agent) as answer:
        assert (await answer.json())["source"] == source
    owner = await writable.key("posts:publish")
    where = f"{PATH}/two-winters/publish"
    async with writable.ask("POST", where, owner, json={}) as answer:
        assert answer.status == 428
    async with writable.ask("POST", where, owner, json={}, headers={"If-Match": version}) as answer:
        assert answer.status == 200, await answer.text()
    assert "status" not in (tmp_path / "content/posts/two-winters.md").read_text()


async def test_a_stale_version_is_refused_with_the_present_one(writable: RunningEdge) -> None:
    """The answer has the present version, so that it can be read and merged."""
    key = await writable.key("posts:draft")
    async with writable.ask("POST", PATH, key, json={"markdown": DRAFT}) as answer:
        version = answer.headers["ETag"]
    changed = {"slug": "two-winters", "markdown": f"{DRAFT}More."}
    stale = {"If-Match": f'"{"0" * 40}"'}
    async with writable.ask("POST", PATH, key, json=changed, headers=stale) as answer:
        assert (answer.status, answer.headers["ETag"]) == (412, version)


@pytest.mark.parametrize("scope", ["posts:read", "leads:read", "admin:write"])
async def test_other_scopes_open_no_draft(writable: RunningEdge, scope: str) -> None:
    """Drafts are for those who write."""
    key = await writable.key(scope)
    async with writable.ask("GET", PATH, key) as answer:
        assert answer.status == 403


async def test_who_drafts_cannot_publish(writable: RunningEdge) -> None:
    """The scope is refused before the watcher is asked."""
    key = await writable.key("posts:draft")
    async with writable.ask("POST", f"{PATH}/x/publish", key, json={}) as answer:
        assert answer.status == 403
        assert "posts:publish" in await error_of(answer)


async def test_a_picture_is_stored_without_its_place(writable: RunningEdge, tmp_path: Path) -> None:
    """The stored file has no EXIF, and its path can be written into a text."""
    file, exif = BytesIO(), Image.Exif()
    exif[0x010E] = "the place"
    Image.new("RGB", (40, 30), "red").save(file, "JPEG", exif=exif)
    picture = {"name": "My Store.JPG", "data": base64.b64encode(file.getvalue()).decode()}
    key = await writable.key("posts:draft")
    async with writable.ask("POST", f"{PATH}/pictures", key, json=picture) as answer:
        assert answer.status == 201, await answer.text()
        assert (await answer.json())["path"] == "/images/my-store.jpg"
    stored = (tmp_path / "drafts/images/my-store.jpg").read_bytes()
    assert b"the place" not in stored


async def test_a_file_that_is_no_picture_is_refused(writable: RunningEdge) -> None:
    """A drawing with scripts, or any bytes, are named as what they are not."""
    key = await writable.key("posts:draft")
    for data in (b"<svg onload='x'/>", b"", b"\xff\xd8\xff"):
        picture = {"name": "x.jpg", "data": base64.b64encode(data).decode()}
        async with writable.ask("POST", f"{PATH}/pictures", key, json=picture) as answer:
            assert answer.status == 400
            assert "JPEG" in await error_of(answer)


async def test_an_agent_writes_by_mcp(writable: RunningEdge) -> None:
    """The tools have the names of the operations."""
    agent = Agent(writable, await writable.token("mcp", "posts:draft"), MODERN)
    names = {each["name"] for each in (await agent.ask("tools/list")).result["tools"]}
    assert {"check_post", "list_sources", "get_source", "save_draft", "add_picture"} <= names
    assert not {"publish_post", "withdraw_post"} & names
    saved = await agent.call("save_draft", markdown=DRAFT)
    assert saved["structuredContent"]["source"]["state"] == "draft"


@pytest.mark.parametrize("letter", ["a", "\n", "ж"])
async def test_an_agent_saves_a_text_of_the_longest_size(
    writable: RunningEdge, letter: str
) -> None:
    """One MiB of letters, of line ends that JSON escapes, and of letters of two bytes."""
    agent = Agent(writable, await writable.token("mcp", "posts:draft"), MODERN)
    head = "---\ntitle: Long\nslug: long\ndate: 2025-11-20T09:30:00Z\nstatus: draft\n---\n\nx"
    text = head + letter * ((MAX_TEXT_BYTES - len(head)) // len(letter.encode()))

    saved = await agent.call("save_draft", markdown=text)
    assert not saved.get("isError"), saved["content"]
    longer = await agent.call("save_draft", slug="longer", markdown=f"{text}xx")
    assert longer["isError"]
    assert str(MAX_TEXT_BYTES) in longer["content"][0]["text"]


async def test_a_picture_may_take_longer_than_other_bodies(
    writable: RunningEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow line takes more than the usual ten seconds for a large one."""
    monkeypatch.setattr(body_module, "BODY_TIMEOUT_SECONDS", 0.2)
    file = BytesIO()
    Image.new("RGB", (4, 3), "red").save(file, "PNG")
    picture = {"name": "slow.png", "data": base64.b64encode(file.getvalue()).decode()}
    body = json.dumps(picture).encode()

    async def drip() -> AsyncIterator[bytes]:
        yield body[:20]
        await asyncio.sleep(1)
        yield body[20:]

    key, kind = await writable.key("posts:publish"), {"Content-Type": "application/json"}
    for path, status in (("pictures", 201), ("x/publish", 408)):
        where = f"{PATH}/{path}"
        async with writable.ask("POST", where, key, data=drip(), headers=kind) as answer:
            assert answer.status == status, await answer.text()


async def test_a_refusal_names_the_faults_of_the_text(writable: RunningEdge) -> None:
    """REST and MCP have line and column of what keeps a draft from being published."""
    text = f"{DRAFT}\n<form action='/desk/'>x</form>\n"
    key = await writable.key("posts:publish")
    async with writable.ask("POST", PATH, key, json={"markdown": text}) as answer:
        version = (await answer.json())["source"]["version"]
    where, named = f"{PATH}/two-winters/publish", {"If-Match": f'"{version}"'}
    async with writable.ask("POST", where, key, json={}, headers=named) as answer:
        body = await answer.json()
        assert answer.status == 409
    fault = next(each for each in body["findings"] if "<form" in each["message"])
    assert (fault["line"], fault["severity"]) == (10, "error")
    assert str(fault["line"]) in body["error"]

    agent = Agent(writable, await writable.token("mcp", "posts:publish"), MODERN)
    refused = await agent.call("publish_post", slug="two-winters", version=version)
    assert refused["isError"]
    assert refused["structuredContent"] == body

    async with writable.ask("GET", f"{PATH}/none", key) as answer:
        assert answer.status == 404
        assert await error_of(answer)


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("", 1),
        ("# A\n\n", 3),
        ("---\ntitle: A\n---\n\n", 5),
        ("---\ntitle: A\ndate: 2025-11-20\nslug: a\nstatus: draft\n---\n\n", 8),
    ],
)
async def test_a_text_is_checked_as_it_would_be_saved(
    writable: RunningEdge, head: str, line: int
) -> None:
    """What is added to its head is no fault, and a finding has its line in the text."""
    key = await writable.key("posts:draft")
    sent = {"markdown": f"{head}![](/images/none.png)\n"}
    async with writable.ask("POST", f"{PATH}/check", key, json=sent) as answer:
        findings = (await answer.json())["findings"]
    assert findings
    assert {each["line"] for each in findings if "description" not in each["message"]} <= {line}
    assert not [each for each in findings if "front matter" in each["message"]]
    assert line in {each["line"] for each in findings}


async def test_without_a_watcher_nothing_is_taken(make_edge: EdgeMaker) -> None:
    """The answer says that nothing was saved, and what to start."""
    async with make_edge(WRITING="on") as running:
        key = await running.key("posts:draft")
        async with running.ask("POST", PATH, key, json={"markdown": DRAFT}) as answer:
            assert answer.status == 503
            assert "watch" in await error_of(answer)


async def test_writing_is_off_by_default(make_edge: EdgeMaker) -> None:
    """The answer names the setting; no tool is offered."""
    async with make_edge() as running:
        key = await running.key("posts:draft")
        async with running.ask("GET", PATH, key) as answer:
            assert answer.status == 503
            assert "WRITING=on" in await error_of(answer)
        agent = Agent(running, await running.token("mcp", "posts:draft"), MODERN)
        listed: list[dict[str, Any]] = (await agent.ask("tools/list")).result["tools"]
        assert "save_draft" not in {each["name"] for each in listed}


async def test_a_tool_names_its_own_argument(writable: RunningEdge) -> None:
    """A refusal says what to send in the caller's words: an agent has no headers."""
    agent = Agent(writable, await writable.token("mcp", "posts:publish"), MODERN)
    await agent.call("save_draft", markdown=DRAFT)
    again = await agent.call("save_draft", markdown=f"{DRAFT}More.")
    for refused in (again, await agent.call("publish_post", slug="two-winters")):
        said = refused["content"][0]["text"]
        assert "If-Match" not in said
        assert "two-winters" in said
        assert "in version" in said
