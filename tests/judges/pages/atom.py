"""Validation of Atom feeds, by RFC 4287 and the rules that the W3C's validator adds to it.

It knows neither the product nor HTTP. A fault is a sentence that names the element.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import feedparser  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser

_ATOM: Final = "{http://www.w3.org/2005/Atom}"
_XML: Final = "{http://www.w3.org/XML/1998/namespace}"
_TEXTS: Final = frozenset({"title", "subtitle", "summary", "rights", "content"})
_PERSON: Final = frozenset({"name", "uri", "email"})
_OF_BOTH: Final = {"author", "category", "contributor", "id", "link", "rights", "title", "updated"}
_OF_FEED: Final = frozenset({*_OF_BOTH, "generator", "icon", "logo", "subtitle", "entry"})
_OF_ENTRY: Final = frozenset({*_OF_BOTH, "content", "published", "source", "summary"})
_ONCE: Final = (_OF_FEED | _OF_ENTRY) - {"author", "category", "contributor", "link", "entry"}
_ATTRIBUTES: Final[Mapping[str, frozenset[str]]] = {
    "link": frozenset({"href", "rel", "type", "hreflang", "title", "length"}),
    "category": frozenset({"term", "scheme", "label"}),
    "generator": frozenset({"uri", "version"}),
    "content": frozenset({"type", "src"}),
    **{name: frozenset({"type"}) for name in _TEXTS - {"content"}},
}
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_RUNS: Final = "script, style, iframe, object, embed, applet, form, meta, link, base"
_ADDRESSES: Final = ("href", "src", "poster", "cite")


def faults_of(feed: bytes, url: str) -> list[str]:
    """Return what is wrong with a feed that was served at `url`."""
    try:
        root = ET.fromstring(feed)  # noqa: S314  a feed of our own
    except ET.ParseError as error:
        return [f"not well-formed XML: {error}"]
    if root.tag != f"{_ATOM}feed":
        return [f"the root is {root.tag}, not atom:feed"]
    return [*_of_feed(root, url), *_of_a_reader(feed)]


def _of_a_reader(feed: bytes) -> Iterator[str]:
    """Yield what a reader of feeds in wide use stumbles over."""
    read = feedparser.parse(feed, sanitize_html=False)
    if read.bozo:
        yield f"feedparser: {read.get('bozo_exception')}"
    if read.version != "atom10":
        yield f"feedparser takes it for {read.version!r}"


def _of_feed(feed: ET.Element, url: str) -> Iterator[str]:
    entries = feed.findall(f"{_ATOM}entry")
    yield from _of_container(feed, _OF_FEED, ("id", "title", "updated"))
    yield from _of_self(feed, url)
    if feed.find(f"{_ATOM}author") is None and not all(
        entry.find(f"{_ATOM}author") is not None for entry in entries
    ):
        yield "feed: neither the feed nor each entry has an author (4.1.1)"
    if not feed.get(f"{_XML}lang"):
        yield "feed: xml:lang is missing"
    ids = Counter(entry.findtext(f"{_ATOM}id") for entry in entries)
    yield from (
        f"entry: the id {found} stands {count} times" for found, count in ids.items() if count > 1
    )
    instants = [entry.findtext(f"{_ATOM}published") or "" for entry in entries]
    if instants != sorted(instants, reverse=True):
        yield "feed: entries are not newest first"
    for entry in entries:
        yield from _of_entry(entry)


def _of_self(feed: ET.Element, url: str) -> Iterator[str]:
    links = feed.findall(f"{_ATOM}link")
    own = [link.get("href") for link in links if link.get("rel") == "self"]
    if own != [url]:
        yield f"feed: link rel=self is {own}, served at {url}"


def _of_entry(entry: ET.Element) -> Iterator[str]:
    yield from _of_container(entry, _OF_ENTRY, ("id", "title", "updated"))
    links = [
        link
        for link in entry.findall(f"{_ATOM}link")
        if link.get("rel", "alternate") == "alternate"
    ]
    content = entry.find(f"{_ATOM}content")
    if not links and content is None:
        yield "entry: neither content nor a link rel=alternate (4.1.2)"
    kinds = Counter((link.get("type"), link.get("hreflang")) for link in links)
    yield from (
        f"entry: {count} alternates of {kind}" for kind, count in kinds.items() if count > 1
    )
    published, updated = (entry.findtext(f"{_ATOM}{name}") for name in ("published", "updated"))
    if published and updated and published > updated:
        yield f"entry: updated {updated} before it was published {published}"
    if content is not None and content.get("src") and entry.find(f"{_ATOM}summary") is None:
        yield "entry: content elsewhere needs a summary (4.1.2)"


def _of_container(
    parent: ET.Element, known: frozenset[str], required: tuple[str, ...]
) -> Iterator[str]:
    """Yield what is wrong with the children of a feed or an entry."""
    place = parent.tag.removeprefix(_ATOM)
    names = Counter(
        child.tag.removeprefix(_ATOM) for child in parent if child.tag.startswith(_ATOM)
    )
    yield from (f"{place}: {name} is missing" for name in required if not names[name])
    yield from (f"{place}: {name} is not Atom's" for name in names if name not in known)
    yield from (f"{place}: {name} more than once" for name in _ONCE if names[name] > 1)
    for child in parent:
        if child.tag.startswith(_ATOM) and child.tag != f"{_ATOM}entry":
            yield from (f"{place}: {fault}" for fault in _of_element(child))


def _of_element(element: ET.Element) -> Iterator[str]:
    name = element.tag.removeprefix(_ATOM)
    text = element.text or ""
    allowed = _ATTRIBUTES.get(name, frozenset())
    own = {key for key in element.attrib if not key.startswith("{")}
    yield from (f"{name} has an attribute {key}" for key in sorted(own - allowed))
    if name in ("updated", "published"):
        yield from _of_instant(name, text)
    if name == "id" and not urlsplit(text).scheme:
        yield f"id {text!r} is no IRI"
    if name == "link":
        yield from _of_link(element)
    if name == "category" and not element.get("term"):
        yield "category without a term"
    if name in ("author", "contributor"):
        yield from _of_person(element)
    if name in _TEXTS:
        yield from _of_text(name, element.get("type", "text"), text)


def _of_instant(name: str, text: str) -> Iterator[str]:
    try:
        is_right = bool(_INSTANT.fullmatch(text)) and bool(datetime.fromisoformat(text))
    except ValueError:
        is_right = False
    if not is_right:
        yield f"{name} {text!r} is no date-time (RFC 3339)"


def _of_link(link: ET.Element) -> Iterator[str]:
    href, kind = link.get("href", ""), link.get("type")
    if not urlsplit(href).scheme:
        yield f"link to {href!r} is not absolute"
    if kind is not None and not re.fullmatch(r"[\w.+-]+/[\w.+-]+(;.*)?", kind):
        yield f"link has the type {kind!r}, which is no media type"


def _of_person(person: ET.Element) -> Iterator[str]:
    names = [child.tag.removeprefix(_ATOM) for child in person]
    if names.count("name") != 1 or not (person.findtext(f"{_ATOM}name") or "").strip():
        yield "a person needs one name (3.2.1)"
    yield from (f"a person has no {name}" for name in names if name not in _PERSON)


def _of_text(name: str, kind: str, text: str) -> Iterator[str]:
    """Yield what is wrong with a text construct (3.1), and with HTML in it."""
    if kind not in ("text", "html", "xhtml"):
        yield f"{name} has the type {kind!r}"
    if name == "title" and not text.strip():
        yield "title is empty"
    if kind == "text" and re.search(r"</?[a-z]+[\s>]|&(?:[a-z]+|#\d+);", text) and name != "title":
        yield f"{name} of type text looks like HTML"
    if kind == "html":
        yield from (f"{name}: {fault}" for fault in faults_of_html(text))


def faults_of_html(html: str) -> Iterator[str]:
    """Yield what HTML may not have that others show: scripts, relative addresses."""
    tree = LexborHTMLParser(f"<body>{html}</body>")
    for node in tree.css(f"body :is({_RUNS})"):
        yield f"holds <{node.tag}>"
    for node in tree.css("body *"):
        for key, value in node.attributes.items():
            if key.startswith("on") or key == "style":
                yield f"holds {key}="
            elif key in _ADDRESSES and not re.match(r"(?:https?|mailto):|#", value or ""):
                yield f"{key} is {value!r}, neither absolute nor harmless"
