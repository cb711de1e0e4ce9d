"""Pelican: its settings, texts in Markdown, reStructuredText and HTML, and the addresses of all."""

import logging
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup
from markdown import Markdown
from markdown.extensions.meta import MetaPreprocessor
from pelican.contents import (  # type: ignore[import-untyped]
    Article,
    Author,
    Category,
    Content,
    Page,
    Static,
    Tag,
)
from pelican.paginator import Paginator  # type: ignore[import-untyped]
from pelican.readers import (  # type: ignore[import-untyped]
    BaseReader,
    default_metadata,
    parse_path_metadata,
    path_metadata,
)

from site_build.importers.heads import HeadError, read_tags, split_head
from site_build.importers.html_to_markdown import convert as convert_html
from site_build.importers.imported import SOURCE, Imported, Text, read_text, walk
from site_build.importers.pelican_settings import read_settings
from site_build.importers.restructured_text import read_restructured_text

_STRUCTURED = re.compile(r"[\[\"'|>{&*!-]|$")
"""Begins a value of YAML that Pelican's own reader of heads would not understand."""
_PICTURE = re.compile(r"\.(?:avif|gif|jpe?g|png|svg|webp)$", re.I)
_COVERS = (
    "image cover featured_image header_cover cover_image og_image banner thumbnail headline"
).split()
"""Keys under which themes look for the picture of a post."""
_SHOWN = {
    "youtube": "https://www.youtube.com/watch?v={}",
    "vimeo": "https://vimeo.com/{}",
    "gist": "https://gist.github.com/{}",
    "soundcloud": "https://soundcloud.com/{}",
}
"""Tags of plugins that show what stands elsewhere, and where that is."""
_LISTS = {"index": "home:", "archives": "archive:", "tags": "tags:", "categories": "tags:"}
_SYNTAX = re.compile(
    r"""
    (?P<code>^[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ ]{0,3}(?P=fence)|\Z)
        |(?P<tick>`+)(?:(?!\n\n|(?P=tick)).)+(?P=tick))
    |(?:(?<=[(<"'=])|(?<=\]:[ ]))(?:[{|]|%7[BC])
        (?P<kind>filename|static|attach|author|category|tag|index)(?:[}|]|%7[CD])
        (?P<target>(?:[^"'<>()\n]|\([^()\n]*\))*?)(?=[ ]*(?:["')>\n]|$)|[ ]+["'(])
    |\{%-?[ ]*(?P<plugin>\w+)[ ]*(?P<words>[^\n]*?)[ ]*-?%\}
    |(?P<site>\{\{[ ]*SITEURL[ ]*\}\})
    |(?:(?<=\n\n)|\A\n*)(?P<indent>[ ]{4,}|\t+)(?::::|\#!)(?P<language>[\w+-]+)[ \t]*\n
        (?P<lines>(?:(?P=indent)[^\n]*(?:\n|\Z)|[ \t]*\n)+)
    """,
    re.X | re.M | re.S,
)
"""What stock Markdown does not know, and code, in which it means nothing."""


def read_pelican(root: Path, *, trust: bool = False) -> Imported:
    """Read a Pelican site; `trust` runs its settings. Raises UnreadableJournal."""
    imported, logger = Imported("Pelican"), logging.getLogger("pelican")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # What it warns of is in the findings.
    try:
        site, content = read_settings(root, imported, trust=trust)
        _Site(root.resolve(), content, site, imported).read()
    finally:
        logger.setLevel(level)
    return imported


