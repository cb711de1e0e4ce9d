"""The headers that are served, by the rules of MDN's HTTP Observatory."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.judges.pages.crawl import crawl, largest_of_each_kind
from tests.judges.pages.judging import judge_headers
from tests.judges.pages.places import OCCASIONS
from tests.judges.pages.served import Served, serve
from tests.own_journal import JUDGED_CONTENT

pytestmark = pytest.mark.size("test")

LEAST = 115
SITE_URL = "https://journal.example"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return the journal behind a server that speaks https."""
    folder = tmp_path_factory.mktemp("published")
    content = shutil.copytree(JUDGED_CONTENT, folder / "content")
    with serve(content, folder, SITE_URL) as served:
        yield served


def answer(served: Served, path: str) -> dict[str, Any]:
    """Return what the Observatory is shown of a page."""
    status, headers, body = served.get(path, Accept="text/html")
    return {
        "site": f"{SITE_URL}{path}",
        "status": status,
        "headers": list(headers.items()),
        "body": body.decode(),
    }


async def test_headers_are_good(published: Served, tmp_path: Path) -> None:
    """Each kind of page has 115 points or more."""
    found = largest_of_each_kind(crawl(published))
    found += [place.path(published) for place in OCCASIONS if place.steps is None]
    scores = await judge_headers([answer(published, path) for path in found], tmp_path)

    assert {
        path: score for path, score in zip(found, scores, strict=True) if score[0] < LEAST
    } == {}


@pytest.mark.size("ci")
async def test_each_missing_header_is_noticed(published: Served, tmp_path: Path) -> None:
    """Without one of them, or with a weak policy, a page has fewer points."""
    whole = answer(published, "/")
    named = [
        "content-security-policy",
        "strict-transport-security",
        "x-content-type-options",
        "referrer-policy",
    ]
    less = [
        {**whole, "headers": [pair for pair in whole["headers"] if pair[0] != name]}
        for name in named
    ]
    scores = [score for score, _ in await judge_headers([whole, *less], tmp_path)]

    assert all(score < scores[0] for score in scores[1:]), scores
