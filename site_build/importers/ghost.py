"""Read a journal out of Ghost: the JSON of `Settings: Export`, from Ghost 1 to 6."""

import json
import re
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

import yaml

from site_build.importers.html_to_markdown import convert, plain_text
from site_build.importers.imported import (
    Imported,
    Text,
    read_members,
    read_text,
    walk,
)

_DRAFTS: Final = {
    "paid": "it was for paying members alone",
    "tiers": "it was for paying members alone",
    "scheduled": "it was scheduled",
    "sent": "it went out by e-mail alone",
}
"""Reasons why a text becomes a draft here, by its visibility or status in Ghost."""

_Row = dict[str, Any]


def read_ghost(root: Path) -> Imported:
    """Read an export, or a folder with one, and the files beside it.

    Those are the folder `content` with pictures, redirects, routes, and a list of members (CSV).
    Raises an error of READING_ERRORS for a broken export.
    """
    path = next((e for e in sorted(root.glob("*.json")) if e.name != "redirects.json"), root)
    document = json.loads(read_text(path))
    reader = _Reader(
        path.name,
        root if root.is_dir() else root.parent,
        document.get("data") or document["db"][0]["data"],
    )
    for each in reader.posts:
        with reader.journal.skipping_unreadable(path.name, str(each)[:80]):
            row = {**reader.post_meta.get(each["id"], {}), **each}
            reader.read(defaultdict(str, {key: value for key, value in row.items() if value}))
    return reader.journal


