"""Texts of a folder of Markdown: Obsidian, Astro, Eleventy, Next.js, Zola and their like, or none.

A system is known by its marks, and says where a text stood at the old site. Nothing of the folder
is run: what settings say literally is found in their text.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from site_build.importers.dialects import Converter, slugify
from site_build.importers.heads import HeadError, read_date, read_flag, read_tags, split_head
from site_build.importers.imported import SOURCE, Imported, Text, UnreadableJournal, read_text, walk
from site_build.text import fold, make_slug

_SUFFIX = re.compile(r"\.(?:md|mdx|markdown|mkd|mdown)\Z", re.IGNORECASE)
_MEDIA = re.compile(
    r"[^\n/()\[\]\"'|<>`]+\.(?:png|jpe?g|gif|svg|webp|avif|bmp|mp3|m4a|og[agv]|opus|wav|flac|mp4|m4v"
    r"|mov|webm|pdf|zip|csv|epub)\b",
    re.IGNORECASE,
)
"""Name of a file that may be served; code may not."""
_PUBLIC = re.compile(r"(?:(?:src|source|content|docs|site)/)?(?:(?:public|static)/)?")
"""Folders that were no part of a file's address."""
_SYSTEMS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "Astro": (
        ("astro.config.*", "src/content/*/", "src/data/blog"),
        {
            r"src/pages/(?P<rest>.+)": "/:rest/",
            r"src/content/docs/(?P<rest>.+)": "/:slug/",
            r"(?:src/)?(?:content|data)/(?P<collection>[^/]+)/(?P<rest>.+)": "/:collection/:slug/",
        },
    ),
    "Eleventy": (
        (".eleventy.js", "eleventy.config.*"),
        {r"(?:(?:src|content|site)/)?(?P<rest>.+)": "/:rest/"},
    ),
    "Docusaurus": (
        ("docusaurus.config.*",),
        {
            r"blog/(?P<rest>.+)": "/blog/:year/:month/:day/:name/",
            r"(?:src/pages/)?(?P<rest>.+)": "/:rest/",
        },
    ),
    "Gatsby": (
        ("gatsby-config.*",),
        {r"(?:src/)?(?:content/|pages/)?(?:(?:blog|posts)/)?(?P<rest>.+)": "/:rest/"},
    ),
    "VitePress": ((".vitepress", "docs/.vitepress"), {r"(?:docs/)?(?P<rest>.+)": "/:rest.html"}),
    "VuePress": ((".vuepress", "docs/.vuepress"), {r"(?:docs/)?(?P<rest>.+)": "/:rest.html"}),
    "MkDocs": (
        ("mkdocs.yml",),
        {
            r"docs/blog/posts/(?P<rest>.+)": "/blog/:year/:month/:day/:title/",
            r"docs/(?P<rest>.+)": "/:rest/",
        },
    ),
    "Quartz": (("quartz.config.ts",), {r"content/(?P<rest>.+)": "/:dashed"}),
    "Zola": (
        ("zola.toml", "content/**/_index*.md"),
        {
            r"content/(?P<rest>.+)\.(?P<lang>[a-z]{2})": "/:lang/:ascii/",
            r"content/(?P<rest>.+)": "/:ascii/",
        },
    ),
    "Hexo": (
        ("source/_posts",),
        {
            r"source/_posts/(?P<rest>.+)": "/:year/:month/:day/:name/",
            r"source/(?P<rest>.+)": "/:rest/",
        },
    ),
    "Next.js": (
        ("next.config.*", "public/**/*.md", "public/**/*.mdx", "data/siteMetadata.*"),
        {
            r"public/(?P<rest>.+)": "/:rest/",
            r"(?:src/)?(?:app|pages)/(?P<rest>.+)": "/:rest/",
            r"(?:src/)?(?:content|data)/(?P<collection>[^/]+)/(?P<rest>.+)": "/:collection/:rest/",
            r"(?:src/)?_?(?P<collection>posts|blog)/(?P<rest>.+)": "/:collection/:rest/",
            r"(?:src/)?content/(?P<rest>.+)": "/blog/:rest/",
        },
    ),
    "Obsidian": ((".obsidian", "*/.obsidian"), {}),
    "Markdown": (("*",), {}),
}
"""Marks of each system, then patterns of its sources with their addresses; the first counts."""

