"""Plans a journal of what an importer read: settings, addresses, heads, links, and old addresses.

It opens pictures, to see whether they can be shown, and writes nothing.
"""

import csv
import io
import json
import os
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple
from unicodedata import normalize
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo

import yaml
from pydantic import TypeAdapter, ValidationError

from edge_api.schema.environment import read_origin
from site_build import default_settings
from site_build.addresses import CONTACT, FEED, SUFFIXES, SourceRules, locate_feed, name_file
from site_build.checks.facts import EDGE, is_of_edge, map_urls
from site_build.checks.raw_markup import find_excess
from site_build.content.document import LARGEST_FILE, read_document
from site_build.content.front_matter import Alias, PageFrontMatter, Picture, PostFrontMatter, Slug
from site_build.content.sources import LONGEST_NAME
from site_build.errors import BuildError
from site_build.images.responsive import LARGEST_PICTURE, is_picture, measure
from site_build.importers.imported import SOURCE, Imported, Text, UnreadableJournal
from site_build.importers.links import Links, name_address, rewrite_links, write_link
from site_build.importers.writer import fill_starter
from site_build.pelican_plugin.settings import DEFAULTS, prepare_settings, read_dialect
from site_build.site import Document
from site_build.text import fold, make_slug, shorten, strip_control_characters

_OURS: Final = frozenset(
    {f"{kind}_{what}" for kind in ("ARTICLE", "PAGE", "STATIC") for what in ("PATHS", "EXCLUDES")}
    | {"PATH", "OUTPUT_PATH", "EXTRA_PATH_METADATA", "FILENAME_METADATA", "SLUGIFY_SOURCE"}
)
"""Settings of Pelican that say where its files were: they are elsewhere now."""
_KEEPS_FOLDERS: Final = ("Pelican", "Markdown")
"""How names of systems begin whose authors sort their texts into folders."""
_SLUG_BYTES: Final = 180
_MOST_TRIES: Final = 10_000
_RANKS: Final = ("published", "hidden", "draft")
_SLUG: Final = TypeAdapter[str](Slug)
_PICTURE: Final = TypeAdapter[str](Picture)
_ALIAS: Final = TypeAdapter[str](Alias)
_QUICK: Final = 500_000
"""Bytes of a picture that is unpacked to see whether it can be: larger ones take too long."""
_DEEPEST: Final = 6
_FEWEST: Final = 0.25
"""The share of the texts that a form of addresses has to reach."""


class Summary(NamedTuple):
    """What came over, of how much."""

    posts: int
    found: int
    """Posts, those that were left out among them."""
    drafts: int
    pages: int
    answered: int
    addresses: int
    """Old addresses of what was public."""
    missing: list[str]
    """Those that nothing answers."""
    needing: list[str]
    """Files of the old journal that were changed or left out."""


@dataclass
class Plan:
    """A journal before it is written."""

    rules: SourceRules
    settings: dict[str, Any]
    texts: list[tuple[Text, Document]] = field(default_factory=list)
    files: dict[str, bytes | Path] = field(default_factory=dict)
    """All files of the new journal, by path."""
    known: set[str] = field(default_factory=set)
    """What answers in the new journal, without a leading slash."""
    former: dict[str, str] = field(default_factory=dict)
    """Old paths that heads and `redirects.txt` lead on, to present addresses; no leading slash."""
    lines: list[str] = field(default_factory=list)
    """Those of `redirects.txt`."""

    def answers(self, path: str) -> bool:
        """Return whether an old address is one of the new journal, or leads to one."""
        path = _canonical(path)
        return bool({path, path.rstrip("/")} & self.known) or path in self.former


def plan_journal(imported: Imported, name: str) -> Plan:
    """Return the plan of a journal in a folder of this name; what it changes is a finding."""
    rules, settings = _choose_settings(imported, name)
    plan = Plan(rules, settings)
    heads = _place_texts(imported, plan)
    _place_files(imported, plan)
    links = _list_links(imported, plan)
    _lead_on(imported, plan, links, heads)
    for text, document in plan.texts:
        plan.files[f"content/{document.path}"] = _write_text(
            imported, text, document, heads[document.path], links
        )
    _add_rest(imported, plan, links)
    return plan


