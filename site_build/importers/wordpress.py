"""Read a journal out of WordPress: the file that `Tools: Export` makes (WXR 1.0 to 1.2)."""

import codecs
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from functools import partial
from html import escape, unescape
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from site_build.importers.html_to_markdown import convert, show_plain
from site_build.importers.imported import Imported, Text, UnreadableJournal, walk

_UNSORTED: Final = {
    *("uncategorized", "uncategorised", "allgemein", "non-classe", "sin-categoria"),
    *("senza-categoria", "sem-categoria", "geen-categorie", "okategoriserade", "bez-kategorii"),
}
"""Slugs of the category of texts that have none."""
_STATES: Final = {
    "publish": "",
    "draft": "",
    "pending": "it waited for a review",
    "private": "it was private",
    "future": "it was scheduled",
}
"""The states of texts, and why one is a draft here that was none."""
_META: Final = {
    *("_wp_old_slug", "_thumbnail_id", "_wp_attachment_image_alt", "footnotes"),
    *("_yoast_wpseo_metadesc", "rank_math_description"),
}
_ARCHIVES: Final = {
    "/feed/": "feed:",
    "/feed/atom/": "feed:",
    "/feed/rss/": "feed:",
    "/?feed=rss2": "feed:",
    "/comments/feed/": "feed:",
    "/page/2/": "posts:",
}
_CONTROL: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow."""
_UPLOADS: Final = re.compile(r"/(?:wp-)?uploads/(?:sites/\d+/)?|\.files\.wordpress\.com/")
_SMALLER: Final = re.compile(r"-\d+x\d+(?=\.\w+$)")
_PICTURE: Final = re.compile(
    r"(https?://[^\s\"'<>()\[\]]+?\.(?:jpe?g|png|gif|webp))(?:\?[^\s\"'<>()\[\]]*)?(?=[\s\"'<\]])",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"\[(?P<name>(?:source)?code|php|csharp|java(?:script)?|jscript|js|python|ruby|bash|shell|sql"
    r"|xml|html|css|cpp|c|vb|perl|scala|plain)\b(?:[^\]]*?lang(?:uage)?=[\"']?(?P<lang>[\w+#]+))?"
    r"[^\]]*\](?P<code>.*?)\[/(?P=name)\]",
    re.DOTALL | re.IGNORECASE,
)
_BLOCK_CODE: Final = re.compile(r"<!-- wp:\S+ \{[^>]*\"language\":\"(\w+)\"[^>]*-->\s*<pre")
_LINK: Final = r'<p><a href="\1">\1</a></p>'
_SHORTCODES: Final = {
    r"\[(?:wp_)?caption\b(?:[^\]]*\scaption=\"([^\"]*)\")?[^\]]*\]"
    r"((?:\s*<a\s[^>]*>)?\s*<img[^>]*>(?:\s*</a>)?)(.*?)\[/(?:wp_)?caption\]": (
        r"<figure>\2<figcaption>\1\3</figcaption></figure>"
    ),
    r"\[(?:embed|gist|youtube|tweet)[^\]]*\]\s*(https?://[^\s\[]+)\s*\[/\w+\]": _LINK,
    r"\[(?:embed|gist|youtube|vimeo|tweet|instagram|soundcloud|audio|video|playlist)\b"
    r"[^\]]*?(https?://[^\s\]\"'|]+)[^\]]*\](?:\s*\[/\w+\])?": _LINK,
    r"(?m)^[ \t]*(https?://[^\s<>]+)[ \t]*$": _LINK,
    r"\[latex[^\]]*\](.+?)\[/latex\]": r"\\(\1\\)",
}
"""What stands for shortcodes, and for an address that has a line to itself."""
_UNKNOWN: Final = re.compile(
    r"(?<!\[)\[(?:/([a-z][\w-]*)|([a-z][\w-]*)(?:\s+[\w-]+=[^\]]*|\s*/))\]", re.IGNORECASE
)
"""A shortcode: it ends somewhere, has a value or is closed at once; `[sic]` is none."""
_DYNAMIC: Final = re.compile(r"<!-- wp:(?!more|spacer|separator|nextpage|footnotes)(\S+)[^>]*/-->")
_BLOCK: Final = (
    r"(?:address|article|aside|blockquote|details|div|dl|dt|dd|figure|figcaption|form|h[1-6]|hr|li"
    r"|ol|p|pre|section|summary|table|tbody|thead|tfoot|tr|td|th|ul|style|script)\b"
)


def _decode_older(error: UnicodeError) -> tuple[str, int]:
    """Return what a byte that is no UTF-8 was in Windows' encoding, as in older databases."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - files are only read with it
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("windows-1252", _decode_older)

