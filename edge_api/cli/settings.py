"""`settings`: print every setting with its value and its purpose."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from click import Option

from edge_api.backup.replica import make_replication
from edge_api.schema.commands import Arguments
from edge_api.settings import (
    SETTINGS,
    Settings,
    find_missing_folders,
    find_mistakes,
    show_value,
)

PARAMS: Final = (
    Option(
        ["--check"],
        is_flag=True,
        help="only check them and what the replica needs; print the replica's folder, if it is one",
    ),
)


def run(arguments: Arguments, settings: Settings) -> int:
    """Print the table, or only check. Returns 0; raises SettingsError and StoreRefusal."""
    is_draft = Path.cwd().name == ".deploy"  # where `deploy` checks a new .env
    missing = () if is_draft else find_missing_folders(settings)
    sys.stderr.writelines(f"{each}\n" for each in (*find_mistakes(settings), *missing))
    if arguments.check:
        make_replication(settings)
        if settings.mail_templates:
            from edge_api.mail.sample_message import open_templates  # noqa: PLC0415  slow to import

            folder = Path("../.." if is_draft else "", settings.mail_templates)
            open_templates(replace(settings, mail_templates=folder))
        replica = urlsplit(settings.litestream_replica or "")
        print(Path(replica.path).resolve() if replica.scheme == "file" else "")
        return 0
    width = max(map(len, SETTINGS))
    for name, setting in SETTINGS.items():
        value = show_value(getattr(settings, name.lower()), setting)
        print(f"{name:<{width}}  {value:<28}  {setting.description}")
    return 0
