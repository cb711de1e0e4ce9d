"""Systems that a folder of Markdown may come from: their files, their addresses and their syntax.

`DialectConverter` turns Markdown of Obsidian, MDX, Zola and others into that of this journal.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from site_build.importers.imported import SOURCE
from site_build.importers.shortcodes import CODE_SHORTCODES, write_callout, write_shortcode
from site_build.text import fold, shorten

_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}"
_ATTRIBUTES = rf"(?:\s++(?:[\w:@.-]+(?:=(?:\"[^\"]*\"|'[^']*'|{_BRACES}))?|{_BRACES}))*+"
_PATTERNS = {
    "fence": r"^(?P<opening>[ \t>]*(?:(?:[-*+]|\d+\.)[ \t]+)?(?P<sign>`{3,}|~{3,})[ \t]*"
    r"[\w+#.-]*)[^\n`]*(?P<content>\n(?s:.*?)(?:^[ \t>]*(?P=sign)[`~]*[ \t]*$|\Z))",
    "kept": r"(?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?!\s*\n))+?(?<!`)(?P=ticks)(?!`)"
    r"|\$\$(?s:.+?)\$\$|(?<![\w$])\$(?=\S)[^$\n]*(?<=[^\s$])\$(?!\d)|<!--(?s:.*?)(?:-->|\Z)",
    "leaf": r"^[ \t]*::(?P<leaf_name>[a-z][\w-]*)(?:\[[^]\n]*\])?"
    r"\{(?P<leaf_words>[^}\n]*)\}[ \t]*$",
    "directive": r"^(?P<margin>[ \t]*)(?P<colons>:::+)[ \t]*(?P<directive_name>[a-z]+)"
    r"[ \t\[]*(?P<boxed>\w[^]={}\n]*)?\]?(?P<directive_words>[^\n]*)"
    r"(?P<directive_inner>(?s:.*?))^(?P=margin)(?P=colons)[ \t]*$",
    "box": r"^:::+[^\n]*",
    "span": r"(?<![\w:]):[a-z]+\[(?P<spanned>[^]\n]*)\](?!\()(?:\{[^}\n]*\})?",
    "escaped": r"(?P<left>\{[{%])/\*(?P<escaped>(?s:.*?))\*/(?P<right>[%}]\})",
    "comment": r"%%(?s:.*?)%%",
    # A comment, except in numbers such as `100 %%`.
    "remarked": r"(?<!\d)(?<!\d[ ])%%(?s:.*?)%%",
    # A comment; `{#id}` is the id of a heading.
    "aside": r"\{#(?![\w-]+\})(?:(?!\{#|#\})(?s:.))*+#\}",
    "label": r"[ \t]+\^[\w-]+[ \t]*$",
    "mark": r"==(?=[^\s=])(?P<marked>[^=\n]*[^\s=])==",
    "callout": r"^(?P<quote>[ \t]*(?:>[ \t]?)+)\[!(?P<kind>[\w-]+)(?:\|[^]\n]*)?\][+-]?[ \t]*"
    r"(?P<heading>[^\n]*)",
    "wiki": r"(?P<embed>!?)\[\[(?=[^\s\]])(?P<note>[^\[\]|#\n]*?)\\?"
    r"(?:\#(?P<part>[^\[\]|\n]*?)\\?)?(?:\|(?P<text>[^\[\]\n]*))?\]\](?![(\[:])",
    "loose": r"(?<=\]\()(?P<loose>[^)#:\s<>]+)",
    "section": r"(?<=\]\()@/(?P<section>[^)#\s]*?)_index\.md",
    "rooted": r"(?<=\]\()@/|(?<=\]:\s)@/",
    "filter": r"\{\{-?\s*[\"'](?P<literal>[^\"'\n]*)[\"'][^}\n]*\}\}",
    "block": r"\{%-?\s*(?P<block_name>\w+)(?P<block_words>(?:(?!%\})(?s:.)){0,2000}?)-?%\}"
    r"(?P<block_inner>(?:(?!\{%)(?s:.)){0,8000})\{%-?\s*end\w*\s*-?%\}",
    "end": r"\{%-?\s*(?:end\w*|raw)\s*-?%\}",
    "template": r"\{[{%]-?\s*(?P<template_name>\w+)(?P<template_words>(?s:.{0,2000}?))-?[%}]\}",
    "pair": rf"(?<![\w\\])<(?P<pair_name>[A-Z][\w.:]*)(?P<pair_words>{_ATTRIBUTES})\s*>"
    r"(?P<pair_inner>(?:(?!<(?P=pair_name)\b)(?s:.)){0,8000}?)</(?P=pair_name)\s*>",
    "tag": r"(?<![\w\\])<(?P<close>/?)(?P<tag_name>[A-Za-z][\w.:]*)"
    rf"(?P<tag_words>{_ATTRIBUTES})\s*+/?>",
    "module": r"^(?:import|export)[ ](?:[^\n]+(?:\n|\Z))+",
    "remark": r"\{\s*/\*(?s:.*?)\*/\s*\}",
    "string": r"\{\s*(?P<mark>[\"'`])(?P<string>[^\"'`{}\n]*)(?P=mark)\s*\}",
    "braces": rf"(?<!\\){_BRACES}",
}
"""Patterns of the syntax of each system, by name."""
_REPLACEMENTS = {
    "fence": r"\g<opening>\g<content>",
    "kept": r"\g<0>",
    "section": r"/\g<section>",
    "span": r"\g<spanned>",
    "escaped": r"`\g<left>\g<escaped>\g<right>`",
    "mark": r"<mark>\g<marked></mark>",
    "filter": r"\g<literal>",
    "string": r"\g<string>",
} | dict.fromkeys(("box", "comment", "remarked", "aside", "label", "end", "module", "remark"), "")
"""Replacements by name of the pattern; others call `_change_NAME`, or else `_change_component`."""
_SYSTEM_PATTERNS = {
    "Obsidian": "comment callout label mark wiki loose pair tag",
    "Quartz": "comment callout label mark wiki loose pair tag",
    "Zola": "aside escaped callout wiki section rooted pair tag filter block end template",
    "Eleventy": "aside callout wiki pair tag filter block end template",
}
"""Names of the patterns of each system."""
MARKDOWN_SYSTEMS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "Astro": (
        ("astro.config.*", "src/content/*/", "src/data/blog"),
        {
            r"src/(?:content/)?pages/(?P<rest>.+)": "/:rest/",
            r"src/content/(?:docs|spec|pages)/(?P<rest>.+)": "/:ids/",
            r"(?:src/)?(?:content|data)/(?P<collection>[^/]+)/(?P<rest>.+)": "/:collection/:ids/",
        },
    ),
    "Eleventy": (
        (".eleventy.js", "eleventy.config.*"),
        {
            # The text `about/about` is the page of the folder `about`.
            r"(?:(?:src|content|site)/)?(?P<rest>(?:.*/)?(?P<leaf>[^/]+))/(?P=leaf)": "/:rest/",
            r"(?:(?:src|content|site)/)?(?P<rest>.+)": "/:rest/",
        },
    ),
    "Docusaurus": (
        ("docusaurus.config.*",),
        {
            r"blog/(?P<rest>.+)": "/blog/:year/:month/:day/:name/",
            r"(?:src/pages/)?(?P<rest>.+)": "/:rest/",
        },
    ),
    "Gatsby": (
        ("gatsby-config.*",),
        {r"(?:src/)?(?:content/|pages/)?(?:(?:blog|posts)/)?(?P<rest>.+)": "/:rest/"},
    ),
    "VitePress": ((".vitepress", "docs/.vitepress"), {r"(?:docs/)?(?P<rest>.+)": "/:rest.html"}),
    "VuePress": ((".vuepress", "docs/.vuepress"), {r"(?:docs/)?(?P<rest>.+)": "/:rest.html"}),
    "MkDocs": (
        ("mkdocs.yml",),
        {
            r"docs/blog/posts/(?P<rest>.+)": "/blog/:year/:month/:day/:title/",
            r"docs/(?P<rest>.+)": "/:rest/",
        },
    ),
    "Quartz": (("quartz.config.ts",), {r"content/(?P<rest>.+)": "/:dashed"}),
    "Zola": (
        ("zola.toml", "config.toml", "content/**/_index*.md"),
        {
            r"content/(?P<rest>.+)\.(?P<lang>[a-z]{2}(?:-\w+)?)": "/:lang/:ascii/",
            r"content/(?P<rest>.+)": "/:ascii/",
        },
    ),
    "Hexo": (
        ("source/_posts",),
        {
            r"source/_posts/(?P<rest>.+)": "/:year/:month/:day/:name/",
            r"source/(?P<rest>.+)": "/:rest/",
        },
    ),
    "Next.js": (
        ("next.config.*", "public/**/*.md", "public/**/*.mdx", "data/siteMetadata.*"),
        {
            r"public/(?P<rest>.+)": "/:rest/",
            r"(?:src/)?app/(?P<collection>[^/]+)/(?:posts|content)/(?P<rest>[^/]+)": (
                "/:collection/:rest/"
            ),
            r"(?:src/)?(?:app|pages)/(?P<rest>.+)": "/:rest/",
            r"(?:src/)?(?:content|data)/(?P<collection>[^/]+)/(?P<rest>.+)": "/:collection/:rest/",
            r"(?:src/)?_?(?P<collection>posts|blog)/(?P<rest>.+)": "/:collection/:rest/",
            r"(?:src/)?content/(?P<rest>.+)": "/blog/:rest/",
        },
    ),
    "Obsidian": ((".obsidian", "*/.obsidian"), {}),
    "Markdown": (("*",), {}),
}
"""Each system's files, then patterns of its sources with their addresses; the first counts."""


