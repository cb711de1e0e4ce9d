"""The Markdown of Obsidian, MDX, Zola, Eleventy and Docusaurus, made Markdown of this journal."""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from site_build.importers.imported import SOURCE
from site_build.text import fold, shorten

_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}"
_PIECES = {
    "fence": r"^(?P<opening>[ \t>]*(?:(?:[-*+]|\d+\.)[ \t]+)?(?P<sign>`{3,}|~{3,})[ \t]*"
    r"[\w+#.-]*)[^\n`]*(?P<content>\n(?s:.*?)(?:^[ \t>]*(?P=sign)[`~]*[ \t]*$|\Z))",
    "kept": r"(?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?!\s*\n))+?(?<!`)(?P=ticks)(?!`)"
    r"|\$\$(?s:.+?)\$\$|(?<![\w$])\$(?=\S)[^$\n]*(?<=[^\s$])\$(?!\d)|<!--(?s:.*?)-->",
    "titled": r"^:::+[ \t]*[a-z]+(?:[ \t]+|\[)(?P<boxed>\w[^]\n{]*)\]?[^\n]*",
    "box": r"^:::+[^\n]*",
    "comment": r"%%(?s:.*?)%%",
    "label": r"[ \t]+\^[\w-]+[ \t]*$",
    "mark": r"==(?=[^\s=])(?P<marked>[^=\n]*[^\s=])==",
    "callout": r"^(?P<quote>[ \t]*(?:>[ \t]?)+)\[!(?P<kind>[\w-]+)(?:\|[^]\n]*)?\][+-]?[ \t]*"
    r"(?P<heading>[^\n]*)",
    "wiki": r"(?P<embed>!?)\[\[(?=[^\s\]])(?P<note>[^\[\]|#\n]*?)\\?"
    r"(?:\#(?P<part>[^\[\]|\n]*?)\\?)?(?:\|(?P<text>[^\[\]\n]*))?\]\](?![(\[:])",
    "loose": r"(?<=\]\()(?P<loose>[^)#:\s<>]+)",
    "rooted": r"(?<=\]\()@/|(?<=\]:\s)@/",
    "filter": r"\{\{-?\s*[\"'](?P<literal>[^\"'\n]*)[\"'][^}\n]*\}\}",
    "end": r"\{%-?\s*(?:end\w*|raw)\s*-?%\}",
    "template": r"\{[{%]-?\s*(?P<verb>\w+)(?P<words>(?s:.*?))-?[%}]\}",
    "tag": r"(?<![\w\\])<(?P<close>/?)(?P<name>[A-Za-z][\w.:]*)(?P<attributes>(?:\s++(?:[\w:@.-]+"
    rf"(?:=(?:\"[^\"]*\"|'[^']*'|{_BRACES}))?|{_BRACES}))*+)\s*+/?>",
    "module": r"^(?:import|export)[ ](?:[^\n]+(?:\n|\Z))+",
    "remark": r"\{\s*/\*(?s:.*?)\*/\s*\}",
    "string": r"\{\s*(?P<mark>[\"'`])(?P<string>[^\"'`{}\n]*)(?P=mark)\s*\}",
    "braces": rf"(?<!\\){_BRACES}",
}
"""What systems write, by name."""
_CHANGED = {
    "fence": r"\g<opening>\g<content>",
    "kept": r"\g<0>",
    "titled": r"**\g<boxed>**",
    "mark": r"<mark>\g<marked></mark>",
    "rooted": f"{SOURCE}content/",
    "filter": r"\g<literal>",
    "string": r"\g<string>",
} | dict.fromkeys(("box", "comment", "label", "end", "module", "remark"), "")
"""What becomes of the simple ones; each other has a method."""
_NOTES = "comment callout label mark wiki loose tag"
_USED = {
    "Obsidian": _NOTES,
    "Quartz": _NOTES,
    "Zola": "callout wiki rooted tag filter end template",
    "Eleventy": "callout wiki tag filter end template",
}
"""What a system writes beside code."""
_ALERTS = {
    kind: alert
    for alert, kinds in {
        "NOTE": "note info abstract summary tldr todo example seealso secondary",
        "TIP": "tip hint success check done",
        "IMPORTANT": "important question help faq",
        "WARNING": "warning attention",
        "CAUTION": "caution danger error failure fail missing bug",
        "": "quote cite",
    }.items()
    for kind in kinds.split()
}
_PICTURE = re.compile(r".+\.(?:png|jpe?g|gif|svg|webp|avif|bmp)", re.IGNORECASE)
_VALUE = re.compile(
    r"(?:([\w-]+)\s*=\s*\{?\s*|^[\s(]*(?=[\"']))"
    r"(?:\"([^\"]*)\"|'([^']*)'|`([^`]*)`|([^\s\"'`{},)]+))"
)


