"""Targets of files beside the pages: the theme's static files, cards, pictures and content files.

The theme's files get names with digests. Style sheets lose their comments, and refer to other files
by the new names. This module knows nothing of pages.
"""

import hashlib
import os
import re
from collections.abc import Container, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import quote, unquote

from site_build import addresses
from site_build.build.fingerprint import HOUSE_THEME, Style
from site_build.build.targets import FileTarget, ImageTarget, Target, TextTarget
from site_build.cache import make_key
from site_build.checks.facts import list_uses
from site_build.content.sources import Content, read_bytes, show_path
from site_build.errors import BuildError
from site_build.images.card import (
    PHOTOGRAPH_SIZE,
    Card,
    CardPlace,
    choose_hue,
    digest_card,
    draw_card,
)
from site_build.images.edge import PHOTOGRAPH_KINDS, crop, crop_key, draw_landscape
from site_build.images.encode import Picture, cut, encode
from site_build.images.fonts import Font, read_font
from site_build.images.responsive import UNSHOWN_SUFFIXES, ImageSet, Lead
from site_build.progress import Request
from site_build.site import Document, Identity, Site
from site_build.text import make_slug

FONT = "fonts/SourceSerif4-SemiBold.ttf"
"""The font of cards, within the theme; a theme without it has no cards."""


def find_font(theme: Path) -> Font | None:
    """Return the font of the theme's cards, or None; raises OSError if it cannot be read."""
    path = theme / FONT
    return read_font(path) if path.is_file() else None


def find_leads(site: Site, images: ImageSet) -> dict[str, Lead]:
    """Return the pictures that represent posts, by the posts' slugs."""
    posts = (each for each in site.documents if each.kind == "post")
    return {post.slug: lead for post in posts if (lead := images.find_lead(post))}


def find_card(font: Font | None, leads: Mapping[str, Lead], slug: str = "") -> CardPlace | None:
    """Return the place of a post's card, or of the site's; None if the theme has no cards."""
    kind = "jpeg" if slug in leads else "png"
    path = addresses.locate_card(slug, kind) if slug else addresses.SITE_CARD
    return CardPlace(quote(path), kind=kind) if font else None


def design_card(identity: Identity, post: Document, picture: Picture | None = None) -> Card:
    """Return the card of a post, which shows `picture` beside the title if there is one."""
    return Card(
        site=identity.name,
        title=post.title,
        day=identity.language.format_day(post.published),
        hues=tuple(choose_hue(make_slug(tag)) for tag in post.tags),
        photograph=picture.folder if picture else "",
    )


def list_cards(folder: Path, content: Content, site: Site, font: Font) -> Iterator[Target]:
    """Yield a target for the card of each post and for that of the site."""
    cards = {addresses.SITE_CARD: Card(site.identity.name, hues=_choose_hues(site))}
    leads = find_leads(site, content.image_set)
    for post in (each for each in site.documents if each.kind == "post"):
        # A post with a picture also keeps its card without one, to whose address others may link.
        cards[addresses.locate_card(post.slug)] = design_card(site.identity, post)
        if post.slug in leads:
            picture = leads[post.slug].picture
            card = design_card(site.identity, post, picture)
            file = content.former.get(picture.path, folder / picture.path)
            draw = partial(
                draw_card, card, font, partial(cut, file, picture, PHOTOGRAPH_SIZE, "white")
            )
            path = addresses.locate_card(post.slug, "jpeg")
            yield ImageTarget(path, digest_card(card, font), draw, picture.folder)
    for path, card in cards.items():
        yield ImageTarget(path, digest_card(card, font), partial(draw_card, card, font))


def find_edge_picture(site: Site, images: ImageSet) -> Picture | None:
    """Return the picture on the fore-edge: that of the settings, or the newest photograph."""
    if site.identity.edge_image:
        return images.pictures.get(site.identity.edge_image)
    leads = (images.find_lead(post) for post in site.posts)
    return next((e.picture for e in leads if e and e.picture.kind in PHOTOGRAPH_KINDS), None)


