"""Journals of Hugo: their settings, their texts with bundles and languages, and all old addresses."""

import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from site_build.importers.heads import (
    HeadError,
    read_date,
    read_flag,
    read_json,
    read_tags,
    read_toml,
    read_yaml,
    split_head,
)
from site_build.importers.hugo_shortcodes import convert_body
from site_build.importers.imported import SOURCE, Imported, Text, UnreadableJournal, read_text, walk

_READERS: dict[str, Callable[[str], Any]] = {
    ".toml": read_toml,
    ".yaml": read_yaml,
    ".yml": read_yaml,
    ".json": read_json,
}
_SETTINGS = re.compile(
    r"(?:(?:hugo|config)|config/(?:_default|production)/(?:.*/)?(?P<part>[^/]+))\.(?:toml|ya?ml|json)"
)
_TEXTS = {".md", ".markdown", ".mdown", ".mkd", ".html", ".htm"}
_FOREIGN = {".org", ".adoc", ".asciidoc", ".ad", ".rst", ".pandoc", ".pdc"}
_OF_THE_HOST = {"CNAME", "_headers", "_redirects", "robots.txt", "sitemap.xml"}
_PAGES = {"page", "pages", "about"}
"""Sections whose texts are pages, although they have dates."""
_IMAGES = (
    *("cover", "image", "images", "featured_image", "featuredimage", "featureimage", "feature"),
    *("thumbnail", "coverimage", "thumbnailimage", "banner", "hero"),
)
_FEATURED = re.compile(r"[^/]*(?:feature|cover|thumb)[^/]*\.(?:avif|gif|jpe?g|png|svg|webp)", re.IGNORECASE)
_IMAGE_KEYS = ("image", "src", "url", "filename", "file", "path")
_DATES = {
    "year": "%Y", "month": "%m", "monthname": "%B", "day": "%d", "yearday": "%j",
    "weekday": "%w", "weekdayname": "%A",
}
_NO_TAGS = {"series", "authors", "author"}
_INDEX = re.compile(r"(?:(?:^|/)_?index(?:\.[a-z-]+)?)?(?:/|\.md|\.markdown|\.html)?$")


@dataclass
class _Page:
    """A text, and what tells its address: `folder` and `name` of its place in the content."""

    text: Text
    head: dict[str, Any]
    lang: str
    folder: str
    name: str
    """Empty for a section."""
    bundle: bool


def read_hugo(root: Path) -> Imported:
    """Read a journal of Hugo; raises UnreadableJournal."""
    return _Reader(root).read()


