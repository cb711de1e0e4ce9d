"""A credential with `posts:draft` alone changes no public address, whatever it sends."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from edge_api.schema.credentials import SCOPES
from tests.edge.conftest import EdgeMaker, RunningEdge, run_build
from tests.edge.desk.conftest import Browser
from tests.edge.engines import ON_SQLITE
from tests.edge.mcp.agents import MODERN, Agent
from tests.edge.writing.attacks import (
    ADDRESS_KEYS,
    AFTER_ALL,
    SOURCES,
    Attack,
    list_attacks,
    make_journal,
    read_tree,
)
from tests.edge.writing_process import writing

pytestmark = ON_SQLITE
_AT_ONCE = 12
_CLIENTS = ThreadPoolExecutor(_AT_ONCE)  # not those of the loop, which the edge needs


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


async def send(
    edge: RunningEdge, key: str, agent: Agent, versions: dict[str, str], attack: Attack
) -> tuple[str, int, str]:
    """Send an attack as a request or as the call of a tool; return its name, status and answer."""
    body = fill(attack.body, versions)
    if not attack.method:
        named = {"name": attack.target, "arguments": body}
        answer = await agent.ask("tools/call", named)
        return attack.name, answer.status, json.dumps(answer.body)
    target, headers = quote(attack.target, safe="/%?;=:."), fill(attack.headers, versions)
    request = Attack(attack.name, attack.method, target, body, headers)
    loop = asyncio.get_running_loop()
    return attack.name, *await loop.run_in_executor(_CLIENTS, ask, edge, key, request)


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
    before, site = read_tree(content), read_tree(tmp_path / "build/current/site")
    folders = {"CONTENT_DIR": str(content), "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(WRITING="on", **folders) as edge:
        key = await edge.key("posts:draft")
        agent = Agent(edge, await edge.token("mcp", "posts:draft"), MODERN)
        with writing(tmp_path, content, tmp_path / "build"):
            public, versions = await read_public(edge, site), dict[str, str]()
            for name, slug in (("first", "the-first"), ("begun", "begun")):
                async with edge.ask("GET", f"{SOURCES}/{slug}", key) as answer:
                    version = str((await answer.json())["source"]["version"])
                versions |= {f"{{{name}}}": version, f"{{{name}_upper}}": version.upper()}
            attacks, answers = list_attacks(), []
            for at in range(0, len(attacks), _AT_ONCE):
                some = attacks[at : at + _AT_ONCE]
                sent = (send(edge, key, agent, versions, each) for each in some)
                answers += await asyncio.gather(*sent)
                assert read_tree(content) == before, answers[-_AT_ONCE:]
            assert await read_public(edge, site) == public

            # Now who may publish does it, which shows that the comparisons find a change.
            run_build(content, tmp_path / "after", AFTER_ALL)
            assert read_tree(tmp_path / "after/current/site") == site
            async with edge.ask("GET", f"{SOURCES}/begun", key) as answer:
                named = {"If-Match": answer.headers["ETag"]}
                assert "Taken over." in await answer.text()
            where, publisher = f"{SOURCES}/begun/publish", await edge.key("posts:publish")
            async with edge.ask("POST", where, publisher, json={}, headers=named) as answer:
                assert answer.status == 200, await answer.text()
            assert read_tree(content) != before
    assert len({each.name for each in attacks}) == len(attacks) > 100
    assert {status for _, status, _ in answers} >= {200, 201, 400, 403, 404, 405, 409, 412, 428}
    assert [each for each in answers if each[1] in (500, 503)] == []
    named = {name: status for name, status, _ in answers}
    assert [named[f"save {line}"] for line in ADDRESS_KEYS] == [400] * len(ADDRESS_KEYS)


async def test_a_desk_that_drafts_changes_no_public_address(
    make_edge: EdgeMaker, tmp_path: Path
) -> None:
    """A sign-in by a key without the scope that publishes does no more than that key."""
    content = make_journal(tmp_path)
    before = read_tree(content)
    folders = {"CONTENT_DIR": str(content), "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(WRITING="on", **folders) as edge:
        with writing(tmp_path, content, tmp_path / "build"):
            key = await edge.key(*(each for each in SCOPES if each != "posts:publish"))
            desk, versions = await Browser(edge).sign_in(key), dict[str, str]()
            for slug in ("the-first", "begun", "later"):
                async with edge.ask("GET", f"{SOURCES}/{slug}", key) as answer:
                    versions[slug] = answer.headers["ETag"].strip('"')
            statuses = []
            for slug, base in versions.items():
                form = {"base": base, "title": "Taken", "text": "Taken over.", "when": "now"}
                for step in ("publish/", "withdraw/", "bin/", ""):
                    if (slug, step) != ("begun", "bin/"):  # of a draft it is allowed, and undone
                        shown = await desk.post(f"/desk/posts/{slug}/{step}", **form)
                        statuses.append((slug, step, shown.status))
            assert read_tree(content) == before, statuses
    refused = {status for slug, step, status in statuses if (slug, step) != ("begun", "")}
    assert refused <= {400, 403, 409}, statuses
