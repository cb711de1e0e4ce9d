"""Plans the new journal from what an importer read: addresses, heads, links, files and redirects.

It opens pictures to check that they can be shown, and writes nothing.
"""

import csv
import io
import json
import os
import posixpath
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter, ValidationError

from edge_api.schema.environment import read_origin
from site_build.addresses import (
    CONTACT,
    FEED,
    MARKDOWN_SUFFIXES,
    SourceRules,
    locate_feed,
    name_file,
)
from site_build.checks.facts import EDGE_PAGES, is_of_edge, map_urls
from site_build.checks.raw_markup import find_excess
from site_build.content import front_matter
from site_build.content.document import LARGEST_FILE, read_document
from site_build.content.sources import LONGEST_NAME
from site_build.images.responsive import is_picture, measure
from site_build.importers.imported import SOURCE, Finding, Imported, Text
from site_build.importers.links import Links, canonical, name_address, rewrite_links, write_link
from site_build.importers.settings import choose_settings, localize
from site_build.importers.writer import Summary, dump_head, fill_starter, strip_unwritable
from site_build.site import Document
from site_build.text import fold, make_slug, shorten

_MODELS: Final = {"post": front_matter.PostFrontMatter, "page": front_matter.PageFrontMatter}
_MOST_VARIANTS: Final = 10_000  # numbered variants of one slug
_IS_SLUG, _IS_ALIAS, _IS_PICTURE = (
    TypeAdapter[str](kind).validator.isinstance_python
    for kind in (front_matter.Slug, front_matter.AliasValue, front_matter.PictureLink)
)
_LONGEST_BODY: Final = LARGEST_FILE - 50_000
"""The most bytes of a body; the rest of a file is for its head, and for links that grow longer."""
_LARGEST_DECODED: Final = 500_000
"""The most bytes of a JPEG or PNG that is decoded; of a larger one only the end is checked."""


@dataclass
class Plan:
    """A journal before it is written."""

    settings: dict[str, Any]
    rules: SourceRules
    texts: list[tuple[Text, Document, dict[str, Any]]] = field(default_factory=list)
    """Each text with its document and the values of its head."""
    files: dict[str, bytes | Path] = field(default_factory=dict)
    """All files of the new journal, by path."""
    addresses: set[str] = field(default_factory=set)
    """Addresses of the new journal, aliases of texts among them, without a leading slash."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Present addresses by old path, for `redirects.txt`; without leading slashes."""

    def answers(self, address: str) -> bool:
        """Return whether an old address is one of the new journal, or leads to one."""
        path = canonical(address)
        return bool({path, path.rstrip("/")} & self.addresses) or path in self.redirects


def plan_journal(imported: Imported, name: str) -> Plan:
    """Return the plan of a journal in the folder `name`; each change of a text is noted."""
    imported.findings += [
        Finding(
            "", 0, f"`{key[:60]}` (files: {count:,})", "see whether you miss these keys of heads"
        )
        for key, count in imported.unread_keys.most_common()
    ]
    plan = Plan(*choose_settings(imported, name))
    _place_texts(imported, plan)
    _place_files(imported, plan)
    links = _plan_redirects(imported, plan)
    plan.files |= {
        f"content/{document.path}": _write_text(imported, text, document.path, head, links)
        for text, document, head in plan.texts
    }
    _add_rest(imported, plan, links)
    return plan


def summarize(imported: Imported, plan: Plan) -> Summary:
    """Return a summary of the texts and addresses of the old journal that the new one has."""
    old = imported.redirects.keys() | {
        path
        for text in imported.texts
        for path in (text.address, *text.aliases)
        if path and text.status == "published"
    }
    left_out = {each.source for each in imported.findings if each.kind == "left out"}
    posts = sum(text.kind == "post" for text, _, _ in plan.texts)
    return Summary(
        posts,
        posts + len(left_out - {text.source for text, _, _ in plan.texts}),
        sum(document.draft for _, document, _ in plan.texts),
        len(plan.texts) - posts,
        sorted(old),
        sorted(path for path in old if not plan.answers(path)),
        sorted({each.source for each in imported.findings if each.source}),
    )


