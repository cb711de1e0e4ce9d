"""Pictures of the content: measures and faults of their files, and their HTML on pages.

`measure` accepts any bytes, and never unpacks a picture that would fill the memory. On pages,
images get dimensions, lighter forms and loading attributes, and links to files get addresses.
Everything else, and every attribute that an author has set, stays as it is.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape, unescape
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from PIL import ExifTags, Image, UnidentifiedImageError
from selectolax.lexbor import LexborHTMLParser

from site_build.addresses import CONVERTED_SUFFIXES
from site_build.images.encode import KINDS, LONGEST_SIDE, Form, Picture, list_forms, scale_height
from site_build.site import Document
from site_build.text import shorten

UNSHOWN_SUFFIXES = (".tif", ".tiff")
"""Suffixes of pictures that most browsers do not show; their metadata cannot be removed here."""
PICTURE_SUFFIXES = frozenset(
    {
        ".apng",
        ".avif",
        ".gif",
        ".jfif",
        ".jpe",
        ".jpeg",
        ".jpg",
        ".png",
        ".svg",
        ".webp",
        *CONVERTED_SUFFIXES,
        *UNSHOWN_SUFFIXES,
    }
)

LARGEST_PICTURE = 40_000_000
"""Most bytes of a picture's file; no camera's picture for a page is larger."""
MOST_PIXELS = 60_000_000
"""Most pixels: each takes four bytes of memory, in several copies while forms are made."""

HEAVY_PICTURE = 2_000_000
"""Bytes above which the author is asked to save a picture smaller."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A picture's measures, or its faults."""

    picture: Picture | None
    """None for a file that no page can show, and for a drawing without measures."""
    fault: str = ""
    """Reason why no page can show it, and the fix."""
    remarks: tuple[str, ...] = ()
    """Lesser faults, each with its fix."""
    is_read: bool = True
    """False if the file could not be read, so that reading is tried again."""


MeasuredImages = Mapping[str, Measured]
"""Measures by path within the content folder."""


def is_picture(path: str) -> bool:
    """Return whether a file is a picture by its name."""
    return PurePosixPath(path).suffix.lower() in PICTURE_SUFFIXES


def measure(path: str, data: bytes) -> Measured:
    """Return the measures of the picture at `path`; never raises, whatever the bytes."""
    digest = hashlib.sha256(data).hexdigest()
    suffix = PurePosixPath(path).suffix.lower()
    if suffix == ".svg":
        return _measure_drawing(path, data, digest)
    if suffix in UNSHOWN_SUFFIXES:
        fault = "is of a kind that most browsers do not show, and is not published"
        return Measured(None, f"{fault}; save it as JPEG or PNG")
    try:
        with warnings.catch_warnings():
            # Our own limit for large pictures is checked below.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return _measure_raster(path, data, digest)
    except Image.DecompressionBombError:
        return Measured(None, _explain_size("far too many"))
    except UnidentifiedImageError:
        return Measured(None, "is no picture that can be read; save it anew")
    except Exception as refusal:  # noqa: BLE001 - decoders raise whatever they stumble over
        why = shorten(str(refusal).partition("<")[0].strip(" .") or type(refusal).__name__)
        return Measured(None, f"cannot be read ({why}); save it anew")


def _measure_raster(path: str, data: bytes, digest: str) -> Measured:
    if len(data) > LARGEST_PICTURE:
        return Measured(None, f"has more than {LARGEST_PICTURE // 1_000_000} MB; save it smaller")
    with Image.open(
        io.BytesIO(data), formats=("AVIF", "GIF", "HEIF", "JPEG", "PNG", "WEBP")
    ) as image:
        if image.width * image.height > MOST_PIXELS:
            return Measured(None, _explain_size(f"{image.width:,} × {image.height:,}"))  # noqa: RUF001
        # An MPO, which is a JPEG, or a HEIC may hold further pictures behind the first.
        is_container = image.format in {"MPO", "HEIF"}
        # A HEIC may be transparent, which a JPEG cannot be.
        converted = "webp" if image.has_transparency_data else "jpeg"
        kind = converted if is_container else str(image.format).lower()
        moves = getattr(image, "is_animated", False) and not is_container
        image.load()
        is_sideways = image.getexif().get(ExifTags.Base.Orientation) in range(5, 9)
        width, height = (image.height, image.width) if is_sideways else image.size
    share = min(1, LONGEST_SIDE / max(width, height))
    size = (max(1, round(width * share)), max(1, round(height * share)), len(data))
    still = not moves and kind != "gif"
    # Parts of an AVIF or a HEIC refer to each other by offsets, so metadata cannot be cut out.
    is_reduced = share < 1 or data[4:8] == b"ftyp"
    picture = Picture(path, digest, kind, *size, still, moves, is_reduced)
    if len(data) <= HEAVY_PICTURE or picture.is_reduced:
        return Measured(picture)
    weight = f"{len(data) / 1e6:.1f} MB; save it below {HEAVY_PICTURE // 1_000_000}"
    return Measured(picture, remarks=(f"the picture weighs {weight}",))


