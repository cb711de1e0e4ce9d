"""Seventeen real journals move in by one command each, and answer where they were."""

from pathlib import Path

import pytest

from tests.site_build.importers import moving


@pytest.mark.size("ci")
@pytest.mark.parametrize("name", moving.NAMES)
def test_a_real_journal_moves_in(name: str, tmp_path: Path) -> None:
    """All its public posts are served, 99 % of its addresses answer, and the build has no error."""
    figures = moving.measure(name, tmp_path)
    assert figures.errors == 0
    assert figures.served >= 0.99 * figures.posts, figures.missed
    assert figures.answered >= 0.99 * figures.addresses, figures.missed
    assert moving.write_row(name, figures) in moving.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(moving.BROKEN))
def test_a_broken_export_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    """An incomplete export makes no journal, and the error says why on one line."""
    source = moving.SITES / "wxr-small" / "source" / name
    refused = moving.run_program(tmp_path, "init", "journal", "--from", str(source))
    assert refused.returncode == 1, refused.stdout
    assert "Traceback" not in refused.stderr
    assert name in refused.stderr
    assert not (tmp_path / "journal").exists()
