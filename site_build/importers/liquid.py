"""Converts the Liquid and kramdown of Jekyll and related systems into Markdown."""

import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import methodcaller
from typing import Any

from site_build.text import shorten

_CODE = (
    r"(?P<code>^[ ]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ ]*(?P=fence)[`~]*[ ]*$|\Z)"
    r"|(?<!`)(?P<tick>`+)(?!`)(?:(?!\n[ ]*\n).)+?(?<!`)(?P=tick)(?!`))"
)
_LIQUID = (
    r"\{%-?\s*raw\s*-?%\}(?P<raw>.{0,20000}?)\{%-?\s*endraw\s*-?%\}"
    r"|(?P<indent>^[ \t]*)?\{%-?\s*(?P<block>highlight|code(?:block)?)\b(?P<options>[^%\n]*)%\}\n?"
    r"(?P<inner>.{0,20000}?)\{%-?\s*end(?P=block)\s*-?%\}"
    r"|(?P<silent>\{%-?\s*comment\b.*?(?:\{%-?\s*endcomment\s*-?%\}|\Z)"
    # The site's address before a tag such as `post_url`, which makes a whole link by itself.
    r"|(?:\{\{-?\s*site\.(?:base)?url\s*-?\}\}/?){1,3}(?=\{%-?\s*(?:post_url|post_path|link)\b))"
    r"|\{%-?\s*(?P<loop>for|tablerow)\b.{0,20000}?\{%-?\s*end(?P=loop)\s*-?%\}"
    r"|\{%-?\s*(?P<tag>\w.{0,2000}?)\s*-?%\}|\{\{-?\s*(?P<value>.{0,300}?)\s*-?\}\}"
)
"""Liquid's syntax. Lengths are bounded, so that no unclosed tag is searched to the text's end.

A comment has no bound: an unclosed one hides the rest of the text, which is not searched again.
"""
_VALUE = re.compile(
    r"""(?:(?P<quote>["'])(?P<text>(?:(?!(?P=quote)).)*)(?P=quote)|(?P<name>[\w.-]+))"""
    r"""(?P<filters>(?:\s*\|\s*(?:relative_url|absolute_url|escape|xml_escape|strip|uri_escape"""
    r"""|url_encode|strip_html|smartify|prepend:\s*site\.(?:baseurl|url)))*)"""
)
"""A value with filters that may be ignored, or that make an address."""
_RAW = re.compile(r"\{%-?\s*(?:end)?raw\s*-?%\}")
_EQUALS = r"""=\s*["']?"""
_PICTURE = r"""(?P<src>[^"'\s]+\.(?:png|jpe?g|gif|webp|avif|svg))"""
_ALT = r"""(?=(?:.*?\b(?:alt|caption|title|description)\s*=\s*["'](?P<alt>[^"'\]]*))?)"""
_TAGS = {
    r"(?:end|else|elsif|when|break|continue|seo|feed_meta|toc|more|cq|centerquote)\b.*|end\w+"
    # Includes at the beginning of texts for the themes academicpages and minimal-mistakes.
    r"|include\S*\s+(?:base_path|toc)\b.*": "",
    r"(?:post_url|post_path|link|asset_path)\s+/?(?P<src>[^\s{]+)(?!.*//).*": r"source:\g<src>",
    r"""(?:post|asset)_link\s+["']?(?P<src>[^\s"']+)["']?\s+["']?(?P<said>[^"'\]]+).*""": (
        r"[\g<said>](source:\g<src>)"
    ),
    r"""(?:post|asset)_link\s+["']?(?P<src>[^\s"'{]+).*""": r"[\g<src>](source:\g<src>)",
    rf"include\S*\s{_ALT}.*?{_EQUALS}(?P<host>https?:){_PICTURE}.*": (
        r"![\g<alt>](\g<host>\g<src>)"
    ),
    rf"include\S*\s{_ALT}.*?{_EQUALS}/?{_PICTURE}.*": r"![\g<alt>](source:\g<src>)",
    rf"(?:img|asset_img)\s+(?:\S+\s+)*?(?P<host>https?://){_PICTURE}.*": r"![](\g<host>\g<src>)",
    rf"""(?:img|asset_img)\s+(?:[\w-]+\s+)*?["']?/?{_PICTURE}["']?(?:\s+\d+%?)*\s*"""
    r"""["']?(?P<alt>[^"'\]]*).*""": (r"![\g<alt>](source:\g<src>)"),
    r"""(?=.*youtube)\w+.*?[\s"'=/](?P<id>[\w-]{11})(?![\w-]).*""": (
        r"[YouTube](https://www.youtube.com/watch?v=\g<id>)"
    ),
    r"""(?=.*vimeo)\w+.*?\b(?P<id>\d{6,}).*""": r"[Vimeo](https://vimeo.com/\g<id>)",
    r"""gist\s+["']?(?P<id>[\w/-]+).*""": r"[Gist](https://gist.github.com/\g<id>)",
    r"""include\S*\s.*?\b(?:url|href|link|src)\s*=\s*["'](?P<url>[^"']+).*""": (
        r"[\g<url>](\g<url>)"
    ),
    r"""include\S*\s.*?\b(?:content|text)\s*=\s*(?P<q>["'])(?P<said>.+?)(?P=q).*""": r"\g<said>",
    r"""(?!(?:els)?if|unless|assign|capture|case|cycle)\w+.*?(?P<url>https?://[^\s"',%}]+).*""": (
        r"<\g<url>>"
    ),
}
"""Replacements of tags, by a pattern of the tag."""
_ALERTS = {
    **dict.fromkeys(("tip", "success"), "TIP"),
    **dict.fromkeys(("danger", "caution"), "CAUTION"),
    "warning": "WARNING",
    "important": "IMPORTANT",
}


