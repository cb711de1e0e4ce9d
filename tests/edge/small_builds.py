"""Small builds, written file by file, so that a test can say exactly what is in them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from edge_api.db.types import format_instant
from edge_api.schema.index import (
    CURRENT_LINK,
    INDEX_END,
    INDEX_FILE,
    INDEX_FORMAT,
    INDEX_SEPARATOR,
    INDEX_START,
    SITE_FOLDER,
)

SITE_URL = "http://journal.test"
START = datetime(2026, 1, 1, tzinfo=UTC)
Json = dict[str, Any]


def make_post(slug: str, day: int = 0, **changes: Any) -> Json:
    """Return a record of the index, published so many days after the start of 2026."""
    instant = format_instant(START + timedelta(days=day))
    record = {
        "slug": slug,
        "title": slug.title(),
        "description": f"About {slug}.",
        "excerpt": f"About {slug}.",
        "publishedAt": instant,
        "published_at": instant,
        "updatedAt": instant,
        "readingMinutes": 1,
        "tags": ["all"],
        "url": f"{SITE_URL}/journal/{slug}/",
        "content": f"Words of {slug}.",
        "content_html": f"<p>Words of {slug}.</p>",
    }
    return {**record, **changes}


def make_head(build_id: str, count: int, **changes: Any) -> Json:
    """Return the head of an index."""
    head = {
        "format": INDEX_FORMAT,
        "build_id": build_id,
        "site_url": SITE_URL,
        "site_title": "Small",
        "site_description": "A small journal.",
        "built_for": format_instant(START + timedelta(days=999)),
        "count": count,
    }
    return {**head, **changes}


def encode_index(head: Json, posts: Sequence[Json]) -> bytes:
    """Return the bytes of an index."""
    lines = [json.dumps(post, ensure_ascii=False).encode() for post in posts]
    start = INDEX_START + json.dumps(head).encode() + INDEX_SEPARATOR
    return start + b",\n".join(lines) + (b"\n" if lines else b"") + INDEX_END


def write_site(folder: Path, files: Mapping[str, bytes | str]) -> None:
    """Write files by their names below `folder`."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_build(
    build_dir: Path,
    build_id: str = "build-0001",
    posts: Sequence[Json] = (),
    files: Mapping[str, bytes | str] | None = None,
    **head: Any,
) -> Path:
    """Write a build beside others and return its folder; `current` is left as it is."""
    folder = build_dir / build_id
    folder.mkdir(parents=True)
    (folder / INDEX_FILE).write_bytes(encode_index(make_head(build_id, len(posts), **head), posts))
    pages = {
        f"journal/{post.get('slug', 'none')}/index.html": f"<p>{build_id}</p>" for post in posts
    }
    site = {"index.html": f"<p>{build_id}</p>", **pages, **(files or {})}
    write_site(folder / SITE_FOLDER, site)
    return folder


def point_at(build_dir: Path, folder: Path) -> None:
    """Let `current` point at a build, in one step."""
    partial = build_dir / ".current"
    partial.unlink(missing_ok=True)
    partial.symlink_to(folder.name)
    partial.replace(build_dir / CURRENT_LINK)