_GENERAL = re.compile(
    r"|_?(?:articles|blog|content|docs|drafts|notes|pages|posts|source)", re.IGNORECASE
)
"""Folders that are no subject, and tags by which Eleventy collects texts."""
_POSTS = re.compile(r"(?:^|/)_?(?:blog|posts?|articles?|notes?|til|writing|essays?|journal)/")
_PAGES = re.compile(
    r"(?:(?:src|source|content|docs|site|pages)/)*(?:readme|index|about|now|contact|imprint|uses)"
    r"|(?:.*/)?(?:_index(?:\.\w+)?|pages?/.*)",
    re.IGNORECASE,
)
"""Undated sources that are pages."""
_NO_TEXT = re.compile(
    r"(?:changelog|license|licence|contributing|code_of_conduct|security|agents|claude)"
    r"|(?!src/data/)(?:.*/)?(?:templates?|archetypes|layouts|_(?!posts/|drafts/|index)[^/]*)"
    r"(?:/.*)?",
    re.IGNORECASE,
)
_DAY = re.compile(r"(?<![^/])((?:19|20)\d\d)([-/_])(\d\d)\2(\d\d)(?=[-_ /T]|$)[-_ ]*")
_HEADING = re.compile(r"\A((?:(?!```|~~~|#)[^\n]*\n)*?)#[ \t]+(\S[^\n]*?)[ \t]*#*[ \t]*(\n|\Z)")
_KEYS = {
    "date": "date pubdate pubdatetime publishdate publisheddate publishedat published_at "
    "date_published created created_at createdat date_created published",
    "updated": "updated updateddate updatedat moddatetime lastmod modified last_modified_at",
    "address": "permalink path url",
    "description": "description summary excerpt spoiler subtitle",
    "image": "image cover heroimage coverimage ogimage featuredimage thumbnail banner",
    "image_alt": "image_alt imagealt heroimagealt coveralt",
    "tags": "tags tag",
    "category": "categories category",
    "author": "author authors",
    "lang": "lang language locale",
    "aliases": "aliases redirect_from",
}
"""Keys of heads, in small letters, by what they say."""
_SETTINGS = {
    "title": r"(?:site|page)?_?title\W{1,4}([^\"`$\n]+)[\"'`]",
    "description": r"(?:site)?_?desc(?:ription)?\W{1,4}([^\"`$\n]+)[\"'`]",
    "author": r"author\W{1,4}([^\"`$\n]+)[\"'`]",
    "lang": r"(?:lang|language|locale|default_?(?:locale|language))\W{1,4}([A-Za-z-]{2,6})[\"'`]",
    "origin": r"(?:site|website|site_?url|base_?url|url)\W{1,4}(https?://[^/\"'`]+)",
}
"""What a journal says of itself in its settings."""
_SETTING_FILES = re.compile(
    r"(?:\.?eleventy(?:\.config)?|(?:astro|next|gatsby|docusaurus|quartz)[.-]config|zola|config"
    r"|vercel|netlify|(?:src/)?_data/\w+|src/(?:config|consts|site\.config)|data/siteMetadata"
    r"|(?:(?:public|static)/)?_redirects)(?:\.(?:m?[jt]s|cjs|json|toml))?"
)
_REDIRECT = re.compile(
    r"\b(?:source|from)[\"']?\s*[:=]\s*[\"'](/[^\"']*)[\"'],?\s*"
    r"[\"']?(?:destination|to)[\"']?\s*[:=]\s*[\"']([^\"']+)[\"']|^(/\w\S*)[ \t]+(/\S*|http\S+)",
    re.MULTILINE,
)
_LISTS = {"/blog/": "posts:", "/posts/": "posts:", "/archives/": "archive:", "/tags/": "tags:"} | {
    f"/{path}.xml": "feed:" for path in ("rss", "feed", "atom", "index", "feed/feed", "blog/rss")
}
"""Lists and feeds of these systems."""