def compare(imported: Imported, plan: Plan) -> Summary:
    """Return what of the old journal is in the new one."""
    public = [each for each in imported.texts if each.status == "published"]
    old = {path for each in public for path in (each.address, *each.aliases) if path}
    missing = sorted(each for each in old | imported.redirects.keys() if not plan.answers(each))
    kinds = Counter((document.kind, document.draft) for _, document in plan.texts)
    posts = kinds["post", False] + kinds["post", True]
    left_out = {each.source for each in imported.findings if each.kind == "left out"}
    left_out -= {each.source for each in imported.texts}
    return Summary(
        posts,
        posts + len(left_out),
        kinds["post", True] + kinds["page", True],
        kinds["page", False] + kinds["page", True],
        len(old | imported.redirects.keys()) - len(missing),
        len(old | imported.redirects.keys()),
        missing,
        sorted({each.source for each in imported.findings if each.source}),
    )


def _canonical(address: str) -> str:
    """Return the one form of an old address: no leading slash, but one behind a folder."""
    path, mark, query = normalize("NFC", address).removeprefix("/").partition("?")
    path = re.sub(r"(?:^|(?<=/))index\.html?$", "", path)
    is_folder = path and "." not in posixpath.basename(path)
    return f"{path.rstrip('/')}/{mark}{query}" if is_folder else f"{path}{mark}{query}"


def _choose_settings(imported: Imported, name: str) -> tuple[SourceRules, dict[str, Any]]:
    """Return what settings mean for sources, and those that differ from the house's."""
    zone = str(imported.settings.get("TIMEZONE") or imported.timezone or "UTC")
    try:
        ZoneInfo(zone)
    except (OSError, ValueError):
        imported.find("", 0, f"{zone!r} is no time zone, so dates are in UTC", "set TIMEZONE")
        zone = "UTC"
    settings: dict[str, Any] = {
        "SITENAME": imported.title or name,
        "SITESUBTITLE": imported.description,
        "AUTHOR": imported.author or imported.title or name,
        "DEFAULT_LANG": re.split("[.@]", imported.lang)[0].replace("_", "-"),
        **{name: value for name, value in imported.settings.items() if name not in _OURS},
        "TIMEZONE": zone if zone != "UTC" else "",
    }
    for kind, prefix in (("post", "ARTICLE"), ("page", "PAGE")):
        form = _find_form([e for e in imported.texts if e.kind == kind], ZoneInfo(zone))
        if form and f"{prefix}_URL" not in settings:
            settings |= {f"{prefix}_URL": form, f"{prefix}_SAVE_AS": name_file(form)}
    settings = {name: value for name, value in settings.items() if value not in ("", None)}
    house = {name: value for name, value in vars(default_settings).items() if name.isupper()}
    while True:
        try:
            return read_dialect(prepare_settings({**DEFAULTS, **house, **settings})).rules, settings
        except BuildError as refusal:
            # Each refusal names its setting; the address and the file of a page go together.
            said = str(refusal).partition(": ")[2]
            prefix = re.sub("_(URL|SAVE_AS)$", "", said.partition(" ")[0])
            refused = [e for e in settings if e in {prefix, f"{prefix}_URL", f"{prefix}_SAVE_AS"}]
            if not refused:
                raise
            imported.find("", 0, f"the setting {said}", "fix it, and write it into pelicanconf.py")
            settings = {name: settings[name] for name in settings.keys() - set(refused)}


def _find_form(texts: list[Text], zone: ZoneInfo) -> str:
    """Return the form of addresses that most texts share; empty where few do."""
    counts = Counter(form for text in texts for form in _list_forms(text, zone))
    best = max(counts, key=lambda form: (counts[form], form.count("{date")), default="")
    return best if counts[best] >= _FEWEST * len(texts) else ""


def _list_forms(text: Text, zone: ZoneInfo) -> Iterator[str]:
    """Yield the forms that give a text the address that it had."""
    *folders, last = text.address.strip("/").split("/")
    slug = last.removesuffix(".html")
    # Braces would be taken for those of a form.
    if not _fits(_SLUG, slug) or len(folders) > _DEEPEST or re.search("[{}?]", text.address):
        return
    names = {"{category}": make_slug(text.category), "{lang}": text.lang}
    if moment := _localize(text.date, zone):
        names |= {f"{{date:%{sign}}}": f"{moment:%{sign}}" for sign in "Ymd"}
    options = [
        [each, *(name for name, value in names.items() if value == each)] for each in folders
    ]
    for chosen in product(*options):
        yield "/".join([*chosen, "{slug}"]) + (".html" if slug != last else "/")


def _localize(moment: datetime | None, zone: ZoneInfo) -> datetime | None:
    """Return an instant as the clock of the journal shows it."""
    if moment is None or not 1 < moment.year < 9999:  # the first year stands for no date at all
        return None
    moment = moment.astimezone(zone) if moment.tzinfo else moment
    return moment.replace(tzinfo=None, microsecond=0)