def _explain_size(count: str) -> str:
    return f"has {count} pixels, which no build unpacks; save it with fewer than {MOST_PIXELS:,}"


def _measure_drawing(path: str, data: bytes, digest: str) -> Measured:
    """Return the measures of an SVG, if it has any."""
    head = data[:65_536].decode(errors="replace")
    root = LexborHTMLParser(head).css_first("svg")
    if root is None:
        return Measured(None)
    has_notes = any(each.text().strip() for each in root.css("metadata"))
    remarks = (
        ("the drawing has `<metadata>`, which is published; take it out, or save plain SVG",)
        if has_notes
        else ()
    )
    declared = {name.lower(): value or "" for name, value in root.attributes.items()}
    width, height = (
        _read_length(declared.get("width", "")),
        _read_length(declared.get("height", "")),
    )
    if not (width and height):
        box = [
            _read_length(part) for part in re.split(r"[\s,]+", declared.get("viewbox", "").strip())
        ]
        width, height = box[2:4] if len(box) == 4 else (0, 0)  # noqa: PLR2004 - x, y, width, height
    if not (width and height):
        return Measured(None, remarks=remarks)
    size = (round(width), round(height), len(data))
    return Measured(Picture(path, digest, "svg", *size, still=False), remarks=remarks)


def _read_length(text: str) -> float:
    """Return a length in pixels; 0 for a text that is no length, or depends on the page."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)(?:px)?\s*", text)
    return float(found[1]) if found else 0.0


COLUMN = 620
"""Widest column of text in CSS pixels: the theme's measure of 31rem at its largest font size."""
_WIDEST_INLINE = 200
"""Widest picture that stays in its line, as badges do."""
_TOKEN = re.compile(
    r"""(?P<comment><!--)|(?P<end>-->)|(?P<picture></?picture\b)|(?P<link></?a\b)"""
    r"""|<img\b(?P<rest>(?:[^<>"']|"[^"]*"|'[^']*')*+)>""",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>]+))?""")


class Lead(NamedTuple):
    """The picture that represents a post in feeds, cards and lists."""

    path: str
    """Its path on the site, percent-encoded."""
    picture: Picture


@dataclass(frozen=True, slots=True)
class ImageSet:
    """The pictures that documents show, and their links to source files."""

    pictures: Mapping[str, Picture]
    """Pictures by path within the site."""
    shown: Mapping[str, tuple[str, ...]]
    """Paths of the pictures that a document shows, by the document's path."""
    links: Mapping[str, Mapping[str, str]]
    """The address for each link of a document to a source file, by the document's path."""

    def find_lead(self, post: Document) -> Lead | None:
        """Return a post's `image` if it can represent the post: on this site, still, not tiny."""
        address = self.links.get(post.path, {}).get(post.image, post.image)
        path = resolve(post.address, address)
        picture = self.pictures.get(path) if post.image else None
        return Lead(quote(path), picture) if picture and picture.can_lead else None

    def list_digests(self, document: str) -> list[tuple[str, str]]:
        """Return the links of a document, and digests of the pictures that it shows."""
        known = [path for path in self.shown.get(document, ()) if path in self.pictures]
        links = self.links.get(document, {}).items()
        return [*links, *((path, self.pictures[path].digest) for path in known)]

    def make_responsive(
        self,
        html: str,
        page: str,
        document: str,
        *,
        offers_forms: bool = True,
        column: int = 0,
    ) -> str:
        """Return a document's HTML with resolved links, and with forms and dimensions of images.

        Without `offers_forms`, images get dimensions only. A picture that is wider than `column`,
        in CSS pixels, is shown larger when it is pressed, without a script.
        """
        images = _Images(page, self.pictures, offers_forms, column)
        for written, address in self.links.get(document, {}).items():
            for name in ("href", "src"):
                html = html.replace(f'{name}="{escape(written)}"', f'{name}="{escape(address)}"')
        return _TOKEN.sub(images.replace, html) if re.search("<img", html, re.IGNORECASE) else html

    def list_forms(self, documents: Iterable[str], *more: str) -> Iterator[tuple[Picture, Form]]:
        """Yield the forms of the pictures of these documents and of `more` pictures, each once."""
        wanted = {path for each in documents for path in self.shown.get(each, ())} | {*more}
        pictures = [self.pictures[path] for path in sorted(wanted) if path in self.pictures]
        offered = {form.path: (each, form) for each in pictures for form in list_forms(each)}
        yield from offered.values()


def link_markdown(text: str, links: Mapping[str, str]) -> str:
    """Return the Markdown of a document whose links to source files are replaced by addresses."""
    for written, address in links.items():
        for sign in ("](", "]: "):
            text = text.replace(f"{sign}{written}", f"{sign}{address}")
    return text


@lru_cache(maxsize=100_000)  # several passes ask for the same
def resolve(page: str, address: str) -> str:
    """Return the path that an address on the page at `page` leads to; empty for another site's."""
    try:
        parts = urlsplit(urljoin(f"/{page}", address))
    except ValueError:
        return ""
    return "" if parts.scheme or parts.netloc else unquote(parts.path).removeprefix("/")