class _Reader:
    """Reads the tables of an export into a journal."""

    def __init__(self, name: str, folder: Path, data: _Row) -> None:
        tables = defaultdict[str, list[_Row]](list, data)
        settings = defaultdict(str, {row["key"]: row["value"] or "" for row in tables["settings"]})
        self.name, self.posts = name, [*tables["posts"]]
        self.post_meta = {row["post_id"]: row for row in tables["posts_meta"]}
        """Rows of `posts_meta` by post."""
        self.tags_and_authors = _find_tags_and_authors(tables)
        self.journal = Imported(
            "Ghost",
            title=settings["title"],
            description=settings["description"],
            author=tables["users"][0]["name"] if len(tables["users"]) == 1 else "",
            lang=settings["locale"] or settings["lang"] or settings["default_locale"],
            timezone=settings["timezone"] or settings["active_timezone"],
            menu=[(e["label"], e["url"]) for e in json.loads(settings["navigation"] or "[]")],
            redirects={"/rss/": "feed:", "/feed/": "feed:"}
            | {f"/page/{number}/": "posts:" for number in range(2, 3 + len(self.posts) // 5)},
            files={
                f"content/{name}": each
                for name, each in walk(folder, "content")
                if re.match("images/(?!size/)|files/|media/", name)
            },
            members=[
                row
                for each in sorted(folder.glob("*members*.csv"))
                for row in read_members(read_text(each))
            ],
        )
        self.zone = ZoneInfo(next(iter(available_timezones() & {self.journal.timezone}), "UTC"))
        self.forms = {"": settings["permalinks"] or "/{slug}/"}
        """Templates of posts' addresses by tag; the one without a tag is for all other posts."""
        self.lists = {"tag": "/tag/{slug}/", "author": "/author/{slug}/"}
        """Templates of the addresses of tags and authors."""
        for each in sorted([*folder.glob("redirects.*"), *folder.glob("routes.yaml")]):
            with self.journal.skipping_unreadable(each.name, each.name):
                read = self.read_routes if each.stem == "routes" else self.read_redirects
                load = json.loads if each.suffix == ".json" else yaml.safe_load
                read(each.name, load(read_text(each)))

    def read(self, row: _Row) -> None:
        """Read a post or a page."""
        source, linked = f"{self.name}/{row['slug']}", self.tags_and_authors[row["id"]]
        # Without HTML, the editor's document, Lexical or Mobiledoc, has at least the texts.
        html = row["html"] or "".join(
            f"<p>{json.loads(text)}</p>"
            for text in re.findall(
                r'(?:"(?:text|html|markdown|code)":|\[0,\[[^]]*\],\d+,)("(?:[^"\\]|\\.)*")',
                row["lexical"] or row["mobiledoc"],
            )
        )
        is_gated = row["visibility"] not in {"", "public"} or "kg-gated-block:begin" in html
        reason = _DRAFTS.get(
            row["visibility"], "it was for members alone" * is_gated
        ) or _DRAFTS.get("sent" if row["email_only"] else row["status"])
        is_public = row["status"] == "published" and not reason
        is_page = row["type"] == "page" or bool(row["page"])
        stamp = row["published_at"] or row["updated_at"]
        date = (
            datetime.fromisoformat(f"{stamp[:19]}+00:00").astimezone(self.zone) if stamp else None
        )
        tags, authors = ([e for e in linked if e["is_tag"] == is_tag] for is_tag in (True, False))
        values = {
            "slug": row["slug"],
            "id": row["id"],
            "primary_tag": next((e["slug"] for e in tags), "all"),
            **dict.fromkeys(("primary_author", "author"), next((e["slug"] for e in authors), "")),
            **({"year": f"{date:%Y}", "month": f"{date:%m}", "day": f"{date:%d}"} if date else {}),
        }
        forms = [self.forms[tag] for tag in (*(e["slug"] for e in tags), "") if tag in self.forms]
        # Links lose Ghost's placeholder for its host, pictures also their host and size.
        html, image = (
            re.sub(
                r"__GHOST_URL__|(?<=[\"'])https?://[^/\"'\s]+(?=/content/images/)"
                r"|(?<=/content/images/)size/w\d+(?:h\d+)?/(?:format/\w+/)?",
                "",
                each,
            )
            for each in (html, row["feature_image"])
        )
        self.journal.texts.append(
            Text(
                source,
                convert(html),
                row["title"],
                _fill("/{slug}/" if is_page else forms[0], values) if is_public else "",
                kind="page" if is_page else "post",
                status="published" if is_public else "draft",
                date=date,
                slug=row["slug"],
                tags=[each["name"] for each in tags if each["name"][:1] != "#"],
                author=", ".join(each["name"] for each in authors),
                description=row["custom_excerpt"] or row["meta_description"],
                image=image,
                image_alt=plain_text(row["feature_image_alt"] or row["feature_image_caption"]),
            )
        )
        self.journal.note_true(
            source,
            {
                f"is a draft here, for {reason}": reason,
                "its formatting is lost, since the export has no HTML of it": html
                and not row["html"],
                f"it first stood at {row['canonical_url']}": row["canonical_url"],
                "code that it added to its page is left out": (
                    row["codeinjection_head"] or row["codeinjection_foot"]
                ),
            },
        )
        for each in (each for each in linked if is_public and each["name"][:1] != "#"):
            old = _fill(self.lists["tag" if each["is_tag"] else "author"], each)
            kind, name = ("tag:", each["name"]) if each["is_tag"] else ("posts:", "")
            self.journal.redirects |= {old: f"{kind}{name}", f"{old}rss/": f"feed:{name}"}

    def read_redirects(self, name: str, data: Any) -> None:
        """Read the redirects of the owner; note those whose address is a pattern."""
        rows = data.values() if isinstance(data, dict) else [{e["from"]: e["to"]} for e in data]
        for old, new in [pair for row in rows for pair in row.items()]:
            plain = re.sub(r"^\^|/?\??\$?$", "", str(old).replace("\\/", "/"))
            # Only texts are written, since YAML's aliases can make other values fill the memory.
            if not isinstance(new, str) or re.search(r"[\\()\[\]*+?|^$]", plain):
                self.journal.note(
                    name,
                    0,
                    f"the redirect of {old} is a pattern",
                    "write its addresses into `content/redirects.txt`",
                )
            else:
                self.journal.redirects |= {plain: new, f"{plain}/": new}

    def read_routes(self, name: str, data: Any) -> None:
        """Read the addresses that the owner gave to posts and lists; note other pages."""
        settings = defaultdict(dict, {key: value for key, value in data.items() if value})
        self.lists |= settings["taxonomies"]
        for old, each in settings["collections"].items():
            self.forms |= dict.fromkeys(
                re.findall(r"tag:\[?(\w[\w-]*)", each.get("filter") or "") or [""],
                each["permalink"],
            )
            self.journal.redirects |= {old: "posts:", f"{old}rss/": "feed:"}
        for old in settings["routes"]:
            self.journal.note(
                name, 0, f"{old} was a page of the theme, and is left out", "write it anew"
            )


def _find_tags_and_authors(tables: dict[str, list[_Row]]) -> dict[str, list[_Row]]:
    """Return the tags and the authors of each text by its id, in their order."""
    linked = defaultdict(list)
    rows = {row["id"]: row for name in ("tags", "users") for row in tables[name]}
    # Until 2018 a post had one author, in a column of its own.
    authors = tables["posts_authors"] or [
        {"post_id": row["id"], "author_id": row.get("author_id")} for row in tables["posts"]
    ]
    for link in sorted(
        [*tables["posts_tags"], *authors],
        key=lambda link: link.get("sort_order") or 0,
    ):
        if found := rows.get(link.get("tag_id") or link.get("author_id")):
            linked[link["post_id"]].append(found | {"is_tag": "tag_id" in link})
    return linked


def _fill(form: str, values: _Row) -> str:
    """Fill in an address such as `/{year}/{slug}/`, which is `/:year/:slug/` in Ghost 1."""
    return re.sub(r"\{(\w+)\}|:(\w+)", lambda name: str(values.get(name[1] or name[2], "")), form)
