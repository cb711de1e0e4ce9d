"""Hugo's shortcodes: what each becomes in Markdown, and what is left of those nobody knows."""

import re
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

_PIECES = re.compile(
    r"""
    (?P<fence>^[ \t>]*(?P<ticks>`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t>]*(?P=ticks)[`~]*[ \t]*$|\Z))
    | (?P<span>(?<!`)(?P<tick>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=tick)(?!`))
    | \{\{[<%]/\*(?P<shown>.*?)\*/[>%]\}\}
    | \{\{[<%]\s*(?P<close>/?)\s*(?P<name>[\w./-]*\w)
      (?P<given>(?>"(?:\\.|(?!\}\})[^"\\])*"|`[^`]*`|.)*?)(?P<single>/?)\s*[>%]\}\}
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_GIVEN = re.compile(
    r"""(?:([\w-]+)\s*=\s*)?(?:"((?:\\.|[^"\\])*)"|`([^`]*)`|([^\s"`]+))""", re.DOTALL
)
_SHOWN = re.compile(r"(\{\{[<%])/\*(.*?)\*/([>%]\}\})", re.DOTALL)
_FENCE_OPTIONS = re.compile(
    r"\A([ \t>]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]*)[ \t]*\{[^\n]*\}[ \t]*$", re.MULTILINE
)
_LINK = re.compile(
    r"""(\]\(\s*<?|^\[[^\]\n]+\]:[ \t]*<?|\b(?:src|href)=["']?)([^\s()<>"']+)""", re.MULTILINE
)
_MORE = re.compile(r"^[ \t]*<!--\s*more\s*-->[ \t]*\n?|<!--\s*more\s*-->", re.MULTILINE)

_ALERTS = {
    name: kind
    for kind, names in {
        "NOTE": "note info abstract summary primary secondary light dark default",
        "TIP": "tip hint success example",
        "IMPORTANT": "important question",
        "WARNING": "warning warn attention",
        "CAUTION": "danger error caution failure bug critical",
    }.items()
    for name in names.split()
}
_ALERT_FORMS = {"alert", "notice", "admonition", "callout", "adm", "notification", "box", "blurb"}
_PICTURES = {"figure", "image", "img", "picture", "imgproc", "imgcap", "photo"}
_EMBEDS = {
    "youtube": ("Video on YouTube", "https://www.youtube.com/watch?v={}"),
    "youtubelite": ("Video on YouTube", "https://www.youtube.com/watch?v={}"),
    "vimeo": ("Video on Vimeo", "https://vimeo.com/{}"),
    "bilibili": ("Video on Bilibili", "https://www.bilibili.com/video/{}"),
    "tweet": ("Post on X", "https://x.com/i/status/{}"),
    "twitter": ("Post on X", "https://x.com/i/status/{}"),
    "x": ("Post on X", "https://x.com/i/status/{}"),
    "instagram": ("Picture on Instagram", "https://www.instagram.com/p/{}/"),
    "gist": ("Code on GitHub", "https://gist.github.com/{}"),
    "github": ("Code on GitHub", "https://github.com/{}"),
    "codepen": ("Pen on CodePen", "https://codepen.io/pen/{}"),
    "asciinema": ("Recording on asciinema", "https://asciinema.org/a/{}"),
    "slideshare": ("Slides on SlideShare", "https://www.slideshare.net/slideshow/embed_code/{}"),
    "speakerdeck": ("Slides on Speaker Deck", "https://speakerdeck.com/player/{}"),
    "spotify": ("Sound on Spotify", "https://open.spotify.com/{}"),
}
_FENCES = {"highlight", "code", "code-block", "mermaid"}
_FOLDS = {"details", "detail", "expand", "collapse", "spoiler", "accordion", "accordionitem"}
_QUOTES = {"quote", "blockquote"}
_PLAIN = set(
    ["gallery", "carousel", "row", "column", "columns", "col", "tabs", "tabpane", "codetabs", "steps", "cards", "card", "button", "link", "rawhtml", "raw", "html", "unsafe", "lead", "center", "centered", "align", "div", "span", "section", "badge", "keyword", "keywordlist", "kbd", "mark", "u", "sub", "sup", "math", "katex", "latex", "mathjax", "markdown", "md", "timeline", "timelineitem", "grid"]
)
_NOTHING = {"comment", "icon", "toc", "load-photoswipe", "clear", "style"}
_TITLED = {"tab", "tabitem", "codetab", "step"}
_KNOWN = {"ref", "relref", "param", "video", "audio", *_ALERTS, *_ALERT_FORMS, *_PICTURES}
_KNOWN |= {*_EMBEDS, *_FENCES, *_FOLDS, *_QUOTES, *_PLAIN, *_NOTHING, *_TITLED}

Resolve = Callable[[str, str | None], str]
"""Returns the link for a target, which is a reference where the second argument is no None but a
language, or empty for the text's own; nothing for a reference that leads nowhere."""


def convert_body(
    body: str,
    params: Mapping[str, Any],
    resolve: Resolve,
    report: Callable[[int, str, str], None],
) -> str:
    """Return a text of Hugo in Markdown.

    `params` are what the shortcode `param` shows. `report` takes a line, counted from 0, what was
    changed there, and what its owner can do.
    """
    parts: list[str | re.Match[str]] = []

    def write(tag: re.Match[str], inner: str = "") -> str:
        line = body.count("\n", 0, tag.start())
        complain = partial(report, line)
        name = tag["name"].lower()
        if name not in _KNOWN:
            complain(f"the shortcode {name} is not known", "write what it showed in its place")
        written = _write(name, _read_given(tag["given"]), inner, params, resolve, complain)
        # A block in a list keeps the margin of the list.
        margin = re.search(r"(?:\A|\n)([ \t]+)\Z", body[max(0, tag.start() - 40) : tag.start()])
        return textwrap.indent(written, margin[1]).lstrip(" \t") if margin else written

    def join(pieces: list[str | re.Match[str]]) -> str:
        return "".join(each if isinstance(each, str) else write(each) for each in pieces)

    def relink(text: str) -> str:
        return _LINK.sub(lambda found: found[1] + resolve(found[2], None), _MORE.sub("", text))

    end = 0
    for found in _PIECES.finditer(body):
        parts.append(relink(body[end : found.start()]))
        end = found.end()
        if found["name"] is None:
            code = _SHOWN.sub(r"\1\2\3", found[0])
            parts.append(f"`{code}`" if found["shown"] else _FENCE_OPTIONS.sub(r"\1", code))
        elif not found["close"]:
            parts.append(write(found) if found["single"] else found)
        else:
            for start in reversed(range(len(parts))):
                tag = parts[start]
                if isinstance(tag, re.Match) and tag["name"] == found["name"]:
                    raw = body[tag.end() : found.start()]
                    inner = raw if tag["name"].lower() in _FENCES else join(parts[start + 1 :])
                    parts[start:] = [write(tag, inner)]
                    break
    return join([*parts, relink(body[end:])])


def _read_given(text: str) -> dict[str, str]:
    """Return a shortcode's parameters by name, or by number where they have none."""
    found = [(each[1], each[2] or each[3] or each[4] or "") for each in _GIVEN.finditer(text)]
    return {
        (name or str(number)).lower(): re.sub(r"\\([\"\\])", r"\1", value)
        for number, (name, value) in enumerate(found)
    }


def _write(  # noqa: C901, PLR0911, PLR0912, PLR0913 - a table whose rows are code
    name: str,
    given: Mapping[str, str],
    inner: str,
    params: Mapping[str, Any],
    resolve: Resolve,
    complain: Callable[[str, str], None],
) -> str:
    """Return what a shortcode with these parameters shows around its inner text."""

    def first(*names: str) -> str:
        return next((given[each] for each in names if given.get(each)), "")

    text = textwrap.dedent(inner.strip("\n")).strip()
    title = first("title", "summary", "name", "header", "label", "heading")
    source = first("src", "link", "href", "url", "file", "path", "relref")
    if name in _NOTHING:
        return ""
    if name in {"ref", "relref"}:
        target = first("path", "0")
        link = resolve(target, given.get("lang", ""))
        if not link:
            complain(f"the {name} {target!r} leads nowhere", "write the link that it should be")
        return link or target
    if name in _ALERTS or name in _ALERT_FORMS:
        # The kind stands in the name, else before the title; what has no inner text has a text.
        kind = _ALERTS.get(name) or _ALERTS.get(first("type", "color", "0").lower(), "NOTE")
        title = title or given.get("0" if name in _ALERTS else "1", "") if text else title
        heading = f"**{title}**" if title.lower() not in {"", name, kind.lower()} else ""
        shown = "\n\n".join(filter(None, (heading, text or first("text", "content", "0"))))
        return _quote(f"[!{kind}]\n{shown}")
    if name in _QUOTES:
        return _quote(f"{text}\n\n— {first('author', 'source', 'cite', '0')}".strip("\n— "))
    if name in _PICTURES and (source or given.get("0")):
        picture = resolve((given.get("src") or source or given["0"]).replace(" ", "%20"), None)
        caption = ". ".join(filter(None, (given.get("title"), first("caption", "attr"))))
        alt = re.sub(r"[\[\]\s]+", " ", first("alt", "1") or caption)
        plain = not re.search(r'[\[<*_`"\n]', caption)
        shown = f'![{alt}]({picture} "{caption}")' if caption and plain else f"![{alt}]({picture})"
        if given.get("src") and (link := first("link", "href")):
            shown = f"[{shown}]({resolve(link, None)})"
        return shown if plain else f"{shown}\n*{caption}*"
    if name in _EMBEDS:
        label, form = _EMBEDS[name]
        key = first("id", "repo", "bvid", "url", "0")
        if name == "gist" and "1" in given:
            key = f"{key}/{given['1']}"
        return f"[{first('title') or label}]({key if '://' in key else form.format(key)})"
    if name in _FENCES:
        ticks = "````" if "```" in inner else "```"
        language = name if name == "mermaid" else first("lang", "language", "0")
        code = inner.strip("\n")
        return f"\n\n{ticks}{language}\n{code}\n{ticks}\n\n"
    if name in _FOLDS:
        summary = f"<summary>{title or first('0') or 'Details'}</summary>"
        return f'\n\n<details markdown="1">\n{summary}\n\n{text}\n\n</details>\n\n'
    if name == "param":
        value: Any = params
        for key in first("0", "name").lower().split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            complain(f"the parameter {first('0', 'name')!r} is not set", "write its value")
        return str("" if value is None else value)
    if name in {"video", "audio"} and (source or given.get("0")):
        return f'<{name} src="{resolve(source or given["0"], None)}"></{name}>'
    title = title or first("text", "content", "caption") or (first("0") if name in _TITLED else "")
    source = source or next((each for each in given.values() if "://" in each), "")
    if source:
        mark = "!" * bool(re.search(r"\.(?:avif|gif|jpe?g|png|svg|webp)$", source.lower()))
        label = text if text and "\n\n" not in text else title
        link = f"{mark}[{label or source * (not mark)}]({resolve(source, None)})"
        return link if label == text or not text else f"{text}\n\n{link}"
    if text and title:
        return f"\n\n**{title}**\n\n{text}\n\n"
    return textwrap.dedent(inner) if "\n" in inner else inner or title


def _quote(text: str) -> str:
    return "\n\n" + textwrap.indent(text, "> ", lambda _line: True) + "\n\n"