class _Reader:
    """Reads one journal."""

    def __init__(self, root: Path) -> None:
        self.sources = dict(walk(root))
        self.sites = _read_settings(self.sources)
        self.default, self.site = next(iter(self.sites.items()))
        self.params = _table(self.site.get("params"))
        address = urlsplit(str(self.site.get("baseurl", "")))
        self.base = address.path.rstrip("/")
        self.journal = Imported(
            "Hugo",
            title=str(self.site.get("title", "")),
            description=str(self.params.get("description") or self.params.get("subtitle") or ""),
            author=_name(self.params.get("author") or self.site.get("author")),
            lang=str(self.site.get("locale") or self.site.get("languagecode") or self.default),
            timezone=str(self.site.get("timezone", "")),
            origin=f"{address.scheme}://{address.netloc}" if address.netloc else "",
        )
        self.statics = [
            name.strip("/")
            for site in self.sites.values()
            for name in read_tags(site.get("staticdir", "static"))
        ]
        self.pages: list[_Page] = []
        self.bundles: dict[str, _Page] = {}
        self.index: dict[tuple[str, str], str] = {}
        self.files: list[tuple[str, str, str]] = []
        self.featured: dict[str, str] = {}
        self.cascades: dict[str, dict[str, Any]] = {}
        self.lists: dict[str, tuple[str, str]] = {}
        self.counts: Counter[str] = Counter()

    def read(self) -> Imported:
        """Read the menu, then texts, files and lists."""
        menus = {**_table(self.site.get("menu")), **_table(self.site.get("menus"))}
        entries = [_table(each) for each in menus.get("main") or ()]
        for entry in sorted(entries, key=lambda each: str(each.get("weight", 0)).zfill(9)):
            link = str(entry.get("url") or f"/{str(entry.get('pageref', '')).strip('/')}/")
            link = self.base + link if link.startswith("/") else link
            self.journal.menu.append((_name(entry) or str(entry.get("identifier")), link))
        self._read_content()
        for page in self.pages:
            self._describe(page)
        dated = {page.folder.partition("/")[0] for page in self.pages if page.text.date} - _PAGES
        named = read_tags(self.params.get("mainsections"))
        mains = [each.lower() for each in named] or dated - {""} or dated
        for page in self.pages:
            self._place(page, mains)
        size = str(
            self.site.get("paginate") or _table(self.site.get("pagination")).get("pagersize")
        )
        taken = {text.address for text in self.journal.texts}
        for path, (target, feed) in self.lists.items():
            leaves = self.counts[path] // max(1, int(size) if size.isdigit() else 10) + 1
            self.journal.redirects |= {
                **({} if path in taken else {path: target}),
                f"{path}index.xml": feed,
                **{f"{path}page/{number}/": target for number in range(1, leaves + 1)},
            }
        self._add_files()
        for page in self.pages:
            self._convert(page)
        return self.journal

    def _read_content(self) -> None:
        """Find the texts and the files of all languages."""
        folders = {
            lang: str(site.get("contentdir") or "content").strip("/") + "/"
            for lang, site in self.sites.items()
        }
        for source, file in self.sources.items():
            lang = max(
                folders, key=lambda each: source.startswith(folders[each]) and len(folders[each])
            )
            if not source.startswith(folders[lang]):
                continue
            place, suffix = posixpath.splitext(source.removeprefix(folders[lang]))
            if suffix.lower() in _FOREIGN:
                fix = f"write it in Markdown: pandoc -t gfm {posixpath.basename(source)}"
                self.journal.find(source, 0, f"texts in {suffix} are not read", fix, "left out")
                continue
            try:
                head, body, line = (
                    split_head(read_text(file)) if suffix.lower() in _TEXTS else ({}, "", 0)
                )
            except HeadError as fault:
                why = "fix its head, then run the command again"
                self.journal.find(source, fault.line, str(fault), why, "left out")
                continue
            if not line or (not head and suffix.lower().startswith(".h")):
                self.files.append((source, lang, place + suffix))
                if _FEATURED.fullmatch(posixpath.basename(source)):
                    self.featured.setdefault(posixpath.dirname(source), source)
                continue
            stem, _, code = place.rpartition(".")
            if code.lower() in self.sites:
                place, lang = stem, code.lower()
            folder, name = posixpath.split(place)
            bundle = name == "index" and folder != ""
            if bundle:
                folder, name = posixpath.split(folder)
            head = _lower(head)
            head = {**_table(head.get("params")), **head}
            text = Text(
                source, body, "", lang="" if lang == self.default else lang, first_line=line
            )
            page = _Page(text, head, lang, folder, "" if name == "_index" else name, bundle)
            self.pages.append(page)
            directory = posixpath.dirname(source)
            if bundle and (lang == self.default or directory not in self.bundles):
                self.bundles[directory] = page
            if not page.name and (cascade := _table(head.get("cascade"))):
                self.cascades[folder] = cascade
            path = posixpath.join("/", folder, page.name).lower()
            for key in (path, f"{path}.{lang}", path.rpartition("/")[2]):
                self.index.setdefault((lang, key), source)
                self.index.setdefault(("", key), source)

    def _describe(self, page: _Page) -> None:
        """Read a text's head; what is not for everybody becomes a draft."""
        text, site = page.text, self.sites[page.lang]
        for folder, cascade in sorted(self.cascades.items()):
            if f"{page.folder}/".startswith(f"{folder}/".lstrip("/")):
                page.head = {**cascade, **page.head}
        head = page.head
        dated = re.match(r"(\d{4}-\d\d-\d\d)(?:[-_ ]+(.+))?$", page.name)
        if dated and ":filename" in str(site.get("frontmatter")):
            head = page.head = {"slug": dated[2], **head}
        text.title = str(head.get("title") or head.get("linktitle") or page.name.replace("-", " "))
        dates = (head.get(key) for key in ("date", "publishdate", "pubdate", "published"))
        text.date = read_date(next(filter(None, dates), dated[1] if dated else ""))
        text.updated = read_date(head.get("lastmod") or head.get("modified") or "")
        text.slug = str(head.get("slug") or "")
        text.description = str(head.get("description") or head.get("summary") or "").strip()
        text.author = _name(head.get("authors") or head.get("author"))
        text.series = _name(head.get("series"))
        text.category = _name(head.get("categories") or head.get("category"))
        text.tags = list(
            dict.fromkeys(term for plural, term in self._terms(page) if plural not in _NO_TAGS)
        )
        text.aliases = [
            self.base + each if each.startswith("/") else each
            for each in read_tags(head.get("aliases"))
        ]
        build = {**_table(head.get("_build")), **_table(head.get("build"))}
        ends = read_date(head.get("expirydate") or "")
        reasons = {
            "its last day is over": ends
            and ends.replace(tzinfo=ends.tzinfo or UTC) < datetime.now(UTC),
            "it had no address": read_flag(head.get("headless"))
            or str(build.get("render", "always")).lower() in {"never", "false", "link"},
            "it was encrypted": head.get("password")
            or re.search(r"\{\{[<%]\s*[\w-]*encrypt", text.body),
            "it is a part of another text": any(
                str(parent) in self.bundles
                for parent in PurePosixPath(text.source).parents[page.bundle :]
            ),
            "it is the text of the home page": not page.name
            and not page.folder
            and text.body.strip(),
        }
        for reason in (reason for reason, holds in reasons.items() if holds):
            text.status = "draft"
            self.journal.find(
                text.source, 0, f"is a draft now: {reason}", "publish it if it should be read"
            )
        if read_flag(head.get("draft")) and not read_flag(site.get("builddrafts")):
            text.status = "draft"
        elif text.status != "draft" and str(build.get("list")).lower() in {"never", "false"}:
            text.status = "hidden"

    def _terms(self, page: _Page) -> Iterator[tuple[str, str]]:
        """Yield the taxonomies of a text with its terms."""
        site = self.sites[page.lang]
        named = _table(site.get("taxonomies") or site.get("indexes")).values()
        for plural in dict.fromkeys(["tags", *map(str, named), "categories"]):
            for term in read_tags(page.head.get(plural.lower())):
                yield plural.lower(), term

    def _place(self, page: _Page, mains: Collection[str]) -> None:
        """Find a text's old addresses, and those of the lists that show it."""
        text, site = page.text, self.sites[page.lang]
        within = page.lang != self.default or read_flag(site.get("defaultcontentlanguageinsubdir"))
        home = f"{self.base}/{page.lang}/" if within else f"{self.base}/"
        section = page.folder.partition("/")[0]
        # A slash in a title made a folder until Hugo 0.156, and a hyphen since; an `url` from the
        # root has its language in front of it in old versions alone.
        path = _find_path(page, site, text.title)
        whole = str(page.head.get("url", "")).startswith("/")
        text.address = f"{self.base}/{path}" if whole else home + path
        others = home + path, home + _find_path(page, site, text.title.replace("/", "-"))
        text.aliases += {*others} - {text.address}
        is_post = page.name and text.date and section.lower() in mains
        text.kind = "post" if is_post and page.head.get("type") != "page" else "page"
        shown = "posts:" if section.lower() in mains else "archive:", "feed:"
        if text.kind == "page" and not text.body.strip():
            self.lists[text.address] = shown
            if page.name:
                what = "has no text of its own, and its address leads to the archive"
                self.journal.find(text.source, 0, what, "write a page of that name")
            return
        if page.name and text.status == "published":
            places = {home: ("home:", "feed:")}
            if section:
                places[f"{home}{_urlize(section, site)}/"] = shown
            for plural, term in self._terms(page):
                places[f"{home}{plural}/"] = ("tags:", "feed:")
                tag = plural not in _NO_TAGS
                own = (f"tag:{term}", f"feed:{term}") if tag else ("archive:", "feed:")
                places[f"{home}{plural}/{_urlize(term, site)}/"] = own
            self.lists |= places
            self.counts.update(list(places))
        self.journal.texts.append(text)

    def _add_files(self) -> None:
        """Give files the addresses that they had: beside their text, or as they lie."""
        for source, lang, place in self.files:
            owners = (str(parent) for parent in PurePosixPath(source).parents)
            folder = next((each for each in owners if each in self.bundles), None)
            if folder is None:
                prefix = "" if lang == self.default else f"{lang}/"
                self._add_file(f"{self.base}/{prefix}{place}", source)
            else:
                address = self.bundles[folder].text.address.removesuffix(".html").rstrip("/")
                self._add_file(address + source.removeprefix(folder), source)
        for folder in self.statics:
            for source in self.sources:
                if source.startswith(f"{folder}/"):
                    place = source.removeprefix(f"{folder}/")
                    if place not in _OF_THE_HOST:
                        self._add_file(f"{self.base}/{place}", source)

    def _add_file(self, address: str, source: str) -> None:
        public = address.lstrip("/")
        self.journal.files.setdefault(public, self.sources[source])
        self.journal.file_sources[source] = public

    def _convert(self, page: _Page) -> None:
        """Convert a text's body, and find its picture."""
        text, head = page.text, page.head
        directory = posixpath.dirname(text.source)

        def resolve(target: str, lang: str | None) -> str:
            path, mark, fragment = target.partition("#")
            if not path or ":" in path or path.startswith("//"):
                return target
            path = unquote(path)
            if lang is not None or path.lower().endswith((".md", ".markdown")):
                plain = _INDEX.sub("", path.lower())
                bases = posixpath.join("/", page.folder, page.name), f"/{page.folder}", "/"
                keys = [posixpath.normpath(posixpath.join(base, plain)).lower() for base in bases]
                for key in (*keys, posixpath.basename(plain)):
                    for code in (lang or page.lang, ""):
                        if source := self.index.get((code, key)):
                            return f"{SOURCE}{quote(source, safe='/~')}{mark}{fragment}"
                listed = f"{self.base}{keys[-1]}/"
                return target if lang is None else listed if listed in self.lists else ""
            for folder in (directory, *self.statics, "assets"):
                source = posixpath.normpath(posixpath.join(folder, path.lstrip("/")))
                if source in self.sources:
                    if folder == "assets":
                        self._add_file(f"{self.base}/{path}", source)
                    return f"{SOURCE}{quote(source, safe='/~')}{mark}{fragment}"
            return target

        picture: Any = next(filter(None, (head.get(key) for key in _IMAGES)), "")
        picture = picture[0] if isinstance(picture, list) else picture
        if isinstance(picture, dict):
            text.image_alt = str(picture.get("alt") or picture.get("caption") or "")
            picture = next(filter(None, (picture.get(key) for key in _IMAGE_KEYS)), "")
        if picture:
            text.image = resolve(str(picture), None)
        elif page.bundle and directory in self.featured:
            text.image = SOURCE + quote(self.featured[directory], safe="/~")
        text.body = convert_body(
            text.body,
            {**self.params, **head},
            resolve,
            lambda line, what, fix: self.journal.find(
                text.source, text.first_line + line, what, fix
            ),
        )