def _alert(found: re.Match[str]) -> str:
    """Return a paragraph or a quotation as a GitHub alert."""
    text = f"[!{_ALERTS.get(found['kind'], 'NOTE')}]\n{found['text'].rstrip()}"
    return re.sub("^(?:>[ ]?)?", "> ", text, flags=re.MULTILINE)


_KRAMDOWN: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        (
            r"(?<![^\n]\n)(?P<text>(?:^(?![ ]*$|\{:)[^\n]+\n)+)\{:[^}\n]*\.(?:notice|prompt|note)"
            r"(?:--?|[ ]+\.)?(?P<kind>\w*)[^}\n]*\}[ \t]*$"
        ),
        _alert,
    ),
    # The theme Just the Docs marks an alert before its paragraph.
    (
        (
            r"(?<![^\n]\n)\{:[ ]*\.(?P<kind>note|tip|important|warning|caution|new|highlight)\b"
            r"[^}\n]*\}[ \t]*\n(?P<text>(?!\{:)(?:[^\n]+\n(?!\{:|[ ]*$))*[^\n]+)"
        ),
        _alert,
    ),
    (r"^(?:[*+-]|\d+\.)[ ][^\n]*\n\{:[ ]*toc\b[^}\n]*\}[ \t]*\n?", ""),
    (
        r"^(?P<heading>\#+[ ][^\n{]*?)[ ]*\n\{:[ ]*(?P<id>\#[\w-]+)[^}\n]*\}[ \t]*$",
        r"\g<heading> {\g<id>}",
    ),
    (r"\{::comment\}.*?\{:/(?:comment)?\}|\{:[:/][^}\n]*\}", ""),
    (r"^[ ]*\{:[^}\n]*\}[ \t]*\n?|(?<=[)\]*_`>])[ ]?\{:[^}\n]*\}", ""),
    (r"\{\"[ ]*(?P<said>[^\n\"]+?)[ ]*\"\}", r"\g<said>"),  # a pull quote in Octopress
    (r"\\\\\((?P<tex>.+?)\\\\\)", r"$\g<tex>$"),
    (r"\\\\\[(?P<tex>.+?)\\\\\]", r"$$\g<tex>$$"),
    (r"(?<=[^\s$])(?P<gap>[ ]?)\$\$[ ]*(?P<tex>[^$\n]+?)[ ]*\$\$", r"\g<gap>$\g<tex>$"),
    (r"\$\$[ ]*(?P<tex>[^$\n]+?)[ ]*\$\$(?=[ ]*[^\s$])", r"$\g<tex>$"),
)
"""Syntax of kramdown that GitHub lacks, with its replacements."""


