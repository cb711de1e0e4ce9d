"""Liquid and kramdown, as Jekyll and its kin have them in a text, turned into Markdown."""

import re
from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from site_build.text import shorten

_CODE = (
    r"(?P<code>^[ ]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ ]*(?P=fence)[`~]*[ ]*$|\Z)"
    r"|(?<!`)(?P<tick>`+)(?!`)(?:(?!\n[ ]*\n).)+?(?<!`)(?P=tick)(?!`))"
)
_LIQUID = (
    r"\{%-?\s*raw\s*-?%\}(?P<raw>.{0,20000}?)\{%-?\s*endraw\s*-?%\}"
    r"|(?P<indent>^[ \t]*)?\{%-?\s*(?P<block>highlight|codeblock)\b(?P<options>[^%\n]*)%\}\n?"
    r"(?P<inner>.{0,20000}?)\{%-?\s*end(?P=block)\s*-?%\}"
    r"|(?P<silent>\{%-?\s*comment\b.{0,20000}?\{%-?\s*endcomment\s*-?%\})"
    r"|\{%-?\s*(?P<loop>for|tablerow)\b.{0,20000}?\{%-?\s*end(?P=loop)\s*-?%\}"
    r"|\{%-?\s*(?P<tag>\w.{0,2000}?)\s*-?%\}|\{\{-?\s*(?P<value>.{0,300}?)\s*-?\}\}"
)
"""Bounds keep what is never closed from being looked for to the end of the text each time."""
_VALUE = re.compile(
    r"""(?:(?P<quote>["'])(?P<text>.*?)(?P=quote)|(?P<name>[\w.-]+))"""
    r"""(?P<filters>(?:\s*\|\s*(?:relative_url|absolute_url|escape|xml_escape|strip|uri_escape"""
    r"""|url_encode|strip_html|smartify|prepend:\s*site\.(?:baseurl|url)))*)"""
)
"""What is written out, with filters that matter little or make an address."""
_RAW = re.compile(r"\{%-?\s*(?:end)?raw\s*-?%\}")
_QUOTED = r"""=\s*["']?"""
_PICTURE = r"""(?P<src>[^"'\s]+\.(?:png|jpe?g|gif|webp|avif|svg))"""
_ALT = r"""(?=(?:.*?\b(?:alt|caption|title|description)\s*=\s*["'](?P<alt>[^"'\]]*))?)"""
_TAGS = {
    r"(?:end|else|elsif|when|break|continue|seo|feed_meta|toc|more|cq|centerquote)\b.*|end\w+": "",
    r"(?:post_url|post_path|link|asset_path)\s+/?(?P<src>[^\s{]+).*": r"source:\g<src>",
    r"""post_link\s+["']?(?P<src>[^\s"']+)["']?\s+["']?(?P<said>[^"'\]]+).*""": (
        r"[\g<said>](source:\g<src>)"
    ),
    r"""post_link\s+["']?(?P<src>[^\s"'{]+).*""": r"[\g<src>](source:\g<src>)",
    rf"include\S*\s{_ALT}.*?{_QUOTED}(?P<host>https?:){_PICTURE}.*": (
        r"![\g<alt>](\g<host>\g<src>)"
    ),
    rf"include\S*\s{_ALT}.*?{_QUOTED}/?{_PICTURE}.*": r"![\g<alt>](source:\g<src>)",
    rf"(?:img|asset_img)\s+(?:\S+\s+)*?(?P<host>https?://){_PICTURE}.*": r"![](\g<host>\g<src>)",
    rf"""(?:img|asset_img)\s+(?:[\w-]+\s+)*?["']?/?{_PICTURE}["']?(?:\s+\d+%?)*\s*"""
    r"""["']?(?P<alt>[^"'\]]*).*""": (r"![\g<alt>](source:\g<src>)"),
    r"""(?=.*youtube)\w+.*?[\s"'=/](?P<id>[\w-]{11})(?![\w-]).*""": (
        r"[YouTube](https://www.youtube.com/watch?v=\g<id>)"
    ),
    r"""(?=.*vimeo)\w+.*?\b(?P<id>\d{6,}).*""": r"[Vimeo](https://vimeo.com/\g<id>)",
    r"""gist\s+["']?(?P<id>[\w/-]+).*""": r"[Gist](https://gist.github.com/\g<id>)",
    r"""include\S*\s.*?\b(?:url|href|link)\s*=\s*["'](?P<url>[^"']+).*""": r"<\g<url>>",
    r"""include\S*\s.*?\b(?:content|text)\s*=\s*(?P<q>["'])(?P<said>.+?)(?P=q).*""": r"\g<said>",
}
"""Tags by their pattern, and what a reader has of them."""
_WITHIN_HTML = re.compile(r"^[ \t]*<[^\n]*\n[ \t]*\Z", re.MULTILINE)
"""The end of what comes before a tag that Markdown leaves as it is."""
_ALERTS = {"tip": "TIP", "success": "TIP", "warning": "WARNING", "danger": "CAUTION"}
_KRAMDOWN: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        (
            r"(?<![^\n]\n)(?P<text>(?:^(?![ ]*$|\{:)[^\n]+\n)+)\{:[^}\n]*\.(?:notice|prompt|note)"
            r"(?:--?|[ ]+\.)?(?P<kind>\w*)[^}\n]*\}[ \t]*$"
        ),
        lambda found: re.sub(
            r"^(?:>[ ]?)?",
            "> ",
            f"[!{_ALERTS.get(found['kind'], 'NOTE')}]\n{found['text'].rstrip()}",
            flags=re.MULTILINE,
        ),
    ),
    (r"^(?:[*+-]|\d+\.)[ ][^\n]*\n\{:[ ]*toc\b[^}\n]*\}[ \t]*\n?", ""),
    (
        r"^(?P<heading>\#+[ ][^\n{]*?)[ ]*\n\{:[ ]*(?P<id>\#[\w-]+)[^}\n]*\}[ \t]*$",
        r"\g<heading> {\g<id>}",
    ),
    (r"\{::comment\}.*?\{:/(?:comment)?\}|\{:[:/][^}\n]*\}", ""),
    (r"^[ ]*\{:[^}\n]*\}[ \t]*\n?|(?<=[)\]*_`>])[ ]?\{:[^}\n]*\}", ""),
    (r"\\\\\((?P<tex>.+?)\\\\\)", r"$\g<tex>$"),
    (r"\\\\\[(?P<tex>.+?)\\\\\]", r"$$\g<tex>$$"),
    (r"(?<=[^\s$])(?P<gap>[ ]?)\$\$[ ]*(?P<tex>[^$\n]+?)[ ]*\$\$", r"\g<gap>$\g<tex>$"),
    (r"\$\$[ ]*(?P<tex>[^$\n]+?)[ ]*\$\$(?=[ ]*[^\s$])", r"$\g<tex>$"),
)
"""What kramdown has and GitHub has not, and what comes in its place."""


