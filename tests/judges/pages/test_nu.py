"""The HTML that is served, held against the norm by the Nu Html Checker."""

from pathlib import Path

import pytest

from tests.judges.pages.crawl import crawl
from tests.judges.pages.nu import judge
from tests.judges.pages.served import Served
from tests.judges.pages.visit import VARIANTS, PageVisit

pytestmark = pytest.mark.size("judge")

_BROKEN = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Broken</title></head>
<body><main><p id="a">One<p id="a"><div></p><img src="/x.png"><center>Old</center></main></body>
</html>
"""


def test_pages_are_valid(journal: Served, visits: list[PageVisit], tmp_path: Path) -> None:
    """Every page of the journal, and each that the edge makes, has neither error nor warning."""
    made = {visit.place.name: visit.html for visit in visits if visit.variant == VARIANTS[0]}

    assert judge({**crawl(journal), **made}, tmp_path) == []


def test_a_broken_page_is_found(tmp_path: Path) -> None:
    """Elements that do not nest, an id given twice, no words for a picture, what is obsolete."""
    said = " ".join(fault["message"] for fault in judge({"broken": _BROKEN}, tmp_path))

    for word in ("Duplicate ID", "alt", "center", "“p”"):
        assert word in said, said
