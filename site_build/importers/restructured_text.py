"""Converts reStructuredText to Markdown, by way of the HTML that docutils makes of it."""

import re
from collections import defaultdict
from collections.abc import Callable
from html import escape
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from docutils.core import (  # type: ignore[import-untyped]
    publish_doctree,
    publish_from_doctree,
)
from docutils.parsers.rst import directives  # type: ignore[import-untyped]
from docutils.parsers.rst.directives.body import CodeBlock  # type: ignore[import-untyped]

from site_build.importers.html_to_markdown import convert

_SETTINGS: dict[str, Any] = {
    # Raw HTML is kept, since the build repairs it; no file and no address is opened.
    "file_insertion_enabled": False,
    "raw_enabled": True,
    "report_level": 2,
    "halt_level": 5,
    "warning_stream": False,
    "line_length_limit": 1_000_000,
    "syntax_highlight": "none",
    "_disable_config": True,
    "output_encoding": "unicode",
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "initial_header_level": 2,
    "toc_backlinks": False,
}
_MEDIA_URLS = {
    "youtube": "https://www.youtube.com/watch?v={}",
    "vimeo": "https://vimeo.com/{}",
    "gist": "https://gist.github.com/{}",
}
"""Addresses of media on other sites, by the directives of Pelican's plugins that embed them."""
_CODE_DIRECTIVE = type(
    "AnyCode", (CodeBlock,), {"option_spec": defaultdict(lambda: str, {"linenos": str})}
)
"""A directive for code that accepts any option, since highlighters have many."""


def read_restructured_text(
    text: str, note: Callable[[int, str, str], None]
) -> tuple[dict[str, str], str, int]:
    """Return the title and fields of a text, its body in Markdown, and 0 as the body's first line.

    The lines of the Markdown are not those of the source, so no line number holds for both.

    `note` is called with a line, a sentence and advice for each element that Markdown lacks.
    """
    for name in ("code", "code-block", "sourcecode"):
        directives.register_directive(name, _CODE_DIRECTIVE)  # Pelican's own ones produce HTML.
    document = publish_doctree(text, settings_overrides=_SETTINGS)
    head = {"title": document.get("title", "")}
    for field in (each for info in document.findall(nodes.docinfo) for each in info):
        is_generic = isinstance(field, nodes.field)
        values = field if isinstance(field, nodes.authors) else field[1:] if is_generic else [field]
        name = field[0].astext().lower() if is_generic else field.tagname
        head[name] = "; ".join(value.astext() for value in values)
    # Each message of docutils gives the unknown name that it quotes, or else its first line.
    unknown = {
        (message.get("line", 0), next(filter(None, found.groups())))
        for message in document.findall(nodes.system_message)
        if (
            found := re.search(
                r'(?:Unknown|No) .*?"(.*?)"|[^"]*"([^"]*)" directive|(.+)', message[0].astext()
            )
        )
        and (found[2] or message["level"] > _SETTINGS["report_level"])
    }
    for line, name in sorted(each for each in unknown if each[1] != "kbd"):
        note(line, f"{name} has no form in Markdown", "check what stands in its place")
    for node in list(document.findall(lambda each: each.tagname in _REPLACERS)):
        node.parent.replace(node, _REPLACERS[node.tagname](node))
    page = publish_from_doctree(
        document,
        writer="html5",
        # The messages of docutils have been noted above.
        settings_overrides={**_SETTINGS, "report_level": 5},
    )
    body = convert(page.partition("<body")[2].partition(">")[2])
    # Restore the marker of an alert, which was escaped and became a paragraph of its own.
    return head, re.sub(r"(?m)^([ >]*> )\\\[!([A-Z]+)\\\]\n[ >]*\n", r"\1[!\2]\n", body), 0


def find_media(plugin: str, argument: str) -> str:
    """Return the URL of media that a plugin embeds, or its argument if the plugin is unknown."""
    return _MEDIA_URLS.get(plugin, "{}").format(argument.strip())


def _make_raw(html: str) -> Any:  # docutils has no type annotations
    return nodes.raw("", html, format="html")