def slugify(text: str) -> str:
    """Return a heading's or a name's slug as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


class DialectConverter:
    """Converts one text into Markdown that needs no other system."""

    def __init__(self, system: str, known: Mapping[str, str], body: str, *, is_mdx: bool) -> None:
        """`known` has the paths of texts and files by the names that links use for them."""
        names = (
            "fence kept "
            + _SYSTEM_PATTERNS.get(
                system, "remarked leaf directive box span callout wiki rooted pair tag"
            )
            + " module remark string braces" * is_mdx
        )
        self._pattern = re.compile(
            "|".join(f"(?P<{name}_>{_PATTERNS[name]})" for name in names.split()), re.MULTILINE
        )
        self._known = known
        self._replacements = _REPLACEMENTS | {
            "rooted": SOURCE + ("content/" if system == "Zola" else "src/")
        }
        self._pictures = dict(re.findall(r"(?m)^import\s+(\w+)\s+from\s+[\"'](\S+?)[\"']", body))
        self._above = 0
        """Number of lines above the part that is being converted."""
        self.left_out: dict[str, int] = {}
        """Line, from 0, of the first thing left out for a reason, by a sentence with the reason."""
        self.body = self._pattern.sub(self._change, body)
        """The text as Markdown."""

    def _change(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup).removesuffix("_")
        if kind in self._replacements:
            return found.expand(self._replacements[kind])
        return str(getattr(self, f"_change_{kind}", self._change_component)(found))

    def _leave_out(self, found: re.Match[str], what: str, shown: str = "") -> str:
        """Note in a sentence that a match is left out, and return what is shown in its place."""
        self.left_out.setdefault(what, self._above + found.string.count("\n", 0, found.start()))
        return shown

    def _convert_part(self, found: re.Match[str], group: str) -> str:
        """Convert the text of a group; its line numbers count from the beginning of the body."""
        lines = found.string.count("\n", 0, found.start(group))
        self._above += lines
        shown = self._pattern.sub(self._change, found[group])
        self._above -= lines
        return shown

    def _change_callout(self, found: re.Match[str]) -> str:
        return write_callout(
            found["quote"], found["kind"], self._convert_part(found, "heading").strip()
        )

    def _change_wiki(self, found: re.Match[str]) -> str:
        note, part, text = (found[name] or "" for name in ("note", "part", "text"))
        target = self._known.get(fold(note).strip(" /").removesuffix(".md"), "")
        label = text or note.rpartition("/")[2] or part
        if note and not target:
            return self._leave_out(found, f"nothing has the name {shorten(note)}", label)
        link = target and SOURCE + quote(target)
        if found["embed"] and re.fullmatch(r"(?i).+\.(?:png|jpe?g|gif|svg|webp|avif|bmp)", target):
            size = re.match(r"\d+(?=$|x)", text)
            return f"![]({link}){{width={size[0]}}}" if size else f"![{text}]({link})"
        # The id of a block, `^id`, works in Obsidian only.
        heading = re.sub(r".*#|^\^.*", "", part)
        return f"[{label}]({link}{heading and '#'}{slugify(heading)})"

    def _change_loose(self, found: re.Match[str]) -> str:
        # Obsidian finds a file by its name alone, wherever it is.
        path = self._known.get(fold(unquote(found[0])).removesuffix(".md"))
        return SOURCE + quote(path) if path else found[0]

    def _change_braces(self, found: re.Match[str]) -> str:
        return self._leave_out(found, f"the expression {shorten(found[0])} is not known")

    def _change_tag(self, found: re.Match[str]) -> str:
        if found["tag_name"] in {found["tag_name"].lower(), found["tag_name"].upper()}:
            return re.sub(rf"\s[\w:-]+={_BRACES}", "", found[0])
        return "" if found["close"] else self._change_component(found)

    def _change_component(self, found: re.Match[str]) -> str:
        """Return the Markdown that replaces a component or a shortcode, and its content."""
        kind = str(found.lastgroup)
        name, inner_group = found[f"{kind}name"], f"{kind}inner"
        given = {
            **({"title": found["boxed"]} if kind == "directive_" and found["boxed"] else {}),
            # A value may be the name of a picture that the text imports.
            **{
                (key or "0").lower(): self._pictures.get(value.removesuffix(".src"), value)
                for key, *forms in re.findall(
                    r"(?:([\w-]+)\s*=\s*\{?\s*|^[\s(]*(?=[\"']|\w+\s*$))"
                    r"(?:\"([^\"]*)\"|'([^']*)'|`([^`]*)`|([^\s\"'`{},)]+))",
                    found[f"{kind}words"],
                )
                for value in ["".join(forms)]
            },
        }
        shown, is_known = write_shortcode(
            name.lower(),
            given,
            ""
            if inner_group not in found.groupdict()
            else found[inner_group]
            if name in {*CODE_SHORTCODES, "raw"}
            else self._convert_part(found, inner_group),
            found.string[: found.start()],
            lambda link: re.sub("^[@~]/?(?=.*/)", f"{SOURCE}src/", link),
        )
        if is_known:
            return shown
        return self._leave_out(found, f"the component {shorten(name)} is not known", shown)
