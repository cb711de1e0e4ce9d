"""Read a journal out of Ghost: the JSON of `Settings: Export`, from Ghost 1 to 6."""

import json
import re
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml

from site_build.importers.html_to_markdown import convert, show_plain
from site_build.importers.imported import (
    Imported,
    Text,
    UnreadableJournal,
    read_members,
    read_text,
    walk,
)

_HOST: Final = re.compile(r"__GHOST_URL__|(?<=[\"'])https?://[^/\"'\s]+(?=/content/images/)")
_RESIZED: Final = re.compile(r"(?<=/content/images/)size/w\d+(?:h\d+)?/(?:format/\w+/)?")
_STRINGS: Final = re.compile(
    r'(?:"(?:text|html|markdown|code)":|\[0,\[[^]]*\],\d+,)("(?:[^"\\]|\\.)*")'
)
"""The texts in a document of Ghost's editors, Lexical and Mobiledoc."""
_ARCHIVES: Final = {"/rss/": "feed:", "/feed/": "feed:", "/page/2/": "posts:"}
_DRAFTS: Final = {
    "members": "it was for members alone",
    "paid": "it was for paying members alone",
    "tiers": "it was for paying members alone",
    "scheduled": "it was scheduled",
    "sent": "it went out by e-mail alone",
}
"""Why a text is a draft here that was none."""

_Row = dict[str, Any]


def read_ghost(root: Path) -> Imported:
    """Read an export, or the one of a folder, with what is beside it.

    That is the folder `content` with the pictures, the redirects, and a list of members (CSV).
    Raises UnreadableJournal.
    """
    folder = root if root.is_dir() else root.parent
    path = next((e for e in sorted(root.glob("*.json")) if e.name != "redirects.json"), root)
    try:
        document = json.loads(read_text(path))
        tables = defaultdict(list, document.get("data") or document["db"][0]["data"])
        settings = defaultdict(str, {row["key"]: row["value"] for row in tables["settings"]})
        menu = json.loads(settings["navigation"] or "[]")
        linked, posts = _link(tables), [*tables.pop("posts")]
        noted = {row["post_id"]: row for row in tables["posts_meta"]}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableJournal(
            f"{path.name} is no export of Ghost, or it is cut ({error!r}); export it again"
        ) from None
    journal = Imported(
        "Ghost",
        title=settings["title"] or "",
        description=settings["description"] or "",
        lang=settings["locale"] or settings["lang"] or settings["default_locale"] or "",
        timezone=settings["timezone"] or settings["active_timezone"] or "",
        menu=[(each["label"], each["url"]) for each in menu],
        redirects=dict(_ARCHIVES),
        files={
            f"content/{name}": each
            for name, each in walk(folder / "content")
            if re.match("images/(?!size/)|files/|media/", name)
        },
        members=[
            row
            for each in sorted(folder.glob("*members*.csv"))
            for row in read_members(read_text(each))
        ],
    )
    for each in posts:
        try:
            row = defaultdict(str, {key: value for key, value in each.items() if value})
            row |= noted.get(row["id"], {})
            _read_post(f"{path.name}/{row['slug']}", row, linked, journal)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            journal.find(
                path.name,
                0,
                f"a text cannot be read ({error!r}): {str(each)[:80]}",
                "copy it by hand",
                "left out",
            )
    for each in sorted(folder.glob("redirects.*")):
        _read_redirects(each, journal)
    if (folder / "routes.yaml").exists():
        journal.find(
            "routes.yaml",
            0,
            "addresses that it gives to texts and lists are not read",
            "add them to `content/redirects.txt`",
        )
    return journal


def _link(tables: dict[str, list[_Row]]) -> dict[str, list[_Row]]:
    """Return the tags and the authors of each text by its number, in their order."""
    linked = defaultdict(list)
    rows = {row["id"]: row for name in ("tags", "users") for row in tables[name]}
    for tie in sorted(
        [*tables["posts_tags"], *tables["posts_authors"]],
        key=lambda tie: tie.get("sort_order") or 0,
    ):
        if found := rows.get(tie.get("tag_id") or tie.get("author_id")):
            linked[tie["post_id"]].append(found | {"is_tag": "tag_id" in tie})
    return linked


def _read_post(source: str, row: _Row, linked: dict[str, list[_Row]], journal: Imported) -> None:
    """Read a post or a page."""
    html = row["html"] or "".join(
        f"<p>{json.loads(text)}</p>"
        for text in _STRINGS.findall(row["lexical"] or row["mobiledoc"])
    )
    reason = _DRAFTS.get(row["visibility"]) or _DRAFTS.get(
        "sent" if row["email_only"] else row["status"]
    )
    is_public = row["status"] == "published" and not reason
    lists = {
        f"/{'tag' if each['is_tag'] else 'author'}/{each['slug']}/": each["name"]
        for each in linked[row["id"]]
        if not each["name"].startswith("#")
    }
    tags = [name for old, name in lists.items() if old.startswith("/tag/")]
    html, image = (_RESIZED.sub("", _HOST.sub("", each)) for each in (html, row["feature_image"]))
    journal.texts.append(
        Text(
            source,
            convert(html),
            row["title"],
            f"/{row['slug']}/" if is_public else "",
            kind="page" if row["type"] == "page" or row["page"] else "post",
            status="published" if is_public else "draft",
            date=datetime.fromisoformat(f"{row['published_at'][:19]}+00:00")
            if row["published_at"]
            else None,
            slug=row["slug"],
            tags=tags,
            author=", ".join(name for old, name in lists.items() if old.startswith("/author/")),
            description=row["custom_excerpt"] or row["meta_description"],
            image=image,
            image_alt=show_plain(row["feature_image_alt"] or row["feature_image_caption"]),
        )
    )
    notes = {
        f"is a draft here, for {reason}": reason,
        "its formatting is lost, since the export has no HTML of it": html and not row["html"],
        f"it first stood at {row['canonical_url']}": row["canonical_url"],
    }
    for what in (what for what, is_so in notes.items() if is_so):
        journal.find(source, 0, what, "look at it in the new journal")
    if is_public:
        for old, name in lists.items():
            is_tag = old.startswith("/tag/")
            journal.redirects[old] = f"tag:{name}" if is_tag else "posts:"
            journal.redirects[f"{old}rss/"] = f"feed:{name}" if is_tag else "feed:"


def _read_redirects(path: Path, journal: Imported) -> None:
    """Read the redirects of an owner; patterns that say more than an address are named."""
    try:
        data = yaml.safe_load(read_text(path))  # it reads JSON too
        parts = (
            data.values() if isinstance(data, dict) else [{row["from"]: row["to"]} for row in data]
        )
        pairs = [
            (str(old), new) for part in parts for old, new in part.items() if isinstance(new, str)
        ]
    except (yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        pairs = [(f"(cannot be read: {error})", "")]
    for old, new in pairs:
        plain = re.sub(r"^\^|/?\??\$?$", "", old.replace("\\/", "/"))
        if re.search(r"[\\()\[\]*+?|^$]", plain):
            journal.find(
                path.name,
                0,
                f"the redirect of {old} is a pattern",
                "write its addresses into `content/redirects.txt`",
            )
        else:
            journal.redirects |= {plain: new, f"{plain}/": new}
