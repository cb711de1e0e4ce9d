"""Shared drafts: read at their address, until they end, and found nowhere else."""

import asyncio
import gzip
import json
import re
import shutil
import string
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random
from secrets import token_urlsafe
from signal import SIGTERM
from typing import Any

import brotli
import pytest
from PIL import Image
from selectolax.lexbor import LexborHTMLParser

from tests.edge.conftest import CONTENT, SITE_URL, EdgeMaker, RunningEdge, run_build
from tests.edge.edge_process import ROOT, Installation, ServedEdge, free_port
from tests.edge.mcp.agents import MODERN, Agent
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

MARKS = ("quizzical", "marmalade", "novelquince", "secret-preserve")
"""Words of the draft's title, text, tags and slug; no other text has them."""
DRAFT = """---
title: On quizzical jam
slug: secret-preserve
date: 2026-01-03
status: draft
tags: [paper, novelquince]
---

All about marmalade, [its kinds](/journal/secret-preserve/#kinds), [another](/journal/a-draft/)
and [a post](/journal/first-edge/).

![A jar](/images/jar.jpg)

## Kinds

Bitter, and `<a href="/journal/secret-preserve/">` is code.
"""
GUESSES = 10_000
_ALPHABET = string.ascii_letters + string.digits + "-_"
_ADDRESS = re.compile(r"[^\s,]*[./#]\S*?(?=,?(?:\s|$))")


@dataclass(frozen=True)
class Journal:
    """A journal with a draft, built."""

    content: Path
    output: Path
    site_url: str = SITE_URL

    def share(self, *words: str) -> str:
        """Run `share`, which must succeed; return what it prints."""
        command = [sys.executable, "-m", "site_build", "share", *words]
        places = ["--content", self.content, "--output", self.output, "--site-url", self.site_url]
        done = subprocess.run(
            [*command, *map(str, places)], cwd=ROOT, check=True, capture_output=True, text=True
        )
        return done.stdout

    def share_draft(self, *words: str) -> str:
        """Share the draft and return the path of its page."""
        said = self.share("secret-preserve", *words)
        found = re.search(
            rf"^{re.escape(self.site_url)}(/shared/[\w-]{{22}}/)$", said, re.MULTILINE
        )
        assert found is not None, said
        assert said.endswith("share --revoke secret-preserve ends that\n")
        return found[1]