def _fits(kind: TypeAdapter[str], text: str) -> bool:
    """Return whether a value of a head may be written as it is."""
    try:
        return kind.validate_python(text) == text
    except ValidationError:
        return False


def _place_texts(imported: Imported, plan: Plan) -> dict[str, dict[str, Any]]:
    """Give each text a slug that is its own; return the heads by path."""
    zone = ZoneInfo(plan.rules.timezone)
    dates = [each for text in imported.texts if (each := _localize(text.date, zone))]
    newest = max(dates, default=datetime.now(UTC).replace(tzinfo=None, microsecond=0))
    others = map_urls((), (), plan.rules).others | EDGE
    keeps = imported.system.startswith(_KEEPS_FOLDERS)
    parents = [posixpath.dirname(f"/{text.source}") for text in imported.texts]
    shared = posixpath.commonpath(parents)  # says nothing of a text
    taken, used = set[tuple[str, str]](), Counter[str]()
    heads = {}
    for text in sorted(imported.texts, key=lambda each: _RANKS.index(each.status)):
        head = _make_head(imported, plan.rules, text, newest)
        last = re.sub(
            r"\.(html?|php|aspx?)$",
            "",
            posixpath.basename(text.address.partition("?")[0].rstrip("/")),
        )
        made = (make_slug(each) for each in (head["title"], PurePosixPath(text.source).stem))
        slug = next((each for each in (last, text.slug, *made) if _fits(_SLUG, each)), text.kind)
        below = posixpath.relpath(posixpath.dirname(f"/{text.source}"), shared) if keeps else ""
        while True:
            used[fold(slug)] += 1
            ending = f"-{used[fold(slug)]}" * (used[fold(slug)] > 1)
            head["slug"] = slug.encode()[:_SLUG_BYTES].decode(errors="ignore") + ending
            path = posixpath.normpath(f"{text.kind}s/{below}/{head['slug']}.md")
            document, findings = read_document(path, _write_head(head), plan.rules)
            if document is None and used[fold(slug)] > _MOST_TRIES:
                raise UnreadableJournal(f"{text.source} gives no post: {findings[0].message}")
            if document is None:
                continue
            names = {(text.kind, fold(document.slug)), ("", fold(document.address))}
            covered = {document.address, document.address.rstrip("/")} & others
            if not (names & taken or covered or is_of_edge(document.address)):
                break
        if ending:
            what = f"the slug `{slug}` is taken, by another text or by a page of the journal itself"
            fix = f"choose one in place of `{head['slug']}`, if you like"
            imported.find(text.source, 0, what, fix)
        taken |= names
        heads[path] = head
        plan.texts.append((text, document))
    return heads


def _make_head(
    imported: Imported, rules: SourceRules, text: Text, newest: datetime
) -> dict[str, Any]:
    """Return the values of a head, without those that the build would refuse."""
    zone = ZoneInfo(rules.timezone)
    date, updated = _localize(text.date, zone), _localize(text.updated, zone)
    title = " ".join(strip_control_characters(text.title).split())
    if not title:
        words = " ".join(re.sub(r"<[^>]*>|[#*_`>\[\]!|]", " ", text.body[:500]).split())
        title = shorten(words) or PurePosixPath(text.source).stem or "Untitled"
        imported.find(text.source, 1, "it has no title, so its first words are it", "write a title")
    if text.kind == "post" and not date:
        date = newest
        imported.find(text.source, 1, "it has no date, so it has that of the newest post", "fix it")
    excess = find_excess(text.body) or (
        len(text.body) > LARGEST_FILE // 4 and (0, "too long; split it")
    )
    if excess:
        line = text.first_line + text.body.count("\n", 0, excess[0])
        what, _, fix = excess[1].partition("; ")
        imported.find(
            text.source, line, f"it is a draft, as it has {what}", f"{fix}, and publish it"
        )
    head: dict[str, Any] = {
        "title": title,
        "slug": "",
        "date": date,
        "updated": updated if updated and date and updated > date else None,
        "tags": [" ".join(tag.split()) for tag in text.tags if tag.strip()],
        "series": text.series if text.kind == "post" else "",
        "category": text.category,
        "author": text.author if text.author != rules.author else "",
        "lang": text.lang.replace("_", "-") if text.lang != rules.lang else "",
        "description": strip_control_characters(text.description).strip(),
        "image": "",
        "image_alt": text.image_alt,
        "status": "draft" if excess else text.status.replace("published", ""),
        "aliases": [],
    }
    model = PostFrontMatter if text.kind == "post" else PageFrontMatter
    said = {
        name: value if isinstance(value, list) else str(value)
        for name, value in head.items()
        if value
    }
    try:
        model.model_validate({**said, "slug": "slug"}, context=zone)
    except ValidationError as refusal:
        # From the last one on, so that the places of those before stay.
        for complaint in reversed(refusal.errors(include_url=False)):
            name, *member = complaint["loc"]
            what, _, fix = complaint["msg"].partition("; ")
            imported.find(text.source, 1, f"`{name}` {what}, and was taken out", fix or "fix it")
            if member:
                del head[str(name)][int(member[0])]
            else:
                head[str(name)] = newest if name == "date" else ""
    # A day without a time is what most people write.
    for name in ("date", "updated"):
        if head[name] and head[name].time() == time():
            head[name] = head[name].date()
    return head


