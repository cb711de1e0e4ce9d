"""Rules of schema.org and its consumers for JSON-LD: the properties of each type in use.

Required is what a result in a search is not shown without; recommended ones are held all the same.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

Json = dict[str, Any]
_OF_TEXT: Final = {"headline", "author", "datePublished", "dateModified", "mainEntityOfPage"}
_REQUIRED: Final[Mapping[str, frozenset[str]]] = {
    "BlogPosting": frozenset({*_OF_TEXT, "description", "image", "publisher", "url"}),
    "BreadcrumbList": frozenset({"itemListElement"}),
    "ItemList": frozenset({"itemListElement"}),
    "ListItem": frozenset({"position"}),
    "WebSite": frozenset({"name", "url"}),
    "Organization": frozenset({"name", "url"}),
    "Person": frozenset({"name"}),
    "ImageObject": frozenset({"url"}),
    "SearchAction": frozenset({"target", "query-input"}),
    "EntryPoint": frozenset({"urlTemplate"}),
    "Blog": frozenset({"name", "url"}),
    "WebPage": frozenset(),
    "CollectionPage": frozenset({"name", "url"}),
    "ProfilePage": frozenset({"name", "url", "mainEntity"}),
    "AboutPage": frozenset({"name", "url"}),
    "ContactPage": frozenset({"name", "url"}),
    "SearchResultsPage": frozenset(),
    "ContactPoint": frozenset({"contactType"}),
    "TechArticle": frozenset({"headline"}),
    "WebAPI": frozenset({"name"}),
}
_INSTANTS: Final = ("datePublished", "dateModified")
_ADDRESSES: Final = ("url", "@id", "item", "logo", "contentUrl")


def graphs(html: bytes) -> list[Json]:
    """Return the JSON-LD of a page, a value for each element. Raises ValueError for no JSON."""
    nodes = LexborHTMLParser(html).css('script[type="application/ld+json"]')
    return [json.loads(node.text()) for node in nodes]


def nodes_of(value: Any) -> Iterator[Json]:
    """Yield every node that has a type, however deep."""
    if isinstance(value, dict):
        if "@type" in value:
            yield value
        for inner in value.values():
            yield from nodes_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes_of(inner)


def types_of(html: bytes) -> set[str]:
    """Return the types that a page is said to have."""
    return {str(node["@type"]) for graph in graphs(html) for node in nodes_of(graph)}


def faults_of(html: bytes) -> list[str]:
    """Return what is wrong with the JSON-LD of a page."""
    try:
        found = graphs(html)
    except ValueError as error:
        return [f"no JSON: {error}"]
    contexts = {str(graph.get("@context")) for graph in found}
    return [
        *(f"the context is {context}" for context in contexts - {"https://schema.org"}),
        *(fault for graph in found for node in nodes_of(graph) for fault in _of_node(node)),
    ]


def _of_node(node: Json) -> Iterator[str]:
    kind = str(node["@type"])
    if kind not in _REQUIRED:
        yield f"{kind} is a type that nobody here looked at"
    is_reference = set(node) <= {"@type", "@id"}
    if not is_reference:
        missing = _REQUIRED.get(kind, frozenset()) - node.keys()
        yield from (f"{kind} lacks {name}" for name in sorted(missing))
    yield from (f"{kind}: {name} is empty" for name, value in node.items() if value in ("", [], {}))
    yield from (f"{kind}: {fault}" for fault in _of_values(node))
    if kind in ("BreadcrumbList", "ItemList"):
        yield from _of_list(kind, node.get("itemListElement", []))


def _of_values(node: Json) -> Iterator[str]:
    for name in _INSTANTS:
        if name in node and not _is_instant(node[name]):
            yield f"{name} {node[name]!r} is no instant with a zone"
    for name in _ADDRESSES:
        value = node.get(name)
        if isinstance(value, str) and not value.startswith(("http://", "https://")):
            yield f"{name} {value!r} is not absolute"
    if all(name in node for name in _INSTANTS) and node["dateModified"] < node["datePublished"]:
        yield "modified before it was published"


def _is_instant(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _of_list(kind: str, items: Any) -> Iterator[str]:
    entries = items if isinstance(items, list) else []
    positions = [entry.get("position") for entry in entries]
    if not positions or positions != list(range(positions[0], positions[0] + len(positions))):
        yield f"{kind}: positions are {positions}"
    if kind == "BreadcrumbList":
        # The last may leave its address out: it is the page itself.
        yield from (
            f"{kind}: a crumb lacks name or item"
            for entry in entries[:-1]
            if not {"name", "item"} <= entry.keys()
        )