def list_edge_pictures(folder: Path, content: Content, site: Site) -> Iterator[Target]:
    """Yield the target of the picture on the fore-edge, or of the landscape in its place."""
    if picture := find_edge_picture(site, content.image_set):
        file = content.former.get(picture.path, folder / picture.path)
        yield ImageTarget(
            f"{addresses.FORE_EDGE}picture.webp", crop_key(picture), partial(crop, file, picture)
        )
        return
    for name, night in (("day", False), ("night", True)):
        drawn = draw_landscape(site.identity.name, _choose_hues(site), night=night)
        yield TextTarget(f"{addresses.FORE_EDGE}{name}.svg", drawn.encode())


def _choose_hues(site: Site) -> tuple[int, ...]:
    """Return the hues of the seven tags that most posts carry."""
    tags = sorted(site.tags, key=lambda tag: (-len(tag.posts), tag.slug))
    return tuple(choose_hue(tag.slug) for tag in tags[:7])


def list_pictures(folder: Path, content: Content, site: Site) -> Iterator[Target]:
    """Yield a target for each size and format in which the site's pages offer a picture."""
    documents = (each.path for each in site.documents)
    for picture, form in content.image_set.list_forms(documents, site.identity.portrait):
        file = content.former.get(picture.path, folder / picture.path)
        yield ImageTarget(form.path, make_key(form.path), partial(encode, file, picture, form))


def list_files(folder: Path, content: Content, withheld: Container[str]) -> Iterator[Target]:
    """Yield a target for every file of the content folder that is published."""
    for source, path in content.files.items():
        picture = content.image_set.pictures.get(source)
        if path in withheld or source.lower().endswith(UNSHOWN_SUFFIXES):
            continue
        if former := content.former.get(source):
            yield TextTarget(path, former.read_bytes)
        elif source.lower().endswith(addresses.CONVERTED_SUFFIXES) and (
            picture is None or f"{source}.jpg" in content.files
        ):
            continue  # a damaged HEIC, or one that its author has converted
        elif picture and picture.is_reduced:
            yield ImageTarget(
                path,
                make_key(picture.reduced_key),
                partial(encode, folder / picture.path, picture),
                picture.folder,
            )
        else:
            yield FileTarget(path, folder / source)


def find_withheld(content: Content, site: Site, request: Request, style: Style) -> set[str]:
    """Return paths of files that are not published, since only drafts and scheduled posts use them.

    A file is published if the theme, the settings or a published file may name it.
    """
    public = site.documents
    hidden = (each for each in content.documents if not each.is_public_at(request.now))
    found = list_uses(hidden, content.facts, content.files).intersection(content.files.values())
    # Sources with errors are held back, and so is each file whose name occurs in one of them.
    named, said = r"(?<![\w-]){}(?![\w-])", ""
    for path in (request.content / each.path for each in content.held):
        if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK):
            said += read_bytes(path.parent, path.name).replace(b"\0", b"").decode(errors="ignore")
    # A file that is published already stays, since other pages may use it.
    new = (e for e in content.files.values() if not (request.site_folder / e).is_file())
    found |= {e for e in new if re.search(named.format(re.escape(PurePosixPath(e).name)), said)}
    found -= found and list_uses(public, content.facts, content.files)
    if not found:
        return found
    themes = {*map(Path.resolve, (*style.overrides, style.theme))} - {HOUSE_THEME}
    others = (
        *(path for folder in themes for path in folder.rglob("*")),
        *(content.former.get(each, request.content / each) for each in content.files),
    )
    words = [
        each.read_text(errors="ignore")
        for each in others
        if each.suffix in {".css", ".htm", ".html", ".js", ".json", ".svg", ".txt", ".xml"}
    ]
    words += (f"{each.extra} {content.facts[each.path].external}" for each in public)
    text = unquote(f"{style.settings_text} {' '.join(words)}")
    return {e for e in found if not re.search(named.format(re.escape(PurePosixPath(e).name)), text)}


REFERENCE = re.compile(
    rb"""(?:url\(\s*(?P<quote>["']?)(?P<address>[^"')\s]+)(?P=quote)\s*\)"""
    rb"""|(?P<import>@import\s+)(?P<sign>["'])(?P<sheet>[^"'\s]+)(?P=sign))"""
)
"""A reference of a style sheet to another file."""
_COMMENT_OR_INDENT = re.compile(
    rb"""(?P<kept>"(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | url\([^"')]*\) | /\*!.*?\*/
    | \\[0-9a-fA-F]{1,6}(?:\s|/\*.*?\*/)*)
    | (?P<before>\s*) /\*(?!!).*?\*/ (?P<after>\s*) | (?<=[{},;])(?P<gap>\s{2,})""",
    re.DOTALL | re.VERBOSE,
)
"""A comment or indent of a style sheet, or a token that may contain one (CSS Syntax Level 3, 4.3).
A comment that begins with `!` is usually a licence: it is kept, as are spaces after an escape."""


