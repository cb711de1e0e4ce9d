"""reStructuredText as the Markdown of this journal, by docutils' tree of a text."""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives
from docutils.utils import SystemMessage

_SETTINGS: dict[str, Any] = {
    # Raw HTML is text of the site, which the build sanitises; no file and no address is opened.
    **{"file_insertion_enabled": False, "raw_enabled": True},
    **{"report_level": 2, "halt_level": 5, "warning_stream": False, "line_length_limit": 1_000_000},
    **{"syntax_highlight": "none", "_disable_config": True, "smart_quotes": False},
}
_UNKNOWN = re.compile(r"(?:Unknown|No) .*?\"(.*?)\"|\"(.*?)\" directive disabled")
_MEDIA = {
    "youtube": "https://www.youtube.com/watch?v={}",
    "vimeo": "https://vimeo.com/{}",
    "gist": "https://gist.github.com/{}",
}
"""Directives of plugins that show what stands elsewhere, and where that is."""
_ESCAPED = re.compile(r"[\\`*<\[\]$]|(?<!\w)_|_(?!\w)|^(?=[#+>-])", re.M)


class _Code(Directive):
    """A block of code, with whatever options highlighters take."""

    optional_arguments = 1
    has_content = True
    final_argument_whitespace = True
    option_spec = defaultdict(lambda: directives.unchanged, linenos=directives.unchanged)

    def run(self) -> list[nodes.Node]:
        """Return the code; its language is a class."""
        code = "\n".join(self.content)
        return [nodes.literal_block(code, code, classes=["code", *self.arguments[:1]])]


def read_restructured_text(
    text: str, find: Callable[[int, str, str], None]
) -> tuple[dict[str, str], str, int]:
    """Return the fields at the head of a text with its title, its body in Markdown, and 0.

    `find` is called with line, sentence and advice for what Markdown cannot say.
    """
    for name in ("code", "code-block", "sourcecode", "highlight"):
        directives.register_directive(name, _Code)  # Pelican's own write HTML.
    document = publish_doctree(text, settings_overrides=_SETTINGS)
    head = {"title": document.get("title", "")}
    for field in (each for info in document.findall(nodes.docinfo) for each in info):
        if isinstance(field, nodes.field):
            head[field[0].astext().lower()] = field[1].astext()
        else:
            several = isinstance(field, nodes.authors)
            value = ", ".join(each.astext() for each in field) if several else field.astext()
            head[field.tagname] = value
    for message in document.findall(nodes.system_message):
        unknown = _UNKNOWN.search(message.astext())
        if unknown and unknown[1] != "kbd":
            what = f"{unknown[1] or unknown[2]} of reStructuredText has no form in Markdown"
            find(message.get("line", 0), what, "check what stands in its place")
    return head, f"{_render(document)}\n", 0


def _escape(text: str) -> str:
    return _ESCAPED.sub(r"\\\g<0>", re.sub(r"\n(?=[-+#>=|:]|\d+[.)])", " ", text))


def _render(node: nodes.Node) -> str:
    """Return Markdown for a node of docutils' tree."""
    if isinstance(node, nodes.Text):
        return _escape(str(node))
    kind = node.tagname
    if kind in _FORMS:
        return _FORMS[kind](node)
    text = _inline(node) if isinstance(node, nodes.TextElement) else _blocks(node)
    return _WRAPS.get(kind, "{}").replace("{}", text) if text else ""


def _inline(node: nodes.Node) -> str:
    return "".join(map(_render, node.children))


def _blocks(node: nodes.Node, start: int = 0) -> str:
    return "\n\n".join(filter(None, map(_render, node.children[start:])))


def _indent(text: str, first: str, rest: str = "") -> str:
    """Begin the first line with one sign and the others with blanks, or with another."""
    margin = rest or " " * len(first)
    return first + re.sub(r"\n(?!\n|$)", f"\n{margin}", text)


def _quote(text: str) -> str:
    return re.sub("^ ?", "> ", text, flags=re.M)


def _alert(kind: str, node: nodes.Element) -> str:
    return _quote(f"[!{kind}]\n{_blocks(node)}")


def _title(node: nodes.Element) -> str:
    """Return a heading; what is not the title of a section is a line in bold."""
    if isinstance(node.parent, nodes.document):
        return ""
    level, parent = 1, node.parent
    while isinstance(parent, nodes.section):
        level, parent = level + 1, parent.parent
    text = " ".join(_inline(node).split())
    return f"{'#' * min(level, 6)} {text}" if level > 1 else f"**{text}**"


def _list(node: nodes.Element) -> str:
    start = node.get("start", 1) if node.tagname == "enumerated_list" else None
    items = [
        _indent(_blocks(item), "- " if start is None else f"{start + at}. ")
        for at, item in enumerate(node)
    ]
    is_loose = any(len(item) > 1 for item in node)
    return ("\n\n" if is_loose else "\n").join(items)


def _code(node: nodes.Element) -> str:
    """Return a block of code with its language, if a class says one."""
    text = node.astext()
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", text))])
    language = next((each for each in node["classes"] if each != "code"), "")
    return f"{fence}{language}\n{text}\n{fence}"


