"""reStructuredText as the Markdown of this journal, by docutils' tree of a text."""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from docutils.core import publish_doctree  # type: ignore[import-untyped]
from docutils.parsers.rst import directives  # type: ignore[import-untyped]
from docutils.parsers.rst.directives.body import CodeBlock  # type: ignore[import-untyped]

_SETTINGS: dict[str, Any] = {
    # Raw HTML is text of the site, which the build sanitises; no file and no address is opened.
    "file_insertion_enabled": False,
    "raw_enabled": True,
    "report_level": 2,
    "halt_level": 5,
    "warning_stream": False,
    "line_length_limit": 1_000_000,
    "syntax_highlight": "none",
    "_disable_config": True,
}
_UNKNOWN = re.compile(r'(?:Unknown|No) .*?"(.*?)"|[^"]*"([^"]*)" directive|(.+)')
"""What a message of docutils is about; else its first line."""
_ERRORS = {"ERROR", "SEVERE"}
_ROLE = re.compile(r":([\w:+-]+):`(.*?)(?:\s*<[^>]*>)?`", re.DOTALL)
_DIRECTIVE = re.compile(r"\.\. ([\w:-]+)::[ ]*(.*)\n?(?:[ ]+:[\w-]+:.*\n?)*([\s\S]*)")
_MEDIA = {
    "youtube": "https://www.youtube.com/watch?v={}",
    "vimeo": "https://vimeo.com/{}",
    "gist": "https://gist.github.com/{}",
}
"""What plugins show from elsewhere, and where that is."""
_ESCAPED = re.compile(r"[\\`*<\[\]$]|(?<!\w)_|_(?!\w)|^(?=[#+>-])", re.MULTILINE)
_CODE = type("AnyCode", (CodeBlock,), {"option_spec": defaultdict(lambda: str, {"linenos": str})})
"""A block of code with whatever options highlighters take."""


def read_restructured_text(
    text: str, find: Callable[[int, str, str], None]
) -> tuple[dict[str, str], str, int]:
    """Return title and fields at the head of a text, its body in Markdown, and no line: 0.

    `find` is called with line, sentence and advice for what Markdown cannot say.
    """
    for name in ("code", "code-block", "sourcecode"):
        directives.register_directive(name, _CODE)  # Pelican's own write HTML.
    document = publish_doctree(text, settings_overrides=_SETTINGS)
    for section in document.findall(nodes.section):
        section["level"] = section.parent.get("level", 1) + 1
    head = {"title": document.get("title", "")}
    for field in (each for info in document.findall(nodes.docinfo) for each in info):
        is_own = isinstance(field, nodes.field)
        values = field if isinstance(field, nodes.authors) else field[1:] if is_own else [field]
        name = field[0].astext().lower() if is_own else field.tagname
        head[name] = "; ".join(value.astext() for value in values)
    unknown = {
        (message.get("line", 0), next(filter(None, found.groups())))
        for message in document.findall(nodes.system_message)
        if (found := _UNKNOWN.search(message[0].astext()))
        and (found[2] or message["type"] in _ERRORS)
    }
    for line, name in sorted(each for each in unknown if each[1] != "kbd"):
        find(line, f"{name} has no form in Markdown", "check what stands in its place")
    return head, f"{_render(document)}\n", 0


def link_media(plugin: str, words: str) -> str:
    """Return Markdown for what a plugin was to show: a link where there is one, else its words."""
    link = _MEDIA.get(plugin, "{}").format(words.strip())
    return f"<{link}>" if re.match(r"https?://\S+$", link) else _escape(link)


def _render(node: Any) -> str:  # docutils says nothing of its types
    """Return Markdown for a node of docutils' tree, and what is in it."""
    if isinstance(node, nodes.Text):
        return _escape(node.astext())
    form = _FORMS.get(node.tagname, _WRAPS.get(node.tagname, "{}"))
    if not isinstance(form, str):
        return str(form(node))
    text = _inline(node) if isinstance(node, nodes.TextElement) else _blocks(node)
    return form.replace("{}", text) if text else ""


def _escape(text: str) -> str:
    return _ESCAPED.sub(r"\\\g<0>", re.sub(r"\n(?=[-+#>=|:]|\d+[.)])", " ", text))


def _inline(node: Any) -> str:
    return "".join(map(_render, node.children))


def _blocks(node: Any) -> str:
    return "\n\n".join(filter(None, map(_render, node.children)))


def _indent(first: str, text: str, rest: str = "") -> str:
    """Begin the first line of a block with one sign, and the others with another or blanks."""
    return first + re.sub(r"\n(?!\n|$)", "\n" + (rest or " " * len(first)), text)


def _quote(text: str) -> str:
    return re.sub("^", "> ", text, flags=re.MULTILINE)


def _list(node: Any) -> str:
    """Return a list; its items are apart where one has more than a paragraph."""
    numbered, start = node.tagname == "enumerated_list", node.get("start", 1)
    items = [
        _indent(f"{start + at}. " if numbered else "- ", _blocks(item))
        for at, item in enumerate(node)
    ]
    return ("\n\n" if any(len(item) > 1 for item in node) else "\n").join(items)


