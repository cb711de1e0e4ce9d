"""Read a journal out of Ghost: the JSON of `Settings: Export`, from Ghost 1 to 6."""

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
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


def _date(value: str | int | None) -> datetime | None:
    """Return a date of an export: a text, in UTC, or milliseconds in the oldest ones."""
    if isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, UTC)
    return datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=UTC) if value else None


def _link(tables: dict[str, list[dict[str, Any]]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the tags and the authors of each text, in their order."""
    linked = defaultdict(list)
    for kind, rows in (("tag", tables["tags"]), ("author", tables["users"])):
        named = {row["id"]: row for row in rows}
        ties = [
            *tables[f"posts_{kind}s"],
            *({**row, "post_id": row["id"]} for row in tables["posts"]),
        ]
        for tie in sorted(ties, key=lambda tie: tie.get("sort_order") or 0):
            if tie.get(f"{kind}_id") in named:
                linked[kind, tie["post_id"]].append(named[tie[f"{kind}_id"]])
    return linked


def _read_post(
    source: str,
    row: dict[str, Any],
    linked: dict[tuple[str, str], list[dict[str, Any]]],
    journal: Imported,
) -> None:
    """Read a post or a page."""
    html = row["html"]
    if not html:
        document = row["lexical"] or row["mobiledoc"]
        html = "".join(f"<p>{json.loads(text)}</p>" for text in _STRINGS.findall(document))
    reason = _DRAFTS.get(row["visibility"]) or _DRAFTS.get(row["status"]) or row["email_only"]
    is_public = row["status"] == "published" and not reason
    tags = [tag for tag in linked["tag", row["id"]] if not tag["name"].startswith("#")]
    authors = linked["author", row["id"]]
    html, image = (_RESIZED.sub("", _HOST.sub("", each)) for each in (html, row["feature_image"]))
    text = Text(
        source,
        convert(html),
        row["title"],
        f"/{row['slug']}/" if is_public else "",
        kind="page" if row["type"] == "page" or row["page"] else "post",
        status="published" if is_public else "draft",
        date=_date(row["published_at"]),
        slug=row["slug"],
        tags=[tag["name"] for tag in tags],
        author=", ".join(author["name"] for author in authors),
        description=row["custom_excerpt"] or row["meta_description"],
        image=image,
        image_alt=show_plain(row["feature_image_alt"] or row["feature_image_caption"]),
    )
    journal.texts.append(text)
    notes = {
        f"is a draft here, for {reason}": reason,
        "its formatting is lost, since the export has no HTML of it": html and not row["html"],
        f"it first stood at {row['canonical_url']}": row["canonical_url"],
    }
    for what, is_so in notes.items():
        if is_so:
            journal.find(source, 0, what, "look at it")
    if is_public:
        for tag in tags:
            journal.redirects[f"/tag/{tag['slug']}/"] = f"tag:{tag['name']}"
            journal.redirects[f"/tag/{tag['slug']}/rss/"] = f"feed:{tag['name']}"
        journal.redirects |= {f"/author/{author['slug']}/": "posts:" for author in authors}


def _read_redirects(path: Path, journal: Imported) -> None:
    """Read the redirects of an owner; regular expressions that say more than an address are named."""
    try:
        data = yaml.safe_load(read_text(path))  # which reads JSON too
        parts = (
            [{row["from"]: row["to"] for row in data}] if isinstance(data, list) else data.values()
        )
        rows = [(str(old), str(new)) for part in parts for old, new in part.items()]
    except (yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        journal.find(path.name, 0, f"cannot be read ({error})", "write redirects.txt", "left out")
        return
    for old, new in rows:
        plain = re.sub(r"^\^|/?\??\$?$", "", old).replace("\\/", "/")
        if re.search(r"[\\()\[\]*+?|^$]", plain):
            journal.find(
                path.name,
                0,
                f"the redirect of {old} is a pattern",
                "write one line an address into redirects.txt",
            )
        else:
            journal.redirects |= {plain: new, f"{plain}/": new}


def read_ghost(root: Path) -> Imported:
    """Read an export, or the one of a folder, with what is beside it.

    That is the folder `content` with the pictures, the redirects, and a list of members (CSV).
    Raises UnreadableJournal.
    """
    folder = root if root.is_dir() else root.parent
    path = next((e for e in sorted(root.glob("*.json")) if e.name != "redirects.json"), root)
    try:
        document = json.loads(read_text(path))
        tables = defaultdict(
            list, document["db"][0]["data"] if "db" in document else document["data"]
        )
        settings = defaultdict(str, {row["key"]: row["value"] for row in tables["settings"]})
        journal = Imported(
            "Ghost",
            title=settings["title"],
            description=settings["description"],
            lang=settings["locale"] or settings["lang"] or settings["default_locale"],
            timezone=settings["timezone"] or settings["active_timezone"],
            menu=[(e["label"], e["url"]) for e in json.loads(settings["navigation"] or "[]")],
            redirects=dict(_ARCHIVES),
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise UnreadableJournal(
            f"{path.name} is no export of Ghost, or it is cut ({error!r}); export it again"
        ) from None
    journal.files = {
        f"content/{name}": each
        for name, each in walk(folder / "content")
        if re.match("images/(?!size/)|files/|media/", name)
    }
    journal.members = [
        {key: str(row.get(key) or "") for key in ("email", "name", "created_at", "note")}
        for row in tables["members"]
    ] + [
        row
        for each in sorted(folder.glob("*members*.csv"))
        for row in read_members(read_text(each))
    ]
    linked = _link(tables)
    noted = {row["post_id"]: row for row in tables["posts_meta"]}
    for row in tables["posts"]:
        try:
            post = defaultdict(
                str, {key: val for key, val in (noted.get(row["id"], {}) | row).items() if val}
            )
            _read_post(f"{path.name}#{row['slug']}", post, linked, journal)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            what = f"a text cannot be read ({error!r}): {str(row)[:80]}"
            journal.find(path.name, 0, what, "copy it by hand", "left out")
    for each in sorted(folder.glob("redirects.*")):
        _read_redirects(each, journal)
    if (folder / "routes.yaml").exists():
        journal.find(
            "routes.yaml", 0, "addresses of its own are not read", "add them to redirects.txt"
        )
    return journal