_NOTHING: Final[Mapping[str, str]] = defaultdict(str)


class _Export(TreeBuilder):
    """Makes the tree of an export, with names that say nothing of the version of the format."""

    def start(self, tag: str, attrs: dict[str, str]) -> Element:
        """Begin an element."""
        return super().start("excerpt" if "/excerpt/" in tag else tag.rpartition("}")[2], attrs)

    def end(self, tag: str) -> Element:
        """End an element; of what plugins note about a text, only what is read here is kept."""
        element = super().end(tag)
        if element.tag == "postmeta" and element.findtext("meta_key") not in _META:
            element.clear()
        return element

    def doctype(self, *_: object) -> None:
        """Refuse what no export has, and with it all entities."""
        raise UnreadableJournal("the export declares a document type; export the journal again")


def _parse(path: Path) -> Element:
    """Return the channel of an export."""
    parser = XMLParser(target=_Export())
    try:
        with path.open(encoding="utf-8-sig", errors="windows-1252") as file:
            while piece := file.read(1 << 20):
                parser.feed(_CONTROL.sub("", piece))
        channel: Element | None = parser.close().find("channel")
    except ParseError as error:
        raise UnreadableJournal(
            f"{path.name} is cut or broken ({error}); export the journal again"
        ) from None
    if channel is None or channel.find("base_site_url") is None:
        raise UnreadableJournal(f"{path.name} is no export of WordPress")
    return channel


def _flat(element: Element) -> dict[str, str]:
    """Return the texts of the elements in one; empty for those that are not there."""
    return defaultdict(str, {each.tag: each.text or "" for each in element})


def _address(link: str) -> str:
    """Return the path and the query of a link, percent-decoded."""
    parts = urlsplit(link.strip())
    return unquote(f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}")


def _date(row: dict[str, str]) -> datetime | None:
    """Return the date of a text in the zone that its journal had on that day; drafts lack it."""
    if row["post_date"] < "0001":
        return None
    local = datetime.fromisoformat(row["post_date"])
    world = row["post_date_gmt"] if row["post_date_gmt"] > "0001" else row["post_date"]
    return local.replace(tzinfo=timezone(local - datetime.fromisoformat(world)))


def _paragraphs(html: str) -> str:
    """Return what WordPress shows for a text of its classic editor (its `wpautop`)."""
    html = re.sub(rf"(</?{_BLOCK}[^>]*>)", r"\n\n\1\n\n", html)
    pieces = (piece.strip() for piece in re.split(r"\n\s*\n", html))
    return "\n".join(
        piece if re.match(rf"</?{_BLOCK}", piece) else f"<p>{'<br>'.join(piece.split(chr(10)))}</p>"
        for piece in pieces
        if piece
    )


def _read_body(content: str, gallery: Callable[[re.Match[str]], str]) -> tuple[str, set[str]]:
    """Return the HTML of a text, and what was taken out of it."""
    html = _BLOCK_CODE.sub(r'<pre data-lang="\1"', content)
    html = _CODE.sub(
        lambda code: (
            f'<pre data-lang="{code["lang"] or code["name"]}">{escape(unescape(code["code"]))}</pre>'
        ),
        html,
    )
    unknown = set(_DYNAMIC.findall(html))
    pieces = re.split(r"(<pre\b.*?</pre>)", html, flags=re.DOTALL)
    for index in range(0, len(pieces), 2):
        piece = re.sub(r"(?<!\[)\[gallery\b([^\]]*)\]", gallery, pieces[index])
        for pattern, replacement in _SHORTCODES.items():
            piece = re.sub(pattern, replacement, piece, flags=re.DOTALL | re.IGNORECASE)
        names = {found[1] or found[2] for found in _UNKNOWN.finditer(piece)}
        if names:
            piece = re.sub(rf"(?<!\[)\[/?(?:{'|'.join(names)})\b[^\]]*\]", "", piece)
        unknown |= names
        piece = re.sub(r"\[(\[/?[a-z][^\[\]]*\])\]", r"\1", piece)
        pieces[index] = piece if "<!-- wp:" in content else _paragraphs(piece)
    return "".join(pieces), unknown


