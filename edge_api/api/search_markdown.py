"""A page of results in Markdown, for who reads that rather than HTML."""

from typing import Final

from edge_api.api.markdown import escape
from edge_api.api.search_results import Result, Results
from edge_api.schema.search import Segments

TWIN: Final = "index.md"
"""The name of a post's Markdown, below its address."""


def write_results(results: Results, site_url: str) -> str:
    """Return the Markdown; addresses begin with `site_url`."""
    title = f"# Search: {escape(results.words)}" if results.words else "# Search"
    links = [("Earlier results", results.before), ("More results", results.behind)]
    onward = [f"[{label}]({site_url}{address})" for label, address in links if address]
    listed = "\n".join(map(_line, results.results))
    parts = (title, _sentence(results, site_url), _suggestion(results, site_url), listed, *onward)
    return "\n\n".join(filter(None, parts)) + "\n"


def _sentence(results: Results, site_url: str) -> str:
    if not results.words:
        return f"Give words in the address: `{site_url}/search?q=words`."
    if not results.total:
        return f"{results.sentence} [Every tag]({site_url}/tags/) is listed."
    leaf = f" Page {results.page} of {results.pages}." if results.pages > 1 else ""
    return f"{results.sentence}{leaf}"


def _suggestion(results: Results, site_url: str) -> str:
    if not results.suggestion:
        return ""
    address = f"{site_url}{results.suggested_address}"
    return f"Did you mean [{escape(results.suggestion)}]({address})?"


def _line(result: Result) -> str:
    title = "".join(segment.text for segment in result.title)
    day = f"{result.published:%Y-%m-%d}"
    return f"- [{escape(title)}]({result.url}{TWIN}) ({day}): {_emphasise(result.snippet)}"


def _emphasise(segments: Segments) -> str:
    return "".join(
        f"**{escape(text)}**" if is_match else escape(text) for text, is_match in segments
    )
