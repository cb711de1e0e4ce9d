"""Reads a journal of Hugo: settings, texts with bundles and languages, files, and addresses."""

import posixpath
import re
from collections import ChainMap, Counter
from datetime import UTC, datetime
from fnmatch import fnmatch
from functools import partial
from itertools import product
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from site_build.importers import heads
from site_build.importers.hugo_settings import (
    as_list,
    as_table,
    as_tables,
    find_path,
    lower_names,
    read_settings,
    urlize,
)
from site_build.importers.imported import (
    SOURCE,
    Imported,
    Text,
    read_redirects,
    read_text,
    walk,
)
from site_build.importers.shortcodes import convert_body

_NO_TAGS = {"series", "authors", "author"}
"""Taxonomies whose terms are not imported as tags."""
_IMAGE_KEYS = (
    "cover",
    "image",
    "images",
    "featured_image",
    "featuredimage",
    "featureimage",
    "feature",
    "thumbnail",
    "coverimage",
    "thumbnailimage",
    "banner",
    "hero",
    "src",
    "url",
    "filename",
)
"""Keys of a picture in heads, or of its address in a table of a head."""
_READ_KEYS = {
    *_IMAGE_KEYS,
    "title",
    "linktitle",
    "date",
    "publishdate",
    "pubdate",
    "expirydate",
    "lastmod",
    "modified",
    "slug",
    "url",
    "type",
    "categories",
    "authors",
    "author",
    "description",
    "summary",
    "series",
    "aliases",
    "headless",
    "build",
    "_build",
    "cascade",
    "_target",
    "target",
    "params",
    "password",
}
"""All keys of heads that are read, besides taxonomies and those that say who can read a text."""


def read_hugo(root: Path) -> Imported:
    """Read a journal of Hugo; raises UnreadableJournal."""
    return _Reader(root).read()