@dataclass(slots=True)
class _Images:
    """Replaces the images of one page, from its top, and keeps track of what they are in."""

    page: str
    pictures: Mapping[str, Picture]
    offers_forms: bool
    """Whether images get lighter forms and say when to load, besides their dimensions."""
    column: int
    """Width in CSS pixels from which a picture is shown larger when it is pressed; 0: never."""
    seen: int = 0
    """Number of images so far."""
    in_comment: bool = False
    in_picture: bool = False
    """Whether the next image is in a `<picture>` that the author wrote."""
    in_link: bool = False

    def replace(self, token: re.Match[str]) -> str:
        if self.in_comment or token["comment"] or token["end"]:
            self.in_comment = not token["end"]
            return token[0]
        if token["picture"]:
            self.in_picture = not token["picture"].startswith("</")
            return token[0]
        if token["link"]:
            self.in_link = not token["link"].startswith("</")
            return token[0]
        found = _ATTRIBUTE.findall(token["rest"])
        image = {name.lower(): unescape(value.strip("\"'")) for name, value in reversed(found)}
        picture = self.pictures.get(resolve(self.page, image.get("src", "").strip()))
        added = _add_dimensions(image, picture)
        if not self.offers_forms:
            return _write(token, added)
        self.seen += 1
        count = _count_in_row(token)
        if count > 1 and picture and picture.width > _WIDEST_INLINE and "class" not in image:
            # The style sheet has a class for each twentieth of width by height, from 0.4 to 3.
            shape = round(picture.width / picture.height * 20)
            added["class"] = f"shape-{min(max(shape, 8), 60)}"
        written = _write(token, {**added, **self._choose_loading(image)})
        forms = () if self.in_picture or "srcset" in image or not picture else list_forms(picture)
        if not forms or picture is None:
            return written
        width = min(_read_width(image) or picture.width, self.column or COLUMN)
        # The widest picture of a row takes more than its share; narrow windows have no rows.
        share = 1 if count == 1 else 1.4 / count
        sizes = f"min({94 * share:.0f}vw, {width * share:.0f}px), min(88vw, {width}px)"
        sizes = f"(min-width: 41em) {sizes}"
        shown = f"<picture>{_write_sources(forms, sizes)}{written}</picture>"
        if not self.column or self.in_link or picture.width <= COLUMN * share:
            return shown
        # No heading has such an id, since anchors have no dots.
        name, source = f"picture.{self.seen}", escape(image["src"])
        said = "" if image.get("alt") else ' aria-label="Larger picture"'
        large = (
            f'<picture>{_write_sources(forms, "96vw")}<img src="{source}" alt="" loading="lazy" '
            f'width="{picture.width}" height="{picture.height}"></picture>'
        )
        return (
            f'<button type="button" class="enlarge" popovertarget="{name}"{said}>{shown}</button>'
            f'<span class="enlarged" id="{name}" popover><button type="button" '
            f'popovertarget="{name}" aria-label="Close">{large}</button></span>'
        )

    def _choose_loading(self, image: dict[str, str]) -> dict[str, str]:
        """Return loading attributes: the first image is loaded at once, since it is seen first."""
        wanted = {"decoding": "async"}
        if self.seen > 1:
            wanted["loading"] = "lazy"
        elif image.get("loading", "") != "lazy":
            wanted["fetchpriority"] = "high"
        return {name: value for name, value in wanted.items() if name not in image}


def _count_in_row(token: re.Match[str]) -> int:
    """Return the number of images in the row of an image; 1 outside rows."""
    html, at = token.string, token.start()
    begin = html.rfind('<p class="pictures">', 0, at)
    is_inside = begin > html.rfind("</p>", 0, at)
    return html.count("<img", begin, html.find("</p>", at)) if is_inside else 1


def _add_dimensions(image: dict[str, str], picture: Picture | None) -> dict[str, str]:
    """Return the dimensions that the image lacks; a width set by its author gives the height."""
    if picture is None or "height" in image:
        return {}
    if "width" not in image:
        return {"width": str(picture.width), "height": str(picture.height)}
    width = _read_width(image)
    return {"height": str(scale_height(picture, width))} if width else {}


def _read_width(image: dict[str, str]) -> int:
    """Return the width that the author set in pixels, or 0."""
    text = image.get("width", "")
    return int(text) if re.fullmatch("[0-9]{1,5}", text) else 0


def _write_sources(forms: tuple[Form, ...], sizes: str) -> str:
    """Return a `<source>` for each kind of form, for an image that is shown in these `sizes`."""
    listed = {
        kind: ", ".join(f"/{quote(f.path)} {f.width}w" for f in forms if f.kind == kind)
        for kind in KINDS
    }
    return "".join(
        f'<source type="image/{kind}" srcset="{escape(paths)}" sizes="{sizes}">'
        for kind, paths in listed.items()
    )


def _write(token: re.Match[str], added: Mapping[str, str]) -> str:
    more = "".join(f' {name}="{value}"' for name, value in added.items())
    return f"<img{more}{token['rest']}>"
