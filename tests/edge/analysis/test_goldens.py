"""Reports on real posts stay as they were: their numbers, and the slugs of related posts.

`GOLDENS=write pytest tests/edge/analysis/test_goldens.py` takes what is now for what has to be.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from edge_api.journal.builds import BuildManager
from tests.edge.analysis.corpus import SETS, body_of
from tests.sizes import in_ci

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

GOLDENS = Path(__file__).with_name("goldens.json")


def derive(report: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a report: numbers and slugs, and nothing that anybody wrote."""
    structure = report["structure"]
    return {
        "score": report["score"],
        "metrics": report["metrics"],
        "headings": [heading["level"] for heading in structure["headings"]],
        "links": structure["links"],
        "images": structure["images"],
        "signals": {name: each["score"] for name, each in report["signals"].items()},
        "keywords": [[each["count"], each["score"]] for each in report["keywords"]],
        "suggestions": [each["code"] for each in report["suggestions"]],
        "related": [[each["slug"], each["score"]] for each in report["related"]],
    }


async def reports(edge: Any, posts: tuple[Path, ...]) -> dict[str, Any]:
    """Return what is kept of the report on each post."""
    found = {}
    for path in posts:
        body = {"markdown": body_of(path)}
        async with edge.ask("POST", "/api/public/v1/analyze", json=body) as answer:
            assert answer.status == 200
            found[path.stem] = derive(await answer.json())
    return found


@pytest.mark.parametrize("name", [*list(SETS)[:1], *in_ci(*list(SETS)[1:])])
async def test_reports_are_stable(
    make_edge: Any, build_journal: Any, tmp_path: Path, name: str
) -> None:
    """Each post gets the report that it got before, from a journal of these posts alone."""
    content = tmp_path / "content"
    content.mkdir()
    for path in SETS[name]:
        shutil.copy(path, content / path.name)
    build_journal(content, tmp_path / "build", "2026-11-01T00:00:00Z")
    async with make_edge(BUILD_DIR=str(tmp_path / "build")) as edge:
        found = await reports(edge, SETS[name])
        listed = [entry.cursor.slug for entry in edge.service[BuildManager].build().posts.entries]

    kept = json.loads(GOLDENS.read_text(encoding="utf-8")) if GOLDENS.exists() else {}
    if os.environ.get("GOLDENS") == "write":
        kept[name] = found
        GOLDENS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert found == kept[name]
    assert len(listed) == len(SETS[name])
    for slug, report in found.items():
        assert {each for each, _ in report["related"]} <= set(listed), slug
