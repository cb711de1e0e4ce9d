"""Reads the export of a Substack journal (`Settings: Exports`): a zip, or its unpacked folder."""

import csv
import io
import json
import re
import zipfile
from collections import Counter, defaultdict
from datetime import datetime
from html import escape, unescape
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

LARGEST_EXPORT: Final = 500_000_000  # bytes of an unpacked export
_EMBEDDED: Final = re.compile(
    r'<div[^>]* class="(?:tweet|twitter|instagram|embedded-|digest-post|spotify|soundcloud|latex'
    r'|image-gallery)[^>]*? data-attrs="([^"]*)"[^>]*>'
)
"""Elements that hold only data in the export: posts of other sites, formulas and galleries."""


def read_substack(root: Path) -> Imported:
    """Read an export: a zip, or the folder that it unpacks to.

    Raises one of READING_ERRORS (`importers/imported.py`) if it is broken, and UnreadableJournal
    if it is too large.
    """
    archive = zipfile.ZipFile(root) if root.is_file() else None
    if archive and sum(each.file_size for each in archive.infolist()) > LARGEST_EXPORT:
        raise UnreadableJournal(f"{root.name} holds more than 500 MB; unpack it yourself")
    packed = ((e, zipfile.Path(archive, e)) for e in archive.namelist()) if archive else ()
    by_name = {name.rpartition("/")[2]: path for name, path in (*packed, *walk(root))}
    journal = Imported(
        "Substack",
        redirects={"/feed": "feed:", "/archive": "archive:"},
        members=[
            row
            for name, path in by_name.items()
            if re.match(r"(?:email_list|subscribers).*\.csv$", name)
            for row in read_members(read_text(path))
        ],
    )
    for each in csv.DictReader(io.StringIO(read_text(by_name["posts.csv"]))):
        row = defaultdict(str, {key: value for key, value in each.items() if value})
        source = f"posts/{row['post_id']}.html"
        with journal.skipping_unreadable(source, row["title"]):
            _read_post(source, row, read_text(by_name[f"{row['post_id']}.html"]), journal)
    # No file says where the journal was, but its texts link to each other.
    bodies = "".join(text.body for text in journal.texts)
    addresses = {text.address for text in journal.texts}
    hosts = Counter(
        host
        for host, address in re.findall(r"\((https://[^/\s()]+)(/p/[\w-]+)", bodies)
        if address in addresses
    )
    journal.origin = next((host for host, _ in hosts.most_common(1)), "")
    if pictures := re.findall(r"!\[[^\]]*\]\(https?://", bodies):
        journal.note(
            "",
            0,
            f"{len(pictures)} pictures are at Substack still, and pages show nothing of others",
            "put them into content/images, and name them in the texts",
        )
    return journal


def _read_post(source: str, row: dict[str, str], html: str, journal: Imported) -> None:
    """Read a post, a page or a thread."""
    player = f'<audio src="{row["podcast_url"]}"></audio>' if row["podcast_url"] else ""
    is_public = row["is_published"] == "true" and row["audience"] in {"everyone", ""}
    slug = row["post_id"].partition(".")[2]
    journal.texts.append(
        Text(
            source,
            convert(player + _EMBEDDED.sub(_show_embedded, html)),
            row["title"] or slug or "Untitled",
            f"/p/{slug}" if is_public else "",
            kind="page" if row["type"] == "page" else "post",
            status="published" if is_public else "draft",
            date=datetime.fromisoformat(row["post_date"]) if row["post_date"] else None,
            slug=slug,
            description=row["subtitle"],
        )
    )
    lost = re.findall(r'class="(poll|native-audio|native-video)-embed', html)
    journal.note_true(
        source,
        {
            f"is a draft here, for it was for {row['audience']}": (
                row["is_published"] == "true" and not is_public
            ),
            f"holds what is at Substack alone: {', '.join(lost)}": lost,
        },
    )


def _show_embedded(found: re.Match[str]) -> str:
    """Return an element that holds only data, followed by HTML that shows that data."""
    data = defaultdict(str, json.loads(unescape(found[1])))
    photo = data["instagram_id"] and f"https://www.instagram.com/p/{data['instagram_id']}/"
    link, formula = data["url"] or data["canonical_url"] or photo, data["persistentExpression"]
    title = data["title"] if data["canonical_url"] else link
    pictures = (each["src"] for each in (data["gallery"] or {"images": []})["images"])
    return (
        found[0]
        + f'<p><a href="{escape(link)}">{escape(title or link)}</a></p>' * bool(link)
        + f"<p>\\[{escape(formula)}\\]</p>" * bool(formula)
        + "".join(f'<p><img src="{escape(picture)}"></p>' for picture in pictures)
    )
