"""Journals of Hugo: settings, texts with bundles and languages, files, and the addresses of all."""

import posixpath
import re
import unicodedata
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from site_build.importers import heads
from site_build.importers.hugo_settings import as_table, lower_names, pick, read_settings
from site_build.importers.hugo_shortcodes import convert_body
from site_build.importers.imported import SOURCE, Imported, Text, read_text, walk

_PAGES = {"", "page", "pages", "about"}
"""Sections whose texts are pages, although they have dates."""
_NO_TAGS = {"series", "authors", "author"}
_IMAGES = (
    *("cover", "image", "images", "featured_image", "featuredimage", "featureimage", "feature"),
    *("thumbnail", "coverimage", "thumbnailimage", "banner", "hero", "src", "url", "filename"),
)
"""Names under which heads have a picture, and tables of a head its address."""


def read_hugo(root: Path) -> Imported:
    """Read a journal of Hugo; raises UnreadableJournal."""
    return _Reader(root).read()


class _Reader:
    """Reads one journal; `sites` are the settings by language, that of the journal first."""

    def __init__(self, root: Path) -> None:
        self.sources = dict(walk(root))
        self.sites = read_settings(self.sources)
        self.default, site = next(iter(self.sites.items()))
        params = as_table(site.get("params"))
        origin, path = re.findall("^(https?://[^/]+|[^/]*)(.*)", str(site.get("baseurl", "")))[0]
        self.base = path.rstrip("/")
        size = site.get("paginate") or as_table(site.get("pagination")).get("pagersize")
        self.size = int(re.sub(r"\D", "", str(size)) or 10) or 10
        menus = {**as_table(site.get("menu")), **as_table(site.get("menus"))}
        self.journal = Imported(
            "Hugo",
            title=str(site.get("title", "")),
            description=str(params.get("description") or params.get("subtitle") or ""),
            author=pick(params.get("author") or site.get("author")),
            lang=str(site.get("locale") or site.get("languagecode") or self.default),
            timezone=str(site.get("timezone", "")),
            origin=origin if "://" in origin else "",
            menu=[
                (
                    pick(entry) or str(entry.get("identifier")),
                    link if ":" in link else f"{self.base}/{link.lstrip('/')}",
                )
                for entry in sorted(
                    map(as_table, menus.get("main") or ()),
                    key=lambda each: str(each.get("weight", 0)).zfill(9),
                )
                for link in [str(entry.get("url") or entry.get("pageref") or "")]
                if link
            ],
        )
        self.homes = {
            lang: f"{self.base}/{lang}/"
            if lang != self.default or heads.read_flag(own.get("defaultcontentlanguageinsubdir"))
            else f"{self.base}/"
            for lang, own in self.sites.items()
        }
        """Addresses of homes by language."""
        self.contents = {
            str(own.get("contentdir") or "content").strip("/"): lang
            for lang, own in reversed(self.sites.items())
        }
        """Languages by folder of texts."""
        self.places = {
            **dict.fromkeys(heads.read_tags(site.get("staticdir", "static")), f"{self.base}/"),
            **{folder: self.homes[lang] for folder, lang in self.contents.items()},
        }
        """Addresses of folders with files: those for files alone, of texts, and beside a text."""
        self.featured = {
            posixpath.dirname(source): _link(source)
            for source in self.sources
            if re.search(
                r"(feature|cover|thumb)[^/]*\.(avif|gif|jpe?g|png|svg|webp)$", source.lower()
            )
        }
        """Pictures that stand for texts, by folder."""
        self.index: dict[tuple[str, str], str] = {}
        """Links to texts by language, or none, and by path in lower case, or name."""
        self.lists: Counter[tuple[str, str, str]] = Counter()
        """Numbers of texts in lists, by address, and what takes the place of list and feed."""

    def read(self) -> Imported:
        """Read texts and files, then what texts show."""
        # A bundle's own text is read before the files beside it, which take its address.
        for source in sorted(self.sources, key=lambda each: "/index." not in each):
            folders = [str(each) for each in PurePosixPath(source).parents]
            root = next((each for each in folders if each in self.contents), "")
            owner = next((each for each in folders if each in self.places), "")
            suffix = posixpath.splitext(source)[1].lower()
            try:
                if root and suffix in {".org", ".adoc", ".rst", ".pandoc"}:
                    self.journal.find(
                        source,
                        0,
                        f"texts in {suffix} are not read",
                        f"write it in Markdown: pandoc -t gfm {posixpath.basename(source)}",
                        "left out",
                    )
                elif (
                    root
                    and (
                        suffix in {".md", ".markdown", ".mdown", ".mkd"}
                        # HTML without a head is a file.
                        or (
                            suffix == ".html"
                            and read_text(self.sources[source])[:3] in {"---", "+++"}
                        )
                    )
                ):
                    self._add_text(source, root, owner)
                elif owner:
                    self._add_file(source, self.places[owner] + source.removeprefix(f"{owner}/"))
            except heads.HeadError as fault:
                self.journal.find(
                    source,
                    fault.line,
                    str(fault),
                    "fix its head, then run the command again",
                    "left out",
                )
        if not any(text.kind == "post" for text in self.journal.texts):
            for text in self.journal.texts:
                text.kind = "post" if text.date else "page"
        for (path, target, feed), count in self.lists.items():
            self.journal.redirects |= {
                path: target,
                f"{path}index.xml": feed,
                **{f"{path}page/{leaf}/": target for leaf in range(1, count // self.size + 2)},
            }
        for path in ("/", *(text.address for text in self.journal.texts)):
            self.journal.redirects.pop(path, None)
        for text in self.journal.texts:
            self._convert(text)
        return self.journal

    def _add_file(self, source: str, address: str) -> None:
        self.journal.files[address.lstrip("/")] = self.sources[source]
        self.journal.file_sources[source] = address.lstrip("/")

    def _add_text(self, source: str, root: str, owner: str) -> None:
        """Read a text's head, and find the addresses that it had."""
        head, body, line = heads.split_head(read_text(self.sources[source]))
        place, stem = posixpath.split(posixpath.splitext(source.removeprefix(f"{root}/"))[0])
        name, _, code = stem.rpartition(".")
        lang, name = (
            (code.lower(), name) if code.lower() in self.sites else (self.contents[root], stem)
        )
        bundle = name == "index" and place != ""
        folder, name = posixpath.split(place) if bundle else (place, re.sub("^_index$", "", name))
        head, site, home = lower_names(head), self.sites[lang], self.homes[lang]
        if ":filename" in str(site.get("frontmatter")):
            dated = re.match(r"(?P<date>\d{4}-\d\d-\d\d)(?:[-_ ]+(?P<slug>.+))?$", name)
            head = {**(dated.groupdict() if dated else {}), **head}
        date = heads.read_date(
            next(filter(None, map(head.get, ("date", "publishdate", "pubdate"))), None)
        )
        section = folder.partition("/")[0].lower()
        named = heads.read_tags(as_table(site.get("params")).get("mainsections"))
        mains = {each.lower() for each in named}
        is_post = name and date and (section in mains if mains else section not in _PAGES)
        # A slash in a title made a folder until Hugo 0.156, and makes a hyphen since; the language
        # stood before an absolute `url` until 0.131.
        title = str(head.get("title") or "")
        path, newer = (
            _find_path(head | {"title": each}, folder, name, date, site)
            for each in (title, title.replace("/", "-"))
        )
        above = f"{self.base}/" if str(head.get("url")).startswith("/") else home
        address = above + path if path else ""
        kinds = as_table(site.get("taxonomies") or site.get("indexes")).values()
        plurals = dict.fromkeys(["tags", *(str(each).lower() for each in kinds), "categories"])
        terms = [(each, term) for each in plurals for term in heads.read_tags(head.get(each))]
        text = Text(
            source,
            body,
            title or str(head.get("linktitle") or name.replace("-", " ")),
            address,
            "post" if is_post and head.get("type") != "page" else "page",
            date=date,
            updated=heads.read_date(head.get("lastmod") or head.get("modified")),
            slug=str(head.get("slug") or ""),
            tags=list(dict.fromkeys(term for plural, term in terms if plural not in _NO_TAGS)),
            category=pick(head.get("categories")),
            author=pick(head.get("authors") or head.get("author")),
            lang="" if lang == self.default else lang,
            description=str(head.get("description") or head.get("summary") or ""),
            series=pick(head.get("series")),
            image=pick(head, _IMAGES)
            or self.featured.get(posixpath.dirname(source) if bundle else "", ""),
            image_alt=str(as_table(head.get("cover")).get("alt") or ""),
            aliases=[
                self.base + each
                if each.startswith("/")
                else posixpath.join(posixpath.dirname(address.rstrip("/")), each)
                for each in heads.read_tags(head.get("aliases"))
            ]
            + [each for each in dict.fromkeys((home + path, home + newer)) if each != address],
            first_line=line,
        )
        build = {**as_table(head.get("_build")), **as_table(head.get("build"))}
        starts, ends = (heads.read_date(head.get(each)) for each in ("publishdate", "expirydate"))
        now = datetime.now(UTC)
        reasons = {
            "its last day is over": ends and ends.replace(tzinfo=UTC) < now,
            "its first day is to come": starts != date
            and starts
            and starts.replace(tzinfo=UTC) > now,
            "it was no page of its own": heads.read_flag(head.get("headless"))
            or str(build.get("render")).lower() in {"never", "false", "link"}
            or owner not in (root, posixpath.dirname(source) if bundle else root),
            "it was encrypted": head.get("password") or re.search(r"\{\{.\s*[\w-]*encrypt", body),
            "it was the text of the home page": body.strip() and not path,
        }
        if reason := next((each for each, holds in reasons.items() if holds), ""):
            self.journal.find(
                source, 0, f"is a draft now: {reason}", "publish it if it should be read"
            )
        draft = heads.read_flag(head.get("draft")) and not heads.read_flag(site.get("builddrafts"))
        listed = str(build.get("list")).lower() not in {"never", "false"}
        text.status = "draft" if reason or draft else "published" if listed else "hidden"
        if bundle and (lang == self.default or owner == root):
            self.places[posixpath.dirname(source)] = re.sub(r"(\.html|/)?$", "/", address, count=1)
        public = text.status == "published"
        empty = text.kind == "page" and not body.strip() and (public or not name)
        if not empty:
            self.journal.texts.append(text)
        elif name:
            self.journal.find(
                source,
                0,
                "has no text of its own, so its address leads to the archive",
                "write a page of that name",
            )
        for key in (posixpath.join("/", root, folder, name).rstrip("/").lower(), name.lower()):
            for each in ((lang, key), ("", key), (lang, f"{key}.{lang}"), ("", f"{key}.{lang}")):
                self.index.setdefault(each, address if empty else _link(source))
        shown = ("posts:" if text.kind == "post" else "archive:"), "feed:"
        lists = {
            posixpath.join(home, _urlize(section, site), ""): shown,
            **{f"{home}{plural}/": ("tags:", "feed:") for plural, _ in terms},
            **{
                f"{home}{plural}/{_urlize(term, site)}/": (f"tag:{term}", f"feed:{term}")
                if plural not in _NO_TAGS
                else ("archive:", "feed:")
                for plural, term in terms
            },
            home: ("home:", "feed:"),
        }
        if empty:
            # A list of a tag leads to the tag.
            lists = dict.fromkeys((address, *text.aliases), shown) if section not in plurals else {}
        if path and public:
            self.lists.update((path, *targets) for path, targets in lists.items())

    def _convert(self, text: Text) -> None:
        """Convert a text's body, and find the files that it shows."""
        here = posixpath.dirname(text.source)

        def resolve(target: str, lang: str | None) -> str:
            path, mark, fragment = unquote(target).partition("#")
            if not path or re.match("[a-z]+:|//", path):
                return target
            if lang is None and not path.lower().endswith((".md", ".markdown")):
                files = (
                    posixpath.normpath(posixpath.join(place, path.lstrip("/")))
                    for place in (here, *self.places, "assets")
                )
                file = next(filter(self.sources.get, files), "")
                if file.startswith("assets/"):
                    self._add_file(file, self.base + file.removeprefix("assets"))
                link = file and _link(file)
            else:
                plain = re.sub(
                    r"((^|/)_?index(\.[a-z-]+)?)?(/|\.md|\.markdown|\.html)?$", "", path.lower()
                )
                roots = ("" if path.startswith("/") else here, *self.contents)
                keys = [
                    posixpath.normpath(f"/{root}/{plain}").lower().replace("//", "/")
                    for root in roots
                ]
                found = (
                    self.index.get((each, key))
                    for key in (*keys, posixpath.basename(plain))
                    for each in (lang or text.lang or self.default, "")
                )
                # An absolute path that is no text's may be that of a list.
                link = next(filter(None, found), "")
                if not link and lang is not None and not path.startswith("/"):
                    return ""
            return f"{link}{mark}{fragment}" if link else target

        text.image = resolve(text.image, None)
        text.body = convert_body(
            text.body,
            resolve,
            lambda line, what, fix: self.journal.find(
                text.source, text.first_line + line, what, fix
            ),
        )


def _link(source: str) -> str:
    return SOURCE + quote(source, safe="/~")


def _find_path(
    head: dict[str, Any], folder: str, name: str, date: datetime | None, site: dict[str, Any]
) -> str:
    """Return a text's path below the home of its language, without a slash in front."""
    section, slug = folder.partition("/")[0], str(head.get("slug") or "")
    forms, url = as_table(site.get("permalinks")), str(head.get("url") or "")
    by_kind = as_table(forms.get("page" if name else "section"))
    patterns = (url, *(each.get(section.lower()) for each in (by_kind, forms if name else {})))
    # Hugo reads a plus in such a path as a blank.
    title, chosen = (_urlize(each.replace("+", " "), site) for each in (head["title"], slug))
    when = date or datetime(1, 1, 1, tzinfo=UTC)
    values = {
        "title": title,
        "slug": chosen or title,
        **dict.fromkeys(("filename", "contentbasename"), name),
        **dict.fromkeys(("slugorfilename", "slugorcontentbasename"), chosen or name),
        "section": section,
        "sections": folder,
        "sections[1:]": folder.partition("/")[2],
        "year": str(when.year),
        "month": f"{when:%m}",
        "monthname": f"{when:%B}",
        "day": f"{when:%d}",
        "yearday": f"{when:%j}",
        "weekday": f"{when:%w}",
        "weekdayname": f"{when:%A}",
    }
    path = re.sub(
        r":(\w+(?:\[.*?\])?)",
        lambda found: values.get(found[1].lower(), found[0]),
        next(
            (each for each in patterns if each and isinstance(each, str)),
            posixpath.join(folder, slug or name),
        ),
    )
    path = path if url else _urlize(path, site)
    ugly = heads.read_flag(as_table(site.get("uglyurls")).get(section, site.get("uglyurls")))
    ended = re.search(r"\.\w+$" if url else r"\.html?$", path)
    return re.sub(
        "/+",
        "/",
        path.strip("/") + ("" if ended else ".html" if ugly and name and not url else "/"),
    ).lstrip("/")


def _urlize(text: str, site: dict[str, Any]) -> str:
    """Return a path as Hugo writes it: any letter, few marks, and hyphens for blanks."""
    plain = heads.read_flag(site.get("removepathaccents"))
    kept = "".join(
        each
        for each in unicodedata.normalize("NFD" if plain else "NFC", text)
        if each.isspace()
        or each in "./\\_#+~-@"
        or unicodedata.category(each)[0] in ("LN" if plain else "LMN")
    )
    path = re.sub(r"\s+", "-", re.sub(r"(?<=-)\s+|\s+(?=-)", "", kept.strip()))
    return path if heads.read_flag(site.get("disablepathtolower")) else path.lower()