class _Site(NamedTuple):
    """A site whose settings are known; its folders are resolved."""

    root: Path
    content: Path
    settings: dict[str, Any]
    imported: Imported

    def read(self) -> None:
        """Read all texts and files, and where their lists were."""
        said, imported = self.settings, self.imported
        address = urlsplit(str(said["SITEURL"]))
        imported.origin = f"{address.scheme}://{address.netloc}" if address.netloc else ""
        imported.title, imported.lang = str(said["SITENAME"]), str(said["DEFAULT_LANG"])
        imported.author, imported.timezone = str(said.get("AUTHOR", "")), said.get("TIMEZONE", "")
        about = (said.get(name) for name in ("SITESUBTITLE", "SITE_DESCRIPTION", "DESCRIPTION"))
        imported.description = str(next(filter(None, about), ""))
        imported.menu = [(str(name), str(link)) for name, link in said.get("MENUITEMS") or ()]
        # Where the content is the site itself, what Pelican made lies beside it.
        others = {str(said["OUTPUT_PATH"]).strip("./"), "output", "theme", "themes", "plugins"}
        posts = []
        for path, file in walk(self.content):
            is_other = self.content == self.root and path.partition("/")[0] in others
            if is_other or any(fnmatch(file.name, each) for each in said["IGNORE_FILES"]):
                continue
            suffix = file.suffix.lower().lstrip(".")
            is_read = suffix in _READERS and said["READERS"].get(suffix, True)
            try:
                made = self._read_text(path, file, _READERS[suffix]) if is_read else None
            except (*_FAULTS, HeadError) as error:
                what = f"it cannot be read ({type(error).__name__}: {error})"
                imported.find(self._name(path), 0, what, "copy it by hand", "left out")
                continue
            if made:
                posts += [made] if made[0].kind == "post" and made[0].status == "published" else []
                imported.texts.append(made[0])
            elif _is_below(path, said["STATIC_PATHS"], said["STATIC_EXCLUDES"]):
                self._add_file(path)
        taken = {
            "/",
            *(place for text in imported.texts for place in (text.address, *text.aliases)),
        }
        lists = self._find_lists(posts)
        imported.redirects = {old: new for old, new in lists if old not in taken}

    def _name(self, path: str) -> str:
        """Return a path of the content as one below the root."""
        return (self.content / path).relative_to(self.root).as_posix()

    def _add_file(self, path: str, public: str = "") -> None:
        """Add a file at the path that Pelican gives it, or at another."""
        file = self.content / path
        metadata = path_metadata(str(file), path, self.settings)
        place = public or str(Static(None, metadata, self.settings, str(file), {}).save_as)
        self.imported.files[place] = file
        self.imported.file_sources[place] = self._name(path)

    def _read_text(self, path: str, file: Path, read: "_Reader") -> tuple[Text, Content] | None:
        """Return a text and what Pelican makes of it; None for what is no text."""
        settings, find = self.settings, partial(self.imported.find, self._name(path))
        kinds = {"PAGE": Page, "ARTICLE": Article}
        kind = next(
            (
                kinds[name]
                for name in kinds
                if _is_below(path, settings[f"{name}_PATHS"], settings[f"{name}_EXCLUDES"])
            ),
            None,
        )
        if not kind:
            return None
        head, body, line = read(read_text(file), find)
        process = BaseReader(settings).process_metadata
        metadata = {
            **default_metadata(settings, process),
            **path_metadata(str(file), path, settings),
            **parse_path_metadata(path, settings, process),
        }
        for key, value in head.items():
            try:
                metadata[key] = process(key, value)
            except (ValueError, OverflowError):
                find(1, f"{key} is no date: {value}", "write it as 2026-01-31")
        missing = [name for name in kind.mandatory_properties if name not in metadata]
        if missing and read is _read_html:
            return None
        lang, prefix = str(metadata.get("lang", "")).lower(), ""
        if lang in (subsites := settings.get("I18N_SUBSITES") or {}):
            settings = {**settings, **(subsites[lang] or {}), "DEFAULT_LANG": lang}
            prefix = f"{lang}/"
        made = kind("", metadata, settings, str(file), {})
        status = str(made.status).lower()
        if status not in kind.allowed_statuses or (missing and status != "draft"):
            fault = f"no {missing[0]}" if missing else f"the unknown status {status[:40]}"
            find(1, f"it has {fault}, so Pelican left it out", "publish the draft, or delete it")
            status = "draft"
        is_public = status in {"published", "hidden"} and getattr(made, "slug", "")
        places = [_show(prefix + at) for at in (made.url, made.save_as)] if is_public else [""]
        former = (read_tags(metadata.get(key)) for key in ("alias", "aliases", "redirect_from"))
        tags = list(dict.fromkeys(str(tag) for tag in metadata.get("tags", ())))
        category = str(metadata.get("category", ""))
        usual = {"", str(settings["DEFAULT_CATEGORY"]).lower(), *map(str.lower, tags)}
        image = next((str(metadata[key]) for key in _COVERS if metadata.get(key)), "")
        image = _SYNTAX.sub(partial(self._convert, path, made, 0), f"({image})")[1:-1]
        about = str(metadata.get("summary") or metadata.get("description") or "")
        text = Text(
            self._name(path),
            _SYNTAX.sub(partial(self._convert, path, made, line), body),
            str(metadata.get("title", "")),
            address=places[0],
            kind="post" if kind is Article else "page",
            status="hidden" if status == "hidden" else "published" if is_public else "draft",
            date=made.date if "date" in metadata else None,
            updated=made.modified if "modified" in metadata else None,
            slug=getattr(made, "slug", ""),
            tags=tags if category.lower() in usual else [*tags, category],
            category=category,
            author=str(made.author) if {"author", "authors"} & metadata.keys() else "",
            lang=lang,
            description=re.sub(r"<[^>]*>|!?\[([^]]*)\]\([^)]*\)|[*`]", r"\1", about).strip(),
            series=str(metadata.get("series", "")),
            image=re.sub(r"^(?!/|\w+:|$)", "/", image),
            image_alt=str(metadata.get("image_alt", "")),
            aliases=[
                place
                for place in dict.fromkeys(
                    [*places[1:], *(each for some in former for each in some)]
                )
                if place != places[0]
            ],
            first_line=max(line, 1),
        )
        return text, made

    def _convert(self, path: str, made: Content, first_line: int, found: re.Match[str]) -> str:
        """Return what a reader can use in place of Pelican's syntax and that of its plugins."""
        kind, target = found["kind"], found["target"]
        start = found.string.rfind("\n", 0, found.start()) + 1
        is_code = found.string.startswith(("    ", "\t"), start)
        if found["code"] or (found["plugin"] and is_code):
            return found[0]
        if found["site"]:
            return ""
        if found["language"]:
            pad, lines = found["indent"][4:], found["lines"].rstrip("\n")
            code = re.sub(rf"^{found['indent']}", pad, lines, flags=re.M)
            return f"{pad}```{found['language']}\n{code}\n{pad}```\n\n"
        if kind in _WRAPPERS:
            return _show(str(_WRAPPERS[kind](unquote(target), self.settings).url))
        if kind == "index":
            return "/"
        if kind:
            place, mark = re.fullmatch(r"([^?#]*)(.*)", target, re.S).groups()
            folder = "" if place.startswith("/") else posixpath.dirname(path)
            place = posixpath.normpath(posixpath.join(folder, unquote(place).lstrip("/")))
            file = (self.content / place).resolve()
            if not file.is_relative_to(self.root):
                return target
            if file.is_file() and file.suffix[1:].lower() not in _READERS:
                beside = posixpath.join(
                    posixpath.dirname(made.save_as),
                    posixpath.relpath(place, posixpath.dirname(path)).removeprefix("../"),
                )
                self._add_file(place, beside if kind == "attach" else "")
            return f"{SOURCE}{posixpath.normpath(self._name(place))}{mark}".replace(" ", "%20")
        return self._show_plugin(path, first_line, found)

    def _show_plugin(self, path: str, first_line: int, found: re.Match[str]) -> str:
        """Return a picture, a link or the name of what a tag of a plugin shows."""
        words = [word.strip("\"'") for word in found["words"].split()]
        at = next((at for at, word in enumerate(words) if _PICTURE.search(word)), None)
        if at is not None:
            alt = " ".join(word for word in words[at + 1 :] if not word.isdigit())
            return f"![{alt}]({words[at]})"
        plugin = found["plugin"]
        line = first_line and first_line + found.string.count("\n", 0, found.start())
        fix = "write Markdown in its place"
        if not plugin.startswith("end"):
            self.imported.find(self._name(path), line, f"the tag {plugin} is of a plugin", fix)
        link = next((word for word in words if word.startswith(("http:", "https:"))), "")
        if plugin in _SHOWN and words:
            link = link or _SHOWN[plugin].format(words[0])
        named = f"`{words[0]}`" if words and not plugin.startswith("end") else ""
        return f"<{link}>" if link else named

    def _find_lists(self, posts: list[tuple[Text, Content]]) -> Iterator[tuple[str, str]]:
        """Yield the old addresses of lists of posts and of feeds, and where they lead."""
        said = self.settings
        tags = {tag for text, _ in posts for tag in text.tags}
        groups: dict[tuple[str, str], list[Content]] = defaultdict(list)
        names = {}
        for text, made in posts:
            authors, category = getattr(made, "authors", ()), getattr(made, "category", None)
            for wrapper in (*getattr(made, "tags", ()), *authors, *filter(None, [category])):
                key = (type(wrapper).__name__.lower(), wrapper.slug)
                groups[key].append(made)
                names.setdefault(key, wrapper)
            for period in ("YEAR", "MONTH", "DAY"):
                form = str(said[f"{period}_ARCHIVE_SAVE_AS"] or "")
                yield _show(form.format(date=made.date)), "archive:"
        pages = [
            (
                str(said.get(f"{name.upper()}_SAVE_AS", f"{name}.html")),
                name,
                _LISTS.get(name, "posts:"),
                [made for _, made in posts],
            )
            for name in said["DIRECT_TEMPLATES"]
        ]
        for (kind, slug), members in groups.items():
            name = str(names[kind, slug])
            named = name if name in tags and kind != "author" else ""
            pages.append(
                (
                    str(names[kind, slug].save_as),
                    kind,
                    f"tag:{named}" if named else "posts:",
                    members,
                )
            )
            for form in (said.get(f"{kind.upper()}_FEED_{each}") for each in ("ATOM", "RSS")):
                if form:
                    yield _show(str(form).format(slug=slug)), f"feed:{named}"
        for name in ("FEED_ATOM", "FEED_RSS", "FEED_ALL_ATOM", "FEED_ALL_RSS"):
            if said.get(name):
                yield _show(str(said[name])), "feed:"
        counts = said["PAGINATED_TEMPLATES"]
        for place, name, target, members in pages:
            count = (counts[name] or said["DEFAULT_PAGINATION"]) if name in counts else 0
            paginator = Paginator(place, place, members, said, int(count or 0))
            for number in paginator.page_range if place else ():
                later = target if target.startswith("tag:") else "posts:"
                yield _show(paginator.page(number).save_as), target if number == 1 else later


