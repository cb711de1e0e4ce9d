"""Commands of a newer version beside a store of an older schema: they look, and change nothing."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_api.__main__ import main
from edge_api.auth.actor import system_clock
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.sqlite import opening
from edge_api.db.types import format_instant
from tests.edge.edge_process import Installation, free_port
from tests.edge.engines import ENGINES, placed
from tests.edge.postgresql import PostgreSQL
from tests.edge.small_builds import make_post, point_at, write_build

pytestmark = pytest.mark.size("test")

OLDER, NEEDED = len(MIGRATIONS) - 1, len(MIGRATIONS)
SENTENCE = f"the store has schema {OLDER} and this version needs {NEEDED}: run python -m edge_api "
COMMANDS = (
    ("leads", "list"),
    ("desk", "link"),
    ("keys", "list"),
    ("keys", "issue", "--name", "a"),
    ("requests", "list"),
    ("mail",),
    ("mail", "list"),
    ("clients", "list"),
    ("clients", "register", "--name", "a", "--grants", "client_credentials"),
    ("signing-keys", "list"),
    ("webhooks", "list"),
    ("webhooks", "add", "https://hooks.example/x"),
    ("privacy", "export", "ann@example.org"),
    ("privacy", "erase", "ann@example.org", "--yes"),
    ("privacy", "retain"),
    ("audit",),
)
"""Every command that opens the store, and does not bring it to the present schema."""


def make_older(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the store in a file as the version before left it."""
    with monkeypatch.context() as former:
        former.setattr(opening, "MIGRATIONS", MIGRATIONS[:OLDER])
        opening.create_file(path)
        opening.migrate(path, format_instant(system_clock()))


def version_of(path: Path) -> int:
    """Return the schema version of a file."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


class Older:
    """An installation whose store lacks the last step."""

    def __init__(self, installation: Installation, server: PostgreSQL | None) -> None:
        self.installation = installation
        self._server = server

    def version(self) -> int:
        """Return the number of steps that the store has."""
        if self._server is None:
            return version_of(self.installation.store)
        name = self.installation.settings["DATABASE_URL"].rpartition("/")[2]
        query = "SELECT max(number) FROM fore_edge.schema_steps"
        return int(self._server.execute(query, name)[0][0])


@pytest.fixture(params=ENGINES)
def older(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Older]:
    """Have an older store on each engine."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    point_at(tmp_path, write_build(tmp_path, posts=[make_post("a")], site_url=url))
    (tmp_path / "content").mkdir()
    given = {
        "PORT": str(port),
        "BUILD_DIR": str(tmp_path),
        "RETAIN_LEADS_DAYS": "9",
        "SMTP_URL": f"maildir:{tmp_path}/mail",
        "OWNER_EMAIL": "owner@example.org",
        "SECRET_KEY": "s" * 40,
    }
    with placed(request.param, request, tmp_path) as store:
        installation = Installation(tmp_path, {**given, "DATABASE_URL": store})
        server = None
        if request.param == "sqlite":
            make_older(installation.store, monkeypatch)
        else:
            server = request.getfixturevalue("postgresql")
            name = store.rpartition("/")[2]
            server.execute("DELETE FROM fore_edge.schema_steps WHERE number > 11", name)
            assert NEEDED == 12, "correct both with the next step"
        yield Older(installation, server)


def test_only_what_is_meant_to_migrates(
    older: Older, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each other command ends with a sentence, and the store stays what it was."""
    monkeypatch.chdir(older.installation.folder)
    for name, value in older.installation.settings.items():
        monkeypatch.setenv(name, value)
    for words in COMMANDS:
        code = main([*words])
        said, complained = capsys.readouterr()
        assert (words, code, said) == (words, 1, "")
        assert SENTENCE in complained
        assert len(complained.splitlines()) == 1
        assert older.version() == OLDER


def test_doctor_reports_an_older_schema_among_other_errors(older: Older) -> None:
    """With what else is wrong, in both of its forms."""
    asked = older.installation.changed(TRUSTED_PROXIES="::/0")
    code, said, complained = asked.run("doctor")
    assert (code, complained, SENTENCE in said) == (1, "", True)
    assert "- TRUSTED_PROXIES trusts everybody" in said
    assert "settings and .env" in said[said.index("looked at: ") :]
    assert "webhooks" not in said, "nobody looked, as the store is not open"
    found = json.loads(asked.run("doctor", "--json")[1])
    assert [each for each in found["errors"] if SENTENCE in each]
    assert len(found["errors"]) > 1
    assert "build" not in found["checked"]
    assert older.version() == OLDER


@pytest.mark.parametrize("command", ["upgrade", "migrate"])
def test_a_file_is_brought_up_by_what_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Then other commands go on."""
    path = tmp_path / "edge.db"
    make_older(path, monkeypatch)
    installation = Installation(tmp_path, {"DATABASE_URL": f"sqlite:///{path}"})
    assert installation.run("backup")[0] == 0
    assert version_of(path) == OLDER
    assert installation.run(command)[0] == 0
    assert version_of(path) == NEEDED
    assert installation.run("keys", "list")[0] == 0


def test_the_source_of_a_copy_stays_and_its_target_is_brought_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older source is refused by its name."""
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    make_older(source, monkeypatch)
    make_older(target, monkeypatch)
    installation = Installation(tmp_path, {})
    words = ("copy", "--from", f"sqlite:///{source}", "--to", f"sqlite:///{target}")
    code, _, complained = installation.run(*words)
    assert (code, complained.startswith(f"{source}: {SENTENCE}")) == (1, True)
    assert version_of(source) == OLDER
    assert installation.changed(DATABASE_URL=f"sqlite:///{source}").run("migrate")[0] == 0
    assert installation.run(*words)[0] == 0
    assert version_of(target) == NEEDED


def test_a_restore_reads_an_older_former_store_and_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are read from a copy: the version that made the store can still open it."""
    path, backup = tmp_path / "edge.db", tmp_path / "backup.db"
    make_older(path, monkeypatch)
    make_older(backup, monkeypatch)
    erased = "INSERT INTO suppressed_emails (id, email, reason, created_at) VALUES (?, ?, ?, ?)"
    with closing(sqlite3.connect(path)) as connection, connection:
        known = "0199a5b2-7c3e-7d10-8a44-5f0c2b9e6d71"
        values = (known, "ann@example.org", "unsubscribe", format_instant(system_clock()))
        connection.execute(erased, values)
    installation = Installation(tmp_path, {"DATABASE_URL": f"sqlite:///{path}"})
    code, said, complained = installation.run("restore", str(backup), "--force")
    assert (code, complained) == (0, ""), said
    assert "suppressions, lines of the mail log and the like, taken over: 1" in said
    (aside,) = (each for each in tmp_path.glob("edge.db.replaced-*Z"))
    assert (version_of(aside), version_of(path)) == (OLDER, NEEDED)
    assert not list(tmp_path.glob(".edge.db.former*"))
