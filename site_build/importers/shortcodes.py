"""Converts shortcodes of Hugo, and components of other generators, to Markdown."""

import re
import textwrap
from collections.abc import Callable, Mapping
from functools import partial

# A block or span of code, an escaped shortcode (`{{</* like this */>}}`) or a shortcode. Hugo runs
# shortcodes in code as well, unless they are escaped.
_CODE_OR_SHORTCODE = re.compile(
    r"""
    (?P<fence>^[ \t>]*(?P<ticks>`{3,}|~{3,})[^\n]*\n(?:(?!\{\{[<%](?!/\*)).)*?
      (?:^[ \t>]*(?P=ticks)[`~]*[ \t]*$|\Z))
    | (?P<span>(?<!`)(?P<tick>`+)(?!`)(?:(?!\n[ \t]*\n|\{\{[<%](?!/\*)).)+?(?<!`)(?P=tick)(?!`))
    | \{\{[<%]/\*(?P<shown>(?:(?!\{\{[<%]).)*?)\*/[>%]\}\}
    | \{\{[<%]\s*(?P<close>/?)\s*(?P<name>[\w./-]*\w)
      (?P<given>(?>"(?:\\.|(?!\}\}|\{\{[<%])[^"\\])*"|`[^`]*`|(?!\{\{[<%]).)*?)
      (?P<single>/?)\s*[>%]\}\}
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

TEMPLATES = {
    name: template
    for template, names in {
        "\n\n> [!NOTE]\n{quoted}\n\n": "note info abstract summary primary secondary light todo "
        "tldr seealso",
        "\n\n> [!TIP]\n{quoted}\n\n": "tip hint success example check done",
        "\n\n> [!IMPORTANT]\n{quoted}\n\n": "important question help faq",
        "\n\n> [!WARNING]\n{quoted}\n\n": "warning warn attention",
        "\n\n> [!CAUTION]\n{quoted}\n\n": "danger error caution failure fail missing bug critical",
        "\n\n{quoted}\n\n": "quote blockquote cite",
        "{picture}": "figure image img picture imgproc imgcap photo",
        '<video src="{link}"></video>': "video",
        '<audio src="{link}"></audio>': "audio",
        "[{label}]({link})": "button link card",
        "\n\n```{lang}\n{code}\n```\n\n": "highlight code code-block",
        "\n\n```mermaid\n{code}\n```\n\n": "mermaid",
        '\n\n<details markdown="1">\n<summary>{title}</summary>\n\n{text}\n\n</details>\n\n': (
            "details detail expand collapse spoiler accordionitem dropdown toggle"
        ),
        "\n\n**{title}**\n\n{text}\n\n": "tab tabitem codetab step timelineitem",
        "{inner}": (
            "gallery carousel row column columns col tabs tabpane codetabs steps cards rawhtml raw "
            "html unsafe lead center centered align div span section badge keyword keywordlist kbd "
            "mark u sub sup math katex latex mathjax markdown md timeline grid accordion accordions"
        ),
        "": "comment icon toc load-photoswipe clear style",
        "[Video on YouTube](https://www.youtube.com/watch?v={id})": "youtube youtubelite",
        "[Video on Vimeo](https://vimeo.com/{id})": "vimeo",
        "[Video on Bilibili](https://www.bilibili.com/video/{id})": "bilibili",
        "[Post on X](https://x.com/i/status/{id})": "tweet twitter x",
        "[Picture on Instagram](https://www.instagram.com/p/{id}/)": "instagram",
        "[Code on GitHub](https://gist.github.com/{all})": "gist",
        "[Code on GitHub](https://github.com/{id})": "github",
        "[Recording on asciinema](https://asciinema.org/a/{id})": "asciinema",
        "[Slides on SlideShare](https://www.slideshare.net/slideshow/embed_code/{id})": (
            "slideshare"
        ),
        "[Slides on Speaker Deck](https://speakerdeck.com/player/{id})": "speakerdeck",
    }.items()
    for name in names.split()
}
"""Templates of Markdown by the name of the shortcode that it replaces."""
CODE_SHORTCODES = {"highlight", "code", "mermaid"}
"""Shortcodes whose inner text is code."""

Resolve = Callable[[str | None, str], str]
"""Takes a language and a target, and returns the link. With the language None, the target is an
address; else it is a reference (`ref`), and the link is empty if no text has that name. An empty
language is the text's own."""
Report = Callable[[int, str, str], None]
"""Takes a line, a sentence on the change there, and advice for the owner."""


def convert_body(body: str, resolve: Resolve, report: Report, first_line: int) -> str:
    """Convert a text of Hugo to Markdown; `first_line` is its first line in the source file."""
    body = re.sub(r"<!--\s*more\s*-->", "", body)
    parts: list[str | re.Match[str]] = [""]
    write = partial(_write_hugo_shortcode, resolve=resolve, report=report, first_line=first_line)

    def relink(text: str) -> str:
        text = re.sub(
            r"(?m)^([ \t>]*>[ \t]*)\[!(\w+)\][+-]?[ \t]*([^\n]*)",
            lambda found: write_callout(*found.groups()),
            text,
        )
        return re.sub(
            r"""(?m)(\]\(\s*<?|^\[[^\]\n]+\]:[ \t]*<?|\b(?:src|href)=["']?)([^\s()<>"']+)""",
            lambda found: found[1] + resolve(None, found[2]),
            text,
        )

    def join(pieces: list[str | re.Match[str]]) -> str:
        return "".join(each if isinstance(each, str) else write(each, "") for each in pieces)

    end = 0
    for found in _CODE_OR_SHORTCODE.finditer(body):
        last, text = parts[-1], body[end : found.start()]
        parts.append(
            text if isinstance(last, re.Match) and last["name"] in CODE_SHORTCODES else relink(text)
        )
        end = found.end()
        if found["name"] is None:
            code = re.sub(
                r"(?s)(\{\{[<%])/\*((?:(?!\{\{[<%]).)*?)\*/([>%]\}\})",
                r"`\1\2\3`" if found["shown"] else r"\1\2\3",
                found[0],
            )
            # The line of an opening fence keeps its language and loses its options.
            parts.append(re.sub(r"\A([ \t>]*[`~]{3,}[ \t]*[\w+#.-]*)[ \t]*\{[^\n]*\}", r"\1", code))
        elif not found["close"]:
            parts.append(write(found, "") if found["single"] else found)
        elif opened := [
            (at, part)
            for at, part in enumerate(parts)
            if isinstance(part, re.Match) and part["name"] == found["name"]
        ]:
            # At most 20 levels are kept open: nobody nests shortcodes more deeply.
            start, tag = opened[:20][-1]
            parts[start:] = [write(tag, join(parts[start + 1 :]))]
    return join([*parts, relink(body[end:])])


def _write_hugo_shortcode(
    tag: re.Match[str], inner: str, resolve: Resolve, report: Report, first_line: int
) -> str:
    """Return the Markdown of a shortcode of Hugo with its inner text."""
    line, name = first_line + tag.string.count("\n", 0, tag.start()), tag["name"].lower()
    given = {
        (each[1] or str(number)).lower(): (each[2] or each[3] or each[4] or "")
        for number, each in enumerate(
            re.finditer(
                r"""(?s)(?:([\w-]+)\s*=\s*)?(?:"((?:\\.|[^"\\])*)"|`([^`]*)`|([^\s"`]+))""",
                tag["given"],
            )
        )
    }
    if name in {"ref", "relref"}:
        target = given.get("path") or given.get("0", "")
        link = resolve(given.get("lang", ""), target)
        if not link:
            report(line, f"the {name} {target!r} leads nowhere", "write where it should lead")
        return link or target
    shown, is_known = write_shortcode(
        name, given, inner, tag.string[: tag.start()], partial(resolve, None)
    )
    if not is_known:
        report(line, f"the shortcode {name} is not known", "write what it showed in its place")
    return shown


def write_callout(prefix: str, kind: str, heading: str) -> str:
    """Return the first lines of GitHub's alert for a callout, each after `prefix`, such as `> `."""
    lines = re.findall(r"\[!\w+\]", TEMPLATES.get(kind.lower(), TEMPLATES["note"]))
    lines += [f"**{heading}**", ""] * bool(heading)
    return "\n".join(prefix + line for line in lines)


def write_shortcode(
    name: str, given: Mapping[str, str], inner: str, before: str, resolve: Callable[[str], str]
) -> tuple[str, bool]:
    """Return the Markdown of a shortcode or component, and whether it is known.

    `given` are its parameters by number or by name in lower case; `before` is the text in front of
    it.
    """

    def first(*names: str) -> str:
        return next((given[each] for each in names if given.get(each)), "")

    # These have the kind of alert in a parameter.
    if name in {"alert", "aside", "notice", "admonition", "callout", "adm", "notification", "box"}:
        kind = first("type", "color", "variant", "0").lower()
        name = kind if "[!" in TEMPLATES.get(kind, "") else "note"
    source = resolve(first("src", "link", "href", "url", "file", "path", "0").replace(" ", "%20"))
    title = first("title", "summary", "name", "header", "label", "text", "content", "0")
    text = textwrap.dedent(inner.strip("\n")).strip() or first("text", "content")
    caption = ". ".join(filter(None, (given.get("title"), first("caption", "attr"))))
    target = first("link", "href") if "src" in given else ""
    picture = f"![{first('alt', '1') or caption}]({source})"
    picture = f"[{picture}]({resolve(target)})" if target else picture
    heading, author = first("heading", "title", "1"), first("author")
    quoted = (heading and f"**{heading}**", text, author and f"— {author}")
    known = {
        "all": "/".join(given.values()),
        "code": inner.strip("\n"),
        "id": first("id", "videoid", "repo", "bvid", "url", "0"),
        "inner": textwrap.dedent(inner) if "\n" in inner else inner,
        "label": text.replace("\n", " ") or title or source,
        "lang": first("lang", "language", "0"),
        "link": source,
        "picture": f"{picture}\n*{' '.join(caption.split())}*" if caption else picture,
        "quoted": textwrap.indent("\n\n".join(filter(None, quoted)), "> ", lambda _: True),
        "text": text,
        "title": title or "Details",
    }
    template = TEMPLATES.get(name, "")
    # Without inner text, a link without a target is unknown, and so is a wrapper (`{inner}`) with
    # parameters, which had the text.
    is_bare = template[:1] == "[" and not (
        source if "{link}" in template else known["id"] + known["all"]
    )
    is_known = name in TEMPLATES and bool(
        text or not (is_bare or (template == "{inner}" and given))
    )
    if name not in TEMPLATES or is_bare:
        template = (
            "{picture}"
            if re.search(r"\.(avif|gif|jpe?g|png|svg|webp)$", source.lower())
            else "[{label}]({link})"
            if not text and re.search(r"^(https?:|/)|\.(?!njk|liquid|html?)\w+$", source)
            else TEMPLATES["tab"]
            if given.get("title")
            else "{inner}"
        )
    # If the id is a whole address, it replaces the template's address.
    shown = re.sub(r"\(https:[^()]*(?=https?://)", "(", template.format_map(known))
    # Markdown is not parsed in a block of HTML; blocks in a list need its indentation.
    if re.search(r"(?m)^[ \t]*<(?!details)[a-z]", before[-2000:].rpartition("\n\n")[2]):
        shown = re.sub(r"!\[(.*?)\]\((\S*?)\)", r'<img src="\2" alt="\1">', shown)
    margin = re.search(r"(?:\A|\n)([ \t]+)\Z", before[-40:])
    return textwrap.indent(shown, margin[1]).lstrip(" \t") if margin else shown, is_known
