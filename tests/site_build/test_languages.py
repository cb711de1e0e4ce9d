"""Posts in another language than the journal's: what others show of them says so."""

import pytest

from tests.site_build.workbench import Workbench

pytestmark = pytest.mark.size("test")


def test_a_title_in_another_language_says_so(bench: Workbench) -> None:
    """In lists, between neighbours and on its own page; words of ours there run their own way."""
    bench.post("ivrit", "2026-04-01", lang="he", title="\u05e9\u05dc\u05d5\u05dd", tags="[one]")
    bench.post("later", "2026-04-02", tags="[one]")
    bench.post("latest", "2026-04-03", tags="[one]")
    site = bench.build() / "site"
    said = {
        name: (site / name).read_text(encoding="utf-8")
        for name in ("index.html", "archive/index.html", "journal/later/index.html")
    }
    own = (site / "journal/ivrit/index.html").read_text(encoding="utf-8")

    for name, page in said.items():
        marked = 'lang="he" dir="rtl">\u05e9\u05dc\u05d5\u05dd'
        assert marked in page, name
        assert '<bdi lang="en"' not in page, name
    assert '<html lang="en">' in own
    assert 'h-entry" lang="he" dir="rtl">' in own
    assert '<div class="shoulder" lang="en" dir="ltr">' in own
