"""Responsive images: dimensions, lighter forms to choose from, when to load, and links to files.

It changes tags of HTML and leaves all else as it is; what a page's author has set stays.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape, unescape
from urllib.parse import quote, unquote, urljoin, urlsplit

from site_build.images.encode import KINDS, Form, Picture, list_forms, scale_height

COLUMN = 620
"""Widest column of text in CSS pixels: the theme's measure of 31rem at its largest font size."""
_NARROW = "41em"
"""Width of a window below which the column is as wide as the window lets it."""
_SHARE = "88vw"
"""What margins leave of such a window."""

_IMAGE = re.compile("<img", re.IGNORECASE)
_TOKEN = re.compile(
    r"""(?P<comment><!--)|(?P<end>-->)|(?P<picture></?picture\b)"""
    r"""|<img\b(?P<rest>(?:[^<>"']|"[^"]*"|'[^']*')*+)>""",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>]+))?""")


@dataclass(frozen=True, slots=True)
class ImageSet:
    """The pictures that documents show, and their links to source files."""

    pictures: Mapping[str, Picture]
    """By path within the site."""
    shown: Mapping[str, tuple[str, ...]]
    """Paths of the pictures that a document shows, by the document's path."""
    links: Mapping[str, Mapping[str, str]]
    """The address for each link of a document to a source file, by the document's path."""

    def list_digests(self, document: str) -> list[tuple[str, str]]:
        """Return what stands for the links of a document, and for the pictures that it shows."""
        known = [path for path in self.shown.get(document, ()) if path in self.pictures]
        links = self.links.get(document, {}).items()
        return [*links, *((path, self.pictures[path].digest) for path in known)]

    def make_responsive(
        self, html: str, page: str, document: str, *, offers_forms: bool = True
    ) -> str:
        """Return a document's HTML with its links and images; dimensions alone without forms."""
        images = _Images(page, self.pictures, offers_forms)
        for written, address in self.links.get(document, {}).items():
            for name in ("href", "src"):
                html = html.replace(f'{name}="{escape(written)}"', f'{name}="{escape(address)}"')
        return _TOKEN.sub(images.replace, html) if _IMAGE.search(html) else html

    def list_forms(self, documents: Iterable[str], *more: str) -> Iterator[tuple[Picture, Form]]:
        """Yield every form that pages of these documents offer, and of `more`, equal ones once."""
        wanted = {path for each in documents for path in self.shown.get(each, ())} | {*more}
        pictures = [self.pictures[path] for path in sorted(wanted) if path in self.pictures]
        offered = {form.path: (each, form) for each in pictures for form in list_forms(each)}
        yield from offered.values()


def link_markdown(text: str, links: Mapping[str, str]) -> str:
    """Return the Markdown of a document with addresses for its links to source files."""
    for written, address in links.items():
        for sign in ("](", "]: "):
            text = text.replace(f"{sign}{written}", f"{sign}{address}")
    return text


@lru_cache(maxsize=100_000)  # several passes ask for the same
def resolve(page: str, address: str) -> str:
    """Return the path that an address on the page at `page` means; empty for another site's."""
    try:
        parts = urlsplit(urljoin(f"/{page}", address))
    except ValueError:
        return ""
    return "" if parts.scheme or parts.netloc else unquote(parts.path).removeprefix("/")


@dataclass(slots=True)
class _Images:
    """A walk over the images of one page, from its top."""

    page: str
    pictures: Mapping[str, Picture]
    offers_forms: bool
    """Whether images get lighter forms and say when to load, besides their dimensions."""
    seen: int = 0
    """Images so far."""
    in_comment: bool = False
    in_picture: bool = False
    """Within a `<picture>` of the author's own."""

    def replace(self, token: re.Match[str]) -> str:
        if self.in_comment or token["comment"] or token["end"]:
            self.in_comment = not token["end"]
            return token[0]
        if token["picture"]:
            self.in_picture = not token["picture"].startswith("</")
            return token[0]
        found = _ATTRIBUTE.findall(token["rest"])
        image = {name.lower(): unescape(value.strip("\"'")) for name, value in reversed(found)}
        picture = self.pictures.get(resolve(self.page, image.get("src", "").strip()))
        added = _measure(image, picture)
        if not self.offers_forms:
            return _write(token, added)
        self.seen += 1
        written = _write(token, {**added, **self._load(image)})
        forms = () if self.in_picture or "srcset" in image or not picture else list_forms(picture)
        if not forms or picture is None:
            return written
        width = min(_read_width(image) or picture.width, COLUMN)
        return f"<picture>{_offer(forms, width)}{written}</picture>"

    def _load(self, image: dict[str, str]) -> dict[str, str]:
        """Return when to load: the first image at once, for it may be what a reader sees first."""
        wanted = {"decoding": "async"}
        if self.seen > 1:
            wanted["loading"] = "lazy"
        elif image.get("loading", "") != "lazy":
            wanted["fetchpriority"] = "high"
        return {name: value for name, value in wanted.items() if name not in image}


def _measure(image: dict[str, str], picture: Picture | None) -> dict[str, str]:
    """Return the dimensions that the image lacks; one that its author set gives the other."""
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


def _offer(forms: tuple[Form, ...], width: int) -> str:
    """Return a source for each kind of form, for an image that is shown in that width."""
    sizes = f"(min-width: {_NARROW}) {width}px, {_SHARE}"
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
