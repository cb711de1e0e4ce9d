"""Reads a journal of Jekyll, or of its kin Octopress and Hexo."""

import re
from datetime import UTC, tzinfo
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from site_build.importers.heads import (
    HeadError,
    read_date,
    read_flag,
    read_tags,
    read_yaml,
    split_head,
)
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
_MOMENTS = {
    "year": "%Y",
    "month": "%m",
    "day": "%d",
    "hour": "%H",
    "minute": "%M",
    "second": "%S",
    "short_year": "%y",
    "short_month": "%b",
    "long_month": "%B",
    "y_day": "%j",
    "week": "%V",
    "w_year": "%G",
    "w_day": "%u",
    "short_day": "%a",
    "long_day": "%A",
}
"""Parts of addresses that a date fills."""
_NAME = re.compile(r"(?P<date>\d{2,4}-\d{1,2}-\d{1,2})-(?P<slug>.+)")
_NO_READERS = re.compile(
    r"(?i).*\.(?:css|js|map|s[ac]ss|less|styl|coffee|rb|gemspec|lock|ya?ml|toml|sh|bat|woff2?|ttf"
    r"|eot|otf|xml|ejs|swig|njk)|(?:.*/)?(?:Gemfile|Rakefile|Makefile|Dockerfile|CNAME|LICENSE"
    r"|README|CHANGELOG|CONTRIBUTING|CODE_OF_CONDUCT|robots|package|search|manifest)(?:[.-].*)?"
)
"""Files of a theme, a tool or a host."""
_BARE = re.compile(r"\w+:[^\n]*\n(?:[^\n]+\n)*?---[ ]*\n")
"""A head of Hexo without its first line."""
_LIST = re.compile(r"\{%-?\s*(?:for|include)\b|\bpaginator\.")
_LEADS = {
    r"feed|atom|rss": "feed:",
    r"tag|categor|topic": "tags:",
    r"archive|post|blog|news|year": "archive:",
    r"": "home:",
}
"""Where a page without words of its own leads, by a word of its path or layout."""
_MARKDOWN = {".md", ".markdown", ".mkd", ".mkdn", ".mkdown"}
_PICTURES = (
    *("image", "header", "cover", "cover-img", "thumbnail", "thumbnail-img", "img", "banner"),
    *("feature-img", "featured_image", "featured-image", "background", "index_img", "teaser"),
    *("path", "og_image", "overlay_image", "feature", "url"),
)
"""Keys of a post's picture, and those within one, as themes have them."""


def read_jekyll(root: Path) -> Imported:
    """Return the journal in a folder of Jekyll, Octopress or Hexo. Raises UnreadableJournal."""
    settings = root / "_config.yml"
    try:
        config = _mapping(read_yaml(read_text(settings))) if settings.is_file() else {}
    except HeadError as error:
        raise UnreadableJournal(f"_config.yml: {error}; mend it and try again") from error
    site = _Site(root, config)
    imported = site.imported
    for name, path in site.paths.items():
        try:
            site.add(name, path)
        except HeadError as error:
            imported.find(site.prefix + name, error.line, str(error), "mend that line", "left out")
    own = {"tag": "/tags/:name/", "category": "/categories/:name/"} if site.hexo else {}
    archives = own | _mapping(_mapping(config.get("jekyll-archives")).get("permalinks"))
    imported.redirects |= {
        site.base + str(address).replace(":name", tag if site.hexo else _slug(tag)): f"tag:{tag}"
        for kind, address in archives.items()
        for text in imported.texts
        for tag in text.tags
        if kind in {"tag", "category"}
    }
    pages = site.base + "/" + str(config.get("paginate_path") or "/page:num/").strip("/")
    last = len(imported.texts) // int(str(config.get("paginate") or len(imported.texts) + 1))
    imported.redirects |= {
        f"{pages.replace(':num', str(number))}/": "posts:" for number in range(2, last + 2)
    }
    return imported