def slugify(text: str) -> str:
    """Return a heading's or a name's slug as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


class Converter:
    """Makes one text Markdown that needs no other system; `left_out` then has what nobody knows."""

    def __init__(self, system: str, known: Mapping[str, str], *, is_mdx: bool) -> None:
        """`known` has the paths of texts and files by the names that notes have for them."""
        names = "fence kept " + _USED.get(system, "titled box callout wiki tag")
        names += " module remark string braces" * is_mdx
        patterns = (f"(?P<{name}_>{_PIECES[name]})" for name in names.split())
        self._pieces = re.compile("|".join(patterns), re.MULTILINE)
        self._known = known
        self._pictures: dict[str, str] = {}
        self.left_out: dict[str, int] = {}
        """A sentence about each thing that was left out, and the line of the first, from 0."""

    def convert(self, body: str) -> str:
        """Return a text's body as Markdown."""
        self._pictures = dict(re.findall(r"(?m)^import\s+(\w+)\s+from\s+[\"'](\S+?)[\"']", body))
        return self._pieces.sub(self._change, body)

    def _change(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup).removesuffix("_")
        if kind in _CHANGED:
            return found.expand(_CHANGED[kind])
        return str(getattr(self, f"_change_{kind}")(found))

    def _leave_out(self, found: re.Match[str], what: str, shown: str = "") -> str:
        self.left_out.setdefault(what, found.string.count("\n", 0, found.start()))
        return shown

    def _change_callout(self, found: re.Match[str]) -> str:
        alert = _ALERTS.get(found["kind"].lower(), "NOTE")
        title = self._pieces.sub(self._change, found["heading"].strip())
        lines = [f"[!{alert}]"] * bool(alert) + [f"**{title}**", ""] * bool(title)
        return "\n".join(found["quote"] + line for line in lines)

    def _change_wiki(self, found: re.Match[str]) -> str:
        note, part, text = (found[name] or "" for name in ("note", "part", "text"))
        target = self._known.get(fold(note).strip(" /").removesuffix(".md"), "")
        label = text or note.rpartition("/")[2] or part
        if note and not target:
            return self._leave_out(found, f"nothing has the name {shorten(note)}", label)
        link = target and SOURCE + quote(target)
        if found["embed"] and _PICTURE.fullmatch(target):
            size = re.match(r"\d+(?=$|x)", text)
            return f"![]({link}){{width={size[0]}}}" if size else f"![{text}]({link})"
        # The id of a block, `^id`, is Obsidian's alone.
        heading = re.sub(r".*#|^\^.*", "", part)
        return f"[{label}]({link}{heading and '#'}{slugify(heading)})"

    def _change_loose(self, found: re.Match[str]) -> str:
        # Obsidian finds a file by its name alone, wherever it is.
        path = self._known.get(fold(unquote(found[0])).removesuffix(".md"))
        return SOURCE + quote(path) if path else found[0]

    def _change_braces(self, found: re.Match[str]) -> str:
        return self._leave_out(found, f"the expression {shorten(found[0])} is not known")

    def _change_tag(self, found: re.Match[str]) -> str:
        if found["name"] in {found["name"].lower(), found["name"].upper()}:
            return re.sub(rf"\s[\w:-]+={_BRACES}", "", found[0])
        return "" if found["close"] else self._show(found, found["name"], found["attributes"])

    def _change_template(self, found: re.Match[str]) -> str:
        return self._show(found, found["verb"], found["words"])

    def _show(self, found: re.Match[str], name: str, words: str) -> str:
        """Return the picture, the link or the words that a component or a shortcode has."""
        values = {
            # Eleventy has a first value without a name, and bundlers know pictures by names.
            key or "src": self._pictures.get(value.removesuffix(".src"), value)
            for key, *forms in _VALUE.findall(words)
            for value in ["".join(forms)]
        }
        text = values.get("alt") or values.get("title") or values.get("label") or ""
        link = values.get("src") or values.get("url") or values.get("href") or ""
        link = re.sub("^[@~]/?(?=.*/)", f"{SOURCE}src/", link)
        if "youtube" in name.lower() and "/" not in link:
            link = f"https://www.youtube.com/watch?v={values.get('id', link)}"
        if _PICTURE.fullmatch(link):
            return f"![{text}]({link})"
        shown = f"[{text or name}]({link})" if link else text and f"**{text}**\n"
        return self._leave_out(found, f"the component {shorten(name)} is not known", shown)