def make_journal(folder: Path, site_url: str = SITE_URL) -> Journal:
    """Return the tests' journal with the draft and its picture."""
    journal = Journal(folder / "content", folder / "build", site_url)
    shutil.copytree(CONTENT, journal.content)
    (journal.content / "posts" / "secret.md").write_text(DRAFT, encoding="utf-8")
    (journal.content / "images").mkdir()
    Image.effect_noise((1000, 500), 40).save(journal.content / "images" / "jar.jpg")
    run_build(journal.content, journal.output, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", site_url)
    return journal


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    """Return a journal for all tests here."""
    return make_journal(tmp_path_factory.mktemp("drafts"))


@pytest.fixture(scope="module")
def path(drafts: Journal) -> str:
    """Return the path of a share that no test ends."""
    return drafts.share_draft()


async def fetch(edge: RunningEdge, path: str, method: str = "GET") -> tuple[int, Any, bytes]:
    """Return status, headers without those of the one request, and body."""
    async with edge.ask(method, path) as answer:
        headers = {k: v for k, v in answer.headers.items() if k not in {"Date", "X-Request-ID"}}
        return answer.status, headers, await answer.read()


async def test_a_shared_draft_is_a_page_with_its_pictures(
    drafts: Journal, path: str, make_edge: EdgeMaker
) -> None:
    """Everything that the page asks for is there, and nothing tells where it will be."""
    async with make_edge(BUILD_DIR=str(drafts.output)) as edge:
        status, headers, body = await fetch(edge, path)
        head = await fetch(edge, path, "HEAD")
        plain = await fetch(edge, "/images/jar.jpg")
        page = LexborHTMLParser(body)
        wanted = {
            found[0]
            for node in page.css("[href], [src], [srcset]")
            for name in ("href", "src", "srcset")
            for found in _ADDRESS.finditer(node.attributes.get(name) or "")
            if not re.match(r"[a-z]+:|#", found[0])
        }
        asked = {
            each: await fetch(edge, each if each[0] == "/" else path + each) for each in wanted
        }

    own = {each for each in wanted if each[0] != "/"}
    assert (status, head) == (200, (200, headers, b""))
    for answered in (headers, *(asked[each][1] for each in own)):
        assert answered["Cache-Control"] == "no-store"
        assert answered["X-Robots-Tag"] == "noindex"
        assert answered["Referrer-Policy"] == "no-referrer"
        assert "default-src 'none'" in answered["Content-Security-Policy"]
        assert "form-action 'none'" in answered["Content-Security-Policy"]
    assert [each for each, answer in asked.items() if answer[0] != 200] == []
    assert {asked[each][1]["Content-Type"] for each in own} >= {"image/avif", "image/jpeg"}
    assert plain[0] == 404, "the picture is served below the share alone"
    assert "Link" not in headers
    text = body.decode()
    for selector in ('[rel="canonical"]', "[property]", '[type="application/ld+json"]'):
        assert page.css(selector) == []
    assert [each.attributes["content"] for each in page.css('meta[name="robots"]')] == ["noindex"]
    assert "This is a draft" in " ".join(page.css_first("aside").text().split())  # type: ignore[union-attr]
    assert text.count("secret-preserve") == 1, "in the code that the author wrote"
    assert 'href="#kinds"' in text
    assert "A draft" not in text


async def test_an_unknown_share_is_a_missing_page(
    drafts: Journal, path: str, make_edge: EdgeMaker
) -> None:
    """Malformed tokens and names that the share lacks get the answer of any missing page."""
    token = path.split("/")[2]
    names: tuple[str, ...] = (
        "share.json",
        ".",
        "..",
        "%2e%2e/",
        "..%2fshare.json",
        "%2e%2e%2f" * 6 + "etc/passwd",
    )
    names += ("1.avif/", "1.AVIF", "index.html/", "%00", "a" * 5000, "\\..\\share.json", "x/y")
    tokens = (
        "",
        "-",
        "x",
        "..",
        "%2e%2e",
        token[:-1],
        token + "A",
        "%00",
        "%c3%a9",
        "%ff",
        "*",
        "A" * 99,
    )
    paths = [f"{path}{name}" for name in names] + [f"/shared/{each}/" for each in tokens]
    paths += [f"/shared//{token}/", f"/shared/./{token}/x", "/shared/", "/shared"]
    # Spellings that a proxy may log whole.
    paths += [f"/{folder}{token}/" for folder in ("%73hared/", "shared%2f", "SHARED/", "/shared/")]
    async with make_edge(BUILD_DIR=str(drafts.output)) as edge:
        missing = await fetch(edge, "/no-such-page/")
        answers = {each: await raw(edge, each) for each in paths}
        named = await fetch(edge, f"{path}index.html")
        posted = [await fetch(edge, path, each) for each in ("POST", "PUT", "OPTIONS")]
        page = [await fetch(edge, "/about/", each) for each in ("POST", "PUT", "OPTIONS")]
        lost = await fetch(edge, f"/shared/{token_urlsafe(16)}/", "POST")
        bare = [await fetch(edge, f"/shared/{each}") for each in (token, "A" * 22)]

    assert missing[0] == 404
    assert {each: said for each, said in answers.items() if said != missing[::2]} == {}
    assert named[0] == 200
    assert posted == page
    assert [each[0] for each in posted] == [405, 405, 204]
    assert lost == missing
    for (status, headers, _), each in zip(bare, (token, "A" * 22), strict=True):
        assert (status, headers["Location"]) == (308, f"/shared/{each}/")
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")


async def raw(edge: RunningEdge, path: str) -> tuple[int, bytes]:
    """Return status and body of a path that is sent as it is, without a client's mending."""
    host, port = edge.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: journal.test\r\nConnection: close\r\n\r\n".encode())
    said = await reader.read()
    writer.close()
    head, _, body = said.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def test_a_revoked_share_is_gone_at_once(drafts: Journal, make_edge: EdgeMaker) -> None:
    """The next request misses it. A new share is there at once, and the draft's other one stays."""
    async with make_edge(BUILD_DIR=str(drafts.output)) as edge:
        missing = await fetch(edge, "/no-such-page/")
        first, second = (drafts.share_draft() for _ in range(2))
        before = [(await fetch(edge, each))[0] for each in (first, second)]
        shown = re.findall(rb"\b\d+\.avif", (await fetch(edge, first))[2])[0].decode()
        digests = [line.split()[0] for line in drafts.share("--list").splitlines()]
        shares = drafts.output / "shares"
        revoked = next(each for each in digests if is_of(first, shares, each))
        said = drafts.share("--revoke", revoked)
        after = [await fetch(edge, each) for each in (first, f"{first}{shown}", second)]

    assert before == [200, 200]
    assert said == "1 share revoked\n"
    assert after[:2] == [missing, missing]
    assert after[2][0] == 200


def is_of(path: str, shares: Path, digest: str) -> bool:
    """Return whether a digest is that of the token of a path."""
    from hashlib import sha256  # noqa: PLC0415

    name = sha256(path.split("/")[2].encode()).hexdigest()
    return name.startswith(digest) and (shares / name).is_dir()


async def test_a_share_ends_by_itself(drafts: Journal, make_edge: EdgeMaker) -> None:
    """It is read to its last second; the next command deletes it."""
    path = drafts.share_draft("--days", "1")
    record = max((drafts.output / "shares").glob("*/share.json"), key=lambda e: e.stat().st_mtime)
    expires = datetime.fromisoformat(json.loads(record.read_text())["expires"])
    for seconds, wanted in ((-1, 200), (0, 404), (9, 404)):
        instant = expires + timedelta(seconds=seconds)
        async with make_edge(lambda now=instant: now, BUILD_DIR=str(drafts.output)) as edge:
            assert (await fetch(edge, path))[0] == wanted
    expired = json.loads(record.read_text()) | {"expires": "2020-01-01T00:00:00Z"}
    record.write_text(json.dumps(expired))
    drafts.share("--list")

    assert not record.parent.exists()


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"expires": 1}', '{"expires": "soon"}', "\0"])
async def test_a_damaged_share_is_a_missing_page(
    damage: str, drafts: Journal, path: str, make_edge: EdgeMaker, tmp_path: Path
) -> None:
    """No fault of a file shows, and none is an error of the service."""
    shutil.copytree(drafts.output, tmp_path / "build", symlinks=True)
    for record in (tmp_path / "build" / "shares").glob("*/share.json"):
        record.write_text(damage)
    async with make_edge(BUILD_DIR=str(tmp_path / "build")) as edge:
        assert (await fetch(edge, path))[0] == 404