def _write_head(head: dict[str, Any]) -> bytes:
    """Return the head of a file, with each list on one line."""
    lines = (
        yaml.dump(
            {name: value},
            Dumper=yaml.CSafeDumper,
            allow_unicode=True,
            width=sys.maxsize,
            default_flow_style=None if isinstance(value, list) else False,
        )
        for name, value in head.items()
        if value
    )
    return f"---\n{''.join(lines)}---\n".encode()


def _place_files(imported: Imported, plan: Plan) -> None:
    """Put files at the paths that they had, and note what answers in the new journal."""
    public = [document for _, document in plan.texts if not document.draft]
    plan.known |= EDGE.union(
        *({each.address, name_file(each.address)} for each in public),
        map_urls(public, (), plan.rules).others,
    )
    sources = {path: source for source, path in imported.file_sources.items()}
    for path, content in imported.files.items():
        parts = path.split("/")
        faults = {
            "its path is none that can be published": (
                any(not part or part[0] == "." for part in parts) or not path.isprintable()
            ),
            f"its name is longer than {LONGEST_NAME} bytes": (
                max(len(part.encode()) for part in parts) > LONGEST_NAME
            ),
            "it is Markdown, and no text of the journal": path.lower().endswith(SUFFIXES),
            "the journal has something else at its address": (
                path in plan.known or is_of_edge(path)
            ),
        }
        why = next((why for why, holds in faults.items() if holds), "") or _find_fault(
            path, content
        )
        if why:
            what = f"the file `{path}` is not published: {why}"
            imported.find(
                sources.get(path, path), 0, what, "put another in its place, or remove links to it"
            )
        else:
            plan.files[f"content/{path}"] = content
    kept = {name.split("/")[1] for name in plan.files}
    plan.settings["STATIC_PATHS"] = sorted({*plan.rules.static, *kept})
    plan.known |= {name.removeprefix("content/") for name in plan.files}


def _find_fault(path: str, content: Path | bytes) -> str:
    """Return why a file cannot be published; empty where it can."""
    try:
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        if not is_picture(path) or _QUICK < size <= LARGEST_PICTURE:
            return (
                ""
                if isinstance(content, bytes) or os.access(content, os.R_OK)
                else "it cannot be read"
            )
        data = content if isinstance(content, bytes) else content.read_bytes()
    except OSError as refusal:
        return f"it cannot be read ({refusal.strerror})"
    return measure(path, data).fault


def _list_links(imported: Imported, plan: Plan) -> Links:
    """Return what links to texts and files of the old journal lead to."""
    files = {path: path for path in imported.files if f"content/{path}" in plan.files}
    moved = {source: path for source, path in imported.file_sources.items() if path in files}
    texts = [(text, document.path) for text, document in reversed(plan.texts)]
    former = {alias: path for text, path in texts for alias in text.aliases}
    present = {text.address: path for text, path in texts if text.address}
    sources = {text.source: path for text, path in texts}
    return Links(
        urlsplit(imported.origin).netloc.removeprefix("www.").lower(),
        {name_address(old): new for old, new in {**files, **former, **present}.items()},
        {name_address(old): new for old, new in {**files, **moved, **sources}.items()},
    )


def _lead_on(
    imported: Imported, plan: Plan, links: Links, heads: dict[str, dict[str, Any]]
) -> None:
    """Have each old address lead to the present one, from a head or from `redirects.txt`."""
    for text, document in plan.texts:
        for old in (text.address, *text.aliases):
            if document.draft or not old or plan.answers(old):
                continue
            path = _canonical(old)
            plan.former[path] = document.address
            above = {path[:at] for at, sign in enumerate(path) if sign == "/"}
            is_alias = _fits(_ALIAS, f"/{path}") and not (is_of_edge(path) or above & plan.known)
            (heads[document.path]["aliases"] if is_alias else plan.lines).append(f"/{path}")
    places = {document.path: document.address for _, document in plan.texts}
    for old, target in imported.redirects.items():
        address = _find_address(target, plan, links, places)
        if address is None:
            what = f"the redirect from `{old}` to `{target}` leads to nothing that came over"
            imported.find("", 0, what, "write it into content/redirects.txt, or forget it")
            continue
        links.addresses.setdefault(name_address(old), f"/{address}")
        if not plan.answers(old) and not is_of_edge(_canonical(old)):
            plan.former[_canonical(old)] = address
            plan.lines.append(f"/{_canonical(old)}")