class _Reader:
    """Reads one journal; `settings` has Hugo's settings by language, the default language first."""

    def __init__(self, root: Path) -> None:
        self.sources = dict(walk(root))
        self.settings = read_settings(self.sources)
        self.default, site = next(iter(self.settings.items()))
        origin, path = re.findall("^(https?://[^/]+|[^/]*)(.*)", str(site.get("baseurl", "")))[0]
        self.base = path.rstrip("/")
        size = site.get("paginate") or as_table(site.get("pagination")).get("pagersize")
        self.page_size = int(next(iter(re.findall(r"[1-9]\d*", str(size))), 10))
        """Number of texts on one page of a list."""
        self.journal = Imported(
            "Hugo",
            title=heads.pick(site.get("title")),
            description=heads.pick(site["params"], ("description", "subtitle")),
            author=heads.pick(site["params"].get("author") or site.get("author")),
            lang=str(site.get("locale") or site.get("languagecode") or self.default),
            timezone=heads.pick(site.get("timezone")),
            origin=origin if "://" in origin else "",
            menu=[
                (
                    heads.pick(entry, ("name", "identifier")),
                    link if ":" in link else f"{self.base}/{link.lstrip('/')}",
                )
                for entry in sorted(
                    as_tables(as_table(site.get("menus", site.get("menu"))).get("main")),
                    key=lambda each: str(each.get("weight", 0)).zfill(9),
                )
                for link in [str(entry.get("url") or entry.get("pageref") or "")]
                if link
            ],
        )
        self.home_addresses = {
            lang: f"{self.base}/{lang}/"
            if lang != self.default or heads.read_flag(own.get("defaultcontentlanguageinsubdir"))
            else f"{self.base}/"
            for lang, own in self.settings.items()
        }
        """Addresses of home pages by language."""
        self.folder_languages = {
            str(own.get("contentdir") or "content").strip("/"): lang
            for lang, own in reversed(self.settings.items())
        }
        """Language of each folder of texts."""
        self.folder_addresses = {
            **dict.fromkeys(heads.read_tags(site.get("staticdir", "static")), f"{self.base}/"),
            **{folder: self.home_addresses[lang] for folder, lang in self.folder_languages.items()},
        }
        """Addresses by folder of static files, texts or a bundle; empty for a draft's bundle."""
        self.featured = {
            posixpath.dirname(source): SOURCE + quote(source)
            for source in self.sources
            if re.search(
                r"(feature|cover|thumb)[^/]*\.(avif|gif|jpe?g|png|svg|webp)$", source.lower()
            )
        }
        """Links to pictures that represent texts, by folder."""
        self.links = {("", f"/{source.lower()}"): SOURCE + quote(source) for source in self.sources}
        """Links by language (or empty) and path in lower case; those to texts also by name."""
        self.list_sizes: Counter[tuple[str, str, str]] = Counter()
        """Number of texts in each list, by its address and the new targets of list and feed."""
        self.cascades = {".": as_tables(site.get("cascade"))}
        """Values of `cascade`, by folder."""

    def read(self) -> Imported:
        """Read texts and files, then convert the texts."""
        # Sections come first, since their heads hand values down, and bundles before their files.
        for source in sorted(self.sources, key=lambda e: ("/_index." not in e, "/index." not in e)):
            folders = [str(each) for each in PurePosixPath(source).parents]
            root, owner = (
                next((each for each in folders if each in table), "")
                for table in (self.folder_languages, self.folder_addresses)
            )
            suffix = posixpath.splitext(source)[1].lower()
            with self.journal.skipping_unreadable(source, source):
                if root and suffix in {".org", ".adoc", ".rst", ".pandoc"}:
                    self.journal.note(
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
                        # HTML without a head is published as a file.
                        or (
                            suffix == ".html"
                            and read_text(self.sources[source])[:3] in {"---", "+++"}
                        )
                    )
                ):
                    self._add_text(source, root, owner)
                elif posixpath.basename(source) in {"_redirects", "netlify.toml"}:
                    self.journal.redirects |= read_redirects(read_text(self.sources[source]))
                elif owner and not self.folder_addresses[owner]:
                    self.journal.note(
                        source,
                        0,
                        "it lies beside a draft, and is not published",
                        "copy it when you publish the draft",
                    )
                elif owner:
                    self.journal.public_paths[source] = (
                        self.folder_addresses[owner] + source.removeprefix(f"{owner}/")
                    ).lstrip("/")
        # Texts in the journal's language come first, so that they keep a name that two texts have.
        texts = self.journal.texts = sorted(self.journal.texts, key=lambda text: text.lang)
        has_posts = any(text.kind == "post" for text in texts)
        for text in texts:
            text.kind = "post" if text.date and not has_posts else text.kind
            text.image = self._resolve(text, None, text.image)
            text.body = convert_body(
                text.body,
                partial(self._resolve, text),
                partial(self.journal.note, text.source),
                text.first_line,
            )
        self.journal.files = {
            public: self.sources[source] for source, public in self.journal.public_paths.items()
        }
        addresses = {"/", *(text.address for text in texts)}
        self.journal.redirects |= {
            old: to
            for (path, target, feed), count in self.list_sizes.items()
            for old, to in (
                (path, target),
                (f"{path}index.xml", feed),
                *(
                    (f"{path}page/{leaf}/", target)
                    for leaf in range(1, count // self.page_size + 2)
                ),
            )
            if old not in addresses
        }
        return self.journal

    def _add_text(self, source: str, root: str, owner: str) -> None:
        """Read a text's head, and find the addresses that it had."""
        head, body, line = heads.split_head(read_text(self.sources[source]))
        place, name, code = re.findall(
            rf"(?i)(?:(.*)/)?(.*?)(?:\.({'|'.join(map(re.escape, self.settings))}))?\.\w+$",
            source.removeprefix(f"{root}/"),
        )[0]
        lang = code.lower() or self.folder_languages[root]
        is_bundle = name == "index" and place != ""
        folder, name = (
            posixpath.split(place) if is_bundle else (place, re.sub("^_index$", "", name))
        )
        head, site, home = lower_names(head), self.settings[lang], self.home_addresses[lang]
        above = PurePosixPath(root, folder)
        self.cascades.setdefault(str(above), as_tables(head.get("cascade")) if not name else [])
        handed_down = (
            entry
            for each in (above, *above.parents)
            for entry in self.cascades.get(str(each), ())
            for target in [as_table(entry.get("_target") or entry.get("target"))]
            if target.get("kind") in (None, "page" if name else "section" if folder else "home")
            # Alternatives in braces match anything here.
            and fnmatch(
                f"/{folder}/{name}".lower(),
                re.sub(r"\{.*?\}", "*", str(target.get("path", "*"))).lower(),
            )
        )
        dated = (
            found.groupdict()
            for found in re.finditer(r"^(?P<date>\d{4}-\d\d-\d\d)(?:[-_ ]+(?P<slug>.+))?$", name)
            if ":filename" in str(site.get("frontmatter"))
        )
        head = dict(ChainMap(head, as_table(head.get("params")), *handed_down, *dated))
        body = re.sub(
            r"\{\{[<%]\s*param\s+\"?([\w-]+)\"?\s*[%>]\}\}",
            lambda found: (
                heads.pick(ChainMap(head, site["params"]).get(found[1].lower())) or found[0]
            ),
            body,
        )
        dates = {
            "date": head.get("date") or head.get("publishdate") or head.get("pubdate"),
            "updated": head.get("lastmod") or head.get("modified"),
        }
        date = heads.read_date(dates["date"])
        section = folder.partition("/")[0].lower()
        groups = {section, str(head.get("type") or section).lower()}
        mains = {each.lower() for each in heads.read_tags(site["params"].get("mainsections"))}
        is_post = (
            name
            and date
            # Texts of some sections are pages, although they have dates.
            and (groups & mains if mains else not groups & {"", "page", "pages", "about"})
        )
        # A slash in a title made a folder until Hugo 0.156, and makes a hyphen since; an absolute
        # `url` followed the language until 0.131.
        title = str(head.get("title") or "")
        path, newer = (
            find_path(head | {"title": each}, folder, name, date, site)
            for each in (title, title.replace("/", "-"))
        )
        address = path and (f"{self.base}/" if str(head.get("url"))[:1] == "/" else home) + path
        kinds = as_table(site.get("taxonomies") or site.get("indexes"))
        plurals = dict.fromkeys(["tags", *map(str.lower, map(str, kinds.values())), "categories"])
        terms = [(each, term) for each in plurals for term in heads.read_tags(head.get(each))]
        text = Text(
            source,
            body,
            title or str(head.get("linktitle") or name.replace("-", " ")),
            address,
            "post" if is_post else "page",
            date=date,
            updated=heads.read_date(dates["updated"]),
            slug=str(head.get("slug") or ""),
            tags=list(dict.fromkeys(term for plural, term in terms if plural not in _NO_TAGS)),
            category=heads.pick(head.get("categories")),
            author=", ".join(map(heads.pick, as_list(head.get("authors") or head.get("author")))),
            lang="" if lang == self.default else lang,
            description=str(head.get("description") or head.get("summary") or ""),
            series=heads.pick(head.get("series")),
            image=heads.pick(head, _IMAGE_KEYS)
            or self.featured.get(posixpath.dirname(source) if is_bundle else "", ""),
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
        build = ChainMap(as_table(head.get("build")), as_table(head.get("_build")))
        starts, ends = (heads.read_date(head.get(each)) for each in ("publishdate", "expirydate"))
        reasons = {
            "its last day is over": ends and ends.replace(tzinfo=UTC) < datetime.now(UTC),
            "its first day is to come": starts != date
            and starts
            and starts.replace(tzinfo=UTC) > datetime.now(UTC),
            "it was no page of its own": heads.read_flag(head.get("headless"))
            or str(build.get("render")).lower() in {"never", "false", "link"}
            or owner not in (root, posixpath.dirname(source) if is_bundle else root),
            "it was encrypted": head.get("password") or re.search(r"\{\{.\s*[\w-]*encrypt", body),
            "it was the text of the home page": body.strip() and not path,
        }
        if reason := next((each for each, holds in reasons.items() if holds), ""):
            self.journal.note(
                source, 0, f"is a draft now: {reason}", "publish it if it should be read"
            )
        text.status = self.journal.judge_head(
            source,
            head
            | (
                {"draft": False, "published": True}
                if heads.read_flag(site.get("builddrafts"))
                else {}
            )
            | ({"unlisted": True} if str(build.get("list")).lower() in {"never", "false"} else {})
            | ({"draft": True} if reason else {}),
            {*_READ_KEYS, *plurals},
            dates,
            date,
        )
        beside = posixpath.dirname(source)
        # A bundle without a page of its own may hold pictures for others.
        if is_bundle and text.status == "draft" and reason != "it was no page of its own":
            self.folder_addresses.setdefault(beside, "")
        elif is_bundle and (lang == self.default or not self.folder_addresses.get(beside)):
            self.folder_addresses[beside] = re.sub(r"(\.html|/)?$", "/", address, count=1)
        is_public = text.status == "published"
        is_empty = text.kind == "page" and not body.strip() and (is_public or not name)
        if not is_empty:
            self.journal.texts.append(text)
        elif name:
            self.journal.note(
                source,
                0,
                "has no text of its own, so its address leads to the archive",
                "write a page of that name",
            )
        for each, key, mark in product(
            (lang, ""),
            (posixpath.join("/", root, folder, name).rstrip("/").lower(), name.lower()),
            ("", f".{lang}"),
        ):
            self.links.setdefault(
                (each, key + mark), address if is_empty else SOURCE + quote(source)
            )
        targets = ("posts:" if text.kind == "post" else "archive:"), "feed:"
        lists = {
            posixpath.join(home, urlize(section, site), ""): targets,
            **{f"{home}{plural}/": ("tags:", "feed:") for plural, _ in terms},
            **{
                f"{home}{plural}/{urlize(term, site)}/": (f"tag:{term}", f"feed:{term}")
                if plural not in _NO_TAGS
                else ("archive:", "feed:")
                for plural, term in terms
            },
            home: ("home:", "feed:"),
        }
        if is_empty:
            # An empty text about a tag adds no list: that of the tag leads to the tag already.
            lists = (
                dict.fromkeys((address, *text.aliases), targets) if section not in plurals else {}
            )
        self.list_sizes.update((old, *to) for old, to in lists.items() if path and is_public)

    def _resolve(self, text: Text, lang: str | None, target: str) -> str:
        """Return the new link for a target in a text, and add the file that it needs."""
        path, mark, fragment = unquote(target).partition("#")
        is_text = lang is not None or path.lower().endswith((".md", ".markdown"))
        is_file = "." in posixpath.basename(path) and not re.match("[a-z]+:|//", path)
        if not path or not (is_text or is_file):
            return target
        ending = r"((^|/)_?index(\.[a-z-]+)?)?(/|\.md|\.markdown|\.html)?$"
        plain = re.sub(ending, "", path.lower()) if is_text else path.lower()
        keys = [
            posixpath.normpath(f"/{root}/{plain}").replace("//", "/").lower()
            for root in (posixpath.dirname(text.source), *self.folder_addresses, "assets")
        ]
        found = (
            self.links.get((each, key))
            for key in (*keys, posixpath.basename(plain))
            for each in (lang or text.lang or self.default, "")
        )
        link = next(filter(None, found), "")
        if link.startswith(f"{SOURCE}assets/"):
            file = unquote(link.removeprefix(SOURCE))
            self.journal.public_paths[file] = (self.base + file.removeprefix("assets")).lstrip("/")
        # An absolute path without a text may be that of a list.
        if not link and lang is not None and not path.startswith("/"):
            return ""
        return f"{link}{mark}{fragment}" if link else target
