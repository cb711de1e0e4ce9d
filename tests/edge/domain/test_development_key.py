import stat
from pathlib import Path
from typing import Any

import pytest

from edge_api.auth.keys import Keys, NewKey
from edge_api.cli.serve import development_key
from edge_api.db.query import Store
from edge_api.schema.credentials import SCOPES
from tests.edge.domain.doors import make_access


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the key is kept."""
    return tmp_path / "edge.dev-key"


def read(path: Path) -> tuple[str, int]:
    """Return what the file says, and who may read it."""
    return path.read_text().strip(), stat.S_IMODE(path.stat().st_mode)


def write(path: Path, text: str) -> None:
    """Leave the file there as somebody careless would."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


async def test_the_development_key_has_all_scopes_but_one(
    store: Store, path: Path, clock: Any
) -> None:
    """A real key; only a person gives the scope that publishes."""
    secret = await development_key(store, path, clock)

    actor = await make_access(store, clock).authenticate(secret)
    assert actor.scopes == SCOPES.keys() - {"posts:publish"}


async def test_the_development_key_is_private_and_used_again(
    store: Store, path: Path, clock: Any, keys: Keys
) -> None:
    """One key however often the service starts, in a file that others cannot read."""
    first = await development_key(store, path, clock)
    write(path, first)
    second = await development_key(store, path, clock)

    assert second == first
    assert read(path) == (first, 0o600)
    assert len(await keys.all()) == 1
    assert [file.name for file in path.parent.glob("*.dev-key*")] == [path.name]


async def test_an_invalid_development_key_is_replaced(
    store: Store, path: Path, clock: Any, keys: Keys
) -> None:
    """Revoked, too weak, of another store, or no key at all."""
    revoked = await development_key(store, path, clock)
    await keys.revoke((await keys.all())[0]["id"])
    seen = {revoked, await development_key(store, path, clock)}
    weak = await keys.issue(NewKey("weak"))
    for kept in (weak.secret, "fe_sk_of_another_store", "\u00e9", ""):
        write(path, kept)
        seen.add(await development_key(store, path, clock))

    assert len(seen) == 6
    assert weak.secret not in seen
    assert read(path)[1] == 0o600
