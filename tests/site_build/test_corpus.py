"""The posts that benchmarks repeat: those of the corpus, or the journal's own."""

from pathlib import Path

import pytest

from benchmarks.corpus import describe_corpus, find_corpus, read_samples, write_posts
from tests.site_build.workbench import ROOT, Workbench

pytestmark = pytest.mark.size("test")

OWN = ROOT / "content" / "posts"


def test_without_a_corpus_the_journals_own_posts_do(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone alone has posts enough, which differ and build; the report says which they are."""
    monkeypatch.setenv("SHARED_DIR", str(tmp_path / "nowhere"))
    own = len(list(OWN.glob("*.md")))

    write_posts(bench.content / "posts", 2 * own + 1)

    assert find_corpus() == OWN
    assert describe_corpus() == f"made from the journal's own posts ({own})"
    site = bench.build("2030-01-01T00:00:00Z") / "site"
    made = {path.stem for path in (bench.content / "posts").glob("*.md")}
    assert len(made & {path.name for path in (site / "journal").iterdir()}) >= 2 * own + 1


def test_a_corpus_goes_before_the_journals_own_posts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If SHARED_DIR has posts, those are used, and the report says so."""
    monkeypatch.setenv("SHARED_DIR", str(tmp_path))
    posts = tmp_path / "corpus" / "posts"
    posts.mkdir(parents=True)
    (posts / "one.md").write_text(
        "---\ntitle: One\nslug: one\ndate: 2026-01-02\ntags: [a]\nsummary: S.\n---\n\nWords.\n"
    )

    assert find_corpus() == posts
    assert [sample.summary for sample in read_samples(posts)] == ["S."]
    assert describe_corpus() == "made from the posts of the shared corpus (1)"
