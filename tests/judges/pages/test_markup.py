"""The HTML that is served, held against the norm by html-validate."""

from pathlib import Path

import pytest

from tests.judges.pages.crawl import crawl
from tests.judges.pages.judging import judge_markup
from tests.judges.pages.served import Served
from tests.judges.pages.visit import VARIANTS, PageVisit

pytestmark = pytest.mark.size("test", grows=True)

_BROKEN = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Broken</title></head>
<body><main><p id="a">One<p id="a"><div></p><img src="/x.png"><a>Nowhere</a></main></body></html>
"""


async def test_pages_are_valid(journal: Served, visits: list[PageVisit], tmp_path: Path) -> None:
    """Every page of the journal, and each that the edge makes, has no error."""
    made = {visit.place.name: visit.html for visit in visits if visit.variant == VARIANTS[0]}

    assert await judge_markup({**crawl(journal), **made}, tmp_path) == []


async def test_a_broken_page_is_found(tmp_path: Path) -> None:
    """Elements that do not nest, an id given twice and a picture without words are errors."""
    found = await judge_markup({"broken": _BROKEN}, tmp_path)

    rules = {fault["rule"] for fault in found}
    assert {"no-dup-id", "wcag/h37", "close-order"} - rules == set(), found
