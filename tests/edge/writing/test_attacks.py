"""A credential with `posts:draft` alone changes no public address, whatever it sends."""

import asyncio
import base64
import json
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from edge_api.schema.writing import Source
from tests.edge.conftest import EdgeMaker, RunningEdge, run_build
from tests.edge.engines import ON_SQLITE
from tests.edge.mcp.agents import MODERN, Agent
from tests.edge.writing.attacks import CONTENT, SOURCES, Attack, list_attacks, picture
from tests.edge.writing.test_writing_http import writing

pytestmark = ON_SQLITE
AFTER_ALL = "2091-01-01T00:00:00Z"


def read_tree(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, by path."""
    files = (each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in files}


def make_journal(folder: Path) -> Path:
    """Write a journal with a post of each state, and build it; return the content."""
    content = folder / "content"
    for path, text in CONTENT.items():
        (content / path).parent.mkdir(parents=True, exist_ok=True)
        (content / path).write_text(text, encoding="utf-8")
    (content / "images").mkdir()
    (content / "images/cover.png").write_bytes(base64.b64decode(picture("red")))
    run_build(content, folder / "build", AFTER_ALL)
    return content


def ask(edge: RunningEdge, key: str, attack: Attack) -> tuple[int, str]:
    """Send a request whose target is not normalized; return status and body of the answer."""
    place = urlsplit(edge.url)
    body = attack.body if isinstance(attack.body, bytes) else json.dumps(attack.body).encode()
    headers = {"X-API-Key": key, "Content-Type": "application/json", **attack.headers}
    connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
    try:
        connection.request(attack.method, attack.target, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


async def call(agent: Agent, attack: Attack) -> tuple[int, str]:
    """Call a tool; return status and body of the answer."""
    answer = await agent.ask("tools/call", {"name": attack.target, "arguments": attack.body})
    return answer.status, json.dumps(answer.body)


def fill(value: Any, versions: dict[str, str]) -> Any:
    """Return a value with versions in place of their names."""
    if isinstance(value, dict):
        return {name: fill(each, versions) for name, each in value.items()}
    for name, version in versions.items():
        if isinstance(value, str):
            value = value.replace(name, version)
    return value


async def read_public(edge: RunningEdge, site: dict[str, bytes]) -> dict[str, tuple[int, bytes]]:
    """Return what each public address answers."""
    found = {}
    for name in (*site, "journal/the-former/", "journal/begun/", "images/cover-2.png"):
        async with edge.ask("GET", f"/{quote(name.removesuffix('index.html'))}") as answer:
            found[name] = answer.status, await answer.read()
    return found


async def test_a_draft_changes_no_public_address(make_edge: EdgeMaker, tmp_path: Path) -> None:
    """Of more than a hundred ways none changes the content, an answer, or the next build."""
    content = make_journal(tmp_path)
    before = read_tree(content)
    site = read_tree(tmp_path / "build/current/site")
    folders = {"CONTENT_DIR": str(content), "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(WRITING="on", **folders) as edge:
        with writing(tmp_path, *folders.values()):
            key, agent = (
                await edge.key("posts:draft"),
                Agent(edge, await edge.token("mcp", "posts:draft"), MODERN),
            )
            public, versions = await read_public(edge, site), {}
            for slug, name in (("the-first", "first"), ("begun", "begun")):
                async with edge.ask("GET", f"{SOURCES}/{slug}", key) as answer:
                    source = Source.model_validate((await answer.json())["source"])
                versions |= {
                    f"{{{name}}}": source.version,
                    f"{{{name}_upper}}": source.version.upper(),
                }
            attacks, succeeded, statuses = list_attacks(), [], dict[str, int]()
            for each in attacks:
                attack = Attack(
                    each.name,
                    each.method,
                    quote(each.target, safe="/%?;=:.") if each.method else each.target,
                    fill(each.body, versions),
                    fill(each.headers, versions),
                )
                sent = (
                    asyncio.to_thread(ask, edge, key, attack)
                    if attack.method
                    else call(agent, attack)
                )
                statuses[each.name], said = await sent
                if read_tree(content) != before or statuses[each.name] >= 500:
                    succeeded.append((each.name, statuses[each.name], said[:300]))
                    break
            assert succeeded == []
            assert len(attacks) > 100
            assert {*statuses.values()} >= {200, 201, 400, 403, 404, 405, 409, 412, 428}, statuses
            assert await read_public(edge, site) == public
            # The credential did write drafts, and who may publish publishes them by the same way.
            drafts = {each.stem for each in (tmp_path / "drafts").glob("*.md")}
            assert {"begun", "strasse"} & drafts == {"begun"}
            publisher = await edge.key("posts:publish")
            async with edge.ask("GET", f"{SOURCES}/begun", key) as answer:
                version = {"If-Match": answer.headers["ETag"]}
            run_build(content, tmp_path / "after", AFTER_ALL)
            assert read_tree(tmp_path / "after/current/site") == site
            where = f"{SOURCES}/begun/publish"
            async with edge.ask("POST", where, publisher, json={}, headers=version) as answer:
                assert answer.status == 200, await answer.text()
            assert read_tree(content) != before