def read_markdown_folder(root: Path) -> Imported:
    """Read a folder of Markdown, whose system is found out. Raises UnreadableJournal."""
    files = dict(walk(root))
    journal = Imported(
        next(
            name
            for name, (marks, _) in _SYSTEMS.items()
            if any(path for mark in marks for path in root.glob(mark))
        )
    )
    # A name of Obsidian is the end of a path; of several, the one nearest to the root is meant.
    known = {
        "/".join(parts[start:]): source
        for source in sorted(files, key=lambda source: -source.count("/"))
        for parts in [fold(_SUFFIX.sub("", source)).split("/")]
        for start in range(len(parts))
    }
    commits = _read_first_commits(root)
    mentioned: set[str] = set()
    for source in filter(_SUFFIX.search, files):
        raw = read_text(files[source])
        # Names may hold blanks, and other words may stand before those that do not.
        for name in map(unquote, _MEDIA.findall(raw)):
            mentioned.update((name.strip(), name.rpartition(" ")[2]))
        day = commits.get(source) or datetime.fromtimestamp(files[source].stat().st_mtime, UTC)
        _add_text(journal, source, raw, known, day)
    if not journal.texts:
        raise UnreadableJournal(f"{root} has no Markdown; name the folder that has the texts")
    outside = _PUBLIC if _SYSTEMS[journal.system][1] else ""
    journal.file_sources = {
        source: re.sub(outside, "", source, count=1)
        for source, path in files.items()
        if path.name in mentioned and _MEDIA.fullmatch(path.name)
    }
    journal.files = {public: files[source] for source, public in journal.file_sources.items()}
    settings = (path for source, path in files.items() if _SETTING_FILES.fullmatch(source))
    _add_settings(journal, "\n".join(map(read_text, settings)))
    return journal