def _literal(node: nodes.Element) -> str:
    text, tick = node.astext().replace("\n", " "), "`"
    while tick in text:
        tick += "`"
    pad = " " if "`" in text else ""
    return f"{tick}{pad}{text}{pad}{tick}"


def _link(node: nodes.Element) -> str:
    address = node.get("refuri") or (f"#{node['refid']}" if "refid" in node else "")
    text = _inline(node)
    if node.astext() == address:
        return f"<{address}>"
    return f"[{text}]({address.replace(' ', '%20')})" if address else text


def _figure(node: nodes.Element) -> str:
    """Return a picture with its caption in the same paragraph, then the legend."""
    caption = next((f"\n*{_inline(each)}*" for each in node.findall(nodes.caption)), "")
    rest = [_render(each) for each in node[1:] if not isinstance(each, nodes.caption)]
    return "\n\n".join([_render(node[0]) + caption, *rest])


def _table(node: nodes.Element) -> str:
    """Return a table between pipes; the first row is its head, if there is no other."""
    rows = [
        [" ".join(_render(cell).split()).replace("|", r"\|") for cell in row]
        for row in node.findall(nodes.row)
    ]
    width = max(map(len, rows))
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    title = next((f"{_title(each)}\n\n" for each in node.findall(nodes.title)), "")
    return title + "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _lines(node: nodes.Element) -> str:
    return "\\\n".join(filter(None, (_render(each) or "&nbsp;" for each in node)))


def _unknown(node: nodes.Element) -> str:
    """Return what a role or a directive that docutils does not know was to show."""
    source = node.astext() if node.tagname == "problematic" else node[-1].astext()
    role = re.fullmatch(r":([\w:+-]+):`(.*?)(?:\s*<[^>]*>)?`", source, re.S)
    if role:
        text = _escape(role[2])
        return f"<kbd>{text}</kbd>" if role[1] == "kbd" else text
    directive = re.match(r"\.\. ([\w:-]+)::[ ]*(.*)\n?((?:[ ]+:[\w-]+:.*\n?)*)([\s\S]*)", source)
    if not directive:
        return _escape(source) if node.tagname == "problematic" else ""
    name, argument, _, content = directive.groups()
    link = _MEDIA.get(name, "{}").format(argument.strip())
    shown = f"<{link}>" if re.match(r"https?://\S+$", link) else _escape(argument.strip())
    return "\n\n".join(
        filter(None, [shown, _escape(re.sub("^ +", "", content, flags=re.M)).strip()])
    )


_WRAPS = {
    **dict.fromkeys(("emphasis", "title_reference"), "*{}*"),
    **{"strong": "**{}**", "subscript": "<sub>{}</sub>", "superscript": "<sup>{}</sup>"},
    **{"rubric": "**{}**", "attribution": "— {}", "subtitle": "## {}"},
    **{"option_string": "`{}`", "field_name": "**{}:**"},
}
_NOTE = "NOTE"
_ALERTS = {
    **{"note": _NOTE, "admonition": _NOTE, "hint": "TIP", "tip": "TIP", "important": "IMPORTANT"},
    **dict.fromkeys(("warning", "attention"), "WARNING"),
    **dict.fromkeys(("caution", "danger", "error"), "CAUTION"),
}
_FORMS: dict[str, Callable[[Any], str]] = {
    **{kind: partial(_alert, name) for kind, name in _ALERTS.items()},
    **dict.fromkeys(
        (
            *("docinfo", "comment", "target", "substitution_definition", "pending", "label"),
            *("generated", "meta", "decoration", "colspec"),
        ),
        lambda _node: "",
    ),
    **dict.fromkeys(("bullet_list", "enumerated_list"), _list),
    **dict.fromkeys(("literal_block", "doctest_block"), _code),
    **dict.fromkeys(("problematic", "system_message"), _unknown),
    **dict.fromkeys(
        ("footnote_reference", "citation_reference"), lambda node: f"[^{node['refid']}]"
    ),
    **dict.fromkeys(
        ("footnote", "citation"),
        lambda node: _indent(_blocks(node), f"[^{node['ids'][0]}]: ", "    "),
    ),
    "title": _title,
    "literal": _literal,
    "math": lambda node: f"${node.astext()}$",
    "math_block": lambda node: f"$$\n{node.astext()}\n$$",
    "definition_list": _blocks,
    "definition_list_item": lambda node: "\n".join(
        [_inline(node[0]), _indent(_render(node[-1]), ":   ")]
    ),
    "field": lambda node: f"{_render(node[0])} {_render(node[1])}".strip(),
    "block_quote": lambda node: _quote(_blocks(node)),
    "line_block": _lines,
    "image": lambda node: f"![{_escape(node.get('alt', ''))}]({node['uri'].replace(' ', '%20')})",
    "figure": _figure,
    "reference": _link,
    "table": _table,
    "raw": lambda node: node.astext() if "html" in node["format"].split() else "",
    "transition": lambda _node: "---",
    "topic": lambda node: "" if "contents" in node["classes"] else _quote(_blocks(node)),
    "abbreviation": lambda node: (
        f'<abbr title="{node.get("explanation", "")}">{_inline(node)}</abbr>'
    ),
}
