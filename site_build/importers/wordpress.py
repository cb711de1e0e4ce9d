"""Reads a journal from WordPress: the file that `Tools: Export` makes (WXR 1.0 to 1.2)."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from html import escape, unescape
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree.ElementTree import Element, TreeBuilder, XMLParser

from site_build.importers.html_to_markdown import convert, plain_text
from site_build.importers.imported import Imported, Text, UnreadableJournal, walk

_STATES: Final = {
    "publish": "",
    "draft": "",
    "pending": "it waited for a review",
    "private": "it was private",
    "future": "it was scheduled",
}
"""The states of texts, each with the reason why a text that was no draft becomes one."""
_SIZE_SUFFIX: Final = re.compile(r"-\d+x\d+(?=\.\w+$)")
_PICTURE: Final = re.compile(
    r"(https?://[^\s\"'<>()\[\]]+?\.(?:jpe?g|png|gif|webp))(?:\?[^\s\"'<>()\[\]]*)?(?=[\s\"'<\]])",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"\[(?P<name>(?:source)?code|php|csharp|java(?:script)?|jscript|js|python|ruby|bash|shell|sql"
    r"|xml|html|css|cpp|c|vb|perl|scala|plain)\b"
    r"(?:[^\]]{0,999}?lang(?:uage)?=[\"']?(?P<lang>[\w+#]+))?"
    # It stops at the next opening tag, so that many unclosed ones take no time.
    r"[^\]]{0,999}\](?P<code>(?:[^\[]|\[(?!(?P=name)\b))*?)\[/(?P=name)\]",
    re.IGNORECASE,
)
_LINK: Final = r'<p><a href="\1">\1</a></p>'
_SHORTCODES: Final = {
    r"\[(?:wp_)?caption\b(?:[^\]]{0,999}\scaption=\"([^\"]*)\")?[^\]]{0,999}\]"
    r"((?:\s{0,9}<a\s[^>]{0,999}>)?\s{0,9}<img[^>]{0,999}>(?:\s{0,9}</a>)?)"
    r"(.{0,2000}?)\[/(?:wp_)?caption\]": (r"<figure>\2<figcaption>\1\3</figcaption></figure>"),
    r"\[(?:embed|gist|youtube|tweet)[^\]]{0,999}\]\s*(https?://[^\s\[]+)\s*\[/\w+\]": _LINK,
    r"\[(?:embed|gist|youtube|vimeo|tweet|instagram|soundcloud|audio|video|playlist)\b"
    r"[^\]]{0,999}?(https?://[^\s\]\"'|]+?)(?=&(?:amp;)?[wh]=|[\s\]\"'|])[^\]]{0,999}\]"
    r"(?:\s*\[/\w+\])?": _LINK,
    r"(?m)^[ \t]*(https?://[^\s<>]+)[ \t]*$": _LINK,
    r"\[vimeo\s+(\d+)[^\]]{0,999}\]": r'<p><a href="https://vimeo.com/\1">vimeo \1</a></p>',
    # A page builder's picture; its shortcode stays and counts as unknown.
    r"\[\w+\s[^\]]{0,999}?\b(?:src|image)=[\"'](https?://[^\s\"'\]]+"
    r"\.(?:jpe?g|png|gif|webp))[\"']": r'<p><img src="\1"></p>\g<0>',
    r"\[latex[^\]]{0,999}\](.+?)\[/latex\]": r"\\(\1\\)",
}
"""Replacements of addresses and shortcodes; bounded, so that unclosed ones take no time."""
_UNKNOWN: Final = re.compile(
    r"(?<!\[)\[(?:/|(?=[a-z][\w-]*(?:\s+(?:[\w-]+=|https?:|\d+\])|\s*/\])"
    r"|(?:[a-z]+_\w+|toc|sitemap|archives|blog-stats|googlemaps|portfolio"
    r"|[a-z]+-(?:feed|form|gallery|list|map|posts|slider))\]))"
    r"([a-z][\w-]*)[^\]]{0,999}\]",
    re.IGNORECASE,
)
"""A tag of an unknown shortcode: it closes, has a value, or has a typical name; not `[sic]`."""
_BLOCK: Final = (
    r"(?:address|article|aside|blockquote|details|div|dl|dt|dd|figure|figcaption|form|h[1-6]|hr|li"
    r"|ol|p|pre|section|summary|caption|table|tbody|thead|tfoot|tr|td|th|ul|style|script)\b"
)
_UNSHARED: Final = re.compile(
    r"(?:.*/)?(?:woocommerce_uploads|edd|wc-logs|download-manager-files|[^/]*backups?)/.*"
    r"|.*\.(?:php\d?|phtml|phar|sql|log|bak|ini)(?:\.\w+)?",
    re.IGNORECASE,
)
"""Uploads that were never for readers: sold files, programs, and backups of the site."""
_PLAIN: Final = re.compile(r"(?i)(?:sites/\d+/)?(?:\d{4}/\d\d/)?[^/]+(?<!\.zip)(?<!\.gz)")
"""Paths of uploads as WordPress itself chooses them."""
_EMPTY_ROW: Final[Mapping[str, str]] = defaultdict(str)


class _Export(TreeBuilder):
    """Builds the tree of an export, without the namespaces, which differ between versions."""

    def start(self, tag: str, attrs: dict[str, str]) -> Element:
        """Begin an element."""
        return super().start("excerpt" if "/excerpt/" in tag else tag.rpartition("}")[2], attrs)

    def doctype(self, *_: object) -> None:
        """Refuse a document type: no export has one, and it could define harmful entities."""
        raise UnreadableJournal("the export declares a document type; export the journal again")


def _parse(path: Path) -> Element:
    """Return the channel of an export, without characters that XML does not allow."""
    parser = XMLParser(target=_Export())  # noqa: S314 - it refuses document types
    with path.open(encoding="utf-8-sig", errors="windows") as file:
        while piece := file.read(1 << 20):
            parser.feed(re.sub("[^\t\n\r\x20-\ufffd\U00010000-\U0010ffff]", "", piece))
    return parser.close().findall("channel[base_site_url]")[0]


def _read_row(element: Element) -> dict[str, str]:
    """Return the texts of an element's children by tag; a missing child has an empty one."""
    return defaultdict(str, {each.tag: (each.text or "").strip() for each in element})


