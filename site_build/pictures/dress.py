"""Dresses the images of a page: dimensions, lighter forms to choose from, and when to load.

It changes tags of HTML and leaves all else as it is; what a page's author has set stays.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape, unescape
from urllib.parse import quote, unquote, urljoin, urlsplit

from site_build.pictures.encode import KINDS, Form, Picture, list_forms, scale_height

COLUMN = 620
"""Widest column of text in CSS pixels: the theme's measure of 31rem at its largest font size."""
_NARROW = "41em"
"""Width of a window below which the column is as wide as the window lets it."""
_SHARE = "88vw"
"""What margins leave of such a window."""

_TOKEN = re.compile(
    r"""(?P<comment><!--)|(?P<end>-->)|(?P<picture></?picture\b)"""
    r"""|<img\b(?P<rest>(?:[^<>"']|"[^"]*"|'[^']*')*+)>""",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>]+))?""")

Pictures = Mapping[str, Picture]
"""By path within the site."""


def resolve(page: str, address: str) -> str:
    """Return the path that an address on the page at `page` means; empty for another site's."""
    try:
        parts = urlsplit(urljoin(f"/{page}", address))
    except ValueError:
        return ""
    return "" if parts.scheme or parts.netloc else unquote(parts.path).removeprefix("/")


def dress(html: str, page: str, pictures: Pictures) -> str:
    """Return the HTML of the page at `page` with its images dressed."""
    return _TOKEN.sub(_Dresser(page, pictures).dress, html)


def state_sizes(html: str, page: str, pictures: Pictures) -> str:
    """Return the HTML with dimensions on its images and no more, as feeds and the API want it."""
    return _TOKEN.sub(_Dresser(page, pictures).state_size, html)


@dataclass(slots=True)
class _Dresser:
    """A walk over the images of one page, from its top."""

    page: str
    pictures: Pictures
    seen: int = 0
    """Images so far."""
    unread: bool = False
    """Within a comment."""
    chosen: bool = False
    """Within a `<picture>` of the author's own."""

    def dress(self, token: re.Match[str]) -> str:
        image = self._read(token)
        if image is None:
            return token[0]
        self.seen += 1
        picture = self._find(image)
        added = {**_measure(image, picture), **self._load(image)}
        forms = () if picture is None or self.chosen or "srcset" in image else list_forms(picture)
        if not forms or picture is None:
            return _write(token, added)
        sizes = _state_width(_read_width(image) or picture.width)
        return f"<picture>{_offer(forms, sizes)}{_write(token, added)}</picture>"

    def state_size(self, token: re.Match[str]) -> str:
        image = self._read(token)
        if image is None:
            return token[0]
        return _write(token, _measure(image, self._find(image)))

    def _read(self, token: re.Match[str]) -> dict[str, str] | None:
        """Return an image's attributes; for what is no image, note where it leads, and None."""
        if self.unread or token["comment"] or token["end"]:
            self.unread = not token["end"]
            return None
        if token["picture"]:
            self.chosen = not token["picture"].startswith("</")
            return None
        found = _ATTRIBUTE.findall(token["rest"])
        return {name.lower(): unescape(value.strip("\"'")) for name, value in reversed(found)}

    def _find(self, image: dict[str, str]) -> Picture | None:
        return self.pictures.get(resolve(self.page, image.get("src", "").strip()))

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


def _state_width(width: int) -> str:
    """Return how wide an image of that width is shown, as `sizes` says it."""
    return f"(min-width: {_NARROW}) {min(width, COLUMN)}px, {_SHARE}"


def _offer(forms: tuple[Form, ...], sizes: str) -> str:
    """Return a source for each kind of form."""
    offered = (
        (kind, ", ".join(f"/{quote(f.path)} {f.width}w" for f in forms if f.kind == kind))
        for kind in KINDS
    )
    return "".join(
        f'<source type="image/{kind}" srcset="{escape(listed)}" sizes="{sizes}">'
        for kind, listed in offered
    )


def _write(token: re.Match[str], added: Mapping[str, str]) -> str:
    """Return the image's tag with more attributes."""
    more = "".join(f' {name}="{value}"' for name, value in added.items())
    return f"<img{more}{token['rest']}>"