def _show(address: str) -> str:
    """Return the path at which Pelican's address, or file, is seen."""
    return "/" + re.sub(r"(^|/)index\.html?$", r"\1", unquote(address).lstrip("/"))


def _is_below(path: str, folders: Iterable[str], excluded: Iterable[str]) -> bool:
    """Return whether a path is one of some, or below one, and below none of those excluded."""
    within, without = (
        [posixpath.normpath(str(folder)) for folder in some if some is folders or folder]
        for some in (folders, excluded)
    )
    return any(path == each or each == "." or path.startswith(f"{each}/") for each in within) and (
        not any(path.startswith(f"{each}/") for each in without)
    )


def _read_markdown(text: str, _find: object) -> tuple[dict[str, str], str, int]:
    """Return head, body and its first line of a text in Markdown, with a head of either kind."""
    try:
        structured, body, line = split_head(text) if text.startswith("---") else ({}, text, 1)
    except HeadError:
        structured = {}
    markdown = Markdown()
    lines = text.split("\n")
    rest = MetaPreprocessor(markdown).run(list(lines))
    if not structured:
        body, line = "\n".join(rest), len(lines) - len(rest) + 1
    head = {
        key.lower(): ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
        for key, value in structured.items()
        if not isinstance(value, dict)
    }
    # What YAML calls a comment, a number or a date is text to Pelican.
    for key, values in markdown.Meta.items():
        if not _STRUCTURED.match(values[0]) or key not in head:
            head[key] = (", " if key in {"tags", "authors"} else " ").join(values)
    return {key: value for key, value in head.items() if value.strip(" ,;")}, body, line


def _read_html(text: str, _find: object) -> tuple[dict[str, str], str, int]:
    """Return head and body of a page whose `meta` elements say what it is."""
    soup = BeautifulSoup(text, "html.parser")
    head = {
        str(each["name"]).lower().replace("keywords", "tags"): str(each["content"])
        for each in soup.select("head meta[name][content]")
    }
    if soup.title:
        head["title"] = soup.title.get_text()
    return head, convert_html(soup.body.decode_contents()) if soup.body else "", 0


_Find = Callable[[int, str, str], None]
_Reader = Callable[[str, _Find], tuple[dict[str, str], str, int]]
_READERS: dict[str, _Reader] = {
    **dict.fromkeys(("md", "markdown", "mkd", "mdown"), _read_markdown),
    **dict.fromkeys(("html", "htm"), _read_html),
    "rst": read_restructured_text,
}
_WRAPPERS = {"author": Author, "category": Category, "tag": Tag}
_FAULTS = (KeyError, ValueError, TypeError, AttributeError, IndexError, OSError, RecursionError)
