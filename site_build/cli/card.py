"""`card`: a post's card as a file, and what search engines and feeds will show of the post."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from site_build import addresses, options
from site_build.build.assets import FONT, design_card, find_font
from site_build.cli.check import find_dialect
from site_build.cli.terminal import open_console, print_findings
from site_build.content.document import read_document
from site_build.content.sources import explain_refusal, list_folder, read_bytes
from site_build.errors import BuildError, Diagnostic
from site_build.images.card import SIZE, draw_card, has_title
from site_build.pelican_plugin.settings import identify, load_settings
from site_build.site import Document, Identity
from site_build.text import write_instant


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    """Declare the command's options."""
    parser.add_argument("slug", metavar="SLUG", help="slug of a post or draft")
    options.add(parser, settings, "content", "site-url")
    parser.add_argument(
        "--output", type=_read_target, metavar="FILE", help="PNG file (default: SLUG.png)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the card, print what goes with it; return 1 for no such post. Raises BuildError."""
    console = open_console()
    post, findings = _find_post(arguments.content, arguments.slug)
    if post is None:
        print_findings(console, arguments.content, findings)
        return 1
    settings = load_settings(arguments.content, arguments.site_url)
    identity, theme = identify(settings), Path(settings["THEME"])
    font = find_font(theme)
    if font is None:
        raise BuildError(f"the theme has no font for cards; put {theme / FONT} there")
    card = design_card(identity, post)
    output = arguments.output or Path(f"{post.slug}.png")
    try:
        output.write_bytes(draw_card(card, font))
    except OSError as refusal:
        raise BuildError(f"{output} cannot be written: {refusal.strerror}") from refusal
    kilobytes = output.stat().st_size / 1000
    console.print(f"{output} is drawn: {SIZE[0]} by {SIZE[1]} pixels, {kilobytes:.0f} kB")
    for heading, lines in _list_views(identity, post):
        console.print(f"\n{heading}")
        for line in lines:
            console.print(f"  {line}")
    if not has_title(card, font):
        sys.stderr.write(
            "the card's font cannot write this title, so the card shows the journal's name\n"
        )
    return 0


def _read_target(text: str) -> Path:
    """Return where a picture goes: never over something else by a slip."""
    if not text.lower().endswith(".png"):
        raise argparse.ArgumentTypeError(f"a card is a PNG; end {text!r} in .png")
    return Path(text)


def _find_post(content: Path, slug: str) -> tuple[Document | None, list[Diagnostic]]:
    """Return the post, or findings of files that may have it; raises BuildError if none could."""
    known: list[str] = []
    findings: list[Diagnostic] = []
    rules = find_dialect(content).rules
    for path in list_folder(content, rules).sources:
        try:
            post, found = read_document(path, read_bytes(content, path), rules)
        except OSError as refusal:
            post, found = None, [explain_refusal(path, refusal)]
        if post is None:
            findings += found
        elif post.kind == "page" and post.slug == slug:
            raise BuildError(f"{path} is a page; pages share the card of the site")
        elif post.kind == "post" and post.slug == slug:
            return post, []
        elif post.kind == "post":
            known.append(post.slug)
    if any(each.severity == "error" for each in findings):
        findings = [each for each in findings if each.severity == "error"]
        sys.stderr.write(f"no post that can be read has the slug {slug!r}; fix these first\n")
        return None, findings
    near = get_close_matches(slug, known, n=1)
    fix = f"did you mean {near[0]!r}?" if near else "`slug` in its front matter tells it"
    raise BuildError(f"no post has the slug {slug!r}; {fix}")


def _list_views(identity: Identity, post: Document) -> Iterator[tuple[str, list[str]]]:
    url = identity.absolute(post.address)
    state = "  (a draft)" if post.draft else ""
    yield "In search results", [f"{post.title} · {identity.name}{state}", url, post.description]
    instant = write_instant(post.published)
    yield "In feeds and lists", [post.title, f"{instant}  {', '.join(post.tags)}", post.excerpt]
    card = identity.absolute(addresses.locate_card(post.slug))
    yield "Where it is shared", [post.title, post.description, card]
