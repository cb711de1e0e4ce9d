"""Reads a site of Pelican: settings, Markdown, reStructuredText and HTML, and all addresses."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

from markdown import Markdown
from markdown.extensions.meta import MetaPreprocessor
from pelican import contents, readers  # type: ignore[import-untyped]
from pelican.paginator import Paginator  # type: ignore[import-untyped]

from site_build.importers.heads import HeadError, read_tags, split_head
from site_build.importers.html_to_markdown import convert, parse
from site_build.importers.imported import (
    READING_ERRORS,
    SOURCE,
    Imported,
    Text,
    read_text,
    walk,
)
from site_build.importers.pelican_settings import read_settings
from site_build.importers.restructured_text import find_media, read_restructured_text

_PICTURE_ARGUMENTS = re.compile(
    r"""(?:.*?[ "'])??(?P<link>[^ "']+\.(?:avif|gif|jpe?g|png|svg|webp))(?:["' ]|\d+(?= |$))*"""
    r"""(?P<alt>[^"]*)""",
    re.IGNORECASE,
)
"""The link of a picture in the arguments of a tag, and its description after the sizes."""
_PICTURE_KEYS = (
    "image",
    "cover",
    "featured_image",
    "header_cover",
    "cover_image",
    "og_image",
    "thumbnail",
)
"""Keys under which themes look for the picture of a post."""
_PLUGIN_SUFFIXES = {"adoc", "asc", "asciidoc", "ipynb", "org", "textile"}
"""Suffixes of texts that only plugins of Pelican read."""
_READ_KEYS = {
    *_PICTURE_KEYS,
    "title",
    "date",
    "modified",
    "slug",
    "tags",
    "category",
    "author",
    "authors",
    "lang",
    "summary",
    "description",
    "series",
    "image_alt",
    "alias",
    "aliases",
    "url",
    "save_as",
    "password",
}
"""All keys of heads that are read, besides those that say who can read a text."""
_SYNTAX = re.compile(
    r"""
    (?P<code>^[ \t>]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t>]*(?P=fence)|\Z)
        |(?P<tick>`+)(?:(?!\n\n|(?P=tick)).)+(?P=tick))
    |(?:(?<=[(<"'=])|(?<=\]:[ ]))(?:[{|]|%7[BC])
        (?P<kind>filename|static|attach|author|category|tag)(?:[}|]|%7[CD])
        (?P<target>(?:[^"'<>()\n]|\([^()\n]*\))*?)(?=[ ]*(?:["')>\n]|$)|[ ]+["'(])
    |\{\{-?[ ]*(?P<setting>[A-Z_]+)[ ]*-?\}\}
    |\{%-?[ ]*(?P<plugin>\w+)[ ]*(?P<words>[^\n]{0,1000}?)[ ]*-?%\}
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
"""Syntax of Pelican and its plugins, and code, in which that syntax has no meaning."""


def read_pelican(root: Path, *, trust: bool = False) -> Imported:
    """Read a Pelican site; `trust` runs its settings. Raises UnreadableJournal and BuildError."""
    config, content, kept, findings = read_settings(root, trust=trust)
    origin, base = re.findall("^(https?://[^/]+|)(.*)", str(config["SITEURL"]))[0]
    menu = config.get("MENUITEMS")
    imported = Imported(
        "Pelican",
        title=str(config["SITENAME"]),
        description=next(
            (
                str(config[name])
                for name in ("SITESUBTITLE", "SITE_DESCRIPTION", "SITEDESCRIPTION")
                if config.get(name)
            ),
            "",
        ),
        author=str(config.get("AUTHOR") or ""),
        lang=str(config["DEFAULT_LANG"]),
        timezone=str(config.get("TIMEZONE") or ""),
        origin=origin,
        settings=kept,
        menu=[
            (str(item[0]), str(item[1]))
            for item in (menu if isinstance(menu, list | tuple) else ())
            if isinstance(item, list | tuple) and len(item) > 1
        ],
        findings=findings,
    )
    reader = _Reader(root.resolve(), content, config, imported, base.rstrip("/") * bool(origin), [])
    # If the content folder is the site's root, Pelican's output and themes are in it too.
    others = {str(config["OUTPUT_PATH"]).strip("./"), "output", "theme", "themes", "plugins"}
    for path, file in walk(content):
        if content != reader.root or path.partition("/")[0] not in others:
            with imported.skipping_unreadable(reader.source_of(path), path):
                reader.read(path, file)
    taken = {"/", *(place for text in imported.texts for place in (text.address, *text.aliases))}
    with suppress(*READING_ERRORS):  # Pelican makes no page of a form that cannot be filled in.
        imported.redirects |= {
            old: to for old, to in _find_lists(config, reader.posts) if old not in taken
        }
    return imported


class _Reader(NamedTuple):
    """Reads one site into `imported`; both folders are resolved paths."""

    root: Path
    content: Path
    settings: dict[str, Any]
    imported: Imported
    base: str
    """The path of the old site's address, without a slash at its end."""
    posts: list[Any]
    """Pelican's objects for the public posts that were read."""

    def source_of(self, path: str) -> str:
        """Return the path below the root for one below the content folder."""
        return posixpath.normpath((self.content / path).relative_to(self.root).as_posix())

    def add_file(self, path: str, public: str = "") -> None:
        """Add a file at the path `public`, or else at the one that Pelican gives it."""
        file = self.content / path
        metadata = readers.path_metadata(str(file), path, self.settings)
        place = public or contents.Static("", metadata, self.settings, str(file), {}).save_as
        self.imported.files[place] = file
        self.imported.public_paths[self.source_of(path)] = place

    def read(self, path: str, file: Path) -> None:
        """Read a text or a file of the content."""
        config, note = self.settings, partial(self.imported.note, self.source_of(path))
        if any(
            fnmatch(e, sign) for e in PurePosixPath(path).parts for sign in config["IGNORE_FILES"]
        ):
            return
        kinds = (
            kind
            for name, kind in (("PAGE", contents.Page), ("ARTICLE", contents.Article))
            if _is_below(path, config[f"{name}_PATHS"], config[f"{name}_EXCLUDES"])
        )
        kind, suffix = next(kinds, None), file.suffix.lower().lstrip(".")
        is_text = kind and suffix in _READERS and config["READERS"].get(suffix, True)
        if not (is_text and self._read_text(path, file, kind, suffix)):
            if _is_below(path, config["STATIC_PATHS"], config["STATIC_EXCLUDES"]):
                self.add_file(path)
            elif kind is contents.Article and suffix in _PLUGIN_SUFFIXES:
                note(0, "its format is that of a plugin", "copy it by hand", "left out")

    def _read_text(self, path: str, file: Path, kind: Any, suffix: str) -> bool:
        """Read a text; return False for an HTML file that is no text."""
        config, note = self.settings, partial(self.imported.note, self.source_of(path))
        head, body, line = _READERS[suffix](read_text(file), note)
        process = readers.BaseReader(config).process_metadata
        metadata = {
            **readers.default_metadata(config, process),
            **readers.path_metadata(str(file), path, config),
            **readers.parse_path_metadata(path, config, process),
            **{key: process(key, value) for key, value in head.items() if value.strip(" ,;")},
        }
        is_whole = metadata.keys() >= set(kind.mandatory_properties)
        if not is_whole and suffix.startswith("htm"):
            return False
        lang, prefix = str(metadata.get("lang", "")).lower(), ""
        if lang in (subsites := config.get("I18N_SUBSITES") or {}):
            config, prefix = {**config, **(subsites[lang] or {}), "DEFAULT_LANG": lang}, f"{lang}/"
        made = kind("", metadata, config, str(file), {})
        # Pelican leaves out what lacks a title or date, or has a status that it does not know.
        is_open = is_whole and not metadata.get("password")
        status = self.imported.judge_head(
            self.source_of(path),
            {**head, "status": made.status if is_open else "draft"},
            _READ_KEYS,
            {},
            None,
        )
        self.imported.note_true(
            self.source_of(path),
            {"is a draft here, for it had a password": metadata.get("password")},
        )
        if not is_whole:
            note(1, "Pelican left it out, so it is a draft: it has no title or no date", "add them")
        places = [_public_path(prefix + at) for at in (made.url, made.save_as) if status != "draft"]
        places = list(dict.fromkeys([*places, *(self.base + place for place in places)]))
        self.posts.extend([made] * (status == "published" and kind is contents.Article))
        tags = list(dict.fromkeys(str(tag) for tag in metadata.get("tags", ())))
        category = str(metadata.get("category", ""))
        usual = {"", str(config["DEFAULT_CATEGORY"]).lower(), *map(str.lower, tags)}
        image = next((str(metadata[key]) for key in _PICTURE_KEYS if metadata.get(key)), "")
        write = partial(self._replace_syntax, path, made, line)
        self.imported.texts.append(
            Text(
                self.source_of(path),
                _SYNTAX.sub(write, body),
                str(metadata.get("title", "")),
                address=places[0] if places else "",
                kind="post" if kind is contents.Article else "page",
                status=status,
                date=made.date if "date" in metadata else None,
                updated=made.modified if head.get("modified") else None,
                slug=getattr(made, "slug", ""),
                tags=tags if category.lower() in usual else [*tags, category],
                category=category,
                author=str(made.author) if {"author", "authors"} & metadata.keys() else "",
                lang=lang,
                # Markup is removed, since a description is plain text here.
                description=" ".join(
                    re.sub(
                        r"<[^>]*>|!?\[([^]]*)\]\([^)]*\)|[*`]",
                        r"\1",
                        str(metadata.get("summary") or metadata.get("description") or ""),
                    ).split()
                ),
                series=str(metadata.get("series", "")),
                # Themes put the site's address before it, so that it begins at the root.
                image=re.sub(r"^(?!/|\w+:|$)", "/", _SYNTAX.sub(write, f"({image})")[1:-1]),
                image_alt=str(metadata.get("image_alt", "")),
                aliases=[*places[1:], *read_tags(metadata.get("alias") or metadata.get("aliases"))],
                first_line=max(line, 1),
            )
        )
        return True

    def _replace_syntax(self, path: str, made: Any, first_line: int, found: re.Match[str]) -> str:
        """Return the Markdown that replaces a match of `_SYNTAX`."""
        kind, target, before = found["kind"], found["target"], found.string[: found.start()]
        line = first_line and first_line + before.count("\n")
        is_code = before.rpartition("\n")[2].startswith(("    ", "\t"))
        if found["code"] or (is_code and (found["plugin"] or found["setting"])):
            return found[0]
        if found["setting"]:  # in Jinja; SITEURL is empty, so that addresses begin at the root
            # Other settings may be secrets.
            known = {"SITEURL": "", "SITENAME": self.settings["SITENAME"]}
            if "jinja2content" in str(self.settings.get("PLUGINS")) and found["setting"] in known:
                return str(known[found["setting"]])
            self.imported.note(
                self.source_of(path),
                line,
                f"{found[0]} is not filled in",
                "write what it should show",
            )
            return found[0]
        if found["plugin"]:
            if shown := _PICTURE_ARGUMENTS.match(found["words"]):
                return f"![{shown['alt']}]({shown['link']})"
            self.imported.note(
                self.source_of(path),
                line,
                f"the tag {found['plugin']} is that of a plugin",
                "check what stands in its place",
            )
            media = find_media(found["plugin"], found["words"].partition(" ")[0].strip("\"'"))
            return re.sub(r"^https?://\S+$", r"<\g<0>>", media)
        if kind in _WRAPPERS:
            return _public_path(_WRAPPERS[kind](unquote(target), self.settings).url)
        place, mark, folder = *re.split("(?=[?#]|$)", target, maxsplit=1), posixpath.dirname(path)
        place = posixpath.normpath(
            posixpath.join("" if place.startswith("/") else folder, unquote(place).lstrip("/"))
        )
        file = (self.content / place).resolve()
        if not file.is_relative_to(self.root) or not file.is_file():
            return f"/{place.lstrip('./')}{mark}".replace(" ", "%20")
        if kind != "filename" or file.suffix.lower().lstrip(".") not in _READERS:
            beside = posixpath.join(made.save_as, "..", posixpath.relpath(place, folder or "."))
            self.add_file(place, posixpath.normpath(beside) if kind == "attach" else "")
        return f"{SOURCE}{self.source_of(place)}{mark}".replace(" ", "%20")


def _find_lists(config: dict[str, Any], posts: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield the old addresses of lists of posts and of feeds, with their new targets."""
    places = {"index": "home:", "archives": "archive:", "tags": "tags:", "categories": "tags:"}
    lists = [
        (
            config.get(f"{name.upper()}_SAVE_AS", f"{name}.html"),
            name,
            places.get(name, "posts:"),
            posts,
        )
        for name in config["DIRECT_TEMPLATES"]
    ]
    feeds = [(f"FEED_{name}", "", "") for name in ("ATOM", "RSS", "ALL_ATOM", "ALL_RSS")]
    groups = defaultdict(list)
    for own in map(vars, posts):
        for group in filter(
            None, (*own.get("tags", ()), *own.get("authors", ()), own.get("category"))
        ):
            groups[group].append(own)
    for group, members in groups.items():
        kind = type(group).__name__.lower()
        name = "" if kind == "author" or group.name == config["DEFAULT_CATEGORY"] else group.name
        lists.append((group.save_as, kind, f"tag:{name}" if name else "posts:", members))
        feeds += [(f"{kind.upper()}_FEED_{form}", group.slug, name) for form in ("ATOM", "RSS")]
    lists += [
        (
            str(config[f"{period}_ARCHIVE_SAVE_AS"]).format(date=post.date),
            period,
            "archive:",
            [post],
        )
        for period in ("YEAR", "MONTH", "DAY")
        for post in posts
    ]
    sizes = {
        name: config["DEFAULT_PAGINATION"] if size is None else size
        for name, size in config["PAGINATED_TEMPLATES"].items()
    }
    for place, name, target, members in lists:
        paginator = Paginator(place, place, members, config, sizes.get(name, 0))
        for number in paginator.page_range if place else ():
            is_first = number == 1 or target.startswith("tag:")
            yield _public_path(paginator.page(number).save_as), target if is_first else "posts:"
    for setting, slug, name in feeds:
        if config.get(setting):
            yield _public_path(str(config[setting]).format(slug=slug)), f"feed:{name}"


def _public_path(address: str) -> str:
    """Return the path on the site of an address, or of a file, that Pelican gives."""
    return "/" + re.sub(r"(^|/)index\.html?$", r"\1", unquote(address).lstrip("/"))


def _is_below(path: str, folders: Iterable[str], excluded: Iterable[str]) -> bool:
    """Return whether a path is in or equals one of `folders`, and none of `excluded`."""
    place = PurePosixPath(path)
    return any(map(place.is_relative_to, folders)) and not any(
        map(place.is_relative_to, filter(None, excluded))
    )


def _read_markdown(text: str, _note: object) -> tuple[dict[str, str], str, int]:
    """Return the head, in YAML or as `key: value`, the body, and the body's first line."""
    head: dict[str, Any] = {}
    with suppress(HeadError):
        head, body, line = split_head(text)
    if not head:
        markdown, lines = Markdown(), text.split("\n")
        rest = MetaPreprocessor(markdown).run(list(lines))
        head, body, line = vars(markdown)["Meta"], "\n".join(rest), len(lines) - len(rest) + 1
    texts = {
        key.lower(): ", ".join(map(str, value if isinstance(value, list) else [value or ""]))
        for key, value in head.items()
    }
    return texts, body, line


def _read_html(text: str, _note: object) -> tuple[dict[str, str], str, int]:
    """Return the head, from `title` and `meta` elements, the body, and 0 in place of a line."""
    soup = parse(text)
    names = [("title", each.get_text()) for each in soup.select("title")[:1]]
    names += [
        (str(each["name"]).lower().replace("keywords", "tags"), str(each["content"]))
        for each in soup.select("head meta[name][content]")
    ]
    return dict(names), "".join(convert(str(each)) for each in soup.select("body")), 0


_READERS: dict[str, Callable[..., tuple[dict[str, str], str, int]]] = {
    **dict.fromkeys(("md", "markdown", "mkd", "mdown"), _read_markdown),
    **dict.fromkeys(("html", "htm"), _read_html),
    "rst": read_restructured_text,
}
# Pelican's classes that give addresses, by the kind of a link.
_WRAPPERS = {
    "author": contents.Author,
    "category": contents.Category,
    "tag": contents.Tag,
}
