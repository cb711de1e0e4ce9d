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
from urllib.parse import quote, unquote

from site_build.importers.dialects import SYSTEMS, Converter, slugify
from site_build.importers.heads import (
    pick,
    read_date,
    read_flag,
    read_program,
    read_tags,
    split_head,
)
from site_build.importers.imported import (
    SOURCE,
    Imported,
    Text,
    read_redirects,
    read_text,
    walk,
)
from site_build.text import fold, make_slug

_SUFFIX = re.compile(r"\.(?:md|mdx|markdown|mkd|mdown)\Z", re.IGNORECASE)
_MEDIA = re.compile(
    r"[^\n/()\[\]\"'|<>`]+\.(?:png|jpe?g|gif|svg|webp|avif|bmp|mp3|m4a|og[agv]|opus|wav|flac|mp4|m4v"
    r"|mov|webm|pdf|zip|csv|epub)\b",
    re.IGNORECASE,
)
"""Name of a file that may be served; code may not."""
_GENERAL = re.compile(
    r"|\d+|_?(?:all|articles|blog|content|docs|drafts|notes|pages?|posts?|source)", re.IGNORECASE
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
    r"(?-i:CHANGELOG|LICEN[CS]E|CONTRIBUTING|CODE_OF_CONDUCT|SECURITY|AGENTS|CLAUDE)"
    r"|(?!src/(?:data|content)/\w+/_\w+/[^_])(?:.*/)?"
    r"(?:(?:templates?|themes|archetypes|layouts|_(?!posts/|drafts/|index)[^/]*)(?:/.*)?"
    r"|404|.*\.excalidraw)",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"(?<![^/])((?:19|20)\d\d)([-/_])(\d\d)\2(\d\d)(?=[-_ /T]|$)(?:T\d\d[\d:.-]+Z)?[-_ ]*"
)
_DRAFT = {"draft true", "draft yes", "private true", "status draft", "status private"} | {
    f"{key} false" for key in ("published", "publish", "permalink", "dg-publish")
}
"""Lines of heads that keep a text from the public."""
_HELD_BACK = re.compile(r"(?:^|/)_?(?:drafts?|private)/", re.IGNORECASE)
"""Folders that are not for the public."""
_KEYS = {
    "date": "date pubdate pubdatetime publishdate publisheddate publishedat published_at "
    "date_published created created_at createdat date_created published",
    "updated": "updated updateddate updatedat moddatetime lastmod modified last_modified_at",
    "address": "permalink path url",
    "description": "description summary excerpt spoiler subtitle",
    "image": "image images cover heroimage coverimage ogimage featuredimage thumbnail banner",
    "image_alt": "image_alt imagealt heroimagealt coveralt",
    "tags": "tags tag",
    "category": "categories category",
    "author": "author authors",
    "lang": "lang language locale",
    "aliases": "aliases redirect_from",
}
"""Keys of heads, in small letters, by what they say."""
_SETTINGS = {
    "title": r"(?:site|page)?_?title=([^\"`$\n]+?)[\"'`]\s*(?:[,;)}]|$)",
    "description": r"(?:site)?_?desc(?:ription)?=([^\"`$\n]+?)[\"'`]\s*(?:[,;)}]|$)",
    "author": r"author(?:[\"']?\s*:\s*\{\s*[\"']?name)?=([^\"`$\n]+?)[\"'`]\s*(?:[,;)}]|$)",
    "lang": r"(?:lang|language|locale|default_?(?:locale|language))=([A-Za-z-]{2,10})[\"'`]",
    "timezone": r"time_?zone=([A-Za-z_]+/[\w/+-]+)[\"'`]",
    "origin": r"(?:site|website|site_?url|base_?url|url)=(https?://[^/\"'`]+)",
}
"""The name and address of a journal in its settings."""
_LISTS = (
    {"/blog/": "posts:", "/posts/": "posts:", "/archives/": "archive:", "/tags/": "tags:"}
    | {
        f"/{path}.xml": "feed:"
        for path in ("rss", "feed", "atom", "index", "feed/feed", "blog/rss")
    }
    | dict.fromkeys(("/rss/", "/feed/"), "feed:")
)
"""Lists and feeds of these systems."""