def _fence(node: Any) -> str:
    """Return a block of code with its language, which is the second of its classes."""
    fence = "~~~~" if "```" in node.astext() else "```"
    return "\n".join([fence + "".join(node["classes"][1:2]), node.astext(), fence])


def _table(node: Any) -> str:
    """Return a table between pipes, whose first row is its head."""
    rows = [
        [" ".join(_render(cell).split()).replace("|", r"\|") for cell in row]
        for row in node.findall(nodes.row)
    ]
    lines = [f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]]]
    return "\n\n".join([*map(_render, node.findall(nodes.title)), "\n".join(lines)])


def _unknown(node: Any) -> str:
    """Return what a reader can use of a role or directive that docutils does not know."""
    source = node.astext() if node.tagname == "problematic" else node[-1].astext()
    if role := _ROLE.fullmatch(source):
        return f"<kbd>{_escape(role[2])}</kbd>" if role[1] == "kbd" else _escape(role[2])
    if directive := _DIRECTIVE.match(source):
        content = _escape(re.sub("^ +", "", directive[3], flags=re.MULTILINE)).strip()
        return f"{link_media(directive[1], directive[2])}\n\n{content}".strip()
    if node.tagname == "problematic":
        return _escape(source)
    return _render(node[-1]) if isinstance(node[-1], nodes.literal_block) else ""


_WRAPS = {
    "emphasis": "*{}*",
    "title_reference": "*{}*",
    "strong": "**{}**",
    "rubric": "**{}**",
    "subscript": "<sub>{}</sub>",
    "superscript": "<sup>{}</sup>",
    "subtitle": "## {}",
    "attribution": "— {}",
    "field_name": "**{}:**",
}
_ALERTS = {
    **dict.fromkeys(("note", "admonition"), "NOTE"),
    **dict.fromkeys(("hint", "tip"), "TIP"),
    "important": "IMPORTANT",
    **dict.fromkeys(("warning", "attention"), "WARNING"),
    **dict.fromkeys(("caution", "danger", "error"), "CAUTION"),
}
_NOTHING = (
    "docinfo comment target substitution_definition pending label generated meta decoration colspec"
)
_FORMS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(_ALERTS, lambda node: _quote(f"[!{_ALERTS[node.tagname]}]\n{_blocks(node)}")),
    **dict.fromkeys(_NOTHING.split(), lambda _node: ""),
    **dict.fromkeys(("bullet_list", "enumerated_list"), _list),
    **dict.fromkeys(("literal_block", "doctest_block"), _fence),
    **dict.fromkeys(("problematic", "system_message"), _unknown),
    **dict.fromkeys(
        ("footnote_reference", "citation_reference"), lambda node: f"[^{node['refid']}]"
    ),
    **dict.fromkeys(
        ("footnote", "citation"),
        lambda node: _indent(f"[^{node['ids'][0]}]: ", _blocks(node), "    "),
    ),
    "title": lambda node: (
        f"{'#' * min(node.parent['level'], 6)} {' '.join(_inline(node).split())}"
        if isinstance(node.parent, nodes.section)
        else ""
        if isinstance(node.parent, nodes.document)
        else f"**{_inline(node)}**"
    ),
    "literal": lambda node: (
        f"`{node.astext()}`" if "`" not in node.astext() else (f"`` {node.astext()} ``")
    ),
    "math": lambda node: f"${node.astext()}$",
    "math_block": lambda node: f"$$\n{node.astext()}\n$$",
    "definition_list_item": lambda node: (
        f"{_inline(node[0])}\n{_indent(':   ', _render(node[-1]))}"
    ),
    "field": lambda node: f"{_render(node[0])} {_render(node[1])}",
    "block_quote": lambda node: _quote(_blocks(node)),
    "line_block": lambda node: "\\\n".join(_render(each) or "&nbsp;" for each in node),
    "image": lambda node: f"![{_escape(node.get('alt', ''))}]({node['uri'].replace(' ', '%20')})",
    "caption": lambda node: "*" + re.sub(r"(?<!\\)\*+", "", _inline(node)) + "*",
    # A caption is in the paragraph of its picture.
    "figure": lambda node: _blocks(node).replace("\n\n*", "\n*", 1),
    "reference": lambda node: (
        f"<{node.astext()}>"
        if node.get("refuri") == node.astext()
        else f"[{_inline(node)}]({(node.get('refuri') or '#' + node['refid']).replace(' ', '%20')})"
    ),
    "table": _table,
    "raw": lambda node: node.astext() if "html" in node["format"].split() else "",
    "transition": lambda _node: "---",
    "topic": lambda node: "" if "contents" in node["classes"] else _quote(_blocks(node)),
    "abbreviation": lambda node: (
        f'<abbr title="{node.get("explanation", "")}">{_inline(node)}</abbr>'
    ),
}
