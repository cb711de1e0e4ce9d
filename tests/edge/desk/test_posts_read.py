"""The reads of posts, in the list of posts."""

from datetime import UTC, datetime
from pathlib import Path

from tests.edge.conftest import SITE_URL, EdgeMaker, run_build
from tests.edge.desk.conftest import Browser
from tests.edge.desk.test_posts import LIST, content, draft, sign_in_owner
from tests.edge.engines import ON_SQLITE
from tests.edge.stats.figures import Views, fill
from tests.edge.writing_process import writing

pytestmark = ON_SQLITE
__all__ = ("content",)
SLUG = "zwei-stürme"


async def test_a_post_shows_its_reads_of_thirty_days(
    make_edge: EdgeMaker, tmp_path: Path, content: Path
) -> None:
    """Those by people, also today and at former addresses; none of a draft or without the scope."""
    second = (
        f"---\ntitle: Zwei\nslug: {SLUG}\naliases: [stürme, /old/two]\n"
        "date: 2026-01-02T10:00:00Z\nlang: de\n---\n\nJa.\n"
    )
    (content / "zwei.md").write_text(second)
    run_build(content.parent, tmp_path / "build", site_url=SITE_URL)
    folders = {"CONTENT_DIR": str(content.parent), "BUILD_DIR": str(tmp_path / "build")}
    path, today = "/journal/the-first/", datetime.now(UTC).date()
    views: Views = {
        (1, path, "person", ""): 1200,
        (0, path, "person", ""): 4,
        (29, path, "person", ""): 30,
        (30, path, "person", ""): 500,
        (1, path, "ai_crawler", "GPTBot"): 50,
        (2, f"/journal/{SLUG}/", "person", ""): 1,
        (2, "/journal/stürme/", "person", ""): 2,
        (9, "/old/two/", "person", ""): 5,
    }
    async with make_edge(WRITING="on", **folders) as edge:
        with writing(tmp_path, content.parent, tmp_path / "build"):
            await draft(edge, "---\ntitle: Two winters\n---\n\nStore.\n")
            await fill(edge.service.store, views, {}, today)
            owner = await sign_in_owner(edge)
            rows = {
                row.css(".who")[0].text(): row.css(".by")[0].text().strip()
                for row in (await owner.get(LIST)).tree.css(".post")
            }
            assert rows["The first"] == "1,234 reads in 30 days"
            assert rows["Zwei"] == "8 reads in 30 days"
            assert "read in" not in rows["Two winters"]
            key = await edge.key("admin:read", "posts:draft")
            few = await Browser(edge).sign_in(key)
            assert "in 30 days" not in (await few.get(LIST)).said
