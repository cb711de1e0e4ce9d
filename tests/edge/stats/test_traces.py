"""Traces of readers: 20 planted addresses, agents, tokens and referrers' paths, found nowhere."""

import gc
import os
import signal
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import pytest

from edge_api.auth import client_address
from edge_api.stats.counter import Stats
from edge_api.stats.naming import name_agent
from tests.edge.edge_process import Installation
from tests.edge.stats.conftest import CHROME, POST, Counting

AGENTS = [f"{CHROME} Planted{number}gent" for number in range(5)]
ADDRESSES = ["203.0.113.77", "198.51.100.231", "192.0.2.154", "2001:db8:7:a::beef", "100.64.77.88"]
TOKENS = [f"plantedtoken{number}" for number in range(5)]
REFERRERS = [f"https://site{number}.example/planted-path-{number}?planted" for number in range(5)]
PLANTED = [
    *(f"Planted{number}gent" for number in range(5)),
    *ADDRESSES,
    *TOKENS,
    *(f"planted-path-{number}" for number in range(5)),
]


def plants(path: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield requests, each with one of all kinds, in every place where a token may stand."""
    for agent, address, token, referrer in zip(AGENTS, ADDRESSES, TOKENS, REFERRERS, strict=True):
        headers = {"User-Agent": agent, "X-Forwarded-For": address, "Referer": referrer}
        yield path, headers
        yield "/contact/", headers
        yield f"{path}?ref={token}", headers
        yield f"{path}?utm_source={token}&x={token}", {**headers, "Cookie": f"a={token}"}
        yield f"/shared/{token}aaaaaaaaaa/", headers
        yield path, {**headers, "Referer": f"https://{token}:x@site.example/{token}"}


def test_nothing_is_found_in_files(installation: Installation) -> None:
    """Not in the store, its log, the service's log, a backup, nor the export of a person."""
    asked = installation.changed(TRUSTED_PROXIES="127.0.0.1", STATS="on")
    with asked.serving() as edge:
        for path, headers in plants("/journal/a/"):
            edge.get(path, headers)
        code, logged = edge.end(signal.SIGTERM)
        assert code == 0
    (asked.folder / "log").write_text(logged)
    for name, words in {
        "saved": ("backup", f"{asked.folder}/saved"),
        "exported": ("privacy", "export", "ann@example.org"),
    }.items():
        _, said, complained = asked.run(*words)
        (asked.folder / f"{name}.txt").write_text(said + complained)
    found = b"".join(path.read_bytes() for path in asked.folder.rglob("*") if path.is_file())
    assert b"page_views" in found
    assert b"other_program" not in os.fsencode(logged)
    assert [each for each in PLANTED if each.encode() in found] == []


def reachable(*roots: object) -> set[str]:
    """Return all texts that can be reached from objects, but through code."""
    seen: dict[int, Any] = {}
    stack: list[Any] = [*roots]
    while stack:
        each = stack.pop()
        if id(each) not in seen and not isinstance(
            each, FunctionType | MethodType | ModuleType | type
        ):
            seen[id(each)] = each
            stack.extend(gc.get_referents(each))
    return {text for text in seen.values() if isinstance(text, str)}


@pytest.mark.one_engine
async def test_nothing_is_left_in_memory_after_storing(counting: Counting) -> None:
    """Of the counter's own structures and the caches that it fills; hashes end with their day."""
    stats: Stats = counting.edge.service[Stats]
    caches = client_address.address_key, client_address._parse, name_agent  # noqa: SLF001
    others = {"_store", "_builds", "_clock", "_on_views", "_lock"}

    def left() -> list[str]:
        own = (part for name, part in vars(stats).items() if name not in others)
        texts = reachable(*own, *caches)
        return [each for each in PLANTED if any(each in text for text in texts)]

    for path, headers in plants(POST):
        await counting.get(path, headers=headers)
        await counting.get(path, headers={**headers, "Sec-GPC": "1"})
    assert set(left()) >= {"Planted0gent", "203.0.113.77", "plantedtoken0"}
    hashes = set(stats._memory.notes)  # noqa: SLF001
    assert len(hashes) == 5
    await counting.store()
    assert left() == []
    assert set(stats._memory.notes) == hashes  # noqa: SLF001
    counting.clock.move(hours=12)
    await counting.store()
    assert stats._memory.notes == {}  # noqa: SLF001