async def test_guesses_meet_the_limit_and_readers_do_not(
    drafts: Journal, path: str, make_edge: EdgeMaker
) -> None:
    """Missing shares count as failed credentials do; a share that is there never does."""
    async with make_edge(BUILD_DIR=str(drafts.output), RATE_FAILED_AUTH="3/minute") as edge:
        answers = [(await fetch(edge, f"/shared/{token_urlsafe(16)}/"))[0] for _ in range(5)]
        readers = [(await fetch(edge, path))[0] for _ in range(5)]

    assert answers == [404, 404, 404, 429, 429]
    assert readers == [200] * 5


def near_misses(token: str) -> Iterator[str]:
    """Yield what is almost the token: one character changed, left out, doubled or in other case."""
    for at, own in enumerate(token):
        yield from (token[:at] + each + token[at + 1 :] for each in _ALPHABET if each != own)
        yield token[:at] + token[at + 1 :]
        yield token[:at] + own + token[at:]
        yield token[:at] + f"%{ord(own):02x}%00" + token[at + 1 :]
    yield from (token[:size] for size in range(len(token)))
    yield from (f"{token}{each}" for each in ("=", "==", "%20", ".", "A", "%00", ";", ","))
    yield from {token.swapcase(), token.lower(), token.upper(), token[::-1]} - {token}
    yield from (f"%20{token}", f" {token}".strip() + "%0a", token.replace("-", "+") + "=")


@pytest.mark.size("ci")
@pytest.mark.one_engine
async def test_ten_thousand_guesses_hit_nothing(
    drafts: Journal, path: str, make_edge: EdgeMaker
) -> None:
    """Near misses of the true token first, then tokens of its form by chance."""
    near = list(near_misses(path.split("/")[2]))
    chance = Random(31)  # noqa: S311
    others = ("".join(chance.choices(_ALPHABET, k=22)) for _ in range(GUESSES))
    guesses = list(islice((*near, *others), GUESSES))
    async with make_edge(BUILD_DIR=str(drafts.output)) as edge:
        statuses = {each: (await fetch(edge, f"/shared/{each}/", "HEAD"))[0] for each in guesses}
        still = await fetch(edge, path)

    assert len(near) > 1_000
    assert len(guesses) == GUESSES
    assert set(statuses.values()) == {404}
    assert still[0] == 200


