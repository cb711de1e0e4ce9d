"""Reads a journal of Jekyll, or of the related Octopress and Hexo."""

import re
from datetime import UTC, tzinfo
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from site_build.importers import heads
from site_build.importers.html_to_markdown import convert
from site_build.importers.imported import Imported, Text, UnreadableJournal, read_text, walk
from site_build.importers.liquid import convert_kramdown, convert_liquid

_STYLES = {
    "date": "/:categories/:year/:month/:day/:title:output_ext",
    "pretty": "/:categories/:year/:month/:day/:title/",
    "ordinal": "/:categories/:year/:y_day/:title:output_ext",
    "weekdate": "/:categories/:year/W:week/:short_day/:title:output_ext",
    "none": "/:categories/:title:output_ext",
}
"""Templates of addresses by the name that `permalink` may have."""
_DATE_PARTS = {
    "year": "%Y",
    "month": "%m",
    "day": "%d",
    "hour": "%H",
    "minute": "%M",
    "second": "%S",
    "i_month": "%-m",
    "i_day": "%-d",
    "short_year": "%y",
    "y_day": "%j",
    "week": "%V",
    "short_month": "%b",
    "long_month": "%B",
    "short_day": "%a",
    "long_day": "%A",
}
"""Parts of addresses that come from a date, with their formats."""
_MARKDOWN = {".md", ".markdown", ".mkd", ".mkdn", ".mkdown"}
_NOT_IMPORTED = re.compile(
    r"(?i).*\.(?:css|js|map|s[ac]ss|less|styl|coffee|rb|gemspec|lock|ya?ml|toml|sh|bat|woff2?|ttf"
    r"|eot|otf|xml|ejs|swig|njk)|(?:Gemfile|Rakefile|Makefile|Dockerfile|CNAME|LICENSE|README"
    r"|CHANGELOG|CONTRIBUTING|CODE_OF_CONDUCT)(?:\..*)?|robots\.txt|(?:package|search).*\.json"
)
"""Files of a theme, a tool or a host, which are not imported."""
_LIST_TARGETS = {
    "feed|atom|rss": "feed:",
    "tag|categor|topic": "tags:",
    "archive|post|blog|news|year": "archive:",
    "": "home:",
}
"""Lists of ours that replace generated pages, by a pattern of the page's path or layout."""
_PICTURE_KEYS = (
    "image",
    "header",
    "cover",
    "cover-img",
    "thumbnail",
    "thumbnail-img",
    "img",
    "banner",
    "feature-img",
    "featured_image",
    "featured-image",
    "background",
    "index_img",
    "teaser",
)
"""Keys of a post's picture in heads of many themes."""
_READ_KEYS = {
    *_PICTURE_KEYS,
    "title",
    "date",
    "last_modified_at",
    "updated",
    "modified",
    "slug",
    "permalink",
    "password",
    "tag",
    "tags",
    "category",
    "categories",
    "author",
    "authors",
    "lang",
    "locale",
    "layout",
    "description",
    "excerpt",
    "subtitle",
    "series",
    "redirect_from",
    "redirect_to",
    "alias",
    "media_subpath",
    "img_path",
}
"""All keys of heads that are read, besides those that say who can read a text."""


def read_jekyll(root: Path) -> Imported:
    """Return the journal in a folder of Jekyll, Octopress or Hexo. Raises UnreadableJournal."""
    try:
        reader = _Reader(
            root, *(_read(root, name) for name in ("_config.[yt]*ml", "_data/authors.y*ml"))
        )
    except (heads.HeadError, AttributeError, TypeError) as error:
        raise UnreadableJournal(
            f"_config.yml or _data/authors.yml: {error}; correct it and try again"
        ) from error
    config = reader.config
    for name, path in reader.paths.items():
        with reader.imported.skipping_unreadable(reader.prefix + name, name):
            reader.add(name, path)
    archives = {
        kind: f"/{_pick_text(config, f'{kind}_dir') or name}/:name/"
        for kind, name in (("tag", "tags"), ("category", "categories"))
        if reader.is_hexo or f"{kind}_dir" in config
    } | _as_mapping(_as_mapping(config.get("jekyll-archives")).get("permalinks"))
    pages = f"/{_pick_text(config, 'paginate_path').strip('/') or 'page:num'}/"
    last = len(reader.imported.texts) // 5 * ("paginate" in config)
    reader.imported.redirects |= {
        reader.base + str(archives[kind]).replace(":name", form): f"tag:{tag}"
        for kind in archives.keys() & {"tag", "category"}
        for text in reader.imported.texts
        for tag in text.tags
        for form in (tag, _slug(tag), re.sub(r"[\W_]+", "-", tag))
    } | {reader.base + pages.replace(":num", str(page)): "posts:" for page in range(2, last + 2)}
    return reader.imported