def _find_address(target: str, plan: Plan, links: Links, places: dict[str, str]) -> str | None:
    """Return the address that a redirect of an importer leads to, without its leading slash."""
    where = plan.rules.addresses
    kind, _, name = target.partition(":")
    lists = {
        "home": "",
        "posts": where.journal or "",
        "archive": where.archive or where.journal or "",
        **dict.fromkeys(("tags", "tag"), where.tags or where.journal or ""),
        "feed": FEED,
    }
    tag = where.locate("tag", make_slug(name)) if name and where.tag else ""
    if tag in plan.known and kind in {"tag", "feed"} and tag:
        return tag if kind == "tag" else locate_feed(tag)
    if kind in lists:
        return lists[kind]
    if _canonical(target) in plan.known:
        return _canonical(target)
    try:
        found = links.find(target)
    except LookupError:
        return None
    return places.get(found[0], found[0].removeprefix("/")) if found else None


def _write_text(
    imported: Imported, text: Text, document: Document, head: dict[str, Any], links: Links
) -> bytes:
    """Return the file of a text, with its links led to the new places."""
    body = strip_control_characters(text.body)

    def lead(link: str) -> str | None:
        try:
            found = links.find(link, text.source, f"/{text.address.removeprefix('/')}")
        except LookupError:
            return link
        return write_link(*found, document.path) if found else None

    def replace(link: str, at: int) -> str:
        led = lead(link)
        if led is None:
            line = text.first_line + body.count("\n", 0, at)
            what = f"the link `{shorten(link.removeprefix(SOURCE), 120)}` leads to nothing that came over"
            imported.find(text.source, line, what, "fix the address, or remove the link")
        return led or re.sub(f"^{SOURCE}/*", "/", link)

    image = lead(text.image) if text.image else ""
    if image and _fits(_PICTURE, image):
        head["image"] = image
    elif text.image:
        what = f"the picture `{shorten(text.image, 120)}` of its head did not come over"
        imported.find(text.source, 1, what, "write `image:` with another")
    return _write_head(head) + f"\n{rewrite_links(body, replace).strip()}\n".encode()


def _add_rest(imported: Imported, plan: Plan, links: Links) -> None:
    """Add the files that are no texts of the old journal."""
    menu = []
    for name, link in imported.menu:
        try:
            found = links.find(link)
            # The theme's menu has the lists and the pages already.
            if (
                found
                and found[0][:1] == "/"
                and found[0][1:] not in plan.rules.addresses.list_overviews()
            ):
                menu.append((name, found[0]))
        except LookupError:
            menu.append((name, link))
    plan.settings |= {"MENUITEMS": menu} if menu else {}
    if not any(document.address == CONTACT for _, document in plan.texts):
        plan.files["content/pages/contact.md"] = fill_starter("contact.md")
    if plan.lines:
        lines = (
            f"{quote(old, '/?=&:@+,;!~')} /{quote(plan.former[old[1:]])}\n" for old in plan.lines
        )
        plan.files["content/redirects.txt"] = "".join(lines).encode()
    said = "\n".join(f"{name} = {value!r}" for name, value in plan.settings.items())
    origin = "# SITE_URL=https://journal.example"
    if imported.origin:
        try:
            origin = f"SITE_URL={read_origin(imported.origin)}"
        except ValueError as fault:
            imported.find(
                "", 0, f"the old address {imported.origin!r} {fault}", "write SITE_URL into .env"
            )
    plan.files["pelicanconf.py"] = fill_starter("settings.txt", settings=said)
    plan.files[".env"] = fill_starter("env.txt", origin=origin)
    plan.files[".gitignore"] = fill_starter("gitignore.txt")
    if imported.members:
        table = io.StringIO()
        writer = csv.DictWriter(
            table, ("email", "name", "created_at", "note"), extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(imported.members)
        plan.files["members.csv"] = table.getvalue().encode()
    if imported.comments:
        plan.files["comments.json"] = json.dumps(
            imported.comments, ensure_ascii=False, indent=1
        ).encode()