def read_public(journal: Journal) -> bytes:
    """Return every byte of the current build, and of all others, without compression."""
    unpack = {".gz": gzip.decompress, ".br": brotli.decompress}
    files = (each for each in journal.output.glob("20*/**/*") if each.is_file())
    return b"\n".join(unpack.get(each.suffix, bytes)(each.read_bytes()) for each in files)


async def test_no_agent_finds_a_shared_draft(
    drafts: Journal, path: str, make_edge: EdgeMaker
) -> None:
    """The MCP server knows nothing of a shared draft: no tool and no resource has it."""
    async with make_edge(BUILD_DIR=str(drafts.output)) as edge:
        assert (await fetch(edge, path))[0] == 200
        agent = Agent(edge, await edge.token(), MODERN)
        said = [await agent.ask(f"{kind}/list") for kind in ("tools", "resources", "prompts")]
        said += [
            await agent.ask("tools/call", name="search", arguments={"query": "jam bitter"}),
            await agent.ask("tools/call", name="list_posts", arguments={"limit": 50}),
        ]
        lost = await agent.ask("tools/call", name="get_post", arguments={"slug": "a-b"})
        hidden = await agent.ask("tools/call", name="get_post", arguments={"slug": MARKS[3]})

    assert [each.status for each in said] == [200] * 5
    assert found_in(repr(said).encode(), path) == []
    assert repr(hidden.body).replace(MARKS[3], "a-b") == repr(lost.body)


def found_in(text: bytes, path: str) -> list[str]:
    """Return what of the draft, of its address, or of the share's folder, a text has."""
    token = path.split("/")[2]
    return [
        each for each in (*MARKS, token) if each.encode() in text.lower() or each.encode() in text
    ]


@pytest.mark.parametrize("access_log", ["combined", *in_ci("json")])
@pytest.mark.one_engine
def test_nothing_public_and_no_log_names_a_shared_draft(access_log: str, tmp_path: Path) -> None:
    """Every byte of the build, what the edge answers, and all that it logs, faults among it."""
    port = free_port()
    journal = make_journal(tmp_path, f"http://127.0.0.1:{port}")
    path = journal.share_draft()
    token = path.split("/")[2]
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(journal.output),
        "ACCESS_LOG": access_log,
        "METRICS": "on",
    }
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    run_build(journal.content, journal.output, now, journal.site_url)
    installation = Installation(tmp_path, settings)
    words = ("--name", "reader", "--scopes", "posts:read metrics:read", "--json")
    with installation.serving() as edge:
        key = json.loads(installation.run("keys", "issue", *words)[1])["key"]
        shown = re.findall(r"\b\d+\.avif", edge.get(path)[2].decode())[0]
        read = [edge.get(each)[0] for each in (path, f"{path}{shown}", f"{path}index.html")]
        public = read_public(journal) + read_surfaces(edge, key)
        bad = (path[:-1], f"{path}x", f"/%73hared/{token}/", f"/shared/{token}?{token}", f"{path}%")
        missed = [edge.get(each)[0] for each in bad]
        shutil.rmtree(journal.output / "current" / "site")
        edge.get(path[:-2])
        edge.process.send_signal(SIGTERM)
        said, complained = edge.process.communicate(timeout=patience(30))

    assert read == [200, 200, 200]
    assert missed == [308, 404, 404, 308, 404]
    assert found_in(public, path) == []
    assert said.count("/shared/-") >= 8
    assert found_in(f"{said}{complained}".encode(), path) == []


def read_surfaces(edge: ServedEdge, key: str) -> bytes:
    """Return what the edge makes itself: lists, search, documents, metrics, feeds."""
    api = "/api/public/v1"
    paths = [f"{api}/", f"{api}/posts?limit=100", f"{api}/openapi.json", f"{api}/readiness"]
    paths += [f"{api}/search?q={word}" for word in ("jam", "jar", "bitter")]
    paths += [
        "/search?q=jam",
        "/docs/",
        "/llms.txt",
        "/llms-full.txt",
        "/sitemap.xml",
        "/robots.txt",
    ]
    paths += ["/feed.xml", "/feed.json", "/", "/journal/", "/tags/", "/archive/", "/metrics"]
    paths += ["/api/public/mcp/server-card", "/.well-known/api-catalog", "/journal/first-edge/"]
    answers = [edge.get(each, {"X-API-Key": key}) for each in paths]
    statuses = zip(paths, answers, strict=True)
    assert [each for each, answer in statuses if answer[0] != 200] == []
    answers += [edge.get("/no-such/", {"Accept": "text/markdown"})]
    return b"\n".join(str(headers).encode() + body for _, headers, body in answers)
