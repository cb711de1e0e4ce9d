"""Read a journal out of Substack: the zip of `Settings: Exports`, packed or not."""

import csv
import io
import re
import zipfile
import zlib
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Final

from site_build.importers.html_to_markdown import convert
from site_build.importers.imported import (
    Imported,
    Text,
    UnreadableJournal,
    read_members,
    read_text,
    walk,
)

LARGEST: Final = 500_000_000
_EMBEDDED: Final = re.compile(
    r"<div class=\"(?:tweet|twitter|instagram|embedded-|digest-post|spotify|soundcloud)[^>]*?"
    r"&quot;(?:url|canonical_url)&quot;:&quot;(https?:.*?)&quot;[^>]*>"
)
"""A post of another site, of which the export has little more than the address."""
_BROKEN: Final = (
    *(OSError, RuntimeError, ValueError, LookupError, RecursionError),
    *(zipfile.BadZipFile, zlib.error, csv.Error),
)
"""What a broken archive, table or text raises."""


def read_substack(root: Path) -> Imported:
    """Read an export: a zip, or the folder that it unpacks to.

    Raises UnreadableJournal.
    """
    try:
        files: dict[str, Path | zipfile.Path] = (
            dict(walk(root))
            if root.is_dir()
            else {name: zipfile.Path(root, name) for name in zipfile.ZipFile(root).namelist()}
        )
        if root.is_file() and sum(e.file_size for e in zipfile.ZipFile(root).infolist()) > LARGEST:
            raise UnreadableJournal(f"{root.name} holds more than 500 MB; unpack it yourself")
        by_name = {name.rpartition("/")[2]: path for name, path in files.items()}
        rows = [*csv.DictReader(io.StringIO(read_text(by_name["posts.csv"])))]
        members = [
            row
            for name, path in by_name.items()
            if re.match(r"(?:email_list|subscribers).*\.csv$", name)
            for row in read_members(read_text(path))
        ]
    except _BROKEN as error:
        raise UnreadableJournal(
            f"{root.name} is no export of Substack, or it is cut ({error!r}); export it again"
        ) from None
    journal = Imported("Substack", members=members)
    journal.redirects = {"/feed": "feed:", "/archive": "archive:"}
    for each in rows:
        row = defaultdict(str, {key: value for key, value in each.items() if value})
        source = f"posts/{row['post_id']}.html"
        try:
            html = read_text(by_name[f"{row['post_id']}.html"])
            player = f'<audio src="{row["podcast_url"]}"></audio>' if row["podcast_url"] else ""
            is_public = row["is_published"] == "true" and row["audience"] in {"everyone", ""}
            slug = row["post_id"].partition(".")[2]
            journal.texts.append(
                Text(
                    source,
                    convert(player + _EMBEDDED.sub(r'\g<0><p><a href="\1">\1</a></p>', html)),
                    row["title"] or slug or "Untitled",
                    f"/p/{slug}" if is_public else "",
                    kind="page" if row["type"] == "page" else "post",
                    status="published" if is_public else "draft",
                    date=datetime.fromisoformat(row["post_date"]) if row["post_date"] else None,
                    slug=slug,
                    description=row["subtitle"],
                )
            )
            if row["is_published"] == "true" and not is_public:
                journal.find(
                    source,
                    0,
                    f"is a draft here, for it was for {row['audience']}",
                    "publish it if you want",
                )
        except _BROKEN as error:
            journal.find(
                source,
                0,
                f"the text {row['title']!r} cannot be read ({error!r})",
                "copy it by hand",
                "left out",
            )
    if any("substackcdn" in text.body or "substack-post" in text.body for text in journal.texts):
        journal.find(
            "", 0, "pictures are at Substack still", "fetch them and name them in the texts"
        )
    return journal
