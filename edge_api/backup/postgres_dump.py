"""Rows of a store in PostgreSQL, dumped and restored by its own programs."""

import os
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from edge_api.db.errors import StoreRefusal
from edge_api.db.postgres.connection import SCHEMA


def dump_rows(url: str, target: Path) -> None:
    """Dump the store of one instant, and read the dump to its end. Raises StoreRefusal."""
    passing = f"--exclude-table-data={SCHEMA}.rate_*"  # counts of the last minutes
    schema = f"--schema={SCHEMA}"
    _run("pg_dump", url, "--format=custom", schema, passing, f"--file={target}")
    _run("pg_restore", None, f"--file={os.devnull}", str(target))


def restore_rows(url: str, source: Path) -> None:
    """Restore a dump into a database without a store, wholly or not at all. Raises StoreRefusal."""
    options = ("--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction")
    _run("pg_restore", url, *options, str(source))


def drop_rows(url: str) -> None:
    """Drop what was restored. Raises StoreRefusal."""
    _run("psql", url, "--quiet", "--no-psqlrc", f"--command=DROP SCHEMA {SCHEMA} CASCADE")


def _run(program: str, url: str | None, *words: str) -> None:
    command = (program, *words)
    environment = {**os.environ, "PGCONNECT_TIMEOUT": "10", "LC_ALL": "C"}
    if url is not None:
        # Everybody on this machine can read arguments, so the password is none.
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        password = options.pop("password", "") or unquote(parts.password or "")
        user, at, hosts = parts.netloc.rpartition("@")
        parts = parts._replace(
            netloc=f"{user.partition(':')[0]}{at}{hosts}", query=urlencode(options)
        )
        command = (*command, f"--dbname={parts.geturl()}")
        environment |= {"PGPASSWORD": password} if password else {}
    try:
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
    except FileNotFoundError:
        raise StoreRefusal(
            f"there is no program {program}: install the client programs of PostgreSQL, of the "
            "server's version or a later one (Debian: postgresql-client)"
        ) from None
    except subprocess.CalledProcessError as error:
        complaint = " ".join(str(error.stderr).split())[:500]
        raise StoreRefusal(f"{program} failed: {complaint}") from None