class _Reader:
    """Reads the items of exports into a journal."""

    def __init__(self, folder: Path, channels: dict[str, Element]) -> None:
        first = _flat(next(iter(channels.values())))
        home = urlsplit(first["base_blog_url"] or first["base_site_url"])
        self.base = unquote(home.path.rstrip("/"))
        self.journal = Imported(
            "WordPress",
            title=show_plain(first["title"]),
            description=show_plain(first["description"]),
            lang=first["language"],
            origin=f"{home.scheme}://{home.netloc}",
        )
        places = (folder / "wp-content/uploads", folder / "uploads")
        self.local = {name: path for place in places for name, path in walk(place)}
        self.journal.files = {
            f"{self.base}/wp-content/uploads/{name}"[1:]: path
            for name, path in self.local.items()
            if (whole := _SMALLER.sub("", name)) == name or whole not in self.local
        }
        rows = [(each.tag, _flat(each)) for channel in channels.values() for each in channel]
        self.authors = {row["author_login"]: row["author_display_name"] for _, row in rows}
        self.categories = {row["category_nicename"]: row for tag, row in rows if tag == "category"}
        self.attachments = {
            row["post_id"]: row for _, row in rows if row["post_type"] == "attachment"
        }
        self.pictures = {row["attachment_url"] for row in self.attachments.values()}
        self.published: dict[str, Text] = {}
        """Texts by their numbers."""
        self.uncounted: Counter[str] = Counter()

    def find_picture(self, found: re.Match[str]) -> str:
        """Return the address of a whole picture, below this journal where its file is there."""
        for url in (_SMALLER.sub("", found[1]), found[1]):
            name = unquote(_UPLOADS.split(url)[-1])
            if name in self.local or url in self.pictures:
                return f"{self.base}/wp-content/uploads/{name}" if name in self.local else url
        return found[0]

    def show_gallery(self, found: re.Match[str], post: str) -> str:
        """Return the pictures of a gallery, three in a row: those named, or all of the post."""
        ids = re.search(r"(?:ids|include)=[\"']?([\d,\s]+)", found[1])
        all_of_post = [key for key, row in self.attachments.items() if row["post_parent"] == post]
        chosen = re.findall(r"\d+", ids[1]) if ids else all_of_post
        pictures = [
            f'<img src="{escape(row["attachment_url"])}" alt="{escape(show_plain(row["excerpt"]))}">'
            for row in map(self.attachments.get, chosen)
            if row and _PICTURE.match(row["attachment_url"] + " ")
        ]
        return "".join(f"<p>{''.join(pictures[n : n + 3])}</p>" for n in range(0, len(pictures), 3))

    def read(self, name: str, item: Element) -> None:
        """Read a text with its comments; what is none is counted."""
        row, source = _flat(item), f"{name}#{item.findtext('post_id')}"
        is_public = row["status"] == "publish" and not row["post_password"]
        if row["post_type"] not in {"post", "page"} or row["status"] not in _STATES:
            self.uncounted[f"{row['post_type']} ({row['status']})"] += 1
            return
        meta = [
            (each.findtext("meta_key"), each.findtext("meta_value") or "")
            for each in item.iter("postmeta")
        ]
        noted = defaultdict(str, meta)
        html, dropped = _read_body(row["encoded"], partial(self.show_gallery, post=row["post_id"]))
        html += "".join(
            f'<p id="{note["id"]}">{note["content"]} <a href="#{note["id"]}-link">^</a></p>'
            for note in json.loads(noted["footnotes"] or "[]")
        )
        terms = [
            (domain, each.get("nicename", ""), each.text or "")
            for domain in ("post_tag", "tag", "category")
            for each in item.iter("category")
            if each.get("domain") == domain and each.get("nicename") not in _UNSORTED
        ]
        image = self.attachments.get(noted["_thumbnail_id"], _NOTHING)
        text = Text(
            source,
            convert(_PICTURE.sub(self.find_picture, html)),
            show_plain(row["title"]) or unquote(row["post_name"]) or f"Untitled {row['post_id']}",
            _address(row["link"]) if is_public else "",
            kind="page" if row["post_type"] == "page" else "post",
            status="published" if is_public else "draft",
            date=_date(row),
            slug=unquote(row["post_name"]),
            tags=list(dict.fromkeys(label for *_, label in terms)),
            category=next((label for domain, _, label in terms if domain == "category"), ""),
            author=self.authors.get(row["creator"]) or row["creator"],
            description=show_plain(
                row["excerpt"] or noted["_yoast_wpseo_metadesc"] or noted["rank_math_description"]
            ),
            image=_PICTURE.sub(self.find_picture, f"{image['attachment_url']} ").strip(),
            image_alt=show_plain(image["excerpt"]),
        )
        self.journal.texts.append(text)
        reason = "it had a password" if row["post_password"] else _STATES[row["status"]]
        if reason:
            self.journal.find(source, 0, f"is a draft here, for {reason}", "publish it if you want")
        if dropped:
            self.journal.find(
                source,
                0,
                f"shortcodes or blocks are not known: {', '.join(sorted(dropped))}",
                "write what they showed; a text between them is kept",
            )
        if is_public:
            self.published[row["post_id"]] = text
            old_slugs = [f"../{old}/" for key, old in meta if key == "_wp_old_slug"]
            short = f"{self.base}/?{'page_id' if text.kind == 'page' else 'p'}={row['post_id']}"
            text.aliases = [
                *([short] if "?" not in text.address else []),
                *(
                    _address(urljoin(row["link"], old))
                    for old in old_slugs
                    if "?" not in row["link"]
                ),
            ]
            self.redirect_archives(text, terms, row["creator"])
        self.read_comments(text, item)

    def redirect_archives(self, text: Text, terms: list[tuple[str, str, str]], author: str) -> None:
        """Lead the old lists in which a text stood to those of this journal."""
        lists = {f"/author/{author.lower()}/": "posts:", **_ARCHIVES}
        for domain, slug, label in terms:
            chain = [unquote(slug)]
            while (parent := self.categories.get(chain[0], _NOTHING)["category_parent"]) not in {
                "",
                *chain,
            }:
                chain.insert(0, parent)
            kind = "category" if domain == "category" else "tag"
            number = self.categories.get(slug, _NOTHING)["term_id"]
            query = f"cat={number}" if kind == "category" else f"tag={slug}"
            lists |= dict.fromkeys(
                (f"/{kind}/{'/'.join(chain)}/", f"/{kind}/{chain[-1]}/", f"/?{query}"),
                f"tag:{label}",
            )
            lists[f"/{kind}/{chain[-1]}/feed/"] = f"feed:{label}"
        if text.date:
            lists |= {
                f"{text.date:{form}}": "archive:"
                for form in ("/%Y/", "/%Y/%m/", "/%Y/%m/%d/", "/?m=%Y%m")
            }
        self.journal.redirects |= {self.base + old: new for old, new in lists.items()}

    def read_comments(self, text: Text, item: Element) -> None:
        """Read the comments on a text that were not taken for spam; other sites' links are counted."""
        for row in map(_flat, item.iter("comment")):
            if row["comment_type"] in {"pingback", "trackback"}:
                self.uncounted["pingback or trackback"] += 1
            elif row["comment_approved"] in {"0", "1"}:
                self.journal.comments.append(
                    {
                        "post": text.address or text.source,
                        "author": row["comment_author"],
                        "date": row["comment_date_gmt"],
                        "text": row["comment_content"],
                        "number": row["comment_id"],
                        "answers": row["comment_parent"],
                    }
                )


def read_wordpress(root: Path) -> Imported:
    """Read an export, or all exports of a folder, with the folder `uploads` beside them.

    Raises UnreadableJournal.
    """
    paths = sorted(root.glob("*.xml")) if root.is_dir() else [root]
    if not paths:
        raise UnreadableJournal("no export of WordPress is there; it is one file *.xml or several")
    channels = {path.name: _parse(path) for path in paths}
    reader = _Reader(root if root.is_dir() else root.parent, channels)
    journal = reader.journal
    for name, channel in channels.items():
        for item in channel.iter("item"):
            try:
                reader.read(name, item)
            except (ValueError, KeyError, RecursionError) as error:
                title = item.findtext("title")
                journal.find(
                    name, 0, f"cannot read {title!r}: {error}", "copy it by hand", "left out"
                )
            item.clear()
    for what, count in reader.uncounted.items():
        journal.find(
            "", 0, f"{count} of the kind {what} are no texts", "look whether you miss them"
        )
    for row in reader.attachments.values():
        if row["post_parent"] in reader.published:
            page = _address(row["link"])
            journal.redirects[page] = f"source:{reader.published[row['post_parent']].source}"
    if not journal.texts:
        raise UnreadableJournal("the export holds no posts and no pages")
    return journal