def convert_liquid(
    body: str,
    values: Mapping[str, Any],
    find: Callable[[str], str],
    note: Callable[[int, str], None],
) -> str:
    """Return a text without Liquid.

    `values` has the variables of Liquid; `find` returns the path of the file that a name means.
    `note` gets the line, from 0, and the text of each tag that is taken out.
    """

    def render(found: re.Match[str]) -> str:
        if block := found["block"]:
            lang = re.search(r"(\S+)" if block == "highlight" else r"lang:(\S+)", found["options"])
            fence = (found["indent"] or "") + ("````" if "```" in found["inner"] else "```")
            inner = _RAW.sub("", found["inner"]).rstrip()
            return f"{fence}{lang[1] if lang else ''}\n{inner}\n{fence}"
        value, tag = _VALUE.fullmatch(found["value"] or ""), found["tag"] or ""
        tags = ((re.fullmatch(each, tag, re.DOTALL), form) for each, form in _TAGS.items())
        shown = next((known.expand(form) for known, form in tags if known), None)
        # A gallery of pictures that the head of the text lists.
        if gallery := re.match(
            r"""include\S*\s+(?P<name>gallery|feature_row)\b"""
            r"""(?:.*?\bid\s*=\s*["']?(?P<id>[\w-]+))?""",
            tag,
        ):
            pictures = _pick(values["page"], gallery["id"] or gallery["name"])
            shown = "\n".join(
                f"![{_pick(each, 'alt') or ''}]({'source:' * ('//' not in path)}{path})"
                for each in (pictures if isinstance(pictures, list) else ())
                if (path := str(_pick(each, "image_path") or ""))
            )
        output: object = re.sub(
            r"(?<=source:)[^)#]+", lambda each: find(each[0]).replace(" ", "%20"), shown or ""
        )
        if value:
            output = value["text"] or reduce(_pick, value["name"].split("."), values)
        elif shown is None:
            output = found["raw"]
        if not isinstance(output, str):
            if found.lastgroup != "silent":
                note(body.count("\n", 0, found.start()), shorten(found[0]))
            return ""
        # After a line of HTML, Markdown is not converted, so pictures become HTML.
        before = body[max(0, found.start() - 300) : found.start()]
        if re.search(r"(?m)^[ \t]*<(?!!--)[^\n]*\n[ \t]*\Z", before):
            output = re.sub(r"!\[(.*?)\]\((.*?)\)", r'<img src="\2" alt="\1">', output)
        if value and "url" in value["filters"] and "://" not in output:
            output = f"{values['site']['baseurl']}/{output.lstrip('/')}"
        return output

    return _replace_outside_code(_LIQUID, render, body)


def convert_kramdown(body: str) -> str:
    """Return a text whose alerts, attributes, contents and formulas are written as on GitHub."""
    for pattern, form in _KRAMDOWN:
        body = _replace_outside_code(
            pattern, form if callable(form) else methodcaller("expand", form), body
        )
    return body


def _pick(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, Mapping) else None


def _replace_outside_code(pattern: str, replace: Callable[[re.Match[str]], str], text: str) -> str:
    return re.sub(
        f"{_CODE}|{pattern}",
        lambda found: _RAW.sub("", found[0]) if found["code"] else replace(found),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
