"""Reads a folder of Markdown of Obsidian, Astro, Eleventy, Next.js, Zola, others, or no system.

A system is recognized by its files, and gives the old addresses of texts. Nothing of the folder is
run: only literal values are read from settings.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from site_build.importers.dialects import MARKDOWN_SYSTEMS, DialectConverter, slugify
from site_build.importers.heads import (
    NO,
    YES,
    pick,
    read_date,
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
"""Name of a file that may be published; code may not."""
_WITHOUT_SUBJECT = re.compile(
    r"|\d+|_?(?:all|articles|blog|content|docs|drafts|notes|pages?|posts?|source)", re.IGNORECASE
)
"""Names of folders, and of tags of Eleventy's collections, that say nothing of the subject."""
_POST_PATH = re.compile(r"(?:^|/)_?(?:blog|posts?|articles?|notes?|til|writing|essays?|journal)/")
_PAGE_PATH = re.compile(
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
"""Paths, without suffix, of sources that are no texts of the journal."""
_DAY = re.compile(
    r"(?<![^/])((?:19|20)\d\d)([-/_])(\d\d)\2(\d\d)(?=[-_ /T]|$)(?:T\d\d[\d:.-]+Z)?[-_ ]*"
)
"""A date in the name of a file or folder."""
_PRIVATE_FOLDER = re.compile(r"(?:^|/)_?(?:drafts?|private)/", re.IGNORECASE)
"""Folders of drafts and private texts."""
_KEYS = {
    "date": "date pubdate pubdatetime publishdate publisheddate publishedat published_at "
    "date_published created created_at createdat date_created",
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
"""Keys of heads, in lower case, by the field that they fill; the first that is set counts."""
_READ_KEYS = {
    *" ".join(_KEYS.values()).split(),
    "title",
    "slug",
    "series",
    "layout",
    "type",
    "password",
    "taxonomies",
    "extra",
}
"""All keys that are read, besides those that say who can read a text."""
_SETTINGS = {
    "title": r"(?:site|page)?_?title=([^\"`$\n]+?)[\"'`]\s*(?:[,;)}]|$)",
    "description": r"(?:site)?_?desc(?:ription)?=([^\"`$\n]+?)[\"'`]\s*(?:[,;)}]|$)",
    "author": r"author(?:[\"']?\s*:\s*\{\s*[\"']?name)?=([^\"`$\n]+?)[\"'`]\s*(?:[,;)}]|$)",
    "lang": r"(?:lang|language|locale|default_?(?:locale|language))=([A-Za-z-]{2,10})[\"'`]",
    "timezone": r"time_?zone=([A-Za-z_]+/[\w/+-]+)[\"'`]",
    "origin": r"(?:site|website|site_?url|base_?url|url)=(https?://[^/\"'`]+)",
}
"""Patterns of settings; `=` stands for the sign between key and value, and an opening quote."""
_LISTS = (
    {"/blog/": "posts:", "/posts/": "posts:", "/archives/": "archive:", "/tags/": "tags:"}
    | {
        f"/{path}.xml": "feed:"
        for path in ("rss", "feed", "atom", "index", "feed/feed", "blog/rss")
    }
    | dict.fromkeys(("/rss/", "/feed/"), "feed:")
)
"""Targets of the lists and feeds that these systems usually have, by address."""


def read_markdown_folder(root: Path) -> Imported:
    """Read a folder of Markdown and detect its system."""
    files = dict(walk(root))
    journal = Imported(
        next(
            name
            for name, (marks, _) in MARKDOWN_SYSTEMS.items()
            if any(path for mark in marks for path in root.glob(mark))
        )
    )
    # In Obsidian a link names the end of a path; of several, the one nearest to the root counts.
    known = {
        "/".join(parts[start:]): source
        for source in sorted(files, key=lambda source: -source.count("/"))
        for parts in [fold(_SUFFIX.sub("", source)).split("/")]
        for start in range(len(parts))
    }
    # In Eleventy, a data file gives the address of a folder's texts, or says that they have none.
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
    } | MARKDOWN_SYSTEMS[journal.system][1]
    raws = dict[str, str]()
    for source in filter(_SUFFIX.search, files):
        with journal.skipping_unreadable(source, source):
            raws[source] = read_text(files[source])
            _add_text(journal, source, raws[source], known, rules)
    # If some notes of a vault say that they are public, all others are drafts.
    opted_in = {
        source
        for source, raw in raws.items()
        if not rules
        and re.match(
            r"(?i)---\n(?:(?!---).*\n)*?[\"']?(?:dg-)?publi(?:sh|c)[\"']? *: *[\"']?"
            rf"(?:{'|'.join(YES)})\b",
            raw,
        )
    }
    if opted_in:
        journal.note(
            "",
            0,
            "notes without `publish: true` are drafts, since others have it",
            "publish those that should be read",
        )
    commits = _read_first_commits(root)
    for text in journal.texts:
        text.status = "draft" if opted_in and text.source not in opted_in else text.status
        if text.kind == "post" and not text.date:
            text.date = commits.get(text.source) or datetime.fromtimestamp(
                files[text.source].stat().st_mtime, UTC
            )
    shown = {text.source for text in journal.texts if text.status != "draft"}
    mentioned = {
        each
        for raw in map(raws.__getitem__, shown)
        for name in map(unquote, _MEDIA.findall(raw))
        # A name may hold blanks, or follow other words.
        for each in (name.strip(), name.rpartition(" ")[2])
    }
    journal.public_paths = {
        # The address of a file does not include these folders.
        source: re.sub(
            r"(?:(?:src|source|content|docs|site)/)?(?:(?:public|static)/)?", "", source, count=1
        )
        if rules
        else source
        for source, path in files.items()
        if path.name in mentioned
        and _MEDIA.fullmatch(path.name)
        and not _PRIVATE_FOLDER.search(source)
    }
    journal.files = {public: files[source] for source, public in journal.public_paths.items()}
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
    # Texts in the journal's language come first, so that they keep a name that two texts have.
    journal.texts.sort(key=lambda text: text.lang not in {"", journal.lang})
    return journal


def _add_text(
    journal: Imported, source: str, raw: str, known: Mapping[str, str], rules: Mapping[str, str]
) -> None:
    """Add a text, or note that there is none; its date comes from its head or its path."""
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
    # Texts of Next.js may have a JavaScript object in place of a head.
    program = re.findall(r"(?ms)^export const \w+ = \{$(.*?)^\}", body * (not head))
    converter = DialectConverter(journal.system, known, body, is_mdx=source.endswith(".mdx"))
    body = converter.body
    for what, below in converter.left_out.items():
        journal.note(source, line + below, what, "write what a reader can use in its place")
    fields = {
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
    title = _pick(fields, "title")
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
    dates = {
        # In Eleventy, a word stands for the date of Git or of the file.
        "date": re.sub("(?i)^(?:git )?(?:last modified|created)$", "", _pick(fields, "date")),
        "updated": _pick(fields, "updated"),
    }
    date = (
        read_date(dates["date"])
        or read_date(fields.get("published"))
        or (named and read_date("-".join(named.group(1, 3, 4))))
    )
    is_page = "page" in {_pick(fields, "layout"), _pick(fields, "type")} or (
        not date and (_PAGE_PATH.fullmatch(stem) or (is_site and not _POST_PATH.search(stem)))
    )
    tags = [
        tag
        for keys in (("tags", "tag"), ("categories", "category"))
        for tag in read_tags(next((fields[key] for key in keys if fields.get(key)), ""))
        if journal.system != "Eleventy" or not _WITHOUT_SUBJECT.fullmatch(tag)
    ]
    folder = "" if is_site else source.rpartition("/")[0].partition("/")[0]
    status = journal.judge_head(source, fields, _READ_KEYS, dates, date)
    is_draft = (
        _PRIVATE_FOLDER.search(stem)
        or fields.get("password")
        or str(fields.get("permalink")).strip().lower() in NO
        # In Eleventy, a rule without an address makes texts drafts.
        or not (
            _pick(fields, "address")
            or next((rules[rule] for rule in rules if re.fullmatch(rule, stem)), "/")
        )
    )
    journal.note_true(source, {"is a draft here, for it had a password": fields.get("password")})
    address, lang = _locate(rules, stem, fields, title or words, date)
    journal.texts.append(
        Text(
            source,
            body,
            title or words[:1].upper() + words[1:],
            address,
            "page" if is_page else "post",
            "draft" if is_draft else status,
            date,
            read_date(dates["updated"]),
            tags=tags or [folder] * (not _WITHOUT_SUBJECT.fullmatch(folder)),
            lang=lang or _pick(fields, "lang"),
            # In Obsidian, aliases are names and no addresses.
            aliases=[
                f"/{path.lstrip('/')}"
                for path in read_tags(fields.get("aliases") or fields.get("redirect_from"))
                if is_site or path.startswith("/")
            ],
            first_line=line,
            slug=_pick(fields, "slug").strip("/").rpartition("/")[2],
            category=_pick(fields, "category"),
            # `default` is a placeholder in a template of Next.js.
            author=re.sub("^default$", "", _pick(fields, "author")),
            description=_pick(fields, "description"),
            series=_pick(fields, "series"),
            image=re.sub(
                r"^!?\[\[([^|\]]*).*",
                lambda link: SOURCE + quote(known.get(fold(link[1]), link[1])),
                _pick(fields, "image"),
            ),
            image_alt=_pick(fields, "image_alt"),
        )
    )


def _locate(
    rules: Mapping[str, str], stem: str, fields: Mapping[str, Any], title: str, day: datetime | None
) -> tuple[str, str]:
    """Return a source's old address, which may be empty, and the language in its name."""
    found = next((found for rule in rules if (found := re.fullmatch(rule, stem))), None)
    template = _pick(fields, "address") or (rules[found.re.pattern] if found else "")
    if not template or "://" in template:
        return "", ""
    groups = found.groupdict() if found else {"rest": stem}
    # Addresses lack some parts of paths: `index`, and groups such as `(group)/` and `_group/`.
    rest = re.sub(r"(?:^|/)(?:_?index|\+?page)$|(?<![^/])(?:\(.*?\)|_[^/]+)/", "", groups["rest"])
    folder, _, last = rest.rpartition("/")
    if slug := _pick(fields, "slug").strip("/"):
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
        "collection": "posts" if "pubdatetime" in fields else groups.get("collection", ""),
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
    # A brace is left if a part of the template is unknown.
    return "" if "{" in address else address, values["lang"]


def _pick(fields: Mapping[str, Any], key: str) -> str:
    """Return the first value that a head has under the names of a field, as text."""
    return pick(
        next((fields[name] for name in _KEYS.get(key, key).split() if fields.get(name)), "")
    )


def _read_first_commits(root: Path) -> dict[str, datetime]:
    """Return the date of each file's first commit, by path below the root; empty without Git."""
    # Git's settings in the folder may name programs: none of them runs, and nothing is fetched.
    words = (
        "git --no-pager -c log.showSignature=false -c core.fsmonitor=false log -z --no-renames "
        "--diff-filter=A --name-only --relative --no-ext-diff --no-textconv --format=%x01%aI"
    )
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
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
