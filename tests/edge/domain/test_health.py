"""Readiness and parts that do not answer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.query import Store
from edge_api.health import Check, Health
from edge_api.journal.builds import BuildManager
from edge_api.journal.search_index_files import SearchOpener


async def test_readiness_does_not_wait_for_a_silent_part(
    store: Store, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It only warns, and the parts beside it are reported all the same."""
    monkeypatch.setattr("edge_api.health.CHECK_TIMEOUT_SECONDS", 0.05)

    async def hang() -> Check:
        await asyncio.Event().wait()
        raise AssertionError

    async def find_nothing() -> Check:
        return Check("pass")

    others = {"far": hang, "near": find_nothing}
    builds = BuildManager(tmp_path, "http://journal.test", SearchOpener())
    report = await Health(store, builds, clock, "1", others).report()

    assert report["checks"]["far"]["status"] == "warn"
    assert report["checks"]["near"] == {"status": "pass"}
    assert report["checks"]["store"] == {"status": "pass"}


async def test_a_check_is_logged_when_it_fails_and_when_it_passes_again(
    store: Store, clock: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line each, however often it is looked at."""
    caplog.set_level("INFO")
    said = ""

    async def look() -> Check:
        return Check("warn" if said else "pass", said)

    builds = BuildManager(tmp_path, "http://journal.test", SearchOpener())
    health = Health(store, builds, clock, "1", {"part": look})
    for message in ("", "is ill", "is ill", "is very ill", "", ""):
        said = message
        await health.log_changes()

    assert caplog.messages == ["check part: is ill", "check part passes again"]