class _Site:
    """The settings of a journal, and what is read of it."""

    def __init__(self, root: Path, config: dict[str, Any]) -> None:
        self.hexo = (root / "source/_posts").is_dir() and "source" not in config
        source = "source" if self.hexo else str(config.get("source") or "").strip("./")
        self.prefix = f"{source}/".lstrip("/")
        self.paths = {
            name.removeprefix(self.prefix): path
            for name, path in walk(root)
            if name.startswith(self.prefix)
        }
        self.by_last_part = {
            part: name
            for name in self.paths
            for part in (PurePosixPath(name).stem, PurePosixPath(name).name)
        }
        self.base = f"/{config.get('baseurl') or config.get('root') or ''}".rstrip("/")
        self.base = self.base.replace("//", "/")
        origin = re.match(r"https?://[^/]+", str(config.get("url")))
        self.config = config | {"baseurl": self.base, "url": origin[0] if origin else ""}
        zone = str(config.get("timezone") or "")
        self.zone: tzinfo = ZoneInfo(zone) if zone in available_timezones() else UTC
        style = config.get("permalink") or (":year/:month/:day/:title/" if self.hexo else "date")
        style = _STYLES.get(style, str(style))
        ends = ("/", ":output_ext") if not self.hexo else ()
        self.suffix = next((end for end in ends if style.endswith(end)), ":output_ext" * self.hexo)
        self.templates = {"posts": style, "drafts": style} | {
            label: str(
                _mapping(each).get("permalink")
                or (style if label == "posts" else f"/:collection/:path{self.suffix}")
            )
            for label, each in _mapping(config.get("collections")).items()
            if label == "posts" or read_flag(_mapping(each).get("output"))
        }
        lang = config.get("lang") or config.get("locale") or config.get("language")
        self.imported = Imported(
            "Hexo" if self.hexo else "Jekyll",
            title=str(config.get("title") or ""),
            description=str(config.get("description") or config.get("subtitle") or ""),
            author=_name(config.get("author")),
            lang=_name(lang).replace("_", "-"),
            timezone=zone if self.zone is not UTC else "",
            origin=self.config["url"],
            redirects={f"{self.base}/{name}": "feed:" for name in ("feed.xml", "atom.xml")},
        )

    def add(self, name: str, path: Path) -> None:
        """Add a text, a file, or what is found in its place. Raises HeadError."""
        special = next((part for part in PurePosixPath(name).parts if part.startswith("_")), "")
        included = special in read_tags(self.config.get("include"))
        label = "" if included else special[1:]
        excluded = [pattern.strip("/") for pattern in read_tags(self.config.get("exclude"))]
        if (label and label not in self.templates) or any(
            fnmatch(name, pattern) or name.startswith(f"{pattern}/") for pattern in excluded
        ):
            return
        source, suffix = self.prefix + name, PurePosixPath(name).suffix.lower()
        text = read_text(path) if suffix in {*_MARKDOWN, ".html", ".htm"} else ""
        head, body, line = split_head("---\n" + text if self.hexo and _BARE.match(text) else text)
        if line == 1 and (suffix not in _MARKDOWN or _NO_READERS.fullmatch(name)):
            if not _NO_READERS.fullmatch(name):
                public = f"{self.base}/{name.replace('_', '', bool(label))}".lstrip("/")
                self.imported.files[public] = path
                self.imported.file_sources[source] = public
            return
        values = self.find_defaults(name, label) | head
        post = self.describe(name, label, values)
        post.image = self.find_picture(head)
        if post.kind == "page" and (
            not body.strip() or (suffix not in _MARKDOWN and _LIST.search(body))
        ):
            words = f"{name} {values.get('layout')}"
            goal = next(goal for word, goal in _LEADS.items() if re.search(word, words))
            for address in (post.address, *post.aliases):
                self.imported.redirects[address] = str(values.get("redirect_to") or goal)
            self.imported.find(
                source,
                0,
                "the page is a list or a form, made by a template",
                f"look at what {goal} shows in its place",
            )
            return
        if str(values.get("render_with_liquid")).lower() != "false":
            body = convert_liquid(
                body,
                {"site": self.config, "page": values | {"title": post.title, "url": post.address}},
                lambda wanted: self.find_path(name, wanted),
                lambda at, tag: self.imported.find(
                    source, line + at, f"the tag {tag} is not known", "write what it showed"
                ),
            )
        media = values.get("media_subpath") or values.get("img_path")
        body = convert_kramdown(body) if suffix in _MARKDOWN else convert(body)
        if media:
            body = re.sub(r"(!\[[^\]\n]*\]\()(?!\w+:|[/#])", rf"\1{str(media).rstrip('/')}/", body)
        post.body, post.first_line = body, line
        self.imported.texts.append(post)

    def find_defaults(self, name: str, label: str) -> dict[str, Any]:
        """Return what the settings say of texts in a folder or of a kind, the nearest last."""
        kind = label or "pages"
        scopes = sorted(
            (str(_mapping(each.get("scope")).get("path") or "").strip("/").split("*")[0], each)
            for each in self.config.get("defaults") or []
        )
        return {
            key: value
            for folder, each in scopes
            if name.startswith(folder) and (each["scope"].get("type") or kind) == kind
            for key, value in _mapping(each.get("values")).items()
        }

    def describe(self, name: str, label: str, values: dict[str, Any]) -> Text:
        """Return a text without its body."""
        path = PurePosixPath(name)
        is_post = label in {"posts", "drafts"}
        named = _NAME.fullmatch(path.stem)
        if self.hexo and ":year" not in str(self.config.get("new_post_name")):
            named = None
        slug = named["slug"] if named else path.stem
        written = values.get("date") or (named and named["date"])
        date = read_date(written)
        if date and not date.tzinfo:
            # Ruby reads a time without a zone in UTC, but a day in the zone of the site.
            in_utc = not self.hexo and ":" in str(written)
            date = date.replace(tzinfo=UTC if in_utc else self.zone)
        date = date.astimezone(self.zone) if date else None
        separator = "\n" if self.hexo else None
        tags, categories = (
            [
                tag
                for value in (values.get(one), values.get(many))
                for tag in read_tags(value, "," if "," in str(value) else separator)
            ]
            for one, many in (("tag", "tags"), ("category", "categories"))
        )
        if is_post and not self.hexo:
            categories = [*name.partition(f"_{label}/")[0].split("/")[:-1], *categories]
        aliases = read_tags(values.get("redirect_from")) + read_tags(values.get("alias"))
        text = Text(
            source=self.prefix + name,
            body="",
            title=str(values.get("title") or slug.replace("-", " ").title()),
            kind="post" if is_post else "page",
            date=date,
            updated=read_date(values.get("last_modified_at") or values.get("updated")),
            slug=str(values.get("slug") or ""),
            tags=list(dict.fromkeys(tags + categories)),
            category=next(iter(categories), ""),
            author=_name(values.get("author") or values.get("authors")),
            lang=_name(values.get("lang")),
            description=str(
                values.get("description") or values.get("excerpt") or values.get("subtitle") or ""
            ),
            series=str(values.get("series") or ""),
            aliases=[f"{self.base}/{alias.lstrip('/')}" for alias in aliases],
        )
        if label == "drafts" or not read_flag(values.get("published", True)):
            text.status = "draft"
            return text
        inner = name.partition(f"_{label}/")[2] if label else name
        folder = str(PurePosixPath(inner).parent).strip(".")
        index = path.stem == "index" and not label
        fields = {part: date.strftime(form) for part, form in _MOMENTS.items()} if date else {}
        fields |= {
            "i_day": str(date.day) if date else "",
            "i_month": str(date.month) if date else "",
            "categories": "/".join(categories).lower(),
            "slugified_categories": "/".join(map(_slug, categories)),
            "category": "/".join(map(_slug, categories)) or "uncategorized",
            "collection": label,
            "path": folder if not label else str(PurePosixPath(inner).with_suffix("")),
            "basename": path.stem,
            "name": path.stem if self.hexo else _slug(path.stem),
            "title": re.sub(r"[^\w.~!$&'()+,;=@]+", "-", str(values.get("slug") or slug)).strip(
                "-"
            ),
            "slug": _slug(str(values.get("slug") or slug)),
            "output_ext": ".html",
        }
        if self.hexo and is_post:
            fields["title"] = str(PurePosixPath(inner).with_suffix(""))
        usual = "/:path/" if index else f"/:path/:basename{self.suffix}"
        template = str(values.get("permalink") or self.templates.get(label, usual))
        address = re.sub(
            ":([a-z_]+)", lambda part: fields.get(part[1], part[0]), _STYLES.get(template, template)
        )
        text.address = re.sub("/+", "/", f"{self.base}/{address}")
        text.aliases += [text.address.removeprefix(self.base)] * bool(self.base)
        return text

    def find_picture(self, value: object) -> str:
        """Return a link to the picture that a head names, in any of the ways of themes."""
        while isinstance(value, dict):
            value = next((value[key] for key in _PICTURES if value.get(key)), None)
        link = str(value or "")
        return link if not link or "//" in link else f"source:{self.find_path('', link)}"

    def find_path(self, name: str, wanted: str) -> str:
        """Return the path below the root of what a text means by a path or by its last part."""
        wanted = wanted.strip("/")
        beside = f"{PurePosixPath(name).with_suffix('')}/{wanted}" if name else wanted
        last = self.by_last_part.get(wanted.rpartition("/")[2], wanted)
        return self.prefix + next((each for each in (beside, wanted) if each in self.paths), last)


def _mapping(value: object) -> dict[str, Any]:
    """Return a mapping as it is, names of a list without values, and of all else an empty one."""
    if isinstance(value, list):
        return dict.fromkeys(map(str, value))
    return value if isinstance(value, dict) else {}


def _name(value: object) -> str:
    """Return the first name that a value of a theme holds, as text, in a list or in a mapping."""
    first = value[0] if isinstance(value, list) and value else value
    return str((first.get("name") if isinstance(first, dict) else first) or "")


def _slug(words: str) -> str:
    return re.sub(r"[\W_]+", "-", words).strip("-").lower()
