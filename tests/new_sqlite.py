"""Runs tests with a newer SQLite: `pytest -p tests.new_sqlite` puts PyPI's in place of Python's.

It is a plugin, because it has to come before everything that imports `sqlite3`. The package is in
`requirements/sqlite.txt`. Processes that a test starts have Python's own SQLite.
"""

import sqlite3
import sys
from importlib import import_module

_new = import_module("pysqlite3")
for _name, _number in vars(sqlite3).items():
    if _name.startswith("SQLITE_"):  # it lacks names that Python has had since 3.11
        vars(_new).setdefault(_name, _number)
sys.modules.update({"sqlite3": _new, "sqlite3.dbapi2": import_module("pysqlite3.dbapi2")})


def pytest_report_header() -> str:
    """Name the version in the first lines of a run."""
    return f"SQLite {_new.sqlite_version} in place of {sqlite3.sqlite_version}"
