"""`upgrade`: back up the store and migrate it to this version, after a trial on a copy."""

from pathlib import Path

from edge_api.auth.actor import system_clock
from edge_api.backup.replica import make_replication
from edge_api.cli.backup import make_backup
from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.copying import copy_backup, remove_draft, verify_copy
from edge_api.open_store import command_store, open_store, require_sqlite_path
from edge_api.schema.commands import Arguments
from edge_api.settings import Settings

PARAMS = ()


async def run(_arguments: Arguments, settings: Settings) -> int:
    """Upgrade the store while the former version serves it. Returns 0; raises StoreRefusal.

    A migration that fails on the copy leaves the store as it is. On PostgreSQL, where a failed
    migration changes nothing either, there is neither a backup nor a copy.
    """
    make_replication(settings)  # raises where Litestream, which the edge needs, is missing
    if settings.database_path:
        await _try_migration(require_sqlite_path(settings, "upgrade"), settings)
    async with command_store(settings, migrates=True):
        pass
    print("the store is at the schema of this version: restart the edge and the watcher")
    return 0


async def _try_migration(store: Path, settings: Settings) -> None:
    """Make a backup, print where it is, and migrate a copy of it."""
    backup = make_backup(settings)
    print(f"{backup.path}: {backup.contents.total:,} rows, verified", flush=True)
    draft = store.with_name(f".{store.name}.upgrading")
    remove_draft(draft)
    try:
        copy_backup(backup.path, draft)
        copy = await open_store(f"sqlite:///{draft}", system_clock, create=False, migrates=True)
        await copy.close()
        verify_copy(draft)
    except (StoreRefusal, OSError) as error:
        raise StoreRefusal(
            f"the store stays as it is, and the version that serves it goes on: on a copy, {error}"
        ) from None
    finally:
        remove_draft(draft)
    print("a copy of it was migrated and verified")