def _replace_alert(node: Any) -> Any:
    """Return a quotation whose first paragraph names the kind of alert."""
    kind = nodes.paragraph("", f"[!{_ALERTS[node.tagname]}]")
    content = (
        nodes.paragraph("", "", nodes.strong("", "", *each)) if each.tagname == "title" else each
        for each in node.children
    )
    return nodes.block_quote("", kind, *content)


def _replace_code(node: Any) -> Any:
    """Return a block of code; its language is the second class of the node."""
    language = f"language-{node['classes'][1]}" if node["classes"][1:] else ""
    return _make_raw(f'<pre><code class="{language}">{escape(node.astext())}</code></pre>')


def _replace_picture(node: Any) -> Any:
    """Return a picture, in a paragraph unless it is within text or a figure."""
    node["alt"] = node.get("alt", "")  # docutils would use the address
    is_within = isinstance(node.parent, nodes.TextElement | nodes.figure)
    return node if is_within else nodes.paragraph("", "", node)


def _replace_unknown(node: Any) -> Any:
    """Return the readable content of a role or directive that docutils does not know."""
    source = node.astext() if node.tagname == "problematic" else node[-1].astext()
    if role := re.fullmatch(r"(?s):([\w:+-]+):`(.*?)(?:\s*<[^>]*>)?`", source):
        return _make_raw(f"<kbd>{escape(role[2])}</kbd>" if role[1] == "kbd" else escape(role[2]))
    if directive := re.match(r"\.\. ([\w:-]+)::[ ]*(.*)\n?(?:[ ]+:[\w-]+:.*\n?)*([\s\S]*)", source):
        media = find_media(directive[1], escape(directive[2]))
        media = re.sub(r"^https?://\S+$", r'<a href="\g<0>">\g<0></a>', media)
        parts = re.split(r"\n\s*\n", escape(directive[3]).strip())
        return _make_raw("".join(f"<p>{part}</p>" for part in [media, *parts]))
    if node.tagname == "problematic":
        return nodes.Text(source)
    return _replace_code(node[-1]) if isinstance(node[-1], nodes.literal_block) else []


_ALERTS = {
    **dict.fromkeys(("note", "admonition"), "NOTE"),
    **dict.fromkeys(("hint", "tip"), "TIP"),
    "important": "IMPORTANT",
    **dict.fromkeys(("warning", "attention"), "WARNING"),
    **dict.fromkeys(("caution", "danger", "error"), "CAUTION"),
}
_REPLACERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_ALERTS, _replace_alert),
    **dict.fromkeys(("literal_block", "doctest_block"), _replace_code),
    **dict.fromkeys(("problematic", "system_message"), _replace_unknown),
    "docinfo": lambda _node: [],
    "title": lambda node: [] if isinstance(node.parent, nodes.document) else node,
    "subtitle": lambda node: _make_raw(f"<h2>{escape(node.astext())}</h2>"),
    "topic": lambda node: [] if "contents" in node["classes"] else node,
    "rubric": lambda node: nodes.paragraph("", "", nodes.strong("", "", *node.children)),
    "literal": lambda node: _make_raw(f"<code>{escape(node.astext())}</code>"),
    "math": lambda node: nodes.Text(f"\\({' '.join(node.astext().split())}\\)"),
    "math_block": lambda node: nodes.paragraph("", f"$${' '.join(node.astext().split())}$$"),
    "line": lambda node: [*node.children, _make_raw("<br>")],
    "line_block": lambda node: (
        node.children
        if isinstance(node.parent, nodes.paragraph)
        else nodes.paragraph("", "", *node.children)
    ),
    # The legend, which follows the caption, is put behind the figure.
    "figure": lambda node: [
        nodes.figure("", *(each for each in node if each.tagname != "legend")),
        *(part for each in node if each.tagname == "legend" for part in each),
    ],
    "image": _replace_picture,
    "abbreviation": lambda node: _make_raw(
        f'<abbr title="{escape(node.get("explanation", ""))}">{escape(node.astext())}</abbr>'
    ),
}
"""Functions that replace nodes before docutils makes HTML, by tag name."""