def _place_texts(imported: Imported, plan: Plan) -> None:
    """Give each text a head, a unique slug and a unique address."""
    newest = max(
        filter(None, (localize(e.date, ZoneInfo(plan.rules.timezone)) for e in imported.texts)),
        default=datetime.now(UTC).replace(tzinfo=None, microsecond=0),
    )
    # Folders that contain all texts say nothing about one of them.
    shared = posixpath.commonpath(text.folder for text in imported.texts)
    others = map_urls((), (), plan.rules).others | EDGE_PAGES
    taken, used = {("", fold(each).rstrip("/")) for each in others}, Counter[str]()
    for text in sorted(
        imported.texts, key=lambda text: ("published", "hidden", "draft").index(text.status)
    ):
        if len(text.body.encode(errors="replace")) > _LONGEST_BODY:
            what, fix = f"it is longer than {_LONGEST_BODY:,} bytes", "put its pictures into files"
            imported.note(text.source, 0, what, fix, "left out")
            continue
        head = _make_head(imported, plan.rules, text, newest)
        folder = f"{text.kind}s"
        if imported.system == "Pelican" or not text.address:
            inner = posixpath.relpath(text.folder, shared)
            folder = posixpath.normpath(f"{folder}/{re.sub(f'^{folder}(?=/|$)/?', '', inner)}")
        names = (
            re.sub(r".*\?.*|.*/|\.(?:html?|php|aspx?)$", "", text.address.rstrip("/")),
            text.slug,
            make_slug(head["title"]),
            make_slug(PurePosixPath(text.source).stem),
        )
        slug = next(filter(_IS_SLUG, names), text.kind)
        while used[slug] < _MOST_VARIANTS:
            used[slug] += 1
            ending = f"-{used[slug]}" if used[slug] > 1 else ""
            # A slug may have 200 bytes, of which its number needs a few.
            head["slug"] = slug.encode()[:180].decode(errors="ignore") + ending
            document, _ = read_document(f"{folder}/{head['slug']}.md", dump_head(head), plan.rules)
            address = document.address if document else ""
            names_of_text = {(text.kind, fold(head["slug"])), ("", fold(address).rstrip("/"))}
            if document and not (names_of_text & taken or is_of_edge(address)):
                taken |= names_of_text
                plan.texts.append((text, document, head))
                break
        else:
            imported.note(text.source, 0, "its head cannot be read", "shorten it", "left out")
        if ending:
            imported.note(
                text.source,
                0,
                f"the slug `{slug}` is that of another text, or of a page of the journal itself; "
                f"this has `{head['slug']}`",
                "change it if you like",
            )


def _make_head(
    imported: Imported, rules: SourceRules, text: Text, newest: datetime
) -> dict[str, Any]:
    """Return the values of a head, without those that the build would refuse."""
    zone = ZoneInfo(rules.timezone)
    date, updated = localize(text.date, zone), localize(text.updated, zone)
    title = " ".join(strip_unwritable(text.title).split())
    description = strip_unwritable(text.description or "").strip()[:2_000]
    is_long = len(description) > front_matter.LONGEST_DESCRIPTION
    if not title:
        words = re.sub(r"<[^>]*>|[#*_`>\[\]!|\s]+", " ", text.body[:500])
        title = shorten(words.strip()) or "Untitled"
        imported.note(text.source, 1, "it had no title; its first words are it", "write a title")
    if text.kind == "post" and not date:
        date = newest
        imported.note(text.source, 1, "it had no date; it got that of the newest post", "fix it")
    # The build refuses texts with very many signs of Markdown, since they take too long to parse.
    if excess := find_excess(text.body):
        imported.note(
            text.source, text.first_line, f"it is a draft: {excess[1]}", "publish it then"
        )
    head: dict[str, Any] = {
        "title": title,
        "slug": "slug",
        "date": date,
        "updated": updated if updated and date and updated > date else None,
        "tags": [" ".join(tag.split()) for tag in text.tags],
        "series": str(text.series) if text.kind == "post" else "",
        "category": str(text.category),
        "author": str(text.author) if text.author != rules.author else "",
        "lang": text.lang.replace("_", "-") if text.lang != rules.lang else "",
        "description": "" if is_long else description,
        "excerpt": description if is_long else "",
        "image": "",
        "image_alt": str(text.image_alt),
        "status": "draft" if excess else text.status.replace("published", ""),
        "aliases": [],
    }
    given = {name: e if isinstance(e, list) else str(e) for name, e in head.items() if e}
    try:
        _MODELS[text.kind].model_validate(given, context=zone)
    except ValidationError as refusal:
        # Go from last to first, so that the indexes of earlier list members stay valid.
        for complaint in reversed(refusal.errors(include_url=False)):
            name, *member = complaint["loc"]
            what, _, fix = complaint["msg"].partition("; ")
            imported.note(text.source, 1, f"`{name}` {what}, and was taken out", fix or "fix it")
            head[str(name)] = (
                [each for at, each in enumerate(head[str(name)]) if at not in member]
                if member
                else ""
            )
    return head