def _address(link: str) -> str:
    """Return the path and the query of a link, percent-decoded."""
    return unquote(re.sub(r"^https?://[^/?]*|#.*|/(?=/)", "", link.strip())) or "/"


def _paragraphs(html: str) -> str:
    """Return HTML of the classic editor with paragraphs, as WordPress's `wpautop` adds them."""
    html = re.sub(rf"(</?{_BLOCK}[^>]*>)", r"\n\n\1\n\n", html)
    pieces = (piece.strip() for piece in re.split(r"\n\s*\n", html))
    return "\n".join(
        piece if re.match(rf"</?{_BLOCK}", piece) else f"<p>{'<br>'.join(piece.split(chr(10)))}</p>"
        for piece in pieces
        if piece
    )


class _Reader:
    """Reads the items of exports into a journal."""

    def __init__(self, folder: Path, channels: list[Element]) -> None:
        first = _read_row(channels[0])
        rows = [_read_row(each) for channel in channels for each in channel]
        home = urlsplit(first["base_blog_url"] or first["base_site_url"])
        self.base = unquote(home.path.rstrip("/"))
        named = {
            form
            for row in rows
            if row["attachment_url"] or row["status"] == "publish"
            for name in re.findall(
                r"/(?:wp-)?uploads/([^\s\"'<>()\[\]?#]+)",
                unquote(f"{row['attachment_url']} {row['encoded']}"),
            )
            for form in (name, _SIZE_SUFFIX.sub("", name))
        }
        found = {**dict(walk(folder, "wp-content/uploads")), **dict(walk(folder, "uploads"))}
        uploads = {
            name: path
            for name, path in found.items()
            if not _UNSHARED.fullmatch(name) and (_PLAIN.fullmatch(name) or name in named)
        }
        self.authors = {
            row["author_login"]: row["author_display_name"] for row in rows if row["author_login"]
        }
        self.categories = {row["category_nicename"]: row for row in rows}
        self.blocks = {r["post_id"]: r["encoded"] for r in rows if r["post_type"] == "wp_block"}
        self.attachments = {row["post_id"]: row for row in rows if row["attachment_url"]}
        self.alts = {
            item.findtext("post_id"): meta.findtext("meta_value") or ""
            for channel in channels
            for item in channel.iter("item")
            for meta in item.iter("postmeta")
            if meta.findtext("meta_key") == "_wp_attachment_image_alt"
        }
        self.pictures = {
            **{row["attachment_url"]: row["attachment_url"] for row in self.attachments.values()},
            **{name: f"{self.base}/wp-content/uploads/{name}" for name in uploads},
        }
        """Addresses of full-size pictures, by old address and by name in the uploads."""
        self.journal = Imported(
            "WordPress",
            title=plain_text(first["title"]),
            description=plain_text(first["description"]),
            author=next(iter(self.authors.values())) if len(self.authors) == 1 else "",
            lang=first["language"],
            origin=f"{home.scheme}://{home.netloc}",
            redirects={
                **{f"{self.base}{feed}feed/": "feed:" for feed in ("/", "/comments/")},
                **{f"{self.base}/feed/{form}/": "feed:" for form in ("atom", "rss", "rss2")},
                f"{self.base}/?feed=rss2": "feed:",
                f"{self.base}/category/uncategorized/": "posts:",
            },
            files={
                self.pictures[name][1:]: path
                for name, path in uploads.items()
                if (whole := _SIZE_SUFFIX.sub("", name)) == name or whole not in uploads
            },
        )
        if left := len(found) - len(uploads):
            what = f"{left} files of the uploads are not published: no text shows them"
            self.journal.note("", 0, what, "copy those that readers need into content/")
        if any(row["post_date"] != row["post_date_gmt"] > "0001" for row in rows):
            what = "the export does not say its time zone; dates are as they were shown"
            self.journal.note("", 0, what, "set `TIMEZONE` in pelicanconf.py")

    def find_picture(self, found: re.Match[str]) -> str:
        """Return the full-size picture's address, on this journal if its file is in the uploads."""
        places = r"/(?:wp-)?uploads/(?:sites/\d+/)?|\.files\.wordpress\.com/"
        urls = (_SIZE_SUFFIX.sub("", found[1]), found[1])
        names = (name for url in urls for name in (unquote(re.split(places, url)[-1]), url))
        return next(filter(None, map(self.pictures.get, names)), found[0])

    def show_gallery(self, found: re.Match[str], post: str) -> str:
        """Return the pictures of a gallery, three to a row: those named, or all of the post."""
        ids = re.findall(r"\d+", "".join(re.findall(r"(?:ids|include)=([\"'\d,\s]+)", found[1])))
        ids = ids or [key for key, row in self.attachments.items() if row["post_parent"] == post]
        pictures = [
            f'<img src="{escape(row["attachment_url"])}" title="{escape(row["excerpt"])}"'
            f' alt="{escape(self.alts.get(row["post_id"], ""))}">'
            for row in map(self.attachments.get, ids)
            if row and _PICTURE.match(row["attachment_url"] + " ")
        ]
        return "".join(f"<p>{''.join(pictures[n : n + 3])}</p>" for n in range(0, len(pictures), 3))

    def read_body(self, content: str, post: str) -> tuple[str, set[str]]:
        """Return the HTML of a text without unknown blocks and shortcodes, and their names."""
        content = re.sub(
            r"<!-- wp:block \{\"ref\":(\d+)[^>]*/-->",
            lambda block: self.blocks.get(block[1], block[0]),
            content,
        )
        unknown = set(
            re.findall(
                r"<!-- wp:(?!more|spacer|separator|nextpage|footnotes)(\S+)[^>]*/-->", content
            )
        )
        html = _CODE.sub(
            lambda code: (
                f'<pre lang="{code["lang"] or code["name"]}">{escape(unescape(code["code"]))}</pre>'
            ),
            re.sub(
                r"<!-- wp:\S+ \{[^>]*\"language\":\"(\w+)\"[^>]*-->\s*<pre",
                r'<pre lang="\1"',
                content,
            ),
        )
        html = re.sub(
            r"(?s)<pre class=\"wp-block-verse[^>]*>(.*?)</pre>",
            lambda verse: f"<p>{verse[1].replace(chr(10), '<br>')}</p>",
            html,
        )
        pieces = re.split(r"(<pre\b.*?</pre>)", html, flags=re.DOTALL)
        for index in range(0, len(pieces), 2):
            piece = re.sub(
                r"(?<!\[)\[gallery\b([^\]]{0,999})\]",
                lambda found: self.show_gallery(found, post),
                pieces[index],
            )
            for pattern, replacement in _SHORTCODES.items():
                piece = re.sub(pattern, replacement, piece, flags=re.DOTALL | re.IGNORECASE)
            names = {*_UNKNOWN.findall(piece)}
            unknown |= names
            # With `gallery`, the pattern is never empty. `[[name]]` is an escaped shortcode.
            either = "|".join({"gallery", *names})
            piece = re.sub(
                rf"(?<!\[)\[/?(?:{either})\b[^\]]*\]|\[(\[/?[a-z][^\[\]]*\])\]", r"\1", piece
            )
            pieces[index] = piece if "<!-- wp:" in content else _paragraphs(piece)
        return "".join(pieces), unknown

    def read(self, source: str, item: Element) -> None:
        """Add the text of an item, with its comments, to the journal."""
        row = _read_row(item)
        meta = [
            (each.findtext("meta_key"), each.findtext("meta_value") or "")
            for each in item.iter("postmeta")
        ]
        fields, former = defaultdict(str, meta), [old for key, old in meta if key == "_wp_old_slug"]
        is_page = row["post_type"] == "page"
        html, dropped = self.read_body(row["encoded"], row["post_id"])
        html += "".join(
            f'<p id="{note["id"]}">{note["content"]} <a href="#{note["id"]}-link">^</a></p>'
            for note in json.loads(fields["footnotes"] or "[]")
        )
        terms = [
            (kind, each.get("nicename", ""), each.text or "")
            for kind, domains in (("tag", ("post_tag", "tag")), ("category", ("category",)))
            for each in item.iter("category")
            if each.get("domain") in domains
            # The default category, of texts without one.
            and not re.fullmatch(
                "uncategori[sz]ed|allgemein|non-classe|sin-categoria|senza-categoria"
                "|sem-categoria|geen-categorie|okategoriserade|bez-kategorii",
                each.get("nicename", ""),
            )
        ]
        reason = "it had a password" if row["post_password"] else _STATES[row["status"]]
        # Plugins mark content that is for members only.
        if not reason and (
            fields["_jetpack_newsletter_access"] not in {"", "everybody"}
            or re.search(
                r"(?i)<!-- wp:(?:jetpack/paywall|premium-content/)|\[(?:mepr|pmpro|wlm)[-_]"
                r"|\[(?:membership|members_only|restrict|private|s2If|um_loggedin)[\s\]]",
                row["encoded"],
            )
        ):
            reason = "it was for members alone"
        is_public = row["status"] == "publish" and not reason
        address = _address(row["link"]) if is_public else ""
        image = self.attachments.get(fields["_thumbnail_id"], _EMPTY_ROW)
        text = Text(
            source,
            convert(_PICTURE.sub(self.find_picture, html)),
            plain_text(row["title"]) or unquote(row["post_name"]) or f"Untitled {row['post_id']}",
            address,
            kind="page" if is_page else "post",
            status="published" if is_public else "draft",
            date=datetime.fromisoformat(row["post_date"]) if row["post_date"] > "0001" else None,
            slug=unquote(row["post_name"]),
            tags=list(dict.fromkeys(label for *_, label in terms)),
            category=next((label for kind, _, label in terms if kind == "category"), ""),
            author=self.authors.get(row["creator"]) or row["creator"],
            description=plain_text(
                row["excerpt"] or fields["_yoast_wpseo_metadesc"] or fields["rank_math_description"]
            ),
            image=_PICTURE.sub(self.find_picture, f"{image['attachment_url']} ").strip(),
            image_alt=plain_text(self.alts.get(image["post_id"]) or image["excerpt"]),
            aliases=[
                *(_address(urljoin(row["link"], f"../{old}/")) for old in former),
                f"{self.base}/?{'page_id' if is_page else 'p'}={row['post_id']}",
            ]
            if is_public and "?" not in address
            else [],
        )
        self.journal.texts.append(text)
        self.journal.note_true(
            source,
            {
                f"is a draft here, for {reason}": reason,
                f"holds what is not known here: {', '.join(sorted(dropped))}": dropped,
            },
        )
        self.journal.comments += [
            {
                "post": text.address or source,
                "author": each["comment_author"],
                "date": each["comment_date_gmt"],
                "text": each["comment_content"],
                "number": each["comment_id"],
                "answers": each["comment_parent"],
                "kind": each["comment_type"] or "comment",
            }
            for each in map(_read_row, item.iter("comment"))
            if each["comment_approved"] in {"0", "1"}
        ]
        if is_public:
            self.redirect_lists(text, terms, row["creator"])

    def redirect_lists(self, text: Text, terms: list[tuple[str, str, str]], author: str) -> None:
        """Redirect the old lists that had this text to lists of this journal."""
        forms = ("/%Y/", "/%Y/%m/", "/%Y/%m/%d/", "/?m=%Y%m")
        lists = {
            f"/author/{re.sub('[ .]+', '-', author.lower()).replace('@', '')}/": "posts:",
            **{f"{text.date:{form}}": "archive:" for form in forms if text.date},
            f"/{text.address.removeprefix(self.base).partition('?')[0]}/feed/": "feed:",
        }
        for kind, slug, label in terms:
            number = self.categories.get(slug, _EMPTY_ROW)["term_id"] if kind == "category" else ""
            lists[f"/?cat={number}" if number else f"/?tag={slug}"] = f"tag:{label}"
            for path in (slug, self.find_path(slug)):
                lists |= {
                    f"/{kind}/{path}/": f"tag:{label}",
                    f"/{kind}/{path}/feed/": f"feed:{label}",
                }
        self.journal.redirects |= {
            self.base + re.sub("//+", "/", unquote(old)): new for old, new in lists.items()
        }

    def find_path(self, slug: str) -> str:
        """Return the slugs of a category's parents and its own, as its address has them."""
        parent = self.categories.get(slug, _EMPTY_ROW)["category_parent"]
        return f"{self.find_path(parent)}/{slug}" if parent else slug


