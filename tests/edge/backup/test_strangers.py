"""Commands of somebody who is not the one who serves: the store's folder is not theirs to enter."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edge_api.__main__ import main
from tests.drills.loss import installation_in, said

NOBODY = 65534


@contextmanager
def stranger(folder: Path) -> Iterator[None]:
    """Be somebody meanwhile who cannot enter a folder; rights do not stop the superuser."""
    folder.chmod(0)
    owner = os.geteuid()
    os.seteuid(NOBODY if owner == 0 else owner)
    try:
        yield
    finally:
        os.seteuid(owner)
        folder.chmod(0o700)


@pytest.mark.parametrize(
    "words",
    [
        ("keys", "list"),
        ("backup",),
        ("doctor",),
        ("migrate",),
        ("restore", "{var}/backup.db", "--force"),
    ],
)
def test_a_store_of_another_user_is_reported(
    tmp_path: Path,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit 1, and one line that names what they cannot use and says the fix."""
    installation = installation_in(tmp_path)
    said(installation, "migrate")
    monkeypatch.chdir("/")
    for name, value in installation.settings.items():
        monkeypatch.setenv(name, value)
    with stranger(installation.store.parent):
        code = main([word.format(var=installation.store.parent) for word in words])

    output, complained = capsys.readouterr()
    if words == ("doctor",):
        complained, _, _ = output.partition("\nlooked at: ")
    assert (code, len(complained.splitlines())) == (1, 1), complained
    assert "Permission denied" in complained
    assert str(installation.store.parent) in complained