def _place_files(imported: Imported, plan: Plan) -> None:
    """Put files at their old paths, and collect the addresses of the new journal."""
    public = [document for _, document, _ in plan.texts if not document.draft]
    # There always is a contact page.
    plan.addresses.update(
        {CONTACT},
        EDGE_PAGES,
        *({each.address, name_file(each.address)} for each in public),
        map_urls(public, (), plan.rules).others,
    )
    sources = {path: source for source, path in imported.public_paths.items()}
    folders = {
        str(each)
        for path in (*imported.files, "pages/contact.md", *(e.path for _, e, _ in plan.texts))
        for each in PurePosixPath(path).parents
    }
    for path, content in imported.files.items():
        parts, is_read = path.split("/"), isinstance(content, bytes) or os.access(content, os.R_OK)
        faults = {
            "its path is none that can be published": (
                any(part[:1] in {"", "."} for part in parts) or not path.isprintable()
            ),
            f"its name is longer than {LONGEST_NAME} bytes": (
                max(len(part.encode()) for part in parts) > LONGEST_NAME
            ),
            "it is Markdown, and no text of the journal": path.lower().endswith(MARKDOWN_SUFFIXES),
            "the journal has a page of its own there": path in plan.addresses or is_of_edge(path),
            "a folder has its name": path in folders,
            "it cannot be read": not is_read,
        }
        why = next((why for why, holds in faults.items() if holds), "")
        # The build refuses a text with a picture that cannot be shown.
        if not why and is_picture(path):
            data = Path(content).read_bytes() if isinstance(content, Path) else content
            # Decoding a large JPEG or PNG takes long, so only its end marker is checked.
            end = {b"\xff\xd8": b"\xff\xd9", b"\x89P": b"IEND"}.get(data[:2], data)
            is_whole = end in data[-_LARGEST_DECODED:] and len(data) > _LARGEST_DECODED
            why = "" if is_whole else measure(path, data).fault
        if why:
            imported.note(
                sources.get(path, path),
                0,
                f"the file `{path}` is not published: {why}",
                "replace it, or remove links to it",
            )
        else:
            plan.files[f"content/{path}"] = content
    plan.settings["STATIC_PATHS"] = sorted({"images", *(e.split("/")[1] for e in plan.files)})
    plan.addresses.update(name.removeprefix("content/") for name in plan.files)


def _plan_redirects(imported: Imported, plan: Plan) -> Links:
    """Redirect each old address to the present one; return the targets of old links."""
    files = {path: path for path in imported.files if f"content/{path}" in plan.files}
    # Texts are reversed, so that of two with one old address the first gets it.
    texts = [(text, document.path) for text, document, _ in reversed(plan.texts)]
    addresses = (
        *((address, f"/{address}") for address in sorted(plan.addresses)),
        *files.items(),
        *((alias, path) for text, path in texts for alias in text.aliases),
        *((text.address, path) for text, path in texts if text.address),
    )
    sources = (
        *files.items(),
        *((source, path) for source, path in imported.public_paths.items() if path in files),
        *((text.source, path) for text, path in texts),
    )
    links = Links(
        urlsplit(imported.origin).netloc.removeprefix("www.").lower(),
        *({name_address(old): path for old, path in each} for each in (addresses, sources)),
    )
    moves: list[tuple[str, str, list[str] | None]] = [
        (old, document.address, head["aliases"])
        for text, document, head in plan.texts
        for old in (text.address, *text.aliases)
        if old and not document.draft
    ]
    places = {document.path: document.address for _, document, _ in plan.texts}
    for old, target in imported.redirects.items():
        address = _find_address(target, plan, links, places)
        if address is not None:
            links.addresses.setdefault(name_address(old), f"/{address}")
            moves.append((old, address, None))
            continue
        imported.note(
            "",
            0,
            f"the redirect from `{old}` to `{target}` leads to nothing that came over",
            "write one into content/redirects.txt, or forget it",
        )
    for old, address, aliases in moves:
        path = canonical(old)
        # An alias can have neither a query nor a path below a file.
        above = {path[:at] for at, sign in enumerate(path) if sign == "/"}
        if plan.answers(old) or is_of_edge(path):
            continue
        if aliases is None or not _IS_ALIAS(f"/{path}") or above & plan.addresses:
            plan.redirects[path] = address
        else:
            aliases.append(f"/{path}")
            plan.addresses.add(path)
    return links


