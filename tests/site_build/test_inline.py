"""Our inline parser against that of Python-Markdown."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown import Markdown
from markdown.treeprocessors import InlineProcessor

from site_build.markup.convert import Converter, Dialect
from site_build.markup.github import SIGNS
from tests.shared_material import find_posts
from tests.site_build.test_convert import make_document
from tests.sizes import scaled

PIECES = [
    *"`*_[]()!<>&@:/\\^\"'{}# \nab",
    "  \n",
    "](",
    "![",
    "[^1]",
    "://",
    "&amp;",
    "\n\n",
    "~~",
    "$",
    "\\\n",
]
_EVERY = 23
"""So many posts are left out for one that is tried."""
PLAIN, QUICK = (
    Converter(Dialect("https://journal.test")),
    Converter(Dialect("https://journal.test")),
)


def open_markdown(converter: Converter) -> Markdown:
    """Return the library's converter within ours."""
    markdown: Markdown = vars(converter)["_markdown"]
    return markdown


open_markdown(PLAIN).treeprocessors.register(InlineProcessor(open_markdown(PLAIN)), "inline", 20)


def test_signs_belong_to_patterns() -> None:
    """Every pattern that a sign is declared for is one that the library has."""
    assert set(SIGNS) == {name for name in SIGNS if name in open_markdown(QUICK).inlinePatterns}


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=400))
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_same_html(text: str) -> None:
    """Any text becomes the HTML that the library makes of it."""
    text = f"{text}\n\n[^1]: a note\n\n[ab]: /b\n"
    document = make_document(text)
    assert QUICK.convert(document) == PLAIN.convert(document)


def test_same_html_of_posts() -> None:
    """Posts of the corpus become the same HTML, too."""
    for path in find_posts()[::_EVERY]:
        document = make_document(path.read_text(encoding="utf-8"))
        assert QUICK.convert(document) == PLAIN.convert(document)