def _add_text(
    journal: Imported, source: str, raw: str, known: Mapping[str, str], day: datetime
) -> None:
    """Add a text, or a finding; `day` is the date where neither its head nor its name has one."""
    system, stem = journal.system, _SUFFIX.sub("", source)
    is_site = bool(_SYSTEMS[system][1])
    try:
        head, body, line = split_head(raw)
    except HeadError as fault:
        journal.find(source, fault.line, str(fault), "fix the head", "left out")
        return
    is_of_project = _NO_TEXT.fullmatch(stem) or (is_site and stem.lower() == "readme")
    if not body.strip() or "\0" in body or is_of_project:
        what = "it is no text of the journal" if body.strip() else "it is empty"
        journal.find(source, 0, what, "copy it if you want it", "left out")
        return
    converter = Converter(system, known, is_mdx=source.endswith(".mdx"))
    body = converter.convert(body)
    for what, below in converter.left_out.items():
        journal.find(source, line + below, what, "write what a reader can use in its place")
    said = {
        key.lower(): value
        for part in (head.get("taxonomies"), head.get("extra"), head)
        if isinstance(part, dict)
        for key, value in part.items()
    }
    title, heading = _pick(said, "title"), _HEADING.match(body)
    if heading and title in {"", heading[2]}:
        body = heading[1] + heading[3] + body[heading.end() :]
        title = re.sub(r"`|!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[2])
    name = re.sub("(?i)/(?:index|readme)$", "", stem).rpartition("/")[2]
    words = _DAY.sub("", name) or name
    if re.search(r"\s|^\d+-", words) is None:
        words = re.sub("[-_]+", " ", words)
    named = _DAY.search(stem)
    date = read_date(_pick(said, "date")) or (named and read_date("-".join(named.group(1, 3, 4))))
    is_apart = _PAGES.fullmatch(stem) or (is_site and not _POSTS.search(stem))
    is_page = "page" in {_pick(said, "layout"), _pick(said, "type")} or (is_apart and not date)
    tags = [
        tag
        for keys in (("tags", "tag"), ("categories", "category"))
        for tag in read_tags(next((said[key] for key in keys if said.get(key)), ""))
        if not _GENERAL.fullmatch(tag)
    ]
    folder = "" if is_site else source.rpartition("/")[0].partition("/")[0]
    answers = {str(said.get(key)).lower() for key in ("published", "publish", "permalink")}
    is_draft = read_flag(said.get("draft")) or re.search("(?:^|/)_?drafts?/", stem)
    address, lang = _locate(system, stem, said, title or words, date or day)
    journal.texts.append(
        Text(
            source,
            body,
            title or words[:1].upper() + words[1:],
            address,
            "page" if is_page else "post",
            "draft" if is_draft or "false" in answers else "published",
            date or day,
            read_date(_pick(said, "updated")),
            tags=tags or [folder] * (not _GENERAL.fullmatch(folder)),
            lang=lang or _pick(said, "lang"),
            # Aliases of Obsidian are names.
            aliases=[
                f"/{path.lstrip('/')}"
                for path in read_tags(said.get("aliases") or said.get("redirect_from"))
                if is_site or path.startswith("/")
            ],
            first_line=line,
            slug=_pick(said, "slug").strip("/").rpartition("/")[2],
            category=_pick(said, "category"),
            author=_pick(said, "author"),
            description=_pick(said, "description"),
            series=_pick(said, "series"),
            image=_pick(said, "image"),
            image_alt=_pick(said, "image_alt"),
        )
    )


def _locate(
    system: str, stem: str, said: Mapping[str, Any], title: str, day: datetime
) -> tuple[str, str]:
    """Return a source's old address, which may be empty, and the language that its name says."""
    rules = _SYSTEMS[system][1]
    found = next((found for rule in rules if (found := re.fullmatch(rule, stem))), None)
    template = _pick(said, "address") or (rules[found.re.pattern] if found else "")
    if not template or "://" in template:
        return "", ""
    groups = found.groupdict() if found else {"rest": stem}
    # Names of routes that are in no address: `(group)/` and `_group/`.
    rest = re.sub(r"(?:^|/)(?:_?index|\+?page)$|(?<![^/])(?:\(.*?\)|_[^/]+)/", "", groups["rest"])
    slug = _pick(said, "slug").strip("/")
    if slug:
        rest = slug if "/" in slug else re.sub("[^/]*$", slug, rest, count=1)
    folder, _, last = rest.rpartition("/")
    name = _DAY.sub("", last) or last
    values = {
        "rest": rest,
        "slug": "/".join(map(slugify, rest.split("/"))),
        "ascii": "/".join(map(make_slug, [*folder.split("/"), name])),
        "dashed": rest.replace(" ", "-"),
        "name": name,
        "fileSlug": name,
        "filePathStem": f"{folder}/{name}",
        "title": make_slug(title),
        "collection": "posts" if "pubdatetime" in said else groups.get("collection", ""),
        "lang": groups.get("lang", ""),
        "date": f"{day:%Y/%m/%d}",
        "year": f"{day:%Y}",
        "month": f"{day:%m}",
        "day": f"{day:%d}",
    }
    names = "|".join(values)
    address = re.sub(
        rf":({names})\b|(?:\{{\{{|\$\{{)[^}}]*?\b({names})\b[^}}]*\}}+",
        lambda found: values[found[1] or found[2]],
        f"/{template}",
    )
    address = re.sub("(?:/index)?(?:/+|/index[.]html)$", "/", re.sub("/+", "/", address))
    return "" if "{" in address else address, values["lang"]


def _pick(said: Mapping[str, Any], key: str) -> str:
    """Return the first value that a head has under one of several names, as text."""
    value = next((said[name] for name in _KEYS.get(key, key).split() if said.get(name)), "")
    while value and isinstance(value, list | dict):
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return "" if isinstance(value, bool) or value is None else str(value).strip()


def _add_settings(journal: Imported, settings: str) -> None:
    """Add what settings say: the journal's names, redirects, and the addresses of lists."""
    for key, pattern in _SETTINGS.items():
        if found := re.search(rf"(?im)^\W*(?:export const )?{pattern}", settings):
            setattr(journal, key, found[1])
    sources = {text.address.strip("/"): text.source for text in journal.texts if text.address}
    if sources:
        tags = {tag for text in journal.texts for tag in text.tags}
        journal.redirects = _LISTS | {f"/tags/{slugify(tag)}/": f"tag:{tag}" for tag in tags}
    for groups in _REDIRECT.findall(settings):
        old, new = filter(None, groups)
        if source := sources.get(new.strip("/")):
            journal.redirects[old] = SOURCE + source
        else:
            fix = "write it into `content/redirects.txt`"
            journal.find("", 0, f"the redirect from {old} to {new} is not kept", fix)


def _read_first_commits(root: Path) -> dict[str, datetime]:
    """Return when Git first had each file, by its path below the root, if there is Git."""
    # Settings of the folder may name programs: none of these runs, and nothing is fetched.
    words = (
        "git --no-pager -c log.showSignature=false -c core.fsmonitor=false log -z --no-renames "
        "--diff-filter=A --name-only --relative --no-ext-diff --no-textconv --format=%x01%aI"
    )
    own = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ALLOW_PROTOCOL": ""}
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            words.split(),
            cwd=root,
            env=os.environ | own,
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {
        name: datetime.fromisoformat(day)
        for day, names in re.findall(
            "\x01([^\0\n]+)([^\x01]*)", done.stdout.decode(errors="replace")
        )
        for name in re.split("[\0\n]+", names)
    }
