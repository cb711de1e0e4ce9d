"""Skills over MCP, by the rules that SEP-2640 has for servers, in both eras."""

import re
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

import frontmatter
import pytest

from edge_api.journal.builds import BuildManager
from edge_api.mcp import server
from edge_api.mcp.operations import SKILLS_EXTENSION
from edge_api.schema.paths import SKILLS
from tests.edge.mcp.agents import MODERN, Agent
from tests.edge.small_builds import make_post, point_at, write_build

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

NAMES = {"read-the-journal", "use-the-posts-api", "send-an-enquiry", "connect-over-mcp"}
NAME = re.compile(r"(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*")


async def read_bytes(agent: Agent, uri: str) -> bytes:
    """Return the bytes of a file."""
    (content,) = (await agent.ask("resources/read", uri=uri)).result["contents"]
    assert content["uri"] == uri
    return b64decode(content["blob"]) if "blob" in content else content["text"].encode()


async def test_every_skill_of_the_site_is_listed_with_true_digests(agent: Agent) -> None:
    """Entries are complete manifests: name, URI, front matter, digest and size are the files'."""
    result = (await agent.ask("skills/list")).result
    entries = {entry["frontmatter"]["name"]: entry for entry in result["skills"]}

    assert set(entries) == NAMES
    assert "nextCursor" not in result
    for name, entry in entries.items():
        assert NAME.fullmatch(name)
        assert entry["uri"] == f"skill://{name}/SKILL.md"
        assert set(entry) == {"uri", "frontmatter", "resources"}
        assert [file["uri"] for file in entry["resources"]] == [entry["uri"]]
        for file in entry["resources"]:
            content = await read_bytes(agent, file["uri"])
            assert file["digest"] == f"sha256:{sha256(content).hexdigest()}"
            assert file["size"] == len(content)
        source = await read_bytes(agent, entry["uri"])
        assert frontmatter.loads(source.decode()).metadata == entry["frontmatter"]
        assert 0 < len(entry["frontmatter"]["description"]) <= 1024
        async with agent.edge.ask("GET", f"/{SKILLS}{name}/SKILL.md") as answer:
            assert await answer.read() == source


async def test_one_skill_is_the_entry_of_the_list(agent: Agent) -> None:
    """`skills/get` gives each entry as it is listed, and no cursor."""
    for entry in (await agent.ask("skills/list")).result["skills"]:
        result = (await agent.ask("skills/get", uri=entry["uri"])).result
        assert result["skill"] == entry
        assert "nextCursor" not in result


async def test_the_extension_is_declared_beside_resources(agent: Agent) -> None:
    """The declaration has no option: directories are not read, and the method is unknown.

    Capabilities of revisions with a handshake have no member for extensions.
    """
    if agent.version == MODERN:
        found = (await agent.ask("server/discover")).result["capabilities"]
        assert found["extensions"] == {SKILLS_EXTENSION: {}}
        assert "resources" in found
    uri = "skill://connect-over-mcp"
    assert (await agent.ask("resources/directory/read", uri=uri)).code == -32601


async def test_results_may_be_cached_by_all(agent: Agent) -> None:
    """Public results say so and for how long, and in the later era that they are complete."""
    uri = "skill://connect-over-mcp/SKILL.md"
    answers = [await agent.ask("skills/list"), await agent.ask("skills/get", uri=uri)]
    if agent.version == MODERN:
        answers.append(await agent.ask("resources/read", uri=uri))

    for answer in answers:
        assert answer.result["cacheScope"] == "public"
        assert answer.result["ttlMs"] > 0
        if agent.version == MODERN:
            assert answer.result["resultType"] == "complete"


@pytest.mark.parametrize("method", ["skills/get", "resources/read"])
@pytest.mark.parametrize(
    "uri",
    [
        "skill://none/SKILL.md",
        "skill://connect-over-mcp",
        "skill://connect-over-mcp/",
        "skill://index.json",
        "skill://../../auth.md",
        "skill://connect-over-mcp/skill.md",
        "skill://",
    ],
)
async def test_an_unknown_skill_uri_gets_the_list_of_skills(
    agent: Agent, method: str, uri: str
) -> None:
    """The error is -32602, and its sentence names the skills."""
    answer = await agent.ask(method, uri=uri)

    assert answer.code == -32602
    assert answer.body["error"]["message"].startswith(f"No skill has the URI {uri}; there are ")
    assert "skill://connect-over-mcp/SKILL.md" in answer.body["error"]["message"]


async def test_wrong_parameters_are_refused(agent: Agent) -> None:
    """A page that is none of the site, a missing URI and a foreign cursor are -32602."""
    for given in ({}, {"uri": 7}, {"name": "connect-over-mcp"}):
        answer = await agent.ask("skills/get", **given)
        assert answer.code == -32602
        message = answer.body["error"]["message"]
        assert message.startswith("`uri` is missing; give a text such as skill://")
        assert message.endswith("/SKILL.md")
    assert (await agent.ask("skills/get", uri="http://journal.test/about/")).code == -32602
    assert (await agent.ask("skills/list", cursor="2")).code == -32602


async def test_skills_need_no_scope_for_posts(make_agent: Any) -> None:
    """They are public files: the scope of the endpoint is enough."""
    agent = await make_agent("mcp")

    assert len((await agent.ask("skills/list")).result["skills"]) == len(NAMES)
    assert await read_bytes(agent, "skill://read-the-journal/SKILL.md")


def write_skill(folder: Path, name: str, head: str, **more: bytes) -> None:
    """Write a skill into the site of a build."""
    root = folder / "site" / SKILLS / name
    root.mkdir(parents=True)
    (root / "SKILL.md").write_text(f"---\n{head}\n---\nDo it.\n", encoding="utf-8")
    for file, content in more.items():
        (root / file).write_bytes(content)


async def test_the_files_of_a_site_of_its_own_are_served(
    make_edge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nested and binary files are listed; what a host would refuse is not; a new build counts."""
    first = write_build(tmp_path / "b", "build-0001", [make_post("one")])
    head = "name: {}\ndescription: Does.\nmetadata: {{since: 2026-11-01, 1: true}}"
    write_skill(first, "alpha", head.format("alpha"), picture=b"\xff\xd8\x00")
    write_skill(first, "alpha/beta", head.format("beta"))
    write_skill(first, "other", head.format("another"))
    write_skill(first, "silent", "name: silent")
    write_skill(first, "broken", "name: [broken")
    write_skill(first, "large", head.format("large"), file=b"x" * 2000)
    monkeypatch.setattr(server, "MAX_SKILL_BYTES", 1500)
    point_at(tmp_path / "b", first)
    async with make_edge(BUILD_DIR=str(tmp_path / "b")) as edge:
        agent = Agent(edge, await edge.token(), MODERN)
        found = (await agent.ask("skills/list")).result["skills"]
        picture = await read_bytes(agent, "skill://alpha/picture")
        unread = await agent.ask("resources/read", uri="skill://large/file")
        point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0002", [make_post("one")]))
        await edge.service[BuildManager].refresh()
        later = (await agent.ask("skills/list")).result["skills"]

    uris = [entry["uri"] for entry in found]
    assert sorted(uris) == ["skill://alpha/SKILL.md", "skill://alpha/beta/SKILL.md"]
    whole = next(entry for entry in found if entry["frontmatter"]["name"] == "alpha")
    assert whole["frontmatter"]["metadata"] == {"since": "2026-11-01", "1": True}
    assert {file["uri"] for file in whole["resources"]} == {*uris, "skill://alpha/picture"}
    assert picture == b"\xff\xd8\x00"
    assert unread.code == -32602
    assert later == []
