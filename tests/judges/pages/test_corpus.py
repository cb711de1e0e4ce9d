"""Posts that others wrote: what is wrong with their pages is wrong with their sources.

Whatever the theme added would be on the pages of sources that have no fault as well.
"""

from pathlib import Path

import pytest

from tests.edge.conftest import run_build
from tests.judges.pages.corpus import named_sources, post_pages, write_corpus
from tests.judges.pages.judging import Faults, judge_markup
from tests.judges.pages.served import NOW
from tests.sizes import is_whole

pytestmark = pytest.mark.size("test", grows=True)

SAMPLE = 60


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the posts; in the quick part, of some of them."""
    return write_corpus(
        tmp_path_factory.mktemp("corpus") / "content", None if is_whole() else SAMPLE
    )


@pytest.fixture(scope="module")
def site(content: Path) -> Path:
    """Return the site that is made of them."""
    run_build(content, content.parent / "build", now=NOW, site_url="https://journal.test")
    return content.parent / "build" / "current" / "site"


@pytest.mark.size("ci")
async def test_every_error_is_the_sources(content: Path, site: Path, tmp_path: Path) -> None:
    """A page whose source `check` finds no fault with has no error by html-validate."""
    named = named_sources(content)
    pages = post_pages(site)
    clean = {slug: html for slug, html in pages.items() if slug not in named}
    errors: Faults = await judge_markup(clean, tmp_path)

    assert len(clean) > len(pages) // 4
    assert errors == [], f"{len(errors)} errors"