def _read_settings(sources: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the settings of each language, its own among those of all; names in lower case."""
    settings: dict[str, Any] = {}
    for name in sorted(filter(_SETTINGS.fullmatch, sources), key=lambda each: ("/" in each, each)):
        path = PurePosixPath(name)
        try:
            values = _table(_lower(_READERS[path.suffix](read_text(sources[name]))))
        except HeadError as fault:
            raise UnreadableJournal(
                f"{name}: {fault}; fix it, then run the command again"
            ) from fault
        part, _, lang = path.stem.lower().partition(".")
        if part not in {"config", "hugo"}:
            values = {part: values}
        if lang:
            values = {"languages": {lang: values.get("languages", values)}}
        settings = _merge(settings, values)
    if not settings:
        raise UnreadableJournal(
            "no settings of Hugo, such as hugo.toml; name the folder that has them"
        )
    default = str(settings.get("defaultcontentlanguage") or "en").lower()
    languages = {
        code: values
        for code, values in _table(settings.get("languages")).items()
        if not read_flag(_table(values).get("disabled"))
    } or {default: {}}
    order = sorted(
        (code != default, str(_table(values).get("weight", 0)).zfill(9), code)
        for code, values in languages.items()
    )
    return {code: _merge(settings, _table(languages[code])) for *_, code in order}


def _find_path(page: _Page, site: dict[str, Any], title: str) -> str:
    """Return a text's path below the home of its language, without a slash in front."""
    section, slug = page.folder.partition("/")[0], str(page.head.get("slug") or "")
    patterns, url = _table(site.get("permalinks")), str(page.head.get("url") or "")
    own = _table(patterns.get("page" if page.name else "section")).get(section.lower())
    pattern = url or own or (patterns.get(section.lower()) if page.name else None)
    when = page.text.date or datetime(1, 1, 1)  # noqa: DTZ001 - as Hugo has it
    values = {
        "title": title,
        "slug": slug or title,
        **dict.fromkeys(("filename", "contentbasename"), page.name),
        **dict.fromkeys(("slugorfilename", "slugorcontentbasename"), slug or page.name),
        "section": section,
        "sections": page.folder,
        **{name: f"{when:{form}}" for name, form in _DATES.items()},
    }

    def expand(found: re.Match[str]) -> str:
        parts, first, last = page.folder.split("/"), found[2], found[4]
        if first is None:
            return values.get(found[1], found[0])
        chosen = parts[int(first or 0) : int(last) if last else None]
        return "/".join(chosen if found[3] else chosen[:1])

    if isinstance(pattern, str):
        path = re.sub(
            r":([a-z]+)(?:\[(-?\d*)(:?)(-?\d*)\])?", expand, pattern.replace("last", "-1")
        )
    else:
        path = posixpath.join(page.folder, slug or page.name)
    path = path if url else _urlize(path, site)
    if re.search(r"\.\w+$" if url else r"\.html?$", path):
        return path.lstrip("/")
    ugly = site.get("uglyurls")
    ugly = ugly.get(section) if isinstance(ugly, dict) else ugly
    end = ".html" if read_flag(ugly) and page.name and not url else "/"
    return re.sub("/+", "/", path.strip("/") + end).lstrip("/")


def _urlize(text: str, site: dict[str, Any]) -> str:
    """Return a path as Hugo writes it: any letter, few marks, and hyphens for blanks."""
    if read_flag(site.get("removepathaccents")):
        parts = unicodedata.normalize("NFD", text)
        text = "".join(each for each in parts if not unicodedata.combining(each))
    kept = "".join(
        each
        for each in text.strip()
        if each.isspace() or each in "./\\_#+~-@" or unicodedata.category(each)[:1] in "LMN"
    )
    path = re.sub(r"\s+", "-", re.sub(r"(?<=-)\s+|\s+(?=-|$)", "", kept))
    return path if read_flag(site.get("disablepathtolower")) else path.lower()


def _merge(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    """Return two tables as one, of which the second goes before the first."""
    both = {
        key: _merge(low[key], value)
        for key, value in high.items()
        if isinstance(value, dict) and isinstance(low.get(key), dict)
    }
    return {**low, **high, **both}


def _lower(value: Any) -> Any:
    """Return a value with all names in lower case, which Hugo reads in any."""
    if isinstance(value, dict):
        return {str(key).lower(): _lower(each) for key, each in value.items()}
    return [_lower(each) for each in value] if isinstance(value, list) else value


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(value: Any) -> str:
    """Return the name that a text, a table or a list of these has."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_name, value)))
    return str((value.get("name") if isinstance(value, dict) else value) or "")
