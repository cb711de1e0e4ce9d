"""A site whose settings put posts and tags elsewhere is served, and read by agents, from there."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from site_build.pelican_plugin import settings as site_settings
from site_build.releases.release import BuildOptions, build
from tests.edge.conftest import CONTENT
from tests.edge.edge_process import ROOT
from tests.edge.mcp.agents import MODERN, Agent

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

SETTINGS = """\
from pelicanconf import *
THEME = {theme!r}
ARTICLE_URL, ARTICLE_SAVE_AS = "{{date:%Y}}/{{slug}}", "{{date:%Y}}/{{slug}}.html"
TAG_URL, TAG_SAVE_AS = "on/{{slug}}/", "on/{{slug}}/index.html"
"""
ORIGIN = "http://journal.test"


async def test_a_site_with_other_addresses(
    make_edge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages answer where the settings put them, and resources have the same addresses."""
    settings = tmp_path / "other.py"
    settings.write_text(SETTINGS.format(theme=str(ROOT / "theme")), encoding="utf-8")
    monkeypatch.setattr(site_settings, "SETTINGS_FILE", settings)
    builds, now = tmp_path / "builds", datetime(2026, 6, 1, tzinfo=UTC)
    build(BuildOptions(CONTENT, builds, ORIGIN, now, jobs=1))
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        agent = Agent(edge, await edge.token(), MODERN)
        resources = (await agent.ask("resources/list")).result["resources"]
        uri = resources[0]["uri"]
        path = uri.removeprefix(ORIGIN)
        assert path == f"/{path.split('/')[1]}/{resources[0]['name']}"
        async with edge.ask("GET", path) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
            assert f'<link rel="canonical" href="{uri}">' in await answer.text()
        async with edge.ask("GET", path, headers={"Accept": "text/markdown"}) as answer:
            markdown = await answer.text()
            assert answer.content_type == "text/markdown"
        async with edge.ask("GET", f"/journal/{resources[0]['name']}/") as answer:
            assert answer.status == 404

        (read,) = (await agent.ask("resources/read", uri=uri)).result["contents"]
        assert read["text"] == markdown
        templates = (await agent.ask("resources/templates/list")).result["resourceTemplates"]
        assert [each["uriTemplate"] for each in templates] == [
            f"{ORIGIN}/{{date_1}}/{{slug}}",
            f"{ORIGIN}/on/{{tag}}/",
        ]