class _Reader:
    """Reads one journal: its settings, and its texts and files into `imported`."""

    def __init__(self, root: Path, config: dict[str, Any], authors: dict[str, Any]) -> None:
        self.is_hexo = (root / "source/_posts").is_dir() and "source" not in config
        source = "source" if self.is_hexo else _pick_text(config, "source").strip("./")
        self.prefix = f"{source}/".lstrip("/")
        self.included = heads.read_tags(config.get("include"))
        excluded = ["vendor", *heads.read_tags(config.get("exclude"))]
        self.paths = {
            name: path
            for full, path in walk(root)
            if (name := full.removeprefix(self.prefix)) != full or not self.prefix
            if not _NOT_IMPORTED.fullmatch(name)
            if not any(
                fnmatch(name, each) or fnmatch(name, f"{each.strip('/')}/*") for each in excluded
            )
        }
        self.by_last_part = {
            part: name
            for name in self.paths
            for part in (PurePosixPath(name).stem, PurePosixPath(name).name)
        }
        origin, path = re.findall(r"^(https?://[^/]+|)(.*)", _pick_text(config, "url"))[0]
        base = _pick_text(config, "baseurl", "root").strip("/") or path.strip("/") * bool(origin)
        self.base = base and f"/{base}"
        self.config = config | {"baseurl": self.base, "url": origin}
        self.authors = authors
        zone = str(config.get("timezone"))
        self.zone: tzinfo = ZoneInfo(zone) if zone in available_timezones() else UTC
        style = config.get("permalink") or (":year/:month/:day/:title/" if self.is_hexo else "date")
        style = _STYLES.get(str(style), str(style))
        # Addresses of pages end like those of posts, except in Hexo.
        self.end = ":output_ext" if self.is_hexo else re.sub(r".*?(/|:output_ext|)$", r"\1", style)
        self.templates = {"posts": style, "drafts": style} | {
            label: str(
                _as_mapping(each).get("permalink")
                or (style if label == "posts" else f"/:collection/:path{self.end}")
            )
            for label, each in _as_mapping(config.get("collections")).items()
            if label == "posts" or heads.read_flag(_as_mapping(each).get("output"))
        }
        self.defaults = sorted(
            (
                (_pick_text(_as_mapping(each.get("scope")), "path").strip("/").split("*")[0], each)
                for each in map(_as_mapping, config.get("defaults") or [])
            ),
            key=lambda default: default[0],
        )
        self.imported = Imported(
            "Hexo" if self.is_hexo else "Jekyll",
            title=_pick_text(config, "title", "name"),
            description=_pick_text(config, "description", "subtitle"),
            author=_pick_text(config, "author", "social"),
            lang=_pick_text(config, "lang", "locale", "language").replace("_", "-"),
            timezone=zone if self.zone is not UTC else "",
            origin=self.config["url"],
            redirects={f"{self.base}/{name}": "feed:" for name in ("feed.xml", "atom.xml")}
            | ({f"{self.base}/archives/": "archive:"} if self.is_hexo else {}),
        )

    def add(self, name: str, path: Path) -> None:
        """Add a text or a file, or redirects for a page that is a list. Raises ValueError."""
        special = (part for part in name.split("/") if part[0] == "_" and part not in self.included)
        label = next(special, "")[1:]
        if label and label not in self.templates:
            return
        source, suffix = self.prefix + name, PurePosixPath(name).suffix.lower()
        if suffix in {".textile", ".adoc", ".asciidoc", ".org", ".rst"}:
            raise ValueError(f"{suffix} is not read; convert it to Markdown")
        text = read_text(path) if suffix in {*_MARKDOWN, ".html", ".htm"} else ""
        # The first line of a head may be missing in Hexo.
        is_bare = self.is_hexo and re.match(r"\w+:[^\n]*\n(?:[^\n]+\n)*?---[ ]*\n", text)
        head, body, line = heads.split_head(f"---\n{text}" if is_bare else text)
        if line == 1 and suffix not in _MARKDOWN:
            if label == "drafts":
                return
            public = f"{self.base}/{name.replace('_', '', bool(label))}".lstrip("/")
            self.imported.files[public] = path
            self.imported.public_paths[source] = public
            return
        values = {
            key: value
            for folder, each in self.defaults
            if name.startswith(folder)
            if _pick_text(_as_mapping(each.get("scope")), "type") in {"", label or "pages"}
            for key, value in _as_mapping(each.get("values")).items()
        } | head
        post = self.make_text(name, label, values)
        self.imported.note_true(
            source, {"is a draft here, for it had a password": values.get("password")}
        )
        pictures = (
            str(link)
            for key in _PICTURE_KEYS
            for part, link in (_as_mapping(head.get(key)) or {"path": head.get(key)}).items()
            if part in {"path", "teaser", "feature", "image", "og_image", "overlay_image", "url"}
            and re.search(r"\w\.\w{3,4}\b|//", str(link))
        )
        post.image = next(
            (e if "//" in e else f"source:{self.find_path(e, name)}" for e in pictures), ""
        )
        # A page that lists posts is only a list if it has no more than this many other words.
        most_words = 25 * bool(re.search(r"\{%-?\s*for\b|\bpaginator\.|\bsite\.posts\b", body))
        body = convert_liquid(
            body,
            {
                "site": self.config,
                "page": values | {"title": post.title, "url": post.address},
                "base_path": self.base,  # in the theme academicpages
            },
            lambda wanted: self.find_path(wanted, name),
            lambda at, tag: self.imported.note(
                source, line + at, f"{tag} is taken out", "write what it showed"
            ),
        )
        body = re.sub(".+", r"<\g<0>>\n\n", _pick_text(values, "redirect_to")) + body
        words = len(re.findall(r"\w+", re.sub("<[^>]*>", "", body)))
        if post.kind == "page" and (words <= most_words or PurePosixPath(name).stem == "404"):
            path_and_layout = f"{name} {values.get('layout')}"
            goal = next(
                goal for word, goal in _LIST_TARGETS.items() if re.search(word, path_and_layout)
            )
            self.imported.redirects |= dict.fromkeys(
                {post.address, *post.aliases} - {"", "/"}, goal
            )
            self.imported.note(
                source,
                0,
                f"the page is a list or a form, has {words} words, and leads to {goal}",
                "see if that does",
            )
            return
        media = re.sub("(?<=[^/])/*$", "/", _pick_text(values, "media_subpath", "img_path"))
        body = convert_kramdown(body) if suffix in _MARKDOWN else convert(body)
        post.body = re.sub(
            r"(?P<alt>!\[[^\]\n]*\]\()(?!\w+:|//|#)(?P<link>[^)\s]+)",
            lambda found: found["alt"] + self.place_picture(found["link"], media, name),
            body,
        )
        post.first_line = line
        self.imported.texts.append(post)

    def make_text(self, name: str, label: str, values: dict[str, Any]) -> Text:
        """Return a text from its head, without its body and its picture."""
        stem, inner = PurePosixPath(name).stem, PurePosixPath(name.rpartition(f"_{label}/")[2])
        # In Hexo a date belongs to the name, unless the settings say that names begin with one.
        is_plain = self.is_hexo and ":year" not in _pick_text(self.config, "new_post_name")
        named = (
            None
            if is_plain
            else re.fullmatch(r"(?P<date>\d{2,4}-\d{1,2}-\d{1,2})-(?P<slug>.+)", stem)
        )
        head_date = heads.read_date(values.get("date"))
        if date := head_date or heads.read_date(named and named["date"]):
            # Ruby reads a time without a zone in UTC, but a day in the zone of the site.
            in_utc = head_date and ":" in str(values.get("date")) and not self.is_hexo
            zone = date.tzinfo or (UTC if in_utc else self.zone)
            date = date.replace(tzinfo=zone).astimezone(self.zone)
        # Jekyll splits a text of tags at blanks, and Hexo does not.
        split_keys = {"tags", "categories"} if not self.is_hexo else set()
        tags, categories = (
            [
                tag
                for key in keys
                for tag in heads.read_tags(
                    values.get(key),
                    "," if "," in str(values.get(key)) else None if key in split_keys else "\n",
                )
            ]
            for keys in (("tag", "tags"), ("category", "categories"))
        )
        folders = name.removeprefix(f"{_pick_text(self.config, 'collections_dir').strip('/')}/")
        categories = [*folders.rpartition("_posts/")[0].split("/")[:-1], *categories]
        slug = _pick_text(values, "slug") or (named["slug"] if named else stem)
        page = "/:folder/" if stem == "index" else f"/:folder/:basename{self.end}"
        template = _pick_text(values, "permalink") or self.templates.get(label, page)
        fields = {
            # In Hexo, an address may use every key of the head.
            **({key: str(value) for key, value in values.items()} if self.is_hexo else {}),
            "categories": "/".join(categories).lower(),
            "slugified_categories": "/".join(map(_slug, categories)),
            "category": "/".join(map(_slug, categories)) or "uncategorized",
            "collection": label,
            "path": inner.with_suffix("").as_posix(),
            "folder": inner.parent.as_posix().strip("."),
            "basename": stem,
            "name": stem if self.is_hexo else _slug(stem),
            "title": re.sub(r"[^\w.~!$&'()+,;=@]+", "-", slug).strip("-"),
            "slug": _slug(slug),
            "output_ext": ".html",
            **({part: date.strftime(form) for part, form in _DATE_PARTS.items()} if date else {}),
            **({"title": inner.with_suffix("").as_posix()} if self.is_hexo and label else {}),
        }
        author = _pick_text(values, "author", "authors")
        address = re.sub(
            ":([a-z_]+)",
            lambda part: fields.get(part[1], part[0]),
            f"/{_STYLES.get(template, template)}",
        )
        # Jekyll shows no post without a day in its name.
        dates = {
            "date": values.get("date"),
            "updated": _pick_text(values, "last_modified_at", "updated", "modified"),
        }
        status = self.imported.judge_head(self.prefix + name, values, _READ_KEYS, dates, date)
        public = (
            label != "drafts"
            and (named or self.is_hexo or label != "posts")
            and status != "draft"
            and not values.get("password")
        )
        address = re.sub("/+", "/", address) if public and not re.search(r":\w", address) else ""
        return Text(
            source=self.prefix + name,
            body="",
            title=_pick_text(values, "title")
            or (inner.parent.name if stem == "index" else slug).replace("-", " ").title(),
            address=self.base + address if address else "",
            kind="post" if label in {"posts", "drafts"} else "page",
            status=status if public else "draft",
            date=date,
            updated=heads.read_date(dates["updated"]),
            slug=_pick_text(values, "slug"),
            tags=list(dict.fromkeys(tags + categories)),
            category=next(iter(categories), ""),
            author=_pick_text(_as_mapping(self.authors.get(author)), "name", "display_name")
            or author,
            lang=_pick_text(values, "lang", "locale"),
            description=_pick_text(values, "description", "excerpt", "subtitle"),
            series=_pick_text(values, "series"),
            image_alt=_pick_text(_as_mapping(values.get("image")), "alt"),
            aliases=[
                f"{self.base}/{alias.lstrip('/')}"
                for key in ("redirect_from", "alias")
                for alias in heads.read_tags(values.get(key))
            ]
            + [address] * bool(self.base and address),
        )

    def find_path(self, wanted: str, name: str) -> str:
        """Return the path below the root of the file that the text `name` refers to as `wanted`."""
        wanted = wanted.strip("/")
        beside = f"{PurePosixPath(name).with_suffix('')}/{wanted}"
        last = self.by_last_part.get(PurePosixPath(wanted).name, wanted)
        return self.prefix + next((each for each in (beside, wanted) if each in self.paths), last)

    def place_picture(self, link: str, media: str, name: str) -> str:
        """Return the link of a picture in a Hexo post's folder or in `media`, or else `link`."""
        below = link if link[0] == "/" else media + link
        places = (f"{PurePosixPath(name).with_suffix('')}/{link}", below.strip("/"))
        found = (f"source:{self.prefix}{place}" for place in places if place in self.paths)
        return next(found, below).replace(" ", "%20")


def _read(root: Path, pattern: str) -> dict[str, Any]:
    """Return the settings in the first file that matches `pattern`; raises HeadError."""
    values = (
        (heads.read_toml if file.suffix == ".toml" else heads.read_yaml)(read_text(file))
        # Jekyll reads the first of `.yml`, `.yaml` and `.toml`.
        for file in sorted(root.glob(pattern), reverse=True)
    )
    return _as_mapping(next(values, {}))


def _as_mapping(value: object) -> dict[str, Any]:
    """Return a mapping as it is, a list as keys without values, and else an empty mapping."""
    named = dict.fromkeys(map(str, value)) if isinstance(value, list) else value
    return named if isinstance(named, dict) else {}


def _pick_text(values: dict[str, Any], *keys: str) -> str:
    """Return the first value of the keys as text: of a list the first, of a mapping its name."""
    return heads.pick(next((values[key] for key in keys if values.get(key)), ""), ("name",))


def _slug(words: str) -> str:
    return re.sub(r"[\W_]+", "-", words).strip("-").lower()
