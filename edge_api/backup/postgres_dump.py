"""Rows of a store in PostgreSQL, dumped and restored by its own programs."""

import os
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from edge_api.db.errors import StoreRefusal
from edge_api.db.postgres.connection import SCHEMA

LOCK_SECONDS: Final = 60  # how long a dump waits for who changes the tables
MAX_SECONDS: Final = 2 * 3600  # then a program is ended: a server that is gone answers never


def dump_rows(url: str, target: Path) -> None:
    """Dump the store of one instant, and read the dump to its end. Raises StoreRefusal."""
    without_limits = f"--exclude-table-data={SCHEMA}.rate_*"  # counts of the last minutes
    options = ("--format=custom", f"--schema={SCHEMA}", f"--lock-wait-timeout={LOCK_SECONDS}s")
    _run_program("pg_dump", url, *options, without_limits, f"--file={target}")
    _run_program("pg_restore", None, f"--file={os.devnull}", str(target))


def restore_rows(url: str, source: Path) -> None:
    """Restore a dump into a database without a store, wholly or not at all. Raises StoreRefusal."""
    options = ("--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction")
    _run_program("pg_restore", url, *options, str(source))


def drop_rows(url: str) -> None:
    """Drop what was restored. Raises StoreRefusal."""
    _run_program("psql", url, "--quiet", "--no-psqlrc", f"--command=DROP SCHEMA {SCHEMA} CASCADE")


def _run_program(program: str, url: str | None, *words: str) -> None:
    command = (program, *words)
    environment = {**os.environ, "PGCONNECT_TIMEOUT": "10", "LC_ALL": "C"}
    if url is not None:
        # Everybody on this machine can read arguments, so the password is none.
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        password = dict(options).get("password") or unquote(parts.password or "")
        user, at, hosts = parts.netloc.rpartition("@")
        # libpq knows no "+" for a space, and needs both slashes, which geturl() leaves out where
        # there is no host.
        kept = urlencode([each for each in options if each[0] != "password"], quote_via=quote)
        place = f"{user.partition(':')[0]}{at}{hosts}{parts.path}"
        command = (*command, f"--dbname={parts.scheme}://{place}{'?' if kept else ''}{kept}")
        environment |= {"PGPASSWORD": password} if password else {}
    try:
        subprocess.run(  # noqa: S603
            command,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
        )
    except FileNotFoundError:
        raise StoreRefusal(
            f"there is no program {program}: install the client programs of PostgreSQL, of the "
            "server's version or a later one (Debian: postgresql-client)"
        ) from None
    except subprocess.TimeoutExpired:
        raise StoreRefusal(
            f"{program} did not end within {MAX_SECONDS / 3600:g} hours: see that the server of "
            "PostgreSQL answers"
        ) from None
    except subprocess.CalledProcessError as error:
        complaint = " ".join(str(error.stderr).split())[:500]
        raise StoreRefusal(f"{program} failed: {complaint}") from None