def read_markdown_folder(root: Path) -> Imported:
    """Read a folder of Markdown, whose system is found out."""
    files = dict(walk(root))
    journal = Imported(
        next(
            name
            for name, (marks, _) in SYSTEMS.items()
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
    # Eleventy has the address of a folder's texts in a file beside them, or that they have none.
    rules = {
        rf"{re.escape(source.rpartition('/')[0])}/(?P<rest>.+)": found[1] or ""
        for source, path in files.items()
        if re.search(r"\.11tydata\.\w+$|(?:^|/)([^/]+)/\1\.json$", source)
        if (
            found := re.search(
                r"(?s)permalink\b(?:[\"']?\s*:\s*false\b|.*?[\"'`]([^\"'`]*/[^\"'`]*))",
                read_text(path),
            )
        )
    } | SYSTEMS[journal.system][1]
    raws = dict[str, str]()
    for source in filter(_SUFFIX.search, files):
        with journal.skipping_unreadable(source, source):
            raws[source] = read_text(files[source])
            _add_text(journal, source, raws[source], known, rules)
    # Where some notes of a vault say that they are public, no others are.
    opted = {
        source
        for source, raw in raws.items()
        if not rules and re.match(r"(?i)---\n(?:(?!---).*\n)*?(?:dg-)?publish: *true", raw)
    }
    if opted:
        journal.note(
            "",
            0,
            "notes without `publish: true` are drafts, since others have it",
            "publish those that should be read",
        )
    commits = _read_first_commits(root)
    for text in journal.texts:
        text.status = "draft" if opted and text.source not in opted else text.status
        if text.kind == "post" and not text.date:
            text.date = commits.get(text.source) or datetime.fromtimestamp(
                files[text.source].stat().st_mtime, UTC
            )
    shown = {text.source for text in journal.texts if text.status != "draft"}
    mentioned = {
        each
        for raw in map(raws.__getitem__, shown)
        for name in map(unquote, _MEDIA.findall(raw))
        # Names may hold blanks, and other words may stand before those that do not.
        for each in (name.strip(), name.rpartition(" ")[2])
    }
    journal.file_sources = {
        # Some folders were no part of a file's address.
        source: re.sub(
            r"(?:(?:src|source|content|docs|site)/)?(?:(?:public|static)/)?", "", source, count=1
        )
        if rules
        else source
        for source, path in files.items()
        if path.name in mentioned and _MEDIA.fullmatch(path.name) and not _HELD_BACK.search(source)
    }
    journal.files = {public: files[source] for source, public in journal.file_sources.items()}
    settings = "\n".join(
        read_text(path)
        for source, path in files.items()
        if re.fullmatch(
            r"(?:eleventy\.config|(?:astro|next|gatsby|docusaurus|quartz)[.-]config|zola|config"
            r"|vercel|netlify|(?:src/)?_data/\w+|src/(?:config|consts|site\.config)"
            r"|data/siteMetadata|(?:(?:public|static)/)?_redirects)"
            r"(?:\.(?:m?[jt]s|cjs|json|toml))?",
            source,
        )
    )
    for key, pattern in _SETTINGS.items():
        named = pattern.replace("=", r"[\"']?\s*[:=]\s*[\"'`]")
        values = re.findall(rf"(?im)(?:^|[{{,])\W*(?:export const )?{named}", settings)
        setattr(journal, key, next(iter(values), ""))
    if any(text.address for text in journal.texts):
        journal.redirects = _LISTS | {
            f"/{kind}/{slugify(tag)}/": f"tag:{tag}"
            for kind in ("tags", "categories")
            for tag in {tag for text in journal.texts for tag in text.tags}
        }
    journal.redirects |= read_redirects(settings)
    # Of two texts with one name, that in the language of the journal has it.
    journal.texts.sort(key=lambda text: text.lang not in {"", journal.lang})
    return journal


def _add_text(
    journal: Imported, source: str, raw: str, known: Mapping[str, str], rules: Mapping[str, str]
) -> None:
    """Add a text, or a finding; a date is what its head or its name says."""
    stem, is_site = _SUFFIX.sub("", source), bool(rules)
    head, body, line = split_head(raw)
    is_of_project = (
        _NO_TEXT.fullmatch(stem)
        or (journal.system == "Quartz" and not stem.startswith("content/"))
        or (is_site and stem.lower() == "readme")
        or (is_site and not head and not any(re.fullmatch(rule, stem) for rule in rules))
    )
    if not body.strip() or "\0" in body or is_of_project:
        journal.note(
            source,
            0,
            "it is no text of the journal" if body.strip() else "it is empty",
            "copy it if you want it",
        )
        return
    # Texts of Next.js may say in a program what others say in a head.
    program = re.findall(r"(?ms)^export const \w+ = \{$(.*?)^\}", body * (not head))
    converter = Converter(journal.system, known, body, is_mdx=source.endswith(".mdx"))
    body = converter.body
    for what, below in converter.left_out.items():
        journal.note(source, line + below, what, "write what a reader can use in its place")
    said = {
        key.lower(): value
        for part in (
            read_program("".join(program)),
            head.get("taxonomies"),
            head.get("extra"),
            head,
        )
        if isinstance(part, dict)
        for key, value in part.items()
    }
    title = _pick(said, "title")
    heading = re.match(
        r"\A((?:(?!```|~~~|#)[^\n]*\n)*?)#[ \t]+(\S[^\n]*?)[ \t]*#*[ \t]*(\n|\Z)", body
    )
    if heading and title in {"", heading[2]}:
        body = heading[1] + heading[3] + body[heading.end() :]
        title = re.sub(r"`|!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[2])
    name = re.sub("(?i)/(?:index|readme|page)$", "", stem).rpartition("/")[2]
    words = re.sub(
        r"^(?!\d+-)\S+$", lambda word: re.sub("[-_]+", " ", word[0]), _DAY.sub("", name) or name
    )
    named = _DAY.search(stem)
    date = read_date(_pick(said, "date")) or (named and read_date("-".join(named.group(1, 3, 4))))
    is_page = "page" in {_pick(said, "layout"), _pick(said, "type")} or (
        not date and (_PAGES.fullmatch(stem) or (is_site and not _POSTS.search(stem)))
    )
    tags = [
        tag
        for keys in (("tags", "tag"), ("categories", "category"))
        for tag in read_tags(next((said[key] for key in keys if said.get(key)), ""))
        if journal.system != "Eleventy" or not _GENERAL.fullmatch(tag)
    ]
    folder = "" if is_site else source.rpartition("/")[0].partition("/")[0]
    is_draft = {f"{key} {value}".lower() for key, value in said.items()} & _DRAFT or (
        _HELD_BACK.search(stem)
        or said.get("password")
        # Of Eleventy: a rule without an address.
        or not (
            _pick(said, "address")
            or next((rules[rule] for rule in rules if re.fullmatch(rule, stem)), "/")
        )
    )
    journal.note_true(source, {"is a draft here, for it had a password": said.get("password")})
    address, lang = _locate(rules, stem, said, title or words, date)
    journal.texts.append(
        Text(
            source,
            body,
            title or words[:1].upper() + words[1:],
            address,
            "page" if is_page else "post",
            "draft" if is_draft else "hidden" if read_flag(said.get("unlisted")) else "published",
            date,
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
            # A starter of Next.js has an author of that name.
            author=re.sub("^default$", "", _pick(said, "author")),
            description=_pick(said, "description"),
            series=_pick(said, "series"),
            image=re.sub(
                r"^!?\[\[([^|\]]*).*",
                lambda link: SOURCE + quote(known.get(fold(link[1]), link[1])),
                _pick(said, "image"),
            ),
            image_alt=_pick(said, "image_alt"),
        )
    )


def _locate(
    rules: Mapping[str, str], stem: str, said: Mapping[str, Any], title: str, day: datetime | None
) -> tuple[str, str]:
    """Return a source's old address, which may be empty, and the language that its name says."""
    found = next((found for rule in rules if (found := re.fullmatch(rule, stem))), None)
    template = _pick(said, "address") or (rules[found.re.pattern] if found else "")
    if not template or "://" in template:
        return "", ""
    groups = found.groupdict() if found else {"rest": stem}
    # Names of routes that are in no address: `(group)/` and `_group/`.
    rest = re.sub(r"(?:^|/)(?:_?index|\+?page)$|(?<![^/])(?:\(.*?\)|_[^/]+)/", "", groups["rest"])
    folder, _, last = rest.rpartition("/")
    if slug := _pick(said, "slug").strip("/"):
        last, rest = slug, slug if "/" in slug else f"{folder}/{slug}"
    name = _DAY.sub("", last) or last
    values = {
        "rest": rest,
        "ids": "/".join(map(slugify, rest.split("/"))),
        "ascii": "/".join(map(make_slug, [*folder.split("/"), name])),
        "dashed": rest.replace(" ", "-"),
        "name": name,
        "slug": name,
        "fileSlug": name,
        "filePathStem": f"{folder}/{name}",
        "title": make_slug(title),
        "collection": "posts" if "pubdatetime" in said else groups.get("collection", ""),
        "lang": groups.get("lang", ""),
        **{
            key: f"{day:{form}}" if day else "{"
            for key, form in {"date": "%Y/%m/%d", "year": "%Y", "month": "%m", "day": "%d"}.items()
        },
    }
    names = "|".join(values)
    address = re.sub(
        rf":({names})\b|(?:\{{\{{|\$\{{)[^}}]*?\b({names})\b[^}}]*\}}+",
        lambda found: values[found[1] or found[2]],
        f"/{template}",
    )
    address = re.sub("(?:/index)?(?:/+|/index[.]html)$", "/", re.sub("/+", "/", address))
    # A brace is left where nobody knows what stood there.
    return "" if "{" in address else address, values["lang"]


def _pick(said: Mapping[str, Any], key: str) -> str:
    """Return the first value that a head has under one of several names, as text."""
    return pick(next((said[name] for name in _KEYS.get(key, key).split() if said.get(name)), ""))


def _read_first_commits(root: Path) -> dict[str, datetime]:
    """Return when Git first had each file, by its path below the root, if there is Git."""
    # Settings of the folder may name programs: none of these runs, and nothing is fetched.
    words = (
        "git --no-pager -c log.showSignature=false -c core.fsmonitor=false log -z --no-renames "
        "--diff-filter=A --name-only --relative --no-ext-diff --no-textconv --format=%x01%aI"
    )
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            words.split(),
            cwd=root,
            env=os.environ
            | {
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_ALLOW_PROTOCOL": "",
            },
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
