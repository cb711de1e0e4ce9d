"""Documents of a running site for programs, read as they read them, with all that they link to."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson

LINK = re.compile(r"<([^>]*)>((?:;\s*[a-z-]+=\"[^\"]*\")*)")
PARAMETER = re.compile(r";\s*([a-z-]+)=\"([^\"]*)\"")
JSON_LD = re.compile(r'<script type="application/ld\+json">(.*?)</script>', re.DOTALL)
TEMPLATED = re.compile(r"\{[a-z_]+\}")


@dataclass(frozen=True)
class Answer:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """The type without its parameters."""
        return self.headers.get("Content-Type", "").partition(";")[0]

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)

    @property
    def links(self) -> list["Link"]:
        """The links of its header (RFC 8288)."""
        return list(read_links(self.headers.get("Link", "")))

    @property
    def graph(self) -> list[Any]:
        """The JSON-LD of the page."""
        return [
            node for each in JSON_LD.findall(self.text) for node in orjson.loads(each)["@graph"]
        ]


@dataclass(frozen=True)
class Link:
    """An address, and what is said of it."""

    href: str
    rel: str
    type: str


def read_links(header: str) -> Iterator[Link]:
    """Yield each link of a header."""
    for href, parameters in LINK.findall(header):
        said = dict(PARAMETER.findall(parameters))
        yield Link(href, said.get("rel", ""), said.get("type", ""))


@dataclass(frozen=True)
class Visitor:
    """A program that reads a running edge, whose site is at `origin`."""

    edge: Any
    origin: str

    async def get(self, address: str, **headers: str) -> Answer:
        """Return the answer for a path, or for a URL of the site."""
        parts = urlsplit(urljoin(f"{self.origin}/", address))
        assert address.startswith(("/", f"{self.origin}/")), f"{address} is not of this site"
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.edge.ask("GET", path, headers=named) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    def own(self, text: str) -> list[str]:
        """Return each URL of this site in a text; those that are to be filled in, filled in."""
        found = re.findall(rf"{re.escape(self.origin)}/[^\s\"'<>)\]`|\\]*", text)
        urls = [url.partition("#")[0].rstrip(".,:;") for url in found if "$" not in url]
        return [TEMPLATED.sub("light", url) for url in urls]