def _find_address(target: str, plan: Plan, links: Links, places: dict[str, str]) -> str | None:
    """Return the address that a redirect of an importer leads to, without its leading slash."""
    where, (kind, _, name) = plan.rules.addresses, target.partition(":")
    posts = where.journal or ""
    tags, tag = where.tags or posts, where.locate("tag", make_slug(name)) if where.tag else ""
    has_tag = name != "" and tag in plan.addresses
    lists = {
        "home": "",
        "posts": posts,
        "archive": where.archive or posts,
        "tags": tags,
        "tag": tag if has_tag else tags,
        "feed": locate_feed(tag) if has_tag else FEED,
    }
    if kind in lists:
        return lists[kind]
    found = links.find(target)
    return (
        places.get(found[0], found[0].removeprefix("/")) if found and "//" not in found[0] else None
    )


def _write_text(
    imported: Imported, text: Text, path: str, head: dict[str, Any], links: Links
) -> bytes:
    """Return the file of a text, with links to the new addresses."""
    body = strip_unwritable(text.body)

    def replace(link: str, at: int) -> str:
        if found := links.find(link, text.source, f"/{text.address.removeprefix('/')}"):
            return write_link(*found, path)
        imported.note(
            text.source,
            text.first_line + body.count("\n", 0, at),
            f"the link `{shorten(link.removeprefix(SOURCE), 120)}` leads to nothing that came over",
            "fix the address, put the file into content/, or remove the link",
        )
        return re.sub(f"^{SOURCE}/*", "/", link)

    if text.image and _IS_PICTURE(image := replace(text.image, 0)):
        head["image"] = image
    return dump_head(head) + f"\n{rewrite_links(body, replace).strip()}\n".encode(errors="replace")


def _add_rest(imported: Imported, plan: Plan, links: Links) -> None:
    """Add all other files: contact page, settings, redirects, members and comments."""
    found = [(name, (links.find(link) or ("",))[0]) for name, link in imported.menu]
    # The theme's menu has the lists already.
    lists = {f"/{each}" for each in {CONTACT, *EDGE_PAGES, *plan.rules.addresses.list_overviews()}}
    menu = [(name, to) for name, to in found if re.match("/.|https?:", to) and to not in lists]
    plan.settings |= {"MENUITEMS": menu} if menu else {}
    if not any(document.address == CONTACT for _, document, _ in plan.texts):
        plan.files["content/pages/contact.md"] = fill_starter("contact.md")
    origin = "# SITE_URL=https://journal.example"
    with suppress(ValueError):
        origin = f"SITE_URL={read_origin(imported.origin)}"
    plan.files |= {
        "pelicanconf.py": fill_starter(
            "settings.txt", settings="\n".join(f"{e} = {plan.settings[e]!r}" for e in plan.settings)
        ),
        ".env": fill_starter("env.txt", origin=origin),
        ".gitignore": fill_starter("gitignore.txt"),
        "content/redirects.txt": "".join(
            f"/{quote(old, '/?=&:@+,;!~')} /{quote(address)}\n"
            for old, address in plan.redirects.items()
        ).encode(),
    }
    if imported.members:
        table, fields = io.StringIO(), ("email", "name", "created_at", "note")
        rows = [dict(zip(fields, fields, strict=True)), *imported.members]
        csv.DictWriter(table, fields).writerows(rows)
        plan.files["members.csv"] = table.getvalue().encode()
    if imported.comments:
        plan.files["comments.json"] = json.dumps(
            imported.comments, ensure_ascii=False, indent=1
        ).encode(errors="replace")
