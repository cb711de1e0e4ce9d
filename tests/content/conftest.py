"""One checkout for all papers, copied for each of them."""

from pathlib import Path

import pytest

from tests.content.workshop import lay_out


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder like a checkout in which the journal is built."""
    folder = tmp_path_factory.mktemp("papers") / "checkout"
    folder.mkdir()
    lay_out(folder)
    return folder