class Asset(NamedTuple):
    """A static file as it is published."""

    path: str
    data: bytes


class Assets:
    """The theme's static files by the names that its author gave them."""

    def __init__(self, folder: Path, default_folder: Path | None = None) -> None:
        """Publish the files of a theme's `folder`, and those of the default theme's folder.

        A file of `folder` replaces one of `default_folder`. Themes of others refer to their files
        by names without digests, so with `default_folder` those of `folder` are published under
        these names as well.
        Raises BuildError.
        """
        self.published: dict[str, Asset] = {}
        own = _list_files(folder)
        self._originals = {**_list_files(default_folder), **own} if default_folder else own
        for name in self._originals:
            if name != (shown := show_path(name)):
                raise BuildError(f"{shown} in {folder} has a name that is no text; rename it")
            self._publish(name, ())
        found = own if default_folder else ()
        self.unhashed = [self.published[e]._replace(path=f"{addresses.THEME}{e}") for e in found]

    def _publish(self, name: str, sheets: tuple[str, ...]) -> None:
        """Publish a file after those that it refers to; `sheets` are the sheets that led to it.

        Raises BuildError when a sheet refers to a missing file, or imports itself through others.
        """
        if name in self.published:
            return
        if name in sheets:
            circle = ", ".join(sheets[sheets.index(name) :])
            raise BuildError(f"the style sheets {circle} import each other; take an @import out")
        data = self._originals[name].read_bytes()
        if name.endswith(".css"):
            data = self._rename_references((*sheets, name), _minify(data))
        # Twelve digits tell all versions of a file apart.
        path, digest = PurePosixPath(name), hashlib.sha256(data).hexdigest()[:12]
        renamed = path.with_name(f"{path.stem}.{digest}{path.suffix}")
        self.published[name] = Asset(f"{addresses.THEME}{renamed}", data)

    def locate(self, name: str) -> str:
        """Return the address of a static file from the root; raises BuildError if it is missing."""
        if name not in self.published:
            raise BuildError(f"a template asks for asset('{name}'), which is not in theme/static/")
        return f"/{self.published[name].path}"

    def embed(self, name: str) -> str:
        """Return an SVG picture as a `data:` address (RFC 2397); raises BuildError for others."""
        if not name.endswith(".svg"):
            raise BuildError(f"a template asks for embedded('{name}'), which is for SVG pictures")
        self.locate(name)
        source = re.sub(rb">\s+<", b"><", self.published[name].data.strip())
        # These characters need no escape in an address (URL Standard, section 4.3).
        return "data:image/svg+xml," + quote(source, safe="!$&'()*+,-./:;=?@_~")

    def _rename_references(self, sheets: tuple[str, ...], data: bytes) -> bytes:
        sheet = sheets[-1]

        def rename(found: re.Match[bytes]) -> bytes:
            address = (found["address"] or found["sheet"]).decode()
            if re.match(r"[a-z][a-z0-9+.-]*:|/|#", address, re.IGNORECASE):  # outside of the theme
                return found[0]
            path, rest = re.match(r"([^?#]*)(.*)", address).groups()  # type: ignore[union-attr]
            name = normpath(PurePosixPath(sheet).parent / path)
            if name not in self._originals:
                raise BuildError(f"static/{sheet} of the theme names {address}, which is not there")
            self._publish(name, sheets)
            prefix = (found["import"] or b"").decode()
            return f'{prefix}url("{self.locate(name)}{rest}")'.encode()

        return REFERENCE.sub(rename, data)


def _minify(sheet: bytes) -> bytes:
    """Return a style sheet without comments and most indents, with the same tokens."""

    def shorten(found: re.Match[bytes]) -> bytes:
        has_space = found["before"] or found["after"] or found["gap"]
        return found["kept"] or (b"\n" if has_space else b"/**/")

    return _COMMENT_OR_INDENT.sub(shorten, sheet).lstrip()


def _list_files(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