def read_wordpress(root: Path) -> Imported:
    """Read an export, or all exports of a folder, with the folder `uploads` beside them.

    Raises the exceptions in READING_ERRORS of `imported.py` for a broken one.
    """
    paths = [root] if root.is_file() else sorted(root.glob("*.xml"))
    exports = {e.name: _parse(e) for e in paths if b"wordpress.org/export/" in e.read_bytes()}
    reader = _Reader(root if root.is_dir() else root.parent, [*exports.values()])
    journal, others = reader.journal, Counter[str]()
    for name, item in [(file, item) for file in exports for item in exports[file].iter("item")]:
        row = _read_row(item)
        kind, source = row["post_type"], f"{name}/{row['post_id']}"
        if kind in {"post", "page"} and row["status"] in _STATES:
            with journal.skipping_unreadable(source, row["title"]):
                reader.read(source, item)
        # Internal kinds, and items whose address has a query, never had a page.
        elif row["status"] == "publish" and not re.search(
            r"^(wp_|nav_|acf|shop_|custom|oembed|elementor|attachment|revision)|\?",
            f"{kind} {row['link']}",
        ):
            what = f"{row['title']!r} of the kind {kind}, at {_address(row['link'])}, is left out"
            journal.note(source, 0, what, "write a page of it")
        else:
            others[f"{kind} ({row['status']})"] += 1
        item.clear()  # a large export is not held twice
    for what, count in others.items():
        journal.note("", 0, f"{count} of the kind {what} are no texts", "see whether you miss them")
    published = {e.source.rpartition("/")[2]: e.source for e in journal.texts if e.address}
    journal.redirects |= {
        _address(row["link"]): f"source:{published[row['post_parent']]}"
        for row in reader.attachments.values()
        if row["post_parent"] in published
    } | {f"{reader.base}/page/{n}/": "posts:" for n in range(2, 3 + len(published) // 10)}
    return journal
