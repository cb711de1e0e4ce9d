"""The official conformance suite, against the edge's handler with the suite's own fixtures.

It gives up on some answers after half a second: so it runs alone, in the last step of `.ci/run`.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pytest_aiohttp import AiohttpServer

from tests.judges.bearer_proxy import make_bearer_proxy
from tests.judges.conformance import faults, judge_server, scored, verdicts
from tests.judges.fixture_build import serving
from tests.judges.fixtures.server import fixture_server
from tests.judges.product import MCP_PATH, Product

pytestmark = [pytest.mark.usefixtures("judges"), pytest.mark.size("ci"), pytest.mark.alone]

# Scenarios that the suite does not score yet.
_NEWER = ("json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation")

# Scenarios that need none of the suite's fixtures.
_OF_EVERY_SERVER = {
    "2026-07-28": (
        "tools-list",
        "resources-list",
        "prompts-list",
        "caching",
        "dns-rebinding-protection",
        "sep-2164-resource-not-found",
        "server-sse-multiple-streams",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
    ),
    "2025-11-25": (
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ),
}


ProxyMaker = Callable[[str, str], Awaitable[str]]


@pytest.fixture
def make_proxy(aiohttp_server: AiohttpServer) -> ProxyMaker:
    """Return a maker of proxies, each of which adds a token to requests for an origin."""

    async def make(origin: str, token: str) -> str:
        app = make_bearer_proxy(origin, token)
        server = await aiohttp_server(app, shutdown_timeout=1)
        return str(server.make_url("/").origin())

    return make


async def test_all_checks_of_the_newest_revision_pass(
    make_proxy: ProxyMaker, tmp_path: Path
) -> None:
    """With the suite's fixtures mounted, all that 2026-07-28 scores passes, and newer scenarios."""
    async with serving(fixture_server(), tmp_path) as build:
        proxy = await make_proxy(build.origin, build.token)
        outcome = await judge_server(f"{proxy}{MCP_PATH}", "2026-07-28", tmp_path)

    found, wanted = verdicts(tmp_path), scored("2026-07-28")
    assert len(wanted) == 37
    assert set(found) >= {*wanted, *_NEWER}
    failed = [found[name] for name in (*wanted, *_NEWER) if not found[name].holds]
    assert not failed, f"{faults(failed)}\n{outcome}"
    assert outcome.status == 0, str(outcome)


async def test_sessionless_checks_pass_in_the_older_revision(
    make_proxy: ProxyMaker, tmp_path: Path
) -> None:
    """All of 2025-11-25 passes but what a server without sessions cannot do, as the file says."""
    async with serving(fixture_server(), tmp_path) as build:
        proxy = await make_proxy(build.origin, build.token)
        outcome = await judge_server(
            f"{proxy}{MCP_PATH}", "2025-11-25", tmp_path, "fixtures-2025-11-25.yml"
        )

    found = verdicts(tmp_path)
    passed = [verdict for verdict in found.values() if not verdict.faults]
    assert outcome.status == 0, str(outcome)
    assert len(found) == 33
    assert len(passed) >= 28, faults(found.values())


@pytest.mark.parametrize("revision", list(_OF_EVERY_SERVER))
async def test_the_product_passes_all_that_applies_to_it(
    make_proxy: ProxyMaker, product: Product, access_token: str, revision: str, tmp_path: Path
) -> None:
    """Nothing fails but what a file gives a reason for, and nothing that every server needs."""
    proxy = await make_proxy(product.origin, access_token)
    outcome = await judge_server(
        f"{proxy}{MCP_PATH}", revision, tmp_path, f"product-{revision}.yml"
    )

    found = verdicts(tmp_path)
    assert outcome.status == 0, str(outcome)
    assert [name for name in _OF_EVERY_SERVER[revision] if not found[name].holds] == []
