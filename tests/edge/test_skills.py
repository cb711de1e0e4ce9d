"""The skills that the site publishes do what they say: each of their commands is run unchanged.

Only the origin is another one, since the edge of the test listens elsewhere.
"""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.edge.conftest import EdgeMaker
from tests.edge.mcp.agents import MODERN, Agent
from tests.edge.writing.attacks import CONTENT, make_journal, read_tree
from tests.edge.writing_process import writing

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

FOLDER = "/.well-known/agent-skills"
COMMAND = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SITE_URL = "http://journal.test"


async def run(command: str, environment: Mapping[str, str]) -> bytes:
    """Return what a command prints; AssertionError when it fails."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        command,
        env={"PATH": "/usr/bin:/bin", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complained = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, f"{command}\n{complained.decode()}"
    return printed


async def read_commands(edge: Any, name: str) -> list[str]:
    """Return the commands of a skill, for the running edge."""
    async with edge.ask("GET", f"{FOLDER}/{name}/SKILL.md") as answer:
        assert answer.status == 200
        text = await answer.text()
    return [body.replace(SITE_URL, edge.url) for _, body in COMMAND.findall(text)]


async def run_all(edge: Any, name: str) -> list[bytes]:
    """Run every command of a skill in turn, as somebody who has a key, a token and a slug."""
    environment = {
        "API_KEY": await edge.key("posts:read"),
        "ACCESS_TOKEN": await edge.token("mcp", "posts:read"),
        "SLUG": "first-edge",
    }
    return [await run(command, environment) for command in await read_commands(edge, name)]


async def test_the_journal_is_read_without_a_key(edge: Any) -> None:
    """The list, a page as Markdown, and the feed come as the skill says."""
    llms, page, feed = await run_all(edge, "read-the-journal")

    assert b"## Posts" in llms
    assert page.startswith(b"# Journal")
    assert len(orjson.loads(feed)["items"]) == 3


async def test_the_posts_api_is_used_with_a_key(edge: Any) -> None:
    """A list and a post come as the skill says."""
    listed, post = await run_all(edge, "use-the-posts-api")

    assert 0 < len(orjson.loads(listed)["posts"]) <= 5
    assert {"content", "content_html"} <= set(orjson.loads(post))


async def test_an_enquiry_is_stored_once(edge: Any) -> None:
    """The request is taken, and taken as the same when it is sent again."""
    first = await run_all(edge, "send-an-enquiry")
    again = await run_all(edge, "send-an-enquiry")

    assert orjson.loads(first[0])["id"] == orjson.loads(again[0])["id"]


async def test_a_client_connects_over_mcp(edge: Any) -> None:
    """The card is there, and the endpoint lists the tools that the skill names."""
    card, listed = await run_all(edge, "connect-over-mcp")

    assert orjson.loads(card)["remotes"][0]["url"] == f"{SITE_URL}/api/public/mcp"
    tools = {tool["name"] for tool in orjson.loads(listed)["result"]["tools"]}
    assert {"search", "fetch"} <= tools


async def test_a_draft_is_written_where_writing_is_on(
    make_edge: EdgeMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command works with `posts:draft` alone; the skill is also offered over MCP."""
    monkeypatch.setenv("WRITING", "on")
    content = make_journal(tmp_path)
    folders = {"CONTENT_DIR": str(content), "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(WRITING="on", **folders) as edge:
        with writing(tmp_path, content, tmp_path / "build"):
            key = {"API_KEY": await edge.key("posts:draft")}
            commands = await read_commands(edge, "draft-a-post")
            listed, checked, saved = [await run(command, key) for command in commands]
        agent = Agent(edge, await edge.token("mcp"), MODERN)
        skills = [each["uri"] for each in (await agent.ask("skills/list")).result["skills"]]
    assert "skill://draft-a-post/SKILL.md" in skills
    assert {each["slug"] for each in orjson.loads(listed)["sources"]} == {"begun", "later"}
    assert orjson.loads(checked)["findings"] == []
    assert orjson.loads(saved)["source"]["state"] == "draft"
    assert read_tree(content).keys() == {*CONTENT, "images/cover.png"}


async def test_without_writing_no_skill_drafts(edge: Any) -> None:
    """What is not offered is not described."""
    async with edge.ask("GET", f"{FOLDER}/draft-a-post/SKILL.md") as answer:
        assert answer.status == 404
    agent = Agent(edge, await edge.token("mcp"), MODERN)
    skills = [each["uri"] for each in (await agent.ask("skills/list")).result["skills"]]
    assert "skill://draft-a-post/SKILL.md" not in skills


@pytest.mark.parametrize("name", ["read-the-journal", "use-the-posts-api"])
async def test_every_skill_has_commands(edge: Any, name: str) -> None:
    """No block is passed over: each was found and would have been run."""
    async with edge.ask("GET", f"{FOLDER}/{name}/SKILL.md") as answer:
        fences = (await answer.text()).count("```")

    assert len(await read_commands(edge, name)) * 2 == fences > 0