def convert_liquid(
    body: str,
    values: Mapping[str, Any],
    find: Callable[[str], str],
    note: Callable[[int, str], None],
) -> str:
    """Return a text without Liquid.

    `values` are those of `site` and `page`; `find` returns the path of the file that a name means.
    `note` gets the line, from 0, and the text of each tag that is taken out.
    """

    def render(found: re.Match[str]) -> str:
        if block := found["block"]:
            lang = re.search(r"lang:(\S+)" if block == "codeblock" else r"(\S+)", found["options"])
            fence = (found["indent"] or "") + ("````" if "```" in found["inner"] else "```")
            inner = _RAW.sub("", found["inner"]).rstrip()
            return f"{fence}{lang[1] if lang else ''}\n{inner}\n{fence}"
        said = found["raw"]
        if value := _VALUE.fullmatch(found["value"] or ""):
            at: Any = values
            for step in (value["name"] or "").split("."):
                at = at.get(step) if isinstance(at, Mapping) else None
            said = value["text"] or at
        for pattern, form in _TAGS.items():
            if tag := re.fullmatch(pattern, found["tag"] or "", re.DOTALL):
                said = re.sub(
                    r"(?<=source:)[^)#]+",
                    lambda name: find(name[0]).replace(" ", "%20"),
                    tag.expand(form),
                )
                break
        if said and _WITHIN_HTML.search(body[max(0, found.start() - 300) : found.start()]):
            said = re.sub(r"!\[(.*?)\]\((.*?)\)", r'<img src="\2" alt="\1">', said)
        if value and "url" in value["filters"] and isinstance(said, str) and "://" not in said:
            said = f"{values['site']['baseurl']}/{said.lstrip('/')}"
        if not isinstance(said, str) and found.lastgroup != "silent":
            note(body.count("\n", 0, found.start()), shorten(found[0]))
        return said if isinstance(said, str) else ""

    return _replace_outside_code(_LIQUID, render, body)


def convert_kramdown(body: str) -> str:
    """Return a text whose alerts, attributes, contents and formulas are written as on GitHub."""
    for pattern, form in _KRAMDOWN:
        replace = form if callable(form) else methodcaller("expand", form)
        body = _replace_outside_code(pattern, replace, body)
    return body


def _replace_outside_code(pattern: str, replace: Callable[[re.Match[str]], str], text: str) -> str:
    return re.sub(
        f"{_CODE}|{pattern}",
        lambda found: _RAW.sub("", found[0]) if found["code"] else replace(found),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
